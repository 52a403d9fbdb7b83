"""Work that runs in the background: a layer's own function, a call of the model, or calls of tools.

Each activity has a variant for threads and one for tasks. It posts its results and ends. It never touches the
conversation or the store; only the turn's driver does.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import queue
import threading
import time
from collections.abc import AsyncIterable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from toolsearch.calls import ToolCall, ToolResult
from toolsearch.calls.returned import read_result
from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.facts import JudgedCall, Reply, ToolsFound, ToolsRevealed, ToolWaiting
from toolsearch.events.requests import Call, CallModel
from toolsearch.loop.large_facts import with_kept_data
from toolsearch.loop.layering import Perform, Steps, adrive, arun_function, drive, layered, name_of, run_function
from toolsearch.protocols import Layer, Model
from toolsearch.session.call_plans import CallPlan
from toolsearch.session.session import Session
from toolsearch.support.context import in_call
from toolsearch.support.large_values import is_large
from toolsearch.support.threads import TIMEOUT_SECONDS, StopFlag, in_thread, in_thread_if, start

__all__ = ["Activity", "CallOutcome", "FunctionActivity", "ModelActivity", "ToolActivity"]

log = logging.getLogger("toolsearch")

Post = Callable[[object], object]


class Activity(Protocol):
    """Something that runs in the background until it returns or raises. `run` runs in a thread, `arun` as a task."""

    def run(self, post: Post) -> object: ...
    async def arun(self, post: Post) -> object: ...


@dataclass(frozen=True, slots=True)
class FunctionActivity:
    """A layer's own function."""

    function: Callable[[], object]

    def run(self, post: Post) -> object:
        return run_function(self.function)

    async def arun(self, post: Post) -> object:
        return await arun_function(self.function)


