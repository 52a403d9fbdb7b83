"""What one validation may cost, shared by all its trials, and the two ways in which a trial stops early."""

from __future__ import annotations

from collections.abc import Hashable

from toolsearch.schemas.json_values import comparable, size

__all__ = ["Budget", "EnoughProblems", "TooMuchWork"]

_WORK = 5_000, 10  # looks at values in one validation, and more for each value: a schema can refer to itself twice
_HINTS = 20  # suggestions of a spelling in one validation: comparing with a long enum is slow


class EnoughProblems(Exception):
    """The outcome of a trial is known."""


class TooMuchWork(Exception):
    """No trial may go on: what each of them costs adds up."""


class Budget:
    """What one validation may spend, shared by all its trials, and the enums it has seen."""

    def __init__(self, value: object, whole: str, part: str) -> None:
        self.whole, self.part = whole, part
        self.work = _WORK[0] + _WORK[1] * size(value)
        self.hints = _HINTS
        self._enums: dict[int, tuple[frozenset[Hashable], dict[str, set[str]]]] = {}
        self.types: dict[int, tuple[object, frozenset[str]]] = {}  # by the id of a schema that is kept

    def enum(self, values: list[object]) -> tuple[frozenset[Hashable], dict[str, set[str]]]:
        """The values, comparable, and the texts among them by their lower case."""
        if id(values) not in self._enums:
            cases: dict[str, set[str]] = {}
            for text in (v for v in values if isinstance(v, str)):
                cases.setdefault(text.lower(), set()).add(text)
            self._enums[id(values)] = frozenset(map(comparable, values)), cases
        return self._enums[id(values)]
