"""The embedded default: fielded BM25 over the tools' own words, incremental, with typo repair; needs no package.

The score is BM25F (Robertson, Zaragoza, Taylor 2004): weighted counts of a word over the fields, each divided by its
field's length beyond a pivot, are summed, saturated once, and multiplied by the word's rarity.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from importlib.util import find_spec
from itertools import pairwise

from toolsearch.catalog import Tool
from toolsearch.index import Matched, Scored
from toolsearch_indexes.document import FIELDS, texts
from toolsearch_indexes.postings import ArrayPostings, DictPostings
from toolsearch_indexes.spelling import Vocabulary
from toolsearch_indexes.text import STOP_WORDS, content_words, words

__all__ = ["KeywordIndex"]

K1 = 1.0  # how soon repetition stops counting
B = 0.5  # how much length beyond the pivot counts
REPAIR = 0.8  # what a guessed word counts beside a written one
QUERY_WORDS = 64
REPAIRS = 8
ARRAYS_FROM = (
    2_000  # tools; above, postings live in numpy arrays where numpy is installed: five times quicker at 10,000
)

_FIELD_NAMES = tuple(FIELDS)


class KeywordIndex:
    """Fielded BM25. Where the catalog knows less than a third of a query's words, a hit needs to hold two of them."""

    name = "keyword"

    def __init__(self) -> None:
        self._postings: DictPostings | ArrayPostings = DictPostings()
        self._vocabulary = Vocabulary()
        self._tools: dict[str, dict[str, int]] = {}  # id -> word -> the fields it is in, a bit each
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._tools)

    def add(self, tools: Sequence[Tool]) -> None:
        for tool in tools:
            fields, impacts = _document(tool)
            with self._lock:
                self.remove([tool.id])
                self._tools[tool.id] = fields
                for word in fields:
                    if word not in self._postings.words and word not in STOP_WORDS:
                        self._vocabulary.add(word)
                self._postings.add(tool.id, impacts)
                if isinstance(self._postings, DictPostings) and len(self._tools) > ARRAYS_FROM and find_spec("numpy"):
                    self._postings = self._in_arrays(self._postings)

    def remove(self, ids: Sequence[str]) -> None:
        with self._lock:
            for tool_id in ids:
                if (fields := self._tools.pop(tool_id, None)) is not None:
                    self._postings.remove(tool_id, fields)
                    for word in fields:
                        if word not in self._postings.words:
                            self._vocabulary.discard(word)

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        with self._lock:
            asked, wanted = self._read(query)
            weights = {word: share * self._rarity(word) for word, share in wanted.items()}
            least = 2 if len(wanted) * 3 < asked else 1
            hits = []
            for score, tool_id in self._postings.top(weights, limit, among) if weights else []:
                fields = self._tools[tool_id]
                held = [word for word in wanted if word in fields]
                if len(held) >= least:
                    hits.append(Scored(tool_id, score, tuple(Matched(w, _named(fields[w])) for w in held)))
            return hits

    def _read(self, query: str) -> tuple[int, dict[str, float]]:
        """How many words were asked, and the known ones to look for: 1, or `REPAIR` where the spelling was guessed."""
        vocabulary = self._postings.words
        asked = list(dict.fromkeys(content_words(query)))[:QUERY_WORDS]
        wanted = {word: 1.0 for word in asked if word in vocabulary}
        guesses = REPAIRS
        for at, word in enumerate(asked):
            if word in vocabulary or guesses == 0:
                continue
            # `white board` may be `whiteboard` here.
            joined = [before + after for before, after in pairwise(asked[max(0, at - 1) : at + 2])]
            known = [w for w in joined if w in vocabulary][:1]
            if not known:
                guesses -= 1
                known = self._vocabulary.repaired(word, lambda w: len(vocabulary[w]))
            for guess in known:
                wanted.setdefault(guess, REPAIR)
        return len(asked), wanted

    def _rarity(self, word: str) -> float:
        """Inverse document frequency, never negative; next to nothing for a word in every tool."""
        holders, tools = len(self._postings.words[word]), len(self._tools)
        return math.log(1 + (tools - holders + 0.5) / (holders + 0.5))

    def _in_arrays(self, postings: DictPostings) -> ArrayPostings:
        impacts: dict[str, dict[str, float]] = {tool_id: {} for tool_id in self._tools}
        for word, holders in postings.words.items():
            for tool_id, impact in holders.items():
                impacts[tool_id][word] = impact
        arrays = ArrayPostings()
        for tool_id, of_tool in impacts.items():
            arrays.add(tool_id, of_tool)
        return arrays


def _document(tool: Tool) -> tuple[dict[str, int], dict[str, float]]:
    """The words of a tool: which fields hold each, and its impact."""
    fields: dict[str, int] = {}
    counts: dict[str, float] = {}
    for bit, (name, text) in enumerate(texts(tool).items()):
        found = words(text)
        field = FIELDS[name]
        norm = 1 - B + B * max(len(found), field.pivot) / field.pivot
        for word, count in Counter(found).items():
            fields[word] = fields.get(word, 0) | 1 << bit
            counts[word] = counts.get(word, 0.0) + field.weight * count / norm
    return fields, {word: count * (K1 + 1) / (count + K1) for word, count in counts.items()}


def _named(bits: int) -> tuple[str, ...]:
    return tuple(name for at, name in enumerate(_FIELD_NAMES) if bits >> at & 1)
