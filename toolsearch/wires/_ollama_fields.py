"""The fields of arguments that are objects, in words: Ollama's client and its older servers drop their schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import bounded
from toolsearch.wires._reading import mapping

__all__ = ["with_fields_told"]

MOST_CHARACTERS = 600  # of the fields of one argument
MOST_LEVELS = 4
MOST_VALUES = 10  # of an enum


def with_fields_told(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a tool, in which the description of an argument says its fields: "name: string, age?: integer"."""
    arguments = {name: _told(each) for name, each in mapping(schema.get("properties")).items()}
    return {**schema, "properties": arguments}


def _told(argument: object) -> object:
    fields = _fields(argument, 0) if isinstance(argument, Mapping) else ""
    if not isinstance(argument, Mapping) or not fields:
        return argument
    said = f"Fields: {bounded(fields, MOST_CHARACTERS)}"
    before = argument.get("description")
    return {**argument, "description": f"{before} {said}" if before else said}


def _fields(schema: JsonObject, level: int) -> str:
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    fields = mapping(schema.get("properties")) if level < MOST_LEVELS else {}
    return ", ".join(f"{name}{'' if name in needed else '?'}: {_kind(each, level)}" for name, each in fields.items())


def _kind(schema: object, level: int) -> str:
    plain = mapping(schema)
    if inner := _fields(plain, level + 1):
        return f"{{{inner}}}"
    if isinstance(values := plain.get("enum"), list):
        return "|".join(json.dumps(value, ensure_ascii=False) for value in values[:MOST_VALUES])
    if plain.get("type") == "array":
        return f"{_kind(plain.get('items'), level + 1)}[]"
    return str(plain.get("type") or "any")
