"""Layers from plain functions, for those who never want to see a generator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, TypeAlias, TypeVar, overload

from toolsearch.calls import ToolResult
from toolsearch.errors import SetupError
from toolsearch.events.facts import Reply, ToolWaiting
from toolsearch.events.requests import Call, CallModel, Finished, Paused, Round, Run
from toolsearch.protocols import AnswersById, Do, Layer, ModelSteps, RoundSteps, RunSteps, ToolAnswer, ToolSteps

__all__ = ["after", "before"]

T = TypeVar("T")
G = TypeVar("G")  # what a step is given
A = TypeVar("A")  # what comes of it
Change: TypeAlias = Callable[[T], T | Awaitable[T | None] | None]


@overload
def before(seam: Literal["run"], function: Change[Run]) -> Layer: ...
@overload
def before(seam: Literal["round"], function: Change[Round]) -> Layer: ...
@overload
def before(seam: Literal["model"], function: Change[CallModel]) -> Layer: ...
@overload
def before(seam: Literal["tool"], function: Change[Call]) -> Layer: ...
def before(seam: str, function: Change[Any]) -> Layer:
    """A layer that calls `function` with what a step is given ("run", "round", "model", "tool"); it may change it.

    What the function returns takes the place of what was given; None leaves it as it is. The function may be async.
    """
    return _layer(seam, function, None)


@overload
def after(seam: Literal["run"], function: Change[Finished | Paused]) -> Layer: ...
@overload
def after(seam: Literal["round"], function: Change[AnswersById]) -> Layer: ...
@overload
def after(seam: Literal["model"], function: Change[Reply]) -> Layer: ...
@overload
def after(seam: Literal["tool"], function: Change[ToolResult | ToolWaiting]) -> Layer: ...
def after(seam: str, function: Change[Any]) -> Layer:
    """A layer that calls `function` with what came of a step; it may change it, as in `before`."""
    return _layer(seam, None, function)


def _layer(seam: str, first: Change[Any] | None, last: Change[Any] | None) -> Layer:
    function = first or last
    if seam not in _LAYERS:
        raise SetupError(f"there is no seam {seam!r}; there are 'run', 'round', 'model' and 'tool'")
    if not callable(function):
        raise SetupError(f"before() and after() take a function, not {function!r}")
    return _LAYERS[seam](getattr(function, "__name__", "plain"), first, last)


@dataclass(frozen=True)
class _Plain(Generic[G, A]):
    """A layer from plain functions; each of its kinds has the one generator of its seam."""

    name: str
    first: Change[G] | None
    last: Change[A] | None

    def _around(self, request: G) -> Generator[G | Do, A, A]:
        if self.first is not None:
            request = yield from _changed(request, self.first)
        result = yield request
        return result if self.last is None else (yield from _changed(result, self.last))


def _changed(value: T, function: Change[T]) -> Generator[Do, Any, T]:
    changed: T | None = yield Do(partial(function, value))
    return value if changed is None else changed


class _AroundRun(_Plain[Run, Finished | Paused]):
    def around_run(self, run: Run) -> RunSteps:
        return (yield from self._around(run))


class _AroundRound(_Plain[Round, AnswersById]):
    def around_round(self, calls: Round) -> RoundSteps:
        return (yield from self._around(calls))


class _AroundModel(_Plain[CallModel, Reply]):
    @property
    def buffers(self) -> bool:
        """A function may change the reply, so nothing of it is shown before."""
        return self.last is not None

    def around_model(self, request: CallModel) -> ModelSteps:
        return (yield from self._around(request))


class _AroundTool(_Plain[Call, ToolAnswer]):
    def around_tool(self, call: Call) -> ToolSteps:
        return (yield from self._around(call))


_LAYERS: Mapping[str, Callable[[str, Change[Any] | None, Change[Any] | None], Layer]] = {
    "run": _AroundRun,
    "round": _AroundRound,
    "model": _AroundModel,
    "tool": _AroundTool,
}
