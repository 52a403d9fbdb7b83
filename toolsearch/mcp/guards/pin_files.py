"""The file of pins: JSON in a fixed order, so that versions of it can be compared, and shared by several processes.

It is written whole, beside its old version, and then put in its place: a reader never sees half of it. Writers take
turns by a lock. A new file can be read by its owner alone; the permissions of an old one stay.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from toolsearch import SetupError
from toolsearch.support.locks import locked
from toolsearch.support.private_files import make_private_folder, state_folder

__all__ = ["Entries", "PinFile", "Stamp", "pins_file"]

log = logging.getLogger("toolsearch")

FORMAT = 1
ABOUT = "Definitions of tools as they were approved. Written by toolsearch; see: toolsearch pin --help"
LOCK_SECONDS = 10.0  # that a writer waits for another one

Entries: TypeAlias = dict[str, dict[str, Any]]
Stamp: TypeAlias = tuple[int, int, int] | None


def pins_file(*configs: str | os.PathLike[str]) -> Path:
    """The file with the pins of a configuration, or of several together, in the user's state folder."""
    places = [str(Path(config).resolve()) for config in configs]
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(places[0]).stem)[:40] if places else "pins"
    return state_folder() / "pins" / f"{name}-{hashlib.sha256(json.dumps(places).encode()).hexdigest()[:12]}.json"


@dataclass(frozen=True)
class PinFile:
    """A file with the digest and the definition of each pinned tool, by its id."""

    path: Path

    def stamp(self) -> Stamp:
        """Another one whenever the file was written; None if there is none."""
        try:
            state = self.path.stat()
        except OSError:
            return None
        return state.st_mtime_ns, state.st_size, state.st_ino

    def read(self) -> Entries:
        """The entries; none where there is no file. Raises `SetupError` for one that cannot be read.

        A damaged file is not taken for an empty one: that would approve whatever the servers say now.
        """
        try:
            text = self.path.read_text("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise self._unreadable(str(error)) from None
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._unreadable(f"it is not JSON: {error}") from None
        if not isinstance(content, dict) or not isinstance(tools := content.get("tools"), dict):
            raise self._unreadable("it has no 'tools'")
        if content.get("version") != FORMAT:
            raise self._unreadable(f"it has the version {content.get('version')!r}, and this program reads {FORMAT}")
        for tool_id, entry in tools.items():
            if not isinstance(entry, dict) or not isinstance(entry.get("digest"), str):
                raise self._unreadable(f"the entry of {tool_id!r} has no digest")
            if not isinstance(entry.get("definition"), dict):
                raise self._unreadable(f"the entry of {tool_id!r} has no definition")
        return tools

    @contextmanager
    def changing(self) -> Generator[Entries]:
        """The entries as they are now, to be changed; what they are at the end is written. Others wait meanwhile.

        Raises `OSError` if the file cannot be written, and `SetupError` if it cannot be read or stays locked.
        """
        with self._lock():
            entries = self.read()
            before = json.dumps(entries, sort_keys=True)
            yield entries
            if json.dumps(entries, sort_keys=True) != before:
                self._write(entries)

    def _write(self, entries: Entries) -> None:
        target = self.path.resolve()  # a link stays a link
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = {"about": ABOUT, "version": FORMAT, "tools": entries}
        text = json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            with suppress(OSError):
                Path(name).chmod(target.stat().st_mode & 0o777)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    @contextmanager
    def _lock(self) -> Generator[None]:
        """The turn of this process. The lock lies in the state folder: nothing is left beside a file in a project."""
        name = hashlib.sha256(str(self.path.resolve()).encode()).hexdigest()[:16]
        folder = state_folder() / "locks"
        with ExitStack() as stack:
            try:
                make_private_folder(folder)
                stack.enter_context(locked(folder / f"{name}.lock", LOCK_SECONDS))
            except TimeoutError:
                raise SetupError(
                    f"the pins in {str(self.path)!r} are being written by another process for more than "
                    f"{LOCK_SECONDS:g} seconds: end it, and try again"
                ) from None
            except (OSError, SetupError) as error:
                log.warning("the pins in %s are written without a lock: %s", self.path, error)
            yield

    def _unreadable(self, why: str) -> SetupError:
        return SetupError(
            f"the pins in {str(self.path)!r} cannot be read: {why}. Restore the file from a copy, or delete it to "
            "approve anew whatever the servers offer now"
        )
