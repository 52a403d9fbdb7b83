"""Trying again: NA-11; before anything was shown, and only what may be repeated."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from toolsearch import SetupError, ToolSearch, tool
from toolsearch.events.facts import Answers, ModelCalled, Noted, Reply, ReplyDiscarded, TextDelta
from toolsearch.layers import retry, structured
from toolsearch.layers._retry import is_transient
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel


class Refused(Exception):
    """As the clients of providers have them: a status, and a response with headers."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"status {status}")
        self.status_code = status
        self.response = Response({name.replace("_", "-"): value for name, value in headers.items()})


class Response:
    def __init__(self, headers: dict[str, str]) -> None:
        self.headers = headers


class RateLimitError(Exception):
    """Called like that of a client."""


class Late(RateLimitError):
    code = "insufficient_quota"


class Flaky:
    """A tool that fails a few times."""

    def __init__(self, times: int, error: type[Exception] = ConnectionError) -> None:
        self.times, self.error, self.ran = times, error, 0

    def fetch(self) -> str:
        """Fetch something."""
        self.ran += 1
        if self.ran <= self.times:
            raise self.error("gone")
        return "fetched"


def agent_for(model: Any, *layers: Any, tools: Any = ()) -> Agent:
    return Agent(model, ToolSearch(list(tools), mode="static"), layers=layers)


def errors(agent: Agent) -> list[str]:
    return [e.error.partition(":")[0] for e in agent.conversation("s").journal if isinstance(e, ModelCalled)]


# -- models ------------------------------------------------------------------------------------------------------


def test_a_model_call_that_failed_in_passing_is_made_again(drive: Any) -> None:
    """NA-11: two attempts; each is billed."""
    agent = agent_for(ScriptedModel(ConnectionError("gone"), "Here."), retry(seconds=0))
    result = drive(agent, "Go", conversation_id="s")
    assert (result.text, result.usage.calls) == ("Here.", 2)
    assert errors(agent) == ["ConnectionError", ""]


def test_after_the_last_attempt_the_error_is_raised(drive: Any) -> None:
    model = ScriptedModel(*[ConnectionError("gone")] * 3, "Here.")
    agent = agent_for(model, retry(3, seconds=0))
    with pytest.raises(ConnectionError, match="gone"):
        drive(agent, "Go", conversation_id="s")
    assert len(model.requests) == 3
    assert drive(agent, "Go", conversation_id="s").text == "Here."


def test_an_error_that_stays_is_raised_at_once(drive: Any) -> None:
    model = ScriptedModel(ValueError("no such model"))
    with pytest.raises(ValueError, match="no such model"):
        drive(agent_for(model, retry(9, seconds=0)), "Go")
    assert len(model.requests) == 1


class Breaks:
    """A model whose first reply breaks off after a piece, or before any."""

    def __init__(self, *pieces: str) -> None:
        self.pieces, self.calls = pieces, 0
        self.error = ConnectionError("broke off")  # one and the same, as a client may raise it

    def __call__(self, request: Any) -> Any:
        self.calls += 1
        if self.calls > 1:
            yield Reply("Here.")
            return
        for piece in self.pieces:
            yield TextDelta(piece)
        raise self.error


def test_what_was_shown_is_not_asked_for_again(drive: Any) -> None:
    model = Breaks("Hal")
    with pytest.raises(ConnectionError):
        drive(agent_for(model, retry(seconds=0)), "Go")
    assert model.calls == 1


def test_before_the_first_piece_it_is_asked_for_again(drive: Any) -> None:
    model = Breaks()
    assert drive(agent_for(model, retry(seconds=0)), "Go").text == "Here."


def test_where_nothing_is_shown_before_it_is_whole_it_is_asked_for_again(drive: Any) -> None:
    class Json(Breaks):
        def __call__(self, request: Any) -> Any:
            for each in super().__call__(request):
                yield Reply("{}") if isinstance(each, Reply) else each

    agent = agent_for(Json("{"), structured(dict), retry(seconds=0))
    shown = drive.shown(agent, "Go")
    assert shown[-1].value == {}
    assert not [e for e in shown if isinstance(e, TextDelta | ReplyDiscarded)]


def test_helpers_calls_are_tried_again_too(drive: Any) -> None:
    agent = agent_for(ScriptedModel("no", ConnectionError("gone"), "{}"), structured(dict), retry(seconds=0))
    assert drive(agent, "Go", conversation_id="s").value == {}
    assert errors(agent) == ["", "ConnectionError", ""]


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (Refused(429), True),
        (Refused(408), True),
        (Refused(500), True),
        (Refused(529), True),
        (Refused(400), False),
        (Refused(401), False),
        (RateLimitError(), True),
        (Late(), False),
        (ValueError(), False),
        (SetupError("wrong"), False),
        (OSError("disk"), False),
    ],
)
def test_errors_that_pass_are_known_by_status_or_class(error: Exception, again: bool) -> None:
    assert is_transient(error) is again


