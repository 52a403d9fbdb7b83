"""The vectors of tools, and the tools that wait for theirs: encoded at once, or in the background."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterable, Sequence

from toolsearch.catalog import Tool
from toolsearch.errors import SetupError
from toolsearch.support.threads import after_fork
from toolsearch_indexes.encoders import Encoder
from toolsearch_indexes.faiss_matrix import APPROXIMATE_FROM
from toolsearch_indexes.tool_vectors import TOOLS_AT_ONCE, EncoderChanged, ToolVectors

__all__ = ["EncodedTools"]

log = logging.getLogger("toolsearch")

AT_ONCE_IN_BACKGROUND = 32  # tools: a change of the catalog waits for so many, and so does the end of the program
LISTED = 20  # ids in a line of the log
_LOOK_SECONDS = 0.2  # how often a thread that waits for another looks whether the program ends


class EncodedTools:
    """Tools with vectors, and tools that wait: not encoded yet, or refused by the encoder.

    With `in_background` a thread encodes what is added, and `add` returns at once; it begins when the tools of `after`
    are encoded, and ends with its work, with the program, or with this object. Refused tools are tried again at the
    next `add`. `approximate_from` is as in `ToolVectors`.
    """

    def __init__(
        self,
        encoder: str | Encoder,
        *,
        in_background: bool = False,
        after: EncodedTools | None = None,
        approximate_from: int | None = APPROXIMATE_FROM,
    ) -> None:
        self.vectors = ToolVectors(encoder, approximate_from)
        self.waiting: dict[str, Tool] = {}
        self.in_background = in_background
        self._after = after
        self._tried: dict[str, Tool] = {}  # of those that wait: what the current thread has tried in vain
        self._thread: threading.Thread | None = None
        self._renew_locks()
        self._idle.set()
        after_fork(self, EncodedTools._renew_locks)

    def _renew_locks(self) -> None:
        self._changes = threading.RLock()
        self._idle = threading.Event()  # not set: in a forked process, `wait` looks whether there is something to do

    def add(self, tools: Sequence[Tool]) -> None:
        """Takes tools to encode; without a background, encodes them, then those that have waited.

        Raises the error of an encoder that has changed, or has encoded nothing yet because it is set up wrongly; in the
        background that is logged.
        """
        with self._changes:
            new = {tool.id: tool for tool in tools}
            older = {tool_id: tool for tool_id, tool in self.waiting.items() if tool_id not in new}
            self.waiting = new | older
            self._tried = {}
            if self.in_background:
                self._start()
                return
            error, answers = self._encode(list(new.values()), False)
            _report(self._encode(list(older.values()), answers)[0] or error, self.waiting)
            self.vectors.refresh()

    def remove(self, ids: Iterable[str]) -> None:
        ids = list(ids)
        with self._changes:
            for tool_id in ids:
                self.waiting.pop(tool_id, None)
        self.vectors.remove(ids)
        self.vectors.refresh()

    @property
    def is_encoding(self) -> bool:
        """Whether the background has something to do."""
        return not self._idle.is_set() and self._thread is not None and self._thread.is_alive()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until the background has nothing to do, at most `seconds`; whether every tool is encoded."""
        if not self._idle.is_set():
            with self._changes:
                self._start()
        return self._idle.wait(seconds) and not self.waiting

    def _encode(self, tools: Sequence[Tool], answers: bool) -> tuple[Exception | None, bool]:
        """Encodes tools; those that the encoder refuses go on waiting. `answers`: the encoder is known to work.

        Returns the last error, and whether the encoder works. Raises as `add`.
        """
        error: Exception | None = None
        for start in range(0, len(tools), TOOLS_AT_ONCE):
            batch = tools[start : start + TOOLS_AT_ONCE]
            try:
                refused = self.vectors.add(batch, answers=answers)
            except Exception as problem:
                if isinstance(problem, EncoderChanged) or (isinstance(problem, SetupError) and not len(self.vectors)):
                    raise
                error, answers = problem, False
                continue
            answers = True
            self._settle(batch, refused)
            error = next(reversed(refused.values()), error)
        return error, answers

    def _settle(self, tools: Iterable[Tool], refused: Iterable[str] = ()) -> None:
        """Tools that have their vectors wait no longer. Those that left meanwhile lose them again."""
        with self._changes:
            for tool in tools:
                if tool.id not in self.waiting:
                    self.vectors.remove([tool.id])
                elif tool.id not in refused and self.waiting[tool.id] is tool:
                    del self.waiting[tool.id]

    def _start(self) -> None:
        """Starts the thread, unless it runs or nothing waits. A process that was forked does not have its parent's."""
        if self.is_encoding:
            return
        self._idle.set()
        if self.waiting:
            thread = threading.Thread(target=self._work, args=(weakref.ref(self),), name="toolsearch-encoding")
            self._idle.clear()
            self._thread = thread
            try:
                thread.start()
            except RuntimeError as problem:  # there are too many threads, or the program ends
                self._idle.set()
                _report(problem, self.waiting)

    # -- in the background -------------------------------------------------------------------------------------------

    @staticmethod
    def _work(of: weakref.ref[EncodedTools]) -> None:
        """Encodes until nothing waits; between two batches, nothing here keeps the tools alive."""
        while (tools := of()) is not None and tools._encode_some():
            del tools

    def _encode_some(self) -> bool:
        """Encodes some of the tools that wait, and says whether to go on. Runs on the background's thread."""
        if not _goes_on():
            self._idle.set()
            return False
        if self._after is not None and self._after.is_encoding:
            self._after._idle.wait(_LOOK_SECONDS)
            return True
        with self._changes:
            untried = [tool for tool in self.waiting.values() if self._tried.get(tool.id) is not tool]
            if not untried:
                self.vectors.refresh()
                self._idle.set()
                return False
        batch = untried[:AT_ONCE_IN_BACKGROUND]
        error: Exception | None = None
        try:
            refused = self.vectors.add(batch)
            self._settle(batch, refused)
            error = next(reversed(refused.values()), None)
        except Exception as problem:
            if not _goes_on():  # as the program ends, nothing can start a thread any more
                return True
            error = problem
        with self._changes:
            self._tried |= {tool.id: tool for tool in batch}
            _report(error, {tool.id: tool for tool in batch if tool.id in self.waiting})
        return True


def _goes_on() -> bool:
    """Whether the program has not come to its end, where it waits for threads such as this."""
    return threading.main_thread().is_alive()


def _report(error: Exception | None, waiting: Iterable[str]) -> None:
    ids = list(waiting)
    if error is not None and ids:
        message = "%d tools are found by their words only, as they cannot be encoded: %s"
        log.warning(message, len(ids), _listed(ids), exc_info=error)


def _listed(ids: Sequence[str]) -> str:
    """The ids as a text; of very many the first."""
    more = len(ids) - LISTED
    return ", ".join(map(repr, ids[:LISTED])) + (f" and {more} more" if more > 0 else "")
