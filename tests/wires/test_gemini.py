"""Gemini: recorded JSON in both directions, the real SDK against a strict provider, and what replies may hold."""

import asyncio
import base64
import json
from typing import Any

import pytest
from google import genai
from google.genai import types

from toolsearch import Agent, Catalog, ReplyError, SetupError, ToolCall, ToolResult, ToolSearch, tool
from toolsearch.calls import ImagePart, TextPart
from toolsearch.events.facts import (
    Answers,
    JudgedCall,
    ModelReplied,
    Note,
    Reply,
    TextDelta,
    ToolReturned,
    Usage,
    UserSaid,
)
from toolsearch.events.requests import CallModel
from toolsearch.layers import is_transient, structured
from toolsearch.testing import ScriptedModel, check_wire
from toolsearch.testing.loopback import Failure, LoopbackProvider
from toolsearch.testing.loopback import gemini as provider_rules
from toolsearch.wires import gemini as wire
from toolsearch.wires import openai_chat
from toolsearch.wires._gemini_pieces import GeminiPieces

ways = pytest.mark.parametrize("way", ["whole", "streamed", "whole async", "streamed async"])
PNG = "iVBORw0KGgoAAAAN"
SEEN = {"inline_data": {"mime_type": "image/png", "data": PNG}}


def client_of(provider: LoopbackProvider) -> Any:
    return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=provider.url))


def model_of(provider: LoopbackProvider, way: str = "whole", **options: Any) -> wire.GeminiModel:
    client = client_of(provider)
    return wire.model(
        client.aio if way.endswith("async") else client, "gemini-test", stream="streamed" in way, **options
    )


def played(agent: Agent, way: str, said: str = "Go") -> Any:
    if way.endswith("async"):
        return asyncio.run(agent.arun(said, conversation_id="s"))
    return agent.run(said, conversation_id="s")


def candidate(*parts: Any, stop: str | None = "STOP", **more: Any) -> dict[str, Any]:
    """A reply in the JSON of the API."""
    told = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {"candidates": [told | ({"finishReason": stop} if stop else {})], "responseId": "r1", **more}


def call(name: Any = "look", args: Any = None, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args or {}, **more}}


def written(calls: Any) -> dict[str, Any]:
    parts = [call(each.name, each.arguments, **({"id": each.id} if each.id else {})) for each in calls]
    if parts:
        parts[0]["thoughtSignature"] = "c2lnbmF0dXJl"
    return candidate(*parts)


@tool
def look() -> str:
    """Look around."""
    return "a wall"


# -- recorded, both directions -----------------------------------------------------------------------------------------


def test_a_recorded_request_is_made_again(recorded: Any) -> None:
    held = recorded("gemini.json")
    session = ToolSearch(Catalog(held["definitions"])).session()
    session.handle(ToolCall("s", "search_tools", {"queries": ["weather forecast", "list files", "3d print"]}))
    assert json.dumps(wire.tools_for(session)) == json.dumps(held["function_declarations"])
    assert provider_rules.refusal({"contents": [], "tools": [{"functionDeclarations": held["sent"]}]}) == ""
    sent = types.Tool(function_declarations=wire.tools_for(session))  # type: ignore[arg-type]
    assert sent.model_dump(by_alias=True, exclude_none=True)["functionDeclarations"] == held["sent"]


@pytest.mark.parametrize("form", ["the JSON of the API", "the SDK's object", "its dict", "its JSON"])
def test_a_recorded_reply_is_read_and_answered(recorded: Any, form: str) -> None:
    """The dict of the SDK's object holds bytes."""
    held = recorded("gemini.json")
    reply, last = held["reply"], held["last_reply"]
    if form != "the JSON of the API":
        reply, last = (types.GenerateContentResponse.model_validate(each) for each in (reply, last))
    if form.startswith("its"):
        mode = "json" if "JSON" in form else "python"
        reply, last = (each.model_dump(mode=mode, exclude_none=True) for each in (reply, last))
    calls = wire.calls_in(reply)
    assert [[call.id, call.name, call.arguments] for call in calls] == held["calls"]
    assert wire.message_from(reply) == held["message"]
    answers = [
        ToolResult(call.id, call.name, status, text)
        for call, (status, text) in zip(calls, held["answers"], strict=True)
    ]
    assert wire.results_for(zip(calls, answers, strict=True)) == held["results"]
    assert wire.calls_in(last) == []
    assert wire.message_from(last) == held["last_message"]
    asked = {"role": "user", "parts": [{"text": "?"}]}
    sent = [types.Content.model_validate(c) for c in (asked, held["message"], *held["results"], held["last_message"])]
    body = {"contents": [json.loads(c.model_dump_json(by_alias=True, exclude_none=True)) for c in sent]}
    assert provider_rules.refusal(body) == ""
    signed = [part.get("thoughtSignature") for part in body["contents"][1]["parts"]]
    assert signed == [part.get("thoughtSignature") for part in held["reply"]["candidates"][0]["content"]["parts"]]


