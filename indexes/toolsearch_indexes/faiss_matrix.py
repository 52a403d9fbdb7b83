"""A matrix of vectors whose nearest rows are found by faiss.

Faiss only finds candidates, and only in a first part of the rows that never changes: nothing is ever added to what it
holds, or removed from it. Rows added later are multiplied one by one until faiss's structure is built again; removed
rows have no id any more (`toolsearch_indexes.vectors`). The cosines are those of the rows themselves. So ids cannot
shift, a graph need not forget, and readers take no lock.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from toolsearch_indexes.vectors import Lookup, VectorMatrix

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FaissMatrix", "Structure"]

Structure = Literal["flat", "hnsw", "ivf"]

HNSW_FROM = 15_000  # tools; below, one matrix product is as quick
IVF_FROM = 30_000  # tools; here a graph takes six seconds to build and lists take two, and find as much
FEW = 5_000  # rows: up to this many are multiplied one by one rather than searched by faiss
TAIL = 20  # one row in so many may be new before faiss's structure is built again
SPARE = 50  # hits beyond the limit that are asked for
NEIGHBOURS, BUILD_WIDTH, SEARCH_WIDTH = 32, 40, 128  # of a graph
LISTS, PROBES, TRAINED_ON = 2, 64, 40  # lists: that many times the root of the rows; rows for each to train on
# The files that are stored: other names could not be read any more.
_ROWS_FILE = "rows.npy"
_FAISS_FILE: dict[Structure, str] = {"hnsw": "hnsw.faiss", "ivf": "ivf.faiss"}


@dataclass(frozen=True)
class _Built:
    """A structure that faiss has built over the first `count` rows of the matrix whose list of ids is `ids`."""

    kind: Structure
    index: Any
    ids: list[str | None]
    count: int


class FaissMatrix(VectorMatrix):
    """A `VectorMatrix` that finds the nearest rows with faiss, from some size on."""

    def __init__(self, width: int, kind: Structure | None) -> None:
        super().__init__(width)
        self._kind: Structure | None = kind
        self._built: _Built | None = None
        self._mask: tuple[Any, _Built, Any] | None = None

    @property
    def kind(self) -> Structure:
        return self._built.kind if self._built is not None else "flat"

    def rebuild(self) -> None:
        """Builds faiss's structure again if it no longer serves; readers go on with the old one, or without."""
        snapshot, built = self._snapshot, self._built
        kind = self._kind or _kind_for(len(snapshot.slots))
        if kind == "flat" or not snapshot.slots:
            self._built = None
        elif (
            built is None
            or built.ids is not snapshot.ids
            or built.kind != kind
            or len(snapshot.rows) - built.count > max(FEW, built.count) / TAIL
        ):
            self._built = _Built(kind, _build(kind, snapshot.rows), snapshot.ids, len(snapshot.rows))

    def find_nearest(
        self,
        queries: NDArray[np.float32],
        limit: int,
        among: AbstractSet[str] | None = None,
        also: Iterable[str] = (),
    ) -> tuple[list[str], NDArray[np.float64]]:
        """As in `VectorMatrix`, with some to spare, so that rows removed meanwhile do not shorten the answer."""
        return super().find_nearest(queries, limit + SPARE, among, also)

    def _places(self, snapshot: Any, lookup: Lookup) -> set[int]:
        """In a large catalog, the rows that faiss takes for the nearest, and the nearest of those added later."""
        np = self._np
        built = self._built
        rows, count = snapshot.rows, built.count if built is not None else 0
        allowed = self._allowed(snapshot, lookup.among)
        if built is None or built.ids is not snapshot.ids or (allowed is not None and len(allowed) <= FEW):
            return super()._places(snapshot, lookup)
        tail = np.arange(count, len(rows)) if allowed is None else allowed[allowed >= count]
        selector = None if allowed is None else self._selector(built, allowed)
        places = self._also(snapshot, lookup)
        most = min(2 * lookup.limit, count)  # half of the rows may be gone
        for query in lookup.queries:
            best = _nearest(built, query, most, selector)
            best += tail[np.argsort(-(rows[tail] @ query), kind="stable")[: lookup.limit]].tolist()
            live = [slot for slot in best if 0 <= slot < len(rows) and snapshot.ids[slot] is not None]
            if len(live) < lookup.limit:
                return super()._places(snapshot, lookup)
            places.update(live)
        return places

    def files(self) -> tuple[list[str], dict[str, bytes]]:
        """The ids of the live rows, the rows, and faiss's structure if no row was removed or added since."""
        snapshot, built = self._snapshot, self._built
        slots = sorted(snapshot.slots.values())
        file = io.BytesIO()
        self._np.save(file, snapshot.rows[slots])
        files = {_ROWS_FILE: file.getvalue()}
        if built is not None and built.ids is snapshot.ids and len(slots) == len(snapshot.rows) == built.count:
            files[_FAISS_FILE[built.kind]] = _faiss().serialize_index(built.index).tobytes()
        return [str(snapshot.ids[slot]) for slot in slots], files

    def restore(self, ids: Sequence[str], files: dict[str, bytes]) -> None:
        self.put(ids, self._np.load(io.BytesIO(files[_ROWS_FILE]), allow_pickle=False))
        kind = self._kind or _kind_for(len(ids))
        if stored := files.get(_FAISS_FILE.get(kind, "")):
            index = _faiss().deserialize_index(self._np.frombuffer(stored, self._np.uint8))
            self._built = _Built(kind, _tune(kind, index), self._snapshot.ids, len(ids))
        self.rebuild()

    def _selector(self, built: _Built, allowed: NDArray[np.intp]) -> Any:
        """Which rows are allowed, in the form faiss takes; kept for the next search with the same ones."""
        kept = self._mask
        if kept is None or kept[0] is not allowed or kept[1] is not built:
            bits = self._np.zeros(built.count, bool)
            bits[allowed[allowed < built.count]] = True
            packed = self._np.packbits(bits, bitorder="little")
            kept = self._mask = allowed, built, (packed, _faiss().IDSelectorBitmap(packed))
        return kept[2]


