"""The journals of an agent without a store: those of the last conversations, in memory."""

from __future__ import annotations

import builtins
import threading
from collections import OrderedDict
from collections.abc import Container, Sequence
from typing import Any

from toolsearch.errors import StateError
from toolsearch.support.json_types import JsonObject

__all__ = ["RecentJournals"]


class RecentJournals:
    """The journals of the `most` conversations used last (None: all); those in `live`, being worked on, stay.

    Facts are kept as objects, not as text: nothing but the agent that made this store uses it.
    """

    in_memory = True

    def __init__(self, most: int | None, live: Container[str]) -> None:
        self._journals: OrderedDict[str, builtins.list[dict[str, Any]]] = OrderedDict()
        self._most, self._live = most, live
        self._lock = threading.Lock()

    def append(self, conversation_id: str, position: int, facts: Sequence[JsonObject]) -> None:
        with self._lock:
            journal = self._journals.get(conversation_id, [])
            if len(journal) != position:
                raise StateError(f"the conversation {conversation_id!r} was written by somebody else meanwhile")
            if not facts:
                return
            journal.extend(map(dict, facts))
            self._journals[conversation_id] = journal
            self._journals.move_to_end(conversation_id)
            if self._most is not None and (beyond := len(self._journals) - self._most) > 0:
                for idle in [each for each in self._journals if each not in self._live][:beyond]:
                    del self._journals[idle]

    def load(self, conversation_id: str) -> builtins.list[dict[str, Any]]:
        with self._lock:
            return [dict(fact) for fact in self._journals.get(conversation_id, ())]

    def delete(self, conversation_id: str) -> bool:
        with self._lock:
            return self._journals.pop(conversation_id, None) is not None

    def list(self) -> builtins.list[str]:
        with self._lock:
            return builtins.list(self._journals)
