"""The kit that proves a store of journals: `check_store(MyStore)`."""

from __future__ import annotations

import inspect
import secrets
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType

from toolsearch import StateError
from toolsearch.events.facts import Event, JudgedCall, ModelReplied, Noted, ToolReturned, UserSaid
from toolsearch.events.journal import read_events, stored
from toolsearch.protocols import InMemoryStore, JournalStore, LeasingStore
from toolsearch.support.checks import offers, shown
from toolsearch.support.json_types import JsonObject
from toolsearch.testing.interleaving import MOST_STOPS, StoppedThread
from toolsearch.testing.lease_checks import check_leases
from toolsearch.testing.promises import BrokenPromise, check_maker, guarded, require

__all__ = ["check_store"]

METHODS = ("append", "load", "delete", "list")

# Ids a program may choose: a store takes each for what it is, and none for a path, a pattern or a piece of a query.
IDS = (
    "ana/1", "ANA/1", "ana", "ana/", "../../ana", "..", ".", " ", "a b", "'; DROP TABLE facts; --", "%_\\*?[a]",
    "{}:{}", "é", "e\u0301", "天气🙂", "line\nbreak", "x" * 200,
)  # fmt: skip

# What models, users and tools say. Lone surrogates are replaced before a fact is stored; all the rest stays.
_EVENTS: tuple[Event, ...] = (
    UserSaid("Hello \ud800 🙂 — \u0000 \u2028 '; --", parts=({"type": "image", "data": [1, 2.5, None, True, ""]},)),
    ModelReplied("", calls=(JudgedCall("c1", "look", '{"what": "\\u0000"}', given={"what": ["a", {"b": {}}]}),)),
    ToolReturned("c1", "ok", "x" * 50_000, data={"deep": [[[{}]]], "large": 2**53, "small": -1e-9, "": " "}),
    Noted("check_store", {"$set": 1, "a.b": 2, "__proto__": 3}),
)

# What waits, or may: of the functions written in C that a store can call.
_WAITING_MODULES = frozenset({"_socket", "select", "_ssl", "sqlite3", "_sqlite3", "posix", "nt"})
_WAITING_FUNCTIONS = frozenset({("time", "sleep"), ("_io", "open"), ("io", "open")})
_FILES = frozenset({"FileIO", "BufferedReader", "BufferedWriter", "BufferedRandom", "TextIOWrapper"})
_HARMLESS = frozenset({"getpid", "fspath", "urandom"})

WRITERS, PLACES = 6, 12


def check_store(make: Callable[[], JournalStore]) -> None:
    """Raises `BrokenPromise`, saying which promise of `JournalStore` is broken and how to see it.

    `make` gives a store each time. It need not be empty: the ids used here begin with a random text, and what was
    written is deleted at the end.
    """
    check_maker("check_store", make, "a store")
    checks = (_keeps_order, _refuses_a_wrong_place, _keeps_copies, _keeps_what_was_said, _ignores_nothing)
    more = (_deletes, _takes_any_id, _lists, _lets_one_writer_win, _serves_many_threads, _is_honest_about_memory)
    with guarded("an ordinary call"):
        _has_the_methods(make())
    for check in (*checks, *more, check_leases):
        with guarded("an ordinary call"), _own_ids(make()) as (store, begin):
            check(store, begin)


@contextmanager
def _own_ids(store: JournalStore) -> Generator[tuple[JournalStore, str]]:
    """The store, and how the ids of one check begin; all of them are deleted when the check is over."""
    begin = f"check_store-{secrets.token_hex(6)}-"
    yield store, begin
    for conversation_id in list(store.list()):
        if conversation_id.startswith(begin):
            store.delete(conversation_id)


def _facts(*numbers: int) -> list[JsonObject]:
    return [stored(Noted("check_store", f"number {number}")) for number in numbers]


def _has_the_methods(store: object) -> None:
    for name in METHODS:
        method = getattr(store, name, None)
        require(callable(method), f"{shown(store)} has no {name}()", "JournalStore in toolsearch.protocols")
        promise = f"{name}() is async: a store is used from threads too, so its methods are plain functions"
        require(not inspect.iscoroutinefunction(method), promise, f"store.{name}(…)")


def _keeps_order(store: JournalStore, begin: str) -> None:
    one, other = f"{begin}one", f"{begin}other"
    promise = "an unknown conversation has facts"
    require(list(store.load(one)) == [], promise, f"store.load(an unknown id) gave {shown(store.load(one))}")
    store.append(one, 0, _facts(0, 1))
    store.append(other, 0, tuple(_facts(7)))
    store.append(one, 2, _facts(2))
    for conversation_id, wanted in ((one, _facts(0, 1, 2)), (other, _facts(7))):
        loaded = store.load(conversation_id)
        see = f"append at 0 and at 2, then load: it gave {shown(loaded)}"
        require(loaded == wanted, "the facts do not come back whole and in order", see)


