"""English stemming, after M. F. Porter, "An algorithm for suffix stripping", Program 14 (1980).

A table of irregular plurals stands before it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = ["stem"]

LONGEST = 40  # letters; what is longer is no word

_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = frozenset("al ance ence er ic able ible ant ement ment ent sion tion ou ism ate iti ous ive ize".split())

# Plurals that no rule makes, and those of words in -s, which the rules take for a plural themselves. Not "people",
# "media" and "data", which are words of their own.
_PLURALS = """
    children child  men man  women woman  mice mouse  lice louse  geese goose  feet foot  teeth tooth
    oxen ox  indices index  matrices matrix  vertices vertex  vortices vortex  appendices appendix  codices codex
    analyses analysis  axes axis  crises crisis  diagnoses diagnosis  hypotheses hypothesis  oases oasis
    parentheses parenthesis  syntheses synthesis  theses thesis  criteria criterion  phenomena phenomenon
    schemata schema  alumni alumnus  cacti cactus  foci focus  fungi fungus  loci locus  nuclei nucleus  radii radius
    stimuli stimulus  syllabi syllabus  halves half  knives knife  loaves loaf  scarves scarf  shelves shelf
    thieves thief  wives wife  wolves wolf  quizzes quiz  aliases alias  atlases atlas  biases bias  bonuses bonus
    buses bus  campuses campus  canvases canvas  censuses census  gases gas  lenses lens  statuses status
    viruses virus
""".split()
_SINGULARS: dict[str, str] = dict(zip(_PLURALS[::2], _PLURALS[1::2], strict=True))

# A word is read as consonant (C) and vowel (V) runs: [C](VC){m}[V]; m is its measure.
_VOWEL_RUN = "(?:[aeiou]|(?<=[^aeiou])y)+"
_measure = re.compile(f"{_VOWEL_RUN}(?:(?!{_VOWEL_RUN}).)+")
_vowel = re.compile("[aeiou]|(?<=[^aeiou])y")
_short_end = re.compile("[^aeiou](?:[aeiou]|(?<=[^aeiou])y)[^aeiouwxy]$")


class _Split(NamedTuple):
    stem: str
    ending: str  # what replaces the ending there was


def _suffix(word: str, endings: dict[str, str]) -> _Split | None:
    """The word split before the longest ending that fits."""
    for length in range(min(7, len(word)), 1, -1):
        if (ending := word[-length:]) in endings:
            return _Split(word[:-length], endings[ending])
    return None


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The stem of one lower-case English word; other words, and very short or long ones, come back unchanged."""
    if not 3 <= len(word) <= LONGEST or not (word.isascii() and word.isalpha()):
        return word
    word = _plural_and_past(_SINGULARS.get(word, word))
    if word[-1] == "y" and _vowel.search(word[:-1]):
        word = word[:-1] + "i"
    for endings in (_STEP_2, _STEP_3):
        if (split := _suffix(word, endings)) and _measure.search(split.stem):
            word = split.stem + split.ending
    return _residue(word)


def _plural_and_past(word: str) -> str:
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        return word[:-1] if _measure.search(word[:-3]) else word
    for ending in ("ed", "ing"):
        if word.endswith(ending) and _vowel.search(cut := word[: -len(ending)]):
            if cut.endswith(("at", "bl", "iz")) or (len(_measure.findall(cut)) == 1 and _short_end.search(cut)):
                return cut + "e"
            return cut[:-1] if cut[-1:] == cut[-2:-1] and cut[-1] not in "lsz" else cut
    return word


def _residue(word: str) -> str:
    for length in range(min(5, len(word)), 1, -1):
        if (ending := word[-length:]) in _STEP_4:
            cut = word[:-length] + (ending[0] if ending in ("sion", "tion") else "")
            if len(_measure.findall(cut)) > 1:
                word = cut
            break
    if word.endswith("e"):
        measure = len(_measure.findall(word[:-1]))
        if measure > 1 or (measure == 1 and not _short_end.search(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and len(_measure.findall(word[:-1])) > 1 else word
