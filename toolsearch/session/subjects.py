"""What a set of tools is about, in a few words of their own: their categories and the nouns of their names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from toolsearch.catalog.tools import Tool

__all__ = ["subjects_of"]

MOST_CATEGORIES = 2
LEAST_LETTERS = 3  # of a word that says something
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")
# What tools do, whatever they are about, and words that say nothing.
_NO_SUBJECTS = frozenset(
    """
    add all and api apply batch build bulk by call cancel check clear close compare convert copy count create
    current data delete describe detail details disable do download edit enable end execute export fetch find
    for from generate get give has id ids import info insert into is latest list load lookup make manage mcp
    merge modify move multiple new of on one open parse patch ping post process publish put query read remove
    rename replace rotate request reset restore result results retrieve run save search select send server set show
    single start status stop submit sync test the to tool tools trigger update upload upsert use using validate
    verify view watch with write
    """.split()
)


def subjects_of(tools: Sequence[Tool], besides: Iterable[str] = (), most: int = 4) -> list[str]:
    """The most common categories of the tools, and behind them the most common nouns of their names.

    The words in `besides`, such as those of the server's name, are left out. Ties are broken by the alphabet.
    """
    skip = {word for text in besides for word in _words(text)}
    categories = Counter(t.category for t in tools if t.category and _words(t.category) - skip)
    subjects = [_first(name) for name, _ in _ranked(categories)[:MOST_CATEGORIES]]
    seen = skip | {word for name in subjects for word in _words(name)}
    nouns = Counter(word for tool in tools for word in _words(tool.base_name) - _NO_SUBJECTS)
    for word, _ in _ranked(_singular(nouns)):
        if len(subjects) >= most:
            break
        if len(word) >= LEAST_LETTERS and not {word, f"{word}s", word.removesuffix("s")} & seen:
            subjects.append(word)
    return subjects[:most]


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _first(text: str, characters: int = 40) -> str:
    """A category as one short line."""
    return " ".join(text.split())[:characters]


def _singular(words: Counter[str]) -> Counter[str]:
    """The counts with each plural counted as its singular, where both occur."""
    merged: Counter[str] = Counter()
    for word, count in words.items():
        ones = (word.removesuffix("s"), f"{word.removesuffix('ies')}y" if word.endswith("ies") else word)
        merged[next((one for one in ones if one in words), word)] += count
    return merged


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))
