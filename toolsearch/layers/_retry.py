"""Trying again: model calls that failed for a moment, before anything was shown, and tools that may be repeated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeAlias

from toolsearch.calls import ToolResult
from toolsearch.errors import SetupError
from toolsearch.events.facts import Noted
from toolsearch.events.requests import Call, CallModel, was_shown
from toolsearch.events.turn_view import is_one_of
from toolsearch.protocols import Layer, ModelSteps, Record, Sleep, ToolSteps
from toolsearch.support import checks

__all__ = ["is_transient", "retry"]

# Error classes of the providers' clients; by name, so that no client has to be installed.
_NAMES = frozenset(
    "APIConnectionError APITimeoutError RateLimitError InternalServerError OverloadedError ServiceUnavailableError "
    "ConnectError ReadError WriteError RemoteProtocolError TimeoutException ConnectionError Timeout "
    "ServerDisconnectedError ClientConnectionError ReplyError".split()
)
_STATUSES = frozenset([408, 429])  # and every status from 500 on
_FOR_GOOD = frozenset(
    ["insufficient_quota", "billing_hard_limit_reached"]
)  # these come with 429, and waiting does not help

Predicate: TypeAlias = Callable[[BaseException], bool]
Errors: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]


def retry(
    attempts: int = 2,
    seconds: float = 0.15,
    *,
    on: Predicate | Errors | None = None,
    tools: bool | Iterable[str] = (),
    longest: float = 30.0,
) -> Layer:
    """A layer that makes a failed call again, up to `attempts` in all, after `seconds`, then twice that, and so on.

    A model call is made again only if no piece of its reply was shown. `on` says for which errors: classes, or a
    function; without it for those that may pass by themselves (`is_transient`). If the provider says how long to wait,
    that is obeyed, up to `longest` seconds; beyond that the error is raised. `tools`: ids or names of tools to try
    again, or True for all, if a call was late or raised such an error; a tool that may not run twice never is tried
    again. Put this layer after `structured` and the like, so that their own calls are tried again too. Each attempt is
    billed.
    """
    checks.whole("attempts", attempts)
    checks.number("seconds", seconds, "a number of seconds", least=0, finite=True)
    checks.number("longest", longest, "a number of seconds", least=0, finite=True)
    chosen = tools if isinstance(tools, bool) else frozenset(checks.names("tools", tools, more=", or True for all"))
    return _Retry(attempts, seconds, _predicate(on), chosen, longest)


def _predicate(on: Predicate | Errors | None) -> Predicate:
    """Whether an error is worth another attempt."""
    if on is None:
        return is_transient
    if not isinstance(on, tuple | type):
        checks.function("on", on, "from an error to True or False, or error classes")
        return on
    kinds = on if isinstance(on, tuple) else (on,)
    if wrong := [kind for kind in kinds if not _is_error_class(kind)]:
        raise SetupError(f"on must be error classes, or a function, and {checks.shown(wrong[0])} is not an error class")
    return lambda error: isinstance(error, kinds)


def _is_error_class(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)


def is_transient(error: BaseException) -> bool:
    """Whether an error may pass by itself: a lost connection, a time-out, too many requests, a server that failed.

    If there is a status (`status_code`, also of a `response`), it decides: 408, 429 and every status from 500 on.
    Otherwise the class decides; those of the usual clients are known by name.
    """
    if getattr(error, "code", None) in _FOR_GOOD:
        return False
    status = _status(error)
    if status is not None:
        return status in _STATUSES or status >= 500
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    return any(kind.__name__ in _NAMES for kind in type(error).__mro__)


@dataclass(frozen=True)
class _Retry:
    attempts: int
    seconds: float
    on: Predicate
    tools: bool | frozenset[str]
    longest: float
    name: str = "retry"

    def around_model(self, request: CallModel) -> ModelSteps:
        for attempt in range(1, self.attempts):
            try:
                return (yield request)
            except Exception as error:
                wait = self._wait(error, attempt)
                if wait > self.longest or was_shown(error) or not self.on(error):
                    raise
            yield Sleep(wait)
        return (yield request)

    def around_tool(self, call: Call) -> ToolSteps:
        attempts = self.attempts if self._may_repeat(call) else 1
        for attempt in range(1, attempts):
            error: BaseException | None
            try:
                result = yield call
            except TimeoutError as raised:  # of a layer inside this one
                error = raised
                if not self.on(raised):
                    raise
            else:
                error = _error_of(result)
                if error is None or not self.on(error):
                    return result
            yield Record(Noted(self.name, {"call": call.judged.id, "attempt": attempt, "error": type(error).__name__}))
            yield Sleep(min(self._wait(error, attempt), self.longest))
        return (yield call)

    def _may_repeat(self, call: Call) -> bool:
        if call.judged.kind != "tool" or not call.judged.marks.repeatable:
            return False
        return self.tools if isinstance(self.tools, bool) else is_one_of(call.judged, self.tools)

    def _wait(self, error: BaseException, attempt: int) -> float:
        wanted = _retry_after(error)
        own: float = self.seconds * 2 ** (attempt - 1)
        return own if wanted is None else max(wanted, 0.0)


def _error_of(result: object) -> BaseException | None:
    """The error a tool raised, if it did."""
    if not isinstance(result, ToolResult):
        return None
    if result.status == "timed_out":
        return TimeoutError(result.content)
    raised = result.data if result.status == "failed" else None
    return raised if isinstance(raised, BaseException) else None


def _status(error: BaseException) -> int | None:
    for owner in (error, getattr(error, "response", None)):
        for name in ("status_code", "status"):
            status = getattr(owner, name, None)
            if isinstance(status, int) and not isinstance(status, bool):
                return status
    return None


def _retry_after(error: BaseException) -> float | None:
    """How many seconds the provider wants a client to wait; a date is compared with the provider's own clock."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    if not isinstance(headers, Mapping):
        return None
    values = {str(name).lower(): str(value) for name, value in headers.items()}
    with suppress(ValueError, KeyError):
        return _number(values["retry-after-ms"]) / 1000
    with suppress(ValueError, KeyError):
        return _number(values["retry-after"])
    with suppress(ValueError, KeyError, TypeError):
        until, now = (parsedate_to_datetime(values[name]) for name in ("retry-after", "date"))
        return (until - now).total_seconds()
    return None


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
