"""The parameters of a tool in the forms people write them: JSON Schema, plain maps, lists, JSON as text, classes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter

from toolsearch.catalog.functions import without_titles
from toolsearch.errors import DefinitionError
from toolsearch.schemas.json_values import JSON_TYPES
from toolsearch.support.checks import shown
from toolsearch.support.json_types import JsonObject

__all__ = ["OBJECT_KEYS", "SCHEMA_KEYS", "described", "schema_in"]

OBJECT_KEYS = ("input_schema", "inputSchema", "parameters", "parameters_json_schema", "parametersJsonSchema")
SCHEMA_KEYS = (*OBJECT_KEYS, "params_json_schema", "params", "schema")
_LOOSE_KEYS = (
    "arguments", "args", "args_schema", "argsSchema", "inputs", "input_parameters", "inputParameters",
    "parameter_definitions", "parameterDefinitions", "parameter_schema", "parameterSchema",
)  # fmt: skip

_KEYWORDS = frozenset(
    "type properties $ref $defs definitions required anyOf oneOf allOf additionalProperties $schema".split()
)
_TYPE_NAMES = frozenset(JSON_TYPES) | frozenset("str int float bool list dict text".split())
# What an entry of a list of parameters says of itself, which is no part of a schema.
_OF_ENTRY = frozenset("name desc required optional schema in".split())


def schema_in(body: JsonObject) -> object:
    """The schema in a definition, or None if it has none; it is not checked, only brought into the form of a schema.

    The first key that says something counts. Raises `DefinitionError` for what looks like parameters and cannot be
    read: a tool whose parameters were dropped would be called without them.
    """
    for key in SCHEMA_KEYS:
        if not _says_nothing(value := body.get(key)):
            return described(value)
    for key in _LOOSE_KEYS:
        if _says_nothing(value := body.get(key)):
            continue
        schema = described(value)
        if not isinstance(schema, Mapping):
            raise DefinitionError(
                f"{key!r} of {body.get('name')!r} looks like its parameters and cannot be read: {shown(value)}; pass a "
                "JSON Schema as 'input_schema'"
            )
        return schema
    if isinstance(body.get("properties"), Mapping | list) and body.get("type", "object") in ("object", "function"):
        own = {key: body[key] for key in (*_KEYWORDS - {"type"}, "properties") if key in body}
        return described({"type": "object", **own})
    return {} if any(key in body for key in SCHEMA_KEYS) else None


def _says_nothing(value: object) -> bool:
    return value is None or (isinstance(value, Mapping | list | tuple) and not value)


def described(schema: object) -> object:
    """What was given as parameters, as a JSON Schema if it can be read as one, else unchanged.

    A plain map of argument names to texts or schemas, and a list of entries with names, become a schema; so do a text
    of JSON, a class with annotations, and an SDK's object. An empty list is an empty map, as PHP writes it.
    """
    if isinstance(schema, str):
        return _from_text(schema)
    if isinstance(schema, list | tuple):
        return _from_entries(schema) if all(map(_is_entry, schema)) else schema
    if isinstance(schema, type):
        return without_titles(TypeAdapter(schema).json_schema())
    if not isinstance(schema, Mapping):
        dump = getattr(schema, "model_dump", None)
        return schema if dump is None else dump(by_alias=True, exclude_none=True, mode="json")
    if set(schema) == {"json"} and isinstance(schema["json"], Mapping):  # as Amazon Bedrock has it
        return described(schema["json"])
    properties = schema.get("properties")
    if isinstance(properties, list | tuple) and properties and all(map(_is_entry, properties)):
        read = _from_entries(properties)
        own = schema.get("required")
        required = [*(own if isinstance(own, list | tuple) else []), *read["required"]]
        return {**schema, "properties": read["properties"], "required": required}
    return schema if _is_schema(schema) else _from_map(schema)


def _from_text(text: str) -> object:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, str) else described(value)


def _is_schema(schema: JsonObject) -> bool:
    if not schema or _KEYWORDS & schema.keys():
        only_texts = all(isinstance(v, str) for v in schema.values())
        if not only_texts or "$ref" in schema or str(schema.get("type", "object")).lower() in JSON_TYPES:
            return True
    return not all(isinstance(v, str | Mapping) for v in schema.values())


def _from_map(schema: JsonObject) -> JsonObject:
    """From a map of argument names to texts, names of types or schemas; the schemas may say that they are required."""
    properties: dict[str, object] = {}
    for name, value in schema.items():
        if isinstance(value, str):
            is_type = value.lower() in _TYPE_NAMES
            properties[name] = {"type": value} if is_type else {"type": "string", "description": value}
        else:
            properties[name] = value
    required = [name for name, value in schema.items() if isinstance(value, Mapping) and value.get("required") is True]
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def _is_entry(entry: object) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get("name"), str) and bool(entry["name"])


def _from_entries(entries: Sequence[JsonObject]) -> dict[str, list[str] | dict[str, object] | str]:
    """From a list of parameters, each with its name."""
    properties: dict[str, object] = {}
    required: list[str] = []
    for entry in entries:
        inner = entry.get("schema")
        schema: dict[str, object] = dict(inner) if isinstance(inner, Mapping) else {}
        schema |= {key: value for key, value in entry.items() if key not in _OF_ENTRY and value is not None}
        if "description" not in schema and isinstance(entry.get("desc"), str):
            schema["description"] = entry["desc"]
        if isinstance(nested := schema.get("properties"), list | tuple) and nested and all(map(_is_entry, nested)):
            schema |= _from_entries(nested)
        properties[entry["name"]] = schema
        if _is_true(entry.get("required")) or _is_false(entry.get("optional")):
            required.append(entry["name"])
    return {"type": "object", "properties": properties, "required": required}


def _is_true(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.lower() in ("true", "yes"))


def _is_false(value: object) -> bool:
    return value is False or (isinstance(value, str) and value.lower() in ("false", "no"))
