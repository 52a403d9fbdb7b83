"""The tantivy engine, for catalogs above some 50,000 tools: the words and weights of `keyword`, searched by Rust.

Tantivy cannot store what a word weighs, and its own BM25 over fields ranks worse than one score over all of them. So
the weight of a word (`toolsearch_indexes.impacts`) chooses the field it is put in, one of `LEVELS` (quantised impacts:
Anh and Moffat 2001), and a query asks for its words in each, with the most a word of the level weighs. So a hit's score
is what the tool's can be at most, and the weights themselves are read for as many as may be among the best.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from toolsearch.catalog import Tool
from toolsearch.errors import MissingExtra, SetupError
from toolsearch.protocols import Scored
from toolsearch.support.text import clean
from toolsearch_indexes.asked import read
from toolsearch_indexes.confidence import DEPTH, Candidate, WordSignals, answer, fitted, name_of, placed, reachable
from toolsearch_indexes.folders import Folder
from toolsearch_indexes.impacts import PEAK, cut, impacts, recipe
from toolsearch_indexes.spelling import Vocabulary

try:
    import tantivy
except ModuleNotFoundError:
    raise MissingExtra("the index 'tantivy'", "tantivy", "tantivy") from None

__all__ = ["TantivyIndex"]

log = logging.getLogger("toolsearch")

FORMAT = 1
LEVELS = 16
SPARE = 12  # hits beyond the limit that are asked for, because a level is not exact
READ = 300  # tools beyond the limit whose scores are read, where so many are equally good or nearly so
SAME = 1e-4  # of a score: what 32 bits and another order of adding can change
FEW = 200  # ids: so many are asked for; with more, hits are taken from the best on until enough are allowed
WRITER_BYTES = 15_000_000  # the least that tantivy takes, and what a few tools need
BULK_BYTES, BULK = 100_000_000, 1_000  # from so many tools on
DIGITS = 9
_LEVEL = tuple(f"w{level}" for level in range(LEVELS))
_FILES, _CHANGING = "index", ("meta.json",)
_EVERY = ""  # an id that every document has beside its own
_SEPARATOR = "\x1f"  # between id and digest; a catalog cleans it out of ids


class TantivyIndex:
    """Fielded BM25 by tantivy, with evidence and the repair of spelling as `keyword` has them.

    In memory, or in a folder that holds one catalog's tools from one run to the next: a tool that has not changed is
    not written again. Processes may share the folder; a writer waits for another for at most `lock_seconds`, then
    `SetupError` is raised. A folder that is damaged, or written by another version, is made anew from what is added.
    """

    name = "tantivy"

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, lock_seconds: float = 5) -> None:
        self._folder = (
            None
            if folder is None
            else Folder(folder, "tantivy", f"{FORMAT} {recipe()} {LEVELS}", inside=_FILES, lock_seconds=lock_seconds)
        )
        self._schema = _schema()
        self._tools: dict[str, Tool] = {}  # those added in this process, to make a lost index anew
        self._filter: tuple[AbstractSet[str], Any] | None = None  # of the last search, for the next with the same set
        self._writing = threading.RLock()
        self._state = self._opened()
        self._vocabulary = Vocabulary(self._known)

    def __len__(self) -> int:
        return len(self._current().digests)

    def add(self, tools: Sequence[Tool]) -> None:
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
        """Forgets all tools but these: what a folder still holds of tools that have left the catalog since."""
        with self._writing:
            self._refresh()
            self.remove(sorted(self._state.digests.keys() - set(ids)))

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        state = self._current()
        levels: dict[str, dict[int, int]] = {}  # of each word, the levels that tools hold it on, and by how many

        def holders(word: str) -> int:
            if word not in levels:
                levels[word] = _levels(state.searcher, word)
            return state.holders(word, levels[word])

        asked = read(query, holders, state.searcher.num_docs, self._vocabulary)
        if not asked.weights or limit < 1 or (among is not None and not among):
            return []
        enough = asked.enough
        say = WordSignals(asked, state.searcher.num_docs)
        found = []
        for score, tool_id, impacts_of, name in self._top(state, asked.all_weights, levels, max(limit, DEPTH), among):
            fields = {word: bits for word, (bits, _) in impacts_of.items()}
            if held := asked.evidence(fields, enough):
                signals = say.of(fields, name, score)
                found.append(Candidate(tool_id, score, asked.matched(held, fields), signals))
        searched = reachable(state.searcher.num_docs, among)
        return answer(placed(found, searched), limit, fitted(self.name), searched)

    def _top(
        self,
        state: _State,
        found: Mapping[str, float],
        levels: Mapping[str, Mapping[int, int]],
        limit: int,
        among: AbstractSet[str] | None,
    ) -> list[tuple[float, str, dict[str, tuple[int, float]], list[str]]]:
        """The best tools with their words and those of their names, best first, ties by id.

        A tool's score is read from the tool itself, in the order of what it can be at most, until the others cannot
        reach the first `limit` (threshold algorithm: Fagin, Lotem, Naor 2001).
        """
        query = self._query(found, levels)
        if among is not None and len(among) <= FEW:
            query = self._filtered(query, among)
            among = None
        most = limit + SPARE
        if among is not None:  # so many that enough are among them, if they are as good as others
            most = most * 3 * state.searcher.num_docs // (2 * len(among)) + 1
        scored: dict[str, tuple[float, str, dict[str, tuple[int, float]], list[str]]] = {}
        best: list[float] = []  # the scores of the first `limit`, the last of them in front
        while True:
            hits = state.searcher.search(query, limit=most, count=False).hits
            candidates = _candidates(state, hits, among)
            for bound, tool_id, address in candidates[: limit + READ]:
                if len(best) == limit and best[0] > bound * (1 + SAME):
                    break
                if tool_id not in scored:
                    told = state.searcher.doc(address).get_first("held").decode()
                    held = _held(told, found)
                    score = round(sum(found[word] * impact for word, (_, impact) in held.items()), DIGITS)
                    scored[tool_id] = score, tool_id, held, name_of(_names(told))
                    heappush(best, score)
                    if len(best) > limit:
                        heappop(best)
            else:
                last = candidates[limit + READ - 1][0] if len(candidates) >= limit + READ else 0.0
                if len(hits) == most and last <= hits[-1][0] * (1 + SAME):  # there may be better ones, or equal ones
                    most *= 4
                    continue
            return sorted(scored.values(), key=lambda each: (-each[0], each[1]))[:limit]

    def _query(self, found: Mapping[str, float], levels: Mapping[str, Mapping[int, int]]) -> Any:
        parts = [
            _term(self._schema, level, word, weight * PEAK * (level + 1) / LEVELS)
            for word, weight in found.items()
            for level in levels[word]
        ]
        return tantivy.Query.boolean_query(parts)

    def _filtered(self, query: Any, among: AbstractSet[str]) -> Any:
        kept = self._filter
        if kept is None or kept[0] is not among or not isinstance(among, frozenset):
            ids = sorted(i for i in among if i != _EVERY and clean(i) == i)  # a lone surrogate is in no index
            allowed = tantivy.Query.term_set_query(self._schema, "id", ids)
            kept = self._filter = among, tantivy.Query.const_score_query(allowed, 0.0)
        must = tantivy.Occur.Must
        return tantivy.Query.boolean_query([(must, query), (must, kept[1])])

    def _current(self) -> _State:
        if self._folder is not None and self._folder.changed():
            with self._writing:
                before = self._state
                try:
                    if self._refresh() and self._tools and not self._state.digests:
                        self._write(dict(self._tools), ())  # it was lost, and this process can make it anew
                except (SetupError, OSError) as error:
                    self._state = before
                    log.warning("the index stays as it was read last: %s", error)
        return self._state

    def _refresh(self) -> bool:
        """Takes over what another process has written; says whether it has."""
        if self._folder is None or not self._folder.changed():
            return False
        self._state = self._opened()
        self._vocabulary = Vocabulary(self._known)
        return True

    def _known(self, letter: str) -> Iterable[str]:
        return self._state.words(letter)  # of what is current when it is asked for

    def _opened(self) -> _State:
        folder = self._folder
        if folder is None:
            return _State.of(tantivy.Index(self._schema))
        if (state := self._stored(folder)) is not None:
            return state
        with folder.writing():
            if (state := self._stored(folder)) is not None:  # somebody has made it while this process waited
                return state
            folder.clear()
            made = tantivy.Index(self._schema, path=str(folder.files))
            folder.sign(_CHANGING)
            return _State.of(made)

    def _stored(self, folder: Folder) -> _State | None:
        """What the folder holds, if it can be read."""
        if folder.load(contents=False) is None:
            return None
        try:
            return _State.of(tantivy.Index.open(str(folder.files)))
        except (OSError, ValueError) as error:
            log.warning("the index in %r is made anew: %s", str(folder.path), error)
            return None

    def _write(self, added: dict[str, Tool], removed: Iterable[str]) -> None:
        if self._refresh():
            added = {**self._tools, **added}
        if not self._state.stale(added) and not any(i in self._state.digests for i in removed):
            return
        with self._folder.writing() if self._folder is not None else nullcontext():
            if self._refresh():  # somebody has written while this process waited
                added = {**self._tools, **added}
            state = self._state
            stale = state.stale(added)
            gone = [i for i in dict.fromkeys(removed) if i in state.digests and i not in stale]
            if stale or gone:
                documents = [_document(tool) for tool in stale.values()]  # before anything is changed
                _commit(state.index, [*gone, *(i for i in stale if i in state.digests)], documents)
                if self._folder is not None:
                    self._folder.sign(_CHANGING)
                self._state = state.after(stale, gone)
                if len(stale) > BULK:
                    self._vocabulary = Vocabulary(self._known)
                else:
                    self._vocabulary.add(word for tool in stale.values() for word in impacts(tool)[0])


@dataclass(frozen=True)
class _State:
    """One state of the index, ready to be searched; the maps are shared with later states."""

    index: Any
    searcher: Any
    digests: dict[str, str]  # by id
    ids: dict[int, str]  # by number

    @classmethod
    def of(cls, index: Any) -> _State:
        searcher = index.searcher()
        keys = searcher.terms_with_prefix("key", "", filter_query=tantivy.Query.all_query(), limit=None)
        digests = dict(key.split(_SEPARATOR, 1) for key, _ in keys)
        return cls(index, searcher, digests, {_number(tool_id): tool_id for tool_id in digests})

    def after(self, added: Mapping[str, Tool], removed: Iterable[str]) -> _State:
        self.index.reload()
        for tool_id, tool in added.items():
            self.digests[tool_id] = tool.searched_digest
            self.ids[_number(tool_id)] = tool_id
        for tool_id in removed:
            del self.digests[tool_id], self.ids[_number(tool_id)]
        return _State(self.index, self.index.searcher(), self.digests, self.ids)

    def holders(self, word: str, levels: Mapping[int, int]) -> int:
        """How many tools hold a word, `levels` being what `_levels` says of it, which may count removed ones."""
        if not levels or self.searcher.doc_freq("id", _EVERY) == self.searcher.num_docs:
            return sum(levels.values())
        terms = (_term(self.index.schema, level, word, 1.0) for level in levels)
        count: int = self.searcher.search(tantivy.Query.boolean_query(list(terms)), limit=1, count=True).count
        return count

    def words(self, letter: str) -> set[str]:
        """The words that begin with a letter; those of removed tools may be among them."""
        return {word for name in _LEVEL for word, _ in self.searcher.terms_with_prefix(name, letter)}

    def stale(self, tools: Mapping[str, Tool]) -> dict[str, Tool]:
        """Those of the tools that this state does not hold as they are."""
        return {i: tool for i, tool in tools.items() if self.digests.get(i) != tool.searched_digest}


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    for name in ("id", "key", *_LEVEL):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("number", fast=True)
    builder.add_bytes_field("held", stored=True)
    return builder.build()


def _commit(index: Any, gone: Iterable[str], documents: Sequence[Any]) -> None:
    writer = index.writer(BULK_BYTES if len(documents) >= BULK else WRITER_BYTES, 1)
    for tool_id in gone:
        writer.delete_documents_by_term("id", tool_id)
    for document in documents:
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()


def _document(tool: Tool) -> Any:
    fields, of_tool = impacts(tool)
    held: dict[str, tuple[int, float]] = {}
    for word, impact in of_tool.items():
        short = cut(word)  # two long words may be one when they are cut
        bits, most = held.get(short, (0, 0.0))
        held[short] = bits | fields[word], max(most, impact)
    document = tantivy.Document()
    document.add_text("id", tool.id)
    document.add_text("id", _EVERY)
    document.add_text("key", tool.id + _SEPARATOR + tool.searched_digest)
    document.add_unsigned("number", _number(tool.id))
    told = "".join(f"\n{word}\t{bits}\t{impact!r}" for word, (bits, impact) in held.items())
    document.add_bytes("held", f"{told}\n".encode())
    for word, (_, impact) in held.items():
        document.add_text(_LEVEL[min(LEVELS - 1, int(impact / PEAK * LEVELS))], word)
    return document


def _candidates(state: _State, hits: Sequence[Any], among: AbstractSet[str] | None) -> list[tuple[float, str, Any]]:
    """What each hit's score is at most, its id and address; of those that may be seen, best first, ties by id."""
    numbers = state.searcher.fast_field_values("number", [address for _, address in hits])
    found = []
    for (bound, address), number in zip(hits, numbers, strict=True):
        tool_id = state.ids.get(number)
        if tool_id is not None and (among is None or tool_id in among):
            found.append((bound, tool_id, address))
    return sorted(found, key=lambda each: (-round(each[0], 4), each[1]))


