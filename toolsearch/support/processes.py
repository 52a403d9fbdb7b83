"""The identity of this process, from which another process can tell whether this one has ended.

That can be told safely on Linux only, between processes that see each other: same boot of the same system, same PID
namespace. Elsewhere, and between machines or containers, nothing is known, and nobody is taken for dead.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Process", "this_process"]

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process. `start` is when it began, in the system's ticks: another process may get its number later."""

    pid: int
    host: str
    start: str = ""
    namespace: str = ""
    boot: str = ""

    def __str__(self) -> str:
        return "/".join((str(self.pid), self.host, self.start, self.namespace, self.boot))

    @classmethod
    def read(cls, text: str) -> Process | None:
        """The process that has this text; None if none can have it."""
        pid, *rest = text.split("/")
        if len(rest) != 4 or not (pid.isascii() and pid.isdigit()) or not int(pid):
            return None
        return cls(int(pid), *rest)

    def has_ended(self) -> bool:
        """Whether it is certain that the process has ended."""
        here = this_process()
        place = (self.namespace, self.boot)
        if self == here or not all((self.start, *place)) or place != (here.namespace, here.boot):
            return False
        try:
            os.kill(self.pid, 0)  # which sends nothing
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            pass  # it is another user's, or no number of a process
        state, start = _state_of(str(self.pid))
        return bool(start) and (start != self.start or (state in "ZX" and not _has_threads(self.pid)))


def this_process() -> Process:
    """The process that calls this."""
    return _process(os.getpid())


@cache  # by the number, so that a fork does not keep its parent's
def _process(pid: int) -> Process:
    namespace = boot = ""
    with suppress(OSError):
        namespace = str((_PROC / "self/ns/pid").readlink())
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    host = platform.node().replace("/", "_")
    return Process(pid, host, _state_of("self")[1], namespace.replace("/", "_"), boot.replace("/", "_"))


def _state_of(pid: str) -> tuple[str, str]:
    """The state of a process, as a letter, and when it began; both empty if they cannot be read."""
    try:
        fields = (_PROC / pid / "stat").read_bytes().rpartition(b")")[2].split()  # the name may have anything in it
        return fields[0].decode(), fields[19].decode()
    except (OSError, IndexError, ValueError):
        return "", ""


def _has_threads(pid: int) -> bool:
    """Whether a process whose first thread has ended goes on in others."""
    with suppress(OSError):
        return len(list((_PROC / str(pid) / "task").iterdir())) > 1
    return False
