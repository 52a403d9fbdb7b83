"""How a kit says that a promise is broken: by an error of its own, which Python raises under `-O` too."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager

from toolsearch.errors import SetupError
from toolsearch.support.checks import shown

__all__ = ["BrokenPromise", "check_maker", "guarded", "is_sendable", "require"]


class BrokenPromise(AssertionError):
    """A plug breaks a promise of its protocol: `promise` says which, `see` how to see it."""

    def __init__(self, promise: str, see: str = "") -> None:
        super().__init__(promise, see)
        self.promise, self.see = promise, see

    def __str__(self) -> str:
        return f"{self.promise}. To see it: {self.see}" if self.see else self.promise


def require(holds: object, promise: str, see: str = "") -> None:
    """Raises `BrokenPromise` unless the promise holds."""
    if not holds:
        raise BrokenPromise(promise, see)


@contextmanager
def guarded(doing: str) -> Generator[None]:
    """Reports whatever a plug raises as a broken promise; `doing` says what it was asked for."""
    try:
        yield
    except BrokenPromise:
        raise
    except Exception as error:
        raise BrokenPromise(f"{doing} raises {type(error).__name__}: {error}") from error


def check_maker(kit: str, make: Callable[[], object], what: str) -> None:
    """Raises `SetupError` where a kit was passed something that makes nothing, such as a name or a finished object."""
    if not callable(make):
        raise SetupError(f"{kit} takes what makes {what}, such as its class or a lambda, not {shown(make)}")


def is_sendable(value: object) -> bool:
    """Whether a value is plain JSON that a request or a file can carry: valid UTF-8, no NaN, keys that are text."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
        same: bool = json.loads(text) == _without_tuples(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return same


def _without_tuples(value: object) -> object:
    """JSON has lists alone."""
    if isinstance(value, dict):
        return {key: _without_tuples(item) for key, item in value.items()}
    return [_without_tuples(item) for item in value] if isinstance(value, list | tuple) else value