def _kind_for(tools: int) -> Structure:
    if tools < HNSW_FROM:
        return "flat"
    return "hnsw" if tools < IVF_FROM else "ivf"


def _build(kind: Structure, rows: Any) -> Any:
    faiss = _faiss()
    width = rows.shape[1]
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(width, NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = BUILD_WIDTH
    else:
        lists = max(1, min(int(LISTS * len(rows) ** 0.5), len(rows) // TRAINED_ON))
        index = faiss.index_factory(width, f"IVF{lists},Flat", faiss.METRIC_INNER_PRODUCT)
        index.cp.min_points_per_centroid = 1
        index.train(rows[:: max(1, len(rows) // (lists * TRAINED_ON))])
    index.add(rows)
    return _tune(kind, index)


def _tune(kind: Structure, index: Any) -> Any:
    if kind == "hnsw":
        index.hnsw.efSearch = SEARCH_WIDTH
    else:
        index.nprobe = min(PROBES, index.nlist)
    return index


def _nearest(built: _Built, query: Any, most: int, selector: Any) -> list[int]:
    """The places of the rows that faiss takes for the nearest; -1 where it has no more."""
    parameters = None
    if selector is not None:
        faiss = _faiss()
        parameters = (
            faiss.SearchParametersHNSW(sel=selector[1], efSearch=max(SEARCH_WIDTH, most))
            if built.kind == "hnsw"
            else faiss.SearchParametersIVF(sel=selector[1], nprobe=built.index.nprobe)
        )
    slots: list[int] = built.index.search(query[None], most, params=parameters)[1][0].tolist()
    return slots


@cache
def _faiss() -> Any:
    """The package, imported when it is first needed: it brings an OpenMP of its own, which may clash with torch's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its wrappers are generated, and warn on newer Pythons
        import faiss
    return faiss
