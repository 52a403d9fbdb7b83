"""OpenAI Chat Completions: recorded JSON in both directions, and what the provider would refuse."""

import json
import logging
from typing import Any

import pytest
from openai.types.chat import ChatCompletion

from toolsearch import CallModel, Catalog, ReplyError, SetupError, ToolCall, ToolResult, ToolSearch
from toolsearch.events.facts import Answers, JudgedCall, ModelReplied, ToolReturned, UserSaid
from toolsearch.testing.loopback import openai_chat as openai_chat_rules
from toolsearch.testing.loopback import schema_rules
from toolsearch.tokens import counter
from toolsearch.wires import anthropic as other_wire
from toolsearch.wires import openai_chat as wire
from toolsearch.wires._chat_pieces import ChatPieces

EVERY_MODE = pytest.mark.parametrize("mode", ["append", "bridge", "static"])


def everything(*definitions: Any, **options: Any) -> list[dict[str, Any]]:
    """The tools of a request that shows all of these."""
    return wire.tools_for(ToolSearch(Catalog(definitions), mode="static", **options).session())


def reply_with(*calls: Any, **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": list(calls), **message}}]}


def function_call(call_id: Any, name: Any = "tick", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_recorded_request_is_made_again(recorded: Any) -> None:
    held = recorded("openai_chat.json")
    session = ToolSearch(Catalog(held["definitions"])).session()
    session.handle(ToolCall("s", "search_tools", {"queries": ["weather forecast", "list files", "post a note"]}))
    assert json.dumps(wire.tools_for(session)) == json.dumps(held["request_tools"])


@pytest.mark.parametrize("as_object", [True, False])
def test_a_recorded_reply_is_read_and_answered(recorded: Any, as_object: bool) -> None:
    held = recorded("openai_chat.json")
    reply, last = held["reply"], held["last_reply"]
    if as_object:
        reply, last = ChatCompletion.model_validate(reply), ChatCompletion.model_validate(last)
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


def test_B02_a_tool_without_parameters_gets_properties() -> None:
    (tool,) = everything({"name": "tick", "description": "Tick", "input_schema": {"type": "object"}})
    assert tool["function"]["parameters"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    "schema", [None, {}, True, {"properties": None, "type": "object"}, {"type": ["object", "null"]}]
)
def test_B02_siblings_every_way_to_say_nothing_gets_properties(schema: Any, openai_refuses: Any) -> None:
    """B02: no schema, an empty one, `true`, null properties, an object that may be null."""
    tools = everything({"name": "tick", "description": "Tick", "input_schema": schema})
    assert openai_refuses({"tools": tools, "messages": []}) == []
    assert tools[0]["function"]["parameters"] == {"type": "object", "properties": {}}


def test_B22_an_empty_description_is_made_from_the_name() -> None:
    """B22: and the tool is still found by the words of its name."""
    definition = {"name": "get_workspace_members", "description": ""}
    assert everything(definition)[0]["function"]["description"] == "Get workspace members."
    (hit,) = ToolSearch(Catalog([definition])).find("workspace members")
    assert hit.tool.name == "get_workspace_members"


@pytest.mark.parametrize(
    ("definition", "description"),
    [
        ({"name": "getHTTPStatus", "description": None}, "Get httpstatus."),
        ({"name": "files.read-all", "description": "  \n "}, "Read all."),
        ({"name": "x", "description": "\u200b<!-- nothing to see -->"}, "X."),
    ],
)
def test_B22_siblings_no_description_is_ever_empty(definition: Any, description: str, openai_refuses: Any) -> None:
    """B22: none at all, blank, or nothing a person could see."""
    tools = everything(definition)
    assert tools[0]["function"]["description"] == description
    assert openai_refuses({"tools": tools, "messages": []}) == []


@EVERY_MODE
def test_B24_the_meta_tools_have_name_title_description_and_a_valid_schema(mode: str, openai_refuses: Any) -> None:
    """B24: in every format and mode."""
    session = ToolSearch(Catalog([{"name": "tick"}]), mode=mode).session()
    built_in = [shown for shown in session.tools() if shown.name in ("search_tools", "call_tool")]
    assert len(built_in) == {"append": 1, "bridge": 2, "static": 0}[mode]
    assert all(shown.tool.title and shown.tool.description for shown in built_in)
    assert openai_refuses({"tools": wire.tools_for(session), "messages": []}) == []


def test_B24_siblings_the_meta_tool_stays_valid_whatever_lies_behind_it(openai_refuses: Any) -> None:
    """B24: hundreds of servers, very long server names, categories with odd characters, another name."""
    many = [{"name": "t", "server": f"{'s' * 200}{n}", "category": f"c {n}/ü"} for n in range(200)]
    tools = wire.tools_for(ToolSearch(Catalog(many), search_tool="find-more").session())
    assert openai_refuses({"tools": tools, "messages": []}) == []
    assert tools[0]["function"]["name"] == "find-more"
    assert "more." in tools[0]["function"]["description"]


LONG = "Functions: " + "fnA(x); " * 170 + "fnZ(y)"


def test_A25_a_shortened_description_says_so_and_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """A25: the limit is a setting, and the full text stays searchable."""
    # A server of its own: the warning is given once a tool and process, and other tests shorten an exec_code too.
    search = ToolSearch(Catalog([{"name": "exec_code", "description": LONG}], server="a25"), mode="static")
    with caplog.at_level(logging.WARNING, "toolsearch"):
        cut = wire.tools_for(search.session())[0]["function"]["description"]
        assert wire.tools_for(search.session())[0]["function"]["description"] == cut
    assert len(cut) <= 1_024
    assert cut.endswith(f"[shortened: 1,024 of {len(LONG):,} characters]")
    assert [r.levelname for r in caplog.records if "exec_code" in r.getMessage()] == ["WARNING"]
    longer = wire.tools_for(search.session(), description_characters=5_000)
    assert longer[0]["function"]["description"] == LONG
    assert other_wire.tools_for(search.session())[0]["description"] == LONG, "Anthropic sets no such limit"
    assert [hit.tool.name for hit in search.find("fnZ")] == ["exec_code"]


@pytest.mark.parametrize("text", ["x" * 3_000, "é" * 1_025, "Sum. " * 250, "日本語" * 500])
def test_A25_siblings_any_long_text_is_cut_within_the_limit(text: str) -> None:
    """A25: text without spaces, of other scripts, one character too long."""
    cut = everything({"name": "long", "description": text})[0]["function"]["description"]
    assert len(cut) <= 1_024
    assert "shortened: 1,024 of" in cut


def test_A25_siblings_a_note_on_a_folded_schema_is_cut_with_the_text_too() -> None:
    """A25: what the wire adds to a description counts."""
    schema = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}}
    made = everything({"name": "either", "description": "d" * 1_020, "input_schema": schema})
    assert len(made[0]["function"]["description"]) <= 1_024


