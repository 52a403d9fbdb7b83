"""Layers around a step, written once for sync and async.

A layer is an object with one or more of four generator functions:

    around_run(run)      around_round(round)      around_model(request)      around_tool(call)

A layer yields the request it received, or a changed copy, to have it done. It is sent the result, and returns that or
something else. It may yield again (a retry), or not at all (a refusal). For its own work it yields

    Sleep(seconds)            to wait
    Do(function, seconds)     to call a function, with an optional time limit; in `arun` it may be async
    Record(fact)              to write a fact into the journal; a layer remembers things as `Noted` facts
    Within(seconds, request)  to have a request done within a time limit; `TimeoutError` is raised otherwise

A layer may also have

    buffers = True            it may change or refuse a reply, so nothing of a reply is shown before it is complete
    pieces()                  returns, for each reply, an object that changes the reply while it comes in: its methods
                              `take(delta)` and, at the end, `rest()` return the deltas to show
    as_stored(fact)           returns what to keep of a fact, before it is stored or shown; quick, without side effects
    gate = True               it judges calls; if it raises, none of the round's calls run
    gate = False              nothing depends on it; if it raises, this is logged, and the step is done without it

A layer without `gate` may protect something or not, so if it raises, nothing is done in its place: its call fails, or
the turn ends.
The driver decides how all this is done, so a layer never blocks and never awaits. Invariants: the first layer of a list
is the outermost; what a step raises is raised where the layer yielded; a layer must not yield while it is closed.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from toolsearch.errors import SetupError
from toolsearch.events.facts import Event
from toolsearch.loop.trampoline import Trampoline
from toolsearch.protocols import Do, GateLayer, Layer, NamedLayer, Record, Sleep, StoreLayer, Within
from toolsearch.support.checks import offers, shown
from toolsearch.support.threads import in_thread, within

__all__ = [
    "SEAMS",
    "Perform",
    "adrive",
    "arun_function",
    "checked_layers",
    "drive",
    "layered",
    "name_of",
    "run_function",
]

log = logging.getLogger("toolsearch")

SEAMS = ("around_run", "around_round", "around_model", "around_tool")

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Perform(Generic[RequestT]):
    """The innermost step: the request as the layers left it. Only a driver sees it."""

    request: RequestT
    seconds: float | None = None


# What the nested layers yield together: the innermost request, and their own work. They return whatever the outermost
# layer returns, which the driver then checks.
Wanted = Perform[RequestT] | Sleep | Do | Record
Steps = Generator[Wanted[RequestT], object, object]
Inner = Callable[[RequestT], Steps[RequestT]]

Failed = Callable[[Layer, RequestT, BaseException], object]
"""Returns the answer to use for a layer that raised an error of its own; it may raise instead."""

Answered = Callable[[Layer, RequestT, "RequestT | None"], object]
"""Is called with the layer that answered, the request, and what the layer passed on last (None: nothing)."""


def layered(
    layers: Iterable[Layer],
    seam: str,
    failed: Failed[RequestT] | None = None,
    answered: Answered[RequestT] | None = None,
) -> Inner[RequestT]:
    """A function from a request to the steps of all layers that have this method, around the innermost step."""
    steps: Inner[RequestT] = _innermost
    for layer in reversed(list(layers)):
        if getattr(layer, seam, None) is not None:
            steps = _Around(layer, seam, steps, failed, answered)
    return steps


_SKIPPED = object()  # the result of a layer that failed and on which nothing depends


def _innermost(request: RequestT) -> Steps[RequestT]:
    return (yield Perform(request))


@dataclass(frozen=True, slots=True)
class _Around(Generic[RequestT]):
    """The steps of one layer, around those of the layers inside it."""

    layer: Layer
    seam: str
    inner: Inner[RequestT]
    failed: Failed[RequestT] | None
    answered: Answered[RequestT] | None

    def __call__(self, request: RequestT) -> Steps[RequestT]:
        steps: Trampoline[object, object] = Trampoline(getattr(self.layer, self.seam)(request))
        passed: RequestT | None = None  # what was passed on to the layers inside, last
        came_back: Exception | None = None  # an error that the inner step raised, not this layer
        from_inside: BaseException | None = None  # the same, if the layer was sent it last
        answer: object = None  # what the inner step gave last
        try:
            while self._advance(steps, request, from_inside):
                wanted, from_inside = steps.wanted, None
                with steps:
                    if isinstance(wanted, Sleep | Do | Record):
                        steps.answer = yield wanted
                        continue
                    if isinstance(wanted, Within):
                        passed = self._checked(wanted.request, request)
                        inside = _bounded(self.inner(passed), wanted.seconds)
                    else:
                        passed = self._checked(wanted, request)
                        inside = self.inner(passed)
                    try:
                        answer, came_back = None, None
                        steps.answer = answer = yield from inside
                    except Exception as error:
                        from_inside = came_back = error
                        raise
            if steps.result is _SKIPPED:
                if came_back is not None:
                    raise came_back
                if passed is None:
                    passed = request
                    answer = yield from self.inner(request)
                steps.result = answer
            if self.answered is not None:
                self.answered(self.layer, request, passed)
            return steps.result
        finally:
            try:
                steps.close()
            except Exception:
                log.exception("%s of %r failed while it was closed: it must not yield then", self.seam, self.layer)

    def _advance(self, steps: Trampoline[object, object], request: RequestT, from_inside: BaseException | None) -> bool:
        """Continues the layer. If it fails by itself, it is skipped, or `failed` gives its answer.

        An error from inside is raised.
        """
        try:
            if steps.advance():
                return True
            if self.seam == "around_round" and not isinstance(steps.result, Mapping):
                problem = f"{self.seam} of {self.layer!r} returned {steps.result!r}: return the answers by call id"
                raise SetupError(problem)
        except Exception as error:
            if error is from_inside:
                raise
            if _may_be_skipped(self.layer) and not isinstance(error, SetupError):
                log.exception("%s of %r failed: the step is done without it", self.seam, self.layer)
                steps.result = _SKIPPED
            elif self.failed is None:
                raise
            else:
                steps.result = self.failed(self.layer, request, error)
        return False

    def _checked(self, wanted: object, request: RequestT) -> RequestT:
        if not isinstance(wanted, type(request)):
            raise SetupError(
                f"{self.seam} of {self.layer!r} yielded {wanted!r}: yield the {type(request).__name__} it received, a "
                f"changed copy, or Sleep, Do, Record, Within"
            )
        return wanted


def _may_be_skipped(layer: object) -> bool:
    """Whether nothing depends on a layer, so that a step is done without it if it fails."""
    return offers(layer, GateLayer) and layer.gate is False


def _bounded(inner: Steps[RequestT], seconds: float) -> Steps[RequestT]:
    """The steps, with a time limit for the innermost one."""
    steps = Trampoline(inner)
    try:
        while steps.advance():
            with steps:
                if isinstance(wanted := steps.wanted, Perform):
                    bound = seconds if wanted.seconds is None else min(seconds, wanted.seconds)
                    wanted = Perform(wanted.request, bound)
                steps.answer = yield wanted
        return steps.result
    finally:
        steps.close()


def drive(
    inner: Steps[RequestT],
    perform: Callable[[Perform[RequestT]], object],
    record: Callable[[Event], object] = lambda _: None,
) -> object:
    """Runs steps to their end. `perform` does the innermost step, `record` takes the facts of layers."""
    steps = Trampoline(inner)
    while steps.advance():
        with steps:
            match steps.wanted:
                case Sleep(seconds):
                    time.sleep(max(0.0, seconds))
                case Do(function, seconds):
                    steps.answer = (
                        run_function(function) if seconds is None else within(partial(run_function, function), seconds)
                    )
                case Record(event):
                    steps.answer = record(event)
                case Perform() as wanted:
                    steps.answer = perform(wanted)
    return steps.result


async def adrive(
    inner: Steps[RequestT],
    perform: Callable[[Perform[RequestT]], Awaitable[object]],
    record: Callable[[Event], object] = lambda _: None,
) -> object:
    """As `drive`, for async code."""
    steps = Trampoline(inner, passing=(GeneratorExit, asyncio.CancelledError))
    try:
        while steps.advance():
            with steps:
                match steps.wanted:
                    case Sleep(seconds):
                        await asyncio.sleep(max(0.0, seconds))
                    case Do(function, seconds):
                        steps.answer = await asyncio.wait_for(arun_function(function), seconds)
                    case Record(event):
                        answer = record(event)
                        steps.answer = await answer if inspect.isawaitable(answer) else answer
                    case Perform() as wanted:
                        steps.answer = await perform(wanted)
        return steps.result
    finally:
        steps.close()


def run_function(function: Callable[[], ResultT]) -> ResultT:
    """The result of a layer's function; an async one cannot be called here."""
    answer = function()
    if inspect.isawaitable(answer):
        close = getattr(answer, "close", None)
        if close is not None:
            close()
        named = function.func if isinstance(function, partial) else function
        name = getattr(named, "__qualname__", None) or repr(named)
        raise SetupError(f"{name} is async: use `await agent.arun(…)` or `agent.astream(…)` instead of `run`")
    return answer


