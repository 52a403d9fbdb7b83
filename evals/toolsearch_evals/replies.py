"""What a scripted model's reply and a whole request look like in the format of each wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from toolsearch import SetupError, ToolCall
from toolsearch.wires import anthropic, openai_chat

__all__ = ["FORMATS", "Format", "format_of"]

Message = dict[str, Any]
Request = dict[str, Any]


@dataclass(frozen=True)
class Format:
    """A wire, and the three things it leaves to the program: the request around it, and what a model answers.

    `request(tools, system, messages)` has its parts in the order in which providers cache them.
    """

    wire: ModuleType
    request: Callable[[Sequence[Message], str, Sequence[Message]], Request]
    calling: Callable[[Sequence[ToolCall]], Message]
    saying: Callable[[str], Message]
    tokenizer_is_public: bool


def _openai_request(tools: Sequence[Message], system: str, messages: Sequence[Message]) -> Request:
    whole = [{"role": "system", "content": system}, *messages]
    return {**({"tools": list(tools)} if tools else {}), "messages": whole}


def _openai_calling(calls: Sequence[ToolCall]) -> Message:
    made = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.arguments)}}
        for c in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def _anthropic_request(tools: Sequence[Message], system: str, messages: Sequence[Message]) -> Request:
    listed = {"tools": list(tools)} if tools else {}
    return {**listed, "system": [{"type": "text", "text": system}], "messages": list(messages)}


def _anthropic_calling(calls: Sequence[ToolCall]) -> Message:
    blocks = [{"type": "tool_use", "id": c.id, "name": c.name, "input": _object(c.arguments)} for c in calls]
    return {"role": "assistant", "content": blocks}


def _object(arguments: str | Mapping[str, Any] | None) -> dict[str, Any]:
    return dict(arguments) if isinstance(arguments, Mapping) else {}


FORMATS: dict[str, Format] = {
    "openai_chat": Format(
        openai_chat,
        _openai_request,
        _openai_calling,
        lambda text: {"role": "assistant", "content": text},
        tokenizer_is_public=True,
    ),
    "anthropic": Format(
        anthropic,
        _anthropic_request,
        _anthropic_calling,
        lambda text: {"role": "assistant", "content": [{"type": "text", "text": text}]},
        tokenizer_is_public=False,
    ),
}


def format_of(wire: str) -> Format:
    """The format of a wire by its name; raises `SetupError` for one there is not."""
    if wire not in FORMATS:
        raise SetupError(f"there is no wire {wire!r}; there are: {', '.join(map(repr, FORMATS))}")
    return FORMATS[wire]
