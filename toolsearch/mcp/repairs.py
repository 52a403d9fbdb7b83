"""Messages of a server that the SDK's client cannot read, made readable where nothing has to be guessed.

Without this, an answer with half a character in it, or with a result that is none, never reaches the call that waits
for it, and the call hangs until its time is over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from mcp_types import (
    INTERNAL_ERROR,
    CallToolResult,
    ContentBlock,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    jsonrpc_message_adapter,
)
from pydantic import TypeAdapter, ValidationError

from toolsearch.support.text import clean_json

__all__ = ["line_of", "readable", "sound_result"]

DEEPEST = 100  # levels of a message; the SDK's parser stops at about twice that
LEFT_OUT = "<left out: it is nested too deeply>"
_ID = re.compile(r'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")')
_BLOCK: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)
_SEEN = 300  # characters at either end of a line in which its id is looked for


def readable(error: Exception) -> JSONRPCMessage | None:
    """The message that the SDK could not read, mended; or, if it answers a request, an error that ends the wait.

    None for what is no message, such as the words that a careless server writes to stdout.
    """
    sent = _sent(error)
    message: object = sent
    if isinstance(sent, str):
        if not sent.lstrip().startswith("{"):
            return None
        try:
            message = json.loads(sent)
        except (ValueError, RecursionError):
            return _unreadable(_id_in(sent))
    if not isinstance(message, Mapping) or message.get("jsonrpc") != "2.0":
        return None
    answers = "id" in message and "method" not in message
    try:
        return jsonrpc_message_adapter.validate_python(clean_json(_pruned(message, DEEPEST)), by_name=False)
    except (ValueError, RecursionError):
        return _unreadable(message["id"]) if answers else None


def line_of(error: Exception) -> str:
    """The line that the SDK could not read; empty if the error is of something else."""
    sent = _sent(error)
    return sent if isinstance(sent, str) else ""


def _pruned(value: Any, levels: int) -> Any:
    """The value without what is deeper, which a text names in its place."""
    if isinstance(value, dict):
        return {key: _pruned(item, levels - 1) for key, item in value.items()} if levels else LEFT_OUT
    if isinstance(value, list):
        return [_pruned(item, levels - 1) for item in value] if levels else LEFT_OUT
    return value


def _sent(error: Exception) -> object:
    """What a server sent, by the error that it caused: the line, or the object in it."""
    if not isinstance(error, ValidationError):
        return None
    inputs = [each["input"] for each in error.errors(include_url=False, include_context=False)]
    return next((each for each in inputs if isinstance(each, str) or _is_message(each)), None)


def _is_message(value: object) -> bool:
    return isinstance(value, Mapping) and "jsonrpc" in value


def _id_in(line: str) -> object:
    """The id of an answer in a line that is not JSON; None for a request or a notification."""
    ends = line[:_SEEN] + line[-_SEEN:]
    if '"method"' in line[:_SEEN] or (found := _ID.search(ends)) is None:
        return None
    return json.loads(found[1])


def _unreadable(message_id: object) -> JSONRPCMessage | None:
    if not isinstance(message_id, int | str) or isinstance(message_id, bool):
        return None
    error = ErrorData(code=INTERNAL_ERROR, message="the server sent an answer that cannot be read")
    return JSONRPCError(jsonrpc="2.0", id=message_id, error=error)


def sound_result(result: Mapping[str, Any], *, is_legacy: bool) -> dict[str, Any]:
    """The result of a tool as the SDK's client takes it: what it would refuse becomes text, beside what is sound.

    In the older protocol structured content is an object: any other value is put into one, under "result".
    """
    sound = dict(result)
    if sound.get("resultType", "complete") != "complete":
        return sound
    structured = sound.get("structuredContent")
    if is_legacy and structured is not None and not isinstance(structured, dict):
        sound["structuredContent"] = {"result": structured}
    try:
        CallToolResult.model_validate(sound, by_name=False)
    except (ValidationError, RecursionError):
        content = sound.get("content")
        blocks = content if isinstance(content, list) else [] if content is None else [content]
        kept: dict[str, Any] = {key: sound[key] for key in ("structuredContent", "isError", "_meta") if key in sound}
        if not isinstance(kept.get("_meta", {}), dict):
            del kept["_meta"]
        if "isError" in kept:  # what is not plainly false says that something is wrong
            kept["isError"] = kept["isError"] not in (False, None, "false", "False", 0)
        return {**kept, "content": [_sound_block(block) for block in blocks]}
    return sound


def _sound_block(block: object) -> dict[str, Any]:
    try:
        _BLOCK.validate_python(block, by_name=False)
    except (ValidationError, RecursionError):
        text = block if isinstance(block, str) else json.dumps(block, ensure_ascii=False)
        return {"type": "text", "text": text}
    return dict(block) if isinstance(block, Mapping) else {}
