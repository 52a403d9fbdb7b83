"""Failures that a reader of the loop found, each as the smallest program that shows it."""

import asyncio
import datetime
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Agent, Answer, Approve, Deny, SetupError, Tool, ToolSearch, tool
from toolsearch.events import ModelReplied, RunEnded, TextDelta, ToolReturned, ToolStarted, UserSaid
from toolsearch.layers import approval, timeout
from toolsearch.middleware import after, before
from toolsearch.stores import MemoryStore, SqliteStore
from toolsearch.testing import ScriptedModel


@tool(kind="action")
def pay(who: str, amount: int) -> str:
    """Pay."""
    return f"{amount} paid to {who}"


PAY = ("c1", "pay", {"who": "x", "amount": 1})


def static(*tools: Any) -> ToolSearch:
    return ToolSearch(list(tools), "keyword", mode="static")


def journal_until(fact: type, search: ToolSearch, call: Any, *, including: bool) -> MemoryStore:
    """A store with the journal of a turn, cut where a process would have been killed."""
    store, cut = MemoryStore(), MemoryStore()
    stream = Agent(ScriptedModel([call]), search, store=store).stream("go", session="s")
    next(event for event in stream if isinstance(event, fact))
    facts = store.load("s")  # before the stream is closed
    cut.append("s", 0, facts if including else facts[:-1])
    return cut


def test_a_call_that_another_process_began_is_never_said_not_to_have_run() -> None:
    model = ScriptedModel("ok")
    agent = Agent(model, static(pay), store=journal_until(ToolReturned, static(pay), PAY, including=False))
    agent.run("What happened?", session="s")
    told = agent.conversation("s").turn.journal
    content = next(fact.content for fact in told if isinstance(fact, ToolReturned))
    assert "it was begun, and what came of it is not known" in content
    assert "did not run" not in content


def wipe(said: str, ran: list[str], kind: Any = "action") -> Tool:
    def run(path: str) -> str:
        ran.append(said)
        return path

    return tool(run, name="wipe", description=said, kind=kind)


def test_an_approval_does_not_hold_for_another_definition_of_the_tool(drive: Any) -> None:
    ran: list[str] = []
    store = MemoryStore()
    first = Agent(
        ScriptedModel([("c1", "wipe", {"path": "/x"})]),
        static(wipe("Wipe a temporary folder.", ran)),
        layers=[approval()],
        store=store,
    )
    drive(first, "go", session="s")
    second = Agent(ScriptedModel("ok"), static(wipe("Wipe a disk.", ran)), layers=[approval()], store=store)
    drive(second, session="s", decisions={"c1": True})
    assert ran == []
    (result,) = second.conversation("s").turn.results.values()
    assert (result.status, "has changed since" in result.content) == ("expired", True)


def test_a_call_made_before_a_restart_does_not_run_if_its_tool_has_changed() -> None:
    ran: list[str] = []
    read = static(wipe("Look.", ran, kind="read"))
    cut = journal_until(ModelReplied, read, ("c1", "wipe", {"path": "/x"}), including=True)
    Agent(ScriptedModel("ok"), static(wipe("Look.", ran)), layers=[approval()], store=cut).run(session="s")
    assert ran == []


class SlowToEnd(MemoryStore):
    in_memory = False

    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        if facts[-1]["fact"] == "RunEnded":
            time.sleep(0.3)
        super().append(conversation_id, position, facts)


def test_a_time_out_while_the_end_is_stored_is_a_time_out() -> None:
    agent = Agent(ScriptedModel(ValueError("no")), static(pay), store=SlowToEnd())
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(agent.arun("x", session="s"), 0.15))
    assert not agent.conversation("s").running


def test_leaving_a_stream_at_its_last_fact_is_silent() -> None:
    stream: Any = Agent(ScriptedModel(ValueError("x")), static(pay)).stream("hi", session="s")
    for event in stream:
        if isinstance(event, RunEnded):
            break
    stream.close()