async def arun_function(function: Callable[[], object]) -> object:
    """The result of a layer's function: an async one is awaited, any other runs in a thread of its own."""
    answer = function() if inspect.iscoroutinefunction(function) else await in_thread(function)
    return await answer if inspect.isawaitable(answer) else answer


def checked_layers(layers: object) -> list[Layer]:
    """The layers as a list; raises `SetupError` if one of them is not a layer."""
    if not isinstance(layers, Iterable):
        raise SetupError(f"layers must be a list of layers, not {shown(layers)}")
    checked = list(layers)
    for layer in checked:
        if isinstance(layer, type):
            raise SetupError(f"{layer.__name__} is a class, not a layer: pass an object, as in {layer.__name__}(…)")
        seams = [seam for seam in SEAMS if getattr(layer, seam, None) is not None]
        if not seams and not offers(layer, StoreLayer):
            name = getattr(layer, "__name__", "")
            hint = f". Did you mean {name}()?" if inspect.isfunction(layer) and name.isidentifier() else ""
            raise SetupError(f"{shown(layer)} in layers is not a layer: it defines none of {', '.join(SEAMS)}{hint}")
        for seam in seams:
            if not inspect.isgeneratorfunction(inspect.unwrap(getattr(layer, seam))):
                raise SetupError(
                    f"{seam} of {layer!r} must be a generator: `def {seam}(self, request): result = yield request; "
                    f"return result`, or use before() / after() with a plain function"
                )
    return checked


def name_of(layer: object) -> str:
    """The name of a layer in the journal: its own, or that of its class."""
    return str(layer.name) if offers(layer, NamedLayer) and layer.name else type(layer).__name__
