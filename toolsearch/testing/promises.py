"""How a kit says that a promise is broken: by an error of its own, which Python raises under `-O` too."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb

from toolsearch import SetupError
from toolsearch.support.checks import shown

__all__ = ["BrokenPromise", "check_maker", "guarded", "is_json", "is_sendable", "require"]


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
        raise BrokenPromise(f"{doing} raises {type(error).__name__}: {error}", _where(error)) from error


def _where(error: Exception) -> str:
    """The function of a plug that raised, its line, and how the kit called it; "" where it is the kit's own."""
    frames = extract_tb(error.__traceback__)
    kit = Path(__file__).parent
    ours = [place for place, frame in enumerate(frames) if Path(frame.filename).parent == kit]
    if not ours or ours[-1] + 1 == len(frames):
        return ""
    last, plug = frames[ours[-1]], frames[ours[-1] + 1]
    called = f", called by the kit as `{last.line}`" if last.line else ""
    return f"{plug.name}() in line {plug.lineno} of {plug.filename}{called}"


def check_maker(kit: str, make: Callable[[], object], what: str) -> None:
    """Raises `SetupError` where a kit was passed something that makes nothing, such as a name or a finished object."""
    if not callable(make):
        raise SetupError(f"{kit} takes what makes {what}, such as its class or a lambda, not {shown(make)}")


def is_sendable(value: object) -> bool:
    """Whether a value is plain JSON that a request or a file can carry: valid UTF-8, no NaN, keys that are text."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return is_json(value)


def is_json(value: object) -> bool:
    """Whether JSON gives a value back as it was: no NaN, no sets or objects, keys that are text."""
    try:
        same: bool = json.loads(json.dumps(value, allow_nan=False)) == _without_tuples(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return same


def _without_tuples(value: object) -> object:
    """JSON has lists alone."""
    if isinstance(value, dict):
        return {key: _without_tuples(item) for key, item in value.items()}
    return [_without_tuples(item) for item in value] if isinstance(value, list | tuple) else value
