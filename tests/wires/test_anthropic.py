"""Anthropic Messages: recorded JSON in both directions, and what the provider would refuse."""

import json
from typing import Any

import pytest
from anthropic.types import Message

from toolsearch import Catalog, SetupError, ToolCall, ToolResult, ToolSearch
from toolsearch.wires import anthropic as wire


def everything(*definitions: Any) -> list[dict[str, Any]]:
    """The tools of a request that shows all of these."""
    return wire.tools_for(ToolSearch(Catalog(definitions), mode="static").session())


def use(call_id: Any, name: Any = "tick", given: Any = None) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {} if given is None else given}


def test_a_recorded_request_is_made_again(recorded: Any) -> None:
    held = recorded("anthropic.json")
    session = ToolSearch(Catalog(held["definitions"])).session()
    session.handle(ToolCall("s", "search_tools", {"queries": ["weather forecast", "list files", "post a note"]}))
    assert json.dumps(wire.tools_for(session)) == json.dumps(held["request_tools"])


@pytest.mark.parametrize("as_object", [True, False])
def test_a_recorded_reply_is_read_and_answered(recorded: Any, as_object: bool) -> None:
    """Thinking and its signature go back unchanged."""
    held = recorded("anthropic.json")
    reply, last = held["reply"], held["last_reply"]
    if as_object:
        reply, last = Message.model_validate(reply), Message.model_validate(last)
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
    assert wire.results_for([]) == []


TEXT = {"properties": {"text": {"type": "string"}}, "required": ["text"]}
URL = {"properties": {"url": {"type": "string"}}, "required": ["url"]}


def test_B01_a_combinator_at_the_root_is_folded_and_still_validated() -> None:
    """B01: union of the properties, intersection of what is required, the choice in the description."""
    definition = {
        "name": "post",
        "description": "Post it.",
        "input_schema": {"type": "object", "anyOf": [TEXT, URL]},
        "run": lambda **given: sorted(given),
    }
    session = ToolSearch(Catalog([definition]), mode="static").session()
    (tool,) = wire.tools_for(session)
    assert tool["input_schema"] == {"type": "object", "properties": {**TEXT["properties"], **URL["properties"]}}
    assert tool["description"] == "Post it. Give one of: text; url."
    refused = session.handle(ToolCall("a", "post", "{}"))
    assert refused.status == "invalid_arguments"
    assert session.handle(ToolCall("b", "post", '{"url": "x"}')).content == '["url"]'


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "oneOf": [TEXT, {"$ref": "#/$defs/url"}], "$defs": {"url": URL}},
        {"type": "object", "allOf": [TEXT, {"anyOf": [URL, {"properties": {"file": {"type": "string"}}}]}]},
        {"$ref": "#/definitions/root", "definitions": {"root": {"type": "object", "anyOf": [TEXT, URL]}}},
        {"type": "object", **TEXT, "not": {"required": ["url"]}, "if": {}, "then": {}, "enum": [{"text": "x"}]},
    ],
)
def test_B01_siblings_every_root_keyword_a_provider_refuses_is_gone(schema: Any, anthropic_refuses: Any) -> None:
    """B01: oneOf with references, nested combinators, a root that is a reference, `not`, `if` and `enum`."""
    tools = everything({"name": "post", "description": "Post", "input_schema": schema})
    assert anthropic_refuses({"tools": tools, "messages": [], "max_tokens": 1}) == []
    assert "text" in tools[0]["input_schema"]["properties"]


