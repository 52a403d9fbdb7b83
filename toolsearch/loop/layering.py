"""Layers around a step, written once for sync and async.

A layer is an object with one or more of four generator functions:

    around_run(run)      around_round(round)      around_model(request)      around_tool(call)

Each yields what it was given, or a changed copy, to have it done, gets back what came of it, and returns that or
something else. It may yield again (a retry), or not at all (a refusal). It does its own work by yielding

    Sleep(seconds)            to wait
    Do(function, seconds)     to call a function, in time if that is given; in `arun` it may be async
    Record(fact)              to write a fact into the journal; what a layer must remember is a `Noted`
    Within(seconds, request)  to have a request done in time; it raises `TimeoutError` otherwise

Beside these a layer may have

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
from typing import TYPE_CHECKING, Any

from toolsearch.errors import SetupError
from toolsearch.protocols import Do, Record, Sleep, Within
from toolsearch.support.checks import shown
from toolsearch.support.threads import in_thread, within

if TYPE_CHECKING:
    from toolsearch.events.facts import Event

__all__ = [
    "SEAMS",
    "adrive",
    "checked",
    "drive",
    "layered",
]

log = logging.getLogger("toolsearch")

SEAMS = ("around_run", "around_round", "around_model", "around_tool")
Steps = Generator[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Perform:
    """The innermost step: the request as the layers left it. Only a driver sees it."""

    request: Any
    seconds: float | None = None


def layered(
    layers: Iterable[Any], seam: str, failed: Callable[[Any, Any, BaseException], Any] | None = None
) -> Callable[[Any], Steps]:
    """A function from a request to the steps of all layers that have this seam, around the innermost one.

    `failed(layer, request, error)` gives what takes the place of the answer of a layer that raises by itself; it may
    raise, as happens without it.
    """
    steps: Callable[[Any], Steps] = _innermost
    for layer in reversed(list(layers)):
        if getattr(layer, seam, None) is not None:
            steps = _around(layer, seam, steps, failed)
    return steps


def _innermost(request: Any) -> Steps:
    return (yield Perform(request))


def _around(
    layer: Any, seam: str, inner: Callable[[Any], Steps], failed: Callable[[Any, Any, BaseException], Any] | None
) -> Callable[[Any], Steps]:
    around = getattr(layer, seam)

    def steps(request: Any) -> Steps:
        running = around(request)
        answer: Any = None
        error: BaseException | None = None
        from_inside = False  # whether the error is of the step, and not of the layer's own work
        try:
            while True:
                try:
                    wanted = running.send(answer) if error is None else running.throw(error)
                except StopIteration as end:
                    if seam != "around_round" or isinstance(end.value, Mapping):
                        return end.value
                    lost = SetupError(f"{seam} of {layer!r} gave {end.value!r}: return the answers by call id")
                    if failed is None:
                        raise lost from None
                    return failed(layer, request, lost)
                except Exception as raised:
                    if failed is None or (from_inside and raised is error):
                        raise
                    return failed(layer, request, raised)
                answer, error, from_inside = None, None, False
                try:
                    if isinstance(wanted, Sleep | Do | Record):
                        answer = yield wanted
                        continue
                    bounded = isinstance(wanted, Within)
                    given = wanted.request if bounded else wanted
                    if not isinstance(given, type(request)):
                        raise SetupError(_misyielded(layer, seam, given, request))
                    from_inside = True
                    answer = yield from _bounded(inner(given), wanted.seconds) if bounded else inner(given)
                except GeneratorExit:
                    raise
                except BaseException as raised:
                    error = raised
        finally:
            try:
                running.close()
            except Exception:
                log.exception("%s of %r failed while it was closed: it must not yield then", seam, layer)

    return steps


def _misyielded(layer: Any, seam: str, given: Any, request: Any) -> str:
    return (
        f"{seam} of {layer!r} yielded {given!r}: yield what it was given, a {type(request).__name__}, or a changed "
        "copy, or Sleep, Do, Record, Within"
    )


def _bounded(steps: Steps, seconds: float) -> Steps:
    """The steps, with a bound on the innermost one."""
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            wanted = steps.send(answer) if error is None else steps.throw(error)
        except StopIteration as end:
            return end.value
        answer = error = None
        if isinstance(wanted, Perform):
            bound = seconds if wanted.seconds is None else min(seconds, wanted.seconds)
            wanted = Perform(wanted.request, bound)
        try:
            answer = yield wanted
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as raised:
            error = raised


def drive(steps: Steps, perform: Callable[[Any], Any], record: Callable[[Event], Any] = lambda _: None) -> Any:
    """Runs steps to their end. `perform` does what they yield innermost."""
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            wanted = steps.send(answer) if error is None else steps.throw(error)
        except StopIteration as end:
            return end.value
        answer = error = None
        try:
            match wanted:
                case Sleep():
                    time.sleep(max(0.0, wanted.seconds))
                case Do() if (seconds := wanted.seconds) is not None:
                    answer = within(partial(called, wanted.function), seconds)
                case Do():
                    answer = called(wanted.function)
                case Record():
                    answer = record(wanted.event)
                case _:
                    answer = perform(wanted)
        except BaseException as raised:
            error = raised


async def adrive(
    steps: Steps, perform: Callable[[Any], Awaitable[Any]], record: Callable[[Event], Any] = lambda _: None
) -> Any:
    """As `drive`, for async code."""
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            wanted = steps.send(answer) if error is None else steps.throw(error)
        except StopIteration as end:
            return end.value
        answer = error = None
        try:
            match wanted:
                case Sleep():
                    await asyncio.sleep(max(0.0, wanted.seconds))
                case Do():
                    answer = await asyncio.wait_for(acalled(wanted.function), wanted.seconds)
                case Record():
                    answer = record(wanted.event)
                    answer = await answer if inspect.isawaitable(answer) else answer
                case _:
                    answer = await perform(wanted)
        except asyncio.CancelledError:
            steps.close()
            raise
        except BaseException as raised:
            error = raised


def called(function: Callable[[], Any]) -> Any:
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


async def acalled(function: Callable[[], Any]) -> Any:
    """What a layer's function gives: an async one is awaited, any other runs in a thread of its own."""
    answer = function() if inspect.iscoroutinefunction(function) else await in_thread(function)
    return await answer if inspect.isawaitable(answer) else answer


def checked(layers: Iterable[Any]) -> list[Any]:
    """The layers as a list; raises `SetupError` for what is none."""
    if not isinstance(layers, Iterable):
        raise SetupError(f"layers must be a list of layers, not {shown(layers)}")
    found = list(layers)
    for layer in found:
        if isinstance(layer, type):
            raise SetupError(f"{layer.__name__} is a class, not a layer: pass an object, as in {layer.__name__}(…)")
        seams = [seam for seam in SEAMS if getattr(layer, seam, None) is not None]
        if not seams and not hasattr(layer, "store"):
            raise SetupError(
                f"layers must hold layers, and {shown(layer)} is no layer: it has none of {', '.join(SEAMS)}"
            )
        for seam in seams:
            if not inspect.isgeneratorfunction(inspect.unwrap(getattr(layer, seam))):
                raise SetupError(
                    f"{seam} of {layer!r} must be a generator: `def {seam}(self, given): result = yield given; return "
                    f"result`, or use before() / after() with a plain function"
                )
    return found
