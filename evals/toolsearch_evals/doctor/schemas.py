"""Arguments that no value fits: a type, an enum, bounds and requirements that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeGuard

from toolsearch.schemas.json_schema import Place, written
from toolsearch.schemas.references import LISTS, MAPS, ONE
from toolsearch.support.checks import shown
from toolsearch.support.json_types import JsonObject

__all__ = ["contradictions"]

_BOUNDS = (
    ("minimum", "maximum", True),
    ("exclusiveMinimum", "maximum", False),
    ("minimum", "exclusiveMaximum", False),
    ("exclusiveMinimum", "exclusiveMaximum", False),
    ("minLength", "maxLength", True),
    ("minItems", "maxItems", True),
    ("minProperties", "maxProperties", True),
)
_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (Mapping,),
    "null": (type(None),),
}


def contradictions(schema: JsonObject) -> Iterator[str]:
    """A sentence for each place in a regular schema where nothing that a model can write is accepted.

    An enum of which only some values fit the type is named too: whoever picks one of the others is refused. What only
    asks (`not`, `if`) is not looked into.
    """
    waiting: list[tuple[object, Place]] = [(schema, None)]
    while waiting:
        node, at = waiting.pop()
        if not isinstance(node, Mapping):
            continue
        where = written(at) or "the arguments"
        yield from (f"{where}: {problem}" for problem in _of_one(node))
        for key, value in node.items():
            if key in MAPS and isinstance(value, Mapping):
                inside: Place = at if key == "properties" else (at, key)
                waiting += [(inner, (inside, str(name))) for name, inner in value.items()]
            elif key in LISTS and isinstance(value, list):
                waiting += [(inner, (at, f"{key}[{number}]")) for number, inner in enumerate(value)]
            elif key in ONE and key not in ("not", "if"):
                waiting.append((value, (at, "[]" if key == "items" else key)))


def _of_one(node: JsonObject) -> Iterator[str]:
    kinds = _kinds_of(node)
    values = node.get("enum")
    if kinds and isinstance(values, list | tuple):
        wrong = [value for value in values if value is not None and not _is_of(value, kinds)]
        if wrong:
            which = "no value" if len(wrong) == len(values) else shown(wrong[0])
            yield f"its type is {' or '.join(kinds)}, and {which} of its enum is {'not ' if wrong != values else ''}one"
    if kinds and "const" in node and node["const"] is not None and not _is_of(node["const"], kinds):
        yield f"its type is {' or '.join(kinds)}, and its only value is {shown(node['const'])}"
    for low, high, may_be_equal in _BOUNDS:
        least, most = node.get(low), node.get(high)
        if not (_is_number(least) and _is_number(most)):
            continue
        if least > most or (least == most and not may_be_equal):
            yield f"its {low} is {least}, and its {high} is {most}"
    yield from _required(node)


def _required(node: JsonObject) -> Iterator[str]:
    """Names that must be there, and may not."""
    properties = node.get("properties")
    given: Mapping[str, object] = properties if isinstance(properties, Mapping) else {}
    required = node.get("required")
    for name in required if isinstance(required, list | tuple) else ():
        closed = node.get("additionalProperties") is False and not node.get("patternProperties")
        combined = any(key in node for key in ("allOf", "anyOf", "oneOf", "$ref"))
        if given.get(name) is False or (name not in given and closed and not combined):
            yield f"{name!r} is required, and no argument may have that name"


def _kinds_of(node: JsonObject) -> list[str]:
    kinds = node.get("type")
    named = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list | tuple) else []
    return [kind for kind in named if kind in _KINDS]


def _is_of(value: object, kinds: list[str]) -> bool:
    for kind in kinds:
        if kind == "integer" and isinstance(value, float) and value.is_integer():
            return True
        if isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool)):
            return True
    return False


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