@pytest.mark.parametrize("arguments", ["", "  ", None, "null", "{}", {}])
def test_C11_no_arguments_are_replayed_as_an_empty_object(arguments: Any) -> None:
    """C11: on receipt the tool runs with {}, and the history holds "{}"."""
    reply = reply_with(function_call("c", "tick", arguments))
    definition = {"name": "tick", "input_schema": {"type": "object"}, "run": lambda **given: f"ran with {given}"}
    session = ToolSearch(Catalog([definition]), mode="static").session()
    session.tools()
    (call,) = wire.calls_in(reply)
    assert session.handle(call).content == "ran with {}"
    assert wire.message_from(reply)["tool_calls"][0]["function"]["arguments"].strip() == "{}"


@pytest.mark.parametrize("arguments", ['{"path": "/data/a", "mode": ', "[1]", '"x"', "nul", '{"a": Infinity}', 7])
def test_C12_malformed_arguments_stay_paired_and_become_valid_json_in_the_history(
    arguments: Any, openai_refuses: Any
) -> None:
    """C12: what the model wrote is kept, inside an object."""
    reply = reply_with(function_call("c", "tick", arguments))
    message = wire.message_from(reply)
    (call,) = wire.calls_in(reply)
    results = wire.results_for([(call, ToolResult("c", "tick", "invalid_arguments", "no"))])
    assert openai_refuses({"messages": [message, *results]}) == []
    kept = json.loads(message["tool_calls"][0]["function"]["arguments"])
    assert kept == ({"unparsed": arguments} if isinstance(arguments, str) else {})


