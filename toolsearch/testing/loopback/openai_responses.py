"""OpenAI Responses: what is refused, replies, events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from toolsearch.calls import ToolCall
from toolsearch.events.facts import Usage
from toolsearch.support.json_types import JsonObject
from toolsearch.testing.loopback import openai_chat, schema_rules
from toolsearch.testing.loopback.steps import NO_HEADERS, Failure, Written, as_object, as_text, cut

__all__ = ["error", "events", "refusal", "reply", "stream_type"]

MOST_TOOLS = 128


def refusal(body: JsonObject, headers: Mapping[str, str] = NO_HEADERS) -> str:
    """Why a request with this body is refused; "" if it is taken."""
    del headers
    return next(_problems(body), "")


def _problems(body: JsonObject) -> Iterator[str]:
    tools = body.get("tools") or []
    functions = [*_functions(tools)]
    names = [(space, function["name"]) for space, function in functions]
    if len({*names}) < len(names):
        yield f"duplicate tools: {names}"
    if len(names) > MOST_TOOLS:
        yield f"Invalid 'tools': array too long. Expected an array with maximum length {MOST_TOOLS}."
    searches = any(tool["type"] == "tool_search" for tool in tools)
    is_deferred = any(function.get("defer_loading") for _, function in functions)
    if is_deferred and not searches:
        yield "Deferred tools require a tool_search tool."
    yield from _problems_of_tools(tools)
    if not isinstance(body["input"], str):
        loaded = {
            name for name, (_, function) in zip(names, functions, strict=True) if not function.get("defer_loading")
        }
        yield from _problems_of_input(body["input"], loaded)


def _problems_of_tools(tools: list[JsonObject]) -> Iterator[str]:
    for tool in tools:
        if tool["type"] == "namespace" and not tool.get("description"):
            yield f"Missing required parameter: the description of the namespace {tool['name']!r}."
    for _, function in _functions(tools):
        rules = schema_rules.openai_strict if function.get("strict") else schema_rules.openai
        parameters = function.get("parameters") or {"type": "object", "properties": {}}
        for problem in rules(function["name"], function.get("description"), parameters):
            yield f"Invalid schema for function {function['name']!r}: {problem}"


def _problems_of_input(items: list[JsonObject], loaded: set[tuple[str, str]]) -> Iterator[str]:
    waiting: dict[str, str] = {}
    for place, item in enumerate(items):
        kind, is_client = item.get("type", "message"), item.get("execution") != "server"
        at = f"input[{place}]"
        if kind == "function_call":
            if not isinstance(item["arguments"], str):
                yield f"{at}.arguments: expected a string"
            # A lone function that was loaded later is called under a namespace with its own name.
            if not {(item.get("namespace") or "", item["name"]), ("", item["name"])} & loaded:
                yield f"{at}: Missing namespace for function_call {item['name']!r}, or a tool that is not loaded."
            waiting[item["call_id"]] = "function_call_output"
        elif kind == "additional_tools":
            if item.get("role") != "developer":
                yield f"{at}.role: expected 'developer'"
            yield from _problems_of_tools(item["tools"])
            loaded |= {(space, function["name"]) for space, function in _functions(item["tools"])}
        elif kind == "tool_search_call" and is_client:
            waiting[item["call_id"]] = "tool_search_output"
        elif kind in ("function_call_output", "tool_search_output") and is_client:
            if waiting.pop(item["call_id"], None) != kind:
                yield f"{at}: No tool call found for {kind} with call_id {item['call_id']}."
            if kind == "tool_search_output":
                yield from _problems_of_tools(item["tools"])
                loaded |= {(space, function["name"]) for space, function in _functions(item["tools"])}
    if waiting:
        yield f"No tool output found for function call {', '.join(waiting)}."


def _functions(tools: list[JsonObject]) -> Iterator[tuple[str, JsonObject]]:
    """Every function, with the name of its namespace, "" for none."""
    for tool in tools:
        if tool["type"] == "function":
            yield "", tool
        elif tool["type"] == "namespace":
            yield from ((tool["name"], inner) for inner in tool["tools"])


def reply(step: Written, body: JsonObject, usage: Usage = Usage()) -> dict[str, Any]:  # noqa: B008
    """A call of `namespace.name` is one in a namespace; one of `tool_search`, where the request has it, is a search."""
    searches = any(tool["type"] == "tool_search" for tool in body.get("tools") or [])
    output: list[dict[str, Any]] = []
    if step.text or not step.calls:
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        output.append({**message, "content": content})
    output += [_item(call, searches=searches) for call in step.calls]
    counts = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": body.get("model") or "scripted"}
    settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": body.get("tools") or []}
    return {**head, **settings, "status": "completed", "output": output, "usage": counts}


def _item(call: ToolCall, *, searches: bool) -> dict[str, Any]:
    if searches and call.name == "tool_search":
        head = {"type": "tool_search_call", "id": f"tsc_{call.id}", "call_id": call.id, "execution": "client"}
        return {**head, "status": "completed", "arguments": as_object(call.arguments)}
    space, _, name = call.name.rpartition(".")
    item = {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "name": name, "status": "completed"}
    return {**item, "arguments": as_text(call.arguments), **({"namespace": space} if space else {})}


def events(reply: JsonObject, size: int) -> Iterator[str]:
    """The events of a streamed reply, with texts in pieces of so many characters."""
    numbers = count()
    begun = {**reply, "status": "in_progress", "output": [], "usage": None}
    for kind in ("response.created", "response.in_progress"):
        yield _event({"type": kind, "response": begun, "sequence_number": next(numbers)})
    for index, item in enumerate(reply["output"]):
        for event in _events_of(item, size):
            yield _event({**event, "output_index": index, "sequence_number": next(numbers)})
    end = "incomplete" if reply.get("status") == "incomplete" else "completed"
    yield _event({"type": f"response.{end}", "response": reply, "sequence_number": next(numbers)})


def _events_of(item: JsonObject, size: int) -> Iterator[dict[str, Any]]:
    item_id = item.get("id")
    begun = {**item, "status": "in_progress"}
    if item["type"] == "message":
        begun |= {"content": []}
    elif item["type"] == "function_call":
        begun |= {"arguments": ""}
    yield {"type": "response.output_item.added", "item": begun}
    if item["type"] == "function_call":
        name = "response.function_call_arguments"
        for piece in cut(item["arguments"], size):
            yield {"type": f"{name}.delta", "item_id": item_id, "delta": piece}
        yield {"type": f"{name}.done", "item_id": item_id, "name": item["name"], "arguments": item["arguments"]}
    for place, part in enumerate(item["content"] if item["type"] == "message" else ()):
        head = {"item_id": item_id, "content_index": place}
        key = "refusal" if part["type"] == "refusal" else "text"
        name = "response.refusal" if key == "refusal" else "response.output_text"
        logs: JsonObject = {} if key == "refusal" else {"logprobs": []}
        yield {"type": "response.content_part.added", **head, "part": {**part, key: ""}}
        for piece in cut(part[key], size):
            yield {"type": f"{name}.delta", **head, "delta": piece, **logs}
        yield {"type": f"{name}.done", **head, key: part[key], **logs}
        yield {"type": "response.content_part.done", **head, "part": part}
    yield {"type": "response.output_item.done", "item": item}


def _event(event: JsonObject) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def stream_type(path: str, body: JsonObject) -> str:
    """The media type of the stream that is asked for; "" for a whole reply."""
    del path
    return "text/event-stream" if body.get("stream") else ""


def error(failure: Failure) -> dict[str, Any]:
    """The body of an error."""
    return openai_chat.error(failure)
