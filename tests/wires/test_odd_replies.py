"""Replies as providers and gateways write them on bad days, whole and in pieces, on both wires."""

import asyncio
import json
from typing import Any

import anthropic as anthropic_sdk
import openai
import pytest

from toolsearch import Agent, ReplyError, ToolCall, ToolResult, ToolSearch, tool
from toolsearch.events.facts import Reply, TextDelta, ToolReturned, Usage
from toolsearch.events.requests import CallModel
from toolsearch.layers import is_transient, retry
from toolsearch.schemas import json_values
from toolsearch.testing import ScriptedModel
from toolsearch.wires import _fragments, anthropic, openai_chat
from toolsearch.wires._fragments import Fragments

KIEL = '{"port":"Kiel"}'


class Stream(list[Any]):
    """Pieces, as the SDK of a provider gives them."""

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *error: object) -> None:
        pass


class Client:
    """A client of either provider that answers with what was written down, in turn."""

    def __init__(self, *answers: Any) -> None:
        self.answers = [Stream(each) if isinstance(each, list) else each for each in answers]
        self.requests: list[dict[str, Any]] = []
        self.chat = self.completions = self.messages = self

    def create(self, **request: Any) -> Any:
        self.requests.append(request)
        return self.answers.pop(0)


def ask(wire: Any, answer: Any) -> Reply:
    model = wire.model(Client(answer), "m", stream=isinstance(answer, list))
    *_, last = model(CallModel(()))
    assert isinstance(last, Reply)
    return last


def chat_piece(stop: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}


def call_piece(arguments: Any = None, name: str | None = None, call_id: str | None = None, at: int | None = 0) -> Any:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    told = {key: value for key, value in (("index", at), ("id", call_id)) if value is not None}
    return chat_piece(tool_calls=[{**told, "function": function}])


