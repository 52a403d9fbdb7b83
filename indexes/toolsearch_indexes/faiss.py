"""Search by meaning in large catalogs: `vector`, with the candidates found by faiss, and saved to a folder."""

from __future__ import annotations

import json
import logging
import os
import zlib
from collections.abc import Iterable
from importlib.util import find_spec
from typing import get_args

from toolsearch.catalog import Tool
from toolsearch.errors import MissingExtra, SetupError
from toolsearch_indexes.document import PASSAGES
from toolsearch_indexes.encoders import Encoder
from toolsearch_indexes.faiss_matrix import FaissMatrix, Structure
from toolsearch_indexes.on_disk import Folder
from toolsearch_indexes.tool_vectors import Refusals, ToolVectors
from toolsearch_indexes.vector import NEAR, VectorIndex

__all__ = ["FaissIndex", "Structure"]

log = logging.getLogger("toolsearch")

FORMAT = 1
# What is stored, and in which files: other names could not be read any more.
_ENCODER, _WIDTH, _IDS, _DIGESTS = "encoder", "width", "ids", "digests"  # in the file of the tools
_TOOLS_FILE, _WORDS_FILE = "tools.json", "words.json.z"


class FaissIndex(VectorIndex):
    """Search by meaning, approximate from 15,000 tools on; otherwise as `VectorIndex`.

    `kind` is "flat" (exact), "hnsw" or "ivf"; None chooses by size, "flat" below 15,000 tools. Tools that a caller may
    not see, and removed ones, never take a place among the hits.
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

    def __repr__(self) -> str:
        return f"{type(self).__name__}(tools={len(self._vectors)}, encoder={self.encoder!r}, kind={self.kind!r})"

    @property
    def kind(self) -> Structure:
        """The structure that is searched now."""
        return self._fast.kind

    def keep_only(self, ids: Iterable[str]) -> None:
        """Removes all tools but these: a folder may still have held tools that have left the catalog since."""
        with self._changes:
            self.remove(sorted(self._fast.ids() - set(ids)))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes vectors, ids and faiss's structure into a folder of their own; `load` reads them."""
        with self._changes:
            target = Folder(folder, self.name, _recipe())
            words = {tool_id: sorted(of_tool) for tool_id, of_tool in self._words.items()}
            with target.writing():
                target.save(self._fast.files() | {_WORDS_FILE: zlib.compress(json.dumps(words).encode(), 1)})

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

        Raises `SetupError` if another encoder made its vectors.
        """
        index = cls(encoder, kind, near=near, near_alone=near_alone)
        if files := Folder(folder, cls.name, _recipe()).load():
            try:
                index._restore(files, os.fspath(folder))
            except SetupError:
                raise
            except Exception as error:  # files that are whole, but no index: numpy and faiss raise whatever comes
                log.warning("the index in %r is made anew: %s: %s", os.fspath(folder), type(error).__name__, error)
                return cls(encoder, kind, near=near, near_alone=near_alone)
        return index

    def _restore(self, files: dict[str, bytes], folder: str) -> None:
        self._fast.restore(files, folder)
        for tool_id, words in json.loads(zlib.decompress(files[_WORDS_FILE])).items():
            self._set_words(tool_id, frozenset(words))


class _FaissVectors(ToolVectors):
    """The vectors of tools, in a matrix that faiss helps to search."""

    def __init__(self, encoder: str | Encoder, kind: Structure | None) -> None:
        super().__init__(encoder)
        self._kind: Structure | None = kind

    @property
    def kind(self) -> Structure:
        return self._rows.kind if isinstance(self._rows, FaissMatrix) else "flat"

    def add(self, tools: Iterable[Tool], *, answers: bool = False) -> Refusals:
        with self._changes:
            if self._rows is None:
                self._rows = FaissMatrix(self.encoder.width, self._kind)
            refused = super().add(tools, answers=answers)
            if isinstance(self._rows, FaissMatrix):
                self._rows.rebuild()
            return refused

    def remove(self, ids: Iterable[str]) -> None:
        with self._changes:
            super().remove(ids)
            if isinstance(self._rows, FaissMatrix):
                self._rows.rebuild()

    def ids(self) -> set[str]:
        return set(self._digests)

    def files(self) -> dict[str, bytes]:
        """What `restore` takes."""
        with self._changes:
            name, width = self._made_by or (self.encoder.name, self.encoder.width)
            rows = self._rows if isinstance(self._rows, FaissMatrix) else FaissMatrix(width, self._kind)
            ids, files = rows.files()
            about = {_ENCODER: name, _WIDTH: width, _IDS: ids, _DIGESTS: [self._digests[i].hex() for i in ids]}
            return {**files, _TOOLS_FILE: json.dumps(about).encode()}

    def restore(self, files: dict[str, bytes], folder: str) -> None:
        about = json.loads(files[_TOOLS_FILE])
        name, width, ids = about[_ENCODER], about[_WIDTH], about[_IDS]
        if (name, width) != (self.encoder.name, self.encoder.width):
            raise SetupError(
                f"the folder {folder!r} holds vectors of {width} numbers by {name!r}, but the encoder is "
                f"{self.encoder.name!r} and gives {self.encoder.width}: the two cannot be compared. "
                f"Open it with the encoder it was made with, or index the tools anew into another folder"
            )
        if not ids:
            return
        with self._changes:
            self._rows = rows = FaissMatrix(width, self._kind)
            rows.restore(ids, files)
            self._digests = {i: bytes.fromhex(d) for i, d in zip(ids, about[_DIGESTS], strict=True)}
            self._made_by = name, width


def _recipe() -> str:
    return f"{FORMAT} {json.dumps(PASSAGES)}"