def _term(schema: Any, level: int, word: str, score: float) -> tuple[Any, Any]:
    """The part of a query that gives a score to tools that hold a word on a level."""
    term = tantivy.Query.term_query(schema, _LEVEL[level], word, "basic")
    return tantivy.Occur.Should, tantivy.Query.const_score_query(term, score)


def _levels(searcher: Any, word: str) -> dict[int, int]:
    """The levels that tools hold a word on, and by how many; removed tools are counted until they are merged away."""
    return {at: tools for at, name in enumerate(_LEVEL) if (tools := searcher.doc_freq(name, word))}


def _held(told: str, words: Iterable[str]) -> dict[str, tuple[int, float]]:
    """Of these words those that a tool holds: the fields they are in, a bit each, and their impact."""
    found = {}
    for word in words:
        if (at := told.find(f"\n{word}\t")) >= 0:
            _, bits, impact = told[at + 1 : told.index("\n", at + 1)].split("\t")
            found[word] = int(bits), float(impact)
    return found


def _names(told: str) -> list[str]:
    """The terms for names that a tool holds."""
    return ["=" + line.partition("\t")[0] for line in told.split("\n=")[1:]]


def _number(tool_id: str) -> int:
    """An id as a number that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(tool_id.encode("utf-8", "replace"), digest_size=8).digest(), "big")
