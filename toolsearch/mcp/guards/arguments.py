"""The arguments of a call: many clients send them as a JSON text where an object is wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from toolsearch import ToolSearchError
from toolsearch.support.text import LEVELS, clean_json, is_deeper

__all__ = ["UnreadableArguments", "read_arguments"]

_ENCODED = 3  # times that an object may be encoded as a text


class UnreadableArguments(ToolSearchError, ValueError):
    """Arguments that are no object. The message is written for the model that sent them."""


def read_arguments(value: object) -> dict[str, Any]:
    """The arguments as an object, from an object or from its JSON text; null and a blank text mean no arguments.

    Raises `UnreadableArguments` for anything else: nothing that cannot be read is taken for no arguments.
    """
    for _ in range(_ENCODED):
        if not isinstance(value, str):
            break
        value = _parsed(value)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UnreadableArguments(
            f"The arguments must be a JSON object, not {_kind_of(value)}. Send them as an object, not as a text."
        )
    if is_deeper(value, LEVELS):
        raise UnreadableArguments(
            f"The arguments are nested more than {LEVELS} levels deep. Send an object with fewer levels."
        )
    arguments: dict[str, Any] = clean_json(value)
    return arguments


def _parsed(text: str) -> object:
    if not text.strip():
        return None
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = "they are nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UnreadableArguments(
            f"The arguments are a text that is not valid JSON: {reason}. Send them as an object."
        ) from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"JSON has no {constant}")


def _kind_of(value: object) -> str:
    if isinstance(value, str):
        return "a text"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list | tuple) else type(value).__name__
