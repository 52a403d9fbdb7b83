"""OpenAI Chat Completions: what is refused, replies, chunks. Other servers that speak this format refuse less."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolsearch.events.facts import Usage
from toolsearch.support.json_types import JsonObject
from toolsearch.testing.loopback import schema_rules
from toolsearch.testing.loopback.steps import NO_HEADERS, Failure, Written, as_text, cut

__all__ = ["error", "events", "refusal", "reply", "stream_type"]

MOST_TOOLS, MOST_ID_CHARACTERS = 128, 40
ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def refusal(body: JsonObject, headers: Mapping[str, str] = NO_HEADERS) -> str:
    """Why a request with this body is refused; "" if it is taken."""
    del headers
    return next(_problems(body), "")


def _problems(body: JsonObject) -> Iterator[str]:
    tools = body.get("tools") or []
    if body.get("tools") == []:
        yield "Invalid 'tools': empty array. Expected an array with minimum length 1."
    if len(tools) > MOST_TOOLS:
        yield f"Invalid 'tools': array too long. Expected an array with maximum length {MOST_TOOLS}, not {len(tools)}."
    functions = [tool["function"] for tool in tools if tool["type"] == "function"]
    names = [function["name"] for function in functions]
    if len({*names}) < len(names):
        yield f"duplicate function names: {names}"
    for function in functions:
        rules = schema_rules.openai_strict if function.get("strict") else schema_rules.openai
        parameters = function.get("parameters") or {"type": "object", "properties": {}}
        for problem in rules(function["name"], function.get("description"), parameters):
            yield f"Invalid schema for function {function['name']!r}: {problem}"
    yield from _problems_of_messages(body["messages"])


def _problems_of_messages(messages: list[JsonObject]) -> Iterator[str]:
    waiting: list[str] = []
    for place, message in enumerate(messages):
        role = message["role"]
        if role not in ROLES:
            yield f"Invalid value: {role!r} at messages[{place}].role"
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"messages[{place}] of role 'tool' must be a response to a preceding message with 'tool_calls'"
            waiting.remove(message["tool_call_id"])
            if not isinstance(message["content"], str | list):
                yield f"Invalid type for messages[{place}].content: expected a string or an array"
            continue
        if waiting:
            yield f"An assistant message with 'tool_calls' must be followed by tool messages for each id: {waiting}"
        if role == "assistant":
            calls = message.get("tool_calls") or []
            if message.get("content") is None and not calls:
                yield f"Invalid value for 'content': expected a string, got null, at messages[{place}]"
            for call in calls:
                if not isinstance(call["function"]["arguments"], str):
                    yield f"Invalid type for messages[{place}].tool_calls.function.arguments: expected a string"
                if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"]):
                    yield f"Invalid messages[{place}].tool_calls.function.name: {call['function']['name']!r}"
                if not 0 < len(call["id"]) <= MOST_ID_CHARACTERS:
                    yield (f"Invalid messages[{place}].tool_calls.id: string too long. Expected a string with maximum "
                           f"length {MOST_ID_CHARACTERS}")  # fmt: skip
            waiting = [call["id"] for call in calls]
            if len({*waiting}) < len(waiting):
                yield f"two calls of messages[{place}] have one id: {waiting}"
    if waiting:
        yield f"An assistant message with 'tool_calls' must be followed by tool messages for each id: {waiting}"


def reply(step: Written, body: JsonObject, usage: Usage = Usage()) -> dict[str, Any]:  # noqa: B008
    """The body of a whole reply."""
    message: dict[str, Any] = {"role": "assistant", "content": step.text or (None if step.calls else "")}
    if step.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": as_text(call.arguments)}}
            for call in step.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if step.calls else "stop"}
    counts = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body.get("model") or "scripted"}
    return {**head, "choices": [choice], "usage": counts}


def events(reply: JsonObject, size: int) -> Iterator[str]:
    """The events of a streamed reply, with texts in pieces of so many characters."""
    head = {
        **{key: reply[key] for key in ("id", "created", "model") if key in reply},
        "object": "chat.completion.chunk",
    }
    for choice in reply["choices"]:
        for delta in _deltas(choice["message"], size):
            yield _event({**head, "choices": [{"index": choice["index"], "delta": delta, "finish_reason": None}]})
        end = {"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]}
        yield _event({**head, "choices": [end]})
    yield _event({**head, "choices": [], "usage": reply.get("usage")})
    yield "data: [DONE]\n\n"


def _deltas(message: JsonObject, size: int) -> Iterator[JsonObject]:
    texts = {key: value for key, value in message.items() if key not in ("role", "tool_calls")}
    yield {"role": "assistant", "content": "", **{k: v for k, v in texts.items() if not isinstance(v, str) and v}}
    for key, text in texts.items():
        yield from ({key: piece} for piece in cut(text if isinstance(text, str) else "", size))
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        yield {"tool_calls": [{"index": index, **call, "function": {**function, "arguments": ""}}]}
        for piece in cut(function["arguments"], size):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _event(chunk: JsonObject) -> str:
    return f"data: {json.dumps(chunk)}\n\n"


def stream_type(path: str, body: JsonObject) -> str:
    """The media type of the stream that is asked for; "" for a whole reply."""
    del path
    return "text/event-stream" if body.get("stream") else ""


def error(failure: Failure) -> dict[str, Any]:
    """The body of an error."""
    kind = "invalid_request_error" if failure.status < 429 else "server_error"
    return {"error": {"message": failure.message, "type": kind, "param": None, "code": None}}
