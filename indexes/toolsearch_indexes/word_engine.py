"""What the engines for words share: one catalog's tools, in memory or in a folder that several processes use.

An engine says how a state of its index is read and how a change is committed. Here is decided when that happens: a tool
that has not changed is not written again, what another process has written is taken over before anything is searched or
changed, and an index that was lost is written anew.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from typing import Generic, NamedTuple, Protocol, TypeVar

from toolsearch.catalog import Tool
from toolsearch.errors import SetupError
from toolsearch.protocols import Scored
from toolsearch_indexes.bm25f import cut, impacts
from toolsearch_indexes.fitted_confidence import (
    Candidate,
    WordSignals,
    add_rank_signals,
    count_searched,
    shipped_fit,
    with_confidence,
)
from toolsearch_indexes.on_disk import Folder
from toolsearch_indexes.query import ReadQuery
from toolsearch_indexes.spelling import Vocabulary
from toolsearch_indexes.synonyms import read_synonyms

__all__ = ["LostIndex", "Ranked", "StoredWord", "WordEngine", "stored_words"]

log = logging.getLogger("toolsearch")

RELEARNT = 1_000  # tools: after more than this many have come, their words are read from the index when they are needed


class State(Protocol):
    """One state of an index, ready to be searched."""

    @property
    def digests(self) -> Mapping[str, str]:
        """Of each tool by its id the `searched_digest` it was stored with."""
        ...

    def words(self, letter: str) -> Iterable[str]:
        """The words that begin with a letter; those of removed tools may be among them."""
        ...


S = TypeVar("S", bound=State)


class LostIndex(Exception):
    """An engine cannot go on with the files it finds: the index has to be written anew."""


class Ranked(NamedTuple):
    """A tool as an engine ranks it, not yet judged by its evidence."""

    id: str
    score: float
    fields: Mapping[str, int]  # its words, or those that are looked for: the fields each is in, a bit a field
    name: Sequence[str]  # the words of its base name


class StoredWord(NamedTuple):
    """A word of a tool: the fields it is in, a bit a field, and what it adds to the tool's score."""

    fields: int
    impact: float


def stored_words(tool: Tool) -> dict[str, StoredWord]:
    """The words of a tool as engines keep them. Two long words may become one when they are cut."""
    fields, of_tool = impacts(tool)
    words: dict[str, StoredWord] = {}
    for word, impact in of_tool.items():
        short = cut(word)
        same = words.get(short, StoredWord(0, 0.0))
        words[short] = StoredWord(same.fields | fields[word], max(same.impact, impact))
    return words


