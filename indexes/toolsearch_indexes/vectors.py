"""Vectors by id in one matrix: exact cosine by one matrix product, changed in place while others read.

A row is written before any reader can see it, and its place is never given to another tool. A writer that replaces a
row writes the new one first. A writer that removes a row empties the place's id first and then its numbers, so a reader
that multiplied a half-removed row finds no id there, and looks again. When half of the rows are gone, or the matrix is
full, the live ones move into a new matrix; readers of the old one finish with it. So readers take no lock, unless what
they look at changes again and again.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolsearch.support.threads import after_fork

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Lookup", "VectorMatrix"]

LEAST_ROOM = 64  # rows
SETS_KEPT = 64  # of allowed ids
LOOKS = 2  # without a lock, at rows that change meanwhile
BLOCK = 2**18  # numbers multiplied at a time, 1 MB: in the processor's cache for the next query
GROUPS = 16
SLACK = 1e-5  # more than the order of a sum can change a cosine
DIGITS = 6


@dataclass
class _Snapshot:
    """What a reader sees: `rows` up to some place, and the id at each place; there may be ids beyond the rows."""

    rows: NDArray[np.float32]
    ids: list[str | None]
    slots: dict[str, int]
    allowed: dict[AbstractSet[str], NDArray[np.intp]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lookup:
    """What is looked for: the arguments of `VectorMatrix.find_nearest`."""

    queries: NDArray[np.float32]
    limit: int
    among: AbstractSet[str] | None
    also: Collection[str]


class VectorMatrix:
    """Rows of at most length 1, `width` numbers each, for any number of threads."""

    def __init__(self, width: int) -> None:
        import numpy as np

        self._np = np
        self.width = width
        self._renew_locks()
        after_fork(self, VectorMatrix._renew_locks)
        self._matrix: NDArray[np.float32] = np.zeros((LEAST_ROOM, width), np.float32)
        self._snapshot = _Snapshot(self._matrix[:0], [], {})

    def _renew_locks(self) -> None:
        self._changing = threading.RLock()

    def __len__(self) -> int:
        return len(self._snapshot.slots)

    @property
    def is_approximate(self) -> bool:
        """Whether the nearest rows are looked for in a way that may miss some."""
        return False

    def refresh(self) -> None:
        """Makes ready, after changes, what finds rows more quickly than by multiplying all; here there is nothing."""

    def live(self) -> tuple[list[str], NDArray[np.float32]]:
        """The ids and the rows, in the order in which they were put."""
        with self._changing:
            snapshot = self._snapshot
            slots = sorted(snapshot.slots.values())
            return [str(snapshot.ids[slot]) for slot in slots], snapshot.rows[slots]

    def mean(self) -> NDArray[np.float32]:
        """The mean of the rows, (width,)."""
        snapshot = self._snapshot
        mean: NDArray[np.float32] = snapshot.rows.sum(axis=0) / max(1, len(snapshot.slots))
        return mean

    def put(self, ids: Sequence[str], rows: NDArray[np.float32]) -> None:
        """Adds rows, in place of those with the same id. Each id may come once."""
        with self._changing:
            snapshot = self._snapshot
            if len(snapshot.rows) + len(ids) > len(self._matrix):
                snapshot = self._move(len(ids))
            start, end = len(snapshot.rows), len(snapshot.rows) + len(ids)
            old = [slot for tool_id in ids if (slot := snapshot.slots.get(tool_id)) is not None]
            self._matrix[start:end] = rows
            snapshot.ids.extend(ids)
            self._snapshot = _Snapshot(self._matrix[:end], snapshot.ids, snapshot.slots)
            snapshot.slots.update(zip(ids, range(start, end), strict=True))
            # Without the sets that were kept in between.
            self._snapshot = _Snapshot(self._matrix[:end], snapshot.ids, snapshot.slots)
            self._empty(old)

    def drop(self, ids: Iterable[str]) -> None:
        """Removes rows; ids that are not there are ignored."""
        with self._changing:
            slots = self._snapshot.slots
            self._empty([slot for tool_id in ids if (slot := slots.pop(tool_id, None)) is not None])

    def _empty(self, slots: list[int]) -> None:
        snapshot = self._snapshot
        for slot in slots:
            snapshot.ids[slot] = None
        snapshot.rows[slots] = 0
        if len(snapshot.rows) > max(LEAST_ROOM, 2 * len(snapshot.slots)):
            self._snapshot = self._move(0)

    def find_nearest(
        self,
        queries: NDArray[np.float32],
        limit: int,
        among: AbstractSet[str] | None = None,
        also: Iterable[str] = (),
    ) -> tuple[list[str], NDArray[np.float64]]:
        """The ids of the `limit` rows nearest to each query, and those in `also`; and their cosines, one row a query.

        `queries` are rows of length 1. There may be more ids, where the last rows are equally near.
        """
        lookup = Lookup(queries, limit, among, list(also))
        for _ in range(LOOKS):
            snapshot = self._snapshot
            places = self._places(snapshot, lookup)
            ids, cosines = self._cosines(snapshot, places, queries)
            if snapshot is self._snapshot and len(ids) == len(places):
                return ids, cosines
        with self._changing:
            return self._cosines(self._snapshot, self._places(self._snapshot, lookup), queries)

    def _places(self, snapshot: _Snapshot, lookup: Lookup) -> set[int]:
        """The places of the nearest rows, and of those wanted in addition."""
        rows = snapshot.rows
        places = self._also(snapshot, lookup)
        allowed = self._allowed(snapshot, lookup.among)
        if not len(rows) or (allowed is not None and not len(allowed)):
            return places
        few = allowed is not None and 4 * len(allowed) < len(rows)
        for scores in self._products(rows[allowed] if few else rows, lookup.queries):
            best = self._best(scores if few or allowed is None else scores[allowed], lookup.limit)
            places.update((best if allowed is None else allowed[best]).tolist())
        return places

    def _also(self, snapshot: _Snapshot, lookup: Lookup) -> set[int]:
        """The places of the rows wanted in addition to the nearest."""
        end = len(snapshot.rows)
        return {slot for tool_id in lookup.also if (slot := snapshot.slots.get(tool_id, end)) < end}

    def _cosines(
        self, snapshot: _Snapshot, places: Iterable[int], queries: NDArray[np.float32]
    ) -> tuple[list[str], NDArray[np.float64]]:
        """The ids at these places as far as they are still there, and the cosines, a row a query."""
        slots = {tool_id: slot for slot in sorted(places) if (tool_id := snapshot.ids[slot]) is not None}
        if not slots:
            return [], self._np.zeros((len(queries), 0))
        near = snapshot.rows.take(list(slots.values()), axis=0)
        cosines = self._np.empty((len(queries), len(near)), self._np.float32)
        # Summed again row by row: a matrix product adds in an order that depends on the place of a row. One query at a
        # time, as many rows may be equally near.
        for query, row in zip(queries, cosines, strict=True):
            (near * query).sum(axis=1, out=row)
        return list(slots), cosines.astype(self._np.float64).round(DIGITS)

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

    def _allowed(self, snapshot: _Snapshot, among: AbstractSet[str] | None) -> NDArray[np.intp] | None:
        """The places of these ids, kept for further searches with the same frozen set; None if all ids are allowed."""
        if among is None:
            return None
        kept = snapshot.allowed.get(among) if isinstance(among, frozenset) else None
        if kept is None:
            places = (snapshot.slots.get(tool_id, len(snapshot.rows)) for tool_id in among)
            kept = self._np.asarray(sorted(place for place in places if place < len(snapshot.rows)), self._np.intp)
            if isinstance(among, frozenset):
                if len(snapshot.allowed) >= SETS_KEPT:
                    snapshot.allowed.clear()
                snapshot.allowed[among] = kept
        return kept

    def _move(self, more: int) -> _Snapshot:
        """The live rows in a new matrix, with room for `more` and as many again."""
        snapshot = self._snapshot
        live = [(tool_id, slot) for slot, tool_id in enumerate(snapshot.ids) if tool_id is not None]
        self._matrix = self._np.zeros((max(LEAST_ROOM, 2 * (len(live) + more)), self.width), self._np.float32)
        self._matrix[: len(live)] = snapshot.rows[[slot for _, slot in live]]
        return _Snapshot(
            self._matrix[: len(live)],
            [tool_id for tool_id, _ in live],
            {tool_id: place for place, (tool_id, _) in enumerate(live)},
        )
