"""Where journals live: a store keeps the facts of conversations, each at its place, and gives them back.

memory      MemoryStore: in this process, bounded        sqlite    SqliteStore: one file, any number of processes
recent      the last conversations of one agent, for an agent without a store
entries     what a store says of a conversation, and the checks all of them make

Any object with `append`, `load`, `delete` and `list` is one; see `JournalStore` in `toolsearch.protocols`. What is in
a store is trusted: whoever can write there can make an agent believe that a call was approved.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolsearch.stores.entries import StoredConversation

if TYPE_CHECKING:
    from toolsearch.stores.memory import MemoryStore
    from toolsearch.stores.sqlite import SqliteStore

__all__ = ["MemoryStore", "SqliteStore", "StoredConversation"]

_WHERE = {"MemoryStore": "memory", "SqliteStore": "sqlite"}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f"toolsearch.stores.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
