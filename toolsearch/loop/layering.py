"""Layers around a step, written once for sync and async.

A layer is an object with one or more of four generator functions:

    around_run(run)      around_round(round)      around_model(request)      around_tool(call)

Each yields what it was given, or a changed copy, to have it done, gets back what came of it, and returns that or
something else. It may yield again (a retry), or not at all (a refusal). It does its own work by yielding

    Sleep(seconds)            to wait
    Do(function, seconds)     to call a function, in time if that is given; in `arun` it may be async
    Record(fact)              to write a fact into the journal; what a layer must remember is a `Noted`
    Within(seconds, request)  to have a request done in time; it raises `TimeoutError` otherwise

Besides these a layer may have

    buffers = True            it may change or refuse a reply: nothing of one is shown before it is whole
    pieces()                  for each reply an object that changes it while it comes in: `take(delta)` and, at its end,
                              `rest()` give the deltas to be shown
    as_stored(fact)           what is kept of a fact, asked before it is stored or shown; quick, without side effects
    gate = True               it judges calls: where it raises, none of the round runs

Whoever drives a layer decides how these are done, so a layer never blocks and never awaits. Invariants: the first layer
of a list is outermost; what a step raises is raised where the layer yielded; a layer must not yield while it is closed.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from toolsearch.errors import SetupError
from toolsearch.loop.trampoline import Trampoline
from toolsearch.protocols import Do, Layer, NamedLayer, Record, Sleep, StoreLayer, Within
from toolsearch.support.checks import shown
from toolsearch.support.threads import in_thread, within

if TYPE_CHECKING:
    from toolsearch.events.facts import Event

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


@dataclass(frozen=True, slots=True)
class Perform(Generic[RequestT]):
    """The innermost step: the request as the layers left it. Only a driver sees it."""

    request: RequestT
    seconds: float | None = None


# What all layers of a seam yield together: the innermost request, and their own work. What they return is whatever the
# outermost layer made of it, which the driver judges.
Wanted = Perform[RequestT] | Sleep | Do | Record
Steps = Generator[Wanted[RequestT], Any, Any]
Inner = Callable[[RequestT], Steps[RequestT]]

Failed = Callable[[Layer, RequestT, BaseException], object]
"""Gives what takes the place of the answer of a layer that raises by itself; it may raise."""

Answered = Callable[[Layer, RequestT, "RequestT | None"], object]
"""Hears which layer gave an answer, to what, and what it passed on inside last: None where it asked for nothing."""


def layered(
    layers: Iterable[Layer],
    seam: str,
    failed: Failed[RequestT] | None = None,
    answered: Answered[RequestT] | None = None,
) -> Inner[RequestT]:
    """A function from a request to the steps of all layers that have this seam, around the innermost one."""
    steps: Inner[RequestT] = _innermost
    for layer in reversed(list(layers)):
        if getattr(layer, seam, None) is not None:
            steps = _Around(layer, seam, steps, failed, answered)
    return steps


def _innermost(request: RequestT) -> Steps[RequestT]:
    return (yield Perform(request))


@dataclass(frozen=True, slots=True)
class _Around(Generic[RequestT]):
    """The steps of one layer around those of the layers inside."""

    layer: Layer
    seam: str
    inner: Inner[RequestT]
    failed: Failed[RequestT] | None
    answered: Answered[RequestT] | None

    def __call__(self, request: RequestT) -> Steps[RequestT]:
        steps = Trampoline(getattr(self.layer, self.seam)(request))
        passed: RequestT | None = None  # on to the layers inside
        from_inside: BaseException | None = None  # an error of the step, and not of the layer's own work
        try:
            while self._advance(steps, request, from_inside):
                wanted, from_inside = steps.wanted, None
                with steps:
                    if isinstance(wanted, Sleep | Do | Record):
                        steps.answer = yield wanted
                        continue
                    bounded = isinstance(wanted, Within)
                    passed = self._checked(wanted.request if bounded else wanted, request)
                    inside = self.inner(passed)
                    try:
                        steps.answer = yield from _bounded(inside, wanted.seconds) if bounded else inside
                    except Exception as error:
                        from_inside = error
                        raise
            if self.answered is not None:
                self.answered(self.layer, request, passed)
            return steps.result
        finally:
            try:
                steps.close()
            except Exception:
                log.exception("%s of %r failed while it was closed: it must not yield then", self.seam, self.layer)

    def _advance(self, steps: Trampoline[Any, Any], request: RequestT, from_inside: BaseException | None) -> bool:
        """Runs the layer on. Where it fails by itself, `failed` gives its answer; what came from inside is raised."""
        try:
            if steps.advance():
                return True
            if self.seam == "around_round" and not isinstance(steps.result, Mapping):
                told = f"{self.seam} of {self.layer!r} gave {steps.result!r}: return the answers by call id"
                raise SetupError(told)
        except Exception as error:
            if self.failed is None or error is from_inside:
                raise
            steps.result = self.failed(self.layer, request, error)
        return False

    def _checked(self, given: Any, request: RequestT) -> RequestT:
        if not isinstance(given, type(request)):
            raise SetupError(
                f"{self.seam} of {self.layer!r} yielded {given!r}: yield what it was given, a "
                f"{type(request).__name__}, or a changed copy, or Sleep, Do, Record, Within"
            )
        return given


def _bounded(inner: Steps[RequestT], seconds: float) -> Steps[RequestT]:
    """The steps, with a bound on the innermost one."""
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
) -> Any:
    """Runs steps to their end. `perform` does what they yield innermost."""
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
) -> Any:
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


def run_function(function: Callable[[], Any]) -> Any:
    """What a layer's function gives; an async one cannot be called here."""
    answer = function()
    if inspect.isawaitable(answer):
        close = getattr(answer, "close", None)
        if close is not None:
            close()
        named = function.func if isinstance(function, partial) else function
        name = getattr(named, "__qualname__", None) or repr(named)
        raise SetupError(f"{name} is async: use `await agent.arun(…)` or `agent.astream(…)` instead of `run`")
    return answer


async def arun_function(function: Callable[[], Any]) -> Any:
    """What a layer's function gives: an async one is awaited, any other runs in a thread of its own."""
    answer = function() if inspect.iscoroutinefunction(function) else await in_thread(function)
    return await answer if inspect.isawaitable(answer) else answer


def checked_layers(layers: object) -> list[Layer]:
    """The layers as a list; raises `SetupError` for what is none."""
    if not isinstance(layers, Iterable):
        raise SetupError(f"layers must be a list of layers, not {shown(layers)}")
    found = list(layers)
    for layer in found:
        if isinstance(layer, type):
            raise SetupError(f"{layer.__name__} is a class, not a layer: pass an object, as in {layer.__name__}(…)")
        seams = [seam for seam in SEAMS if getattr(layer, seam, None) is not None]
        if not seams and not isinstance(layer, StoreLayer):
            name = getattr(layer, "__name__", "")
            made = f". Did you mean {name}()?" if inspect.isfunction(layer) and name.isidentifier() else ""
            raise SetupError(f"{shown(layer)} in layers is not a layer: it defines none of {', '.join(SEAMS)}{made}")
        for seam in seams:
            if not inspect.isgeneratorfunction(inspect.unwrap(getattr(layer, seam))):
                raise SetupError(
                    f"{seam} of {layer!r} must be a generator: `def {seam}(self, given): result = yield given; return "
                    f"result`, or use before() / after() with a plain function"
                )
    return found


def name_of(layer: object) -> str:
    """The name a layer goes by in the journal: its own, or its class's."""
    return str(layer.name) if isinstance(layer, NamedLayer) and layer.name else type(layer).__name__
