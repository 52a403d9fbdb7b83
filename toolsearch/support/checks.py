"""Checks of the options a program passes: a value that cannot work raises a `SetupError` that says what can.

Each function takes the name of an option and its value. `none` is true where None may be passed too; a text says what
None means then, as in "or None for no limit".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, TypeGuard, TypeVar

from toolsearch.errors import SetupError

__all__ = [
    "choice",
    "flag",
    "function",
    "having",
    "instance",
    "names",
    "number",
    "offers",
    "shown",
    "table",
    "text",
    "time_of",
    "whole",
    "wrong",
]

SHOWN = 200  # characters of a value in a message
T = TypeVar("T")

STORE = ("a store, as SqliteStore(…) is", "append", "load", "delete", "list")  # for `having`


def wrong(option: str, wanted: str, value: object, none: str | bool = False, more: str = "") -> SetupError:
    """The error for a value that is not what is wanted; `more` says what is wrong with it."""
    if none:
        meaning = f" {none}" if isinstance(none, str) else ""
        wanted += f"{',' if meaning or ',' in wanted else ''} or None{meaning}"
    return SetupError(f"{option} must be {wanted}, not {shown(value)}{more}")


def shown(value: object) -> str:
    """The `repr` of a value, cut; or a description, where `repr` fails."""
    try:
        text = repr(value)
    except Exception:
        return f"a value of the type {type(value).__name__}, whose repr() fails"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def offers(value: object, protocol: Callable[..., T]) -> TypeGuard[T]:
    """Whether a value has all members of an optional protocol.

    It may pass them on from an object inside it, with `__getattr__`. From Python 3.12 on, `isinstance` does not see
    those, and a wrapped layer would lose its gate or its redaction in silence.
    """
    return all(hasattr(value, name) for name in vars(protocol) if not name.startswith("_"))


# -- one value ---------------------------------------------------------------------------------------------------


def whole(option: str, value: object, least: int = 1, *, none: str | bool = False) -> None:
    """A whole number of at least `least`; True and False do not count."""
    if value is None and none:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise wrong(option, f"a whole number of at least {least}", value, none)


def number(
    option: str,
    value: object,
    what: str = "a number",
    *,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    finite: bool = False,
    none: str | bool = False,
) -> None:
    """A number above 0, or of at least `least`; and below `below`, or up to `most`. Never NaN or True.

    With `finite`, infinity is refused too.
    """
    if value is None and none:
        return
    if isinstance(value, int | float) and not isinstance(value, bool):
        enough = value > 0 if least is None else value >= least
        few = (below is None or value < below) and (most is None or value <= most)
        if enough and few and not (finite and value == math.inf):
            return
    low = "above 0" if least is None else f"of at least {least:g}"
    high = f" and below {below:g}" if below is not None else f" and at most {most:g}" if most is not None else ""
    raise wrong(option, f"{what} {low}{high}", value, none)


def flag(option: str, value: object) -> None:
    """True or False, not a value that merely counts as one."""
    if not isinstance(value, bool):
        raise wrong(option, "True or False", value)


def text(option: str, value: object, *, empty: bool = True, none: str | bool = False) -> None:
    """A text; without `empty`, not the empty one."""
    if not (isinstance(value, str) and (value or empty)) and not (value is None and none):
        raise wrong(option, "a str" if empty else "a non-empty str", value, none)


def choice(option: str, value: object, *choices: str) -> None:
    """One of a few texts."""
    if not isinstance(value, str) or value not in choices:
        *most, last = map(repr, choices)
        raise wrong(option, f"{', '.join(most)} or {last}", value)


def function(option: str, value: object, that: str, *, none: str | bool = False) -> None:
    """Something to call; `that` says with what. A class whose objects can be called must be instantiated first."""
    if value is None and none:
        return
    if isinstance(value, type) and any("__call__" in vars(each) for each in value.__mro__):
        raise wrong(option, f"a function {that}", value, none, f": pass an object, as in {value.__name__}(…)")
    if not callable(value):
        raise wrong(option, f"a function {that}", value, none)


def instance(option: str, value: object, kind: type, wanted: str, *, none: str | bool = False) -> None:
    """An instance of a class."""
    if not isinstance(value, kind) and not (value is None and none):
        raise wrong(option, wanted, value, none)


def having(option: str, value: object, wanted: str, *methods: str, none: str | bool = False) -> None:
    """An object with these methods, each a name or a path to it, as in "messages.create"."""
    if value is None and none:
        return
    if isinstance(value, type):
        raise wrong(option, wanted, value, none, f": pass an object, as in {value.__name__}(…)")
    if missing := [each for each in methods if not callable(_at(value, each))]:
        raise wrong(option, wanted, value, none, f": it has no {', '.join(missing)}")


def _at(value: object, path: str) -> object:
    return reduce(lambda inner, name: getattr(inner, name, None), path.split("."), value)


def time_of(clock: Callable[[], float]) -> float:
    """What a clock of the program says; raises `SetupError` for what is no time, such as NaN or infinity."""
    seconds: object = clock()
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not math.isfinite(seconds):
        raise SetupError(f"clock must give seconds since the epoch, as time.time() does, not {shown(seconds)}")
    return seconds


# -- several -----------------------------------------------------------------------------------------------------


def names(option: str, value: object, what: str = "names", *, more: str = "") -> tuple[str, ...]:
    """A collection of texts, in its order. A single text is refused: Python would iterate over its letters."""
    if isinstance(value, str):
        raise wrong(option, f"a collection of {what}, as in [{shown(value)}]{more}", value)
    if not isinstance(value, Iterable):
        raise wrong(option, f"a collection of {what}{more}", value)
    items = tuple(value)
    if odd := [each for each in items if not isinstance(each, str)]:
        raise wrong(f"each of the {what} in {option}", "a str", odd[0])
    return items


def table(option: str, value: object, to: str, *, none: str | bool = False) -> dict[str, Any]:
    """A mapping from names; `to` says to what. Where None may be passed, it is an empty mapping."""
    if value is None and none:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong(option, f"a mapping from names to {to}", value, none)
    return dict(value)
