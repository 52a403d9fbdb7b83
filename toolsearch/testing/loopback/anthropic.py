"""Anthropic Messages: what is refused, replies, events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolsearch.events.facts import Usage
from toolsearch.support.json_types import JsonObject
from toolsearch.testing.loopback import schema_rules
from toolsearch.testing.loopback.steps import NO_HEADERS, Failure, Written, as_object, cut

__all__ = ["error", "events", "refusal", "reply", "stream_type"]

MOST_DEFERRED, MOST_BREAKPOINTS = 10_000, 4
CHANGES, INLINE = "mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"
_ERRORS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
           413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}  # fmt: skip


def refusal(body: JsonObject, headers: Mapping[str, str] = NO_HEADERS) -> str:
    """Why a request with this body is refused; "" if it is taken."""
    betas = {each.strip() for each in headers.get("anthropic-beta", "").split(",")}
    return next(_problems(body, betas), "")


def _problems(body: JsonObject, betas: set[str]) -> Iterator[str]:
    if not isinstance(body.get("max_tokens"), int):
        yield "max_tokens: Field required"
    tools = body.get("tools") or []
    yield from _problems_of_tools(tools)
    marked = [each for each in _objects([body.get("system"), tools, body["messages"]]) if each.get("cache_control")]
    if len(marked) > MOST_BREAKPOINTS:
        yield f"A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided. Found {len(marked)}."
    if bad := [each for each in marked if each.get("type") in ("thinking", "redacted_thinking")]:
        yield f"cache_control cannot be set for {bad[0]['type']} blocks"
    if not body["messages"]:
        yield "messages: at least one message is required"
    yield from _Conversation({_name(tool) for tool in tools}, betas).problems(body["messages"])


def _problems_of_tools(tools: list[JsonObject]) -> Iterator[str]:
    names = [_name(tool) for tool in tools]
    if len({*names}) < len(names):
        yield "tools: Tool names must be unique."
    deferred = [tool for tool in tools if tool.get("defer_loading")]
    if tools and len(deferred) == len(tools):
        yield "At least one tool must have defer_loading=false. All tools cannot be deferred."
    if len(deferred) > MOST_DEFERRED:
        yield f"tools: {len(deferred)} deferred tools, {MOST_DEFERRED} at most."
    for tool in deferred:
        if tool.get("cache_control"):
            yield f"Tool {_name(tool)!r} cannot have both defer_loading=true and cache_control set."
    for tool in tools:
        if tool.get("type", "custom") == "custom":
            for problem in schema_rules.anthropic(tool["name"], tool.get("description"), tool["input_schema"]):
                yield f"tools.{tool['name']}.custom: {problem}"


class _Conversation:
    """The messages, read in order: calls that wait for results, and the tools that can be named."""

    def __init__(self, declared: set[str], betas: set[str]) -> None:
        self.declared, self.betas = set(declared), betas
        self.waiting: set[str] = set()  # calls of the client without a result
        self.running: set[str] = set()  # calls of the server

    def problems(self, messages: list[JsonObject]) -> Iterator[str]:
        for place, message in enumerate(messages):
            content = message["content"]
            blocks: list[JsonObject] = [{"type": "text", "text": content}] if isinstance(content, str) else content
            at = f"messages.{place}"
            if not blocks:
                yield f"{at}: content is empty"
            for block in blocks:
                if block["type"] == "text" and not block["text"].strip():
                    yield f"{at}: text content blocks must contain non-whitespace text"
            match message["role"]:
                case "user":
                    yield from self._user(blocks, at)
                case "assistant":
                    yield from self._assistant(blocks, at, is_last=place == len(messages) - 1)
                case "system" if CHANGES in self.betas:
                    roles = [each["role"] for each in messages[max(place - 1, 0) : place + 2]]
                    if place == 0 or roles[0] == "assistant" or roles[2:] == ["user"]:
                        yield f"{at}: a system message must follow a user message and precede an assistant message"
                    yield from self._system(blocks, at)
                case role:
                    yield f"{at}.role: unexpected role {role!r}"
        if messages and messages[0]["role"] == "assistant":
            yield "messages: first message must use the user role"
        if self.waiting:
            yield f"`tool_use` ids were found without `tool_result` blocks immediately after: {sorted(self.waiting)}"

    def _user(self, blocks: list[JsonObject], at: str) -> Iterator[str]:
        results = [block for block in blocks if block["type"] == "tool_result"]
        answered = {block["tool_use_id"] for block in results}
        if extra := sorted(answered - self.waiting):
            yield f"{at}: unexpected `tool_use_id` found in `tool_result` blocks: {extra}"
        if missing := sorted(self.waiting - answered):
            yield f"{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}"
        if len(answered) < len(results):
            yield f"{at}: each tool_use must have a single result"
        if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
            yield f"{at}: `tool_result` blocks must come first"
        for block in results:
            yield from self._result(block, at)
        self.waiting = set()

    def _result(self, block: JsonObject, at: str) -> Iterator[str]:
        content = block.get("content")
        if not isinstance(content, list):
            return
        if not content:
            yield f"{at}: the content of the tool_result {block['tool_use_id']!r} is empty"
        kinds = [each["type"] for each in content]
        if block.get("is_error") and {*kinds} - {"text"}:
            yield f"{at}: all content must be type `text` if `is_error` is true"
        references = [each["tool_name"] for each in content if each["type"] == "tool_reference"]
        for name in references:
            if name not in self.declared:
                yield f"{at}: Tool reference '{name}' not found in available tools"
        if references and len(references) < len(content):
            yield f"{at}: tool_reference blocks cannot be mixed with other content"

    def _assistant(self, blocks: list[JsonObject], at: str, *, is_last: bool) -> Iterator[str]:
        if self.waiting:
            yield f"{at}: `tool_use` ids were found without `tool_result` blocks: {sorted(self.waiting)}"
        ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len({*ids}) < len(ids):
            yield f"{at}: `tool_use` ids must be unique"
        for block in blocks:
            if block["type"] == "tool_use" and not isinstance(block["input"], dict):
                yield f"{at}: tool_use.input: Input should be a valid dictionary"
            if block["type"] == "thinking" and not block.get("signature"):
                yield f"{at}: thinking.signature: Field required"
        for block in blocks:
            if block["type"] in ("server_tool_use", "mcp_tool_use"):
                self.running.add(block["id"])
            elif block["type"].endswith("_tool_result") and block["tool_use_id"] not in self.running:
                yield f"{at}: unexpected `tool_use_id` {block['tool_use_id']!r} in a {block['type']} block"
            elif block["type"].endswith("_tool_result"):
                self.running.discard(block["tool_use_id"])
        if self.running and not ids and not is_last:  # beside calls of the client they end in the next reply
            yield f"{at}: `server_tool_use` ids were found without a result block: {sorted(self.running)}"
        self.waiting = {*ids}

    def _system(self, blocks: list[JsonObject], at: str) -> Iterator[str]:
        for block in blocks:
            if block["type"] not in ("tool_addition", "tool_removal"):
                continue
            tool = block["tool"]
            if tool["type"] == "tool_definition":
                if INLINE not in self.betas or block["type"] == "tool_removal":
                    yield f"{at}: tool_definition is not permitted here"
                given = tool["definition"]
                for problem in schema_rules.anthropic(given["name"], given.get("description"), given["input_schema"]):
                    yield f"{at}.tool_addition.{given['name']}: {problem}"
                if given["name"] in self.declared:
                    yield f"{at}: there is a tool {given['name']!r} already"
                self.declared.add(given["name"])
            elif tool["name"] not in self.declared:
                yield f"{at}: Tool reference '{tool['name']}' not found in available tools"


def _name(tool: JsonObject) -> str:
    return str(tool.get("name") or tool.get("mcp_server_name") or "")


def _objects(value: object) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value."""
    if isinstance(value, dict):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _objects(each)


