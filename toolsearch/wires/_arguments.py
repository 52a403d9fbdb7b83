"""The arguments of a call as formats require them in a history: JSON text for OpenAI's, an object for the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolsearch.schemas.json_values import read_json, read_repeated
from toolsearch.schemas.validation import ArgumentsError, parse_arguments
from toolsearch.support.text import LEVELS, clean, is_deeper, plain_json

__all__ = ["arguments_object", "valid_json"]

TOO_DEEP = '{"unparsed": "arguments that are nested too deeply"}'


def valid_json(arguments: object) -> str:
    """Arguments as the JSON object that a provider requires in a history; malformed text is kept inside one."""
    if isinstance(arguments, Mapping):
        return TOO_DEEP if is_deeper(arguments, LEVELS) else json.dumps(plain_json(arguments), ensure_ascii=False)
    text = clean(arguments) if isinstance(arguments, str) else ""
    if not text.strip() or text.strip() == "null":
        return "{}"
    for read in (read_json, read_repeated):
        try:
            value = read(text)
            cleaned = plain_json(value)
        except (ValueError, RecursionError):
            continue
        if not isinstance(value, dict):
            break
        return text if read is read_json and cleaned == value else json.dumps(cleaned, ensure_ascii=False)
    return json.dumps({"unparsed": text}, ensure_ascii=False)


def arguments_object(given: Any) -> dict[str, Any]:
    """Arguments as an object; what is none is kept inside one."""
    try:
        arguments = parse_arguments(given)
    except ArgumentsError as error:
        arguments = {"unparsed": str(error) if is_deeper(given, LEVELS) else str(given)}
    made: dict[str, Any] = plain_json(arguments)
    return made
