"""K17: what a server wants back goes back, whole and in pieces; reasoning only where it is asked for."""

import functools
import json
from typing import Any

import openai
import pytest

from tests.wires.conftest import Provider
from toolsearch import Agent, SetupError, ToolSearch
from toolsearch.events.requests import CallModel
from toolsearch.wires import openai_chat as wire
from toolsearch.wires._chat_pieces import ChatPieces

SIGNED = {"google": {"thought_signature": "c2ln"}}
DETAILS = [
    {"type": "reasoning.text", "text": "Let me see.", "signature": "s", "index": 0},
    {"type": "reasoning.encrypted", "data": "AAAA", "index": 1},
]
THINKING = [
    {"type": "thinking", "thinking": "Hm, well.", "signature": "s1"},
    {"type": "redacted_thinking", "data": "BBBB"},
    {"type": "thinking", "thinking": "Ah.", "signature": "s2"},
]


def call(call_id: str = "c1", name: str = "look", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}, **more}


def reply(*calls: Any, **message: Any) -> dict[str, Any]:
    told = {"role": "assistant", "content": None, **message} | ({"tool_calls": list(calls)} if calls else {})
    return {"choices": [{"message": told, "finish_reason": "tool_calls" if calls else "stop"}]}


def test_K17_what_came_with_a_call_or_a_message_goes_back_as_it_came() -> None:
    """K17: and what this wire replaces in a call, it still replaces."""
    held = reply(
        call(extra_content=SIGNED),
        call("", "no such tool!", provider_specific_fields={"thought_signature": "x"}, signature="own"),
        reasoning_details=DETAILS,
        thinking_blocks=THINKING,
        provider_specific_fields={"citations": None, "thinking": "y"},
    )
    message = wire.message_from(held)
    first, second = message["tool_calls"]
    assert first == call(extra_content=SIGNED)
    assert (second["function"]["name"], second["signature"]) == ("no_such_tool_", "own")
    assert second["provider_specific_fields"] == {"thought_signature": "x"}
    assert (message["reasoning_details"], message["thinking_blocks"]) == (DETAILS, THINKING)
    assert message["provider_specific_fields"] == {"citations": None, "thinking": "y"}
    assert wire.reply_from(held).raw == message


@pytest.mark.parametrize(
    "empty",
    [
        {"reasoning_details": []},
        {"thinking_blocks": None},
        {"provider_specific_fields": {"refusal": None}},
        {"extra_content": {}},
        {"annotations": [], "function_call": None, "reasoning_content": "Hm.", "reasoning": "Hm."},
    ],
)
def test_K17_what_says_nothing_and_what_nobody_asked_for_stays_away(empty: Any) -> None:
    assert wire.message_from(reply(call(), **empty)) == {"role": "assistant", "content": None, "tool_calls": [call()]}
    assert wire.message_from(reply(call(index=0, extra_content=None)))["tool_calls"] == [call()]


@pytest.mark.parametrize("keep", ["reasoning_content", ("reasoning_content",), ["reasoning_content", "reasoning"]])
def test_K17_reasoning_goes_back_where_a_program_asks_for_it(keep: Any) -> None:
    held = reply(call(), reasoning_content="Hm.")
    assert wire.message_from(held, keep=keep)["reasoning_content"] == "Hm."
    assert "reasoning_content" not in wire.message_from(held)


@pytest.mark.parametrize("keep", [None, 5, [5], {"a": 1}, ("",)])
def test_a_keep_that_names_nothing_is_refused(keep: Any) -> None:
    with pytest.raises(SetupError, match="keep must be names of a reply's members"):
        wire.message_from(reply(call()), keep=keep)


def put_together(*deltas: Any, keep: Any = ()) -> dict[str, Any]:
    pieces = ChatPieces(keep)
    for delta in deltas:
        pieces.take({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    return wire.message_from(pieces.whole(), keep=keep)


def test_K17_streamed_reasoning_details_grow_by_their_index() -> None:
    """K17: as OpenRouter sends them."""
    message = put_together(
        {"reasoning_details": [{"type": "reasoning.text", "text": "Let me ", "index": 0, "signature": None}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "see.", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "AAAA", "index": 1}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "", "signature": "s", "index": 0}]},
        {"content": "Yes."},
    )
    assert message["reasoning_details"] == DETAILS
    assert message["content"] == "Yes."


