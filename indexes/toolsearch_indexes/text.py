"""The one lexical analysis chain: documents and queries become words here, and nowhere else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

from toolsearch_indexes.stem import stem

__all__ = ["STOP_WORDS", "content_words", "words"]

# Function words, and what people wrap a request in. They are indexed (a tool may be called `do_it`), but a query
# drops them as long as one other word is left.
STOP_WORDS = frozenset(
    stem(word)
    for word in """
    a about above after again all also am an and any are as at be because been before being below between both but by
    can cannot could did didn do does doesn doing don down during each few for from further had has have having he her
    here hers him his how i if in into is isn it its itself just me more most my myself no nor not now of off on once
    only or other our ours out over own same she should so some such than that the their theirs them then there these
    they this those through to too under until up us very was we were what when where which while who whom why will
    with won would you your yours
    please help want need needs let like tell give show using use used via
    mcp tool tools function functions
    """.split()
)

_ASCII_RUN = re.compile(r"[A-Za-z0-9_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_CONTRACTION = re.compile(r"['\u2019](?:s|t|d|m|ll|re|ve)\b", re.IGNORECASE)
# Scripts written without spaces between words; Hangul is here because its particles are glued to the word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")


def words(text: str, *, query: bool = False) -> list[str]:
    """The words of a text in order, stemmed and lower-cased.

    `getS3Object` gives get, s, 3, object, and the whole `gets3object`; an unspaced script gives character pairs, in a
    document the single characters too, so that a one-character query finds them.
    """
    if "'" in text or "\u2019" in text:
        text = _CONTRACTION.sub("", text)
    if text.isascii():
        return [w for run in _ASCII_RUN.findall(text) for w in _identifier(run)]
    found: list[str] = []
    for run in _run().findall(_fold(text)):
        for piece, unspaced in _scripts(run):
            found += _pairs(piece, query) if unspaced else _identifier(piece)
    return found


def content_words(text: str) -> list[str]:
    """The words of a query: stop words are dropped as long as another word is left."""
    found = words(text, query=True)
    return [w for w in found if w not in STOP_WORDS] or found


@cache
def _run() -> re.Pattern[str]:
    """Letters, digits, underscores, and the marks that are vowels in many scripts, which `\\w` leaves out."""
    marks = "".join(c for c in map(chr, range(0x0300, 0x11000)) if unicodedata.category(c)[0] == "M")
    return re.compile(rf"[\w{marks}]+")


@lru_cache(maxsize=65536)
def _identifier(run: str) -> tuple[str, ...]:
    if run.isascii():
        parts = _PART.findall(run)
    else:
        parts = [p for p in _camel(run.replace("_", " ")).split() if p]
    lowered = [stem(p.lower()) for p in parts]
    if len(parts) > 1:
        lowered.append("".join(parts).lower())
    return tuple(lowered)


def _camel(text: str) -> str:
    """Spaces put where a lower-case letter meets an upper-case one, or a letter a digit, in any alphabet."""
    out: list[str] = []
    for before, char in zip(" " + text, text, strict=False):
        if (
            (before.islower() and char.isupper())
            or (before.isalpha() and char.isdigit())
            or (before.isdigit() and char.isalpha())
        ):
            out.append(" ")
        out.append(char)
    return "".join(out)


def _fold(text: str) -> str:
    """NFKC; Latin, Greek and Cyrillic lose their accents. Elsewhere marks are vowels, so they stay."""
    text = unicodedata.normalize("NFKC", text)
    folded = []
    for char in text:
        base = unicodedata.normalize("NFD", char)
        folded.append(base[0] if len(base) > 1 and base[0] < "\u0530" else char)
    return "".join(c for c in folded if not ("\u0300" <= c <= "\u036f"))


def _scripts(run: str) -> Iterator[tuple[str, bool]]:
    at = 0
    for match in _UNSPACED_RUN.finditer(run):
        if match.start() > at:
            yield run[at : match.start()], False
        yield match.group(), True
        at = match.end()
    if at < len(run):
        yield run[at:], False


def _pairs(run: str, query: bool) -> list[str]:
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return pairs if query and pairs else [*pairs, *run]