def test_leaving_a_stream_that_is_being_cancelled_leaves_the_conversation_whole() -> None:
    def slow(a: int) -> str:
        """Slow."""
        time.sleep(0.3)
        return str(a)

    agent = Agent(ScriptedModel([("slow", {"a": 1}), ("slow", {"a": 2})]), static(slow))
    stream: Any = agent.stream("hi", session="s")
    for event in stream:
        if isinstance(event, ToolStarted):
            agent.cancel("s")
        if isinstance(event, ToolReturned):
            break
    stream.close()
    conversation = agent.conversation("s")
    assert (conversation.running, conversation.open) == (False, ())


@pytest.mark.parametrize("make", [MemoryStore, lambda: SqliteStore("e.db")])
@pytest.mark.parametrize("before", [datetime.date(2020, 1, 1), "2020-01-01", None, True, float("nan")])
def test_a_store_expires_by_seconds_only(
    make: Callable[[], Any], before: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = make()
    Agent(ScriptedModel(), static(pay), store=store).run("x", session="a")
    with pytest.raises(SetupError, match="seconds since the epoch"):
        store.expire(before)
    assert list(store.list()) == ["a"]


def test_a_tool_that_returns_a_circle_has_answered(drive: Any) -> None:
    @tool(kind="action")
    def act() -> dict[str, Any]:
        """Act."""
        made: dict[str, Any] = {}
        made["self"] = made
        return made

    agent = Agent(ScriptedModel([("c1", "act", {})]), static(act))
    assert drive(agent, "x", session="s").reason == "answered"
    assert agent.conversation("s").turn.results["c1"].status == "ok"


@pytest.mark.parametrize(
    "make",
    [lambda: Answer({"a": 1}), lambda: Answer("a", said="hello"), lambda: Approve("x"), lambda: Deny(5)],  # type: ignore[arg-type]
)
def test_a_decision_that_holds_nonsense_is_refused_when_it_is_made(make: Callable[[], Any]) -> None:
    with pytest.raises(SetupError, match="not"):
        make()


@pytest.mark.parametrize("decisions", [[], "", [("c1", True)]])
def test_decisions_are_given_by_call_id(decisions: Any) -> None:
    agent = Agent(ScriptedModel([PAY]), static(pay), layers=[approval()])
    agent.run("go", session="s")
    with pytest.raises(SetupError, match="by call id"):
        agent.run(session="s", decisions=decisions)


def test_what_a_layer_may_change_is_not_shown_before() -> None:
    hide = after("model", lambda reply: replace(reply, text=reply.text.replace("secret", "***")))
    agent = Agent(ScriptedModel("the secret is 5", pieces=4), static(pay), layers=[hide])
    assert not [event for event in agent.stream("x") if isinstance(event, TextDelta) and "secr" in event.text]


@pytest.mark.parametrize("seconds", [float("inf"), 1e10])
def test_a_bound_without_end_is_none(drive: Any, seconds: float) -> None:
    agent = Agent(ScriptedModel([PAY]), static(pay), layers=[timeout(tool=seconds)])
    drive(agent, "x", session="s")
    assert agent.conversation("s").turn.results["c1"].content == "1 paid to x"


def test_an_async_layer_around_a_tool_names_arun() -> None:
    async def look(call: Any) -> None:
        del call

    agent = Agent(ScriptedModel([PAY]), static(pay), layers=[before("tool", look)])
    with pytest.raises(SetupError, match="arun"):
        agent.run("x", session="s")
    assert not agent.conversation("s").running


def test_a_session_id_is_cleaned_everywhere_alike() -> None:
    agent = Agent(ScriptedModel(), static(pay))
    agent.run("x", session="a\ud800")
    assert agent.conversation("a\ud800").journal
    assert not agent.cancel("a\ud800")


async def listen(event: Any) -> None:
    del event


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"observe": listen}, "is async"),
        ({"observe": [5]}, "observe must be a function"),
        ({"store": "x.db"}, "store must be a store"),
        ({"system": 5}, "system must be a text"),
        ({"clock": 5}, "clock must be a function"),
    ],
)
def test_what_an_agent_cannot_use_is_refused_when_it_is_made(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SetupError, match=told):
        Agent(ScriptedModel(), static(pay), **options)


def test_what_the_user_said_is_text() -> None:
    with pytest.raises(SetupError, match="must be text"):
        Agent(ScriptedModel(), static(pay)).run(UserSaid(5))  # type: ignore[arg-type]
