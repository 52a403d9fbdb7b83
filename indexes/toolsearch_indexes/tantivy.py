"""The tantivy engine, for catalogs above some 50,000 tools: the words and weights of `keyword`, searched by Rust.

Tantivy cannot store the weight of a word, and its own BM25 over fields ranks worse than one score over all of them. So
the weight of a word (`toolsearch_indexes.bm25f`) chooses the field it is put in, one of `LEVELS` (quantised impacts:
Anh and Moffat 2001). A query asks for its words on each level, with the largest weight there is on that level. The
score of a hit is therefore an upper bound of the tool's score; the weights themselves are read for as many tools as may
be among the best.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple

from toolsearch.catalog import Tool
from toolsearch.errors import MissingExtra, SetupError, ToolSearchError
from toolsearch.protocols import Scored
from toolsearch.support.text import clean
from toolsearch_indexes.bm25f import PEAK, recipe
from toolsearch_indexes.fitted_confidence import DEPTH, count_searched, name_of
from toolsearch_indexes.on_disk import Folder
from toolsearch_indexes.query import ReadQuery, read_query
from toolsearch_indexes.word_engine import LostIndex, Ranked, WordEngine, stored_words

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
SAME = 1e-4  # share of a score: what 32 bits and another order of adding can change
FEW = 200  # ids: up to this many are part of the query; with more, hits are asked for until enough of them are allowed
WRITER_BYTES = 15_000_000  # the least that tantivy takes, and what a few tools need
BULK_BYTES, BULK = 100_000_000, 1_000  # from so many tools on
DIGITS = 9
# What is stored: other names could not be read any more.
_ENGINE, _FILES = "tantivy", "index"  # in the mark of a folder; the folder in it with tantivy's files
_CHANGING = ("meta.json",)  # files that keep their name when they change
_MANAGED = ".managed.json"  # tantivy's own list of its files
_OWN = (_MANAGED, ".tantivy-meta.lock", ".tantivy-writer.lock")
_ID, _KEY, _NUMBER, _STORED = "id", "key", "number", "held"
_LEVEL = tuple(f"w{level}" for level in range(LEVELS))
_EVERY = ""  # an id that every document has in addition to its own
_SEPARATOR = "\x1f"  # between id and digest; a catalog cleans it out of ids


class TantivyIndex(WordEngine["_State"]):
    """Fielded BM25 by tantivy, with evidence and the repair of spelling as `keyword` has them.

    In memory, or in a folder that holds one catalog's tools from one run to the next: a tool that has not changed is
    not written again. Processes may share the folder; a writer waits up to `lock_seconds` for another writer, then
    raises `SetupError`. A folder that is damaged, or was written by another version, is written anew from the tools
    that are added.
    """

    name = "tantivy"

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, lock_seconds: float = 5) -> None:
        self._schema = _schema()
        self._filter: tuple[AbstractSet[str], Any] | None = None  # of the last search, for the next with the same set
        made_with = f"{FORMAT} {recipe()} {LEVELS}"
        super().__init__(
            None if folder is None else Folder(folder, _ENGINE, made_with, inside=_FILES, lock_seconds=lock_seconds)
        )

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        state = self._current()
        levels: dict[str, dict[int, int]] = {}  # word -> the levels that tools hold it on, and by how many

        def holders(word: str) -> int:
            if word not in levels:
                levels[word] = _levels(state.searcher, word)
            return state.holders(word, levels[word])

        tools = state.searcher.num_docs
        read = read_query(query, holders, tools, self._vocabulary, searched=count_searched(tools, among))
        if not read.finding or limit < 1 or (among is not None and not among):
            return []
        ranked = self._top(state, read, levels, max(limit, DEPTH), among)
        return self._hits(read, ranked, tools, limit, among)

    def _top(
        self,
        state: _State,
        read: ReadQuery,
        levels: Mapping[str, Mapping[int, int]],
        limit: int,
        among: AbstractSet[str] | None,
    ) -> list[Ranked]:
        """The best tools, best first, ties by id.

        A tool's score is read from the tool itself, in the order of the upper bounds, until the others cannot reach the
        first `limit` (threshold algorithm: Fagin, Lotem, Naor 2001).
        """
        weights = read.finding | read.supporting
        query = self._query(read.finding, levels)
        if read.support:
            query = tantivy.Query.boolean_query(
                [(tantivy.Occur.Must, query), (tantivy.Occur.Should, self._query(read.supporting, levels))]
            )
        if among is not None and len(among) <= FEW:
            query = self._filtered(query, among)
            among = None
        most = limit + SPARE
        if among is not None:  # so many that enough of them are allowed, if those are as good as the others
            most = most * 3 * state.searcher.num_docs // (2 * len(among)) + 1
        ranked: dict[str, Ranked] = {}
        best: list[float] = []  # the scores of the first `limit`, the last of them in front
        while True:
            hits = state.searcher.search(query, limit=most, count=False).hits
            candidates = _candidates(state, hits, among)
            for candidate in candidates[: limit + READ]:
                if len(best) == limit and best[0] > candidate.bound * (1 + SAME):
                    break
                if candidate.id not in ranked:
                    each = ranked[candidate.id] = _ranked(state, candidate, weights)
                    heappush(best, each.score)
                    if len(best) > limit:
                        heappop(best)
            else:
                last = candidates[limit + READ - 1].bound if len(candidates) >= limit + READ else 0.0
                if len(hits) == most and last <= hits[-1][0] * (1 + SAME):  # there may be better ones, or equal ones
                    most *= 4
                    continue
            return sorted(ranked.values(), key=lambda each: (-each.score, each.id))[:limit]

    def _query(self, weights: Mapping[str, float], levels: Mapping[str, Mapping[int, int]]) -> Any:
        parts = [
            _term(self._schema, level, word, weight * PEAK * (level + 1) / LEVELS)
            for word, weight in weights.items()
            for level in levels[word]
        ]
        return tantivy.Query.boolean_query(parts)

    def _filtered(self, query: Any, among: AbstractSet[str]) -> Any:
        kept = self._filter
        if kept is None or kept[0] is not among or not isinstance(among, frozenset):
            ids = sorted(i for i in among if i != _EVERY and clean(i) == i)  # a lone surrogate is in no index
            allowed = tantivy.Query.term_set_query(self._schema, _ID, ids)
            kept = self._filter = among, tantivy.Query.const_score_query(allowed, 0.0)
        must = tantivy.Occur.Must
        return tantivy.Query.boolean_query([(must, query), (must, kept[1])])

    def _load(self) -> _State:
        folder = self._folder
        if folder is None:
            return _State.of(tantivy.Index(self._schema))
        if (state := self._read(folder)) is not None:
            return state
        with folder.writing():
            if (state := self._read(folder)) is not None:  # another process has made it while this one waited
                return state
            return self._made_anew(folder)

    def _made_anew(self, folder: Folder) -> _State:
        folder.clear(more=[*_managed(folder), *_CHANGING, *_OWN])
        try:
            with _engine_errors():
                index = tantivy.Index(self._schema, path=str(folder.files))
                folder.sign(_files(folder), _CHANGING)
                return _State.of(index)
        except LostIndex as error:
            raise SetupError(f"the index in {str(folder.path)!r} cannot be written: {error}") from error

    def _empty(self) -> _State:
        return _State.of(tantivy.Index(self._schema)) if self._folder is None else self._made_anew(self._folder)

    def _read(self, folder: Folder) -> _State | None:
        """What the folder holds, if it can be read."""
        if folder.load(contents=False) is None:
            return None
        try:
            with _engine_errors():
                return _State.of(tantivy.Index.open(str(folder.files)))
        except LostIndex as error:
            log.warning("the index in %r is made anew: %s", str(folder.path), error)
            return None

    def _commit(self, stale: Mapping[str, Tool], gone: Sequence[str]) -> _State:
        state = self._state
        documents = [_document(tool) for tool in stale.values()]  # before anything is changed
        with _engine_errors():
            _write(state.index, [*gone, *(i for i in stale if i in state.digests)], documents)
            if self._folder is not None:
                self._folder.sign(_files(self._folder), _CHANGING)
            return state.after(stale, gone)


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
        keys = searcher.terms_with_prefix(_KEY, "", filter_query=tantivy.Query.all_query(), limit=None)
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
        if not levels or self.searcher.doc_freq(_ID, _EVERY) == self.searcher.num_docs:
            return sum(levels.values())
        terms = (_term(self.index.schema, level, word, 1.0) for level in levels)
        count: int = self.searcher.search(tantivy.Query.boolean_query(list(terms)), limit=1, count=True).count
        return count

    def words(self, letter: str) -> set[str]:
        """The words that begin with a letter; those of removed tools may be among them."""
        return {word for name in _LEVEL for word, _ in self.searcher.terms_with_prefix(name, letter)}


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    for name in (_ID, _KEY, *_LEVEL):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field(_NUMBER, fast=True)
    builder.add_bytes_field(_STORED, stored=True)
    return builder.build()


def _write(index: Any, gone: Iterable[str], documents: Sequence[Any]) -> None:
    writer = index.writer(BULK_BYTES if len(documents) >= BULK else WRITER_BYTES, 1)
    try:
        writer.garbage_collect_files()  # what a killed process has left: the same names are given again
        for tool_id in gone:
            writer.delete_documents_by_term(_ID, tool_id)
        for document in documents:
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
    finally:
        del writer  # it has tantivy's lock, and the traceback of an error would keep it


@contextmanager
def _engine_errors() -> Generator[None]:
    """Turns whatever tantivy raises, a panic of Rust too, into a `LostIndex`."""
    try:
        yield
    except (ToolSearchError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise LostIndex(f"{type(error).__name__}: {error}") from error


def _managed(folder: Folder) -> set[str]:
    """The files that tantivy has written, or was about to write, as it lists them itself before it does."""
    try:
        names = json.loads((folder.files / _MANAGED).read_bytes())
    except (OSError, ValueError, RecursionError):
        return set()
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _files(folder: Folder) -> list[str]:
    """The files that make the index, as tantivy has left them."""
    names = sorted({*_managed(folder), *_CHANGING})
    return [name for name in names if not name.startswith(".") and (folder.files / name).is_file()]


def _document(tool: Tool) -> Any:
    words = stored_words(tool)
    document = tantivy.Document()
    document.add_text(_ID, tool.id)
    document.add_text(_ID, _EVERY)
    document.add_text(_KEY, tool.id + _SEPARATOR + tool.searched_digest)
    document.add_unsigned(_NUMBER, _number(tool.id))
    lines = "".join(f"\n{word}\t{fields}\t{impact!r}" for word, (fields, impact) in words.items())
    document.add_bytes(_STORED, f"{lines}\n".encode())
    for word, stored in words.items():
        document.add_text(_LEVEL[min(LEVELS - 1, int(stored.impact / PEAK * LEVELS))], word)
    return document


class _Candidate(NamedTuple):
    """A tool that tantivy found: what its score is at most, and where its document is."""

    bound: float
    id: str
    address: Any


def _candidates(state: _State, hits: Sequence[Any], among: AbstractSet[str] | None) -> list[_Candidate]:
    """The hits that may be seen, by their upper bound, ties by id."""
    numbers = state.searcher.fast_field_values(_NUMBER, [address for _, address in hits])
    candidates = []
    for (bound, address), number in zip(hits, numbers, strict=True):
        tool_id = state.ids.get(number)
        if tool_id is not None and (among is None or tool_id in among):
            candidates.append(_Candidate(bound, tool_id, address))
    return sorted(candidates, key=lambda each: (-round(each.bound, 4), each.id))


def _ranked(state: _State, candidate: _Candidate, weights: Mapping[str, float]) -> Ranked:
    """A candidate with its score and words, read from the lines stored with the tool."""
    lines = state.searcher.doc(candidate.address).get_first(_STORED).decode()
    fields: dict[str, int] = {}
    scores: list[float] = []
    for word, weight in weights.items():
        if (at := lines.find(f"\n{word}\t")) >= 0:
            _, bits, impact = lines[at + 1 : lines.index("\n", at + 1)].split("\t")
            fields[word] = int(bits)
            scores.append(weight * float(impact))
    return Ranked(candidate.id, round(sum(scores), DIGITS), fields, name_of(_name_terms(lines)))


def _term(schema: Any, level: int, word: str, score: float) -> tuple[Any, Any]:
    """The part of a query that gives a score to tools that hold a word on a level."""
    term = tantivy.Query.term_query(schema, _LEVEL[level], word, "basic")
    return tantivy.Occur.Should, tantivy.Query.const_score_query(term, score)


def _levels(searcher: Any, word: str) -> dict[int, int]:
    """The levels that tools hold a word on, and by how many; removed tools are counted until they are merged away."""
    return {at: tools for at, name in enumerate(_LEVEL) if (tools := searcher.doc_freq(name, word))}


def _name_terms(lines: str) -> list[str]:
    """The terms for names that a tool holds."""
    return ["=" + line.partition("\t")[0] for line in lines.split("\n=")[1:]]


def _number(tool_id: str) -> int:
    """An id as a number that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(tool_id.encode("utf-8", "replace"), digest_size=8).digest(), "big")
