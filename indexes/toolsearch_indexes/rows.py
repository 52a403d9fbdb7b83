"""Vectors by id in one matrix: exact cosine by one matrix product, changed in place while others read.

A row is written before any reader can see it, and its place is never given to another tool. Who replaces a row writes
the new one first; who removes one empties the place's id first and then its numbers, so who multiplied a row that was
half gone finds no id there, and looks again. When half of the rows are gone, or the matrix is full, the live ones move
into a new matrix; readers of the old one finish with it. So readers take no lock, unless what they look at changes
again and again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Rows"]

LEAST_ROOM = 64  # rows
SETS_KEPT = 64  # of allowed ids
LOOKS = 2  # without a lock, at rows that change meanwhile
BLOCK = 2**18  # numbers multiplied at a time, 1 MB: in the processor's cache for the next query
GROUPS = 16
SLACK = 1e-5  # more than the order of a sum can change a cosine
DIGITS = 6


@dataclass
class _Held:
    """What a reader sees: `rows` up to some place, and by place the ids, which may go on beyond it."""

    rows: NDArray[np.float32]
    ids: list[str | None]
    slots: dict[str, int]
    allowed: dict[AbstractSet[str], NDArray[np.intp]] = field(default_factory=dict)


class Rows:
    """Rows of length 1 or 0, `width` numbers each, for any number of threads."""

    def __init__(self, width: int) -> None:
        import numpy as np

        self._np = np
        self.width = width
        self._changing = threading.RLock()
        self._matrix: NDArray[np.float32] = np.zeros((LEAST_ROOM, width), np.float32)
        self._held = _Held(self._matrix[:0], [], {})

    def __len__(self) -> int:
        return len(self._held.slots)

    def mean(self) -> NDArray[np.float32]:
        """The mean of the rows, (width,)."""
        held = self._held
        mean: NDArray[np.float32] = held.rows.sum(axis=0) / max(1, len(held.slots))
        return mean

    def put(self, ids: Sequence[str], rows: NDArray[np.float32]) -> None:
        """Adds rows, or puts them in the place of those with the same id. Each id once."""
        with self._changing:
            held = self._held
            if len(held.rows) + len(ids) > len(self._matrix):
                held = self._moved(len(ids))
            start, end = len(held.rows), len(held.rows) + len(ids)
            old = [slot for tool_id in ids if (slot := held.slots.get(tool_id)) is not None]
            self._matrix[start:end] = rows
            held.ids.extend(ids)
            self._held = _Held(self._matrix[:end], held.ids, held.slots)
            held.slots.update(zip(ids, range(start, end), strict=True))
            self._held = _Held(self._matrix[:end], held.ids, held.slots)  # without the sets kept in between
            self._empty(old)

    def drop(self, ids: Iterable[str]) -> None:
        """Removes rows; ids that are not there are ignored."""
        with self._changing:
            slots = self._held.slots
            self._empty([slot for tool_id in ids if (slot := slots.pop(tool_id, None)) is not None])

    def _empty(self, slots: list[int]) -> None:
        held = self._held
        for slot in slots:
            held.ids[slot] = None
        held.rows[slots] = 0
        if len(held.rows) > max(LEAST_ROOM, 2 * len(held.slots)):
            self._held = self._moved(0)

    def look(
        self,
        queries: NDArray[np.float32],
        limit: int,
        among: AbstractSet[str] | None = None,
        also: Iterable[str] = (),
    ) -> tuple[list[str], NDArray[np.float64]]:
        """The ids of the `limit` nearest rows of each query, and `also` those; and their cosines, one row a query.

        `queries` are rows of length 1. More come back where the last ones are equally near.
        """
        also = list(also)
        for _ in range(LOOKS):
            held = self._held
            places = self._places(held, queries, limit, among, also)
            ids, cosines = self._cosines(held, places, queries)
            if held is self._held and len(ids) == len(places):
                return ids, cosines
        with self._changing:
            return self._cosines(self._held, self._places(self._held, queries, limit, among, also), queries)

    def _places(
        self,
        held: _Held,
        queries: NDArray[np.float32],
        limit: int,
        among: AbstractSet[str] | None,
        also: Iterable[str],
    ) -> set[int]:
        rows = held.rows
        places = {slot for i in also if (slot := held.slots.get(i, len(rows))) < len(rows)}
        allowed = None if among is None else self._allowed(held, among)
        if not len(rows) or (allowed is not None and not len(allowed)):
            return places
        few = allowed is not None and 4 * len(allowed) < len(rows)
        for scores in self._products(rows[allowed] if few else rows, queries):
            best = self._best(scores if few or allowed is None else scores[allowed], limit)
            places.update((best if allowed is None else allowed[best]).tolist())
        return places

    def _cosines(
        self, held: _Held, places: Iterable[int], queries: NDArray[np.float32]
    ) -> tuple[list[str], NDArray[np.float64]]:
        """The ids at these places as far as they are still there, and the cosines, a row a query."""
        found = {tool_id: slot for slot in sorted(places) if (tool_id := held.ids[slot]) is not None}
        if not found:
            return [], self._np.zeros((len(queries), 0))
        near = held.rows.take(list(found.values()), axis=0)
        cosines = self._np.empty((len(queries), len(near)), self._np.float32)
        # Summed again row by row: a matrix product adds in an order that depends on the place of a row. One query at a
        # time, as many rows may be equally near.
        for query, row in zip(queries, cosines, strict=True):
            (near * query).sum(axis=1, out=row)
        return list(found), cosines.astype(self._np.float64).round(DIGITS)

    def _products(self, rows: NDArray[np.float32], queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """The product of each query with each row, a row a query."""
        products: NDArray[np.float32] = self._np.empty((len(queries), len(rows)), self._np.float32)
        step = max(1, BLOCK // self.width)
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            for query, row in zip(queries, products, strict=True):
                # Row by row, a dot product each: that reads memory straight on and starts no threads. The product of a
                # whole matrix with a query reads four rows at once, which takes twice as long when they are not in
                # the cache, and OpenBLAS may start threads for it, which on a busy machine cost 8 ms.
                self._np.matmul(block[:, None], query[:, None], out=row[start : start + step, None, None])
        return products

    def _best(self, scores: NDArray[np.float32], limit: int) -> NDArray[np.intp]:
        """The places of the `limit` largest scores above 0, of all that are equal to the last, and maybe of more."""
        numpy = self._np
        bar = numpy.float32(0)
        if len(scores) > GROUPS * limit:
            # As many groups as `limit` reach this, so at least as many scores do; and few others.
            peaks = scores[: len(scores) // GROUPS * GROUPS].reshape(GROUPS, -1).max(axis=0)
            bar = numpy.partition(peaks, len(peaks) - limit)[len(peaks) - limit]
        places: NDArray[np.intp] = numpy.flatnonzero(scores >= bar - SLACK if bar > SLACK else scores > 0)
        if len(places) > limit:
            reached = scores[places]
            bar = numpy.partition(reached, len(reached) - limit)[len(reached) - limit]
            places = places[reached >= bar - SLACK]
        return places

    def _allowed(self, held: _Held, among: AbstractSet[str]) -> NDArray[np.intp]:
        """The places of these ids, kept for further searches with the same frozen set."""
        kept = held.allowed.get(among) if isinstance(among, frozenset) else None
        if kept is None:
            places = (held.slots.get(tool_id, len(held.rows)) for tool_id in among)
            kept = self._np.asarray(sorted(place for place in places if place < len(held.rows)), self._np.intp)
            if isinstance(among, frozenset):
                if len(held.allowed) >= SETS_KEPT:
                    held.allowed.clear()
                held.allowed[among] = kept
        return kept

    def _moved(self, more: int) -> _Held:
        """The live rows in a new matrix, with room for `more` and as many again."""
        held = self._held
        live = [(tool_id, slot) for slot, tool_id in enumerate(held.ids) if tool_id is not None]
        self._matrix = self._np.zeros((max(LEAST_ROOM, 2 * (len(live) + more)), self.width), self._np.float32)
        self._matrix[: len(live)] = held.rows[[slot for _, slot in live]]
        return _Held(
            self._matrix[: len(live)],
            [tool_id for tool_id, _ in live],
            {tool_id: place for place, (tool_id, _) in enumerate(live)},
        )
