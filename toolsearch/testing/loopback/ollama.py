"""Ollama's /api/chat: what is refused, replies, lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolsearch.events.facts import Usage
from toolsearch.support.json_types import JsonObject
from toolsearch.testing.loopback import schema_rules
from toolsearch.testing.loopback.steps import NO_HEADERS, Failure, Written, as_object, cut

__all__ = ["error", "events", "refusal", "reply", "stream_type"]

ROLES = ("system", "user", "assistant", "tool")


def refusal(body: JsonObject, headers: Mapping[str, str] = NO_HEADERS) -> str:
    """Why a request with this body is refused; "" if it is taken."""
    del headers
    return next(_problems(body), "")


def _problems(body: JsonObject) -> Iterator[str]:
    for tool in body.get("tools") or []:
        function = tool["function"]
        parameters = function.get("parameters") or {"type": "object"}
        yield from schema_rules.ollama(function["name"], function.get("description"), parameters)
    for place, message in enumerate(body["messages"]):
        if message["role"] not in ROLES:
            yield f"messages[{place}]: invalid role {message['role']!r}"
        if not isinstance(message.get("content") or "", str):
            yield "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string"
        for call in message.get("tool_calls") or []:
            if not isinstance(call["function"].get("arguments") or {}, dict):
                yield "json: cannot unmarshal string into Go struct field ToolCallFunction.arguments of type map"
        if any(not isinstance(image, str) for image in message.get("images") or []):
            yield "json: cannot unmarshal object into Go struct field ChatRequest.messages.images"


def reply(step: Written, body: JsonObject, usage: Usage = Usage()) -> dict[str, Any]:  # noqa: B008
    """The format has no ids of calls."""
    message: dict[str, Any] = {"role": "assistant", "content": step.text}
    if step.calls:
        message["tool_calls"] = [
            {"function": {"name": call.name, "arguments": as_object(call.arguments)}} for call in step.calls
        ]
    head = {"model": body.get("model") or "scripted", "created_at": "2026-01-01T00:00:00Z"}
    counts = {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}
    return {**head, "message": message, "done": True, "done_reason": "stop", **counts}


def events(reply: JsonObject, size: int) -> Iterator[str]:
    """The events of a streamed reply, with texts in pieces of so many characters."""
    message = reply["message"]
    head = {key: reply[key] for key in ("model", "created_at") if key in reply}
    for key in ("thinking", "content"):
        for piece in cut(message.get(key) or "", size):
            yield _line({**head, "message": {"role": "assistant", "content": "", key: piece}, "done": False})
    for call in message.get("tool_calls") or []:
        yield _line({**head, "message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": False})
    yield _line({**reply, "message": {"role": "assistant", "content": ""}})


def _line(chunk: JsonObject) -> str:
    return json.dumps(chunk) + "\n"


def stream_type(path: str, body: JsonObject) -> str:
    """The media type of the stream that is asked for, which is the default; "" for a whole reply."""
    del path
    return "application/x-ndjson" if body.get("stream", True) else ""


def error(failure: Failure) -> dict[str, Any]:
    """The body of an error."""
    return {"error": failure.message}
