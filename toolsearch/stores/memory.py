"""Journals in memory, for tests and for programs that may lose them."""

from __future__ import annotations

import builtins
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch.stores.entries import (
    Leased,
    StoredConversation,
    check_id,
    check_lease,
    check_page,
    check_time,
    json_lines,
    wrong_position,
)
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject

__all__ = ["MemoryStore"]


@dataclass(slots=True)
class _Journal:
    facts: builtins.list[str]
    written_at: float


class MemoryStore:
    """Keeps the `most` conversations written last (None: all), each until nothing has been written to it for `seconds`.

    `clock` gives the seconds since the epoch. Safe to use from several threads.
    """

    def __init__(
        self, *, most: int | None = 1_000, seconds: float | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        checks.whole("most", most, none="for no bound")
        checks.number("seconds", seconds, "a number of seconds", none="for no bound")
        checks.function("clock", clock, "that gives seconds since the epoch")
        self._most, self._seconds, self._clock = most, seconds, clock
        self._journals: OrderedDict[str, _Journal] = OrderedDict()  # the one written last is last
        self._leases: dict[str, Leased] = {}
        self._lock = threading.Lock()

    def append(self, conversation_id: str, position: int, facts: Sequence[JsonObject]) -> None:
        """Adds facts, the first at `position`; raises `StateError` if the journal has another length."""
        check_id(conversation_id)
        lines = json_lines(conversation_id, facts)
        with self._lock:
            self._forget()
            journal = self._journals.get(conversation_id) or _Journal([], 0.0)
            if len(journal.facts) != position:
                raise wrong_position(conversation_id, position, len(journal.facts))
            if lines:
                journal.written_at = checks.time_of(self._clock)
                journal.facts += lines
                self._journals[conversation_id] = journal
                self._journals.move_to_end(conversation_id)
            while self._most is not None and len(self._journals) > self._most:
                self._journals.popitem(last=False)

    def load(self, conversation_id: str) -> builtins.list[dict[str, Any]]:
        """The facts in order; an empty list for an unknown conversation."""
        with self._lock:
            self._forget()
            journal = self._journals.get(check_id(conversation_id))
            lines = builtins.list(journal.facts) if journal else []
        return [json.loads(line) for line in lines]

    def lease(self, conversation_id: str, owner: str, seconds: float, *, instead_of: str = "") -> str:
        """Takes or renews the lease of a conversation; returns who has it now. See `LeasingStore`."""
        check_id(conversation_id)
        check_lease(owner, seconds)
        with self._lock:
            now, lease = time.monotonic(), self._leases.get(conversation_id)
            if lease is not None and lease.owner not in (owner, instead_of) and lease.holds(now):
                return lease.owner
            self._leases[conversation_id] = Leased(owner, now, seconds)
        return owner

    def release(self, conversation_id: str, owner: str) -> None:
        """Ends the lease of a conversation, if it is this owner's."""
        with self._lock:
            lease = self._leases.get(check_id(conversation_id))
            if lease is not None and lease.owner == owner:
                del self._leases[conversation_id]

    def delete(self, conversation_id: str) -> bool:
        """Deletes a conversation; returns whether there was one."""
        with self._lock:
            return self._journals.pop(check_id(conversation_id), None) is not None

    def expire(self, before: float) -> int:
        """Deletes the conversations last written before a time (seconds since the epoch); returns how many."""
        check_time(before)
        with self._lock:
            old = [each for each, journal in self._journals.items() if journal.written_at < before]
            for each in old:
                del self._journals[each]
            return len(old)

    def entries(
        self, prefix: str = "", *, after: str = "", limit: int | None = None
    ) -> builtins.list[StoredConversation]:
        """The conversations whose ids begin with `prefix` and come after `after`, ordered by id, `limit` at most."""
        most = check_page(prefix, after, limit)
        with self._lock:
            self._forget()
            ids = sorted(each for each in self._journals if each.startswith(prefix) and each > after)
            page = ids if most < 0 else ids[:most]
            return [StoredConversation(i, len(self._journals[i].facts), self._journals[i].written_at) for i in page]

    def list(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> builtins.list[str]:
        """The ids of `entries`."""
        return [entry.id for entry in self.entries(prefix, after=after, limit=limit)]

    def _forget(self) -> None:
        """Deletes what is too old; the oldest come first."""
        while self._seconds is not None and self._journals:
            oldest = next(iter(self._journals))
            if self._journals[oldest].written_at > checks.time_of(self._clock) - self._seconds:
                break
            del self._journals[oldest]

    def __repr__(self) -> str:
        return f"MemoryStore({len(self._journals)} conversations)"
