"""The assistant's message of a chat completion, as a history may hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import legal_name, plain_json
from toolsearch.wires._arguments import valid_json
from toolsearch.wires._chat_extras import extras_of_message

__all__ = ["Function", "kept_message"]


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
