"""JSON Schema of a tool's arguments: made regular on the way in, made acceptable to a provider on the way out."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from toolsearch.errors import DefinitionError
from toolsearch.schemas.json_values import JSON_TYPES
from toolsearch.support.json_types import JsonObject

__all__ = ["DATA", "MAPS", "argument_texts", "exported", "normalised", "pointed_at", "resolve", "shortened"]

log = logging.getLogger("toolsearch")

_LONGEST_CHAIN = 64  # of references to references
_COMBINATORS = ("anyOf", "oneOf", "allOf")
DATA = frozenset("const default enum example examples".split())  # keywords that hold values, not schemas
MAPS = frozenset("properties patternProperties dependentSchemas $defs definitions".split())  # of names to schemas
# What people who think of Python, Java or C write for a type of JSON.
_TYPES = {
    "str": "string", "text": "string", "int": "integer", "long": "integer", "float": "number", "double": "number",
    "bool": "boolean", "list": "array", "tuple": "array", "dict": "object", "none": "null",
}  # fmt: skip


def normalised(schema: object, tool: str) -> JsonObject:
    """A new schema of type object with `properties`; what it accepts is unchanged.

    None and {} mean "no arguments known". Gemini's upper-case types and `nullable` become standard, and so do the names
    that Python uses for types. A keyword set to null and an unknown type say nothing, and are dropped at every level.
    Raises `DefinitionError`, naming the tool, for anything but the schema of an object.
    """
    if schema is None or schema is True:
        schema = {}
    if not isinstance(schema, Mapping):
        raise DefinitionError(f"the input schema of {tool!r} must be a JSON object, not {type(schema).__name__}")
    root = _standard_schema(schema)
    kind = root.get("type")
    is_object = kind in (None, "object") or (isinstance(kind, list) and "object" in kind)
    if (kind is None and schema.get("type") is not None) or not is_object:
        raise DefinitionError(f"the input schema of {tool!r} must have type 'object', not {schema['type']!r}")
    _check_properties(schema.get("properties") or {}, tool)
    properties = root.get("properties")
    regular: dict[str, object] = {"type": "object", "properties": properties if isinstance(properties, dict) else {}}
    if names := _required_names(schema.get("required"), tool):
        regular["required"] = names
    return regular | {k: v for k, v in root.items() if k not in ("type", "properties", "required")}


def _check_properties(properties: object, tool: str) -> None:
    if not isinstance(properties, Mapping):
        raise DefinitionError(f"'properties' in the input schema of {tool!r} must be an object, not {properties!r}")
    for name, argument in properties.items():
        if not isinstance(argument, Mapping | bool | None):
            raise DefinitionError(f"the schema of {str(name)!r} in {tool!r} must be a JSON object, not {argument!r}")


def _required_names(required: object, tool: str) -> list[str]:
    """The names, each once; a single text is one name."""
    names = [required] if isinstance(required, str) else required or []
    if not isinstance(names, list | tuple):
        raise DefinitionError(f"'required' in the input schema of {tool!r} must be a list of names, not {names!r}")
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def _standard(node: object) -> object:
    if isinstance(node, list | tuple):
        return [_standard(item) for item in node]
    return _standard_schema(node) if isinstance(node, Mapping) else node


def _standard_map(schemas: Mapping[str, object]) -> dict[str, object]:
    """A map from names to schemas; null stands for a schema that says nothing, as `true` does."""
    return {str(k): {} if v is None or v is True else _standard(v) for k, v in schemas.items()}


def _standard_schema(schema: Mapping[str, object]) -> dict[str, object]:
    copy: dict[str, object] = {}
    for key, value in schema.items():
        if key in DATA:
            infinite = key == "default" and isinstance(value, float) and not math.isfinite(value)
            if not infinite and (value is not None or key in ("const", "default")):
                copy[key] = value  # a value, which only looks like a schema
        elif key == "type" and isinstance(value, str | list | tuple):
            kinds = [value] if isinstance(value, str) else [kind for kind in value if isinstance(kind, str)]
            known = [kind for name in kinds if (kind := _TYPES.get(name.lower(), name.lower())) in JSON_TYPES]
            if known:
                copy["type"] = known[0] if isinstance(value, str) else list(dict.fromkeys(known))
        elif key == "required" and isinstance(value, str):
            copy["required"] = [value]
        elif key in MAPS:
            if isinstance(value, Mapping):
                copy[key] = _standard_map(value)
        elif key in ("type", "required"):
            if isinstance(value, list | tuple):
                copy[key] = _standard(value)
        elif value is not None:
            copy[str(key)] = _standard(value)
    if copy.pop("nullable", None) is True:
        _admit_null(copy)
    return copy


def _admit_null(schema: dict[str, object]) -> None:
    """Writes what Gemini and OpenAPI call `nullable` in JSON Schema, in place."""
    kind, enum, branches = schema.get("type"), schema.get("enum"), schema.get("anyOf")
    if isinstance(kind, str | list):
        schema["type"] = [*dict.fromkeys([*([kind] if isinstance(kind, str) else kind), "null"])]
    if isinstance(enum, list | tuple) and None not in enum:
        schema["enum"] = [*enum, None]
    if isinstance(branches, list):
        schema["anyOf"] = [*branches, {"type": "null"}]


@dataclass(frozen=True)
class _Folded:
    """What one branch of a combinator says, its own combinators folded in."""

    properties: Mapping[str, object]
    required: Sequence[str]


def exported(schema: JsonObject) -> tuple[dict[str, Any], str]:
    """The schema without what providers refuse at its root, and a sentence on what that lost ("" if nothing).

    Combinators at the root are folded: the union of the properties, the intersection of what every branch requires.
    """
    root = {k: v for k, v in _inlined(schema).items() if k not in ("$schema", "$id", "$comment", "title")}
    for keyword in ("not", "if", "then", "else", "enum", "const", "dependentSchemas"):
        root.pop(keyword, None)
    choices: list[list[str]] = []
    for keyword in _COMBINATORS:
        branches = root.pop(keyword, None)
        if isinstance(branches, list) and branches:
            folded = [_folded(schema, branch, {}) for branch in branches]
            root["properties"] = _merged([root.get("properties"), *(branch.properties for branch in folded)])
            sets = [frozenset(branch.required) for branch in folded]
            common = frozenset[str]().union(*sets) if keyword == "allOf" else sets[0].intersection(*sets)
            own = _texts(root.get("required"))
            everywhere = [name for branch in folded for name in branch.required if name in common and name not in own]
            root["required"] = list(dict.fromkeys(own + everywhere))
            if keyword != "allOf":
                choices.append([" and ".join(sorted(names - common)) for names in sets if names - common])
    rest = {k: v for k, v in root.items() if k not in ("type", "properties") and (k, v) != ("required", [])}
    root = {"type": "object", "properties": root.get("properties") or {}, **rest}
    notes = [f"Give one of: {'; '.join(dict.fromkeys(choice))}." for choice in choices if choice]
    return {key: _anchored(value, root, schema) for key, value in root.items()}, " ".join(notes)


def _anchored(node: object, root: JsonObject, original: JsonObject, depth: int = 0) -> object:
    """A copy in which a reference to what has left the root is replaced by what it pointed to."""
    if isinstance(node, list):
        return [_anchored(item, root, original, depth) for item in node]
    if not isinstance(node, Mapping):
        return node
    ref = node.get("$ref")
    if isinstance(ref, str) and ref.startswith("#") and not pointed_at(root, ref):
        target = pointed_at(original, ref) if depth < 8 else {}
        node = {**(target if isinstance(target, Mapping) else {}), **{k: v for k, v in node.items() if k != "$ref"}}
        depth += 1
    return {key: _anchored(value, root, original, depth) for key, value in node.items()}


def _inlined(schema: JsonObject) -> dict[str, object]:
    """The root with its own `$ref`, if it is one, replaced by what it points to."""
    target = resolve(schema, schema)
    if target is schema or not isinstance(target, Mapping):
        return dict(schema)
    own = {k: v for k, v in schema.items() if k != "$ref" and v not in ({}, [])}
    return {**target, **own}


def _folded(root: JsonObject, branch: object, seen: dict[int, _Folded], depth: int = 0) -> _Folded:
    """Properties and required names of one branch, its own combinators folded in; each that is `seen`, only once."""
    branch = resolve(root, branch)
    if not isinstance(branch, Mapping) or depth > 8:
        return _Folded({}, ())
    if id(branch) in seen:
        return seen[id(branch)]
    properties: list[object] = [branch.get("properties")]
    required = _texts(branch.get("required"))
    for keyword in _COMBINATORS:
        inner_branches = branch.get(keyword)
        for inner in inner_branches if isinstance(inner_branches, list) else ():
            folded = _folded(root, inner, seen, depth + 1)
            properties.append(folded.properties)
            required += folded.required if keyword == "allOf" else ()
    seen[id(branch)] = _Folded(_merged(properties), list(dict.fromkeys(required)))
    return seen[id(branch)]


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _merged(maps: Iterable[object]) -> dict[str, object]:
    """One property map; a name with different schemas in two branches accepts either."""
    merged: dict[str, object] = {}
    for properties in maps:
        for name, schema in properties.items() if isinstance(properties, Mapping) else ():
            earlier = merged.setdefault(name, schema)
            if earlier != schema:
                either = earlier.get("anyOf") if isinstance(earlier, Mapping) else None
                merged[name] = {"anyOf": [*(either or [earlier]), schema]}
    return merged


def argument_texts(schema: JsonObject) -> tuple[list[str], list[str]]:
    """The names of all arguments, nested ones too, and the texts about them: descriptions, enum values, examples."""
    names: list[str] = []
    texts: list[str] = []

    def walk(node: object, depth: int) -> None:
        if isinstance(node, list):
            for item in node:
                walk(item, depth)
        if not isinstance(node, Mapping) or depth > 12:
            return
        for key, value in node.items():
            if key == "properties" and isinstance(value, Mapping):
                names.extend(str(name) for name in value)
                for item in value.values():
                    walk(item, depth + 1)
            elif key == "description" and isinstance(value, str) and depth:
                texts.append(value)
            elif key in ("enum", "examples") and isinstance(value, list):
                texts.extend(str(v) for v in value[:200] if isinstance(v, str | int))
            elif key in ("$defs", "definitions") and isinstance(value, Mapping):
                for item in value.values():
                    walk(item, depth + 1)
            elif key in ("items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties"):
                walk(value, depth + 1)

    walk(schema, 0)
    return names, texts


def shortened(text: str, characters: int | None, tool: str) -> str:
    """The text within a limit, cut between words. Its end says how much is shown; the log says so once a tool."""
    if characters is None or len(text) <= characters:
        return text
    _warn_once(tool, characters, len(text))
    mark = f"… [shortened: {characters:,} of {len(text):,} characters]"
    cut = text[: max(0, characters - len(mark))]
    return (cut[: cut.rfind(" ")] if " " in cut else cut) + mark


@lru_cache(maxsize=4096)
def _warn_once(tool: str, characters: int, length: int) -> None:
    log.warning(
        "the description of %r is sent shortened to %d of %d characters; see description_characters",
        tool,
        characters,
        length,
    )


def resolve(root: JsonObject, schema: object) -> object:
    """The schema behind a chain of local `$ref`s (any JSON pointer); an unknown or circular one allows anything."""
    for _ in range(_LONGEST_CHAIN):
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
