"""JSON values: read strictly, named by their type, coerced where nothing is lost, and compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from typing import NoReturn

__all__ = [
    "JSON_TYPES",
    "brief",
    "coerced",
    "comparable",
    "read_json",
    "read_repeated",
    "refuse_constant",
    "size",
    "type_of",
    "values_in",
]

JSON_TYPES = frozenset(["string", "number", "integer", "boolean", "array", "object", "null"])
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def read_json(text: str) -> object:
    """JSON as the standard has it: Python's own reader also takes NaN and Infinity."""
    value: object = json.loads(text, parse_constant=refuse_constant)
    return value


def read_repeated(text: str) -> object:
    """JSON as `read_json` has it, also where a server wrote the value several times, or an empty object before it."""
    try:
        return read_json(text)
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            raise
        values = [value for value, _ in values_in(text)]
        written = [value for value in values if value not in ({}, [], "", None)]
        if not written or any(comparable(value) != comparable(written[0]) for value in written):
            raise
        return written[0]


def values_in(text: str) -> list[tuple[object, str]]:
    """The values, each with its own text, in a text that is one value after another; none in any other text."""
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    values: list[tuple[object, str]] = []
    at = _after_space(text, 0)
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        values.append((value, text[at:end]))
        at = _after_space(text, end)
    return values


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def refuse_constant(name: str) -> NoReturn:
    """For the `parse_constant` of Python's reader: refuses NaN and Infinity."""
    raise ValueError(f"{name} is not a JSON value")


def type_of(value: object) -> str:
    """The name of a value's JSON type, or of its Python type where it has none."""
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object" if isinstance(value, Mapping) else type(value).__name__


def coerced(value: object, wanted: frozenset[str], read: Callable[[str], object]) -> object:
    """The value as one of the wanted types, if it can be without loss; otherwise as it is. No types: any will do.

    `read` gives what a text means as JSON.
    """
    kind = type_of(value)
    if not wanted or kind in wanted or (kind == "integer" and "number" in wanted):
        return value
    if isinstance(value, float) and "integer" in wanted and value.is_integer():
        return int(value)
    if kind in ("integer", "number") and "string" in wanted:
        return json.dumps(value)
    return _from_text(value, wanted, read) if isinstance(value, str) else value


def _from_text(text: str, wanted: frozenset[str], read: Callable[[str], object]) -> object:
    """What the text means as JSON, if that is of a wanted type; otherwise the text."""
    value = read(text)
    kind = type_of(value)
    if isinstance(value, float) and "integer" in wanted and value.is_integer():
        return int(value)
    fits = kind in wanted or (kind == "integer" and "number" in wanted)
    return value if fits else text


def brief(value: object, characters: int = 60) -> str:
    """A value as JSON, cut for a message; however large it is, only the beginning is looked at."""
    if isinstance(value, str):
        value = value[: characters + 1]
    text = ""
    try:
        for piece in _ENCODER.iterencode(value):
            text += piece
            if len(text) > characters:
                break
    except (ValueError, RecursionError):  # a whole number that Python refuses to write
        text = f"{text}a number too long to write"
    return text if len(text) <= characters else f"{text[:characters]}…"


def comparable(value: object) -> Hashable:
    """A hashable stand-in that is equal for equal JSON: 1 is 1.0 but not true, in whatever depth."""
    if isinstance(value, Mapping):
        return "object", frozenset((key, comparable(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return "array", tuple(comparable(item) for item in value)
    if isinstance(value, bool):
        return "boolean", value
    return value if value is None or isinstance(value, str | int | float) else repr(value)


def size(value: object) -> int:
    """How many values there are in a value, up to 250,000."""
    count, waiting = 0, [value]
    while waiting:
        inner = waiting.pop()
        count += 1
        waiting += inner.values() if isinstance(inner, Mapping) else inner if isinstance(inner, list) else ()
        if count > 250_000:
            break
    return count
