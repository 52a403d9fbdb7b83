"""The kit for stores: every store that ships passes it, and it names the promise that another one breaks."""

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolsearch import SetupError, StateError
from toolsearch.stores import MemoryStore, SqliteStore
from toolsearch.stores.recent import RecentJournals
from toolsearch.testing import BrokenPromise, check_store


class Plain:
    """A small honest store."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.lock = threading.Lock()

    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        lines = [json.dumps(fact) for fact in facts]
        with self.lock:
            journal = self.texts.get(conversation_id, [])
            if len(journal) != position:
                raise StateError("somebody else wrote")
            if lines:
                self.texts[conversation_id] = journal + lines

    def load(self, conversation_id: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.texts.get(conversation_id, [])]

    def delete(self, conversation_id: str) -> bool:
        with self.lock:
            return self.texts.pop(conversation_id, None) is not None

    def list(self) -> Any:
        return [*self.texts]


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Callable[[], SqliteStore]]:
    stores: list[SqliteStore] = []
    numbers = itertools.count()

    def make() -> SqliteStore:
        stores.append(SqliteStore(tmp_path / f"{next(numbers)}.db"))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


def test_the_stores_that_ship_keep_the_promises(sqlite: Callable[[], SqliteStore]) -> None:
    check_store(MemoryStore)
    check_store(lambda: RecentJournals(None, frozenset()))
    check_store(Plain)
    check_store(sqlite)


def test_a_store_in_use_keeps_what_it_has(sqlite: Callable[[], SqliteStore]) -> None:
    store = sqlite()
    store.append("ana/1", 0, [{"n": 1}])
    check_store(lambda: store)
    assert store.list() == ["ana/1"]
    assert store.load("ana/1") == [{"n": 1}]


class Incomplete:
    def append(self, conversation_id: str, position: int, facts: Any) -> None: ...
    def load(self, conversation_id: str) -> list[Any]:
        return []

    def delete(self, conversation_id: str) -> bool:
        return False


class Async(Plain):
    async def load(self, conversation_id: str) -> Any:  # type: ignore[override]
        return super().load(conversation_id)


class Reversing(Plain):
    def load(self, conversation_id: str) -> list[dict[str, Any]]:
        return super().load(conversation_id)[::-1]


class Inventing(Plain):
    def load(self, conversation_id: str) -> list[dict[str, Any]]:
        return super().load(conversation_id) or [{"v": 1}]


class LastWriterWins(Plain):
    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        self.texts[conversation_id] = self.texts.get(conversation_id, [])[:position] + [json.dumps(f) for f in facts]


class WrongError(Plain):
    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        if len(self.texts.get(conversation_id, [])) != position:
            raise ValueError("no")
        super().append(conversation_id, position, facts)


class StoringFirst(Plain):
    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        journal = self.texts.setdefault(conversation_id, [])
        at = len(journal)
        journal += [json.dumps(fact) for fact in facts]
        if at != position:
            raise StateError("too late")


class Touching(Plain):
    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        self.texts.setdefault(conversation_id, [])
        super().append(conversation_id, position, facts)


class Objects(Plain):
    """Keeps the very objects, and gives them back."""

    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        if len(self.texts.get(conversation_id, [])) != position:
            raise StateError("somebody else wrote")
        self.texts.setdefault(conversation_id, []).extend(facts)

    def load(self, conversation_id: str) -> Any:
        return [*self.texts.get(conversation_id, [])]


class Live(Plain):
    """Gives out what it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, Any] = {}

    def load(self, conversation_id: str) -> Any:
        known = self.given.setdefault(conversation_id, [])
        known += super().load(conversation_id)[len(known) :]
        return [*known]

    def delete(self, conversation_id: str) -> bool:
        self.given.pop(conversation_id, None)
        return super().delete(conversation_id)


class Ascii(Plain):
    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        super().append(conversation_id, position, json.loads(json.dumps(facts).replace("\\u0000", "")))


class Empties(Plain):
    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        super().append(conversation_id, position, facts)
        self.texts.setdefault(conversation_id, [])


class Silent(Plain):
    def delete(self, conversation_id: str) -> bool:
        super().delete(conversation_id)
        return True


class Unforgetting(Plain):
    def delete(self, conversation_id: str) -> bool:
        return conversation_id in self.texts


class Sweeping(Plain):
    def delete(self, conversation_id: str) -> bool:
        found = conversation_id in self.texts
        if found:
            for each in [each for each in self.texts if each[:-1] == conversation_id[:-1]]:
                del self.texts[each]
        return found


class Folding(Plain):
    """Ids in any case, as some file systems have them."""

    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        super().append(conversation_id.lower(), position, facts)

    def load(self, conversation_id: str) -> Any:
        return super().load(conversation_id.lower())


class Picky(Plain):
    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        if not conversation_id.isascii():
            raise ValueError("no such path")
        super().append(conversation_id, position, facts)