# -- names -------------------------------------------------------------------------------------------------------------

NAMES = ["3d_print", "__start", "files.read", "_3d_print", "__3d_print", "-x", "_-x", "_", "9" * 64, "_9", "a3", "__a"]


def test_J48_every_name_is_one_that_the_provider_takes_and_means_its_own_tool() -> None:
    """J48: and no two names become one."""
    ran: list[str] = []
    tools = [{"name": name, "run": lambda name=name: ran.append(name)} for name in NAMES]
    session = ToolSearch(tools, mode="static").session()
    declared = wire.tools_for(session)
    assert provider_rules.refusal({"contents": [], "tools": [{"functionDeclarations": sent_form(declared)}]}) == ""
    assert len({each["name"] for each in declared}) == len(NAMES)
    reply = candidate(*[call(each["name"]) for each in declared])
    answered = [(each, session.handle(each)) for each in wire.calls_in(reply)]
    assert sorted(ran) == sorted(NAMES)
    assert ran == [shown.tool.name for shown in session.tools()]
    message, results = wire.message_from(reply), wire.results_for(answered)
    names = [part["function_call"]["name"] for part in message["parts"]]
    assert names == [each["name"] for each in declared]
    assert names == [part["function_response"]["name"] for part in results[0]["parts"]]


def sent_form(declared: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [types.FunctionDeclaration(**each).model_dump(by_alias=True, exclude_none=True) for each in declared]


@pytest.mark.parametrize("name", ["3d_print", "_3d_print", "default_api.3d_print", "default_api._3d_print"])
def test_J48_a_model_that_leaves_the_underscore_out_is_understood(name: str) -> None:
    session = ToolSearch([{"name": "3d_print", "run": lambda: "printed"}], mode="static").session()
    session.tools()
    (read,) = wire.calls_in(candidate(call(name)))
    assert session.handle(read).content == "printed"


@pytest.mark.parametrize("name", [".3d", "no such tool!", "", None, "functions.get weather", "_9", "n" * 99, "-"])
def test_a_name_a_model_made_up_is_the_same_in_the_call_and_in_its_result(name: Any) -> None:
    reply = candidate(call(name))
    (read,) = wire.calls_in(reply)
    results = wire.results_for([(read, ToolResult(read.id, read.name, "unknown", "no"))])
    (sent,) = (part["function_call"] for part in wire.message_from(reply)["parts"])
    assert sent["name"] == results[0]["parts"][0]["function_response"]["name"]
    assert results[0]["parts"][0]["function_response"]["response"] == {"error": "no"}


def test_a_tool_that_the_provider_refuses_is_set_aside_also_under_the_name_that_was_sent() -> None:
    refused = Failure(400, "* GenerateContentRequest.tools[0].function_declarations[0].name: [FIELD_INVALID] no")
    tools = [{"name": "3d_print", "run": lambda: "printed"}, look]
    with LoopbackProvider([refused, "Done."]) as provider:
        agent = Agent(model_of(provider), ToolSearch(tools, mode="static"))
        assert agent.run("Print it.", conversation_id="s").text == "Done."  # type: ignore[union-attr]
    assert provider.tool_names() == [["_3d_print", "look"], ["look"]]
    assert agent.conversation("s").session.refused.keys() == {"3d_print"}


# -- an agent on the real SDK ------------------------------------------------------------------------------------------


@ways
def test_an_agent_searches_calls_and_answers(way: str) -> None:
    """Thoughts are reasoning, signatures go back, and ids are made up where there are none."""
    thought = {"text": "Let me look.", "thought": True}
    signed = base64.urlsafe_b64encode(bytes(range(200, 256))).decode()
    counts = {"promptTokenCount": 50, "cachedContentTokenCount": 30, "candidatesTokenCount": 5, "thoughtsTokenCount": 2}
    steps: list[Any] = [
        [("c1", "search_tools", {"queries": ["look around"]})],
        candidate(
            thought,
            {"text": "Both at once."},
            {**call(), "thoughtSignature": signed},
            call("3d_print", {"what": "cup"}),
            usageMetadata=counts,
        ),
        candidate({"text": "A wall."}, {"text": "", "thoughtSignature": signed}),
    ]
    printer = {"name": "3d_print", "description": "Look at a print.", "run": lambda what: f"printed {what}"}
    with LoopbackProvider([*steps, "Still a wall."]) as provider:
        agent = Agent(model_of(provider, way), ToolSearch([look, printer]), system="You help.")
        result = played(agent, way)
        assert (result.text, result.reason) == ("A wall.", "answered")
        assert played(agent, way, "And now?").text == "Still a wall."
    assert provider.refusals == []
    replies = [fact for fact in agent.conversation("s").journal if isinstance(fact, ModelReplied)]
    assert [reply.reasoning for reply in replies] == ["", "Let me look.", "", ""]
    assert replies[1].text == "Both at once."
    ids = [each.id for reply in replies for each in reply.calls]
    assert (ids[0], len({*ids})) == ("c1", 3)
    last = provider.requests[-1]
    assert last["systemInstruction"]["parts"][0]["text"].startswith("You help.")
    parts = [part for content in last["contents"] for part in content["parts"]]
    assert [part["thoughtSignature"] for part in parts if "thoughtSignature" in part][1:] == [signed, signed]
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    assert [each["response"]["output"] for each in results][1:] == ["a wall", "printed cup"]
    assert [each["id"] for each in results] == ids
    assert provider.tool_names()[-1] == ["search_tools", "look", "_3d_print"]


@ways
def test_usage_counts_what_was_cached_and_what_was_thought(way: str) -> None:
    counts = {"promptTokenCount": 50, "cachedContentTokenCount": 30, "candidatesTokenCount": 5, "thoughtsTokenCount": 2,
              "toolUsePromptTokenCount": 4}  # fmt: skip
    with LoopbackProvider([candidate({"text": "Yes."}, usageMetadata=counts)]) as provider:
        result = played(Agent(model_of(provider, way), ToolSearch([look])), way)
    assert result.usage == Usage(54, 30, 7, 1)


def test_the_wire_and_its_models_keep_the_promises() -> None:
    for way in ("whole", "streamed", "whole async", "streamed async"):
        providers: list[LoopbackProvider] = []

        def model(replies: Any, way: str = way, providers: Any = providers) -> Any:
            providers.append(LoopbackProvider(replies).__enter__())
            return model_of(providers[-1], way)

        try:
            check_wire(
                wire,
                reply_with_calls=written,
                reply_with_text=lambda text: candidate({"text": text}),
                model=model,
                requests=lambda providers=providers: [r for p in providers for r in p.requests],  # type: ignore[misc]
            )
            assert [p.refusals for p in providers if p.refusals] == []
        finally:
            for provider in providers:
                provider.__exit__(None, None, None)


@ways
def test_C16_ids_that_come_again_are_told_apart_in_the_history(way: str) -> None:
    same = candidate({**call("look", id="c"), "thoughtSignature": "c2ln"})
    with LoopbackProvider([same, same, "Done."]) as provider:
        agent = Agent(model_of(provider, way), ToolSearch([look], mode="static"))
        assert played(agent, way).text == "Done."
    assert provider.refusals == []
    parts = [part for content in provider.requests[-1]["contents"] for part in content["parts"]]
    called = [part["functionCall"]["id"] for part in parts if "functionCall" in part]
    assert called == [part["functionResponse"]["id"] for part in parts if "functionResponse" in part]
    assert (called[0], len({*called})) == ("c", 2)


@ways
def test_a_failure_of_the_provider_is_tried_again_by_its_status(way: str) -> None:
    with LoopbackProvider([Failure(503, "The model is overloaded."), Failure(400, "No.")]) as provider:
        for wanted in (True, False):
            with pytest.raises(Exception, match=r"overloaded|No") as caught:
                played(Agent(model_of(provider, way), ToolSearch([look]), defaults=False), way)
            assert is_transient(caught.value) is wanted


def test_options_go_into_the_config_and_none_leaves_one_out() -> None:
    with LoopbackProvider(["Yes.", '{"n": 1}']) as provider:
        model = model_of(provider, temperature=0.5, top_p=None, automatic_function_calling=None)
        assert "automatic_function_calling" not in model.request_for(CallModel(()))["config"]
        answer: Any = model(CallModel((UserSaid("?"),), options={"temperature": 0.1, "seed": 5}))
        list(answer)
    assert provider.requests[0]["generationConfig"] == {"temperature": 0.1, "seed": 5}


def test_the_providers_own_tools_stand_before_the_sessions_and_not_in_a_helpers_request() -> None:
    """And a setting for functions is left out where there are none."""
    with LoopbackProvider() as provider:
        options: dict[str, Any] = {"tools": [{"google_search": {}}], "tool_config": {"function_calling_config": {}}}
        model = model_of(provider, **options)
        shown = tuple(ToolSearch([look], mode="static").session().tools())
        chat = model.request_for(CallModel((), tools=shown))["config"]
        helper = model.request_for(CallModel((), purpose="summary"))["config"]
    assert [next(iter(each)) for each in chat["tools"]] == ["google_search", "function_declarations"]
    assert ("tool_config" in chat, helper.keys()) == (True, {"automatic_function_calling"})


def test_a_schema_is_enforced_without_tools_and_asked_for_in_words_with_them() -> None:
    """Not every model takes a schema beside tools."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    with LoopbackProvider(["One.", '{"n": 1}']) as provider:
        agent = Agent(model_of(provider), ToolSearch([look]), layers=[structured(schema)])
        assert agent.run("How many?").value == {"n": 1}  # type: ignore[union-attr]
    first, second = provider.requests
    assert json.dumps(schema) in first["systemInstruction"]["parts"][-1]["text"]
    assert not first.get("generationConfig")
    assert second["generationConfig"]["responseJsonSchema"] == schema
    assert "tools" not in second


def test_a_sync_run_with_the_async_client_names_the_way_out() -> None:
    with LoopbackProvider() as provider, pytest.raises(SetupError, match="arun"):
        Agent(model_of(provider, "whole async"), ToolSearch([look])).run("hi")
    assert provider.requests == []


@pytest.mark.parametrize("client", [None, object(), genai.Client])
def test_what_is_no_client_is_refused(client: Any) -> None:
    with pytest.raises(SetupError, match=r"a genai\.Client"):
        wire.model(client, "gemini-test")


# -- images ------------------------------------------------------------------------------------------------------------


def test_images_of_results_follow_the_results_in_a_content_of_their_own() -> None:
    """A content with responses holds nothing else, and their number stays that of the calls."""
    image, gif = ImagePart(PNG, "image/png"), ImagePart(base64.b64encode(b"GIF89a-").decode(), "image/gif")
    answered = [
        (ToolCall("a", "draw"), ToolResult("a", "draw", "ok", "begins <image> ends", parts=(TextPart("x"), image))),
        (ToolCall("b", "draw"), ToolResult("b", "draw", "failed", "no", parts=(image,))),
        (ToolCall("c", "draw"), ToolResult("c", "draw", "ok", "moving", parts=(gif,))),
    ]
    results, images = wire.results_for(answered)
    assert [part["function_response"]["response"] for part in results["parts"]] == [
        {"output": "begins <image> ends"},
        {"error": "no"},
        {"output": "moving"},
    ]
    assert images == {
        "role": "user",
        "parts": [
            {"text": "An image in the result of draw:"},
            {"inline_data": {"mime_type": "image/png", "data": PNG}},
        ],
    }
    sent = types.Content.model_validate(images)
    assert sent.parts is not None
    assert sent.parts[1].inline_data is not None
    assert sent.parts[1].inline_data.data == base64.b64decode(PNG)


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (SEEN, SEEN),
        ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}, SEEN),
        ({"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}, SEEN),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}, SEEN),
        ({"type": "text", "text": "more"}, {"text": "more"}),
        ({"type": "document", "source": {}}, {"text": "[document, not shown]"}),
        ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, {"text": "[image_url, not shown]"}),
    ],
)  # fmt: skip
def test_an_image_of_the_user_is_translated_where_a_conversation_comes_from_another_provider(
    part: Any, sent: Any
) -> None:
    (content,) = wire.messages_for([UserSaid("See?", parts=(part,))])
    assert content == {"role": "user", "parts": [{"text": "See?"}, sent]}
    types.Content.model_validate(content)


# -- replies of all kinds ----------------------------------------------------------------------------------------------


def ask(answer: Any) -> Reply:
    """What the model function gives for a reply, or for a list of pieces."""

    class Client:
        models: Any

        def generate_content(self, **_: Any) -> Any:
            return answer

        def generate_content_stream(self, **_: Any) -> Any:
            return iter(answer)

    client = Client()
    client.models = client
    *_, last = wire.model(client, "m", stream=isinstance(answer, list))(CallModel(()))  # type: ignore[misc]
    assert isinstance(last, Reply)
    return last


BLOCKED: dict[str, Any] = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (candidate({"text": "Half"}, stop="MAX_TOKENS"), "cut off"),
        (candidate({"text": "Half"}, stop="SAFETY"), "filtered"),
        (candidate({"text": "Half"}, stop="RECITATION"), "filtered"),
        (candidate({"text": "Half"}, stop="MODEL_ARMOR"), "filtered"),
        (candidate(stop="MALFORMED_FUNCTION_CALL"), "broken off"),
        (candidate(stop="UNEXPECTED_TOOL_CALL"), "broken off"),
        ({"candidates": [{"finishReason": "IMAGE_SAFETY", "index": 0}]}, "filtered"),
        ({"candidates": [{"content": {}, "finishReason": "MAX_TOKENS"}]}, "cut off"),
        (BLOCKED, "filtered"),
        ({"promptFeedback": {"blockReason": "OTHER"}, "candidates": []}, "filtered"),
        ({"promptFeedback": {"blockReason": "JAILBREAK"}}, "filtered"),
        ([BLOCKED], "filtered"),
        (candidate(stop="STOP"), "empty"),
        (candidate({"text": "Hm.", "thought": True}), "empty"),
        (candidate({"text": "Whole"}, stop=None), "answered"),
        (candidate({"text": "Whole"}, stop="OTHER"), "answered"),
        ([candidate({"text": "Half"}, stop=None)], "broken off"),
        ([candidate({"text": "Wh"}, stop=None), candidate({"text": "ole"})], "answered"),
        ([candidate({"text": "Ha"}, stop=None), candidate({"text": "lf"}, stop="MAX_TOKENS")], "cut off"),
    ],
)
def test_J04_J06_every_reply_that_is_no_answer_has_its_reason(answer: Any, reason: str) -> None:
    """J04, J06: the words of Gemini, whole and in pieces."""
    result = Agent(ScriptedModel(*[ask(answer)] * 12), ToolSearch([])).run("Go")
    assert getattr(result, "reason", "") == reason


@pytest.mark.parametrize(
    ("answer", "told", "status"),
    [
        ({"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}}, "Quota", 429),
        ([{"error": {"code": 503, "message": "Busy", "status": "UNAVAILABLE"}}], "Busy", 503),
        ({}, "no candidates", None),
        ({"candidates": []}, "no candidates", None),
        ({"candidates": None}, "no candidates", None),
        ([], "no candidates", None),
        ([{"usageMetadata": {}}], "no candidates", None),
    ],
)
def test_J03_a_failure_with_status_200_is_an_error(answer: Any, told: str, status: int | None) -> None:
    with pytest.raises(ReplyError, match=told) as caught:
        ask(answer)
    assert caught.value.status_code == status


def test_J01_a_call_that_a_reply_was_cut_in_does_not_run() -> None:
    (read,) = wire.calls_in(candidate(call("look"), stop="MAX_TOKENS"))
    assert read.cut == "cut off"
    assert ask([candidate(call("look"), stop=None)]).calls[0].cut == "broken off"


def test_what_is_no_reply_of_gemini_is_told() -> None:
    with pytest.raises(SetupError, match="use openai_chat"):
        wire.calls_in({"choices": []})
    with pytest.raises(SetupError, match="a reply must be what the provider's SDK gave"):
        wire.message_from("It rains.")


@pytest.mark.parametrize(
    "parts",
    [
        [{"thoughtSignature": "c2ln"}],
        [{"text": ""}],
        [{}],
        [None, 5],
        [{"thought": True}],
        [{"text": "", "thought": True}],
    ],
)
def test_parts_that_say_nothing_are_not_sent_back(parts: Any) -> None:
    """The provider refuses empty parts, and a signature that stands alone."""
    assert wire.message_from(candidate(*parts))["parts"] == [{"text": "(no answer)"}]
    assert wire.message_from(candidate(*parts, {"text": "Yes."}))["parts"] == [{"text": "Yes."}]


def test_every_other_part_goes_back_whole() -> None:
    parts = [
        {"text": "Hm.", "thought": True},
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"text": "", "thoughtSignature": "c2ln"},
        {"inlineData": {"mimeType": "image/png", "data": PNG}},
    ]
    kept = wire.message_from(candidate(*parts))
    sent = json.loads(types.Content.model_validate(kept).model_dump_json(by_alias=True, exclude_none=True))
    assert sent["parts"] == parts


def test_J28_the_calls_inside_a_parallel_call_are_made_and_the_first_keeps_the_signature() -> None:
    inner = [{"recipient_name": "functions.look", "parameters": {"n": n}} for n in (1, 2)]
    part = {**call("multi_tool_use.parallel", {"tool_uses": inner}), "thoughtSignature": "c2ln"}
    reply = candidate(part)
    assert [(c.name, c.arguments) for c in wire.calls_in(reply)] == [
        ("functions.look", {"n": 1}),
        ("functions.look", {"n": 2}),
    ]
    first, second = wire.message_from(reply)["parts"]
    assert (first["thought_signature"], "thought_signature" in second) == ("c2ln", False)
    assert [c.id for c in wire.calls_in(reply)] == [p["function_call"]["id"] for p in (first, second)]


# -- pieces ------------------------------------------------------------------------------------------------------------


def put_together(*chunks: Any) -> dict[str, Any]:
    pieces = GeminiPieces()
    for chunk in chunks:
        pieces.take(chunk)
    return pieces.whole()


def test_texts_in_pieces_are_joined_and_parts_with_a_signature_are_not() -> None:
    """The provider wants a signature back in the very part that it came with."""
    parts = put_together(
        candidate({"text": "Let ", "thought": True}, stop=None),
        candidate({"text": "me see.", "thought": True}, stop=None),
        candidate({"text": "It "}, {"text": "rains"}, stop=None),
        candidate({"text": "."}, {"text": "", "thoughtSignature": "c2ln"}, {"text": "Yes."}),
    )["candidates"][0]["content"]["parts"]
    assert parts == [
        {"text": "Let me see.", "thought": True},
        {"text": "It rains."},
        {"text": "", "thought_signature": "c2ln"},
        {"text": "Yes."},
    ]


def test_pieces_are_shown_as_they_come_and_another_candidate_is_not() -> None:
    other = {"candidates": [{"index": 1, "content": {"parts": [{"text": "No"}]}}]}
    pieces = GeminiPieces()
    chunks = [candidate({"text": "Hm", "thought": True}), other, candidate({"text": "Ha"}), candidate({"text": ""})]
    shown = [delta for chunk in chunks for delta in pieces.take(chunk)]
    assert shown == [TextDelta("Hm", "reasoning"), TextDelta("Ha")]
    assert ask([candidate({"text": "Ha"}), other]).text == "Ha"


def test_arguments_that_come_in_pieces_are_put_together() -> None:
    """With `stream_function_call_arguments`: each piece names the path of what it holds."""

    def piece(*told: tuple[str, Any, bool], more: bool = True) -> Any:
        kinds = {str: "stringValue", bool: "boolValue", int: "numberValue", type(None): "nullValue"}
        partial = [{"jsonPath": path, kinds[type(value)]: value, "willContinue": on} for path, value, on in told]
        return candidate({"functionCall": {"partialArgs": partial, "willContinue": more}}, stop=None)

    reply = ask(
        [
            candidate({"functionCall": {"name": "plan", "id": "c", "willContinue": True}, "thoughtSignature": "c2ln"}),
            piece(("$.city", "Os", True)),
            piece(("$.city", "lo", True)),
            piece(("$.city", "", False), ("$.days", 2, False), ("$.warm", False, False)),
            piece(("$.people[0].name", "Ana", False), ("$.people[1]['full name']", "Bo", False)),
            piece(("$.note", None, False)),
            piece(("$.city.deeper", 1, False), ("$.people[7]", 1, False), ("$", 1, False)),
            candidate({"functionCall": {}}, stop=None),
            candidate(call("look", {"at": "wall"})),
        ]
    )  # fmt: skip
    people = [{"name": "Ana"}, {"full name": "Bo"}]
    wanted = {"city": "Oslo", "days": 2, "warm": False, "people": people, "note": None}
    assert [(c.name, c.arguments) for c in reply.calls] == [("plan", wanted), ("look", {"at": "wall"})]
    assert reply.calls[0].id == "c"
    assert reply.raw["parts"][0]["thought_signature"] == "c2ln"  # type: ignore[index]


def test_K27_the_work_of_a_stream_grows_with_its_length() -> None:
    pieces = GeminiPieces()
    for _ in range(5_000):
        pieces.take(candidate({"text": "x" * 10}, stop=None))
    assert len(pieces.whole()["candidates"][0]["content"]["parts"]) == 1


# -- a conversation that comes from elsewhere --------------------------------------------------------------------------


def test_a_reply_of_another_provider_is_translated_and_its_first_call_is_signed() -> None:
    """A model that signs refuses a first call without a signature; the provider documents one for this."""
    asked = (JudgedCall("x1", "look", "{}", given={}), JudgedCall("x2", "3d_print", '{"a": ', given=None))
    contents = wire.messages_for(
        [
            ModelReplied("Before.", wire="anthropic"),
            ModelReplied("Hm.", asked, raw={"content": []}, wire="anthropic"),
            Answers((ToolReturned("x1", "ok", "a wall"), ToolReturned("x2", "invalid_arguments", "no"))),
            Note("Tools have changed"),
            UserSaid(" "),
            ModelReplied("", wire="openai_chat"),
        ]
    )
    assert [content["role"] for content in contents] == ["user", "model", "user", "user", "user", "model"]
    first, second = contents[1]["parts"][2:]
    assert base64.b64decode(first["thought_signature"]) == b"skip_thought_signature_validator"
    assert "thought_signature" not in second
    assert second["function_call"] == {"id": "x2", "name": "_3d_print", "args": {"unparsed": '{"a": '}}
    responses = [part["function_response"] for part in contents[2]["parts"]]
    assert [(each["id"], each["name"]) for each in responses] == [("x1", "look"), ("x2", "_3d_print")]
    sent = [types.Content.model_validate(each).model_dump(by_alias=True, exclude_none=True) for each in contents]
    assert provider_rules.refusal({"contents": sent}) == ""


def test_a_call_of_a_model_that_does_not_sign_is_signed_for_one_that_does() -> None:
    """The conversation may move to a newer model of Gemini."""
    older, newer = (wire.reply_from(candidate({"text": "Hm."}, {**call(), **more}, call("b"))) for more in (
        {}, {"thoughtSignature": "c2ln"}))  # fmt: skip
    for reply, wanted in ((older, b"skip_thought_signature_validator"), (newer, b"sig")):
        judged = tuple(JudgedCall(each.id, each.name, each.arguments) for each in reply.calls)
        contents = wire.messages_for([UserSaid("?"), ModelReplied("Hm.", judged, raw=reply.raw, wire=reply.wire)])
        _, first, second = contents[1]["parts"]
        assert (base64.b64decode(first["thought_signature"]), "thought_signature" in second) == (wanted, False)


def test_a_reply_of_gemini_is_translated_to_another_provider() -> None:
    reply = wire.reply_from(candidate({"text": "Hm."}, {**call("_3d_print", {"a": 1}), "thoughtSignature": "c2ln"}))
    judged = tuple(JudgedCall(each.id, each.name, each.arguments) for each in reply.calls)
    (message,) = openai_chat.messages_for([ModelReplied(reply.text, judged, raw=reply.raw, wire=reply.wire)])
    assert message["tool_calls"][0]["function"] == {"name": "3d_print", "arguments": '{"a": 1}'}


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK warns where two of its variables are set."""
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
