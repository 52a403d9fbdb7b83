"""Ollama: recorded JSON in both directions, the real client against a strict server, and what replies may hold."""

import asyncio
import json
from typing import Any

import ollama as sdk
import pytest

from toolsearch import Agent, Catalog, ReplyError, SetupError, ToolCall, ToolResult, ToolSearch, tool
from toolsearch.calls import ImagePart, TextPart
from toolsearch.events.facts import Answers, JudgedCall, ModelReplied, Reply, TextDelta, ToolReturned, Usage, UserSaid
from toolsearch.events.requests import CallModel
from toolsearch.layers import is_transient, structured
from toolsearch.testing import ScriptedModel, check_wire
from toolsearch.testing.loopback import Failure, LoopbackProvider
from toolsearch.testing.loopback import ollama as server_rules
from toolsearch.wires import ollama as wire
from toolsearch.wires import openai_chat
from toolsearch.wires._ollama_pieces import OllamaPieces

ways = pytest.mark.parametrize("way", ["whole", "streamed", "whole async", "streamed async"])
PNG = "iVBORw0KGgoAAAAN"


def model_of(provider: LoopbackProvider, way: str = "whole", **options: Any) -> wire.OllamaModel:
    client: Any = (sdk.AsyncClient if way.endswith("async") else sdk.Client)(host=provider.url)
    return wire.model(client, "qwen-test", stream="streamed" in way, **options)


def played(agent: Agent, way: str, said: str = "Go") -> Any:
    if way.endswith("async"):
        return asyncio.run(agent.arun(said, conversation_id="s"))
    return agent.run(said, conversation_id="s")


def reply(content: Any = "", *calls: Any, stop: str | None = "stop", **message: Any) -> dict[str, Any]:
    """A reply in the JSON of the API."""
    told = {"role": "assistant", "content": content, **message} | ({"tool_calls": list(calls)} if calls else {})
    end = {"done": True, "done_reason": stop} if stop else {"done": False}
    return {"model": "qwen-test", "created_at": "2026-12-01T10:00:00Z", "message": told, **end}


def call(name: Any = "look", arguments: Any = None) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments or {}}}


@tool
def look() -> str:
    """Look around."""
    return "a wall"


# -- recorded, both directions -----------------------------------------------------------------------------------------


def test_a_recorded_request_is_made_again(recorded: Any) -> None:
    held = recorded("ollama.json")
    session = ToolSearch(Catalog(held["definitions"])).session()
    session.handle(ToolCall("s", "search_tools", {"queries": ["weather forecast", "list files"]}))
    assert json.dumps(wire.tools_for(session)) == json.dumps(held["request_tools"])
    assert server_rules.refusal({"messages": [], "tools": held["request_tools"]}) == ""


@pytest.mark.parametrize("as_object", [True, False])
def test_a_recorded_reply_is_read_and_answered(recorded: Any, as_object: bool) -> None:
    held = recorded("ollama.json")
    given, last = held["reply"], held["last_reply"]
    if as_object:
        given, last = sdk.ChatResponse.model_validate(given), sdk.ChatResponse.model_validate(last)
    calls = wire.calls_in(given)
    assert [[each.id, each.name, each.arguments] for each in calls] == held["calls"]
    assert wire.message_from(given) == held["message"]
    answers = [
        ToolResult(each.id, each.name, status, text)
        for each, (status, text) in zip(calls, held["answers"], strict=True)
    ]
    assert wire.results_for(zip(calls, answers, strict=True)) == held["results"]
    assert wire.calls_in(last) == []
    assert wire.message_from(last) == held["last_message"]
    for message in (held["message"], *held["results"], held["last_message"]):
        sdk.Message.model_validate(message)
    assert server_rules.refusal({"messages": [held["message"], *held["results"], held["last_message"]]}) == ""


def test_the_fields_of_an_argument_reach_the_server_in_words() -> None:
    """The client drops the schemas inside an argument, and keeps those of the items of a list."""
    person = {
        "type": "object",
        "description": "Who comes.",
        "properties": {
            "name": {"type": "string"},
            "home": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        },
        "required": ["name"],
    }
    schema = {"type": "object", "properties": {"who": person, "day": {"type": "string"}}, "required": ["who"]}
    session = ToolSearch([{"name": "invite", "input_schema": schema}], mode="static").session()
    with LoopbackProvider() as provider:
        sdk.Client(host=provider.url).chat("m", [{"role": "user", "content": "?"}], tools=wire.tools_for(session))
    sent = provider.requests[0]["tools"][0]["function"]["parameters"]["properties"]
    assert sent["who"] == {
        "type": "object",
        "description": 'Who comes. Fields: name: string, home?: {city: string}, tags?: "a"|"b"[]',
    }
    assert sent["day"] == {"type": "string"}
    wide = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(500)}}
    deep: Any = {"type": "string"}
    for _ in range(9):
        deep = {"type": "object", "properties": {"in": deep}}
    big = {"type": "object", "properties": {"wide": wide, "deep": deep}}
    (tool_sent,) = wire.tools_for(ToolSearch([{"name": "big", "input_schema": big}], mode="static").session())
    told = tool_sent["function"]["parameters"]["properties"]
    assert len(told["wide"]["description"]) <= 700
    assert told["deep"]["description"].count("{") <= 4


