"""What was connected, kept so that it can be undone: both texts of a client's file, for the user alone."""

from __future__ import annotations

import hashlib
import json
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ValidationError

from toolsearch import SetupError
from toolsearch.mcp.clients import json_edit
from toolsearch.mcp.clients.connection import OURS, Connection, read_text
from toolsearch.mcp.clients.convert import is_gateway
from toolsearch.mcp.clients.preview import difference
from toolsearch.mcp.clients.table import App
from toolsearch.support.locks import locked
from toolsearch.support.private_files import make_private_folder, read_private, state_folder, write_private

__all__ = ["Changed", "Records"]

LOCK_SECONDS = 10.0


class Changed(SetupError):
    """A file is not as it was left, so that nothing is undone; `lines` show what differs."""

    def __init__(self, message: str, lines: list[str]) -> None:
        super().__init__(message)
        self.lines = lines


class _Record(BaseModel):
    version: int = 1
    client: str
    file: str
    existed: bool
    config: str
    config_existed: bool
    added: dict[str, str]  # the digests of the entries that were put into the configuration
    moved: list[str]  # their names, and those of entries that were there already
    time: float


class Records:
    """The connections of this user. Its methods raise `SetupError`."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = state_folder() / "connections" if folder is None else folder

    def make(self, change: Connection) -> Path:
        """Makes a change, and gives the place of the copy that was kept of the client's file.

        The copy comes first, then the configuration, then the client's file: whatever breaks off, no server is lost.
        Raises `SetupError` if a file is not as it was when the change was thought out.
        """
        make_private_folder(self.folder)
        try:
            with locked(self.folder / "lock", LOCK_SECONDS):
                for path, text in ((change.file, change.before), (change.config, change.config_before)):
                    if read_text(path) != text:
                        raise SetupError(f"the file {str(path)!r} has changed meanwhile: run the command again")
                copy = self._keep(change)
                write_private(_made(change.config), change.config_after.encode())
                _replace(change.file, change.after)
        except OSError as error:
            raise SetupError(f"the change cannot be made: {error}") from None
        return copy

    def undo(self, app: App, file: Path, *, keep_changes: bool = False) -> list[str]:
        """Puts back the file as it was before the last change to it, and says what was done.

        With `keep_changes`, only the servers go back, into the file as it is now: what else has changed stays.
        Raises `Changed` if it is not as that change left it, `SetupError` if there was none.
        """
        try:
            key = next(self._keys(file), None)
            if key is None:
                raise SetupError(f"there is nothing to undo: toolsearch has not changed {str(file)!r}")
            with locked(self.folder / "lock", LOCK_SECONDS):
                return self._undo(app, file, key, keep_changes=keep_changes)
        except OSError as error:
            raise SetupError(f"it cannot be undone: {error}") from None

    def _undo(self, app: App, file: Path, key: str, *, keep_changes: bool) -> list[str]:
        record = self._record(key)
        before, after = (self._text(key, part) for part in ("before", "after"))
        now = read_text(file)
        was = before if record.existed else None
        done = []
        if now == was:
            done.append(f"{file} is already as it was")
        elif now != after and keep_changes:
            _replace(file, _with_servers_of(before, now or "", app, file))
            done.append(f"the servers are back in {file}, and what else has changed there stays")
        elif now != after:
            lines = list(difference(after, now or "", file.name, app.form, ("as toolsearch wrote it", "as it is now")))
            raise Changed(
                f"the file {str(file)!r} has changed since toolsearch wrote it, so nothing is undone. Say "
                "--keep-changes to put the servers back, without their comments, and leave the rest as it is now; the "
                f"file as it was is {self.folder / key!s}.before",
                lines,
            )
        elif was is None:
            file.unlink()
            done.append(f"{file} is removed: there was none before")
        else:
            _replace(file, was)
            done.append(f"{file} is as it was before")
        done += self._clean(record, key)
        for part in ("json", "before", "after"):
            (self.folder / f"{key}.{part}").unlink(missing_ok=True)
        return done

    def _clean(self, record: _Record, key: str) -> Iterator[str]:
        """Takes what this connection added out of the configuration, unless it was changed or another one needs it."""
        config = Path(record.config)
        text = read_text(config)
        if text is None:
            return
        found = json_edit.entries_in(text, OURS, f"the file {record.config!r}")
        needed = {
            name
            for other in self._all()
            if other != key and (each := self._record(other)).config == record.config
            for name in each.moved
        }
        gone = [name for name, digest in record.added.items() if name in found and _digest(found[name]) == digest]
        gone = [name for name in gone if name not in needed]
        for name in record.added:
            if name in found and name not in gone:
                yield f"{name} stays in {config}: it was changed there, or another client needs it"
        if not record.config_existed and len(gone) == len(found):
            config.unlink()
            yield f"{config} is removed: nothing is left in it"
        elif gone:
            without = json_edit.with_entries(text, OURS, gone, {}, f"the file {record.config!r}")
            write_private(config.resolve(), without.encode())
            yield f"{', '.join(gone)} left {config}"

    def _keep(self, change: Connection) -> Path:
        numbers = [int(key.rpartition(".")[2]) for key in self._keys(change.file)]
        key = f"{_stem(change.file)}.{max(numbers, default=0) + 1}"
        record = _Record(
            client=change.app.name,
            file=str(change.file),
            existed=change.before is not None,
            config=str(change.config),
            config_existed=change.config_before is not None,
            added={name: _digest(entry) for name, entry in change.added.items()},
            moved=list(change.moved.values()),
            time=time.time(),
        )
        copy = self.folder / f"{key}.before"
        write_private(copy, (change.before or "").encode())
        write_private(self.folder / f"{key}.after", change.after.encode())
        write_private(self.folder / f"{key}.json", record.model_dump_json(indent=1).encode())
        return copy

    def _all(self) -> Iterator[str]:
        return (path.name.removesuffix(".json") for path in self.folder.glob("*.json"))

    def _keys(self, file: Path) -> Iterator[str]:
        """The changes to a file, the last one first."""
        own = [key for key in self._all() if key.rpartition(".")[0] == _stem(file)]
        return iter(sorted(own, key=lambda key: int(key.rpartition(".")[2]), reverse=True))

    def _record(self, key: str) -> _Record:
        try:
            return _Record.model_validate_json(read_private(self.folder / f"{key}.json") or b"")
        except ValidationError:
            raise SetupError(f"the record {str(self.folder / key)!r} is damaged: remove it") from None

    def _text(self, key: str, part: str) -> str:
        data = read_private(self.folder / f"{key}.{part}")
        if data is None:
            raise SetupError(f"the copy {self.folder / key!s}.{part} is gone, so nothing can be undone")
        return data.decode()


def _with_servers_of(before: str, now: str, app: App, file: Path) -> str:
    """The text of now, with the servers of before that have gone since, and without the gateway."""
    what = f"the file {str(file)!r}"
    entries = app.entries(now, what)
    back = {name: entry for name, entry in app.entries(before, what).items() if name not in entries}
    return app.changed(now, [name for name, entry in entries.items() if is_gateway(entry)], back, what)


def _stem(file: Path) -> str:
    return hashlib.sha256(str(file.absolute()).encode()).hexdigest()[:16]


def _digest(entry: object) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()


def _made(path: Path) -> Path:
    """The file itself, where its name is a link; its folder is made."""
    real = path.resolve()
    real.parent.mkdir(parents=True, exist_ok=True)
    return real


def _replace(path: Path, text: str) -> None:
    """Writes a client's file with the mode that it has; through a link, which dotfiles often are."""
    real = _made(path)
    mode = 0o600
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(real.stat().st_mode)
    write_private(real, text.encode(), mode)
