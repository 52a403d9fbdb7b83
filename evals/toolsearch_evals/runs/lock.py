"""A lock on a run, so that two processes do not play it at the same time. The system frees it when a process ends."""

from __future__ import annotations

import os
import sys

__all__ = ["try_lock"]

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