class WordEngine(ABC, Generic[S]):
    """An index of words with the evidence and the repair of spelling that `keyword` has.

    `add`, `remove` and `keep_only` write only what differs from the current state. For any number of threads.
    """

    name: str

    def __init__(self, folder: Folder | None) -> None:
        self._folder = folder
        self._tools: dict[str, Tool] = {}  # those added in this process, to write a lost index anew
        self._writing = threading.RLock()
        self._state = self._load()
        self._vocabulary = Vocabulary(self._words_from)

    @abstractmethod
    def _load(self) -> S:
        """The state that the folder holds; an empty one if it holds none that can be used, or there is no folder."""

    @abstractmethod
    def _commit(self, stale: Mapping[str, Tool], gone: Sequence[str]) -> S:
        """Replaces the `stale` tools, which may be new, removes those that are `gone`, and returns the new state.

        The folder's lock is held. Raises `LostIndex` if the files there are of no use.
        """

    @abstractmethod
    def _empty(self) -> S:
        """Removes the files of the index, and returns the state of an empty one. The folder's lock is held."""

    def __repr__(self) -> str:
        folder = f", folder={str(self._folder.path)!r}" if self._folder is not None else ""
        return f"{type(self).__name__}(tools={len(self._state.digests)}{folder})"

    def __len__(self) -> int:
        return len(self._current().digests)

    def add(self, tools: Sequence[Tool]) -> None:
        read_synonyms()
        with self._writing:
            added = {tool.id: tool for tool in tools}
            self._write(added, ())
            self._tools |= added

    def remove(self, ids: Sequence[str]) -> None:
        with self._writing:
            for tool_id in ids:
                self._tools.pop(tool_id, None)
            self._write({}, ids)

    def keep_only(self, ids: Iterable[str]) -> None:
        """Removes all tools but these: a folder may still hold tools that have left the catalog since."""
        with self._writing:
            self._refresh()
            self.remove(sorted(self._state.digests.keys() - set(ids)))

    def _current(self) -> S:
        if self._folder is not None and self._folder.has_changed():
            with self._writing:
                before = self._state
                try:
                    if self._refresh() and self._tools and not self._state.digests:
                        self._write(dict(self._tools), ())  # it was lost, and this process can write it anew
                except (SetupError, OSError) as error:
                    self._state = before
                    log.warning("the index stays as it was read last: %s", error)
        return self._state

    def _refresh(self) -> bool:
        """Takes over what another process has written; returns whether there was anything."""
        if self._folder is None or not self._folder.has_changed():
            return False
        self._state = self._load()
        self._vocabulary = Vocabulary(self._words_from)
        return True

    def _words_from(self, letter: str) -> Iterable[str]:
        return self._state.words(letter)  # of the state that is current when a word is repaired

    def _write(self, added: dict[str, Tool], removed: Sequence[str]) -> None:
        if self._refresh():
            added = {**self._tools, **added}
        if not self._stale(added) and not any(tool_id in self._state.digests for tool_id in removed):
            return
        with self._folder.writing() if self._folder is not None else nullcontext():
            if self._refresh():  # another process has written while this one waited
                added = {**self._tools, **added}
            stale = self._stale(added)
            gone = [i for i in dict.fromkeys(removed) if i in self._state.digests and i not in stale]
            if not stale and not gone:
                return
            try:
                self._state = self._commit(stale, gone)
            except LostIndex as error:
                stale = {i: tool for i, tool in {**self._tools, **added}.items() if i not in removed}
                self._write_anew(stale, error)
            if len(stale) > RELEARNT:
                self._vocabulary = Vocabulary(self._words_from)
            else:
                self._vocabulary.add(word for tool in stale.values() for word in impacts(tool)[0])

    def _write_anew(self, tools: Mapping[str, Tool], lost: LostIndex) -> None:
        """Makes the index of these tools, after it was lost; the folder's lock is held."""
        place = "memory" if self._folder is None else str(self._folder.path)
        log.warning("the index in %r is made anew: %s", place, lost)
        self._state = self._empty()
        try:
            self._state = self._commit(tools, ())
        except LostIndex as error:
            raise SetupError(f"the index in {place!r} cannot be written: {error}") from error

    def _stale(self, tools: Mapping[str, Tool]) -> dict[str, Tool]:
        """Those of the tools that the current state does not hold as they are now."""
        return {i: tool for i, tool in tools.items() if self._state.digests.get(i) != tool.searched_digest}

    def _hits(
        self, read: ReadQuery, ranked: Iterable[Ranked], tools: int, limit: int, among: AbstractSet[str] | None
    ) -> list[Scored]:
        """Those of the ranked tools, best first, that have evidence, with their confidence."""
        signals = WordSignals(read, tools)
        ranked = list(ranked)
        candidates = [
            Candidate(
                each.id,
                each.score,
                read.matched(words, each.fields),
                signals.of(each.fields, each.name, each.score),
            )
            for each in ranked
            if (words := read.evidence(each.fields))
        ]
        searched = count_searched(tools, among)
        near = [each.id for each in ranked]
        return with_confidence(
            add_rank_signals(candidates, searched), limit, shipped_fit(self.name), searched, near=near
        )
