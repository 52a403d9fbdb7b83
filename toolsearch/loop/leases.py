"""The lease of a turn: while one worker has it, no other one works on the conversation.

A store keeps it, with its owner and when it ends; see `LeasingStore`. It is taken before the journal is read, renewed
while the turn goes on, and released at its end. If its owner dies, it is free at once where that can be told (see
`support.processes`), and otherwise when its time is over. What a journal holds does not depend on it: of two writers at
one place, one always fails.
"""

from __future__ import annotations

import logging
import math
import secrets
import time

from toolsearch.errors import StateError
from toolsearch.protocols import JournalStore, LeasingStore
from toolsearch.support.checks import offers
from toolsearch.support.processes import Process, this_process

__all__ = ["Lease"]

log = logging.getLogger("toolsearch")

RENEWALS = 3  # so many times within its time: one or two may fail

_HELD: set[str] = set()  # the owners in this process whose turns go on


class Lease:
    """The lease of one turn. Without `seconds`, or with a store that has no leases, nothing is taken."""

    def __init__(self, store: JournalStore, conversation_id: str, seconds: float | None) -> None:
        self._store: LeasingStore | None = store if seconds is not None and offers(store, LeasingStore) else None
        self._id, self._seconds = conversation_id, seconds or 0.0
        self._owner = f"{this_process()}/{secrets.token_hex(8)}" if self._store is not None else ""
        self._may_have = False
        self._renew_at = math.inf  # on the monotonic clock
        self._taken_by = ""  # another owner, once the lease is lost

    def take(self) -> None:
        """Raises `StateError` if another worker has it."""
        if self._store is None:
            return
        _HELD.add(self._owner)
        self._may_have = True  # even if the store raises: it may do so after the write
        try:
            holder = self._store.lease(self._id, self._owner, self._seconds)
            if holder != self._owner and _is_over(holder):
                holder = self._store.lease(self._id, self._owner, self._seconds, instead_of=holder)
        except StateError:  # which says that nothing was written
            self._may_have = False
            raise
        if holder != self._owner:
            self._may_have = False
            raise StateError(
                f"conversation {self._id!r} is being worked on by another worker{_named(holder)}: wait until it has "
                f"ended. If that worker has died, the conversation is free again after its lease, at most "
                f"{self._seconds:g} s if it has the same lease_seconds"
            )
        self._renew_at = time.monotonic() + self._seconds / RENEWALS

    def renew(self) -> None:
        """Renews the lease if it is time to. Raises `StateError` if it was lost: another worker goes on then."""
        now = time.monotonic()
        if now < self._renew_at and not self._taken_by:
            return
        if self._store is not None and not self._taken_by:
            self._renew_at = now + self._seconds / RENEWALS
            try:
                holder = self._store.lease(self._id, self._owner, self._seconds)
            except Exception:
                log.warning("the lease of conversation %r could not be renewed", self._id, exc_info=True)
                return
            self._taken_by = holder if holder != self._owner else ""
        if self._taken_by:
            raise StateError(
                f"conversation {self._id!r} was taken over by another worker{_named(self._taken_by)}, because this one "
                f"did not renew its lease for {self._seconds:g} s. Nothing more is stored here; load the conversation "
                "and go on from there, or raise lease_seconds"
            )

    @property
    def is_kept(self) -> bool:
        """Whether there is a store that keeps it."""
        return self._store is not None

    @property
    def seconds_left(self) -> float:
        """The seconds until it has to be renewed; infinite if it has not."""
        return max(0.0, self._renew_at - time.monotonic())

    def release(self) -> None:
        """Gives the lease back. A store that fails does not keep the turn from ending."""
        if self._store is None:
            return
        _HELD.discard(self._owner)
        if self._may_have and not self._taken_by:
            try:
                self._store.release(self._id, self._owner)
            except Exception:
                log.warning("the lease of conversation %r could not be released", self._id, exc_info=True)


def _is_over(owner: str) -> bool:
    """Whether it is certain that the turn of an owner goes on no more."""
    process = Process.read(owner.rpartition("/")[0])
    if process is None:
        return False
    return owner not in _HELD if process == this_process() else process.has_ended()


def _named(owner: str) -> str:
    process = Process.read(owner.rpartition("/")[0])
    return "" if process is None else f" (process {process.pid} on {process.host!r})"