class Repeating(Plain):
    def list(self) -> Any:
        return [*self.texts, *self.texts]


class Racing(Plain):
    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        journal = self.texts.get(conversation_id, [])
        if len(journal) != position:
            raise StateError("somebody else wrote")
        time.sleep(0.0005)
        if facts:
            self.texts[conversation_id] = journal + [json.dumps(fact) for fact in facts]


class Unlocked(Plain):
    """Has no lock, and is so quick that threads seldom meet in it."""

    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        lines = [json.dumps(fact) for fact in facts]
        journal = self.texts.get(conversation_id, [])
        if len(journal) != position:
            raise StateError("somebody else wrote")
        if lines:
            self.texts[conversation_id] = journal + lines


class LateLock(Plain):
    """Looks at the length before it takes its lock."""

    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        if len(self.texts.get(conversation_id, [])) != position:
            raise StateError("somebody else wrote")
        with self.lock:
            if facts:
                journal = self.texts.get(conversation_id, [])
                self.texts[conversation_id] = journal + [json.dumps(fact) for fact in facts]


class Torn(Plain):
    """Writes an append fact by fact, where readers see it."""

    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        lines = [json.dumps(fact) for fact in facts]
        with self.lock:
            if len(self.texts.get(conversation_id, [])) != position:
                raise StateError("somebody else wrote")
            for line in lines:
                self.texts.setdefault(conversation_id, []).append(line)


class Fragile(Plain):
    """Cannot be used by the thread that did not make it, as a connection of SQLite."""

    def __init__(self) -> None:
        super().__init__()
        self.owner = threading.get_ident()

    def load(self, conversation_id: str) -> Any:
        if threading.get_ident() != self.owner:
            raise RuntimeError("made in another thread")
        return super().load(conversation_id)


class Waiting(Plain):
    in_memory = True

    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        time.sleep(0.001)
        super().append(conversation_id, position, facts)


class Reading(Plain):
    in_memory = True

    def load(self, conversation_id: str) -> Any:
        Path(__file__).read_text("utf-8")
        return super().load(conversation_id)


class Vague(Plain):
    in_memory = "yes"


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (Incomplete, r"has no list\(\)"),
        (Async, r"load\(\) is async"),
        (Inventing, "an unknown conversation has facts"),
        (Reversing, "whole and in order"),
        (LastWriterWins, "a wrong position is not refused"),
        (WrongError, "a wrong position raises ValueError, not StateError"),
        (StoringFirst, "a refused append stores something"),
        (Touching, "a refused append makes a conversation"),
        (Objects, "changing a fact after append"),
        (Live, r"changing what load\(\) gave"),
        (Ascii, "a fact does not come back as it was"),
        (Empties, "an append of no facts makes a conversation"),
        (Silent, r"delete\(\) of an unknown conversation is not False"),
        (Unforgetting, "a deleted conversation has facts"),
        (Sweeping, "deletes another conversation too"),
        (Folding, "is mixed up with another one, or lost|raises StateError"),
        (Picky, "the id 'é' raises ValueError"),
        (Repeating, "does not give each id exactly once"),
        (Racing, "of two writers at one position, both win|loses, mixes or tears"),
        (Fragile, "used from several threads it raises RuntimeError"),
        (Waiting, "in_memory is True, but the store calls sleep, which may wait"),
        (Reading, "in_memory is True, but the store calls open, which may wait"),
        (Vague, "in_memory is 'yes', not True or False"),
    ],
)
def test_a_broken_promise_is_named(broken: Callable[[], Any], promise: str) -> None:
    with pytest.raises(BrokenPromise, match=promise):
        check_store(broken)


@pytest.mark.parametrize(
    ("racing", "promise"),
    [
        (Unlocked, "of two writers at one position, both win"),
        (LateLock, "of two writers at one position, both win"),
        (Torn, r"load\(\) sees a part of an append"),
    ],
)
def test_a_store_in_which_threads_seldom_meet_is_always_found_out(racing: Callable[[], Any], promise: str) -> None:
    for _ in range(20):
        with pytest.raises(BrokenPromise, match=promise):
            check_store(racing)


class Unlisted(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, Any] = {}

    def list(self) -> Any:
        return [self.given["output"] for _ in self.texts]


def test_the_function_that_raises_is_named() -> None:
    with pytest.raises(
        BrokenPromise, match=r"raises KeyError: 'output'. To see it: .*list\(\) in line \d+ of .*store_checks"
    ):
        check_store(Unlisted)
    with pytest.raises(BrokenPromise, match=r"called by the kit as `.*store\.list\(\)"):
        check_store(Unlisted)


def test_what_makes_no_store_is_refused() -> None:
    with pytest.raises(SetupError, match=r"check_store takes what makes a store, such as its class or a lambda, not"):
        check_store(Plain())  # type: ignore[arg-type]