def test_K17_streamed_thinking_blocks_end_with_their_signature() -> None:
    """K17: as LiteLLM sends them, in the message and in its own fields."""
    pieces: list[Any] = [
        {"type": "thinking", "thinking": "Hm, ", "signature": ""},
        {"type": "thinking", "thinking": "well.", "signature": None},
        {"type": "thinking", "thinking": "", "signature": "s1"},
        {"type": "redacted_thinking", "data": "BBBB"},
        {"type": "thinking", "thinking": "Ah.", "signature": ""},
        {"type": "thinking", "thinking": "", "signature": "s2"},
    ]
    message = put_together(
        *[{"thinking_blocks": [p], "provider_specific_fields": {"thinking_blocks": [p], "x": None}} for p in pieces]
    )
    assert message["thinking_blocks"] == THINKING
    assert message["provider_specific_fields"]["thinking_blocks"] == THINKING


def test_K17_streamed_calls_keep_what_came_with_any_of_their_pieces() -> None:
    message = put_together(
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "look"}, "extra_content": SIGNED}]},
        {"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "look", "arguments": "{"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}, "extra_content": {"google": {"more": 1}}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "}"}, "extra_content": SIGNED}]},
    )
    assert message["tool_calls"] == [
        call("c1", extra_content={"google": {"thought_signature": "c2ln", "more": 1}}),
        call("c2", extra_content=SIGNED),
    ]


def test_K17_streamed_reasoning_is_kept_under_any_name_that_is_asked_for() -> None:
    deltas = [{"thoughts": "H", "reasoning_content": "A"}, {"thoughts": "m", "reasoning_content": "h"}]
    message = put_together(*deltas, {"tool_calls": [call()]}, keep=("thoughts", "reasoning_content"))
    assert (message["thoughts"], message["reasoning_content"]) == ("Hm", "Ah")


def test_K17_the_work_of_a_stream_grows_with_its_length() -> None:
    """K17: each piece is joined once; a list of many blocks is not gone through for each new one."""
    pieces = ChatPieces()
    for number in range(3_000):
        block = {"type": "reasoning.text", "text": "t", "index": number}
        pieces.take({"choices": [{"delta": {"reasoning_details": [block]}}]})
        pieces.take({"choices": [{"delta": {"reasoning_details": [block]}}]})
    details = pieces.whole()["choices"][0]["message"]["reasoning_details"]
    assert [each["text"] for each in details] == ["tt"] * 3_000


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, well."}], "closed": True}


@pytest.mark.parametrize("before", ["", "First. "])
def test_K17_content_that_is_a_list_is_read_and_goes_back_as_a_list(before: str) -> None:
    """K17: Mistral's models that reason write their thoughts among the parts of the content, whole and in pieces."""
    told: list[Any] = [{"type": "text", "text": before}] if before else []
    parts: list[Any] = [*told, THOUGHT, {"type": "text", "text": "It is a wall."}]
    held = reply(call(), content=parts)
    read = wire.reply_from(held)
    assert (read.text, read.reasoning) == (f"{before}It is a wall.", "Hm, well.")
    assert wire.message_from(held)["content"] == parts
    pieces = ChatPieces()
    deltas: list[Any] = [{"content": before}] if before else []
    deltas += [
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm, "}]}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "well."}], "closed": True}]},
        {"content": [{"type": "text", "text": "It is "}, 5, None]},
        {"content": "a "},
        {"content": "wall."},
        {"content": []},
        {"tool_calls": [call()]},
    ]
    shown = [delta for each in deltas for delta in pieces.take({"choices": [{"delta": each}]})]
    assert "".join(delta.text for delta in shown if delta.kind == "reasoning") == "Hm, well."
    assert "".join(delta.text for delta in shown if delta.kind == "text") == f"{before}It is a wall."
    assert wire.message_from(pieces.whole()) == wire.message_from(held)


def demanding(kind: str) -> Any:
    """What a server refuses that wants its fields back, or that wants none."""

    def problems(body: dict[str, Any]) -> list[str]:
        assistants = [m for m in body["messages"] if m["role"] == "assistant"]
        match kind:
            case "deepseek":
                missing = any(m.get("tool_calls") and not m.get("reasoning_content") for m in assistants)
                return ["`reasoning_content` must be passed back"] if missing else []
            case "gemini 3":
                calls = [c for m in assistants for c in m.get("tool_calls") or []]
                return [] if all("extra_content" in c for c in calls) else ["missing a thought_signature"]
            case _:
                odd = {key for m in assistants for key in m} - {"role", "content", "tool_calls"}
                return [f"property {sorted(odd)} is unsupported"] if odd else []

    return problems


