"""What each provider refuses in the definition of a tool, as far as its documents, its types and bug reports tell.

Every function yields what is wrong, one text for each. `jsonschema` is used where it is installed, and not needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from toolsearch.support.json_types import JsonObject

__all__ = ["anthropic", "gemini", "gemini_json", "ollama", "openai", "openai_strict"]

_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
           "unevaluatedProperties")  # fmt: skip

OPENAI_MOST_CHARACTERS = 1_024  # of a description
STRICT_MOST_PROPERTIES, STRICT_MOST_VALUES, STRICT_MOST_LEVELS = 5_000, 1_000, 10
_STRICT_UNKNOWN = (
    "oneOf", "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties",
    "prefixItems", "propertyNames", "contains", "uniqueItems", "unevaluatedProperties", "default",
)  # fmt: skip
_STRICT_FORMATS = {None, "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

_GEMINI = frozenset(
    "type format title description nullable enum items maxItems minItems properties required minProperties "
    "maxProperties minimum maximum minLength maxLength pattern example anyOf propertyOrdering default".split()
)
_GEMINI_JSON = frozenset(
    "$id $defs $ref $anchor type format title description const default examples enum items prefixItems minItems "
    "maxItems minimum maximum minLength maxLength pattern anyOf oneOf properties additionalProperties required "
    "propertyOrdering nullable".split()
)
_GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")  # its documents say 64 in places
_TYPES = {"null", "boolean", "object", "array", "number", "integer", "string"}


def openai(name: str, description: str | None, schema: Any) -> Iterator[str]:
    """A function of Chat Completions or Responses that is not strict."""
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        yield f"the name {name!r} does not match ^[a-zA-Z0-9_-]{{1,64}}$"
    if len(description or "") > OPENAI_MOST_CHARACTERS:
        yield f"the description has {len(description or '')} characters, {OPENAI_MOST_CHARACTERS} at most"
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield 'the schema must be of type "object"'
        return
    for key in ("oneOf", "anyOf", "allOf", "enum", "not"):
        if key in schema:
            yield f"{key!r} is not permitted at the top level"
    for node, at, _ in _nodes(schema):
        if "array" in _types(node) and "items" not in node:
            yield f"array schema missing items at {at}"
        if isinstance(node.get("items"), list):
            yield f"items is a list at {at}"


def openai_strict(name: str, description: str | None, schema: Any) -> Iterator[str]:
    """A function with `strict: true`."""
    yield from openai(name, description, schema)
    if not isinstance(schema, dict):
        return
    properties = values = deepest = 0
    for node, at, depth in _nodes(schema):
        deepest = max(deepest, depth)
        if "object" in _types(node) or "properties" in node:
            given = node.get("properties") or {}
            properties += len(given)
            if node.get("additionalProperties") is not False:
                yield f"strict: additionalProperties must be false at {at}"
            if missing := sorted({*given} - {*(node.get("required") or [])}):
                yield f"strict: {missing} must be required at {at}"
        yield from (f"strict: {key!r} is not permitted at {at}" for key in _STRICT_UNKNOWN if key in node)
        if isinstance(node.get("enum"), list):
            values += len(node["enum"])
        if node.get("format") not in _STRICT_FORMATS:
            yield f"strict: format {node['format']!r} at {at}"
        if not _types(node) and not {"anyOf", "$ref", "enum", "const", "oneOf", "allOf"} & {*node}:
            yield f"strict: no type at {at}"
    if properties > STRICT_MOST_PROPERTIES:
        yield f"strict: {properties} properties, {STRICT_MOST_PROPERTIES} at most"
    if values > STRICT_MOST_VALUES:
        yield f"strict: {values} enum values, {STRICT_MOST_VALUES} at most"
    if deepest > STRICT_MOST_LEVELS:
        yield f"strict: {deepest} levels, {STRICT_MOST_LEVELS} at most"


def anthropic(name: str, description: str | None, schema: Any) -> Iterator[str]:
    """A custom tool of Messages."""
    del description
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name):
        yield f"the name {name!r} does not match ^[a-zA-Z0-9_-]{{1,128}}$"
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield 'input_schema.type: Input should be "object"'
        return
    for key in ("oneOf", "anyOf", "allOf"):
        if key in schema:
            yield f"input_schema does not support {key} at the top level"
    for key in schema.get("properties") or {}:
        if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key):
            yield f"property keys should match ^[a-zA-Z0-9_.-]{{1,64}}$, not {key!r}"
    yield from _not_of_2020(schema)


def gemini(name: str, description: str | None, schema: Any) -> Iterator[str]:
    """A declaration with `parameters`, the subset of OpenAPI; types in small letters or in capitals."""
    del description
    yield from _gemini_name(name)
    for node, at, _ in _nodes(schema):
        yield from (f"unknown name {key!r} at {at}" for key in node if key not in _GEMINI)
        kinds = {kind.lower() for kind in _types(node)}
        if isinstance(node.get("type"), list):
            yield f"type is a list at {at}"
        if "array" in kinds and "items" not in node:
            yield f"items: missing field at {at}"
        if missing := sorted({*(node.get("required") or [])} - {*(node.get("properties") or {})}):
            yield f"required: {missing} is not defined at {at}"
        if any(not isinstance(value, str) or not value for value in node.get("enum") or []):
            yield f"enum: only texts that are not empty at {at}"
        if "string" in kinds and node.get("format") not in (None, "enum", "date-time"):
            yield f"only 'enum' and 'date-time' are supported for STRING type, not {node['format']!r} at {at}"
        if not kinds and "anyOf" not in node:
            yield f"no type at {at}"


def gemini_json(name: str, description: str | None, schema: Any) -> Iterator[str]:
    """A declaration with `parametersJsonSchema`, the subset of JSON Schema that is documented."""
    del description
    yield from _gemini_name(name)
    for node, at, _ in _nodes(schema):
        yield from (f"unsupported keyword {key!r} at {at}" for key in node if key not in _GEMINI_JSON)
        if "$ref" in node and any(not key.startswith("$") for key in node):
            yield f"$ref has siblings at {at}"
        if isinstance(node.get("items"), list):
            yield f"items is a list at {at}"


def ollama(name: str, description: str | None, schema: Any) -> Iterator[str]:
    """A function of Ollama, read into its Go structs."""
    del name, description
    if not isinstance(schema, dict) or not isinstance(schema.get("type"), str):
        yield "json: cannot unmarshal parameters.type into string"
        return
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        yield "json: cannot unmarshal parameters.properties into map[string]ToolProperty"
        return
    for key, node in properties.items():
        if not isinstance(node, dict):
            yield f"json: cannot unmarshal properties.{key} into ToolProperty"
            continue
        wanted: dict[str, tuple[type, ...]] = {"type": (str, list), "description": (str,), "enum": (list,)}
        for field, kinds in wanted.items():
            if node.get(field) is not None and not isinstance(node[field], kinds):
                yield f"json: cannot unmarshal properties.{key}.{field}"


def _gemini_name(name: str) -> Iterator[str]:
    if not _GEMINI_NAME.fullmatch(name):
        yield f"invalid function name {name!r}: it must begin with a letter or underscore, 64 characters at most"


def _nodes(schema: Any, at: str = "#", depth: int = 0) -> Iterator[tuple[dict[str, Any], str, int]]:
    """Every schema within a schema, with its place and its level."""
    if not isinstance(schema, dict):
        return
    yield schema, at, depth
    for key in _MAPS:
        inner = schema.get(key)
        for name, value in inner.items() if isinstance(inner, dict) else ():
            yield from _nodes(value, f"{at}/{key}/{name}", depth + (key == "properties"))
    for key in (*_LISTS, *_SINGLE):
        inner = schema.get(key)
        for place, value in enumerate(inner) if isinstance(inner, list) else ():
            yield from _nodes(value, f"{at}/{key}/{place}", depth)
        yield from _nodes(inner, f"{at}/{key}", depth + (key == "items"))


def _types(node: JsonObject) -> list[str]:
    kind = node.get("type")
    return [kind] if isinstance(kind, str) else [each for each in kind or [] if isinstance(each, str)]


def _not_of_2020(schema: dict[str, Any]) -> Iterator[str]:
    """What draft 2020-12 does not allow: the forms of older drafts, and with jsonschema all else."""
    says = "JSON schema is invalid. It must match JSON Schema draft 2020-12"
    for node, at, _ in _nodes(schema):
        if isinstance(node.get("items"), list):
            yield f"{says}: items is a list at {at}"
        for key in ("exclusiveMinimum", "exclusiveMaximum"):
            if isinstance(node.get(key), bool):
                yield f"{says}: {key} is no number at {at}"
        if "required" in node and not isinstance(node["required"], list):
            yield f"{says}: required is no list at {at}"
        if unknown := [kind for kind in _types(node) if kind not in _TYPES]:
            yield f"{says}: there is no type {unknown[0]!r}, at {at}"
    if (find := _metaschema()) is not None:
        yield from (f"{says}: {problem}" for problem in find(schema))


def _metaschema() -> Callable[[dict[str, Any]], Iterator[str]] | None:
    try:
        jsonschema: Any = import_module("jsonschema")
    except ImportError:
        return None
    draft = jsonschema.Draft202012Validator
    validator = draft(draft.META_SCHEMA)

    def find(schema: dict[str, Any]) -> Iterator[str]:
        for error in validator.iter_errors(schema):
            yield f"{error.message[:100]} at /{'/'.join(map(str, error.absolute_path))}"

    return find
