"""What one validation may cost, shared by all its trials, and the two ways in which a trial stops early."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from types import MappingProxyType

from toolsearch.schemas.json_values import read_json, size
from toolsearch.support.text import clean_json

__all__ = ["Budget", "EnoughProblems", "TooMuchWork"]

_WORK = 5_000, 10  # looks at values in one validation, and more for each value: a schema can refer to itself twice
_SECONDS = 2.0, 0.00004  # the deadline, likewise; the work is bounded below it, so only a slow machine reaches it
_BETWEEN = 500  # looks from one look at the clock to the next
_HINTS = 20  # suggestions of a spelling in one validation: comparing with a long enum is slow
_LONGEST_TEXT = 1_000_000  # characters of a text that is read as JSON


class EnoughProblems(Exception):
    """The outcome of a trial is known."""


class TooMuchWork(Exception):
    """No trial may go on: what each of them costs adds up."""


class Budget:
    """What one validation may spend, shared by all its trials, and the texts that it has read as JSON.

    `has_coerced` says whether anything was changed on the way. `shown_names` are the names under which a model was
    shown arguments, by their own.
    """

    def __init__(
        self, value: object, whole: str, part: str, shown_names: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.whole, self.part, self.shown_names = whole, part, shown_names
        values = size(value)
        self.work = _WORK[0] + _WORK[1] * values
        self.until = time.monotonic() + _SECONDS[0] + _SECONDS[1] * values
        self.check_below = self.work - _BETWEEN
        self.hints = _HINTS
        self.has_coerced = False
        self._read: dict[str, object] = {}

    def spend(self, work: int) -> None:
        self.work -= work
        if self.work < self.check_below:
            self.check()

    def check(self) -> None:
        if self.work < 0 or time.monotonic() > self.until:
            raise TooMuchWork
        self.check_below = self.work - _BETWEEN

    def read(self, text: str) -> object:
        """What a text means as JSON, read once in all trials; the text itself if it means nothing."""
        if len(text) > _LONGEST_TEXT:
            return text
        if text not in self._read:
            self._read[text] = value = _meaning(text)
            values = size(value)
            self.work += _WORK[1] * values
            self.until += _SECONDS[1] * values
        return self._read[text]


def _meaning(text: str) -> object:
    word = text.strip().lower() if len(text) < 100 else ""
    try:
        return clean_json(read_json(word if word in ("true", "false") else text))
    except (ValueError, RecursionError, json.JSONDecodeError):
        return text
