"""A schema that a program passes is checked at once: every keyword must hold what JSON Schema wants there.

The schema of a tool is made regular instead (see `json_schema`): it comes from elsewhere, and a bad one is set aside.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from toolsearch.schemas.json_values import JSON_TYPES
from toolsearch.schemas.references import MAPS, pointed_at
from toolsearch.support.checks import shown, wrong
from toolsearch.support.json_types import JsonObject

__all__ = ["check_schema"]

_NOWHERE = object()
_ONE = frozenset("additionalProperties not if then else contains propertyNames items".split())
_LISTS = frozenset("anyOf oneOf allOf prefixItems".split())
_NUMBERS = frozenset(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems minProperties "
    "maxProperties minContains maxContains".split()
)
_TEXTS = frozenset("$ref $id $schema $anchor $comment title description format pattern".split())
_WORDS = _ONE | _LISTS | _NUMBERS | _TEXTS | MAPS | frozenset(
    "type properties required enum const default examples uniqueItems dependentRequired deprecated readOnly writeOnly "
    "nullable".split()
)  # fmt: skip


def check_schema(option: str, value: object, root: JsonObject | None = None) -> None:
    """Raises `SetupError` unless a value is a JSON Schema as a dict; its references lead into `root`, if not itself."""
    wanted = "a JSON Schema as a dict"
    if not isinstance(value, Mapping):
        raise wrong(option, wanted, value)
    try:
        json.dumps(value, allow_nan=False)
        problem = next(_problems(value, "", value if root is None else root), None)
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"it is not JSON: {error}"
    if problem is None and value and not _WORDS & value.keys():
        problem = "it has no keyword of JSON Schema, such as type or properties"
    if problem is not None:
        raise wrong(option, wanted, value, more=f": {problem}")


def _problems(node: object, at: str, root: JsonObject) -> Iterator[str]:
    """What is wrong in a schema, each with its place."""
    if isinstance(node, bool):
        return
    if not isinstance(node, Mapping):
        yield f"{at or 'it'} must be a schema, not {shown(node)}"
        return
    for key, value in node.items():
        place = f"{at}.{key}" if at else str(key)
        if key in MAPS:
            if isinstance(value, Mapping):
                for name, inner in value.items():
                    yield from _problems(inner, f"{place}.{name}", root)
            else:
                yield f"{place} must be a mapping from names to schemas, not {shown(value)}"
        elif key in _LISTS or (key == "items" and isinstance(value, list | tuple)):
            if not isinstance(value, list | tuple) or not value:
                yield f"{place} must be a list of schemas, not {shown(value)}"
            else:
                for number, inner in enumerate(value):
                    yield from _problems(inner, f"{place}[{number}]", root)
        elif key in _ONE:
            yield from _problems(value, place, root)
        else:
            yield from _misused(str(key), value, place, root)


def _misused(key: str, value: object, place: str, root: JsonObject) -> Iterator[str]:
    """What is wrong with a keyword whose value is not a schema."""
    if key == "type":
        kinds = value if isinstance(value, list | tuple) else [value]
        if not kinds or any(not isinstance(kind, str) or kind not in JSON_TYPES for kind in kinds):
            yield f"{place} must be one of {', '.join(sorted(JSON_TYPES))}, or several of them, not {shown(value)}"
    elif key == "required":
        if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
            yield f"{place} must be a list of names, not {shown(value)}"
    elif key == "enum":
        if not isinstance(value, list | tuple) or not value:
            yield f"{place} must be a list of values, not {shown(value)}"
    elif key in _NUMBERS:
        if not isinstance(value, int | float) or isinstance(value, bool):
            yield f"{place} must be a number, not {shown(value)}"
    elif key in _TEXTS:
        if not isinstance(value, str):
            yield f"{place} must be a str, not {shown(value)}"
        elif key == "$ref" and value.startswith("#/") and pointed_at(root, value, _NOWHERE) is _NOWHERE:
            yield f"{place} points to nothing: {shown(value)}"