# -- an agent on the real client ---------------------------------------------------------------------------------------


@ways
def test_an_agent_searches_calls_and_answers(way: str) -> None:
    """Arguments are objects, results carry the name of the tool, and thinking goes back."""
    counts = {"prompt_eval_count": 50, "eval_count": 5}
    steps: list[Any] = [
        [("search_tools", {"queries": ["look around"]})],
        reply("Twice.", call(), call(), thinking="Let me look.") | counts,
        "A wall.",
    ]
    with LoopbackProvider([*steps, "Still a wall."]) as provider:
        agent = Agent(model_of(provider, way), ToolSearch([look]), system="You help.")
        result = played(agent, way)
        assert (result.text, result.reason) == ("A wall.", "answered")
        assert played(agent, way, "And now?").text == "Still a wall."
    assert provider.refusals == []
    replies = [fact for fact in agent.conversation("s").journal if isinstance(fact, ModelReplied)]
    assert (replies[1].text, replies[1].reasoning) == ("Twice.", "Let me look.")
    ids = [each.id for each_reply in replies for each in each_reply.calls]
    assert len({*ids}) == 3
    messages = provider.requests[-1]["messages"]
    assert [m["role"] for m in messages] == [
        "system", "user", "assistant", "tool", "assistant", "tool", "tool", "assistant", "user",
    ]  # fmt: skip
    assert messages[4] == {
        "role": "assistant",
        "content": "Twice.",
        "thinking": "Let me look.",
        "tool_calls": [call(), call()],
    }
    assert messages[5] == messages[6] == {"role": "tool", "tool_name": "look", "content": "a wall"}


@ways
def test_tokens_are_counted(way: str) -> None:
    with LoopbackProvider([reply("Yes.") | {"prompt_eval_count": 50, "eval_count": 5}]) as provider:
        assert played(Agent(model_of(provider, way), ToolSearch([look])), way).usage == Usage(50, 0, 5, 1)


def test_the_wire_and_its_models_keep_the_promises() -> None:
    for way in ("whole", "streamed", "whole async", "streamed async"):
        providers: list[LoopbackProvider] = []

        def model(replies: Any, way: str = way, providers: Any = providers) -> Any:
            providers.append(LoopbackProvider(replies).__enter__())
            return model_of(providers[-1], way)

        try:
            check_wire(
                wire,
                reply_with_calls=lambda calls: reply("", *[call(each.name, each.arguments) for each in calls]),
                reply_with_text=reply,
                model=model,
                requests=lambda providers=providers: [r for p in providers for r in p.requests],  # type: ignore[misc]
            )
            assert [p.refusals for p in providers if p.refusals] == []
        finally:
            for provider in providers:
                provider.__exit__(None, None, None)


@ways
def test_calls_without_ids_are_told_apart_over_a_conversation(way: str) -> None:
    """C16: the same reply twice."""
    with LoopbackProvider([reply("", call()), reply("", call()), "Done."]) as provider:
        agent = Agent(model_of(provider, way), ToolSearch([look], mode="static"))
        assert played(agent, way).text == "Done."
    assert provider.refusals == []
    facts = agent.conversation("s").journal
    ids = [fact.call_id for fact in facts if isinstance(fact, ToolReturned)]
    assert len({*ids}) == 2


def test_ids_are_the_same_for_the_same_reply_and_others_for_another() -> None:
    one, later = reply("", call(), call()), reply("", call(), call()) | {"created_at": "2026-12-01T10:00:01Z"}
    assert [c.id for c in wire.calls_in(one)] == [c.id for c in wire.calls_in(sdk.ChatResponse.model_validate(one))]
    assert len({c.id for each in (one, later) for c in wire.calls_in(each)}) == 4
    given = reply("", {"id": "call_x", **call()})
    assert wire.calls_in(given)[0].id == "call_x", "newer servers give ids"


