"""What runs in the background: a layer's own work, a call of the model, calls of tools; each for threads and for tasks.

An activity posts what comes of it and ends. It takes nothing in and writes nothing down; its driver does.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolsearch.calls import ToolCall, ToolResult
from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.facts import JudgedCall, Reply, ToolsFound, ToolWaiting
from toolsearch.events.requests import Call, CallModel
from toolsearch.loop.layering import Perform, adrive, arun_function, drive, layered, name_of, run_function
from toolsearch.protocols import Layer, Model
from toolsearch.session.call_plans import CallPlan
from toolsearch.session.session import Session
from toolsearch.support.context import in_call
from toolsearch.support.text import text_of
from toolsearch.support.threads import TIMEOUT_SECONDS, in_thread, start

__all__ = ["Activity", "CallOutcome", "FunctionActivity", "ModelActivity", "ToolActivity"]

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
        return run_function(self.function)

    async def arun(self, post: Post) -> Any:
        return await arun_function(self.function)


@dataclass(frozen=True, slots=True)
class ModelActivity:
    """A call of the model, whose deltas are posted."""

    model: Model
    request: CallModel
    stopped: threading.Event  # nobody waits for the reply any more

    def run(self, post: Post) -> Any:
        given = run_function(lambda: self.model(self.request))
        if hasattr(given, "__aiter__"):
            raise SetupError(f"the model {self.model!r} is async: use `await agent.arun(…)` or `agent.astream(…)`")
        return self._drain(given, post)

    def _drain(self, given: Any, post: Post) -> Any:
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
                return self._drain(given, lambda delta: loop.call_soon_threadsafe(post, delta))

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
class CallOutcome:
    """What came of one call; `by` names the layer that answered it in the tool's place."""

    call: JudgedCall
    result: ToolResult | ToolWaiting
    seconds: float
    found: ToolsFound | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class ToolActivity:
    """Calls to be answered one after another, each through the layers.

    What was `decided` about a call, by its id, is what is performed. The tools of calls in `fixed` (ids) run only with
    the definition that was judged.
    """

    layers: list[Layer]
    session: Session
    calls: tuple[Call, ...]
    decided: Mapping[str, JudgedCall]
    fixed: frozenset[str]
    seconds: float | None
    stopped: threading.Event
    found: dict[str, ToolsFound] = field(default_factory=dict)
    answered_by: dict[str, str] = field(default_factory=dict)

    def run(self, post: Post) -> None:
        for call in self.calls:
            began = self._begin(call)
            try:
                result = _checked_result(call, drive(self._steps(call), self._perform, post))
            except SetupError:  # of a layer; what a tool raises is an answer already
                raise
            except Exception as error:
                result = _layer_failed(call, error)
            post(self._outcome(call, result, began))

    async def arun(self, post: Post) -> None:
        for call in self.calls:
            began = self._begin(call)
            try:
                result = _checked_result(call, await adrive(self._steps(call), self._aperform, post))
            except SetupError:
                raise
            except Exception as error:
                result = _layer_failed(call, error)
            post(self._outcome(call, result, began))

    def _begin(self, call: Call) -> float:
        in_call(call.judged.id)
        return time.monotonic()

    def _steps(self, call: Call) -> Any:
        return layered(self.layers, "around_tool", answered=self._note_answer)(call)

    def _note_answer(self, layer: Layer, call: Call, passed: Call | None) -> None:
        """A layer that call for nothing inside has answered by itself; one outside it may change that answer."""
        if passed is None:
            self.answered_by[call.judged.id] = name_of(layer)

    def _outcome(self, call: Call, result: ToolResult | ToolWaiting, began: float) -> CallOutcome:
        call_id = call.judged.id
        by = self.answered_by.get(call_id, "")
        return CallOutcome(call.judged, result, time.monotonic() - began, self.found.get(call_id), by)

    # -- the innermost step --------------------------------------------------------------------------------------

    def _perform(self, wanted: Perform[Call]) -> ToolResult:
        call = wanted.request
        self.answered_by.pop(call.judged.id, None)
        seconds = _least(wanted.seconds, self.seconds)
        if self.stopped.is_set():  # a layer tries again what nobody waits for
            return synthetic.stopped(call.judged, cancelled=True, begun=False)
        if seconds is None or seconds > TIMEOUT_SECONDS:
            return self._answer(call, self.stopped)
        flag, done = threading.Event(), queue.SimpleQueue[ToolResult]()

        def work() -> None:
            try:
                done.put(self._answer(call, flag))
            except BaseException as error:  # a tool that raises KeyboardInterrupt
                done.put(synthetic.failed(call.judged, error))

        start(work)
        try:
            return done.get(timeout=seconds)
        except queue.Empty:
            flag.set()
            raise TimeoutError(f"no answer within {seconds:g} s") from None

    async def _aperform(self, wanted: Perform[Call]) -> ToolResult:
        call = wanted.request
        self.answered_by.pop(call.judged.id, None)
        seconds = _least(wanted.seconds, self.seconds)
        flag = threading.Event() if seconds is not None else self.stopped
        before = self._found_ids()
        plan = self._plan(call)
        if isinstance(plan, ToolResult):
            return plan
        try:
            async with asyncio.timeout(seconds):
                result = await self.session.aperform(plan, cancelled=flag)
        except TimeoutError:
            flag.set()
            raise TimeoutError(f"no answer within {seconds or 0:g} s") from None
        self._keep_found(call, before)
        return result

    def _answer(self, call: Call, flag: threading.Event) -> ToolResult:
        before = self._found_ids()
        plan = self._plan(call)
        if isinstance(plan, ToolResult):
            return plan
        result = self.session.perform(plan, cancelled=flag)
        self._keep_found(call, before)
        return result

    def _plan(self, call: Call) -> CallPlan | ToolResult:
        """What was decided about the call when it came; a layer that changed the call has it decided anew."""
        judged = call.judged
        if self.decided.get(judged.id) is not judged:
            return self.session.decide(ToolCall(judged.id, judged.name, call.arguments))
        if judged.kind == "search":
            return self.session.decide_again(ToolCall(judged.id, judged.name, judged.arguments), "")
        edited = call.approved is not None and call.approved.arguments is not None
        made = ToolCall(judged.id, judged.name, call.arguments)
        plan = self.session.decide_again(made, judged.tool, checked="" if edited else judged.digest)
        if judged.id in self.fixed and plan.tool is not None and plan.tool.digest != judged.digest:
            return synthetic.changed(judged)
        return plan

    def _found_ids(self) -> tuple[str, ...]:
        return tuple(tool.id for tool in self.session.loaded)

    def _keep_found(self, call: Call, before: tuple[str, ...]) -> None:
        if call.judged.kind == "search":
            now, call_id = self._found_ids(), call.judged.id
            loaded, unloaded = (tuple(i for i in a if i not in b) for a, b in ((now, before), (before, now)))
            self.found[call_id] = ToolsFound(call_id, loaded, unloaded, self.session.export())


def _layer_failed(call: Call, error: BaseException) -> ToolResult:
    if isinstance(error, TimeoutError):
        return synthetic.timed_out(call.judged, error)
    log.error("a layer around %r failed", call.judged.name, exc_info=error)
    return synthetic.failed(call.judged, error)


def _checked_result(call: Call, result: object) -> ToolResult | ToolWaiting:
    if result is None:
        return synthetic.unanswered(call.judged)
    if not isinstance(result, ToolResult | ToolWaiting):
        return call.answer("ok", text_of(result), result)
    return result


def _least(*seconds: float | None) -> float | None:
    return min((s for s in seconds if s is not None), default=None)