def test_the_clients_that_are_installed_are_understood() -> None:
    openai = pytest.importorskip("openai")
    name = next((name for name in ("httpx2", "httpx") if find_spec(name)), "httpx")  # what the client is built on
    httpx = pytest.importorskip(name)
    request = httpx.Request("POST", "http://localhost")
    assert is_transient(openai.APIConnectionError(request=request))
    assert is_transient(openai.APITimeoutError(request=request))
    for status, again in ((429, True), (503, True), (400, False)):
        response = httpx.Response(status, request=request, headers={"Retry-After": "3"})
        error = openai.APIStatusError("no", response=response, body=None)
        assert is_transient(error) is again
        assert retry()._wait(error, 1) == 3.0
    assert is_transient(httpx.ConnectError("no"))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "2"}, 2.0),
        ({"Retry_After": "0.5"}, 0.5),
        ({"retry_after_ms": "40", "retry_after": "1"}, 0.04),
        ({"retry_after": "Wed, 21 Oct 2026 07:28:05 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 5.0),
        ({"retry_after": "Wed, 21 Oct 2026 07:28:05 GMT"}, 0.3),
        ({"retry_after": "soon"}, 0.3),
        ({"retry_after": "nan"}, 0.3),
        ({"retry_after": "-4"}, 0.0),
        ({}, 0.3),
    ],
)
def test_the_provider_says_how_long_to_wait(headers: dict[str, str], seconds: float) -> None:
    assert retry(seconds=0.15)._wait(Refused(429, **headers), 2) == pytest.approx(seconds)


def test_where_that_is_too_long_the_error_is_raised(drive: Any) -> None:
    model = ScriptedModel(Refused(429, retry_after="3600"), "Here.")
    with pytest.raises(Refused):
        drive(agent_for(model, retry(longest=1)), "Go")
    assert len(model.requests) == 1


@pytest.mark.parametrize("on", [KeyError, (KeyError, ValueError), lambda error: isinstance(error, KeyError)])
def test_you_may_say_which_errors(drive: Any, on: Any) -> None:
    assert drive(agent_for(ScriptedModel(KeyError("x"), "Here."), retry(seconds=0, on=on)), "Go").text == "Here."
    with pytest.raises(ConnectionError):
        drive(agent_for(ScriptedModel(ConnectionError("x"), "Here."), retry(seconds=0, on=on)), "Go")


# -- tools -------------------------------------------------------------------------------------------------------


def run_tool(drive: Any, flaky: Flaky, layer: Any, **marks: Any) -> tuple[Agent, str]:
    agent = agent_for(ScriptedModel([("fetch", {})], "Done."), layer, tools=[tool(flaky.fetch, **marks)])
    drive(agent, "Go", conversation_id="s")
    return agent, next(m for m in agent.conversation("s").transcript if isinstance(m, Answers)).results[0].status


def test_tools_are_not_tried_again_unless_you_say_so(drive: Any) -> None:
    flaky = Flaky(1)
    assert run_tool(drive, flaky, retry(seconds=0))[1] == "failed"
    assert flaky.ran == 1


@pytest.mark.parametrize("tools", [True, ["fetch"]])
def test_a_tool_that_may_be_repeated_is(drive: Any, tools: Any) -> None:
    """NA-11."""
    flaky = Flaky(1)
    agent, status = run_tool(drive, flaky, retry(seconds=0, tools=tools))
    assert (status, flaky.ran) == ("ok", 2)
    (note,) = [e.note for e in agent.conversation("s").journal if isinstance(e, Noted)]
    assert note == {"call": "c0_0", "attempt": 1, "error": "ConnectionError"}


def test_one_that_may_not_run_twice_never_does(drive: Any) -> None:
    flaky = Flaky(1)
    assert run_tool(drive, flaky, retry(seconds=0, tools=True), repeatable=False)[1] == "failed"
    assert flaky.ran == 1


def test_an_error_of_a_tool_that_stays_is_its_answer(drive: Any) -> None:
    flaky = Flaky(1, KeyError)
    assert run_tool(drive, flaky, retry(seconds=0, tools=True))[1] == "failed"
    assert flaky.ran == 1


def test_after_the_last_attempt_the_failure_is_the_answer(drive: Any) -> None:
    flaky = Flaky(9)
    assert run_tool(drive, flaky, retry(3, seconds=0, tools=True))[1] == "failed"
    assert flaky.ran == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attempts": 0}, "attempts must be"),
        ({"attempts": 1.5}, "attempts must be"),
        ({"seconds": -1}, "seconds must be"),
        ({"longest": float("nan")}, "longest must be"),
        ({"tools": "fetch"}, r"as in \['fetch'\]"),
        ({"on": 429}, "on must be"),
    ],
)
def test_what_cannot_work_is_said_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        retry(**options)
