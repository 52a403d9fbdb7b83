"""The assistant's message of a chat completion, as a history may hold it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolsearch.events.facts import ModelReplied
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import legal_name, plain_json
from toolsearch.wires._arguments import valid_json
from toolsearch.wires._chat_extras import extras_of_message

__all__ = ["Function", "kept_message", "sent_id", "short_id", "translated_message"]

MOST_ID_CHARACTERS = 40  # OpenAI refuses a request with a longer one


@dataclass(frozen=True, slots=True)
class Function:
    """A call of a reply: its id, the function with its name and arguments, and what else came with the call."""

    id: str
    function: JsonObject
    extras: Mapping[str, Any] = field(default_factory=dict)


def kept_message(message: JsonObject, functions: Sequence[Function], keep: Sequence[str] = ()) -> dict[str, Any]:
    """The message to send back: text, calls, and what the server wants back; see `_chat_extras`."""
    kept: dict[str, Any] = {"role": "assistant", "content": message.get("content")}
    if message.get("refusal") is not None:
        kept["refusal"] = message["refusal"]
    if isinstance(audio := message.get("audio"), Mapping):
        kept["audio"] = {"id": audio.get("id")}
    if functions:
        kept["tool_calls"] = [_call(function) for function in functions]
        if isinstance(parts := kept["content"], list):  # some gateways leave Anthropic's block of a call there too
            rest = [part for part in parts if not (isinstance(part, Mapping) and part.get("type") == "tool_use")]
            kept["content"] = rest or None
    elif kept.keys() == {"role", "content"} and kept["content"] is None:
        kept["content"] = ""
    cleaned: dict[str, Any] = plain_json(kept | extras_of_message(message, keep))
    return cleaned


def _call(call: Function) -> dict[str, Any]:
    name, arguments = legal_name(call.function.get("name")), valid_json(call.function.get("arguments"))
    return {"id": call.id, "type": "function", "function": {"name": name, "arguments": arguments}, **call.extras}


def translated_message(reply: ModelReplied) -> dict[str, Any]:
    """A reply that came in another format."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or (None if reply.calls else "")}
    if reply.calls:
        message["tool_calls"] = [
            _call(Function(short_id(each.id), {"name": each.name, "arguments": each.arguments})) for each in reply.calls
        ]
    return message


def short_id(call_id: str) -> str:
    """An id within the length that OpenAI takes."""
    if len(call_id) <= MOST_ID_CHARACTERS:
        return call_id
    digest = hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{call_id[: MOST_ID_CHARACTERS - 9]}_{digest}"


def sent_id(call_id: str, sent: Sequence[str]) -> str:
    """The id of a result, which is that of its call as it was `sent`: servers of this format may have longer ids."""
    short = short_id(call_id)
    return short if short in sent else call_id