def _refuses_a_wrong_place(store: JournalStore, begin: str) -> None:
    name, new = f"{begin}a", f"{begin}new"
    store.append(name, 0, _facts(0, 1))
    for conversation_id, length, positions in ((name, 2, (0, 1, 3)), (new, 0, (1, 5))):
        for position in positions:
            see = f"a journal of {length} facts, then store.append(id, {position}, facts)"
            try:
                store.append(conversation_id, position, _facts(8, 9))
            except StateError:
                continue
            except Exception as error:
                promise = f"a wrong position raises {type(error).__name__}, not StateError"
                raise BrokenPromise(promise, see) from error
            raise BrokenPromise("a wrong position is not refused: of two writers, one must fail with StateError", see)
    require(store.load(name) == _facts(0, 1), "a refused append stores something", "load() after it")
    require(not store.load(new), "a refused append stores something", "load() after it")
    require(new not in list(store.list()), "a refused append makes a conversation", "list() after it")


def _keeps_copies(store: JournalStore, begin: str) -> None:
    name = f"{begin}a"
    mine = dict(_facts(0)[0])
    facts = [mine]
    store.append(name, 0, facts)
    mine["note"] = "changed"
    facts.clear()
    promise = "changing a fact after append changes what is stored"
    require(store.load(name) == _facts(0), promise, 'append(id, 0, [fact]), then fact["note"] = …, then load(id)')
    loaded = store.load(name)
    loaded[0]["note"] = "changed too"
    loaded.clear()
    promise = "changing what load() gave changes what is stored"
    require(store.load(name) == _facts(0), promise, 'load(id)[0]["note"] = …, then load(id) again')


def _keeps_what_was_said(store: JournalStore, begin: str) -> None:
    for number, event in enumerate(_EVENTS):
        name = f"{begin}{number}"
        fact = stored(event)
        store.append(name, 0, [fact])
        loaded = store.load(name)
        see = f"append and load the stored form of a {type(event).__name__}: {shown(fact)} came back as {shown(loaded)}"
        require(loaded == [fact], "a fact does not come back as it was", see)
        require(read_events(loaded) == read_events([fact]), "a loaded fact cannot be read as an event", see)


def _ignores_nothing(store: JournalStore, begin: str) -> None:
    """An append of no facts."""
    name = f"{begin}a"
    store.append(name, 0, [])
    require(
        name not in list(store.list()), "an append of no facts makes a conversation", "append(id, 0, []), then list()"
    )
    store.append(name, 0, _facts(0))
    store.append(name, 1, [])
    loaded = store.load(name)
    require(
        loaded == _facts(0),
        "an append of no facts changes a journal",
        f"append(id, 1, []); load() gave {shown(loaded)}",
    )


def _deletes(store: JournalStore, begin: str) -> None:
    name = f"{begin}a"
    require(
        store.delete(name) is False, "delete() of an unknown conversation is not False", "store.delete(an unknown id)"
    )
    store.append(name, 0, _facts(0, 1))
    store.append(f"{begin}b", 0, _facts(7))
    require(store.delete(name) is True, "delete() of a conversation is not True", "append(…), then delete(id)")
    require(not store.load(name), "a deleted conversation has facts", "delete(id), then load(id)")
    require(name not in list(store.list()), "a deleted conversation is listed", "delete(id), then list()")
    require(
        store.load(f"{begin}b") == _facts(7), "delete() deletes another conversation too", "delete('a'), then load('b')"
    )
    try:
        store.append(name, 2, _facts(2))
    except StateError:
        pass
    else:
        raise BrokenPromise(
            "a writer does not notice that its conversation was deleted", "delete(id), then append(id, 2, …)"
        )
    store.append(name, 0, _facts(5))
    require(
        store.load(name) == _facts(5), "a deleted id cannot be used again", "delete(id), append(id, 0, …), load(id)"
    )


def _takes_any_id(store: JournalStore, begin: str) -> None:
    for number, name in enumerate(IDS):
        with guarded(f"the id {name!r}"):
            store.append(begin + name, 0, _facts(number))
    for number, name in enumerate(IDS):
        loaded = store.load(begin + name)
        promise = f"the conversation {name[:40]!r} is mixed up with another one, or lost"
        require(loaded == _facts(number), promise, f"append to each of {IDS!r}, then load: {shown(loaded)}")


def _lists(store: JournalStore, begin: str) -> None:
    names = [f"{begin}{number}" for number in range(5)]
    for name in names:
        store.append(name, 0, _facts(0))
        store.append(name, 1, _facts(1))
    listed = [each for each in store.list() if each.startswith(begin)]
    see = f"append to {len(names)} conversations, then list(): of those it gave {listed}"
    require(sorted(listed) == names, "list() does not give each id exactly once", see)


