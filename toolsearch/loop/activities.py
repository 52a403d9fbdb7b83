"""What runs beside the driver: a layer's own work, a call of the model, calls of tools; each for threads and for tasks.

An activity posts what comes of it and ends. It takes nothing in and writes nothing down; its driver does.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolsearch.calls import ToolCall, ToolResult
from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.facts import JudgedCall, Reply, ToolsFound, ToolWaiting
from toolsearch.events.requests import Call, CallModel
from toolsearch.loop.layering import Perform, acalled, adrive, called, drive, layered
from toolsearch.session.session import Session
from toolsearch.support.context import in_call
from toolsearch.support.text import text_of
from toolsearch.support.threads import TIMEOUT_SECONDS, in_thread, start

__all__ = ["Activity", "FunctionActivity", "ModelActivity", "Outcome", "ToolActivity"]

log = logging.getLogger("toolsearch")

Post = Callable[[Any], object]


class Activity(Protocol):
    """Returns or raises at its end. `arun` is what `astream` runs."""

    def run(self, post: Post) -> Any: ...
    async def arun(self, post: Post) -> Any: ...


@dataclass(frozen=True, slots=True)
class FunctionActivity:
    """A layer's own work."""

    function: Callable[[], Any]

    def run(self, post: Post) -> Any:
        return called(self.function)

    async def arun(self, post: Post) -> Any:
        return await acalled(self.function)


@dataclass(frozen=True, slots=True)
class ModelActivity:
    """A call of the model, whose deltas are posted."""

    model: Callable[[CallModel], Any]
    request: CallModel
    stopped: threading.Event  # nobody waits for the reply any more

    def run(self, post: Post) -> Any:
        given = called(lambda: self.model(self.request))
        if hasattr(given, "__aiter__"):
            raise SetupError(f"the model {self.model!r} is async: use `await agent.arun(…)` or `agent.astream(…)`")
        return self._drained(given, post)

    def _drained(self, given: Any, post: Post) -> Any:
        if isinstance(given, Reply) or not hasattr(given, "__next__"):
            return given
        last: Any = None
        for last in given:
            if self.stopped.is_set():
                given.close() if hasattr(given, "close") else None
                break
            if not isinstance(last, Reply):
                post(last)
        return last

    async def arun(self, post: Post) -> Any:
        model = self.model
        own = type(model).__call__  # of an object that can be called
        is_async = any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in (model, own))
        if not is_async:
            loop = asyncio.get_running_loop()

            def ask() -> Any:
                given = model(self.request)
                if inspect.isawaitable(given) or hasattr(given, "__aiter__"):
                    return given
                return self._drained(given, lambda delta: loop.call_soon_threadsafe(post, delta))

            given = await in_thread(ask)
        else:
            given = model(self.request)
        if inspect.isawaitable(given):
            given = await given
        if not hasattr(given, "__aiter__"):
            return given
        last: Any = None
        try:
            async for last in given:
                if not isinstance(last, Reply):
                    post(last)
        finally:
            if hasattr(given, "aclose"):
                await given.aclose()
        return last


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call."""

    call: JudgedCall
    result: ToolResult | ToolWaiting
    seconds: float
    found: ToolsFound | None = None


@dataclass(frozen=True, slots=True)
class ToolActivity:
    """Calls to be answered one after another, each through the layers."""

    layers: list[Any]
    session: Session
    calls: tuple[Call, ...]
    seconds: float | None
    stopped: threading.Event
    found: dict[str, ToolsFound] = field(default_factory=dict)

    def run(self, post: Post) -> None:
        for call in self.calls:
            began = time.monotonic()
            in_call(call.judged.id)
            steps = layered(self.layers, "around_tool")(call)
            try:
                result = _checked_result(call, drive(steps, self._perform, post))
            except SetupError:  # of a layer; what a tool raises is an answer already
                raise
            except Exception as error:
                result = _layer_failed(call, error)
            post(Outcome(call.judged, result, time.monotonic() - began, self.found.get(call.judged.id)))

    async def arun(self, post: Post) -> None:
        for call in self.calls:
            began = time.monotonic()
            in_call(call.judged.id)
            steps = layered(self.layers, "around_tool")(call)
            try:
                result = _checked_result(call, await adrive(steps, self._aperform, post))
            except SetupError:
                raise
            except Exception as error:
                result = _layer_failed(call, error)
            post(Outcome(call.judged, result, time.monotonic() - began, self.found.get(call.judged.id)))

    def _perform(self, wanted: Perform) -> ToolResult:
        call: Call = wanted.request
        seconds = _least(wanted.seconds, self.seconds)
        if self.stopped.is_set():  # a layer tries again what nobody waits for
            return synthetic.stopped(call.judged, cancelled=True, begun=False)
        if seconds is None or seconds > TIMEOUT_SECONDS:
            return self._handled(call, self.stopped)
        flag, done = threading.Event(), queue.SimpleQueue[ToolResult]()

        def work() -> None:
            try:
                done.put(self._handled(call, flag))
            except BaseException as error:  # a tool that raises KeyboardInterrupt
                done.put(synthetic.failed(call.judged, error))

        start(work)
        try:
            return done.get(timeout=seconds)
        except queue.Empty:
            flag.set()
            raise TimeoutError(f"no answer within {seconds:g} s") from None

    async def _aperform(self, wanted: Perform) -> ToolResult:
        call: Call = wanted.request
        seconds = _least(wanted.seconds, self.seconds)
        flag = threading.Event() if seconds is not None else self.stopped
        before = self._found_ids()
        try:
            async with asyncio.timeout(seconds):
                result = await self.session.ahandle(self._call(call), cancelled=flag)
        except TimeoutError:
            flag.set()
            raise TimeoutError(f"no answer within {seconds or 0:g} s") from None
        self._keep_found(call, before)
        return result

    def _handled(self, call: Call, flag: threading.Event) -> ToolResult:
        before = self._found_ids()
        result: ToolResult = self.session.handle(self._call(call), cancelled=flag)
        self._keep_found(call, before)
        return result

    def _call(self, call: Call) -> ToolCall:
        arguments = call.judged.arguments if call.judged.kind == "search" else call.arguments
        return ToolCall(call.judged.id, call.judged.name, arguments)

    def _found_ids(self) -> tuple[str, ...]:
        return tuple(tool.id for tool in self.session.loaded)

    def _keep_found(self, call: Call, before: tuple[str, ...]) -> None:
        if call.judged.kind == "search":
            now = self._found_ids()
            loaded, unloaded = (tuple(i for i in a if i not in b) for a, b in ((now, before), (before, now)))
            self.found[call.judged.id] = ToolsFound(call.judged.id, loaded, unloaded, self.session.export())


def _layer_failed(call: Call, error: BaseException) -> ToolResult:
    if isinstance(error, TimeoutError):
        return synthetic.timed_out(call.judged, error)
    log.error("a layer around %r failed", call.judged.name, exc_info=error)
    return synthetic.failed(call.judged, error)


def _checked_result(call: Call, result: Any) -> ToolResult | ToolWaiting:
    if result is None:
        return synthetic.unanswered(call.judged)
    if not isinstance(result, ToolResult | ToolWaiting):
        return call.answer("ok", text_of(result), result)
    return result


def _least(*seconds: float | None) -> float | None:
    return min((s for s in seconds if s is not None), default=None)
