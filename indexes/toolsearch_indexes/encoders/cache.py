"""The vectors of any encoder, kept on disk: found by content, shared by processes, safe to kill at any time.

One SQLite file in WAL mode is opened for each call and closed again, so nothing is held across threads and forks. A row
is stored with a checksum, and only after its batch was encoded and checked, so a crash loses the running batch at most.
Texts are not stored, only SHA-256 keys. A file that cannot be read is set aside and rebuilt. Where nothing can be
written, the encoder works without the cache and says so in the log.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from toolsearch.errors import SetupError
from toolsearch.support.private_files import cache_folder
from toolsearch.support.sqlite_errors import FAILURES, is_damage
from toolsearch.support.text import clean
from toolsearch_indexes.encoders import Encoder, as_encoder, encoded, not_finite, unit_rows, warm_up

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CachedEncoder", "default_folder"]

log = logging.getLogger("toolsearch")

FORMAT = 1  # of the file and of the keys; a file of a newer one is refused
FILE = "vectors.sqlite3"
_WAIT_SECONDS = 10  # for another process that is writing
_KEYS = 500  # in one statement; every SQLite takes 999


class CachedEncoder:
    """`encoder`, with its vectors of documents kept in `folder`, by default `default_folder()`.

    Vectors come back as `encoded` returns them: checked, float32, of length 1. Queries are not kept unless `queries` is
    True: there are many, and a write for each is slower than a model in this process; for an endpoint it pays. `recipe`
    is part of the key: change it when a program makes its texts in another way that the texts do not show. Beyond
    `max_vectors` the oldest are deleted. The folder must be on a local disk, which SQLite's WAL needs.
    """

    def __init__(
        self,
        encoder: str | Encoder,
        folder: str | os.PathLike[str] | None = None,
        *,
        queries: bool = False,
        recipe: str = "1",
        batch: int = 256,
        max_vectors: int = 1_000_000,
    ) -> None:
        if batch < 1 or max_vectors < 1:
            raise SetupError(f"batch and max_vectors must be 1 or more, not {batch!r} and {max_vectors!r}")
        self._encoder = as_encoder(encoder)
        self._file = _VectorFile(Path(folder) if folder is not None else default_folder(), max_vectors)
        self._queries = queries
        self._recipe = recipe
        self._batch = batch

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._encoder!r}, {str(self._file.folder)!r})"

    @property
    def name(self) -> str:
        return self._encoder.name

    @property
    def width(self) -> int:
        return self._encoder.width

    def warm_up(self) -> None:
        """Loads the encoder behind the cache."""
        warm_up(self._encoder)

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        import numpy as np

        if isinstance(texts, str) or (query and not self._queries):
            return encoded(self._encoder, texts, query=query)
        width = self.width
        keys = self._keys([clean(text) for text in texts], query)
        vectors: dict[bytes, NDArray[np.float32]] = {
            key: np.frombuffer(row, "<f4") for key, row in self._file.get(keys, 4 * width).items()
        }
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        log.debug("%d of %d vectors of %s are kept", len(keys) - len(missing), len(keys), self.name)
        waiting = list(missing)
        for start in range(0, len(waiting), self._batch):
            batch = waiting[start : start + self._batch]
            rows = dict(zip(batch, unit_rows(self._encoder, [missing[key] for key in batch], query=query), strict=True))
            vectors |= rows
            # What is right is kept before what is not is reported, so that it need not be asked for again.
            right = {key: row for key, row in rows.items() if np.isfinite(row).all()}
            self._file.put({key: row.astype("<f4").tobytes() for key, row in right.items()})
        for key, text in missing.items():
            if not np.isfinite(vectors[key]).all():
                raise not_finite(self._encoder, None if query else text)
        result = np.empty((len(texts), width), np.float32)
        for row_number, key in enumerate(keys):
            result[row_number] = vectors[key]
        return result

    def _keys(self, texts: Iterable[str], query: bool) -> list[bytes]:
        """SHA-256 of everything that a vector depends on. Another head would orphan every stored vector."""
        role = "query" if query else "document"
        head = json.dumps([FORMAT, self.name, self.width, "length 1", role, self._recipe]).encode() + b"\n"
        return [hashlib.sha256(head + text.encode()).digest() for text in texts]


def default_folder() -> Path:
    """Where this platform keeps caches: XDG_CACHE_HOME or ~/.cache, ~/Library/Caches, or LOCALAPPDATA."""
    try:
        return cache_folder() / "vectors"
    except SetupError:
        raise SetupError("this user has no home folder: pass the folder for vectors") from None


class _VectorFile:
    """Keys and bytes in one SQLite file. Reading and writing raise only for a file of a newer format."""

    def __init__(self, folder: Path, max_vectors: int) -> None:
        self.folder = folder
        self._path = folder / FILE
        self._max_vectors = max_vectors
        self._has_warned = False

    def get(self, keys: Sequence[bytes], size: int) -> dict[bytes, bytes]:
        """The vectors kept under these keys that are undamaged and `size` bytes long."""
        vectors: dict[bytes, bytes] = {}
        before = _identity(self._path)
        if not keys or before is None:
            return vectors
        try:
            with closing(self._open()) as connection:
                for start in range(0, len(keys), _KEYS):
                    some = keys[start : start + _KEYS]
                    marks = ",".join("?" * len(some))
                    select = f"SELECT key, vector, checksum FROM vectors WHERE key IN ({marks})"  # noqa: S608
                    rows = connection.execute(select, some)
                    vectors.update(
                        (key, vector)
                        for key, vector, checksum in rows
                        if isinstance(vector, bytes) and len(vector) == size and _checksum(key, vector) == checksum
                    )
        except FAILURES as error:
            self._set_aside(error, before)
        return vectors

    def put(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keeps these vectors, all or none."""
        before = None
        for attempt in (1, 2):  # once more where a damaged file was set aside
            try:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                before = _identity(self._path)
                with closing(self._open()) as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    connection.executemany(
                        "INSERT OR REPLACE INTO vectors (key, vector, checksum) VALUES (?, ?, ?)",
                        [(key, vector, _checksum(key, vector)) for key, vector in vectors.items()],
                    )
                    oldest = "DELETE FROM vectors WHERE id <= (SELECT max(id) FROM vectors) - ?"
                    connection.execute(oldest, (self._max_vectors,))
                    connection.execute("COMMIT")
                return
            except (OSError, *FAILURES) as error:
                if not self._set_aside(error, before) or attempt == 2:
                    return

    def _open(self) -> sqlite3.Connection:
        """A connection to the file, in this version's format. Closing it rolls back what was not committed."""
        connection = sqlite3.connect(self._path, timeout=_WAIT_SECONDS, isolation_level=None)
        connection.text_factory = bytes  # a value that is text by mistake is checked by its checksum too
        try:
            version = _version(connection)
            if version == 0:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("BEGIN IMMEDIATE")
                if (version := _version(connection)) == 0:  # no other process was quicker
                    connection.execute(
                        "CREATE TABLE IF NOT EXISTS vectors (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
                        " vector BLOB NOT NULL, checksum INTEGER NOT NULL)"
                    )
                    connection.execute(f"PRAGMA user_version={FORMAT}")
                connection.execute("COMMIT")
            if version > FORMAT:
                raise SetupError(
                    f"{str(self._path)!r} has format {version}, written by a newer toolsearch; this one reads "
                    f"{FORMAT}. Pass another folder, or install the newer version"
                )
            connection.execute("PRAGMA synchronous=NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_aside(self, error: Exception, before: tuple[int, int] | None) -> bool:
        """Sets a damaged file aside and returns whether it is gone; any other failure is only logged."""
        if not is_damage(error):
            if not self._has_warned:
                self._has_warned = True
                log.warning("the vector cache %s cannot be used, vectors are computed again: %s", self._path, error)
            return False
        if _identity(self._path) != before:  # another process has set it aside already
            return True
        aside = f".damaged-{time.time_ns()}"
        try:
            # The log of changes goes first: a new file beside an old log would be read together with it.
            for suffix in ("-wal", "-shm", ""):
                part = self._path.with_name(FILE + suffix)
                if part.exists():
                    part.rename(part.with_name(part.name + aside))
        except OSError as problem:  # Windows: another process has it open
            log.warning("the vector cache %s is damaged (%s) and cannot be set aside: %s", self._path, error, problem)
            return False
        log.warning("the vector cache %s is damaged (%s): set aside as %s, rebuilt", self._path, error, FILE + aside)
        return True


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _checksum(key: bytes, vector: bytes) -> int:
    return zlib.crc32(vector, zlib.crc32(key))
