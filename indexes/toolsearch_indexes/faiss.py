"""Search by meaning in large catalogs: `vector` with faiss, which must be installed, and saved to a folder."""

from __future__ import annotations

import io
import json
import logging
import os
import zlib
from collections.abc import Iterable
from importlib.util import find_spec

from toolsearch.errors import MissingExtra, SetupError
from toolsearch_indexes.document import PASSAGES
from toolsearch_indexes.encoders import Encoder
from toolsearch_indexes.faiss_matrix import APPROXIMATE_FROM
from toolsearch_indexes.on_disk import Folder
from toolsearch_indexes.tool_vectors import ToolVectors
from toolsearch_indexes.vector import NEAR, VectorIndex

__all__ = ["FaissIndex"]

log = logging.getLogger("toolsearch")

FORMAT = 1
# What is stored, and in which files: other names could not be read any more. A folder may also hold the graph or the
# lists of an earlier version, which are not read.
_ENCODER, _WIDTH, _IDS, _DIGESTS = "encoder", "width", "ids", "digests"  # in the file of the tools
_TOOLS_FILE, _WORDS_FILE, _ROWS_FILE = "tools.json", "words.json.z", "rows.npy"


class FaissIndex(VectorIndex):
    """`VectorIndex` in a folder. It refuses to work without faiss, where `VectorIndex` does without."""

    name = "faiss"

    def __init__(
        self,
        encoder: str | Encoder = "static",
        *,
        near: float = NEAR,
        near_alone: float | None = None,
        approximate_from: int | None = APPROXIMATE_FROM,
    ) -> None:
        if find_spec("faiss") is None:
            raise MissingExtra("the index 'faiss'", "faiss-cpu", "faiss")
        super().__init__(encoder, near=near, near_alone=near_alone, approximate_from=approximate_from)
        self._vectors = self._stored = _StoredVectors(self._vectors.encoder, approximate_from)

    def keep_only(self, ids: Iterable[str]) -> None:
        """Removes all tools but these: a folder may still have held tools that have left the catalog since."""
        with self._changes:
            self.remove(sorted(self._stored.ids() - set(ids)))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes vectors, ids and words into a folder of their own; `load` reads them."""
        with self._changes:
            target = Folder(folder, self.name, _recipe())
            words = {tool_id: sorted(of_tool) for tool_id, of_tool in self._words.items()}
            with target.writing():
                target.save(self._stored.files() | {_WORDS_FILE: zlib.compress(json.dumps(words).encode(), 1)})

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        encoder: str | Encoder = "static",
        *,
        near: float = NEAR,
        near_alone: float | None = None,
        approximate_from: int | None = APPROXIMATE_FROM,
    ) -> FaissIndex:
        """The index a folder holds; an empty one, with a warning in the log, if it is damaged or of another version.

        Raises `SetupError` if another encoder made its vectors.
        """
        index = cls(encoder, near=near, near_alone=near_alone, approximate_from=approximate_from)
        if files := Folder(folder, cls.name, _recipe()).load():
            try:
                index._restore(files, os.fspath(folder))
            except SetupError:
                raise
            except Exception as error:  # files that are whole, but no index: numpy and faiss raise whatever comes
                log.warning("the index in %r is made anew: %s: %s", os.fspath(folder), type(error).__name__, error)
                return cls(encoder, near=near, near_alone=near_alone, approximate_from=approximate_from)
        return index

    def _restore(self, files: dict[str, bytes], folder: str) -> None:
        self._stored.restore(files, folder)
        for tool_id, words in json.loads(zlib.decompress(files[_WORDS_FILE])).items():
            self._set_words(tool_id, frozenset(words))


class _StoredVectors(ToolVectors):
    """The vectors of tools, to and from the files of a folder."""

    def ids(self) -> set[str]:
        return set(self._digests)

    def files(self) -> dict[str, bytes]:
        """What `restore` takes."""
        import numpy as np

        with self._changes:
            name, width = self._made_by or (self.encoder.name, self.encoder.width)
            ids, rows = (self._rows or self._matrix(width)).live()
            about = {_ENCODER: name, _WIDTH: width, _IDS: ids, _DIGESTS: [self._digests[i].hex() for i in ids]}
        file = io.BytesIO()
        np.save(file, rows)
        return {_ROWS_FILE: file.getvalue(), _TOOLS_FILE: json.dumps(about).encode()}

    def restore(self, files: dict[str, bytes], folder: str) -> None:
        import numpy as np

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
            self._rows = rows = self._matrix(width)
            rows.put(ids, np.load(io.BytesIO(files[_ROWS_FILE]), allow_pickle=False))
            self._digests = {i: bytes.fromhex(d) for i, d in zip(ids, about[_DIGESTS], strict=True)}
            self._made_by = name, width
            self.refresh()


def _recipe() -> str:
    return f"{FORMAT} {json.dumps(PASSAGES)}"
