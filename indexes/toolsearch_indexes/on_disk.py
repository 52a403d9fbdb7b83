"""A folder that holds an index: which engine's, in which format, whole or damaged, and who may write.

A mark, `toolsearch-index.json`, names the engine, the format, the recipe, and each file with its checksum. It is
replaced in one step after the files are written, so a reader sees the old index or the new one. Files that do not fit
the mark are damaged: this is logged, and the index is written anew from the tools that the catalog adds.

A file is only removed if a mark has named it. So a mark names new files before they are written, as files that are
there `also`; what a process that was killed has left is removed by the next one that writes, and a file that somebody
else has put into the folder stays.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
import zlib
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from toolsearch.errors import SetupError

__all__ = ["Folder"]

log = logging.getLogger("toolsearch")

MARK = "toolsearch-index.json"
LOCK = "toolsearch-index.lock"
PART = ".part"  # the suffix of a file that is being written
_PART_OF = re.compile(r"(.+)\.\d+-\d+\.part")  # see `_write`
# The keys of the mark: other names could not be read any more. `ALSO` are files that are no part of the index: those
# that are being written, and those that are no longer needed.
ENGINE, RECIPE, FILES, ALSO = "engine", "recipe", "files", "also"
RETRIES = 3
PAUSE_SECONDS = 0.02


class Folder:
    """A folder for one index, shared by processes. The files in it are trusted: nobody else may write there.

    With `inside`, the files are in a subfolder of that name, and the engine writes them itself. Raises `SetupError` if
    the path is not a folder, or holds anything but an index of this engine.
    """

    def __init__(
        self, path: str | os.PathLike[str], engine: str, recipe: str, *, inside: str = "", lock_seconds: float = 5
    ) -> None:
        self.path = Path(path)
        self.files = self.path / inside
        self._made_by = {ENGINE: engine, RECIPE: recipe}
        self._lock_seconds = lock_seconds
        self._gave_up = float("-inf")
        self._writer: int | None = None  # the thread that holds the lock
        self._seen: object = None
        self._sums: dict[str, int] = {}  # name -> checksum, as the mark had them at the last load or save
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            others = {entry.name for entry in self.path.iterdir()} - {MARK, LOCK}
        except (OSError, ValueError) as error:
            raise SetupError(f"{str(path)!r} cannot be the folder of an index: {error}") from None
        others = {name for name in others if not name.endswith(PART)}
        mark = self._mark()
        self._has_lost_mark = bool(others) and not (self.path / MARK).exists()
        if self._has_lost_mark and not (self.path / LOCK).exists():  # it never was the folder of an index
            raise SetupError(
                f"the folder {str(path)!r} holds files that are not an index, such as {min(others)!r}: "
                "pass an empty folder"
            )
        if mark is not None and mark.get(ENGINE) != engine:
            raise SetupError(f"the folder {str(path)!r} holds an index of {mark.get(ENGINE)!r}, not of {engine!r}")

    def has_changed(self) -> bool:
        """Whether another process has written since the last `load`, `save` or `sign`."""
        return self._stamp() != self._seen

    def load(self, *, contents: bool = True) -> dict[str, bytes] | None:
        """The files of the index, checked, with or without their contents; None if there is no usable index."""
        problem: str | None = ""
        for attempt in range(RETRIES):
            if attempt:
                sleep(PAUSE_SECONDS)  # another process may be writing it right now
            loaded, problem = self._read(contents)
            if problem is None:
                return loaded
        was = problem
        with self.writing():  # which makes a mark where there is none
            loaded, problem = self._read(contents)
        if loaded is None:
            log.warning("the index in %r is made anew: %s", str(self.path), problem or was)
        return loaded

    @contextmanager
    def writing(self) -> Generator[None]:
        """Holds the lock. The system releases it when a process ends, so a lock file left behind locks nothing.

        Raises `SetupError` if another process holds it for longer than `lock_seconds`, or if the disk fails. Once the
        first has happened, further tries do not wait that long again. A thread may enter it again; the engine's own
        lock keeps other threads out.
        """
        if self._writer == threading.get_ident():
            yield
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)  # it may have been removed while in use
            lock = (self.path / LOCK).open("ab")
        except OSError as error:
            raise SetupError(f"the index in {str(self.path)!r} cannot be written: {error}") from None
        with lock as file:
            wait = self._lock_seconds if monotonic() - self._gave_up > self._lock_seconds else 0.0
            until = monotonic() + wait
            while not _try_lock(file.fileno()):
                if monotonic() >= until:
                    self._gave_up = monotonic()
                    raise SetupError(
                        f"another process has been writing the index in {str(self.path)!r} for more than "
                        f"{self._lock_seconds:g} s. Raise lock_seconds, or give each process a folder of its own"
                    )
                sleep(PAUSE_SECONDS)
            self._writer = threading.get_ident()
            try:
                if self._stamp() is None:  # before any file, so that a crash leaves no folder without a mark
                    self._sign(None)
                yield
            except OSError as error:
                raise SetupError(f"the index in {str(self.path)!r} cannot be written: {error}") from error
            finally:
                self._writer = None
                _unlock(file.fileno())

    def save(self, files: Mapping[str, bytes]) -> None:
        """Makes these the files of the index; the lock must be held. An unchanged file is not written again."""
        sums = {name: zlib.crc32(content) for name, content in files.items()}
        listed = self._listed()
        if not listed.issuperset(sums):
            self._write_mark({**self._made_by, FILES: None, **(self._mark() or {}), ALSO: sorted(listed.union(sums))})
        for name, content in files.items():
            if self._sums.get(name) != sums[name] or not (self.files / name).exists():
                self._write(self.files / name, content)
        gone = listed.difference(sums)
        self._sign(sums, gone)
        self._remove(gone)

    def sign(self, names: Collection[str], changing: Collection[str] = ()) -> None:
        """Marks these files as the engine has left them; the lock must be held.

        A file that was marked before is not read again, unless it is one of the `changing`, which keep their name when
        they change.
        """
        sums = {}
        for name in names:
            known = None if name in changing else self._sums.get(name)
            sums[name] = zlib.crc32((self.files / name).read_bytes()) if known is None else known
        self._sign(sums, self._listed().difference(sums))

    def clear(self, more: Collection[str] = ()) -> None:
        """Removes every file of the index, and those that the engine has named (`more`); the lock must be held."""
        self.files.mkdir(exist_ok=True)
        self._remove({*self._listed(), *more})
        self._sums = {}

    def _listed(self) -> set[str]:
        """The names of all files that the mark names."""
        mark = self._mark() or {}
        sums, also = mark.get(FILES), mark.get(ALSO)
        names = [*(sums if isinstance(sums, dict) else ()), *(also if isinstance(also, list) else ())]
        return {name for name in names if isinstance(name, str) and name not in (MARK, LOCK)}

    def _remove(self, names: Collection[str]) -> None:
        """Removes files by their names, and what a killed process has left of them and of the mark."""
        for entry in [*self.files.iterdir(), *([] if self.files == self.path else self.path.iterdir())]:
            part = _PART_OF.fullmatch(entry.name)
            if (entry.name in names or (part and part[1] in {*names, *self._listed(), MARK})) and entry.is_file():
                try:
                    entry.unlink()
                except OSError:  # Windows, while another process reads it: the next save removes it
                    continue

    def _sign(self, sums: dict[str, int] | None, gone: Iterable[str] = ()) -> None:
        """Writes the mark; those of the files that are `gone`, but still there, are there `also`."""
        also = sorted(name for name in gone if (self.files / Path(name).name).exists())
        self._write_mark({**self._made_by, FILES: sums, **({ALSO: also} if also else {})})
        self._sums, self._seen = sums or {}, self._stamp()

    def _write_mark(self, mark: Mapping[str, object]) -> None:
        self._write(self.path / MARK, json.dumps(mark, indent=1).encode())

    def _write(self, file: Path, content: bytes) -> None:
        part = file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}{PART}")
        try:
            part.write_bytes(content)
            part.replace(file)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise

    def _stamp(self) -> object:
        try:
            mark = (self.path / MARK).stat()
        except OSError:
            return None
        return mark.st_mtime_ns, mark.st_ino, mark.st_size

    def _mark(self) -> dict[str, Any] | None:
        try:
            mark = json.loads((self.path / MARK).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return mark if isinstance(mark, dict) else None

    def _read(self, contents: bool) -> tuple[dict[str, bytes] | None, str | None]:
        """The files, or what is wrong with them; neither if no index was ever written."""
        before, self._sums = self._sums, {}
        self._seen = self._stamp()
        mark = self._mark()
        if mark is None and self._has_lost_mark:
            return None, "its mark is gone"
        if mark is None:
            return None, None if self._seen is None else "its mark cannot be read"
        if {key: mark.get(key) for key in self._made_by} != self._made_by:
            return None, "it was made by another version of toolsearch, with other words or weights"
        sums = mark.get(FILES)
        if sums is None:
            return None, None
        if not isinstance(sums, dict):
            return None, "its mark names no files"
        loaded: dict[str, bytes] = {}
        for name, expected in sums.items():
            file = self.files / Path(name).name
            if not contents and before.get(name) == expected and file.exists():
                continue  # it was checked when this process met it first
            try:
                content = file.read_bytes()
            except OSError:
                return None, f"the file {name!r} cannot be read"
            if zlib.crc32(content) != expected:
                return None, f"the file {name!r} is damaged"
            if contents:
                loaded[name] = content
        self._sums = sums
        return loaded, None


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: int) -> bool:
        os.lseek(file, 0, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: int) -> None:
        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