def reply(step: Written, body: JsonObject, usage: Usage = Usage()) -> dict[str, Any]:  # noqa: B008
    """The body of a whole reply."""
    content: list[dict[str, Any]] = [{"type": "text", "text": step.text}] if step.text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": as_object(call.arguments)}
        for call in step.calls
    ]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model") or "scripted"}
    counts = {
        "input_tokens": usage.input_tokens - usage.cached_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.output_tokens,
    }
    stop = "tool_use" if step.calls else "end_turn"
    return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": counts}


_TEXTS = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}


def events(reply: JsonObject, size: int) -> Iterator[str]:
    """The events of a streamed reply, with texts in pieces of so many characters."""
    usage = reply.get("usage") or {"input_tokens": 0, "output_tokens": 0}
    begun = {**reply, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _event({"type": "message_start", "message": begun})
    for index, block in enumerate(reply["content"]):
        for event in _block(block, size):
            yield _event({**event, "index": index})
    delta = {"stop_reason": reply.get("stop_reason"), "stop_sequence": reply.get("stop_sequence")}
    yield _event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}})
    yield _event({"type": "message_stop"})


def _block(block: JsonObject, size: int) -> Iterator[dict[str, Any]]:
    kind = block["type"]
    deltas: list[dict[str, Any]] = []
    begun = dict(block)
    if kind in _TEXTS:
        delta, key = _TEXTS[kind]
        begun |= {key: ""}
        deltas = [{"type": delta, key: piece} for piece in cut(block[key], size)]
        if "signature" in block:
            begun |= {"signature": ""}
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif kind.endswith("tool_use"):
        begun |= {"input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": p} for p in cut(json.dumps(block["input"]), size)]
    yield {"type": "content_block_start", "content_block": begun}
    yield from ({"type": "content_block_delta", "delta": delta} for delta in deltas)
    yield {"type": "content_block_stop"}


def _event(event: JsonObject) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def stream_type(path: str, body: JsonObject) -> str:
    """The media type of the stream that is asked for; "" for a whole reply."""
    del path
    return "text/event-stream" if body.get("stream") else ""


def error(failure: Failure) -> dict[str, Any]:
    """The body of an error."""
    kind = _ERRORS.get(failure.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": failure.message}, "request_id": "req_1"}
