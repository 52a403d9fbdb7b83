"""Search by meaning in large catalogs: `vector`, with the candidates found by faiss.

Faiss is asked for candidates only, and over a prefix of the rows that never changes: what it holds is never added to,
never removed from. Rows added later are multiplied one by one until it is made anew, removed ones have no id any more
(`toolsearch_indexes.rows`), and the cosines are those of the rows themselves. So ids cannot shift, a graph need not
forget, and readers take no lock.
"""

from __future__ import annotations

import io
import json
import logging
import os
import warnings
import zlib
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args

from toolsearch.catalog import Tool
from toolsearch.errors import MissingExtra, SetupError
from toolsearch_indexes.document import PASSAGES
from toolsearch_indexes.encoders import Encoder
from toolsearch_indexes.folders import Folder
from toolsearch_indexes.rows import Rows
from toolsearch_indexes.vector import NEAR, ToolVectors, VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FaissIndex", "Structure"]

log = logging.getLogger("toolsearch")

Structure = Literal["flat", "hnsw", "ivf"]

FORMAT = 1
HNSW_FROM = 15_000  # tools; below, one matrix product is as quick
IVF_FROM = 30_000  # tools; here a graph takes six seconds to build and lists take two, and find as much
FEW = 5_000  # rows that are multiplied one by one rather than asked for
TAIL = 20  # one part in so many may be new before faiss is made anew
SPARE = 50  # hits beyond the limit that are asked for
NEIGHBOURS, BUILD_WIDTH, SEARCH_WIDTH = 32, 40, 128  # of a graph
LISTS, PROBES, TRAINED_ON = 2, 64, 40  # lists: that many times the root of the rows; rows for each to train on


