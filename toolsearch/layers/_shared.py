"""What several layers do: have a function called, ask a person, find the number that is set for one tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from toolsearch.errors import SetupError
from toolsearch.events.facts import JudgedCall, ToolWaiting
from toolsearch.events.requests import Round, Waiting
from toolsearch.events.turn_view import is_one_of
from toolsearch.protocols import Do

__all__ = ["ask_person", "awaited", "dialogs_before", "result_of", "setting_for"]

OF_TURN = 0.8  # of the time that a turn has left: the most that a dialog may take, so that the model can still answer

T = TypeVar("T")
Asking = Generator[Do, object, T]  # the steps of a helper that yields `Do` only, and what it returns


def result_of(
    function: Callable[[], object], seconds: float | None = None, share: float | None = None
) -> Asking[object]:
    """Has a function called, sync or async, and returns its result, of whatever type: the caller checks that."""
    return (yield Do(function, seconds, share))


def awaited(value: object) -> Asking[object]:
    """The value, or the result of an awaitable. So a quick function is called at once, and only an async one waits."""
    if not inspect.isawaitable(value):
        return value
    return (yield from result_of(partial(_identity, value)))


def _identity(value: object) -> object:
    return value


def ask_person(
    ask: Callable[[Sequence[Waiting]], object], waiting: Sequence[Waiting], seconds: float, wanted: str
) -> Asking[Mapping[str, object] | Exception]:
    """What a person decided, by call id, or why there is nothing: `TimeoutError` where no answer came in time.

    A dialog ends before the turn does, see `OF_TURN`. `wanted` says in an error what `ask` has to return. A
    `SetupError` is the program's own and is raised.
    """
    try:
        decisions = yield from result_of(partial(ask, tuple(waiting)), seconds, OF_TURN)
        if not isinstance(decisions, Mapping):
            raise TypeError(f"it returned {type(decisions).__name__} where {wanted} by call id are needed")
    except SetupError:
        raise
    except Exception as error:
        return error
    return decisions


def dialogs_before(request: Round, joins: str = "") -> int:
    """How many dialogs were opened for the calls of the reply, by any layer, in this process or an earlier one.

    The approvals that one layer asks for together are one dialog. Those of the layer `joins` are not counted: a call
    that it did not come to, because the process ended, still belongs to its dialog.
    """
    ids = {call.id for call in request.turn.replies[-1].calls} if request.turn.replies else set[str]()
    asked = [fact for fact in request.turn.facts if isinstance(fact, ToolWaiting) and fact.call_id in ids]
    approvals = {fact.by for fact in asked if fact.kind == "approval"} - {joins}
    others = [fact for fact in asked if fact.kind not in ("approval", "delegated")]
    return request.dialogs + len(approvals) + len(others)


def setting_for(call: JudgedCall, own: Mapping[str, T], default: T) -> T:
    """The setting of the called tool in `own`, which is by id or name, or else the default."""
    return next((setting for name, setting in own.items() if is_one_of(call, (name,))), default)
