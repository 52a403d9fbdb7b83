"""The processes of servers: whole trees are ended, also if this program is killed; what they say on stderr is kept.

A server is started in a session of its own by a shell that first tells its process id, and then becomes the server. So
the whole group can be signalled, whatever the server started. A second shell, one for the whole program, waits for the
end of a pipe from this program: if that comes while groups are left, this program was killed, and it ends them.
On Windows the SDK puts each server into a job, which the system ends with this program.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from mcp.client.stdio import StdioServerParameters, get_default_environment

from toolsearch import SetupError
from toolsearch.mcp.config import ServerEntry
from toolsearch.support.redaction import visible

__all__ = ["ErrorOutput", "Groups", "end_group", "parameters_of"]

log = logging.getLogger("toolsearch.mcp")

HAS_GROUPS = sys.platform != "win32"
GRACE_SECONDS = 2.0
_POLL_SECONDS = 0.02
TAIL = 2_000  # characters of stderr that are kept for a reason
MOST_LINES = 200  # of one connection's stderr that go to the log
_LINE = 500  # characters of a line in the log

_START = 'echo "toolsearch:$$" >&2; exec "$@"'
_MARK = re.compile(rb"toolsearch:(\d+)\r?\n")
_WATCH = """
trap '' HUP INT TERM
while read -r line; do groups=$line; done
for group in $groups; do kill -s TERM -- "-$group" 2>/dev/null; done
[ -z "$groups" ] || sleep 2
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
"""


def parameters_of(entry: ServerEntry) -> StdioServerParameters:
    """How a server is started. Raises `SetupError` if there is no such command or folder."""
    path = {**get_default_environment(), **entry.env}.get("PATH")
    named = entry.command
    if os.path.dirname(named):  # noqa: PTH120
        named = os.path.join(entry.cwd or os.getcwd(), named)  # noqa: PTH109, PTH118
    found = shutil.which(named, path=path)  # which on Windows also finds npx.cmd for npx
    if found is None:
        raise SetupError(
            f"there is no command {entry.command!r}: install it, or correct 'command' or PATH in its entry"
        )
    if entry.cwd is not None and not os.path.isdir(entry.cwd):  # noqa: PTH112
        raise SetupError(f"there is no folder {entry.cwd!r}: correct 'cwd' in its entry")
    command, args = found, list(entry.args)
    if HAS_GROUPS:
        command, args = "/bin/sh", ["-c", _START, "toolsearch", found, *args]
    return StdioServerParameters(
        command=command, args=args, env=dict(entry.env), cwd=entry.cwd, encoding_error_handler="replace"
    )


class Groups:
    """The process groups of all servers, told to the shell that ends them if this program is killed."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._watch: subprocess.Popen[bytes] | None = None
        self._changing = threading.Lock()

    def add(self, group: int) -> None:
        with self._changing:
            self._groups.add(group)
            self._tell()

    def remove(self, group: int) -> None:
        with self._changing:
            self._groups.discard(group)
            self._tell()

    def close(self) -> None:
        """Ends the shell, and waits for it."""
        with self._changing:
            watch, self._watch = self._watch, None
            if watch is not None and watch.stdin is not None:
                with suppress(OSError):
                    watch.stdin.write(b"\n")
                    watch.stdin.close()
                watch.wait()

    def _tell(self) -> None:
        if self._watch is None or self._watch.poll() is not None:
            self._watch = subprocess.Popen(  # noqa: S603
                ["/bin/sh", "-c", _WATCH],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True, env={}, cwd="/",
            )  # fmt: skip
        assert self._watch.stdin is not None
        with suppress(OSError):  # it was killed: the next change starts another
            self._watch.stdin.write(" ".join(map(str, sorted(self._groups))).encode() + b"\n")
            self._watch.stdin.flush()


async def end_group(group: int) -> None:
    """Ends what is left of a process group: politely, and after two seconds by force."""
    for number, seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)):
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):  # it is gone; macOS says the latter of one that is being reaped
            return
        for _ in range(int(seconds / _POLL_SECONDS)):
            if not _is_alive(group):
                return
            await asyncio.sleep(_POLL_SECONDS)


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


class ErrorOutput:
    """What one server writes to stderr: its process group first, then its words, which go to the log within bounds."""

    def __init__(self, server: str, on_group: Callable[[int], None], masked: Callable[[str], str]) -> None:
        self._server, self._on_group, self._masked = server, on_group, masked
        self._tail, self._begin, self._lines = b"", b"" if HAS_GROUPS else None, 0
        self._out, into = os.pipe()
        self.into: TextIO = os.fdopen(into, "w")
        self._loop = asyncio.get_running_loop()
        if HAS_GROUPS:
            os.set_blocking(self._out, False)
            self._loop.add_reader(self._out, self._read)
        else:
            threading.Thread(target=self._read_all, name="toolsearch-mcp-stderr", daemon=True).start()

    @property
    def last_words(self) -> str:
        """The last line with words in it, masked; empty if there is none."""
        lines = [line.strip() for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return visible(self._masked(lines[-1]))[-200:] if lines else ""

    def started(self) -> None:
        """Closes our copy of the end that the server writes to: it is to be the only one who holds it."""
        self.into.close()

    def close(self) -> None:
        self.into.close()
        if HAS_GROUPS and self._out >= 0:
            self._read()
            self._end()

    def _end(self) -> None:
        if self._out >= 0:
            self._loop.remove_reader(self._out)
            os.close(self._out)
            self._out = -1

    def _read(self) -> None:
        try:
            data = os.read(self._out, 65_536) if self._out >= 0 else b""
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._take(data)
        else:
            self._end()

    def _read_all(self) -> None:
        with os.fdopen(self._out, "rb", buffering=0) as out:
            while data := out.read(65_536):
                self._take(data)

    def _take(self, data: bytes) -> None:
        if self._begin is not None:
            self._begin += data
            if (mark := _MARK.match(self._begin)) is not None:
                data, self._begin = self._begin[mark.end() :], None
                self._on_group(int(mark[1]))
            elif b"\n" in self._begin or len(self._begin) > 64:
                data, self._begin = self._begin, None
            else:
                return
        self._tail = (self._tail + data)[-TAIL:]
        if not log.isEnabledFor(logging.DEBUG) or self._lines > MOST_LINES:
            return
        for line in data.decode("utf-8", "replace").splitlines():
            self._lines += 1
            if self._lines > MOST_LINES:
                log.debug("server %r: more than %d lines on stderr; the rest is not logged", self._server, MOST_LINES)
                return
            log.debug("server %r: %s", self._server, visible(self._masked(line[: 2 * _LINE]))[:_LINE])