class FaissIndex(VectorIndex):
    """Search by meaning, approximate from 15,000 tools on; otherwise as `VectorIndex`.

    `kind` is "flat" (exact, and all there is below 15,000 tools), "hnsw" or "ivf"; None chooses by size. What a caller
    may not see, and what was removed, never takes a place among the hits.
    """

    name = "faiss"

    def __init__(
        self,
        encoder: str | Encoder = "static",
        kind: Structure | None = None,
        *,
        near: float = NEAR,
        near_alone: float | None = None,
    ) -> None:
        if kind is not None and kind not in get_args(Structure):
            raise SetupError(f"the kind of a faiss index is one of {', '.join(get_args(Structure))}, not {kind!r}")
        if find_spec("faiss") is None:
            raise MissingExtra("the index 'faiss'", "faiss-cpu", "faiss")
        super().__init__(encoder, near=near, near_alone=near_alone)
        self._vectors = self._fast = _FaissVectors(self._vectors.encoder, kind)

    @property
    def kind(self) -> Structure:
        """What is searched now."""
        return self._fast.kind

    def keep_only(self, ids: Iterable[str]) -> None:
        """Forgets all tools but these: what a folder still held of tools that have left the catalog since."""
        with self._changes:
            self.remove(sorted(self._fast.ids() - set(ids)))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes vectors, ids and what faiss built into a folder of their own; `load` reads them."""
        with self._changes:
            kept = Folder(folder, self.name, _recipe())
            words = {tool_id: sorted(held) for tool_id, held in self._words.items()}
            with kept.writing():
                kept.save(self._fast.files() | {"words.json.z": zlib.compress(json.dumps(words).encode(), 1)})

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        encoder: str | Encoder = "static",
        kind: Structure | None = None,
        *,
        near: float = NEAR,
        near_alone: float | None = None,
    ) -> FaissIndex:
        """The index a folder holds; an empty one, with a warning in the log, if it is damaged or of another version.

        Raises `SetupError` if its vectors are by another encoder than this one.
        """
        index = cls(encoder, kind, near=near, near_alone=near_alone)
        if files := Folder(folder, cls.name, _recipe()).load():
            index._fast.restore(files, os.fspath(folder))
            for tool_id, held in json.loads(zlib.decompress(files["words.json.z"])).items():
                index._know(tool_id, frozenset(held))
        return index


class _FaissVectors(ToolVectors):
    """The vectors of tools, in rows that faiss helps to search."""

    def __init__(self, encoder: str | Encoder, kind: Structure | None) -> None:
        super().__init__(encoder)
        self._kind: Structure | None = kind

    @property
    def kind(self) -> Structure:
        return self._rows.kind if isinstance(self._rows, _FaissRows) else "flat"

    def add(self, tools: Iterable[Tool]) -> None:
        with self._changes:
            if self._rows is None:
                self._rows = _FaissRows(self.encoder.width, self._kind)
            super().add(tools)
            if isinstance(self._rows, _FaissRows):
                self._rows.settle()

    def remove(self, ids: Iterable[str]) -> None:
        with self._changes:
            super().remove(ids)
            if isinstance(self._rows, _FaissRows):
                self._rows.settle()

    def ids(self) -> set[str]:
        return set(self._digests)

    def files(self) -> dict[str, bytes]:
        """What `restore` takes."""
        with self._changes:
            name, width = self._made_by or (self.encoder.name, self.encoder.width)
            rows = self._rows if isinstance(self._rows, _FaissRows) else _FaissRows(width, self._kind)
            ids, files = rows.files()
            told = {"encoder": name, "width": width, "ids": ids, "digests": [self._digests[i].hex() for i in ids]}
            return {**files, "tools.json": json.dumps(told).encode()}

    def restore(self, files: dict[str, bytes], folder: str) -> None:
        told = json.loads(files["tools.json"])
        name, width = told["encoder"], told["width"]
        if (name, width) != (self.encoder.name, self.encoder.width):
            raise SetupError(
                f"the folder {folder!r} holds vectors of {width} numbers by {name!r}, but the encoder is "
                f"{self.encoder.name!r} and gives {self.encoder.width}: the two cannot be compared. "
                f"Open it with the encoder it was made with, or index the tools anew into another folder"
            )
        if not told["ids"]:
            return
        with self._changes:
            self._rows = rows = _FaissRows(width, self._kind)
            rows.restore(told["ids"], files)
            self._digests = {i: bytes.fromhex(d) for i, d in zip(told["ids"], told["digests"], strict=True)}
            self._made_by = name, width


@dataclass(frozen=True)
class _Built:
    """What faiss holds: the first `count` rows of the matrix whose list of ids is `ids`."""

    kind: Structure
    index: Any
    ids: list[str | None]
    count: int


class _FaissRows(Rows):
    """`Rows` whose nearest are found by faiss from some size on."""

    def __init__(self, width: int, kind: Structure | None) -> None:
        super().__init__(width)
        self._kind: Structure | None = kind
        self._built: _Built | None = None
        self._mask: tuple[Any, _Built, Any] | None = None

    @property
    def kind(self) -> Structure:
        return self._built.kind if self._built is not None else "flat"

    def settle(self) -> None:
        """Makes anew what faiss holds, if it no longer serves; readers go on with the old one, or without."""
        held, built = self._held, self._built
        kind = self._kind or _kind_for(len(held.slots))
        if kind == "flat" or not held.slots:
            self._built = None
        elif (
            built is None
            or built.ids is not held.ids
            or built.kind != kind
            or len(held.rows) - built.count > max(FEW, built.count) / TAIL
        ):
            self._built = _Built(kind, _build(kind, held.rows), held.ids, len(held.rows))

    def look(
        self,
        queries: NDArray[np.float32],
        limit: int,
        among: AbstractSet[str] | None = None,
        also: Iterable[str] = (),
    ) -> tuple[list[str], NDArray[np.float64]]:
        """As `Rows.look`, with some to spare: those that are removed meanwhile do not shorten the answer."""
        return super().look(queries, limit + SPARE, among, also)

    def _places(
        self,
        held: Any,
        queries: NDArray[np.float32],
        limit: int,
        among: AbstractSet[str] | None,
        also: Iterable[str],
    ) -> set[int]:
        """Of a large catalog, the rows that faiss takes for the nearest, and of the later ones those that are."""
        np = self._np
        built = self._built
        rows, count = held.rows, built.count if built is not None else 0
        allowed = None if among is None else self._allowed(held, among)
        if built is None or built.ids is not held.ids or (allowed is not None and len(allowed) <= FEW):
            return super()._places(held, queries, limit, among, also)
        tail = np.arange(count, len(rows)) if allowed is None else allowed[allowed >= count]
        selector = None if allowed is None else self._selector(built, allowed)
        places = {slot for i in also if (slot := held.slots.get(i, len(rows))) < len(rows)}
        most = min(2 * limit, count)  # half of the rows may be gone
        for query in queries:
            best = _asked(built, query, most, selector)
            best += tail[np.argsort(-(rows[tail] @ query), kind="stable")[:limit]].tolist()
            live = [slot for slot in best if 0 <= slot < len(rows) and held.ids[slot] is not None]
            if len(live) < limit:
                return super()._places(held, queries, limit, among, also)
            places.update(live)
        return places

    def files(self) -> tuple[list[str], dict[str, bytes]]:
        """The ids of the live rows, the rows, and what faiss built if no row is gone or came later."""
        held, built = self._held, self._built
        slots = sorted(held.slots.values())
        file = io.BytesIO()
        self._np.save(file, held.rows[slots])
        files = {"rows.npy": file.getvalue()}
        if built is not None and built.ids is held.ids and len(slots) == len(held.rows) == built.count:
            files[f"{built.kind}.faiss"] = _faiss().serialize_index(built.index).tobytes()
        return [str(held.ids[slot]) for slot in slots], files

    def restore(self, ids: Sequence[str], files: dict[str, bytes]) -> None:
        self.put(ids, self._np.load(io.BytesIO(files["rows.npy"]), allow_pickle=False))
        kind = self._kind or _kind_for(len(ids))
        if stored := files.get(f"{kind}.faiss"):
            index = _faiss().deserialize_index(self._np.frombuffer(stored, self._np.uint8))
            self._built = _Built(kind, _tuned(kind, index), self._held.ids, len(ids))
        self.settle()

    def _selector(self, built: _Built, allowed: NDArray[np.intp]) -> Any:
        """What tells faiss which rows are allowed, kept for the next search with the same ones."""
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
    return _tuned(kind, index)


def _tuned(kind: Structure, index: Any) -> Any:
    if kind == "hnsw":
        index.hnsw.efSearch = SEARCH_WIDTH
    else:
        index.nprobe = min(PROBES, index.nlist)
    return index


def _asked(built: _Built, query: Any, most: int, selector: Any) -> list[int]:
    """The places of the rows that faiss takes for the nearest; -1 where it has no more."""
    parameters = None
    if selector is not None:
        faiss = _faiss()
        parameters = (
            faiss.SearchParametersHNSW(sel=selector[1], efSearch=max(SEARCH_WIDTH, most))
            if built.kind == "hnsw"
            else faiss.SearchParametersIVF(sel=selector[1], nprobe=built.index.nprobe)
        )
    found: list[int] = built.index.search(query[None], most, params=parameters)[1][0].tolist()
    return found


@cache
def _faiss() -> Any:
    """The package, imported when it is first needed: it brings an OpenMP of its own, which may clash with torch's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its wrappers are generated, and warn on newer Pythons
        import faiss
    return faiss


def _recipe() -> str:
    return f"{FORMAT} {json.dumps(PASSAGES)}"
