"""The journals of an agent without a store: those of the last conversations, in memory."""

from __future__ import annotations

import builtins
import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Sequence
from itertools import takewhile
from time import monotonic
from typing import Any, TypeAlias

from toolsearch.errors import StateError
from toolsearch.support.json_types import JsonObject

__all__ = ["RecentJournals"]

Facts: TypeAlias = list[dict[str, Any]]


class RecentJournals:
    """The journals of the `most` conversations used last (None: all), each until it was not used for `seconds`.

    Those in `live`, being worked on, stay. `left` is called with the id and the facts of each conversation that leaves,
    and whether it was evicted or deleted. Facts are kept as objects, not as text: nothing but the agent that made this
    store uses it.
    """

    in_memory = True

    def __init__(
        self,
        most: int | None,
        live: Container[str],
        seconds: float | None = None,
        left: Callable[[str, Facts, bool], None] | None = None,
    ) -> None:
        self._journals: OrderedDict[str, Facts] = OrderedDict()  # the most recently used last
        self._used: dict[str, float] = {}  # when each was used last
        self._most, self._seconds = most, seconds
        self._live = live
        self._left = left
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
            self._used[conversation_id] = monotonic()
            gone = self._evict(conversation_id)
        self._report(gone)

    def load(self, conversation_id: str) -> Facts:
        with self._lock:
            gone = self._evict(conversation_id)
            facts = [dict(fact) for fact in self._journals.get(conversation_id, ())]
        self._report(gone)
        return facts

    def delete(self, conversation_id: str) -> bool:
        """As other stores do; raises `StateError` for a conversation that is being worked on."""
        with self._lock:
            if conversation_id not in self._journals:
                return False
            if conversation_id in self._live:
                raise StateError(
                    f"conversation {conversation_id!r} is being worked on: wait for it, or cancel it first"
                )
            facts = self._drop(conversation_id)
        if self._left is not None:
            self._left(conversation_id, facts, False)
        return True

    def list(self) -> builtins.list[str]:
        with self._lock:
            gone = self._evict()
            ids = builtins.list(self._journals)
        self._report(gone)
        return ids

    def _drop(self, conversation_id: str) -> Facts:
        self._used.pop(conversation_id, None)
        return self._journals.pop(conversation_id)

    def _evict(self, current: str = "") -> Sequence[tuple[str, Facts]]:
        """Drops the conversations that are too old or too many, but never the `current` one or a live one."""
        gone: builtins.list[tuple[str, Facts]] = []
        if self._seconds is not None:
            least = monotonic() - self._seconds
            old = takewhile(lambda each: self._used[each] < least, builtins.list(self._journals))
            gone += [(each, self._drop(each)) for each in old if each != current and each not in self._live]
        if self._most is not None and (beyond := len(self._journals) - self._most) > 0:
            idle = [each for each in self._journals if each != current and each not in self._live]
            gone += [(each, self._drop(each)) for each in idle[:beyond]]
        return gone

    def _report(self, gone: Sequence[tuple[str, Facts]]) -> None:
        """Tells who is to know, outside the lock."""
        if self._left is not None:
            for conversation_id, facts in gone:
                self._left(conversation_id, facts, True)