def chat(stop: str | None = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": stop}]}


def chat_call(arguments: Any, name: str = "get_tide", call_id: str = "a") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def purging(ran: list[Any]) -> ToolSearch:
    @tool(kind="action")
    def purge(folder: str | None = None) -> str:
        """Purge a folder, or all of them."""
        ran.append(folder)
        return "purged"

    @tool(kind="action")
    def write_page(path: str, content: str = "") -> str:
        """Write a page."""
        ran.append(path)
        return "written"

    return ToolSearch([purge, write_page], mode="static")


# -- cut off -----------------------------------------------------------------------------------------------------------

START = {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": {"input_tokens": 1}}}
USE = {"type": "tool_use", "id": "a", "name": "purge", "input": {}}
CUT = {
    "anthropic, streamed": (
        anthropic,
        [
            START,
            {"type": "content_block_start", "index": 0, "content_block": USE},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
        ],
    ),
    "openai_chat, streamed": (openai_chat, [call_piece("", "purge", "a"), chat_piece("length")]),
    "anthropic, whole": (
        anthropic,
        {
            "content": [{"type": "tool_use", "id": "a", "name": "write_page", "input": {"path": "plan.md"}}],
            "stop_reason": "max_tokens",
        },
    ),
    "openai_chat, whole": (openai_chat, chat("length", tool_calls=[chat_call('{"path": "a"}', "write_page")])),
    "openai_chat, not whole": (openai_chat, chat("length", tool_calls=[chat_call('{"path": "a', "write_page")])),
    "openai_chat, broken off": (openai_chat, [call_piece("", "purge", "a")]),
    "anthropic, broken off": (anthropic, [START, {"type": "content_block_start", "index": 0, "content_block": USE}]),
}


@pytest.mark.parametrize("case", CUT)
def test_J01_a_call_that_a_reply_was_cut_in_does_not_run(case: str) -> None:
    """J01: on both wires, with the words of each, in an agent and in a loop of one's own."""
    wire, answer = CUT[case]
    ran: list[Any] = []
    search = purging(ran)
    reply = ask(wire, answer)
    agent = Agent(ScriptedModel(reply, "Sorry."), search)
    agent.run("Purge it", conversation_id="s")
    (told,) = [e for e in agent.conversation("s").journal if isinstance(e, ToolReturned)]
    assert (told.status, "did not run: your reply" in told.content, ran) == ("invalid_arguments", True, [])
    session = search.session()
    session.tools()
    if not isinstance(answer, list):
        (call,) = wire.calls_in(answer)
        assert (call.cut, session.handle(call).content) == ("cut off", told.content)
    assert ran == []


def test_J01_calls_before_the_cut_run() -> None:
    ran: list[Any] = []
    calls = [chat_call('{"folder": "a"}', "purge", "a"), chat_call('{"folder": "b"}', "purge", "b")]
    agent = Agent(ScriptedModel(ask(openai_chat, chat("length", tool_calls=calls)), "Only a."), purging(ran))
    agent.run("Purge both", conversation_id="s")
    assert ran == ["a"]


@pytest.mark.parametrize("stream", [True, False])
def test_J01_with_the_real_clients(openai_server: Any, anthropic_server: Any, stream: bool) -> None:
    ran: list[Any] = []
    openai_server.replies = [
        {
            "id": "r", "object": "chat.completion", "created": 1, "model": "m",
            **chat("length", content=None, tool_calls=[chat_call("", "purge")]),
        },
        {"id": "r", "object": "chat.completion", "created": 1, "model": "m", **chat(content="No.")},
    ]  # fmt: skip
    message = {
        "id": "r",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    anthropic_server.replies = [
        {**message, "content": [USE], "stop_reason": "max_tokens"},
        {**message, "content": [{"type": "text", "text": "No."}], "stop_reason": "end_turn"},
    ]
    for model in (
        openai_chat.model(openai.OpenAI(base_url=f"{openai_server.url}/v1", api_key="k"), "m", stream=stream),
        anthropic.model(anthropic_sdk.Anthropic(base_url=anthropic_server.url, api_key="k"), "m", stream=stream),
    ):
        result = Agent(model, purging(ran)).run("Purge")
        assert (ran, getattr(result, "reason", "")) == ([], "answered")
    assert openai_server.refused == anthropic_server.refused == []


# -- no reply at all ---------------------------------------------------------------------------------------------------

ERROR = {"message": "rate limited", "code": 429}
BROKEN = {"finish_reason": "error", "error": {"code": 502}}
FAILURES: list[tuple[Any, Any, str, int | None]] = [
    (openai_chat, [], "no choices", None),
    (openai_chat, [{"choices": []}], "no choices", None),
    (openai_chat, [{"error": ERROR}], "rate limited", 429),
    (openai_chat, [chat_piece(content="Hal"), {"choices": [BROKEN]}], "an error", 502),
    (openai_chat, {"error": ERROR}, "rate limited", 429),
    (openai_chat, {"error": "rate limited"}, "rate limited", None),
    (openai_chat, {"choices": None}, "no choices", None),
    (openai_chat, {"choices": None, "error": {"type": "server_error"}}, "server_error", 500),
    (openai_chat, {}, "no choices", None),
    (openai_chat, {"choices": [{**BROKEN, "message": {}}]}, "an error", 502),
    (openai_chat, {"choices": [{"finish_reason": "error", "message": {"content": "Hal"}}]}, "error", None),
    (anthropic, [], "no content", None),
    (anthropic, [{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}], "Overloaded", 529),
    (anthropic, {"type": "error", "error": {"type": "invalid_request_error", "message": "No."}}, "No", 400),
    (anthropic, {"content": None}, "no content", None),
    (anthropic, {}, "no content", None),
]  # fmt: skip


@pytest.mark.parametrize(("wire", "answer", "told", "status"), FAILURES)
def test_J03_a_failure_with_status_200_is_an_error(wire: Any, answer: Any, told: str, status: int | None) -> None:
    """J03: it names the server's message, and says whether to try again."""
    with pytest.raises(ReplyError, match=told) as caught:
        ask(wire, answer)
    assert caught.value.status_code == status
    assert is_transient(caught.value) == (status != 400)


def test_J03_retry_asks_again_after_such_a_failure() -> None:
    client = Client({"error": ERROR}, chat(content="Yes."))
    agent = Agent(openai_chat.model(client, "m", stream=False), ToolSearch([]), layers=[retry(seconds=0)])
    assert agent.run("Go").text == "Yes."  # type: ignore[union-attr]


def test_J03_money_that_is_used_up_is_not_asked_for_again() -> None:
    with pytest.raises(ReplyError) as caught:
        ask(openai_chat, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
    assert not is_transient(caught.value)


# -- no answer ---------------------------------------------------------------------------------------------------------


def text_block(text: str, stop: str | None) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}] if text else [], "stop_reason": stop}


@pytest.mark.parametrize(
    ("wire", "answer", "reason"),
    [
        (openai_chat, chat("length", content="Half"), "cut off"),
        (openai_chat, chat("content_filter", content="Half"), "filtered"),
        (openai_chat, chat("stop", content=None, refusal="I cannot."), "refused"),
        (openai_chat, [chat_piece(refusal="I cannot."), chat_piece("stop")], "refused"),
        (openai_chat, chat("stop", content=None), "empty"),
        (openai_chat, chat("stop", content=[{"type": "text", "text": " "}]), "empty"),
        (openai_chat, {"choices": [{"message": None, "finish_reason": "stop"}]}, "empty"),
        (openai_chat, [chat_piece(content="Half")], "broken off"),
        (openai_chat, [chat_piece(content="Half"), chat_piece("length")], "cut off"),
        (openai_chat, [chat_piece(reasoning_content="Hm."), chat_piece("stop")], "empty"),
        (openai_chat, chat("TOKEN_LIMIT", content="Half"), "cut off"),
        (openai_chat, chat("Max Tokens", content="Half"), "cut off"),
        (openai_chat, chat("content-filter", content="Half"), "filtered"),
        (openai_chat, chat("IMAGE_SAFETY", content=None), "filtered"),
        (openai_chat, chat("network_error", content="Half"), "broken off"),
        (openai_chat, chat("USER_CANCEL", content="Half"), "broken off"),
        (openai_chat, chat("stop", content="Whole"), "answered"),
        (openai_chat, chat(None, content="Whole"), "answered"),
        (openai_chat, chat("stop", content=None, audio={"id": "x", "transcript": "Spoken"}), "answered"),
        (anthropic, text_block("Half", "max_tokens"), "cut off"),
        (anthropic, text_block("Half", "model_context_window_exceeded"), "context overflow"),
        (anthropic, text_block("", "refusal"), "refused"),
        (anthropic, text_block("Half", "pause_turn"), "paused"),
        (anthropic, text_block("", "end_turn"), "empty"),
        (anthropic, [START], "broken off"),
        (anthropic, text_block("Whole", "end_turn"), "answered"),
    ],
)
def test_J04_J06_every_reply_that_is_no_answer_has_its_reason(wire: Any, answer: Any, reason: str) -> None:
    """J04, J06: what is no answer never counts as one."""
    reply = ask(wire, answer)
    result = Agent(ScriptedModel(*[reply] * 12), ToolSearch([])).run("Go")
    assert getattr(result, "reason", "") == reason


def test_a_paused_message_is_sent_back_as_it_came_and_goes_on() -> None:
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "weather"}}
    first = {"content": [{"type": "text", "text": "I look. "}, block], "stop_reason": "pause_turn"}
    client = Client(first, text_block("It rains.", "end_turn"))
    result = Agent(anthropic.model(client, "m", stream=False), ToolSearch([])).run("Weather?")
    assert (result.text, result.reason) == ("I look. It rains.", "answered")  # type: ignore[union-attr]
    assert client.requests[1]["messages"][-1] == {"role": "assistant", "content": first["content"]}


