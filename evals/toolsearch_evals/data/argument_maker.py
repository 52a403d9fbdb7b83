"""The smallest arguments that fit a tool's schema, for the scripted model to pass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolsearch.schemas.references import resolve

__all__ = ["smallest_arguments"]

_DEEPEST = 12  # levels; a schema may refer to itself
_BY_FORMAT = {
    "date": "2026-03-02",
    "date-time": "2026-03-02T09:30:00Z",
    "time": "09:30:00",
    "email": "ana@example.com",
    "uri": "https://example.com/a",
    "url": "https://example.com/a",
    "uuid": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
}
_GUESSES = ("example", "2026-03-02", "1", "09:30", "A1", "EUR", "+4930123456", "#ff0000", "abc123", "1h", "example.com")
_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")


def smallest_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The required arguments and no others; the same schema always gives the same ones."""
    value = _value(schema, schema, 0)
    return value if isinstance(value, dict) else {}


def _value(root: Mapping[str, Any], schema: Any, depth: int) -> Any:
    schema = _merged(root, schema)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    kinds = schema.get("type")
    kind = next((k for k in ([kinds] if isinstance(kinds, str) else kinds or []) if k in _TYPES), None)
    if kind == "object" or (kind is None and "properties" in schema):
        return _object(root, schema, depth)
    if kind == "array":
        least = schema.get("minItems", 1)
        return [_value(root, schema.get("items", {}), depth + 1) for _ in range(least if depth < _DEEPEST else 0)]
    if kind in ("integer", "number"):
        return _number(schema, whole=kind == "integer")
    if kind in ("boolean", "null"):
        return True if kind == "boolean" else None
    return _text(schema)


def _object(root: Mapping[str, Any], schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    if depth >= _DEEPEST:
        return {}
    names = [name for name in schema.get("required") or [] if isinstance(name, str)]
    names += [name for name in properties if name not in names][: max(0, schema.get("minProperties", 0) - len(names))]
    if not names and schema.get("minProperties"):
        names, properties = [_GUESSES[0]], {_GUESSES[0]: schema.get("additionalProperties")}
    return {name: _value(root, properties.get(name, {}), depth + 1) for name in names}


def _merged(root: Mapping[str, Any], schema: Any) -> dict[str, Any]:
    """The schema with references followed, `allOf` folded in, and the first branch of `anyOf` or `oneOf` taken."""
    found = resolve(root, schema)
    if not isinstance(found, Mapping):
        return {}
    merged = {key: value for key, value in found.items() if key not in ("allOf", "anyOf", "oneOf")}
    branches = [*(found.get("allOf") or []), *(found.get("anyOf") or [])[:1], *(found.get("oneOf") or [])[:1]]
    for branch in branches:
        more = _merged(root, branch)
        both = {
            "properties": {**(merged.get("properties") or {}), **(more.get("properties") or {})},
            "required": list(dict.fromkeys([*(merged.get("required") or []), *(more.get("required") or [])])),
        }
        merged |= more | {key: value for key, value in both.items() if value}
    return merged


def _number(schema: Mapping[str, Any], *, whole: bool) -> int | float:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    value: int | float = 1 if low is None else low
    if low is not None and "exclusiveMinimum" in schema:
        value += 1 if whole else 0.5
    if high is not None and value > high:
        value = high
    step = schema.get("multipleOf")
    if step:
        value = -(-value // step) * step
    return int(value) if whole else value


def _text(schema: Mapping[str, Any]) -> str:
    pattern = schema.get("pattern") or ""
    least, most = schema.get("minLength", 0), schema.get("maxLength", 1_000)
    guesses = [_BY_FORMAT.get(str(schema.get("format")), _GUESSES[0]), *_GUESSES, _spelled(pattern)]
    try:
        fit = re.compile(pattern).search
    except re.error:
        return guesses[0]
    texts = [guess.ljust(least, "a")[:most] for guess in guesses]
    return next(filter(fit, texts), texts[0])


_PART = re.compile(r"(\\.|\[\^?[^\]]*\]|[^\\[])(?:\{(\d+)[^}]*\}|([*+?]))?")


def _spelled(pattern: str) -> str:
    """A text that matches a pattern of literals, classes and counts; for other patterns it may not match."""
    text = re.sub(r"\((?:\?:)?([^()|]*)[^()]*\)(?:[*+?]|\{\d+\})?", r"\1", pattern).strip("^$")
    return "".join(_character(part) * int(count or 1) for part, count, _ in _PART.findall(text))


def _character(part: str) -> str:
    if len(part) == 1:
        return part
    if part[0] == "\\":
        return {"d": "1", "w": "a", "s": " "}.get(part[1], part[1])
    return next((char for char in "1aA-_ ." if re.match(part, char)), "a")
