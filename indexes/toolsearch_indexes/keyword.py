"""The embedded default: fielded BM25 over the tools' own words, incremental, with typo repair; needs no package."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib.util import find_spec

from toolsearch.catalog import Tool
from toolsearch.protocols import Matched, Scored
from toolsearch_indexes.bm25f import impacts
from toolsearch_indexes.fitted_confidence import (
    DEPTH,
    Candidate,
    WordSignals,
    add_rank_signals,
    count_searched,
    shipped_fit,
    with_confidence,
)
from toolsearch_indexes.postings import ArrayPostings, DictPostings
from toolsearch_indexes.query import ReadQuery, read_query
from toolsearch_indexes.spelling import Vocabulary
from toolsearch_indexes.synonyms import read_synonyms
from toolsearch_indexes.text import name_words

__all__ = ["KeywordIndex", "WordHits"]

ARRAYS_FROM = 2_000  # tools: where numpy is installed, from here on in its arrays, five times quicker at 10,000


@dataclass(frozen=True, slots=True)
class WordHits:
    """The tools with evidence and their scores, best first, and the query as it was read."""

    query: ReadQuery
    scores: dict[str, float]
    near: list[str]  # the tools that hold a word of the query, best first


class KeywordIndex:
    """Fielded BM25 that returns only tools with evidence.

    Where the catalog knows no more than a third of a query's words, a hit must hold two of them, or one in its name
    that is more than a common action. With more than `arrays_from` tools the postings move into numpy arrays, if numpy
    is installed; the answers stay the same.
    """

    name = "keyword"
    tier = "words only; pip install 'toolsearch-kit[vector]' adds meaning (R@5 .75 -> .78 on public sets)"

    def __init__(self, *, arrays_from: int = ARRAYS_FROM) -> None:
        self._arrays_from = arrays_from
        self._postings: DictPostings | ArrayPostings = DictPostings()
        self._vocabulary = Vocabulary()
        self._tools: dict[str, dict[str, int]] = {}  # id -> word -> the fields it is in, a bit each
        self._names: dict[str, frozenset[str]] = {}  # the words of the base name
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(tools={len(self._tools)})"

    def __len__(self) -> int:
        return len(self._tools)

    def add(self, tools: Sequence[Tool]) -> None:
        read_synonyms()
        for tool in tools:
            fields, of_tool = impacts(tool)
            with self._lock:
                self.remove([tool.id])
                self._tools[tool.id], self._names[tool.id] = fields, name_words(tool.base_name)
                new = [word for word in fields if word not in self._postings.words]
                self._postings.add(tool.id, of_tool)
                self._vocabulary.add(new)
                if isinstance(self._postings, DictPostings) and len(self._tools) > self._arrays_from:
                    self._postings = self._to_arrays(self._postings) if find_spec("numpy") else self._postings

    def remove(self, ids: Sequence[str]) -> None:
        with self._lock:
            for tool_id in ids:
                self._names.pop(tool_id, None)
                if (fields := self._tools.pop(tool_id, None)) is not None:
                    self._postings.remove(tool_id, fields)
                    self._vocabulary.remove([word for word in fields if word not in self._postings.words])

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        with self._lock:
            hits = self.look_up(query, max(limit, DEPTH), among)
            candidates = self.candidates(hits, limit, among)
            fit, searched = shipped_fit(self.name), self._count_searched(among)
            return with_confidence(candidates, limit, fit, searched, near=hits.near)

    def look_up(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> WordHits:
        """As `search`, for an index that blends these scores with others."""
        with self._lock:
            tools = self._tools
            searched = self._count_searched(among)
            read = read_query(query, self._holders, len(tools), self._vocabulary, searched=searched)
            weights = read.finding
            top = self._postings.top(weights, limit, among, read.supporting) if weights else []
            near = [tool_id for _, tool_id in top]
            if read.is_known and not read.name:  # one word is enough then, and every tool with a score holds one
                return WordHits(read, {tool_id: score for score, tool_id in top}, near)
            return WordHits(read, {tool_id: score for score, tool_id in top if read.evidence(tools[tool_id])}, near)

    def candidates(self, hits: WordHits, limit: int, among: AbstractSet[str] | None) -> list[Candidate]:
        """The hits of `look_up` with their signals, and the first `limit` with the words that matched."""
        signals = self.signals(hits)
        candidates = [
            Candidate(tool_id, score, self.matched(hits.query, tool_id) if at < limit else (), signals(tool_id))
            for at, (tool_id, score) in enumerate(hits.scores.items())
        ]
        return add_rank_signals(candidates, self._count_searched(among))

    def signals(self, hits: WordHits) -> Callable[[str], dict[str, float]]:
        """A function from a tool's id to its signals; see `WordSignals`."""
        of, scores = WordSignals(hits.query, len(self._tools)).of, hits.scores.get
        tools, names, nothing = self._tools.get, self._names.get, frozenset[str]()
        return lambda tool_id: of(tools(tool_id, nothing), names(tool_id, nothing), scores(tool_id, 0.0))

    def matched(self, query: ReadQuery, tool_id: str) -> tuple[Matched, ...]:
        """The words of the query that a tool holds; empty if the tool is gone."""
        fields = self._tools.get(tool_id, {})
        return query.matched([word for word in query.wanted if word in fields], fields)

    def holds_any(self, tool_id: str, words: Sequence[str]) -> bool:
        """Whether a tool that is still there holds any of these words."""
        return not self._tools.get(tool_id, {}).keys().isdisjoint(words)

    def _count_searched(self, among: AbstractSet[str] | None) -> int:
        return count_searched(len(self._tools), among)

    def _holders(self, word: str) -> int:
        return len(self._postings.words.get(word, ()))

    def _to_arrays(self, postings: DictPostings) -> ArrayPostings:
        gathered: dict[str, dict[str, float]] = {tool_id: {} for tool_id in self._tools}
        for word, holders in postings.words.items():
            for tool_id, impact in holders.items():
                gathered[tool_id][word] = impact
        arrays = ArrayPostings()
        for tool_id, of_tool in gathered.items():
            arrays.add(tool_id, of_tool)
        return arrays
