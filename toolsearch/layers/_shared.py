"""What several layers do: have a function called, ask a person, find the number that is set for one tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from toolsearch.errors import SetupError
from toolsearch.events.facts import JudgedCall
from toolsearch.events.requests import Waiting
from toolsearch.events.turn_view import is_one_of
from toolsearch.protocols import Do

__all__ = ["ask_person", "awaited", "result_of", "setting_for"]

T = TypeVar("T")
Asking = Generator[Do, object, T]  # the steps of a helper that yields `Do` only, and what it returns


def result_of(function: Callable[[], object], seconds: float | None = None) -> Asking[object]:
    """Has a function called, sync or async, and returns its result, of whatever type: the caller checks that."""
    return (yield Do(function, seconds))


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

    `wanted` says in an error what `ask` has to return. A `SetupError` is the program's own and is raised.
    """
    try:
        decisions = yield from result_of(partial(ask, tuple(waiting)), seconds)
        if not isinstance(decisions, Mapping):
            raise TypeError(f"it returned {type(decisions).__name__} where {wanted} by call id are needed")
    except SetupError:
        raise
    except Exception as error:
        return error
    return decisions


def setting_for(call: JudgedCall, own: Mapping[str, T], default: T) -> T:
    """The setting of the called tool in `own`, which is by id or name, or else the default."""
    return next((setting for name, setting in own.items() if is_one_of(call, (name,))), default)
