"""Where journals live: a store keeps the facts of conversations, each at its place, and gives them back.

memory      MemoryStore: in this process, bounded
sqlite      SqliteStore: one file, for any number of threads and processes

Any object with `append`, `load`, `delete` and `list` is one; see `toolsearch.agent.Journals`. What is in a store is
trusted: whoever can write there can make an agent believe that a call was approved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolsearch import options
from toolsearch.errors import SetupError, StateError

if TYPE_CHECKING:
    from toolsearch.stores.memory import MemoryStore
    from toolsearch.stores.sqlite import SqliteStore

__all__ = ["Entry", "MemoryStore", "SqliteStore"]

_WHERE = {"MemoryStore": "memory", "SqliteStore": "sqlite"}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f"toolsearch.stores.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One conversation of a store: how many facts it has, and when the last was written (seconds since the epoch)."""

    id: str
    facts: int
    written_at: float


def checked_id(conversation_id: Any) -> str:
    """The id; raises `SetupError` for what cannot be one."""
    if not isinstance(conversation_id, str) or not conversation_id:
        raise SetupError(f"the id of a conversation is a text, and not empty, not {conversation_id!r}")
    try:
        conversation_id.encode()
    except UnicodeEncodeError:
        raise SetupError(f"the id {conversation_id!r} of a conversation is no valid text") from None
    return conversation_id


def checked_time(before: object) -> None:
    """Raises `SetupError` for what is no time in seconds: a date would be compared as text, and all is before it."""
    if not isinstance(before, int | float) or isinstance(before, bool) or math.isnan(before):
        raise SetupError(f"a time is seconds since the epoch, as time.time() gives them, not {before!r}")


def checked_page(prefix: Any, after: Any, limit: Any) -> int:
    """The number of entries of a page, -1 for all."""
    for name, text in (("prefix", prefix), ("after", after)):
        if not isinstance(text, str):
            raise SetupError(f"{name} is the text of an id, or of its beginning, not {text!r}")
    options.whole("limit", limit, none="for all")
    return -1 if limit is None else int(limit)


def misplaced(conversation_id: str, position: int, found: int) -> StateError:
    """The error for facts that do not continue the journal."""
    return StateError(
        f"the conversation {conversation_id!r} has {found} facts in the store, not {position}: somebody else wrote to "
        "it or deleted it meanwhile. Nothing was stored; load it and go on from there"
    )