def in_pieces(held: dict[str, Any]) -> list[str]:
    """One chunk for each member of the message, as server-sent events."""
    message = held["choices"][0]["message"]
    deltas: list[dict[str, Any]] = [{key: value} for key, value in message.items() if key != "role"]
    stop = held["choices"][0]["finish_reason"]
    chunks = [{"id": "r", "object": "chat.completion.chunk", "created": 0, "model": "m",
               "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]  # fmt: skip
    for chunk in chunks:
        for place, each in enumerate(chunk["choices"][0]["delta"].get("tool_calls") or []):  # type: ignore[index]
            each["index"] = place
    chunks[-1]["choices"][0]["finish_reason"] = stop  # type: ignore[index]
    return [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]


def look() -> str:
    """Look around."""
    return "a wall"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", ["deepseek", "gemini 3", "groq"])
def test_K17_servers_that_want_their_fields_back_and_servers_that_want_none(kind: str, stream: bool) -> None:
    """K17: an agent on the real SDK makes two calls and ends; each server refuses what the real one refuses."""
    provider = Provider("/v1/chat/completions", demanding(kind), in_pieces)
    extra: dict[str, Any] = {"extra_content": SIGNED} if kind == "gemini 3" else {}
    steps = [reply(call(f"c{n}", **extra), reasoning_content="Let me look.") for n in range(2)]
    provider.replies = [
        {"id": "r", "object": "chat.completion", "created": 0, "model": "m-2026-11", **each}
        for each in [*steps, reply(content="A wall.")]
    ]
    keep = "reasoning_content" if kind == "deepseek" else ()
    try:
        with openai.OpenAI(base_url=f"{provider.url}/v1", api_key="k", max_retries=0) as client:
            model = wire.model(client, "m", stream=stream, keep=keep)
            agent = Agent(model, ToolSearch([look], mode="static"))
            result = agent.run("What is there?")
    finally:
        provider.close()
    assert provider.refused == []
    assert result.text == "A wall."  # type: ignore[union-attr]


def test_K17_kept_reasoning_stays_behind_when_the_model_changes() -> None:
    """K17: the model that wrote it gets it again; another one, of the same wire, does not."""

    class Client:
        def __init__(self, *answers: Any) -> None:
            self.answers = list(answers)
            self.chat = self.completions = self

        def create(self, **_: Any) -> Any:
            return self.answers.pop(0)

    answers = reply(call(), reasoning_content="Hm."), reply(content="A wall.")
    thinker = wire.model(Client(*answers), "thinker", stream=False, keep="reasoning_content")
    agent = Agent(thinker, ToolSearch([look], mode="static"))
    agent.run("What is there?", conversation_id="s")
    transcript = agent.conversation("s").transcript
    same = thinker.request_for(CallModel(transcript))
    moved = wire.model(Client(), "other", keep="reasoning_content").request_for(CallModel(transcript))
    assert ("Hm." in json.dumps(same), "Hm." in json.dumps(moved)) == (True, False)
    assert "kept_for" not in json.dumps([same, moved])
    assert "Hm." in json.dumps(wire.messages_for(transcript)), "with no model named, everything goes back"


@pytest.mark.parametrize("given", ["a function", "a method", "a partial"])
def test_a_function_that_takes_the_arguments_of_a_request_is_a_client_too(given: str) -> None:
    """As `litellm.completion` is; LiteLLM's own client object keeps the arguments of one request for the next."""
    asked: list[Any] = []

    def create(**request: Any) -> Any:
        asked.append(request)
        return reply(content="A wall.")

    class Holder:
        def ask(self, **request: Any) -> Any:
            return create(**request)

    client = {"a function": create, "a method": Holder().ask, "a partial": functools.partial(create, api_key="k")}[
        given
    ]
    agent = Agent(wire.model(client, "m", stream=False), ToolSearch([look], mode="static"))
    assert agent.run("What is there?").text == "A wall."  # type: ignore[union-attr]
    assert asked[0]["model"] == "m"


@pytest.mark.parametrize("client", [None, object(), openai.OpenAI, "gpt"])
def test_what_is_no_client_is_refused(client: Any) -> None:
    with pytest.raises(SetupError, match=r"an OpenAI or AsyncOpenAI client, or a function such as litellm\.completion"):
        wire.model(client, "m")


def test_tools_among_the_options_stand_before_the_sessions_and_a_choice_needs_some() -> None:
    own = {"type": "function", "function": {"name": "own", "parameters": {"type": "object", "properties": {}}}}
    model = wire.model(lambda **_: None, "m", tools=[own], tool_choice="auto", parallel_tool_calls=False)
    shown = tuple(ToolSearch([look], mode="static").session().tools())
    chat = model.request_for(CallModel((), tools=shown))
    assert [each["function"]["name"] for each in chat["tools"]] == ["own", "look"]
    assert (chat["tool_choice"], chat["parallel_tool_calls"]) == ("auto", False)
    helper = model.request_for(CallModel((), purpose="summary"))
    assert helper.keys().isdisjoint({"tools", "tool_choice", "parallel_tool_calls"})
