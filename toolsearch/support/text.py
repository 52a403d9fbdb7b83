"""Values as text that can be sent: valid UTF-8, plain JSON, within bounds, what a model reads of a result."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections import deque
from collections.abc import Callable, ItemsView, KeysView, Mapping, ValuesView
from enum import Enum
from typing import Any

from toolsearch.support.json_types import KeptDict, KeptList
from toolsearch.support.large_values import in_pieces, is_large

__all__ = [
    "LEVELS",
    "NOTHING",
    "bounded",
    "clean",
    "clean_json",
    "counted",
    "is_deeper",
    "is_kept",
    "kept",
    "legal_name",
    "plain_json",
    "reason_of",
    "text_of",
]

_SURROGATES = re.compile("[\ud800-\udfff]")
LONG_BITS = 2_000  # fewer than the least limit that Python can be given for writing a whole number
LEVELS = 64  # of lists and objects in what a model or a tool hands in; what is deeper is refused, or not stored
DEEPEST = 500  # levels of lists and objects in one value; a value that contains itself has no last one
NOTHING = "Done; the tool returned nothing."


def clean(text: str) -> str:
    """The text as valid UTF-8: lone surrogates, which no request body can carry, become U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def bounded(text: str, most: int) -> str:
    """The text within `most` characters; its end says that it was cut."""
    if len(text) <= most:
        return text
    mark = f"… [cut: {most:,} of {len(text):,} characters]"
    return text[: max(0, most - len(mark))] + mark


def reason_of(error: BaseException, most: int = 2_000) -> str:
    """What went wrong, as a text without a period at its end, even if the exception cannot be turned into text."""
    try:
        reason = f"{type(error).__name__}: {error}"
    except Exception:
        reason = type(error).__name__
    return clean(reason)[:most].rstrip(".")


def clean_json(value: object) -> Any:
    """A copy of a JSON value with every text in it cleaned; numbers that JSON cannot hold become text."""
    if type(value) is str:
        return clean(value)
    return _copied(value, _clean_scalar)


def _clean_scalar(value: object) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > LONG_BITS:
        return _long(value)
    return value


def _copied(value: object, scalar: Callable[[object], Any]) -> Any:
    """A copy of nested lists and objects, in which `scalar` has copied everything else.

    There is no recursion here: what can be copied does not depend on how deep the caller's stack is. Raises
    `ValueError` for a value that is nested more than `DEEPEST` levels.
    """
    waiting: list[tuple[Any, Any, int]] = []  # a list or an object, its copy that is still empty, and its level

    def copy(item: Any, level: int) -> Any:
        kind = type(item)
        if kind is str:
            return item if item.isascii() else clean(item)
        if item is None or kind is bool or (kind is int and item.bit_length() <= LONG_BITS):
            return item
        if kind is dict or kind is list or isinstance(item, Mapping | list | tuple):
            if level > DEEPEST:
                raise ValueError(f"it is nested more than {DEEPEST} levels deep, or contains itself")
            new: Any = {} if kind is dict or isinstance(item, Mapping) else []
            waiting.append((item, new, level + 1))
            return new
        other = scalar(item)
        # What it was made into, such as the fields of a model, is copied as well.
        return copy(other, level + 1) if isinstance(other, Mapping | list | tuple) else other

    root = copy(value, 1)
    while waiting:
        original, new, level = waiting.pop()
        if type(new) is dict:
            for key, item in original.items():
                new[key if type(key) is str and key.isascii() else clean(str(key))] = copy(item, level)
        else:
            new.extend([copy(item, level) for item in original])
    return root


def _long(number: int) -> int | str:
    """A whole number, or a text in the place of one that Python refuses to write."""
    try:
        str(number)
    except ValueError:
        return f"<a whole number of {number.bit_length():,} bits>"
    return number


def plain_json(value: object) -> Any:
    """A copy as plain JSON, as `clean_json`; what JSON cannot hold (models, enums, sets, bytes) is as in `text_of`.

    A copy that was made to be kept is not copied again.
    """
    if type(value) is str:
        return clean(value)
    if type(value) in (KeptDict, KeptList):
        return value
    if value is None or isinstance(value, str | int | float):
        return _clean_scalar(value)
    return _copied(value, _plain_scalar)


def kept(value: Any) -> Any:
    """A copy of a large value as plain JSON, which is shared from then on, and not copied again; others as they are."""
    if is_kept(value) or not is_large(value):
        return value
    plain = plain_json(value)
    if isinstance(plain, dict):
        return KeptDict(plain)
    return KeptList(plain) if isinstance(plain, list) else plain


def is_kept(value: object) -> bool:
    """Whether a value is a copy that `kept` made."""
    return type(value) in (KeptDict, KeptList)


def _plain_scalar(value: object) -> Any:
    if value is None or isinstance(value, str | int | float):
        return _clean_scalar(value)
    plain = _plain(value)
    return plain if isinstance(plain, Mapping | list | tuple) else _plain_scalar(plain)


def is_deeper(value: object, most: int) -> bool:
    """Whether a JSON value has more than `most` levels of lists and objects. Looks no deeper than that."""
    level: list[object] = [value]
    for _ in range(most):
        level = [
            inner
            for item in level
            if isinstance(item, Mapping | list | tuple)
            for inner in (item.values() if isinstance(item, Mapping) else item)
        ]
        if not level:
            return False
    return any(isinstance(item, Mapping | list | tuple) for item in level)


def counted(number: int, noun: str) -> str:
    """As in "1 tool" and "2 tools"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def legal_name(name: object) -> str:
    """A name that a model made up, as a provider accepts it in a history: it refuses requests with other names."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", str(name or ""))[:64] or "unnamed"


def text_of(value: object) -> str:
    """What a tool returned, as the text a model reads: text as it is, values as JSON, bytes as a placeholder."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return NOTHING  # some providers refuse a blank result, and with it every later request
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _placeholder(value)
    try:
        return clean(in_pieces(value, _written))
    except (TypeError, ValueError, RecursionError):
        # Odd keys, or a circle. The tool ran, so there is a text.
        return clean(str(value))


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


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
        return _placeholder(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return str(value)


def _placeholder(data: bytes | bytearray | memoryview) -> str:
    return f"<binary data, {len(bytes(data)):,} bytes>"
