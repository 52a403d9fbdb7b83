"""Whether the requests of a conversation keep their beginning, which a provider's cache needs.

A cache keeps the beginning of a request: tools, then the system text, then messages. What is changed, inserted or taken
away in it is read anew from there on, and paid in full.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, pairwise, zip_longest
from typing import Any, Literal, TypeAlias, get_args

from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.testing.promises import BrokenPromise

__all__ = ["assert_prefix_stable"]

KeptMode: TypeAlias = Literal["static", "append", "bridge", "native", "compact"]
Place: TypeAlias = tuple[str, str]  # where something stands, and its JSON

_SHOWN = 60  # characters before and behind a difference


def assert_prefix_stable(requests: Iterable[JsonObject], *, mode: KeptMode) -> None:
    """Raises `BrokenPromise` unless each request of a conversation begins as the one before.

    `requests` are the bodies in the order in which they were sent, of any wire, as `LoopbackProvider.requests` has
    them; those of other conversations, or of helpers, must be left out. The system text stays as it is. The messages
    of each request begin with those of the one before. The `tools` stay as they are, byte by byte; with "append" new
    ones may come at the end. Marks for Anthropic's cache are not part of what is cached, and are not compared.
    """
    checks.choice("mode", mode, *get_args(KeptMode))
    bodies = [_unmarked(body) for body in requests]
    for number, (before, now) in zip(count(2), pairwise(bodies), strict=False):
        old, new = [*_tools(before)], [*_tools(now)]
        _compare(number, old, new, may_grow=mode == "append")
        _compare(number, [*_system(before)], [*_system(now)], may_grow=False)
        _compare(number, [*_messages(before)], [*_messages(now)], may_grow=True)


def _compare(number: int, before: Sequence[Place], now: Sequence[Place], *, may_grow: bool) -> None:
    for old, new in zip_longest(before, now):
        if old is None:
            if not may_grow:
                raise BrokenPromise(f"request {number} has {new[0]}, which the one before has not", _cut(new[1], 0))
            return
        if new is None:
            raise BrokenPromise(f"request {number} lacks {old[0]} of the one before", _cut(old[1], 0))
        if old[1] != new[1]:
            at = next(i for i, (a, b) in enumerate(zip_longest(old[1], new[1])) if a != b)
            see = f"before: {_cut(old[1], at)}\nnow:    {_cut(new[1], at)}"
            raise BrokenPromise(f"request {number} changes {old[0]}, at its character {at + 1}", see)


def _cut(text: str, at: int) -> str:
    start, end = max(at - _SHOWN, 0), at + _SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _tools(body: JsonObject) -> Iterator[Place]:
    for place, tool in enumerate(body.get("tools") or []):
        declared = tool.get("functionDeclarations")
        for inner, each in enumerate(declared if isinstance(declared, list) else ()):
            yield f"tools[{place}].functionDeclarations[{inner}]", _json(each)
        if not isinstance(declared, list):
            yield f"tools[{place}]", _json(tool)


def _system(body: JsonObject) -> Iterator[Place]:
    for key in ("system", "instructions", "systemInstruction"):
        if body.get(key):
            value = body[key]
            yield key, _json([{"type": "text", "text": value}] if isinstance(value, str) else value)


def _messages(body: JsonObject) -> Iterator[Place]:
    """Each message. Those of Anthropic and Gemini by their blocks: neighbours of one role may be merged later."""
    key = next((key for key in ("messages", "input", "contents") if key in body), "messages")
    given = body.get(key) or []
    messages: list[Any] = [given] if isinstance(given, str) else list(given)
    for place, message in enumerate(messages):
        at = f"{key}[{place}]"
        inside = "parts" if key == "contents" else "content"
        if not isinstance(message, Mapping) or not _has_blocks(body, key) or message.get(inside) is None:
            yield at, _json(message)
            continue
        blocks = message[inside]
        rest = _json({name: value for name, value in message.items() if name != inside})
        for inner, block in enumerate([{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks):
            yield f"{at}.{inside}[{inner}]", f"{rest} {_json(block)}"


def _has_blocks(body: JsonObject, key: str) -> bool:
    """Whether the messages are Gemini's, or Anthropic's, which requires `max_tokens` and knows no role "tool"."""
    if key != "messages":
        return key == "contents"
    return "max_tokens" in body and not any(each["role"] == "tool" or "tool_calls" in each for each in body[key])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _unmarked(value: Any) -> Any:
    """The same without marks for Anthropic's cache."""
    if isinstance(value, Mapping):
        return {key: _unmarked(inner) for key, inner in value.items() if key != "cache_control"}
    return [_unmarked(each) for each in value] if isinstance(value, list) else value