@pytest.mark.parametrize(
    "ids",
    [["", None], ["call_0", "call_0"], ["a", "a_2", "a"], ["tick", "tick", "", ""], ["\ud800", "\ud800"], [3, "3"]],
)
def test_missing_and_repeated_ids_become_distinct_the_same_way_in_every_reading(ids: Any, openai_refuses: Any) -> None:
    """C16's kind: an id that is fine stays."""
    reply = reply_with(*map(function_call, ids)) | {"id": "chatcmpl-1"}
    calls = wire.calls_in(reply)
    message = wire.message_from(reply)
    assert [call["id"] for call in message["tool_calls"]] == [call.id for call in calls]
    answered = [(call, ToolResult(call.id, call.name, "ok", "x")) for call in calls]
    assert openai_refuses({"messages": [message, *wire.results_for(answered)]}) == []
    assert calls[0].id == (str(ids[0]) if ids[0] and ids[0] != "\ud800" else calls[0].id)


def test_ids_made_up_for_one_reply_are_not_made_up_for_the_next() -> None:
    one, other = (reply_with(function_call("", arguments=given)) for given in ("{}", '{"again": true}'))
    assert wire.calls_in(one)[0].id != wire.calls_in(other)[0].id
    assert wire.calls_in(one)[0].id == wire.calls_in(one)[0].id


def test_a_name_a_model_made_up_is_kept_for_the_answer_and_made_legal_in_the_history() -> None:
    reply = reply_with(
        function_call("a", "functions.get weather"), function_call("b", ""), function_call("c", "n" * 99)
    )
    assert [call.name for call in wire.calls_in(reply)] == ["functions.get weather", "", "n" * 99]
    names = [call["function"]["name"] for call in wire.message_from(reply)["tool_calls"]]
    assert names == ["functions_get_weather", "unnamed", "n" * 64]


def test_what_a_reply_holds_always_encodes_as_utf_8() -> None:
    """C42's kind: a lone surrogate in a text, a name, an argument or a result."""
    reply = reply_with(function_call("a", "\udc00", '{"a": "\ud800"}'), content="\ud83d hello")
    results = wire.results_for([(wire.calls_in(reply)[0], ToolResult("a", "x", "ok", "\ud800"))])
    json.dumps([wire.message_from(reply), *results], ensure_ascii=False).encode("utf-8")


def test_a_message_is_never_empty_and_keeps_a_refusal_and_the_id_of_audio() -> None:
    assert wire.message_from(reply_with()) == {"role": "assistant", "content": ""}
    refused = wire.message_from(reply_with(refusal="No."))
    assert refused == {"role": "assistant", "content": None, "refusal": "No."}
    spoken = wire.message_from(reply_with(audio={"id": "audio_1", "data": "…", "expires_at": 1, "transcript": "Hi"}))
    assert spoken["audio"] == {"id": "audio_1"}


@pytest.mark.parametrize(
    "reply", [{}, {"choices": []}, {"message": None}, {"tool_calls": [None, "x"]}, {"choices": None}]
)
def test_a_reply_without_a_message_calls_nothing(reply: Any) -> None:
    assert wire.calls_in(reply) == []
    assert wire.message_from(reply)["role"] == "assistant"


def test_servers_that_leave_the_envelope_out_are_read_too() -> None:
    """Ollama and others send the message itself, with arguments as an object and no ids."""
    message = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "tick", "arguments": {"n": 1}}}],
    }
    for reply in (message, {"message": message}):
        (call,) = wire.calls_in(reply)
        assert (call.name, call.arguments) == ("tick", {"n": 1})
        assert wire.message_from(reply)["tool_calls"][0]["function"]["arguments"] == '{"n": 1}'


@pytest.mark.parametrize("choices", [5, [5], None, []])
def test_J03_a_reply_without_choices_calls_nothing_and_is_an_error_for_an_agent(choices: Any) -> None:
    reply = {"choices": choices}
    assert wire.calls_in(reply) == []
    with pytest.raises(ReplyError, match="there are no choices"):
        wire.reply_from(reply)


def test_E04_counting_works_on_the_exact_payload_of_either_form() -> None:
    """E04: both forms of one tool differ by their wrapper alone, and a system text counts as text or as blocks."""
    forty = [{"name": f"tool_{n}", "description": f"Does thing number {n}, well."} for n in range(40)]
    session = ToolSearch(Catalog(forty), mode="static").session()
    count = counter().of
    chat, flat = wire.tools_for(session), other_wire.tools_for(session)
    wrapper = count([{"type": "function", "function": {}}]) * 40
    assert 0 < count(chat) - count(flat) <= wrapper
    system, messages = "s" * 400, [{"role": "user", "content": "hi"}]
    whole = count({"system": system, "tools": flat, "messages": messages})
    blocks = count({"system": [{"type": "text", "text": system}], "tools": flat, "messages": messages})
    assert whole > count(flat) + count(system)
    assert whole < blocks < whole + 20


