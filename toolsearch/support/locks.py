"""Locks on files, between processes and between threads. The system frees them when a process ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked", "try_lock"]

if sys.platform == "win32":
    import msvcrt

    _PLACE = 2**30  # of the byte that is locked: beyond the lines, which others may read meanwhile

    def try_lock(file: int) -> bool:
        """Whether the open file could be locked until it is closed."""
        before = os.lseek(file, 0, os.SEEK_CUR)
        os.lseek(file, _PLACE, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(file, before, os.SEEK_SET)
        return True

else:
    import fcntl

    def try_lock(file: int) -> bool:
        """Whether the open file could be locked until it is closed; where there are no locks, it counts as locked."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True


@contextmanager
def locked(path: Path, seconds: float) -> Generator[None]:
    """Holds the lock of a file, which is made if it is missing and never removed: who waits holds the same file.

    Raises `TimeoutError` if another process, or another thread, holds it all the `seconds`; `OSError` if the file
    cannot be opened, such as one that is a symbolic link.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        end = time.monotonic() + seconds
        while not try_lock(file):
            if time.monotonic() >= end:
                raise TimeoutError(f"another process holds {str(path)!r} since {seconds:g} s")
            time.sleep(0.02)
        yield
    finally:
        os.close(file)
