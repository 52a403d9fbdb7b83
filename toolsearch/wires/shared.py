"""What every wire does alike: replies as dicts, calls with ids of their own, names a provider accepts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from toolsearch.calls import ToolCall, ToolResult
from toolsearch.support import checks
from toolsearch.support.checks import wrong
from toolsearch.support.text import clean

__all__ = ["answered_calls", "distinct_ids", "fields_of"]


def answered_calls(answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[tuple[ToolCall, ToolResult]]:
    """Calls, each with its result; raises `SetupError` for anything else, such as a result nobody waited for."""
    wanted = "pairs of a ToolCall and its ToolResult, as in [(call, session.handle(call))]"
    if not isinstance(answered, Iterable):
        raise checks.wrong("answered", wanted, answered)
    pairs = list(answered)
    for pair in pairs:
        match pair:
            case (ToolCall(), ToolResult()):
                pass
            case _:
                raise checks.wrong("answered", wanted, pair)
    return pairs


def fields_of(reply: Any) -> Mapping[str, Any]:
    """A reply, or a piece of one, of a provider's SDK as a dict, which it may be already; else raises `SetupError`."""
    if isinstance(reply, Mapping):
        return reply
    dump = getattr(reply, "model_dump", None)
    if dump is None:
        more = ": await it first" if hasattr(reply, "__await__") else ""
        raise wrong("a reply", "what the provider's SDK gave, whole, or its dict", reply, more=more)
    fields: Mapping[str, Any] = dump(exclude_none=True, warnings=False)
    return fields


def distinct_ids(ids: Iterable[Any], prefix: str, reply: Any) -> list[str]:
    """The ids of a reply's calls as text; a missing or repeated one is made up from the reply and its place.

    The same reply always gives the same ids, and another reply others.
    """
    made: list[str] = []
    digest = ""
    for place, told in enumerate(ids):
        call_id = plain = clean(str(told or ""))
        while not call_id or call_id in made:
            digest = digest or hashlib.sha256(repr(reply).encode("utf-8", "replace")).hexdigest()
            call_id = f"{plain[:24] or prefix}_{digest[:8]}_{place}"
            digest = digest[1:]
        made.append(call_id)
    return made
