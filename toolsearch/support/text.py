"""Values as text that can be sent: valid UTF-8, plain JSON, what a model reads of a result."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections import deque
from collections.abc import ItemsView, KeysView, Mapping, ValuesView
from enum import Enum
from typing import Any

__all__ = ["clean", "clean_json", "legal_name", "plain_json", "text_of"]

_SURROGATES = re.compile("[\ud800-\udfff]")
LONG_BITS = 2_000  # fewer than the least limit that Python can be given for writing a whole number


def clean(text: str) -> str:
    """The text as valid UTF-8: lone surrogates, which no request body can carry, become U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def clean_json(value: object) -> Any:
    """A copy of a JSON value with every text in it cleaned; numbers that JSON cannot hold become text."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): clean_json(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > LONG_BITS:
        return _long(value)
    return [clean_json(item) for item in value] if isinstance(value, list | tuple) else value


def _long(number: int) -> int | str:
    """A whole number, or a text in the place of one that Python refuses to write."""
    try:
        str(number)
    except ValueError:
        return f"<a whole number of {number.bit_length():,} bits>"
    return number


def plain_json(value: object) -> Any:
    """A copy as plain JSON, as `clean_json`; what JSON cannot hold (models, enums, sets, bytes) is as in `text_of`."""
    if value is None or isinstance(value, str | int | float):
        return clean_json(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return plain_json(_plain(value))


def legal_name(name: object) -> str:
    """A name that a model made up, as a provider accepts it in a history: it refuses requests with other names."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", str(name or ""))[:64] or "unnamed"


def text_of(value: object) -> str:
    """What a tool returned, as the text a model reads: text as it is, values as JSON, bytes as a placeholder."""
    if value is None:
        return "Done; the tool returned nothing."
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<binary data, {len(bytes(value)):,} bytes>"
    try:
        return clean(json.dumps(value, ensure_ascii=False, default=_plain))
    except (
        TypeError,
        ValueError,
        RecursionError,
    ):  # odd keys, a circle: the tool ran, so there is a text
        return clean(str(value))


def _plain(value: object) -> object:
    """What `json` cannot write, made plain: models, dataclasses, enums and sets by value, the rest by its text."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, deque | KeysView | ValuesView | ItemsView):
        return list(value)
    if (dump := getattr(value, "model_dump", None)) is not None and not isinstance(value, type):
        return dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<binary data, {len(bytes(value)):,} bytes>"
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return str(value)