@dataclass(frozen=True, slots=True)
class ModelActivity:
    """A call of the model; the deltas of its reply are posted."""

    model: Model
    request: CallModel
    stopped: threading.Event  # set when nobody waits for the reply any more

    def run(self, post: Post) -> object:
        answer: object = run_function(lambda: self.model(self.request))
        if hasattr(answer, "__aiter__"):
            raise SetupError(f"the model {self.model!r} is async: use `await agent.arun(…)` or `agent.astream(…)`")
        return self._drain(answer, post)

    def _drain(self, answer: object, post: Post) -> object:
        """Posts the deltas of an iterator and returns its last item; any other answer is returned as it is."""
        if isinstance(answer, Reply) or not isinstance(answer, Iterator):
            return answer
        last: object = None
        for last in answer:
            if self.stopped.is_set():
                if (close := getattr(answer, "close", None)) is not None:
                    close()
                break
            if not isinstance(last, Reply):
                post(last)
        return last

    async def arun(self, post: Post) -> object:
        model = self.model
        answer: object
        own = type(model).__call__  # the model may be an object with an async `__call__`
        is_async = any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in (model, own))
        if not is_async:
            loop = asyncio.get_running_loop()

            def ask() -> object:
                answer = model(self.request)
                if inspect.isawaitable(answer) or hasattr(answer, "__aiter__"):
                    return answer
                return self._drain(answer, lambda delta: loop.call_soon_threadsafe(post, delta))

            answer = await in_thread(ask)
        else:
            answer = model(self.request)
        if inspect.isawaitable(answer):
            answer = await answer
        if not isinstance(answer, AsyncIterable):
            return answer
        last: object = None
        try:
            async for last in answer:
                if not isinstance(last, Reply):
                    post(last)
        finally:
            if (aclose := getattr(answer, "aclose", None)) is not None:
                await aclose()
        return last


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of one call; `by` names the layer that answered it in the tool's place."""

    call: JudgedCall
    result: ToolResult | ToolWaiting
    seconds: float
    found: ToolsFound | ToolsRevealed | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class ToolActivity:
    """Calls to answer one after another, each through the layers.

    `decided` has what was decided about each call, by its id; that is what is performed. The calls in `fixed` (ids) run
    only if the tool still has the definition that was judged. Once `stopped` is set, nothing is performed any more,
    whatever the layers do; the calls that may have been are in `performed` (ids).
    """

    layers: list[Layer]
    session: Session
    calls: tuple[Call, ...]
    decided: Mapping[str, JudgedCall]
    fixed: frozenset[str]
    seconds: float | None
    stopped: StopFlag
    performed: set[str]
    found: dict[str, ToolsFound | ToolsRevealed] = field(default_factory=dict)
    answered_by: dict[str, str] = field(default_factory=dict)

    def run(self, post: Post) -> None:
        for call in self.calls:
            if self.stopped.is_set():
                break  # every call is answered already
            began = self._begin(call)
            try:
                result = _checked_result(call, drive(self._steps(call), self._perform, post))
            except SetupError:  # from a layer; what a tool raises is an answer already
                raise
            except Exception as error:
                result = _layer_failed(call, error)
            post(self._outcome(call, with_kept_data(result), began))

    async def arun(self, post: Post) -> None:
        for call in self.calls:
            if self.stopped.is_set():  # a layer caught the cancellation of an earlier call
                break
            began = self._begin(call)
            try:
                result = _checked_result(call, await adrive(self._steps(call), self._aperform, post))
            except SetupError:
                raise
            except Exception as error:
                result = _layer_failed(call, error)
            if isinstance(result, ToolResult) and is_large(result.data):
                result = await in_thread(partial(with_kept_data, result))
            post(self._outcome(call, result, began))

    def _begin(self, call: Call) -> float:
        in_call(call.judged.id)
        return time.monotonic()

    def _steps(self, call: Call) -> Steps[Call]:
        return layered(self.layers, "around_tool", answered=self._note_answer)(call)

    def _note_answer(self, layer: Layer, call: Call, passed: Call | None) -> None:
        """Remembers a layer that yielded nothing: it answered by itself. An outer one may replace that answer."""
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
        if not self._may_perform(call):
            return synthetic.stopped(call.judged, cancelled=True, begun=False)
        if seconds is None or seconds > TIMEOUT_SECONDS:
            return self._answer(call, self.stopped)
        flag, done = self.stopped.follower(), queue.SimpleQueue[ToolResult]()

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
        if not self._may_perform(call):
            return synthetic.stopped(call.judged, cancelled=True, begun=False)
        flag = self.stopped.follower() if seconds is not None else self.stopped
        before = self._loaded_ids()
        plan = await in_thread_if(is_large(call.arguments), lambda: self._plan(call))
        if isinstance(plan, ToolResult):
            return plan
        try:
            async with asyncio.timeout(seconds):
                result = await self.session.aperform(plan, cancelled=flag)
        except TimeoutError:
            flag.set()
            raise TimeoutError(f"no answer within {seconds or 0:g} s") from None
        self._note_found(call, before, result)
        return result

    def _may_perform(self, call: Call) -> bool:
        """Whether the call may be performed: not after the turn was stopped, as where a layer tries a call again.

        The call is noted first and the flag read then, and whoever stops the turn does it the other way round: so a
        call that is performed is always noted.
        """
        call_id = call.judged.id
        is_first = call_id not in self.performed
        self.performed.add(call_id)
        if not self.stopped.is_set():
            return True
        if is_first:
            self.performed.discard(call_id)
        return False

    def _answer(self, call: Call, flag: threading.Event) -> ToolResult:
        before = self._loaded_ids()
        plan = self._plan(call)
        if isinstance(plan, ToolResult):
            return plan
        result = self.session.perform(plan, cancelled=flag)
        self._note_found(call, before, result)
        return result

    def _plan(self, call: Call) -> CallPlan | ToolResult:
        """The plan from what was decided when the call arrived. If a layer made another call of it, that is decided."""
        judged, session = call.judged, self.session
        first = self.decided.get(judged.id)
        if first is None or (first.kind, first.name, first.tool) != (judged.kind, judged.name, judged.tool):
            plan = session.decide(ToolCall(judged.id, judged.name, call.arguments))
            session.load(plan.reveal)
            return plan
        session.load(first.reveal)  # lost if a process ended right after the reply was stored
        if judged.kind == "search":
            return session.decide_again(ToolCall(judged.id, judged.name, judged.arguments), "")
        edited = judged is not first or (call.approved is not None and call.approved.arguments is not None)
        again = ToolCall(judged.id, judged.name, call.arguments)
        plan = session.decide_again(again, judged.tool, checked="" if edited else first.digest)
        if judged.id in self.fixed and plan.tool is not None and plan.tool.digest != first.digest:
            return synthetic.changed(judged)
        return plan

    def _loaded_ids(self) -> tuple[str, ...]:
        return tuple(tool.id for tool in self.session.loaded)

    def _note_found(self, call: Call, before: tuple[str, ...], result: ToolResult) -> None:
        """Notes what a search loaded, or a tool that named others in its result."""
        now, call_id = self._loaded_ids(), call.judged.id
        loaded, unloaded = (tuple(i for i in a if i not in b) for a, b in ((now, before), (before, now)))
        if call.judged.kind == "search":
            self.found[call_id] = ToolsFound(call_id, loaded, unloaded, self.session.export())
        elif result.ok and any(i in result.found for i in loaded):
            self.found[call_id] = ToolsRevealed((), self.session.export())


def _layer_failed(call: Call, error: BaseException) -> ToolResult:
    if isinstance(error, TimeoutError):
        return synthetic.timed_out(call.judged, error)
    log.error("a layer around %r failed", call.judged.name, exc_info=error)
    return synthetic.failed(call.judged, error)


def _checked_result(call: Call, result: object) -> ToolResult | ToolWaiting:
    if result is None:
        return synthetic.unanswered(call.judged)
    if not isinstance(result, ToolResult | ToolWaiting):
        return read_result(call.judged.id, call.judged.name, result)
    return result


def _least(*seconds: float | None) -> float | None:
    return min((s for s in seconds if s is not None), default=None)