@ways
def test_a_failure_of_the_server_is_tried_again_by_its_status(way: str) -> None:
    with LoopbackProvider([Failure(503, "the server is busy"), Failure(404, "model not found")]) as provider:
        for wanted in (True, False):
            with pytest.raises(sdk.ResponseError) as caught:
                played(Agent(model_of(provider, way), ToolSearch([look]), defaults=False), way)
            assert is_transient(caught.value) is wanted


def test_options_go_into_the_request_and_none_leaves_one_out() -> None:
    with LoopbackProvider() as provider:
        model = model_of(provider, think=True, keep_alive=None, options={"num_ctx": 32_000})
        answer: Any = model(CallModel((UserSaid("?"),), options={"think": False}))
        list(answer)
    sent = provider.requests[0]
    assert (sent["think"], sent["options"], "keep_alive" in sent) == (False, {"num_ctx": 32_000}, False)


def test_tools_among_the_options_stand_before_the_sessions() -> None:
    with LoopbackProvider() as provider:
        model = model_of(provider, tools=[{"type": "function", "function": {"name": "own"}}])
        shown = tuple(ToolSearch([look], mode="static").session().tools())
        chat = model.request_for(CallModel((), tools=shown))["tools"]
        assert [each["function"]["name"] for each in chat] == ["own", "look"]
        assert "tools" not in model.request_for(CallModel((), purpose="summary"))


