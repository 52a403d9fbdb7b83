"""OpenAI Responses: replies, events; `responses_rules` has what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from toolsearch.calls import ToolCall
from toolsearch.events.facts import Usage
from toolsearch.support.json_types import JsonObject
from toolsearch.testing.loopback import openai_chat, responses_rules
from toolsearch.testing.loopback.steps import NO_HEADERS, Failure, Written, as_object, as_text, cut

__all__ = ["error", "events", "refusal", "reply", "stream_type"]


def refusal(body: JsonObject, headers: Mapping[str, str] = NO_HEADERS) -> str:
    """Why a request with this body is refused; "" if it is taken."""
    del headers
    return next(responses_rules.problems(body), "")


def reply(step: Written, body: JsonObject, usage: Usage = Usage()) -> dict[str, Any]:  # noqa: B008
    """A call of a tool that the request has in a namespace names it; one of its `tool_search` is a search."""
    tools, items = body.get("tools") or [], body["input"] if isinstance(body["input"], list) else []
    searches = any(tool["type"] == "tool_search" for tool in tools)
    spaces = dict(responses_rules.places_of(tools, items))
    output: list[dict[str, Any]] = []
    if step.text or not step.calls:
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        message = {"type": "message", "id": f"msg_{len(items)}", "role": "assistant", "status": "completed"}
        output.append({**message, "content": content})
    output += [_item(call, spaces, searches=searches) for call in step.calls]
    counts = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": body.get("model") or "scripted"}
    settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": body.get("tools") or []}
    return {**head, **settings, "status": "completed", "output": output, "usage": counts}


def _item(call: ToolCall, spaces: Mapping[str, str], *, searches: bool) -> dict[str, Any]:
    if searches and call.name == "tool_search":
        head = {"type": "tool_search_call", "id": f"tsc_{call.id}", "call_id": call.id, "execution": "client"}
        return {**head, "status": "completed", "arguments": as_object(call.arguments)}
    head = {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "name": call.name}
    space = {"namespace": spaces[call.name]} if spaces.get(call.name) else {}
    return {**head, "arguments": as_text(call.arguments), **space, "status": "completed"}


def events(reply: JsonObject, size: int) -> Iterator[str]:
    """The events of a streamed reply, with texts in pieces of so many characters."""
    numbers = count()
    begun = {**reply, "status": "in_progress", "output": [], "usage": None}
    for kind in ("response.created", "response.in_progress"):
        yield _event({"type": kind, "response": begun, "sequence_number": next(numbers)})
    for index, item in enumerate(reply["output"]):
        for event in _events_of(item, size):
            yield _event({**event, "output_index": index, "sequence_number": next(numbers)})
    end = reply.get("status") if reply.get("status") in ("incomplete", "failed") else "completed"
    yield _event({"type": f"response.{end}", "response": reply, "sequence_number": next(numbers)})


def _events_of(item: JsonObject, size: int) -> Iterator[dict[str, Any]]:
    item_id = item.get("id")
    begun = {**item, "status": "in_progress"}
    if item["type"] == "message":
        begun |= {"content": []}
    elif item["type"] == "function_call":
        begun |= {"arguments": ""}
    elif item["type"] == "reasoning":
        begun |= {"summary": [], "encrypted_content": ""}
    yield {"type": "response.output_item.added", "item": begun}
    if item["type"] == "function_call":
        name = "response.function_call_arguments"
        for piece in cut(item["arguments"], size):
            yield {"type": f"{name}.delta", "item_id": item_id, "delta": piece}
        yield {"type": f"{name}.done", "item_id": item_id, "name": item["name"], "arguments": item["arguments"]}
    for place, part in enumerate(item["summary"] if item["type"] == "reasoning" else ()):
        for piece in cut(part["text"], size):
            head = {"item_id": item_id, "summary_index": place}
            yield {"type": "response.reasoning_summary_text.delta", **head, "delta": piece}
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
