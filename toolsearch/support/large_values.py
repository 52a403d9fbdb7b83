"""Values that are too large for an event loop, so that they are handled in a thread."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolsearch.support.json_types import KeptDict

__all__ = ["in_pieces", "is_large"]

LARGE_VALUES, LARGE_CHARACTERS = 5_000, 100_000
_SMALL = frozenset([int, float, bool, type(None)])
_DEEPEST = 3  # objects around a long list that are written field by field
_PIECE = 5_000  # items that are written at once: while JSON is written, no other thread runs


def is_large(value: object) -> bool:
    """Whether a value has so many parts, or so much text, that handling it takes longer than an event loop may stand.

    Looks at no more than that. This is asked several times a round, so it calls nothing for a usual value.
    """
    values = characters = 0
    waiting: list[Any] = [value]
    for item in waiting:  # which grows meanwhile
        kind = type(item)
        if kind is str or kind is bytes:
            characters += len(item)
        elif kind not in _SMALL:
            inner: Any = item if kind is list or kind is dict else _inner(item)
            values += len(inner)
            if values > LARGE_VALUES:
                return True
            waiting += inner.values() if kind is dict else inner
            if kind is dict:
                for key in inner:
                    characters += len(key) if type(key) is str else 1
        if characters > LARGE_CHARACTERS:
            return True
    return False


def _inner(value: object) -> Sequence[object]:
    """The parts of a value; those of a model or a dataclass are its fields."""
    if isinstance(value, Mapping):
        return range(len(value)) if len(value) > LARGE_VALUES else [*value.values(), *value]
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, str | bytes | bytearray):
        return [str(value)] if isinstance(value, str) else [bytes(value)]
    if dataclasses.is_dataclass(value) or hasattr(value, "model_dump"):
        return list(getattr(value, "__dict__", {}).values())
    return ()


def in_pieces(value: object, dump: Callable[[object], str], depth: int = 0) -> str:
    """A value as JSON, as `dump` writes it; long lists are written piece by piece, so that other threads get a turn."""
    if isinstance(value, list | tuple) and len(value) > _PIECE:
        return f"[{', '.join(dump(value[at : at + _PIECE])[1:-1] for at in range(0, len(value), _PIECE))}]"
    if type(value) in (dict, KeptDict) and _has_long(value, _DEEPEST - depth):
        fields: dict[str, object] = dict(value)  # type: ignore[call-overload]
        if all(isinstance(key, str) for key in fields):
            each = (f"{dump(key)}: {in_pieces(item, dump, depth + 1)}" for key, item in fields.items())
            return f"{{{', '.join(each)}}}"
    return dump(value)


def _has_long(value: object, levels: int) -> bool:
    """Whether something long stands in a value, at most so many objects deep."""
    if isinstance(value, list | tuple):
        return len(value) > _PIECE
    if not levels or not isinstance(value, dict):
        return False
    return len(value) > _PIECE or any(_has_long(item, levels - 1) for item in value.values())