def test_B01_nested_combinators_stay() -> None:
    nested = {"type": "object", "properties": {"to": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    assert everything({"name": "post", "input_schema": nested})[0]["input_schema"] == nested


@pytest.mark.parametrize("mode", ["append", "bridge"])
def test_B24_the_meta_tools_are_valid_here_too(mode: str, anthropic_refuses: Any) -> None:
    """B24"""
    tools = wire.tools_for(ToolSearch(Catalog([{"name": "tick"}]), mode=mode).session())
    assert anthropic_refuses({"tools": tools, "messages": [], "max_tokens": 1}) == []
    assert all(tool["description"] for tool in tools)


@pytest.mark.parametrize("given", ["", "  ", "null", "{}", {}])
def test_C11_no_input_is_replayed_as_an_empty_object(given: Any) -> None:
    """C11: this provider's form of no arguments is an object."""
    message = wire.message_from({"content": [use("a", given=given), {"type": "tool_use", "id": "b", "name": "tick"}]})
    assert [block["input"] for block in message["content"]] == [{}, {}]


@pytest.mark.parametrize("given", ['{"path": "/data/a", "mode": ', [1], "[1]", 7])
def test_C12_malformed_input_stays_paired_inside_an_object(given: Any, anthropic_refuses: Any) -> None:
    """C12"""
    reply = {"content": [use("a", given=given)]}
    (call,) = wire.calls_in(reply)
    results = wire.results_for([(call, ToolResult("a", "tick", "invalid_arguments", "no"))])
    message = wire.message_from(reply)
    assert anthropic_refuses({"messages": [message, *results], "max_tokens": 1}) == []
    assert message["content"][0]["input"] == {"unparsed": given if isinstance(given, str) else str(given)}
    assert results[0]["content"][0]["is_error"] is True


@pytest.mark.parametrize("ids", [["", None], ["a", "a"], ["a", "a_2", "a"], ["\ud800", "\ud800"]])
def test_missing_and_repeated_ids_become_distinct_the_same_way_in_every_reading(ids: Any) -> None:
    """C16's kind."""
    reply = {"content": [{"type": "text", "text": "Now."}, *map(use, ids)]}
    made = [call.id for call in wire.calls_in(reply)]
    assert len({*made}) == len(ids)
    assert [block["id"] for block in wire.message_from(reply)["content"][1:]] == made


def test_blank_text_is_left_out_and_a_message_is_never_empty() -> None:
    """The provider refuses a history that holds either."""
    blank = {"type": "text", "text": " \n"}
    assert wire.message_from({"content": [blank, use("a")]})["content"] == [use("a")]
    for content in ([], [blank], None, ""):
        assert wire.message_from({"content": content})["content"] == [{"type": "text", "text": "(no answer)"}]


def test_the_providers_own_blocks_go_back_unchanged_and_are_not_calls() -> None:
    """Server tools are the provider's business."""
    blocks = [
        {"type": "redacted_thinking", "data": "EmwKAhgB"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ]
    assert wire.message_from({"content": blocks})["content"] == blocks
    assert wire.calls_in({"content": blocks}) == []


def test_what_a_reply_holds_always_encodes_as_strict_json() -> None:
    """C42's kind: lone surrogates, and numbers JSON does not know."""
    reply = {"content": [{"type": "text", "text": "\ud800!"}, use("a", "\udc00", {"\ud800": [float("nan"), "\udfff"]})]}
    text = json.dumps(wire.message_from(reply), ensure_ascii=False, allow_nan=False)
    assert "�" in text.encode("utf-8").decode()


def test_a_limit_on_descriptions_can_be_set() -> None:
    """A25: nothing is cut unless the program says so."""
    session = ToolSearch(Catalog([{"name": "long", "description": "word " * 400}]), mode="static").session()
    assert len(wire.tools_for(session)[0]["description"]) == 1_999
    assert wire.tools_for(session, description_characters=200)[0]["description"].endswith("of 1,999 characters]")


def test_a_chat_completion_does_not_pass_for_a_message_without_calls() -> None:
    with pytest.raises(SetupError, match="this is a chat completion: use openai_chat"):
        wire.calls_in({"choices": [{"message": {"role": "assistant", "content": None}}]})


@pytest.mark.parametrize("reply", [{"content": 5}, {"content": [5]}, {"content": {"type": "text"}}])
def test_a_reply_of_another_form_holds_nothing(reply: Any) -> None:
    assert (wire.calls_in(reply), wire.reply_from(reply).text, wire.reply_from(reply).calls) == ([], "", ())