async def answer() -> dict[str, Any]:
    return {"choices": []}


def test_what_is_no_chat_completion_is_told_and_does_not_pass_for_one_without_calls() -> None:
    promised = answer()
    for reply, told in (
        ({"object": "response", "output": []}, "this is a reply of OpenAI Responses"),
        ({"type": "message", "role": "assistant", "content": []}, r"use toolsearch\.wires\.anthropic"),
        (promised, "await it first"),
        ("It is done.", "a reply must be what the provider's SDK gave, whole, or its dict, not 'It is done.'"),
    ):
        with pytest.raises(SetupError, match=told):
            wire.calls_in(reply)
    promised.close()


def streamed(*deltas: Any) -> list[ToolCall]:
    """The calls of a reply that comes in these pieces, each the `tool_calls` of one."""
    parts = ChatPieces()
    for delta in deltas:
        parts.take({"choices": [{"index": 0, "delta": {"tool_calls": delta}}]})
    return wire.calls_in(parts.whole())


def piece(name: Any = None, arguments: Any = None, **told: Any) -> dict[str, Any]:
    return {**told, "function": {"name": name, "arguments": arguments}}


ONE, TWO = '{"p":1}', '{"p":2}'


@pytest.mark.parametrize(
    "deltas",
    [
        [[piece("read", ONE, index=0, id="a")], [piece("read", TWO, index=0, id="b")]],
        [[piece("read", ONE, index=0, id="a"), piece("read", TWO, index=0, id="b")]],
        [[piece("read", ONE, id="a")], [piece("read", TWO, id="b")]],
        [[piece("read", ONE, index=None, id="a")], [piece("read", TWO, index=0, id="b")]],
        [[piece("read", ONE, index=0)], [piece("read", TWO, index=0)]],
        [[piece("read", {"p": 1}, index=0, id="a")], [piece("read", {"p": 2}, index=0, id="b")]],
        [
            [piece("read", '{"p"', index=0, id="a")],
            [piece(None, ":1}", index=0)],
            [piece("read", TWO, index=0, id="b")],
        ],
        [
            [piece("read", '{"p":', index=0, id="a"), piece("read", '{"p":', index=0, id="b")],
            [piece(None, "1}", index=0, id="a")],
            [piece(None, "2}", index=0, id="b")],
        ],
    ],
    ids=["C18", "in one piece", "no index", "None", "no ids", "objects", "in pieces", "by their ids"],
)
def test_C18_calls_that_come_under_one_index_stay_apart(deltas: list[Any]) -> None:
    """C18 and its kind: identity is the id if it is new, else the index; a new id or name starts a new call."""
    calls = streamed(*deltas)
    assert [(call.name, json.loads(str(call.arguments))) for call in calls] == [("read", {"p": 1}), ("read", {"p": 2})]
    assert len({call.id for call in calls}) == 2


@pytest.mark.parametrize(
    "deltas",
    [
        [[piece("read", "", index=0, id="a")], [piece(None, '{"p"', index=0)], [piece(None, ":1}", index=0)]],
        [[piece("read", '{"p"', index=0, id="a")], [piece("read", ":1}", index=0, id="a")]],
        [[piece("read", '{"p"', index=0)], [piece("read", ":1}", index=0)]],
        [[piece("read", '{"p"', index=0, id="a")], [piece(None, ":1}", index=0, id="another")]],
        [[piece("re", None, index=0, id="a")], [piece("ad", ONE, index=0)]],
        [[piece("read", "", index=0)], [piece(None, ONE, index=0, id="a")]],
    ],
)
def test_one_call_in_pieces_is_one_call(deltas: list[Any]) -> None:
    """Some servers say its id or name with every piece, or make up an id for each."""
    (call,) = streamed(*deltas)
    assert (call.name, call.arguments) == ("read", ONE)


@pytest.mark.parametrize(
    "reply",
    [
        {"choices": [{"message": 5}]},
        {"choices": [{"message": {"tool_calls": 5, "content": 5}}]},
        {"choices": [{"message": {"tool_calls": [5], "content": [5]}}]},
        {"message": "x"},
    ],
)
def test_a_reply_of_another_form_holds_nothing(reply: Any) -> None:
    assert (wire.calls_in(reply), wire.reply_from(reply).text, wire.reply_from(reply).calls) == ([], "", ())


