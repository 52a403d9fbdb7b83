"""Facts too large for an event loop: what they hold is copied once, in a thread, and written in a thread too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from toolsearch.calls import ToolResult
from toolsearch.events.facts import Event, ModelReplied, ToolReturned, ToolWaiting
from toolsearch.support.large_values import LARGE_CHARACTERS, is_large
from toolsearch.support.text import LEVELS, is_kept, kept

__all__ = ["are_large", "is_plain", "with_kept_data"]


def with_kept_data(result: ToolResult | ToolWaiting) -> ToolResult | ToolWaiting:
    """A result whose large data is copied here, and nowhere later; what cannot be stored as JSON stays as it is."""
    if isinstance(result, ToolResult) and is_large(result.data) and is_plain(result.data):
        return replace(result, data=kept(result.data))
    return result


def are_large(events: Iterable[Event]) -> bool:
    """Whether writing these facts would stop an event loop."""
    return any(_is_large(event) for event in events)


def _is_large(event: Event) -> bool:
    match event:
        case ToolReturned(content=content, data=data):
            return len(content) > LARGE_CHARACTERS or is_kept(data)
        case ModelReplied(calls=calls, raw=raw):
            return is_kept(raw) or any(is_kept(call.given) or is_kept(call.arguments) for call in calls)
        case _:
            return False


def is_plain(value: object) -> bool:
    """Whether a value can be stored as it is, and be read again whatever the stack; one in a circle cannot."""
    return is_kept(value) or _is_json(value, LEVELS)


def _is_json(value: object, deepest: int) -> bool:
    if isinstance(value, Mapping | list | tuple) and not deepest:
        return False
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_json(item, deepest - 1) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_json(item, deepest - 1) for item in value)
    return value is None or isinstance(value, str | int | float)
