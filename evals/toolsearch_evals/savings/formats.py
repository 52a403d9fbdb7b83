"""What a scripted model's reply and a whole request look like in the format of each wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch import ToolCall
from toolsearch.events import UserSaid
from toolsearch.protocols import Wire
from toolsearch.wires import anthropic, openai_chat, openai_responses
from toolsearch_evals.savings.rendering import RenderedMeter
from toolsearch_evals.token_usage import TokenMeter

__all__ = ["FORMATS", "WireFormat"]

JsonObject = dict[str, Any]


def _role_and_content(text: str) -> JsonObject:
    return {"role": "user", "content": text}


@dataclass(frozen=True)
class WireFormat:
    """A wire, and what it leaves to the program: the request around it, and what a user and a model write.

    `request(tools, system, messages)` is the payload as it is sent. Its parts are in the order in which the provider
    caches them, and a further message changes nothing before it. `tokenizer_is_public` is False where token counts are
    an estimate. `rendered` makes the token counter of what the provider makes of a request, where that is known.

    For native delivery: `in_context` makes, for one conversation, the function from a request to what of it enters the
    context, in its place. `with_tools` is the user's message with tools that come with it, and `of_brought` a reply
    that calls tools of these names, which the conversation has brought.
    """

    wire: Wire
    request: Callable[[Sequence[JsonObject], str, Sequence[JsonObject]], JsonObject]
    reply_with_calls: Callable[[Sequence[ToolCall]], JsonObject]
    reply_with_text: Callable[[str], JsonObject]
    tokenizer_is_public: bool = False
    user_message: Callable[[str], JsonObject] = _role_and_content
    rendered: Callable[[TokenMeter], TokenMeter] | None = None
    in_context: Callable[[], Callable[[JsonObject], JsonObject]] | None = None
    with_tools: Callable[[str, Sequence[Any]], list[JsonObject]] | None = None
    of_brought: Callable[[JsonObject, Collection[str]], JsonObject] | None = None


def _openai_request(tools: Sequence[JsonObject], system: str, messages: Sequence[JsonObject]) -> JsonObject:
    whole = [{"role": "system", "content": system}, *messages]
    return {**({"tools": list(tools)} if tools else {}), "messages": whole}


def _openai_calls(calls: Sequence[ToolCall]) -> JsonObject:
    written = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.arguments)}}
        for c in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": written}


def _anthropic_request(tools: Sequence[JsonObject], system: str, messages: Sequence[JsonObject]) -> JsonObject:
    listed = {"tools": list(tools)} if tools else {}
    return {**listed, "system": [{"type": "text", "text": system}], "messages": list(messages)}


def _anthropic_calls(calls: Sequence[ToolCall]) -> JsonObject:
    blocks = [{"type": "tool_use", "id": c.id, "name": c.name, "input": _object(c.arguments)} for c in calls]
    return {"role": "assistant", "content": blocks}


def _object(arguments: str | Mapping[str, Any] | None) -> dict[str, Any]:
    return dict(arguments) if isinstance(arguments, Mapping) else {}


def _referred() -> Callable[[JsonObject], JsonObject]:
    """What of a request to Anthropic the model reads: no deferred definition but those that a reference names, there.

    What is unchanged stays the same object.
    """
    made: dict[int, tuple[JsonObject, JsonObject]] = {}  # by the id of a message, with it, so that its id stays its own

    def read(request: JsonObject) -> JsonObject:
        deferred = {tool["name"]: tool for tool in request.get("tools", ()) if tool.get("defer_loading")}
        if not deferred:
            return request
        messages = [_expanded(message, deferred, made) for message in request["messages"]]
        listed = [tool for tool in request["tools"] if not tool.get("defer_loading")]
        return {**request, "tools": listed, "messages": messages}

    return read


def _expanded(
    message: JsonObject, deferred: Mapping[str, JsonObject], made: dict[int, tuple[JsonObject, JsonObject]]
) -> JsonObject:
    if id(message) not in made:
        blocks = message["content"] if isinstance(message["content"], list) else []
        told = [_with_definitions(block, deferred) for block in blocks]
        made[id(message)] = message, message if told == blocks else {**message, "content": told}
    return made[id(message)][1]


def _with_definitions(block: JsonObject, deferred: Mapping[str, JsonObject]) -> JsonObject:
    inner = block.get("content")
    if block.get("type") != "tool_result" or not isinstance(inner, list):
        return block
    told = [_definition(each, deferred) if each.get("type") == "tool_reference" else each for each in inner]
    return {**block, "content": told}


def _definition(reference: JsonObject, deferred: Mapping[str, JsonObject]) -> JsonObject:
    return {key: value for key, value in deferred[reference["tool_name"]].items() if key != "defer_loading"}


def _responses_request(tools: Sequence[JsonObject], system: str, messages: Sequence[JsonObject]) -> JsonObject:
    return {**({"tools": list(tools)} if tools else {}), "instructions": system, "input": list(messages)}


def _responses_calls(calls: Sequence[ToolCall]) -> JsonObject:
    written = [
        {"type": "function_call", "call_id": c.id, "name": c.name, "arguments": json.dumps(c.arguments)} for c in calls
    ]
    return {"object": "response", "output": written}


def _responses_text(text: str) -> JsonObject:
    content = [{"type": "output_text", "text": text}]
    return {"object": "response", "output": [{"type": "message", "role": "assistant", "content": content}]}


def _in_namespaces(reply: JsonObject, brought: Collection[str]) -> JsonObject:
    """The calls of tools that came by value, each with its namespace."""
    items = [{**each, "namespace": each["name"]} if each.get("name") in brought else each for each in reply["output"]]
    return {**reply, "output": items}


def _responses_message(text: str, loaded: Sequence[Any]) -> list[JsonObject]:
    return openai_responses.messages_for([UserSaid(text, loaded=tuple(loaded))])


FORMATS: dict[str, WireFormat] = {
    "openai_chat": WireFormat(
        openai_chat,
        _openai_request,
        _openai_calls,
        lambda text: {"role": "assistant", "content": text},
        tokenizer_is_public=True,
        rendered=RenderedMeter,
    ),
    "anthropic": WireFormat(
        anthropic,
        _anthropic_request,
        _anthropic_calls,
        lambda text: {"role": "assistant", "content": [{"type": "text", "text": text}]},
        tokenizer_is_public=False,
        in_context=_referred,
    ),
    "openai_responses": WireFormat(
        openai_responses,
        _responses_request,
        _responses_calls,
        _responses_text,
        tokenizer_is_public=True,
        with_tools=_responses_message,
        of_brought=_in_namespaces,
    ),
}