def test_a_call_whose_function_is_none_is_answered_like_any_other() -> None:
    reply = reply_with({"id": "a", "function": 5}, {"id": "b", "custom": 5})
    assert [(call.id, call.name) for call in wire.calls_in(reply)] == [("a", ""), ("b", "")]
    assert len(wire.message_from(reply)["tool_calls"]) == 2


@pytest.mark.parametrize(("texts", "kept"), [([], None), ([{"type": "text", "text": "Yes."}],) * 2])
def test_C17_a_call_that_a_message_holds_twice_is_one_call_and_is_sent_back_once(texts: Any, kept: Any) -> None:
    block = {"type": "tool_use", "id": "a", "name": "read", "input": {"p": 1}}
    reply = reply_with({"id": "a", "type": "function", "function": {"name": "read", "arguments": ONE}})
    reply["choices"][0]["message"]["content"] = [*texts, block]
    assert [(call.id, call.name) for call in wire.calls_in(reply)] == [("a", "read")]
    message = wire.message_from(reply)
    assert message["content"] == kept
    assert [call["id"] for call in message["tool_calls"]] == ["a"]


@pytest.mark.parametrize("keyword", ["definitions", "$defs"])
def test_B05_a_schema_that_refers_to_itself_goes_out_whole_under_either_keyword(keyword: str) -> None:
    ref = {"$ref": f"#/{keyword}/Node"}
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": ref}}}
    schema = {"type": "object", "properties": {"root": ref}, keyword: {"Node": node}}
    session = ToolSearch([{"name": "plant", "input_schema": schema}], mode="static").session()
    (sent,) = wire.tools_for(session)
    assert sent["function"]["parameters"]["properties"]["root"] == {"$ref": "#/$defs/Node"}
    answer = session.handle(ToolCall("a", "plant", {"root": {"kids": [{"kids": "none"}]}}))
    assert answer.status == "invalid_arguments"
    assert "kids" in answer.content


def test_an_id_of_another_provider_is_cut_to_the_length_that_this_one_takes() -> None:
    """In the call and in its result; an id of a server of this format stays, as LiteLLM hides a signature in it."""
    ids = ["fc_" + "x" * 60 + end for end in "ab"]
    asked = tuple(JudgedCall(each, "tick", "{}") for each in ids)
    answers = Answers(tuple(ToolReturned(each, "ok", "x") for each in ids))
    moved = wire.messages_for([UserSaid("?"), ModelReplied("", asked, wire="openai_responses"), answers])
    assert openai_chat_rules.refusal({"messages": moved}) == ""
    assert [m["tool_call_id"] for m in moved[2:]] == [call["id"] for call in moved[1]["tool_calls"]]
    raw = wire.message_from(reply_with(*map(function_call, ids)))
    stayed = wire.messages_for([UserSaid("?"), ModelReplied("", asked, raw=raw, wire="openai_chat"), answers])
    assert [m["tool_call_id"] for m in stayed[2:]] == [call["id"] for call in stayed[1]["tool_calls"]] == ids


# -- strict ------------------------------------------------------------------------------------------------------------


def test_B21_strict_is_for_a_bounded_number_of_tools_that_lose_nothing_by_it() -> None:
    """B12, B13: an open object among them is sent without strict, and does not count."""
    closed = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    free = {"type": "object", "properties": {"headers": {"type": "object", "description": "any key/value"}}}
    tools = [{"name": f"t{i}", "input_schema": free if i == 1 else closed} for i in range(9)]
    session = ToolSearch(tools, mode="static").session()
    sent = wire.tools_for(session, strict_tools=6)
    strict = [each["function"]["name"] for each in sent if each["function"].get("strict")]
    assert strict == ["t0", "t2", "t3", "t4", "t5", "t6"]
    assert sent[1]["function"]["parameters"] == free
    assert sent[2]["function"]["parameters"]["required"] == ["a"]
    assert not any("strict" in each["function"] for each in wire.tools_for(session))
    model = wire.model(lambda **given: None, "gpt-x", strict_tools=1)
    request = model.request_for(CallModel((), tuple(session.shown())))
    assert [each["function"].get("strict") for each in request["tools"]] == [True, *[None] * 8]
    assert [refusal for each in sent if (refusal := _refusal(each["function"]))] == []
    assert session.handle(ToolCall("1", "t2", {"a": None})).status != "invalid_arguments"


def _refusal(function: dict[str, Any]) -> list[str]:
    rules = schema_rules.openai_strict if function.get("strict") else schema_rules.openai
    return list(rules(function["name"], function["description"], function["parameters"]))
