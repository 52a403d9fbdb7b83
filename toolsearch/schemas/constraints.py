"""Single values against single keywords: lengths, bounds, counts. Nothing in here follows a schema further."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from toolsearch.schemas.json_values import brief
from toolsearch.support.json_types import JsonObject

__all__ = ["BOUNDS", "Bound", "bounds_of", "count_problems", "number_of", "number_problems"]

Bound = tuple[Callable[[float, float], bool], float, str]
_BOUNDS: tuple[tuple[str, Callable[[float, float], bool], str], ...] = (
    ("minimum", lambda value, limit: value >= limit, "at least"),
    ("maximum", lambda value, limit: value <= limit, "at most"),
    ("exclusiveMinimum", lambda value, limit: value > limit, "more than"),
    ("exclusiveMaximum", lambda value, limit: value < limit, "less than"),
)
BOUNDS = frozenset(keyword for keyword, _, _ in _BOUNDS)


def bounds_of(schema: JsonObject) -> list[Bound]:
    """The bounds that a schema sets to a number."""
    limits = [(holds, number_of(schema, keyword), phrase) for keyword, holds, phrase in _BOUNDS if keyword in schema]
    return [(holds, limit, phrase) for holds, limit, phrase in limits if limit is not None]


def number_problems(bounds: list[Bound], step: float | None, value: float) -> Iterator[str]:
    """What is wrong with a number, each as the end of a sentence about it."""
    if not -math.inf < value < math.inf:
        yield "must be a finite number"
        return
    for holds, limit, phrase in bounds:
        if not holds(value, limit):
            yield f"must be {phrase} {brief(limit)}, not {brief(value)}"
    if step is not None and step > 0 and _exact(value) % _exact(step):
        yield f"must be a multiple of {brief(step)}"


def count_problems(bounds: tuple[float | None, float | None], size: int, unit: str) -> Iterator[str]:
    """What is wrong with a size, by the least and the most that is allowed."""
    low, high = bounds
    if low is not None and size < low:
        yield f"must have at least {brief(low)} {unit}, not {size}"
    if high is not None and size > high:
        yield f"must have at most {brief(high)} {unit}, not {size}"


def number_of(schema: JsonObject, keyword: str) -> float | None:
    """The finite number that a keyword holds, if it holds one."""
    number = schema.get(keyword)
    if isinstance(number, float):
        return number if math.isfinite(number) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _exact(number: float) -> Fraction:
    """The number as it is written: .3 is three tenths, although no float is."""
    return Fraction(number if isinstance(number, int) else repr(number))
