"""Other words for those of a query: short forms, everyday words for what tools do, words for the same thing.

The table is `synonyms.toml`; its sections say what kind of words they are, and `query.py` what each kind counts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from toolsearch_indexes.stem import stem
from toolsearch_indexes.text import STOP_WORDS

__all__ = ["Synonym", "find_synonyms", "read_synonyms"]

TABLE = Path(__file__).with_name("synonyms.toml")
LONGEST = 4  # words of a form
BOTH_WAYS = ("short_forms", "things")


@dataclass(frozen=True, slots=True)
class Synonym:
    """Other words for a form, as stems and as they are spelled, and the section of the table that says so."""

    words: tuple[str, ...]
    text: str
    section: str


def read_synonyms() -> None:
    """Reads the table, once, which takes some milliseconds: an index does it before the first search."""
    _lengths()


def find_synonyms(words: Sequence[str]) -> list[tuple[tuple[str, ...], tuple[Synonym, ...]]]:
    """The forms among these stems in order, of one word or of several neighbours, each with its synonyms."""
    table, lengths = _synonyms(), _lengths()
    found = []
    for at, word in enumerate(words):
        for length in lengths.get(word, ()):
            form = tuple(words[at : at + length])
            if len(form) == length and form in table:
                found.append((form, table[form]))
    return found


@cache
def _synonyms() -> dict[tuple[str, ...], tuple[Synonym, ...]]:
    table: dict[tuple[str, ...], dict[tuple[str, ...], Synonym]] = {}
    for section, entries in tomllib.loads(TABLE.read_text("utf-8")).items():
        for form, others in entries.items():
            ways = [(form, other) for other in others]
            for one, other in ways + [way[::-1] for way in ways if section in BOTH_WAYS]:
                words = tuple(word for word in _stems(other) if word not in STOP_WORDS)
                table.setdefault(_stems(one), {}).setdefault(words, Synonym(words, other, section))
    return {form: tuple(synonyms.values()) for form, synonyms in table.items()}


@cache
def _lengths() -> dict[str, tuple[int, ...]]:
    """The first words of the forms, and how many words the forms with each have."""
    lengths: dict[str, set[int]] = {}
    for form in _synonyms():
        if 0 < len(form) <= LONGEST:
            lengths.setdefault(form[0], set()).add(len(form))
    return {word: tuple(sorted(of_word)) for word, of_word in lengths.items()}


def _stems(form: str) -> tuple[str, ...]:
    return tuple(map(stem, form.split()))
