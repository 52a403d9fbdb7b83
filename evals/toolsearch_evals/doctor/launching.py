"""How a server over stdio starts and ends: how long it takes, what else it writes, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue

__all__ = ["MARK", "Launch", "launch", "marked"]

MARK = "TOOLSEARCH_DOCTOR"  # in the environment of a server, and so of every process that it starts
GRACE_SECONDS = 3.0  # for a server to end when its input does
MOST_LINES, MOST_BYTES = 10_000, 64_000_000  # of what a server writes, and of a line of it
_ASKED = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "toolsearch-doctor", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


@dataclass(frozen=True, slots=True)
class Launch:
    """One start. `seconds` until it answered `initialize`, or None; `noise` has the lines that were no messages.

    `ended` says whether it ended when its input did, and `left` how many processes were there after that.
    """

    seconds: float | None
    noise: tuple[str, ...]
    ended: bool
    left: int


def launch(
    command: Sequence[str], env: Mapping[str, str], cwd: str | None, seconds: float = 20.0, grace: float = GRACE_SECONDS
) -> Launch:
    """Starts a server, asks for its tools, and ends its input. What is left of it `grace` seconds later is killed.

    Raises `OSError` if it cannot be started.
    """
    mark = f"{MARK}={uuid.uuid4().hex}"
    with subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**env, **dict([mark.split("=")])},
        cwd=cwd,
        start_new_session=True,
    ) as process:
        try:
            took, noise = _talk(process, seconds)
            with suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]
            ended = _wait(process, grace)
            left = [pid for pid in marked(mark) if pid != process.pid or not ended]
        finally:
            _kill(process, marked(mark))
    return Launch(took, tuple(noise), ended, len(left) or int(not ended))


def _talk(process: subprocess.Popen[bytes], seconds: float) -> tuple[float | None, list[str]]:
    """How long the first answer took, and the lines before the second that are no messages."""
    lines: Queue[bytes] = Queue(MOST_LINES)
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    began, took, noise = time.monotonic(), None, list[str]()
    with suppress(OSError):
        for message in _ASKED:
            process.stdin.write(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
    while (left := began + seconds - time.monotonic()) > 0:
        try:
            line = lines.get(timeout=left)
        except Empty:
            break
        if not line:
            break
        answer = _message(line)
        if answer is None:
            noise += [line.decode("utf-8", "replace").strip()] if line.strip() else []
        elif answer.get("id") == 1:
            took = time.monotonic() - began
        elif answer.get("id") == 2:
            break
    return took, noise


def _read(process: subprocess.Popen[bytes], lines: Queue[bytes]) -> None:
    with suppress(OSError, ValueError):
        for _ in range(MOST_LINES):
            line = process.stdout.readline(MOST_BYTES)  # type: ignore[union-attr]
            lines.put(line)
            if not line:
                return


def _message(line: bytes) -> Mapping[str, object] | None:
    try:
        read = json.loads(line)
    except ValueError:
        return None
    return read if isinstance(read, dict) and read.get("jsonrpc") == "2.0" else None


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def marked(mark: str) -> list[int]:
    """The processes that have this in their environment, wherever they went: known on Linux only."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (each / "environ").read_bytes().split(b"\0"):
                found.append(int(each.name))
    return found


def _kill(process: subprocess.Popen[bytes], others: Sequence[int]) -> None:
    if sys.platform != "win32":
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    for pid in others:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    process.kill()
    process.wait()