def _lets_one_writer_win(store: JournalStore, begin: str) -> None:
    """Stops a writer before each of its lines, while another one reads and writes at the same place."""
    for length in (0, 1):
        name = f"{begin}{length}"
        store.append(name, 0, _facts(*range(length)))
        alone = StoppedThread(partial(store.append, name, length, _facts(10, 11)), stop=-1)
        alone.meet(lambda: None)
        for stop in range(0, alone.lines, -(-alone.lines // MOST_STOPS) or 1):
            _let_two_meet(store, f"{name}-{stop}", length, stop)


def _let_two_meet(store: JournalStore, name: str, length: int, stop: int) -> None:
    """Lets two writers meet in a journal of so many facts, while the first of them is at its line `stop`."""
    before, mine, others = _facts(*range(length)), _facts(10, 11), _facts(20, 21)
    store.append(name, 0, before)
    seen: list[list[JsonObject]] = []

    def meanwhile() -> None:
        seen.append([*store.load(name)])
        store.append(name, length, others)

    stopped = StoppedThread(partial(store.append, name, length, mine), stop)
    error = stopped.meet(meanwhile)
    see = f"a writer stops in {stopped.place}; meanwhile another one appends at the same position"
    see = f"{see}; hold a lock from the look at the length to the end of the write, or use a transaction"
    for each in (stopped.error, error):
        if each is not None and not isinstance(each, StateError):
            raise BrokenPromise(f"used from several threads it raises {each!r}", see) from each
    won = [facts for facts, failed in ((mine, stopped.error), (others, error)) if failed is None]
    require(len(won) < 2, "of two writers at one position, both win", see)
    wanted = [*before, *(fact for facts in won for fact in facts)]
    loaded = store.load(name)
    require(loaded == wanted, "of two writers at one position, one leaves something that is lost or mixed", see)
    whole = (before, [*before, *mine])
    require(not seen or seen[0] in whole, "load() sees a part of an append", f"{see}. It saw {shown(seen)}")


def _serves_many_threads(store: JournalStore, begin: str) -> None:
    """Of several writers of one conversation exactly one has each place, and an append is stored whole."""
    shared = f"{begin}shared"
    won: list[tuple[int, int]] = []
    failures: list[BaseException] = []

    def work(writer: int) -> None:
        try:
            for place in range(PLACES):
                try:
                    store.append(shared, 2 * place, _facts(writer, writer))
                    won.append((place, writer))
                except StateError:
                    pass
                store.load(shared)
                store.append(f"{begin}own-{writer}", place, _facts(place))
        except BaseException as error:  # whatever it is, it is reported below
            failures.append(error)

    _at_once([partial(work, writer) for writer in range(WRITERS)])
    see = f"{WRITERS} threads that append to one conversation, each also to its own; hold a lock, or use a transaction"
    if failures:
        raise BrokenPromise(f"used from several threads it raises {failures[0]!r}", see) from failures[0]
    places = sorted(place for place, _ in won)
    require(len({*places}) == len(places), "of two writers at one position, both win", see)
    wanted = [fact for _, writer in sorted(won) for fact in _facts(writer, writer)]
    require(store.load(shared) == wanted, "used from several threads it loses, mixes or tears what was appended", see)
    for writer in range(WRITERS):
        own = store.load(f"{begin}own-{writer}")
        require(own == _facts(*range(PLACES)), "one conversation disturbs another in another thread", see)


def _at_once(functions: Sequence[Callable[[], None]]) -> None:
    """Runs functions in threads that take turns often, so that a race is seen."""
    threads = [threading.Thread(target=function) for function in functions]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
    finally:
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)


def _is_honest_about_memory(store: JournalStore, begin: str) -> None:
    """A store that says `in_memory` is called by async code without a thread, so nothing in it may wait."""
    candidate: object = store
    value: object = candidate.in_memory if offers(candidate, InMemoryStore) else False
    require(isinstance(value, bool), f"in_memory is {shown(value)}, not True or False", "store.in_memory")
    if not value:
        return
    waiting: list[str] = []

    def watch(_: FrameType, event: str, function: object) -> None:
        if event == "c_call" and _may_wait(function):
            waiting.append(getattr(function, "__qualname__", repr(function)))

    def use() -> None:
        sys.setprofile(watch)
        try:
            store.append(f"{begin}a", 0, _facts(0))
            store.load(f"{begin}a")
            store.delete(f"{begin}a")
            if offers(candidate, LeasingStore):
                candidate.lease(f"{begin}a", "one", 1.0)
                candidate.release(f"{begin}a", "one")
        finally:
            sys.setprofile(None)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    see = "in_memory = True makes arun call it without a thread; leave it out, or set it to False"
    require(not waiting, f"in_memory is True, but the store calls {waiting[0] if waiting else ''}, which may wait", see)


def _may_wait(function: object) -> bool:
    """Whether a function written in C sleeps, or reads or writes a file, a socket or a database."""
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)
    kind = type(owner)
    module = getattr(function, "__module__", None) or kind.__module__
    if name in _HARMLESS:
        return False
    return module in _WAITING_MODULES or (module, name) in _WAITING_FUNCTIONS or kind.__name__ in _FILES
