"""Where journals live: a store keeps the facts of each conversation, in order, and gives them back.

memory      MemoryStore: in this process, bounded        sqlite    SqliteStore: one file, any number of processes
recent      the last conversations of one agent, for an agent without a store
entries     what a store reports about a conversation, and what both stores check and refuse

Any object with `append`, `load`, `delete` and `list` is a store; see `JournalStore` in `toolsearch.protocols`. What is
in a store is trusted: whoever can write to it can make an agent believe that a call was approved.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolsearch.stores.entries import StoredConversation

if TYPE_CHECKING:
    from toolsearch.stores.memory import MemoryStore
    from toolsearch.stores.sqlite import SqliteStore

__all__ = ["MemoryStore", "SqliteStore", "StoredConversation"]

# Each is imported where it is used: SQLite costs a program that does not use it nothing.
_LATER = {"MemoryStore": "memory", "SqliteStore": "sqlite"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
