"""The part of `check_store` about leases: what a store promises that lets one worker at a time have a conversation."""

from __future__ import annotations

import inspect
import time
from functools import partial

from toolsearch.protocols import JournalStore, LeasingStore
from toolsearch.support.checks import offers, shown
from toolsearch.testing.interleaving import MOST_STOPS, StoppedThread
from toolsearch.testing.promises import BrokenPromise, require

__all__ = ["check_leases"]

LONG = 600.0  # seconds that no check takes
SHORT = 0.05
PATIENCE = 10.0  # seconds until a lease of `SHORT` must be over, however busy the machine is


def check_leases(store: JournalStore, begin: str) -> None:
    """Checks the leases of a store, if it has them."""
    methods = [name for name in ("lease", "release") if callable(getattr(store, name, None))]
    require(len(methods) != 1, f"{shown(store)} has {methods[0] if methods else ''}(), but not its counterpart")
    leasing: object = store
    if not offers(leasing, LeasingStore):
        return
    for name in methods:
        promise = f"{name}() is async: a store is used from threads too, so its methods are plain functions"
        require(not inspect.iscoroutinefunction(getattr(store, name)), promise, f"store.{name}(…)")
    _keeps_others_off(leasing, f"{begin}a", f"{begin}b")
    _ends_by_itself(leasing, f"{begin}c")
    _lets_one_worker_win(leasing, begin)
    held = f"{begin}held"
    leasing.lease(held, "one", LONG)
    require(not store.load(held) and held not in list(store.list()), "a lease makes a conversation", "lease, then list")
    leasing.release(held, "one")


def _keeps_others_off(store: LeasingStore, name: str, other: str) -> None:
    def asks(owner: str, wanted: str, promise: str, *, at: str = name, instead_of: str = "") -> None:
        see = f"store.lease(id, {owner!r}, seconds, instead_of={instead_of!r}); {promise}"
        got = store.lease(at, owner, LONG, instead_of=instead_of)
        require(got == wanted, f"lease() gave {shown(got)}, not {wanted!r}", see)

    asks("one", "one", "nobody had it")
    asks("one", "one", "the owner renews it")
    asks("two", "one", "'one' has it")
    asks("two", "two", "another conversation is free", at=other)
    asks("two", "one", "the lease of 'three', who does not have it, counts as over", instead_of="three")
    store.release(name, "two")
    asks("two", "one", "released by 'two', who does not have it")
    asks("two", "two", "the lease of 'one' counts as over", instead_of="one")
    store.release(name, "one")
    asks("one", "two", "released by 'one', who has lost it")
    store.release(name, "two")
    asks("one", "one", "released by its owner")
    store.release(name, "one")
    store.release(name, "one")  # as where the process that answers was slow
    store.release(other, "two")


def _ends_by_itself(store: LeasingStore, name: str) -> None:
    store.lease(name, "one", SHORT)
    until = time.monotonic() + PATIENCE
    while store.lease(name, "two", LONG) != "two":
        see = f"store.lease(id, 'one', {SHORT}); {PATIENCE:g} s later store.lease(id, 'two', …)"
        require(time.monotonic() < until, "a lease does not end when its time is over", see)
        time.sleep(SHORT)
    store.lease(name, "two", SHORT)  # renewed with a shorter time
    store.lease(name, "two", LONG)
    time.sleep(2 * SHORT)
    see = f"store.lease(id, 'two', {SHORT}), then store.lease(id, 'two', {LONG:g}); {2 * SHORT} s later another asks"
    require(store.lease(name, "one", LONG) == "two", "a lease that was renewed ends at its earlier time", see)
    store.release(name, "two")


def _lets_one_worker_win(store: LeasingStore, begin: str) -> None:
    """Stops a worker before each of its lines, while another one asks for the same lease."""
    alone = StoppedThread(partial(_ask, store, f"{begin}d", "one", {}), stop=-1)
    alone.meet(lambda: None)
    for stop in range(0, alone.lines, -(-alone.lines // MOST_STOPS) or 1):
        name, got = f"{begin}d-{stop}", dict[str, str]()
        first = StoppedThread(partial(_ask, store, name, "one", got), stop)
        error = first.meet(partial(_ask, store, name, "two", got)) or first.error
        see = f"a worker stops in {first.place}; meanwhile another one asks; hold a lock, or use a transaction"
        if error is not None:
            raise BrokenPromise(f"used from several threads it raises {error!r}", see) from error
        won = {owner for owner, holder in got.items() if holder == owner}
        require(len(won) == 1 and {*got.values()} == won, f"of two workers not exactly one has the lease: {got}", see)
        for owner in got:
            store.release(name, owner)


def _ask(store: LeasingStore, name: str, owner: str, got: dict[str, str]) -> None:
    got[owner] = store.lease(name, owner, LONG)
