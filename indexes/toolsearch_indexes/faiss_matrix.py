"""A matrix of vectors in which faiss finds the nearest rows, once it is large.

Faiss keeps half a byte for every two numbers of a row (product quantization: Jégou, Douze and Schmid, 2011) and
compares a query with all of these codes at once ("fast scan": André, Kermarrec and Le Scouarnec, 2015). Of the rows
with the nearest codes, sixteen for each row that is wanted, the cosines are computed as in `VectorMatrix`, and the best
are the answer. Nothing is left out for its place in a graph or a list, so what is missed is next to nothing.

The codes are made in the background, and never changed: rows that come later are multiplied one by one until there are
new codes, and removed rows are zeros. Without codes, or where they do not serve, the search is exact. So ids cannot
shift, and readers take no lock.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
import warnings
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from toolsearch_indexes.vectors import Lookup, VectorMatrix

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["APPROXIMATE_FROM", "FaissMatrix"]

log = logging.getLogger("toolsearch")

APPROXIMATE_FROM = 8_000  # rows: codes are 1.6 times as quick as all rows here, 3 times at 20,000, 30 at 100,000
FEW = 5_000  # rows: up to so many that may be found, or are new, are multiplied rather than looked up by codes
CHANGED = 20  # one row in so many may be new, or gone, before there are new codes
CANDIDATES = 16  # for each row that is wanted; with 10, one of the 30 nearest in a thousand is missed
ENOUGH = 7 / 8  # of the candidates
TRAINED_ON = 4_096  # rows: 256 for each of the 16 values of half a byte; more make no better codes
MOST_CODES = 384  # half bytes of a row: faiss adds them up in 16 bits, which 1,536 overflow
LEAST_TRAINED_ON = 16  # rows


@dataclass(frozen=True)
class _Codes:
    """Codes for the first `count` rows of the matrix whose list of ids is `ids`."""

    index: Any
    ids: list[str | None]
    count: int
    gone: int  # how many of these rows were removed before


class FaissMatrix(VectorMatrix):
    """A `VectorMatrix` that from `approximate_from` rows on finds the nearest with faiss, as soon as it can."""

    def __init__(self, width: int, approximate_from: int) -> None:
        super().__init__(width)
        self._from: float = max(approximate_from, LEAST_TRAINED_ON) if codes_for(width) else math.inf
        self._codes: _Codes | None = None
        self._thread: threading.Thread | None = None
        self._mask: tuple[NDArray[np.intp], NDArray[np.bool_]] | None = None

    @property
    def is_approximate(self) -> bool:
        codes = self._codes
        return codes is not None and codes.ids is self._snapshot.ids

    def refresh(self) -> None:
        """Has new codes made in the background if those there are no longer serve, or lets them go."""
        with self._changing:
            if len(self) < self._from or _would_clash():
                self._codes = None
            elif self._is_stale() and not (self._thread is not None and self._thread.is_alive()):
                # Not a daemon: faiss would still be at work as the program's memory is taken down.
                self._thread = threading.Thread(target=self._make_codes, name="toolsearch-faiss")
                try:
                    self._thread.start()
                except RuntimeError:  # there are too many threads, or the program ends
                    self._thread = None

    def _is_stale(self) -> bool:
        codes, snapshot = self._codes, self._snapshot
        if len(snapshot.slots) < self._from:
            return False
        if codes is None or codes.ids is not snapshot.ids:
            return True
        gone = len(snapshot.rows) - len(snapshot.slots) - codes.gone
        return len(snapshot.rows) - codes.count + gone > max(FEW, codes.count) / CHANGED

    def _make_codes(self) -> None:
        """Makes codes until they serve. Runs on a thread of its own."""
        while True:
            with self._changing:
                if not self._is_stale() or not threading.main_thread().is_alive():
                    self._thread = None
                    return
                snapshot, tools = self._snapshot, len(self)
            try:
                index = _encoded(snapshot.rows)
            except Exception:
                log.warning("faiss cannot be used, so search by meaning stays exact", exc_info=True)
                self._from = math.inf
                continue
            count = len(snapshot.rows)
            self._codes = _Codes(index, snapshot.ids, count, count - tools)
            log.info("search by meaning among %d tools goes by codes of faiss now", tools)

    def _places(self, snapshot: Any, lookup: Lookup) -> set[int]:
        """In a large catalog, the nearest of the rows with the nearest codes and of those that have no code yet."""
        codes, rows = self._codes, snapshot.rows
        allowed = self._allowed(snapshot, lookup.among)
        if codes is None or codes.ids is not snapshot.ids or (allowed is not None and len(allowed) <= FEW):
            return super()._places(snapshot, lookup)
        wanted, there = CANDIDATES * lookup.limit, len(snapshot.slots) if allowed is None else len(allowed)
        most = math.ceil(wanted * len(rows) / max(1, there))
        later = self._np.arange(codes.count, len(rows)) if allowed is None else allowed[allowed >= codes.count]
        mask = None if allowed is None else self._allowed_rows(allowed, len(rows))
        places = self._also(snapshot, lookup)
        for query in lookup.queries:
            near = codes.index.search(query[None], min(most, codes.count))[1][0]
            near = near[near >= 0] if mask is None else near[(near >= 0) & mask[near]]
            cosines = rows[near] @ query
            # If more of the nearest than of all rows are gone or not allowed, codes hardly tell the others apart.
            if self._np.count_nonzero(cosines) < ENOUGH * min(wanted, there):
                return super()._places(snapshot, lookup)
            near = self._np.concatenate([near, later])
            cosines = self._np.concatenate([cosines, rows[later] @ query])
            places.update(near[self._best(cosines, lookup.limit)].tolist())
        return places

    def _allowed_rows(self, allowed: NDArray[np.intp], count: int) -> NDArray[np.bool_]:
        """Whether each of the rows is allowed; kept for the next search with the same ones."""
        kept = self._mask
        if kept is None or kept[0] is not allowed or len(kept[1]) != count:
            mask = self._np.zeros(count, bool)
            mask[allowed] = True
            kept = self._mask = allowed, mask
        return kept[1]


def codes_for(width: int) -> int | None:
    """How many half bytes a row of `width` numbers is coded in: one for two numbers, or for more in long rows.

    None for a width that cannot be divided so; such rows are not coded.
    """
    counts = (width // numbers for numbers in (2, 1, *range(3, 33)) if width % numbers == 0)
    return next((count for count in counts if count <= MOST_CODES), None)


def _encoded(rows: NDArray[np.float32]) -> Any:
    """The codes of these rows."""
    faiss = _faiss()
    # For this thread: the others go on searching meanwhile, and threads of OpenMP do not survive a fork.
    faiss.omp_set_num_threads(1)
    index = faiss.IndexPQFastScan(rows.shape[1], codes_for(rows.shape[1]), 4, faiss.METRIC_INNER_PRODUCT)
    index.pq.cp.min_points_per_centroid = 1  # without a warning on stderr about few rows
    index.train(rows[:: max(1, len(rows) // TRAINED_ON)])
    index.add(rows)
    return index


def _would_clash() -> bool:
    """Whether torch is in use on a Mac, where a second OpenMP, that of faiss, may end the process."""
    return sys.platform == "darwin" and "torch" in sys.modules


@cache
def _faiss() -> Any:
    """The package, imported when it is first needed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its wrappers are generated, and warn on newer Pythons
        import faiss
    return faiss
