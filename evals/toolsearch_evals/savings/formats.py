"""What a scripted model's reply and a whole request look like in the format of each wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch import ToolCall
from toolsearch.protocols import Wire
from toolsearch.wires import anthropic, openai_chat
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
    """

    wire: Wire
    request: Callable[[Sequence[JsonObject], str, Sequence[JsonObject]], JsonObject]
    reply_with_calls: Callable[[Sequence[ToolCall]], JsonObject]
    reply_with_text: Callable[[str], JsonObject]
    tokenizer_is_public: bool = False
    user_message: Callable[[str], JsonObject] = _role_and_content
    rendered: Callable[[TokenMeter], TokenMeter] | None = None


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
    ),
}
