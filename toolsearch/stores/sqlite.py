"""Journals in one SQLite file: the embedded default.

Any number of threads and processes may use a file at once: writes happen one after another, and readers never wait.
Once `append` has returned, the facts are on disk, even if the process or the machine fails right after.
"""

from __future__ import annotations

import builtins
import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from toolsearch.errors import SetupError, StateError, ToolSearchError
from toolsearch.stores.entries import (
    Leased,
    StoredConversation,
    check_id,
    check_lease,
    check_page,
    check_time,
    json_lines,
    wrong_position,
)
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.sqlite_errors import FAILURES, code_of, is_damage

__all__ = ["SqliteStore"]

APPLICATION = 0x746F6F6C  # "tool": marks a file as ours

# The steps from each layout to the next; `user_version` says how many of them a file has been through.
STEPS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE facts (conversation TEXT NOT NULL, position INTEGER NOT NULL, fact TEXT NOT NULL,
            PRIMARY KEY (conversation, position)) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE conversations (id TEXT PRIMARY KEY, facts INTEGER NOT NULL, written_at REAL NOT NULL)
            WITHOUT ROWID""",
        """INSERT INTO conversations SELECT conversation, count(*),
            max(CASE WHEN json_valid(fact) THEN coalesce(json_extract(fact, '$.at'), 0) ELSE 0 END)
            FROM facts GROUP BY conversation""",
        "CREATE INDEX conversations_by_time ON conversations (written_at)",
    ),
    (
        """CREATE TABLE leases (conversation TEXT PRIMARY KEY, owner TEXT NOT NULL, taken_at REAL NOT NULL,
            seconds REAL NOT NULL) WITHOUT ROWID""",
    ),
)


class SqliteStore:
    """The journals in the file `path`, which is created if it does not exist; its folder must exist.

    A write waits at most `busy_seconds` for a write of another process. `clock` gives the seconds since the epoch.
    Raises `SetupError` for a file that cannot be opened or is another program's, `StateError` for a damaged or newer
    one. While the file is in use, there are a `-wal` and a `-shm` file next to it: copy all three, or close it first.
    """

    _writer: sqlite3.Connection | None
    _reader: sqlite3.Connection | None

    def __init__(
        self, path: str | os.PathLike[str], *, busy_seconds: float = 10.0, clock: Callable[[], float] = time.time
    ) -> None:
        checks.number("busy_seconds", busy_seconds, "a number of seconds", least=0, finite=True)
        checks.function("clock", clock, "that gives seconds since the epoch")
        if not isinstance(path, str | bytes | os.PathLike):
            raise checks.wrong("path", "the path of a file", path)
        named: object = os.fspath(path)
        if not isinstance(named, str) or named in ("", ":memory:"):
            raise SetupError(
                f"{checks.shown(named)} is not the path of a file; for journals in memory use MemoryStore()"
            )
        self.path = named
        self._busy, self._clock = busy_seconds, clock
        self._closed = False
        self._reset()
        with self._reported_errors():
            writer = self._writer = self._open_connection()
            try:
                self._prepare(writer)
            except BaseException:
                self.close()
                raise
        _STORES.add(self)

    def _reset(self) -> None:
        # One connection writes and one reads, so that no reader waits for a writer that waits for another process.
        self._writer = self._reader = None
        self._write_lock, self._read_lock = threading.Lock(), threading.Lock()

    # -- journals ------------------------------------------------------------------------------------------------

    def append(self, conversation_id: str, position: int, facts: Sequence[JsonObject]) -> None:
        """Adds facts, the first of them at `position`; raises `StateError` if the journal has another length.

        Either all of them are stored or none.
        """
        check_id(conversation_id)
        lines = json_lines(conversation_id, facts)
        rows = [(conversation_id, position + n, line) for n, line in enumerate(lines)]
        with self._writing() as connection:
            row = connection.execute("SELECT facts FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
            found = row[0] if row else 0
            if type(found) is not int:
                raise self._damage(f"the conversation {conversation_id!r} has {found!r} facts")
            if found != position:
                raise wrong_position(conversation_id, position, found)
            if rows:
                connection.executemany("INSERT INTO facts VALUES (?, ?, ?)", rows)
                connection.execute(
                    "INSERT INTO conversations VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE "
                    "SET facts = excluded.facts, written_at = excluded.written_at",
                    (conversation_id, position + len(rows), checks.time_of(self._clock)),
                )

    def load(self, conversation_id: str) -> builtins.list[dict[str, Any]]:
        """The facts in order; an empty list for an unknown conversation."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT position, fact FROM facts WHERE conversation = ? ORDER BY position",
                (check_id(conversation_id),),
            ).fetchall()
        facts = []
        for place, (position, line) in enumerate(rows):
            try:
                fact = json.loads(line)
            except (TypeError, ValueError, RecursionError):
                fact = None
            if position != place or not isinstance(fact, dict):
                what = "is missing" if position != place else "cannot be read"
                raise StateError(
                    f"fact {place} of the conversation {conversation_id!r} {what} in the store {self.path!r}: restore "
                    "the file from a copy, or delete the conversation"
                )
            facts.append(fact)
        return facts

    def lease(self, conversation_id: str, owner: str, seconds: float, *, instead_of: str = "") -> str:
        """Takes or renews the lease of a conversation; returns who has it now. See `LeasingStore`."""
        check_id(conversation_id)
        check_lease(owner, seconds)
        with self._writing(synced=False) as connection:
            now = time.monotonic()  # after the wait for other writers; it is the same for every process
            select = "SELECT owner, taken_at, seconds FROM leases WHERE conversation = ?"
            row = connection.execute(select, (conversation_id,)).fetchone()
            if row is not None and row[0] not in (owner, instead_of) and Leased(*row).holds(now):
                return str(row[0])
            connection.execute(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", (conversation_id, owner, now, seconds)
            )
        return owner

    def release(self, conversation_id: str, owner: str) -> None:
        """Ends the lease of a conversation, if it is this owner's."""
        with self._writing(synced=False) as connection:
            connection.execute(
                "DELETE FROM leases WHERE conversation = ? AND owner = ?", (check_id(conversation_id), owner)
            )

    def delete(self, conversation_id: str) -> bool:
        """Deletes a conversation; returns whether there was one."""
        check_id(conversation_id)
        with self._writing() as connection:
            connection.execute("DELETE FROM facts WHERE conversation = ?", (conversation_id,))
            gone = connection.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))
            return gone.rowcount > 0

    def expire(self, before: float) -> int:
        """Deletes the conversations last written before a time (seconds since the epoch); returns how many."""
        check_time(before)
        with self._writing() as connection:
            connection.execute(
                "DELETE FROM facts WHERE conversation IN (SELECT id FROM conversations WHERE written_at < ?)", (before,)
            )
            return connection.execute("DELETE FROM conversations WHERE written_at < ?", (before,)).rowcount

    def entries(
        self, prefix: str = "", *, after: str = "", limit: int | None = None
    ) -> builtins.list[StoredConversation]:
        """The conversations whose ids begin with `prefix` and come after `after`, ordered by id, `limit` at most."""
        most = check_page(prefix, after, limit)
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT id, facts, written_at FROM conversations WHERE id >= ? AND id <= ? AND id > ? "
                "ORDER BY id LIMIT ?",
                (prefix, prefix + chr(0x10FFFF) * 4, after, most),
            ).fetchall()
        if odd := [row for row in rows if [*map(type, row)] != [str, int, float]]:
            raise self._damage(f"it lists {odd[0]!r} as a conversation")
        return [StoredConversation(*row) for row in rows]

    def list(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> builtins.list[str]:
        """The ids of `entries`."""
        return [entry.id for entry in self.entries(prefix, after=after, limit=limit)]

    def close(self) -> None:
        """Closes the file; the store cannot be used afterwards."""
        self._closed = True
        with self._write_lock, self._read_lock:
            for connection in (self._writer, self._reader):
                if connection is not None:
                    connection.close()
            self._writer = self._reader = None

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    def __repr__(self) -> str:
        return f"SqliteStore({self.path!r})"

    # -- the file ------------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self, *, synced: bool = True) -> Generator[sqlite3.Connection]:
        """A transaction, for one thread of one process at a time; if it raises, nothing is kept.

        If not `synced`, it may be lost when the machine fails, and does not wait for the disk.
        """
        with self._write_lock, self._reported_errors():
            connection = self._writer = self._writer or self._open_connection()
            if not synced:
                connection.execute("PRAGMA synchronous = NORMAL")
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                if not synced:
                    connection.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        with self._read_lock, self._reported_errors():
            connection = self._reader = self._reader or self._open_connection()
            yield connection

    def _open_connection(self) -> sqlite3.Connection:
        if self._closed:
            raise StateError(f"the store {self.path!r} is closed")
        connection = sqlite3.connect(self.path, timeout=self._busy, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Makes the tables, or brings those of an older layout up to date."""
        if self._version(connection) < len(STEPS):
            connection.execute("BEGIN IMMEDIATE")
            try:
                for number in range(self._version(connection), len(STEPS)):  # another process may have been first
                    for statement in STEPS[number]:
                        connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {len(STEPS)}")
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        self._turn_on_write_ahead_log(connection)

    def _turn_on_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        """Lets readers read during a write. SQLite does not wait for other processes here, so this does."""
        until = time.monotonic() + self._busy
        while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def _version(self, connection: sqlite3.Connection) -> int:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        mark = connection.execute("PRAGMA application_id").fetchone()[0]
        if mark != APPLICATION and (mark or version or connection.execute("SELECT 1 FROM sqlite_master").fetchone()):
            raise SetupError(f"the file {self.path!r} is another program's database: give the store a file of its own")
        if version > len(STEPS):
            raise StateError(
                f"the store {self.path!r} has the layout {version}, and this version of toolsearch reads {len(STEPS)}: "
                "use the newer version that wrote it"
            )
        return version

    @contextmanager
    def _reported_errors(self) -> Generator[None]:
        """Turns an error of SQLite into one that says what to do."""
        try:
            yield
        except FAILURES as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> ToolSearchError:
        if is_damage(error):
            return self._damage(str(error))
        match code_of(error):
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
                return SetupError(
                    f"the store {self.path!r} cannot be opened for writing ({error}): its folder must be there, and "
                    "this process must be allowed to write the file and its folder"
                )
            case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR | sqlite3.SQLITE_NOLFS:
                return StateError(
                    f"the store {self.path!r} cannot be written or read ({error}): look at the disk, which may be "
                    "full. Nothing was stored; try again when there is room"
                )
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return StateError(
                    f"the store {self.path!r} was busy for more than {self._busy:g} s: another process is writing. "
                    "Nothing was stored; try again, or raise busy_seconds"
                )
            case _:
                return StateError(
                    f"the store {self.path!r} cannot be used: {type(error).__name__}: {error}. If it is damaged, "
                    "restore it from a copy, or move it away to begin with an empty one"
                )

    def _damage(self, why: str) -> StateError:
        return StateError(
            f"the store {self.path!r} is damaged or not an SQLite file ({why}): restore it from a copy, or move it "
            "away to begin with an empty one"
        )

    @staticmethod
    def forked() -> None:
        """In a forked child: connections of the parent must neither be used nor closed there."""
        for store in _STORES:
            _INHERITED.append((store._writer, store._reader))
            store._reset()


_STORES: weakref.WeakSet[SqliteStore] = weakref.WeakSet()
_INHERITED: list[tuple[sqlite3.Connection | None, sqlite3.Connection | None]] = []  # kept, so as not to be closed


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SqliteStore.forked)
