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
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise

from toolsearch.catalog import Tool
from toolsearch.index import Matched, Scored
from toolsearch_indexes.document import FIELDS, texts
from toolsearch_indexes.postings import ArrayPostings, DictPostings
from toolsearch_indexes.spelling import Vocabulary
from toolsearch_indexes.stem import stem
from toolsearch_indexes.text import (
    ACTIONS,
    FOREIGN_FUNCTION_WORDS,
    LABELS,
    STOP_WORDS,
    content_words,
    is_unspaced,
    joined_words,
    name_words,
    spellings,
    words,
)

__all__ = ["KeywordIndex"]

K1 = 1.0  # how soon repetition stops counting
B = 0.5  # how much length beyond the pivot counts
REPEATS = 3  # a word said more often in one field says no more: stuffing wins nothing
STUFFED = 0.25  # what the prose of a tool that is flagged for stuffing counts
REPAIR = 0.8  # what a guessed word counts beside a written one
QUERY_WORDS = 64
REPAIRS = 8
ARRAYS_FROM = 2_000  # tools: where numpy is installed, from here on in its arrays, five times quicker at 10,000

_FIELD_NAMES = tuple(FIELDS)
_IN_NAME = 1 << _FIELD_NAMES.index("name")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query as the index reads it."""

    words: list[str]
    wanted: dict[str, float]  # the words to look for: 1, or `REPAIR` where the spelling was guessed
    typed: dict[str, str]  # those words as the query spells them
    all_known: bool  # whether they stand for all of its words


class KeywordIndex:
    """Fielded BM25, with evidence asked for.

    Where the catalog knows no more than a third of a query's words, a hit holds two of them, or one in its name that
    is no mere action. With more than `arrays_from` tools the postings move into numpy arrays, if numpy is installed;
    the answers stay the same.
    """

    name = "keyword"

    def __init__(self, *, arrays_from: int = ARRAYS_FROM) -> None:
        self._arrays_from = arrays_from
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
                if isinstance(self._postings, DictPostings) and len(self._tools) > self._arrays_from:
                    self._postings = self._in_arrays(self._postings) if find_spec("numpy") else self._postings

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
            asked = self._read(query)
            wanted = asked.wanted
            # Of the character pairs of an unspaced script most lie across words or in endings: three count as one.
            telling = sum(
                1 / 3 if is_unspaced(word) else 1
                for word in asked.words
                if word in wanted or word not in FOREIGN_FUNCTION_WORDS
            )
            # A word whose spelling was guessed is less known than one spelled out.
            known = sum(1.0 if share == 1 else 0.75 for share in wanted.values())
            weights = {word: share * self._rarity(word) for word, share in wanted.items()}
            if wanted and asked.all_known and (name := _name_term(frozenset(wanted))) in self._postings.words:
                weights[name] = sum(weights.values())
            hits = []
            for score, tool_id in self._postings.top(weights, limit, among) if weights else []:
                fields = self._tools[tool_id]
                held = [word for word in wanted if word in fields]
                if len(held) > 1 or known * 3 > telling or _names_its_object(held, fields):
                    matched = tuple(Matched(asked.typed.get(w, w), _fields_of(fields[w])) for w in held)
                    hits.append(Scored(tool_id, score, matched))
            return hits

    def _read(self, query: str) -> _Asked:
        vocabulary = self._postings.words
        asked = list(dict.fromkeys(content_words(query)))[:QUERY_WORDS]
        wanted = {word: 1.0 for word in asked if word in vocabulary and not self._says_nothing(word)}
        spelled = spellings(query)
        typed = {stem(word): word for word in reversed(spelled)}
        unknown = [word for word in asked if word not in vocabulary]
        if not unknown:
            return _Asked(asked, wanted, typed, all_known=True)
        joined: dict[str, str] = {}  # `white board` may be `whiteboard` here
        for before, after in pairwise(spelled[:QUERY_WORDS]):
            for word in (stem(before + after), before + after):
                if word in vocabulary:
                    joined.setdefault(stem(before), word)
                    joined.setdefault(stem(after), word)
        left = 0
        for at, word in enumerate(unknown):
            known = [joined[word]] if word in joined else []
            if not known and at < REPAIRS:
                known = self._vocabulary.repaired(word, lambda w: len(vocabulary[w]), typed.get(word, ""))
            for guess in known:
                wanted.setdefault(guess, REPAIR)
                typed.setdefault(guess, typed.get(word, word))
            left += not known
        return _Asked(asked, wanted, typed, all_known=left == 0)

    def _says_nothing(self, word: str) -> bool:
        """Whether a word is one that catalogs put before every name, and this one does."""
        return word in LABELS and 2 < len(self._tools) < 2 * len(self._postings.words[word])

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
    stuffed = "keyword-stuffing" in tool.flags
    for bit, (name, text) in enumerate(texts(tool).items()):
        found = words(text)
        field = FIELDS[name]
        weight = field.weight * (STUFFED if stuffed and name != "name" else 1)
        norm = 1 - B + B * max(len(found), field.pivot) / field.pivot
        each = weight / norm
        for word, count in Counter([*found, *joined_words(text)]).items():
            fields[word] = fields.get(word, 0) | 1 << bit
            counts[word] = counts.get(word, 0.0) + each * min(count, REPEATS)
    impacts = {word: count * (K1 + 1) / (count + K1) for word, count in counts.items()}
    for name in {tool.name, tool.base_name, f"{tool.server or ''} {tool.base_name}"}:
        term = _name_term(name_words(name))
        fields[term], impacts[term] = _IN_NAME, K1 + 1
    return fields, impacts


def _name_term(of: frozenset[str]) -> str:
    """A word for all words of a name together, which no text contains.

    A tool whose name consists of the query's words holds it, with the largest impact there is and the weight of the
    whole query: it comes before those that only contain the words, however often.
    """
    return "=" + " ".join(sorted(of))


def _names_its_object(held: list[str], fields: dict[str, int]) -> bool:
    """Whether one of the words found is in the tool's name and says more than what is done."""
    return any(fields[word] & _IN_NAME and word not in ACTIONS for word in held)


@cache
def _fields_of(bits: int) -> tuple[str, ...]:
    return tuple(name for at, name in enumerate(_FIELD_NAMES) if bits >> at & 1)