# -- arguments that come twice -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces",
    [
        [call_piece("", "get_tide", "a"), call_piece(KIEL), call_piece(KIEL)],
        [call_piece('{"po'), call_piece('rt":"Kiel"}'), call_piece(KIEL, "get_tide", "a")],
        [call_piece("", "get_tide", "a"), call_piece('{"po'), call_piece('rt":"Kiel"}'), call_piece(KIEL)],
        [call_piece("", "get_tide", "a"), call_piece(KIEL), call_piece(KIEL, "get_tide", "a")],
        [call_piece("", "get_tide"), call_piece('{"po'), call_piece('rt":"Kiel"}'), call_piece(KIEL, "get_tide")],
        [call_piece("", "get_tide", "a"), *map(call_piece, ['{"po', '{"port":"K', KIEL])],
        [call_piece(text, "get_tide", "a") for text in ('{"po', '{"port":"K', KIEL)],
        [call_piece("", "get_tide", "a"), *map(call_piece, ["{}", '{"po', 'rt":"Kiel"}'])],
        [call_piece("{}", "get_tide", "a"), call_piece(KIEL)],
        [call_piece("null", "get_tide", "a"), call_piece(KIEL)],
        [call_piece({}, "get_tide", "a"), call_piece({"port": ""}), call_piece({"port": "Ki"}), call_piece(KIEL)],
        [call_piece({"port": "Kiel"}, "get_tide", "a"), call_piece(KIEL)],
        [call_piece("", "get_", "a"), call_piece("", "get_tide"), call_piece(KIEL)],
        [call_piece(KIEL, "get_tide", "a"), call_piece(None, "get_tide", "a"), call_piece("", None, "a")],
    ],
)  # fmt: skip
def test_J07_arguments_that_come_again_are_one_set_of_arguments(pieces: list[Any]) -> None:
    """J07: whole at the end, growing, or after an empty object that stands for them."""
    (call,) = ask(openai_chat, [*pieces, chat_piece("tool_calls")]).calls
    assert (call.name, json.loads(str(call.arguments))) == ("get_tide", {"port": "Kiel"})


