"""The journal of one turn in its store, with the lease on it: what the drivers do to a store, with and without threads.

The methods that begin with `a` are for async code. A store that may wait is called from a thread there, and each call
is waited for, even if the task is cancelled: no call may overtake another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from toolsearch.events.facts import Event
from toolsearch.events.journal import read_events, stored
from toolsearch.loop.effects import Append
from toolsearch.loop.large_facts import are_large
from toolsearch.loop.leases import Lease
from toolsearch.protocols import InMemoryStore, JournalStore
from toolsearch.support.checks import offers
from toolsearch.support.threads import in_thread

__all__ = ["StoredJournal"]

T = TypeVar("T")


class StoredJournal:
    """The facts of a conversation in a store. With `is_new`, the store is not asked for earlier ones."""

    def __init__(self, store: JournalStore, conversation_id: str, lease_seconds: float | None, *, is_new: bool) -> None:
        self.lease = Lease(store, conversation_id, lease_seconds)
        self._store, self._id, self._is_new = store, conversation_id, is_new
        self._in_memory = offers(store, InMemoryStore) and bool(store.in_memory)

    def take_up(self) -> list[Event]:
        """Takes the lease and returns the facts so far. Raises `StateError` if another worker has it."""
        self.lease.take()
        return read_events([] if self._is_new else self._store.load(self._id))

    def append(self, wanted: Append) -> None:
        """Stores facts, even if Ctrl-C comes meanwhile."""
        self.lease.renew()
        facts = [stored(event) for event in wanted.events]
        try:
            self._store.append(self._id, wanted.position, facts)
        except KeyboardInterrupt:  # before the write, or after it
            if len(self._store.load(self._id)) == wanted.position:
                self._store.append(self._id, wanted.position, facts)
            raise

    async def atake_up(self) -> list[Event]:
        return await self._call(self.take_up)

    async def aappend(self, wanted: Append) -> None:
        await self._call(partial(self.append, wanted), is_large=are_large(wanted.events))

    async def arenew(self) -> None:
        await self._call(self.lease.renew)

    async def arelease(self) -> None:
        if self.lease.is_kept:
            await self._call(self.lease.release)

    async def _call(self, function: Callable[[], T], *, is_large: bool = False) -> T:
        if self._in_memory and not is_large:
            return function()  # a thread costs more than the write
        return await _finish(in_thread(function))


async def _finish(call: Awaitable[T]) -> T:
    """Waits until a call has ended, even if the task is cancelled meanwhile."""
    running = asyncio.ensure_future(call)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    result = running.result()
    if cancelled is not None:
        raise cancelled
    return result
