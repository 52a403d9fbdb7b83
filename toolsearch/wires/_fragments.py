"""The arguments of a call that comes in pieces, put together in a time that grows with their length only.

Most servers send each character once. Others send the whole again at the end, or with every piece all that there is so
far, or an empty object first. All of these are read as the one set of arguments that is meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise

from toolsearch.schemas.json_values import values_in

__all__ = ["Fragments"]

_MARKS = re.compile(r'["\\{}\[\]]')
_PLACEHOLDERS = ("{}", "null", "[]", '""')


class Fragments:
    """The pieces of one text, and whether the JSON in them is closed."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._scanned = 0  # pieces
        self._depth = 0
        self._in_text = self._is_escaped = self._was_open = False

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, piece: str) -> None:
        if piece:
            self._pieces.append(piece)

    def is_closed(self) -> bool:
        """Whether an object or a list has begun and has ended. Each piece is looked at once, however often one asks."""
        for piece in self._pieces[self._scanned :]:
            self._scan(piece)
        self._scanned = len(self._pieces)
        return self._was_open and self._depth <= 0 and not self._in_text

    def _scan(self, piece: str) -> None:
        at = 0
        while (found := _MARKS.search(piece, at + 1 if self._is_escaped else at)) is not None:
            mark, at = found[0], found.end()
            self._is_escaped = False
            if mark == '"':
                self._in_text = not self._in_text
            elif self._in_text:
                self._is_escaped = mark == "\\"
            elif mark in "{[":
                self._depth, self._was_open = self._depth + 1, True
            elif mark != "\\":
                self._depth -= 1
        if at < len(piece):  # what was escaped is no mark
            self._is_escaped = False

    def text(self) -> str:
        """What the pieces say together. If they make no sense in any way, they are merely joined."""
        joined = "".join(self._pieces)
        if _is_json(joined):
            return joined
        pieces = [piece for piece in self._pieces if piece.strip()]
        while len(pieces) > 1 and pieces[0].strip() in _PLACEHOLDERS:
            pieces = pieces[1:]
        rest = "".join(pieces)
        if _is_json(rest):
            return rest
        if len(pieces) > 1 and all(later.startswith(earlier) for earlier, later in pairwise(pieces)):
            return pieces[-1]
        if len(pieces) > 2 and pieces[-1].startswith(rest[: -len(pieces[-1])]):
            return pieces[-1]
        values = values_in(rest)
        if values and all(_grows(a[0], b[0]) for a, b in pairwise(values)):
            return values[-1][1]
        return joined


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _grows(earlier: object, later: object) -> bool:
    """Whether a value may be an earlier state of another one."""
    if isinstance(earlier, Mapping) and isinstance(later, Mapping):
        return all(key in later and _grows(item, later[key]) for key, item in earlier.items())
    if isinstance(earlier, list) and isinstance(later, list):
        return len(earlier) <= len(later) and all(_grows(a, b) for a, b in zip(earlier, later, strict=False))
    if isinstance(earlier, str) and isinstance(later, str):
        return later.startswith(earlier)
    return earlier is None or (type(earlier) is type(later) and earlier == later)
