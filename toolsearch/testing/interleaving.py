"""Stops one thread at each line of a function in turn, so that a race is certain to be seen, not only likely."""

from __future__ import annotations

import sys
import sysconfig
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["MOST_STOPS", "StoppedThread"]

MOST_STOPS = 40  # lines at which a call is stopped; of a longer one, as many at even distances
PATIENCE = 0.01  # seconds in which another thread does its work, unless a lock keeps it waiting
_LIBRARY = sysconfig.get_paths()["stdlib"]
_PACKAGES = sysconfig.get_paths()["purelib"]


class StoppedThread:
    """Calls `function` in a thread that stops before its line number `stop`, counted over all files but Python's own.

    `lines` is how many lines it ran, `place` where it stopped, and `error` what it raised.
    """

    def __init__(self, function: Callable[[], None], stop: int) -> None:
        self.lines = 0
        self.place = ""
        self.error: BaseException | None = None
        self._function, self._stop = function, stop
        self._stopped, self._go_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def meet(self, meanwhile: Callable[[], None]) -> BaseException | None:
        """Runs the call, `meanwhile` in another thread at the stop, and both to their ends; gives the other's error.

        Where a lock keeps the other thread waiting, the first goes on after a moment.
        """
        errors: list[BaseException] = []

        def other() -> None:
            try:
                meanwhile()
            except BaseException as error:  # whatever it is, it is reported by the kit
                errors.append(error)

        self._thread.start()
        self._stopped.wait()
        second = threading.Thread(target=other)
        second.start()
        second.join(PATIENCE)
        self._go_on.set()
        self._thread.join()
        second.join()
        return errors[0] if errors else None

    def _run(self) -> None:
        sys.settrace(self._trace)
        try:
            self._function()
        except BaseException as error:
            self.error = error
        finally:
            sys.settrace(None)
            self._stopped.set()

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        file = frame.f_code.co_filename
        if file == __file__ or file.startswith("<frozen"):
            return self._trace
        if file.startswith(_LIBRARY) and not file.startswith(_PACKAGES):
            return None
        if event == "line":
            if self.lines == self._stop:
                self.place = f"{frame.f_code.co_name}() in line {frame.f_lineno} of {file}"
                self._stopped.set()
                self._go_on.wait()
            self.lines += 1
        return self._trace
