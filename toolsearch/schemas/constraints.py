"""Single values against single keywords: length, pattern, bounds, counts. Nothing in here follows a schema further."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

from toolsearch.support.json_types import JsonObject

__all__ = ["bound", "count_problems", "matches", "number_problems", "shown_value", "text_problems"]

_BOUNDS: tuple[tuple[str, Callable[[float, float], bool], str], ...] = (
    ("minimum", lambda value, limit: value >= limit, "at least"),
    ("maximum", lambda value, limit: value <= limit, "at most"),
    ("exclusiveMinimum", lambda value, limit: value > limit, "more than"),
    ("exclusiveMaximum", lambda value, limit: value < limit, "less than"),
)


def text_problems(schema: JsonObject, value: str) -> Iterator[str]:
    """What is wrong with a text, each as the end of a sentence about it."""
    yield from count_problems(schema, len(value), "Length", "characters")
    if isinstance(pattern := schema.get("pattern"), str) and not matches(pattern, value):
        yield f"must match the pattern {pattern!r}"


def number_problems(schema: JsonObject, value: float) -> Iterator[str]:
    """What is wrong with a number, each as the end of a sentence about it."""
    if not -math.inf < value < math.inf:
        yield "must be a finite number"
        return
    for keyword, holds, phrase in _BOUNDS:
        limit = bound(schema, keyword)
        if limit is not None and not holds(value, limit):
            yield f"must be {phrase} {limit}, not{shown_value(value)}"
    step = bound(schema, "multipleOf")
    if step is not None and step > 0 and _exact(value) % _exact(step):
        yield f"must be a multiple of {step}"


def count_problems(schema: JsonObject, size: int, keywords: str, unit: str) -> Iterator[str]:
    """What is wrong with a size, by the keywords `minItems` and `maxItems`, say, where `keywords` is "Items"."""
    low, high = bound(schema, f"min{keywords}"), bound(schema, f"max{keywords}")
    if low is not None and size < low:
        yield f"must have at least {low} {unit}, not {size}"
    if high is not None and size > high:
        yield f"must have at most {high} {unit}, not {size}"


def bound(schema: JsonObject, keyword: str) -> float | None:
    """The finite number that a keyword holds, if it holds one."""
    number = schema.get(keyword)
    if isinstance(number, float):
        return number if math.isfinite(number) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _exact(number: float) -> Fraction:
    """The number as it is written: .3 is three tenths, although no float is."""
    return Fraction(number if isinstance(number, int) else repr(number))


@lru_cache(maxsize=4096)
def _pattern(pattern: str) -> SchemaValidator | None:
    """Compiled by pydantic-core's linear-time engine; None for what it cannot run (look-around): left unchecked."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None


def matches(pattern: object, text: str) -> bool:
    """Whether a text holds the pattern; a pattern that cannot be run is left unchecked."""
    compiled = _pattern(pattern) if isinstance(pattern, str) else None
    return compiled is None or compiled.isinstance_python(text)


def shown_value(value: object) -> str:
    """A value as JSON after a space, cut for a message."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f" {text[:60]}…" if len(text) > 60 else f" {text}"
