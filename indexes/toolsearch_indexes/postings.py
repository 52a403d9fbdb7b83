"""Which tools hold a word, and how much it says of each: in dicts, or in numpy arrays for large catalogs.

Both give the same scores, rounded so that the order of a sum cannot break a tie. An impact is what a word adds to a
tool's score, before the word's rarity.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from heapq import nlargest
from types import MappingProxyType
from typing import Any

__all__ = ["ArrayPostings", "DictPostings", "best"]

DIGITS = 9
NOTHING: Mapping[str, float] = MappingProxyType({})
SLACK = 10**-DIGITS  # scores this close are equal
CLOSED_FROM = 200  # tools that hold a word: from so many on it is worth asking whether they matter any more
SORTED = 2_000


class DictPostings:
    """word -> {tool id: impact}. Nothing to build, nothing to import; quick up to about twenty thousand tools."""

    def __init__(self) -> None:
        self.words: dict[str, dict[str, float]] = {}
        self._peaks: dict[str, float] = {}  # the largest impact a word ever had: an upper bound

    def add(self, tool_id: str, impacts: Mapping[str, float]) -> None:
        for word, impact in impacts.items():
            self.words.setdefault(word, {})[tool_id] = impact
            if impact > self._peaks.get(word, 0.0):
                self._peaks[word] = impact

    def put(self, word: str, holders: dict[str, float]) -> None:
        """Adds a word with all tools that hold it, at least one."""
        self.words[word] = holders
        self._peaks[word] = max(holders.values())

    def remove(self, tool_id: str, words: Iterable[str]) -> None:
        for word in words:
            holders = self.words[word]
            del holders[tool_id]
            if not holders:
                del self.words[word], self._peaks[word]

    def top(
        self,
        weights: Mapping[str, float],
        limit: int,
        among: AbstractSet[str] | None,
        support: Mapping[str, float] = NOTHING,
    ) -> list[tuple[float, str]]:
        """The best tools by the sum of weight times impact, best first, ties by id.

        The words in `support` count only for tools that hold one of the others.

        Words are read by what they can add at most. Once those left cannot lift a new tool into the first `limit`
        (max-score, Turtle and Flood 1995), they are only looked up for the tools still in the race.
        """
        terms = sorted([(weight * self._peaks[word], word, weight) for word, weight in weights.items()], reverse=True)
        left = sum([peak for peak, _, _ in terms]) + sum([self._peaks[word] * support[word] for word in support])
        scores: dict[str, float] = {}
        closed = False
        for peak, word, weight in terms:
            holders = self.words[word]
            if not closed and len(scores) >= limit and len(holders) > CLOSED_FROM:
                scores = _allowed(scores, among)
                bar = _last_of(limit, scores.values()) - SLACK if len(scores) >= limit else 0.0
                if bar > left:
                    closed = True
                    least = bar - left
                    scores = {i: score for i, score in scores.items() if score >= least}
            if closed:
                for i in scores:
                    if i in holders:
                        scores[i] += weight * holders[i]
            elif scores:
                get = scores.get
                for i, impact in holders.items():
                    scores[i] = get(i, 0.0) + weight * impact
            else:
                scores = {i: weight * impact for i, impact in holders.items()}
            left -= peak
        for word, weight in support.items():
            holders = self.words[word]
            for i in holders.keys() & scores.keys():
                scores[i] += weight * holders[i]
        return best(_allowed(scores, among), limit)


def best(scores: Mapping[str, float], limit: int) -> list[tuple[float, str]]:
    """The tools with the `limit` best scores, rounded; best first, ties by id."""
    bar = _last_of(limit, scores.values()) - SLACK if len(scores) > limit else 0.0
    ranked = sorted([(-round(score, DIGITS), i) for i, score in scores.items() if score >= bar])
    return [(-score, i) for score, i in ranked[:limit]]


def _last_of(limit: int, scores: Collection[float]) -> float:
    """The last of the `limit` largest scores; there must be as many. Sorting a few is quicker than choosing."""
    return sorted(scores)[-limit] if len(scores) < SORTED else nlargest(limit, scores)[-1]


def _allowed(scores: dict[str, float], among: AbstractSet[str] | None) -> dict[str, float]:
    return scores if among is None else {i: score for i, score in scores.items() if i in among}


class ArrayPostings:
    """The same in numpy arrays: slower to start, five times quicker at ten thousand tools."""

    def __init__(self) -> None:
        import numpy

        self._np = numpy
        self.words: dict[str, _Column] = {}
        self._ids: list[str] = []  # by slot; a removed tool leaves its slot empty for the next
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._mask: tuple[AbstractSet[str], Any] | None = None

    def add(self, tool_id: str, impacts: Mapping[str, float]) -> None:
        self._mask = None
        if self._free:
            slot = self._free.pop()
            self._ids[slot] = tool_id
        else:
            slot = len(self._ids)
            self._ids.append(tool_id)
        self._slots[tool_id] = slot
        for word, impact in impacts.items():
            column = self.words.get(word)
            if column is None:
                column = self.words[word] = _Column(self._np)
            column.append(slot, impact)

    def remove(self, tool_id: str, words: Iterable[str]) -> None:
        slot = self._slots.pop(tool_id)
        self._ids[slot] = ""
        self._free.append(slot)
        for word in words:
            column = self.words[word]
            column.delete(slot)
            if not len(column):
                del self.words[word]

    def top(
        self,
        weights: Mapping[str, float],
        limit: int,
        among: AbstractSet[str] | None,
        support: Mapping[str, float] = NOTHING,
    ) -> list[tuple[float, str]]:
        """As `DictPostings.top`."""
        np = self._np
        scores = np.zeros(len(self._ids))
        for word in sorted(weights):
            slots, impacts = self.words[word].arrays()
            scores[slots] += weights[word] * impacts
        if support:
            found = scores > 0
            for word in sorted(support):
                slots, impacts = self.words[word].arrays()
                scores[slots] += support[word] * impacts
            scores *= found
        if among is not None:
            scores *= self._allowed(among)
        slots = np.flatnonzero(scores > 0)
        if len(slots) > limit:
            values = scores[slots]
            values.partition(len(slots) - limit)
            slots = slots[scores[slots] >= values[len(slots) - limit] - SLACK]
        ids = self._ids
        return best(dict(zip([ids[s] for s in slots.tolist()], scores[slots].tolist(), strict=True)), limit)

    def _allowed(self, among: AbstractSet[str]) -> Any:
        """`among` as an array over the slots, kept for the next search with the same frozen set."""
        if self._mask is None or self._mask[0] is not among or not isinstance(among, frozenset):
            mask = self._np.fromiter((i in among for i in self._ids), dtype=float, count=len(self._ids))
            self._mask = (among, mask)
        return self._mask[1]


class _Column:
    """Slots and impacts of one word."""

    def __init__(self, np: Any) -> None:
        self._np = np
        self._slots, self._impacts = array("q"), array("d")

    def __len__(self) -> int:
        return len(self._slots)

    def append(self, slot: int, impact: float) -> None:
        self._slots.append(slot)
        self._impacts.append(impact)

    def delete(self, slot: int) -> None:
        at = self._slots.index(slot)
        del self._slots[at], self._impacts[at]

    def arrays(self) -> tuple[Any, Any]:
        """Views, no copies: let go of them before the next change."""
        return self._np.frombuffer(self._slots, dtype="int64"), self._np.frombuffer(self._impacts)
