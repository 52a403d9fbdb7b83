"""What a program passes as options, checked where it is passed: what cannot work is a `SetupError` that says what can.

Each function takes the name of an option and its value. `none` is said after "or None", where None may be passed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from toolsearch.errors import SetupError

__all__ = [
    "choice",
    "flag",
    "function",
    "having",
    "instance",
    "names",
    "number",
    "shown",
    "table",
    "text",
    "whole",
    "wrong",
]

SHOWN = 200  # characters of a value in a message
STORE = ("a store, as SqliteStore(…) is", "append", "load", "delete", "list")  # for `having`


def wrong(option: str, wanted: str, value: object, none: str = "", more: str = "") -> SetupError:
    """The error for a value that is not what is wanted; `more` says what is wrong with it."""
    wanted += f", or None {none}" if none else ""
    return SetupError(f"{option} must be {wanted}, not {shown(value)}{more}")


def shown(value: object) -> str:
    """A value as its `repr` has it, cut; whatever that does."""
    try:
        told = repr(value)
    except Exception:
        return f"a value of the type {type(value).__name__}, whose repr() fails"
    return told if len(told) <= SHOWN else f"{told[:SHOWN]}…"


# -- one value ---------------------------------------------------------------------------------------------------


def whole(option: str, value: object, least: int = 1, *, none: str = "") -> None:
    """A whole number from `least`; True and False are none."""
    if value is None and none:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise wrong(option, f"a whole number from {least}", value, none)


def number(
    option: str,
    value: object,
    what: str = "a number",
    *,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    finite: bool = False,
    none: str = "",
) -> None:
    """A number above 0, or from `least`, and below `below`, or up to `most`; never NaN or True.

    If `finite` it is no infinity either.
    """
    if value is None and none:
        return
    if isinstance(value, int | float) and not isinstance(value, bool):
        enough = value > 0 if least is None else value >= least
        few = (below is None or value < below) and (most is None or value <= most)
        if enough and few and not (finite and value == math.inf):
            return
    wanted = f"{what} {'above 0' if least is None else f'from {least:g}'}"
    wanted += "" if below is None else f" to below {below:g}"
    raise wrong(option, wanted if most is None else f"{wanted} up to {most:g}", value, none)


def flag(option: str, value: object) -> None:
    """True or False, and nothing that merely counts as one."""
    if not isinstance(value, bool):
        raise wrong(option, "True or False", value)


def text(option: str, value: object, *, empty: bool = True, none: str = "") -> None:
    """A text; with `empty` false, one with something in it."""
    if not (isinstance(value, str) and (value or empty)) and not (value is None and none):
        raise wrong(option, "a text" if empty else "a text that is not empty", value, none)


def choice(option: str, value: object, *choices: str) -> None:
    """One of a few texts."""
    if not isinstance(value, str) or value not in choices:
        *most, last = map(repr, choices)
        raise wrong(option, f"{', '.join(most)} or {last}", value)


def function(option: str, value: object, that: str, *, none: str = "") -> None:
    """Something to call; `that` says with what. A class whose objects are to be called is meant to be made first."""
    if value is None and none:
        return
    if isinstance(value, type) and any("__call__" in vars(each) for each in value.__mro__):
        raise wrong(option, f"a function {that}", value, none, f": pass an object, as in {value.__name__}(…)")
    if not callable(value):
        raise wrong(option, f"a function {that}", value, none)


def instance(option: str, value: object, kind: type, wanted: str, *, none: str = "") -> None:
    """An object of a class of ours."""
    if not isinstance(value, kind) and not (value is None and none):
        raise wrong(option, wanted, value, none)


def having(option: str, value: object, wanted: str, *methods: str, none: str = "") -> None:
    """An object with these methods, each a name or the way to it, as in "messages.create"."""
    if value is None and none:
        return
    if isinstance(value, type):
        raise wrong(option, wanted, value, none, f": pass an object, as in {value.__name__}(…)")
    if missing := [each for each in methods if not callable(_at(value, each))]:
        raise wrong(option, wanted, value, none, f": it has no {', '.join(missing)}")


def _at(value: object, way: str) -> object:
    return reduce(lambda held, name: getattr(held, name, None), way.split("."), value)


# -- several -----------------------------------------------------------------------------------------------------


def names(option: str, value: object, what: str = "names", *, more: str = "") -> tuple[str, ...]:
    """A collection of texts, in its order: one text is none, though Python would take it for its letters."""
    if isinstance(value, str):
        raise wrong(option, f"a collection of {what}, as in [{shown(value)}]{more}", value)
    if not isinstance(value, Iterable):
        raise wrong(option, f"a collection of {what}{more}", value)
    given = tuple(value)
    if odd := [each for each in given if not isinstance(each, str)]:
        raise wrong(f"each of the {what} in {option}", "a text", odd[0])
    return given


def table(option: str, value: object, to: str, *, none: str = "") -> dict[str, Any]:
    """A mapping from names; `to` says to what. None is an empty one where it may be passed."""
    if value is None and none:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong(option, f"a mapping from names to {to}", value, none)
    return dict(value)