@pytest.mark.parametrize("text", [KIEL * 2, f"{KIEL}\n{KIEL}", "{}" + KIEL, "null" + KIEL, KIEL * 3])
def test_J07_arguments_that_a_whole_reply_has_twice_count_once(text: str) -> None:
    ran: list[Any] = []
    tide = {"name": "get_tide", "run": lambda port: ran.append(port)}  # noqa: PLW0108 - the argument has a name
    reply = ask(openai_chat, chat("tool_calls", tool_calls=[chat_call(text)]))
    Agent(ScriptedModel(reply), ToolSearch([tide], mode="static")).run("Go")
    assert ran == ["Kiel"]
    assert json.loads(reply.raw["tool_calls"][0]["function"]["arguments"]) == {"port": "Kiel"}  # type: ignore[index]


@pytest.mark.parametrize(
    "text", ['{"n":1}{"n":2}', '{"n":1}{"n":true}', "{}{}x", '{"n":1},{"n":1}', '{"n":"1"}{"n":"10"}']
)
def test_J07_arguments_that_contradict_each_other_are_refused(text: str) -> None:
    ran: list[Any] = []
    count = {"name": "count", "run": lambda n: ran.append(n)}  # noqa: PLW0108 - the argument has a name
    reply = ask(openai_chat, chat("tool_calls", tool_calls=[chat_call(text, "count")]))
    agent = Agent(ScriptedModel(reply), ToolSearch([count], mode="static"))
    agent.run("Go", conversation_id="s")
    assert ran == []
    assert [r.status for r in agent.conversation("s").turn.results.values()] == ["invalid_arguments"]