def test_a_schema_is_enforced_without_tools_and_asked_for_in_words_with_them() -> None:
    """A `format` beside tools would rule out every call."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    with LoopbackProvider(["One.", '{"n": 1}']) as provider:
        agent = Agent(model_of(provider), ToolSearch([look]), layers=[structured(schema)])
        assert agent.run("How many?").value == {"n": 1}  # type: ignore[union-attr]
    first, second = provider.requests
    assert json.dumps(schema) in first["messages"][0]["content"]
    assert "format" not in first
    assert second["format"] == schema
    assert not second.get("tools")


def test_a_sync_run_with_the_async_client_names_the_way_out() -> None:
    with LoopbackProvider() as provider, pytest.raises(SetupError, match="arun"):
        Agent(model_of(provider, "whole async"), ToolSearch([look])).run("hi")
    assert provider.requests == []


@pytest.mark.parametrize("client", [None, object(), sdk.Client])
def test_what_is_no_client_is_refused(client: Any) -> None:
    with pytest.raises(SetupError, match=r"an ollama\.Client"):
        wire.model(client, "qwen-test")


# -- images ------------------------------------------------------------------------------------------------------------


def test_images_of_results_stand_in_the_message_of_the_result() -> None:
    image = ImagePart(PNG, "image/png")
    ok = ToolResult("a", "draw", "ok", "begins <image> ends", parts=(TextPart("x"), image))
    answered = [(ToolCall("a", "draw"), ok), (ToolCall("b", "draw"), ToolResult("b", "draw", "failed", "no"))]
    first, second = wire.results_for(answered)
    assert first == {"role": "tool", "tool_name": "draw", "content": "begins <image> ends", "images": [PNG]}
    assert second == {"role": "tool", "tool_name": "draw", "content": "no"}
    with LoopbackProvider() as provider:
        sdk.Client(host=provider.url).chat("m", [{"role": "user", "content": "?"}, first])
    assert provider.requests[0]["messages"][1]["images"] == [PNG]


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        ({"images": [PNG]}, {"images": [PNG]}),
        ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}, {"images": [PNG]}),
        ({"type": "image", "source": {"type": "base64", "data": PNG}}, {"images": [PNG]}),
        ({"type": "text", "text": "more"}, {"content": "See?\nmore"}),
        ({"type": "document"}, {"content": "See?\n[document, not shown]"}),
    ],
)
def test_an_image_of_the_user_is_translated_where_a_conversation_comes_from_another_provider(
    part: Any, sent: Any
) -> None:
    (message,) = wire.messages_for([UserSaid("See?", parts=(part,))])
    assert message == {"role": "user", "content": "See?"} | sent


# -- replies of all kinds ----------------------------------------------------------------------------------------------


def ask(answer: Any) -> Reply:
    """What the model function gives for a reply, or for a list of pieces."""

    class Client:
        def chat(self, **_: Any) -> Any:
            return iter(answer) if isinstance(answer, list) else answer

    *_, last = wire.model(Client(), "m", stream=isinstance(answer, list))(CallModel(()))  # type: ignore[misc]
    assert isinstance(last, Reply)
    return last


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (reply("Half", stop="length"), "cut off"),
        (reply(""), "empty"),
        (reply("", thinking="Hm."), "empty"),
        (reply("", stop="load"), "empty"),
        (reply("Whole"), "answered"),
        ({"message": {"content": "Whole"}}, "answered"),
        ([reply("Half", stop=None)], "broken off"),
        ([reply("Wh", stop=None), reply("ole")], "answered"),
        ([reply("Ha", stop=None), reply("lf", stop="length")], "cut off"),
    ],
)
def test_J04_J06_every_reply_that_is_no_answer_has_its_reason(answer: Any, reason: str) -> None:
    result = Agent(ScriptedModel(*[ask(answer)] * 12), ToolSearch([])).run("Go")
    assert getattr(result, "reason", "") == reason


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"error": "model is loading"}, "loading"),
        ([reply("Ha", stop=None), {"error": "out of memory"}], "out of memory"),
        ({}, "no message"),
        ({"message": None}, "no message"),
        ([], "no message"),
        ([{"done": True}], "no message"),
        ([{"candidates": [{}]}, {"choices": []}], "no message"),
    ],
)
def test_J03_a_failure_with_status_200_is_an_error(answer: Any, told: str) -> None:
    with pytest.raises(ReplyError, match=told):
        ask(answer)


def test_J01_a_call_that_a_reply_was_cut_in_does_not_run() -> None:
    (read,) = wire.calls_in(reply("", call(), stop="length"))
    assert read.cut == "cut off"


@pytest.mark.parametrize(("other", "told"), [({"choices": []}, "openai_chat"), ({"candidates": []}, "gemini")])
def test_what_is_no_reply_of_ollama_is_told(other: Any, told: str) -> None:
    with pytest.raises(SetupError, match=told):
        wire.calls_in(other)


@pytest.mark.parametrize("arguments", ['{"a": 1}', "{bad", None, [1], "", {"a": 1}])
def test_arguments_go_back_as_an_object_whatever_came(arguments: Any) -> None:
    kept = wire.message_from(reply("", {"function": {"name": "look", "arguments": arguments}}))
    given = kept["tool_calls"][0]["function"]["arguments"]
    assert given == ({"a": 1} if "1}" in json.dumps(arguments) else given)
    sdk.Message.model_validate(kept)


def test_a_name_a_model_made_up_is_the_same_in_the_call_and_in_its_result() -> None:
    given = reply("", call("functions.no such tool!"))
    (read,) = wire.calls_in(given)
    (result,) = wire.results_for([(read, ToolResult(read.id, read.name, "unknown", "no"))])
    assert result["tool_name"] == wire.message_from(given)["tool_calls"][0]["function"]["name"]


def test_pieces_are_shown_as_they_come_and_put_together() -> None:
    pieces = OllamaPieces()
    chunks = [
        reply("", thinking="H", stop=None),
        reply("", thinking="m", stop=None),
        reply("Ha", stop=None),
        reply("", call("one"), stop=None),
        reply("", call("two"), stop=None),
        reply("lf") | {"eval_count": 4},
    ]
    shown = [delta for chunk in chunks for delta in pieces.take(chunk)]
    assert shown == [TextDelta("H", "reasoning"), TextDelta("m", "reasoning"), TextDelta("Ha"), TextDelta("lf")]
    whole = wire.reply_from(pieces.whole())
    assert (whole.text, whole.reasoning, whole.usage) == ("Half", "Hm", Usage(0, 0, 4))
    assert [c.name for c in whole.calls] == ["one", "two"]


# -- a conversation that comes from elsewhere --------------------------------------------------------------------------


def test_a_reply_of_another_provider_is_translated_and_one_of_ours_for_another() -> None:
    asked = (JudgedCall("x1", "look", '{"a": 1}'), JudgedCall("x2", "look", "{bad"))
    answers = Answers((ToolReturned("x1", "ok", "a wall"), ToolReturned("x2", "invalid_arguments", "no")))
    messages = wire.messages_for(
        [UserSaid(" "), ModelReplied("", asked, wire="gemini"), answers, ModelReplied("")], "S"
    )
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert [c["function"]["arguments"] for c in messages[2]["tool_calls"]] == [{"a": 1}, {"unparsed": "{bad"}]
    assert (messages[1]["content"], messages[-1]["content"]) == ("(nothing)", "(no answer)")
    assert messages[3] == {"role": "tool", "tool_name": "look", "content": "a wall"}
    assert server_rules.refusal({"messages": messages}) == ""
    mine = wire.reply_from(reply("Hm.", call("look", {"a": 1})))
    judged = tuple(JudgedCall(each.id, each.name, each.arguments) for each in mine.calls)
    (other,) = openai_chat.messages_for([ModelReplied(mine.text, judged, raw=mine.raw, wire=mine.wire)])
    assert other["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"a": 1}'}
