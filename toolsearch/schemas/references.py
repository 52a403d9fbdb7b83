"""Where a local reference in a schema leads, and which keywords hold schemas."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from toolsearch.support.json_types import JsonObject

__all__ = ["COMBINATORS", "DATA", "LISTS", "MAPS", "ONE", "pointed_at", "resolve"]

LONGEST_CHAIN = 64  # of references to references
COMBINATORS = ("anyOf", "oneOf", "allOf")
DATA = frozenset("const default enum example examples".split())  # keywords that hold values, not schemas
MAPS = frozenset("properties patternProperties dependentSchemas $defs definitions".split())  # of names to schemas
LISTS = frozenset([*COMBINATORS, "prefixItems"])  # of schemas
ONE = frozenset(
    "additionalProperties not if then else contains propertyNames items additionalItems unevaluatedProperties "
    "unevaluatedItems contentSchema".split()
)  # each holds one schema


def resolve(root: JsonObject, schema: object) -> object:
    """The schema behind a chain of local `$ref`s (any JSON pointer); an unknown or circular one allows anything."""
    for _ in range(LONGEST_CHAIN):
        if not (isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)):
            return schema
        schema = pointed_at(root, schema["$ref"])
    return {}


def pointed_at(root: object, ref: str, nothing: object = None) -> object:
    """What one local reference points to; `nothing`, which is {} by default, where it points to nothing."""
    nothing = {} if nothing is None else nothing
    if not ref.startswith("#"):
        return nothing
    first, *steps = unquote(ref[1:]).split("/")
    if first:  # an anchor: a name set elsewhere, which tool schemas do not use
        return nothing
    at = root
    for step in steps:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, Mapping) and key in at:
            at = at[key]
        elif isinstance(at, list) and key.isdecimal() and len(key) < 10 and int(key) < len(at):
            at = at[int(key)]
        else:
            return nothing
    return at