def input_pieces(start: Any, *pieces: Any) -> list[Any]:
    block = {"type": "tool_use", "id": "a", "name": "get_tide", "input": start}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return [
        START,
        {"type": "content_block_start", "index": 0, "content_block": block},
        *[{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas],
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]


@pytest.mark.parametrize(
    "answer",
    [
        input_pieces({}, '{"po', 'rt":"Kiel"}'),
        input_pieces({}, '{"po', 'rt":"Kiel"}', KIEL),
        input_pieces({}, '{"po', '{"port":"K', KIEL),
        input_pieces({}, "{}", KIEL),
        input_pieces({"port": "Kiel"}),
        input_pieces({"port": "Kiel"}, ""),
        input_pieces({"port": "Kiel"}, KIEL),
        input_pieces(None, KIEL, None),
    ],
)
def test_J07_input_that_comes_again_is_one_input(answer: list[Any]) -> None:
    (call,) = ask(anthropic, answer).calls
    assert (call.name, call.arguments) == ("get_tide", {"port": "Kiel"})


class Counting:
    """Counts the characters that pass through a function which reads JSON."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.characters = 0
        real = json.loads

        def counted(text: str, **options: Any) -> Any:
            self.characters += len(text)
            return real(text, **options)

        for module in (_fragments, json_values):
            monkeypatch.setattr(module.json, "loads", counted)


@pytest.mark.parametrize("name", ["get_tide", None])
@pytest.mark.parametrize("call_id", ["a", None])
def test_K27_the_work_grows_with_the_length_of_the_arguments(
    monkeypatch: pytest.MonkeyPatch, name: str | None, call_id: str | None
) -> None:
    """K27: 16,000 pieces of one argument, the name in each, no id: characters that are read, not seconds."""
    counting = Counting(monkeypatch)
    work = []
    for count in (1_000, 2_000, 4_000):
        counting.characters = 0
        texts = ['{"x":"', *[f"{n:022}" for n in range(count)], '"}']
        pieces = [call_piece("", "get_tide", call_id), *[call_piece(text, name, call_id) for text in texts]]
        (call,) = ask(openai_chat, [*pieces, chat_piece("tool_calls")]).calls
        assert call.arguments == "".join(texts)
        work.append(counting.characters / len(str(call.arguments)))
    assert max(work) <= 8
    assert work[2] <= work[0] + 1  # times that the text is read, whatever its length


def test_K27_every_piece_is_scanned_once() -> None:
    """The scan for the end of an object looks at each mark once, however often it is asked."""
    parts, closed = Fragments(), []
    for text in ['{"a', "\\", '"', '}":"\\\\', '"', ',"b":[', "{", "}", "]", "}"]:
        parts.add(text)
        closed.append(parts.is_closed())
    assert closed == [False] * 9 + [True]
    assert json.loads(parts.text()) == {'a"}': "\\", "b": [{}]}
    assert parts._scanned == 10


# -- calls inside a call -----------------------------------------------------------------------------------------------

USES = [
    {"recipient_name": "functions.purge", "parameters": {"folder": "a"}},
    {"recipient_name": "purge", "parameters": {"folder": "b"}},
]


@pytest.mark.parametrize(
    "name", ["multi_tool_use.parallel", "multi_tool_use_parallel", "functions.multi_tool_use.parallel"]
)
@pytest.mark.parametrize("kind", ["openai_chat", "streamed", "anthropic", "own"])
def test_J28_the_calls_inside_a_parallel_call_are_made(name: str, kind: str) -> None:
    """J28: GPT models call a wrapper that does not exist; each call inside gets a result of its own."""
    ran: list[Any] = []
    given = {"tool_uses": USES}
    before, after = chat_call('{"folder": "x"}', "purge", "id_x"), chat_call('{"folder": "y"}', "purge", "id_y")
    wrapped = chat_call(json.dumps(given), name, "id_a")
    if kind == "openai_chat":
        reply = ask(openai_chat, chat("tool_calls", tool_calls=[before, wrapped, after]))
    elif kind == "streamed":
        pieces = [chat_piece(tool_calls=[{"index": n, **call}]) for n, call in enumerate([before, wrapped, after])]
        reply = ask(openai_chat, [*pieces, chat_piece("tool_calls")])
    elif kind == "anthropic":
        uses = [("id_x", "purge", {"folder": "x"}), ("id_a", name, given), ("id_y", "purge", {"folder": "y"})]
        blocks = [{"type": "tool_use", "id": i, "name": n, "input": g} for i, n, g in uses]
        reply = ask(anthropic, {"content": blocks, "stop_reason": "tool_use"})
    else:
        calls = [
            ToolCall("id_x", "purge", {"folder": "x"}),
            ToolCall("id_a", name, given),
            ToolCall("id_y", "purge", {"folder": "y"}),
        ]
        reply = Reply("", tuple(calls), raw={"role": "assistant"}, wire="openai_chat")
    agent = Agent(ScriptedModel(reply), purging(ran))
    agent.run("Purge", conversation_id="s")
    assert ran == ["x", "a", "b", "y"]
    results = agent.conversation("s").turn.results
    assert [result.content for result in results.values()] == ["purged"] * 4
    for wire in (openai_chat, anthropic):  # the history is whole: each call with its result
        text = json.dumps(wire.messages_for(agent.conversation("s").transcript))
        assert "multi_tool_use" not in text
        assert all(text.count(f'"{call_id}"') == 2 for call_id in results)


@pytest.mark.parametrize(
    "given",
    [
        {"tool_uses": []},
        {"tool_uses": [{"recipient_name": "purge", "parameters": 5}]},
        {"tool_uses": [*USES, {"parameters": {}}]},
        {"tool_uses": USES, "more": 1},
        {"tool_uses": "x"},
        {},
        '{"tool_uses": [',
        None,
    ],
)
def test_J28_a_parallel_call_that_cannot_be_read_is_told_what_to_do(given: Any) -> None:
    ran: list[Any] = []
    arguments = given if given is None or isinstance(given, str) else json.dumps(given)
    reply = ask(openai_chat, chat("tool_calls", tool_calls=[chat_call(arguments, "multi_tool_use.parallel")]))
    agent = Agent(ScriptedModel(reply), purging(ran))
    agent.run("Purge", conversation_id="s")
    (answer,) = agent.conversation("s").turn.results.values()
    assert (answer.status, ran) == ("unknown", [])
    assert "call the tools directly, several in one reply" in answer.content


# -- counters, options, depth ------------------------------------------------------------------------------------------

ODD: list[Any] = [None, 5, "x", [], [1], True, {"prompt_tokens": "x"}, {"prompt_tokens": float("inf")}]
ODD += [
    {"prompt_tokens": 10**400, "input_tokens": 10**400},
    {"input_tokens": [1]},
    {"prompt_tokens": -3},
    {"prompt_tokens_details": 5},
    {"output_tokens": float("nan")},
]


@pytest.mark.parametrize("usage", ODD)
def test_D16_a_malformed_bill_does_not_fail_the_turn(usage: Any) -> None:
    """D16: counters are read where they make sense, and are 0 elsewhere."""
    for wire, answer in (
        (openai_chat, {**chat(content="Yes."), "usage": usage}),
        (openai_chat, [chat_piece("stop", content="Yes."), {"choices": [], "usage": usage}]),
        (anthropic, {**text_block("Yes.", "end_turn"), "usage": usage}),
        (
            anthropic,
            [
                {"type": "message_start", "message": {**text_block("", None), "usage": usage}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Yes."}},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
            ],
        ),
    ):
        reply = ask(wire, answer)
        assert (reply.text, reply.usage) == ("Yes.", Usage())


def test_D16_counters_that_are_text_or_fractions_are_counted() -> None:
    usage = {"prompt_tokens": "12", "completion_tokens": 3.0, "prompt_tokens_details": {"cached_tokens": None}}
    assert ask(openai_chat, {**chat(content="Yes."), "usage": usage}).usage == Usage(12, 0, 3)


@pytest.mark.parametrize("wire", [openai_chat, anthropic])
def test_J36_an_option_that_is_none_is_left_out(wire: Any) -> None:
    """J36: some servers refuse `stream_options` and others."""
    client = Client([chat_piece("stop", content="Yes.")] if wire is openai_chat else input_pieces({}))
    model = wire.model(client, "m", stream_options=None, temperature=None, top_p=0.5)
    list(model(CallModel((), options={"seed": None})))
    assert client.requests[0].keys().isdisjoint({"stream_options", "temperature", "seed"})
    assert client.requests[0]["top_p"] == 0.5
    assert client.requests[0]["stream"] is True


@pytest.mark.parametrize("wire", [openai_chat, anthropic])
@pytest.mark.parametrize("content", ["", " \n"])
def test_J25_a_blank_result_of_a_loop_of_ones_own_is_told_like_none(wire: Any, content: str) -> None:
    messages = wire.results_for([(ToolCall("a", "look"), ToolResult("a", "look", "ok", content))])
    assert "Done; the tool returned nothing." in json.dumps(messages)


def nested(levels: int, kind: type = list) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if kind is list else {"a": value}
    return value


@pytest.mark.parametrize("levels", [65, 600, 10_000])
@pytest.mark.parametrize("kind", [list, dict])
def test_D14_arguments_that_are_nested_too_deeply_fail_their_call_and_nothing_else(levels: int, kind: type) -> None:
    """D14: in both wires, whole and in pieces, and in a model of one's own."""
    text = "[" * levels + "]" * levels if kind is list else '{"a":' * levels + "1" + "}" * levels
    text = '{"x":' + text + "}"
    deep = {"x": nested(levels, kind)}
    use = {"type": "tool_use", "id": "a", "name": "echo", "input": deep}
    for reply in (
        Reply("", (ToolCall("a", "echo", deep),), raw={"content": [use]}, wire="anthropic"),
        ask(anthropic, {"content": [use], "stop_reason": "tool_use"}),
        ask(anthropic, input_pieces({}, text)),
        ask(openai_chat, chat("tool_calls", tool_calls=[chat_call(deep, "echo")])),
        ask(openai_chat, chat("tool_calls", tool_calls=[chat_call(text, "echo")])),
        ask(openai_chat, [call_piece(text, "echo", "a"), chat_piece("tool_calls")]),
    ):
        ran: list[Any] = []
        tools = [{"name": name, "run": lambda ran=ran, **given: ran.append(given)} for name in ("echo", "get_tide")]
        agent = Agent(ScriptedModel(reply, "Sorry."), ToolSearch(tools, mode="static"))
        result = agent.run("Go", conversation_id="s")
        assert (getattr(result, "reason", ""), ran) == ("answered", [])
        (answer,) = agent.conversation("s").turn.results.values()
        assert answer.status == "invalid_arguments"
        assert "nested too deeply" in answer.content
        for wire in (openai_chat, anthropic):
            json.dumps(wire.messages_for(agent.conversation("s").transcript))
        json.dumps(agent.conversation("s").export())


def test_pieces_are_shown_as_they_come() -> None:
    model = openai_chat.model(Client([chat_piece(content="Ha"), chat_piece("stop", content="lf")]), "m")
    shown: Any = model(CallModel(()))
    assert [piece for piece in shown if isinstance(piece, TextDelta)] == [TextDelta("Ha"), TextDelta("lf")]


def test_a_gateway_that_sends_a_whole_reply_as_one_chunk_is_read() -> None:
    reply = ask(openai_chat, [chat("tool_calls", tool_calls=[chat_call(KIEL)])])
    assert [(call.name, call.arguments) for call in reply.calls] == [("get_tide", KIEL)]


class AsyncClient(Client):
    """A client whose answers are awaited, and whose streams are plain async generators."""

    def create(self, **request: Any) -> Any:
        async def answer() -> Any:
            received = super(AsyncClient, self).create(**request)
            return pieces(received) if isinstance(received, list) else received

        async def pieces(received: Any) -> Any:
            for piece in received:
                yield piece

        return answer()


NO_PIECES = [None, "[DONE]", "", b"", 0, True, [], [None]]


@pytest.mark.parametrize(
    ("wire", "answer"),
    [
        (openai_chat, [chat_piece(content="Fi"), chat_piece("stop", content="ne")]),
        (
            anthropic,
            [START, {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Fine"}}],
        ),
    ],
)
def test_J07_what_is_no_object_among_the_pieces_of_a_stream_says_nothing(wire: Any, answer: list[Any]) -> None:
    """J07: a sign of life, or the word for the end, that an SDK did not leave out does not fail the turn."""
    noisy = [piece for each in answer for piece in (*NO_PIECES, each)] + NO_PIECES
    assert ask(wire, noisy).text == "Fine"


@pytest.mark.parametrize("drive", ["run", "arun"])
def test_J07_a_stream_may_be_a_plain_generator_or_come_as_one_reply(drive: str) -> None:
    """J07: a client that was wrapped gives what it has, and not every server knows `stream`."""
    for answer in ([chat_piece("stop", content="Fine")], chat("stop", content="Fine")):
        client = AsyncClient(answer) if drive == "arun" else Client(answer)
        client.answers = [iter(each) if isinstance(each, list) and drive == "run" else each for each in client.answers]
        agent = Agent(openai_chat.model(client, "m"), ToolSearch([]))
        result = asyncio.run(agent.arun("Go")) if drive == "arun" else agent.run("Go")
        assert getattr(result, "text", "") == "Fine"
