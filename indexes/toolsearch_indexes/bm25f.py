"""What each word of a tool adds to its score: BM25F, shared by every engine for words.

The score is BM25F (Robertson, Zaragoza, Taylor 2004): weighted counts of a word over the fields, each divided by its
field's length beyond a pivot, are summed, saturated once, and multiplied by the word's rarity.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from dataclasses import replace
from functools import cache

from toolsearch.catalog import Tool, tool
from toolsearch_indexes.document import FIELDS, kept, texts
from toolsearch_indexes.text import LABELS, joined_words, name_words, words

__all__ = [
    "IN_NAME",
    "IN_SERVER",
    "PEAK",
    "cut",
    "fields_of",
    "impacts",
    "name_term",
    "rarity",
    "recipe",
    "server_term",
]

K1 = 1.0  # how soon repetition stops counting
B = 0.5  # how much length beyond the pivot counts
REPEATS = 3  # a word that is repeated more often in one field counts no more, so stuffing gains nothing
STUFFED = 0.25  # the weight of the prose of a tool that is flagged for stuffing
PEAK = K1 + 1  # the largest impact there can be
STEPS = 2**20  # of an impact from 0 to 1: whole ones, which engines store in 32 bits without loss
WORD_CHARACTERS, NAME_CHARACTERS = 64, 255  # what an engine keeps of a longer word, or of the term of a name

_FIELD_NAMES = tuple(FIELDS)
IN_NAME, IN_SERVER = (1 << _FIELD_NAMES.index(name) for name in ("name", "server"))


def impacts(of: Tool) -> tuple[dict[str, int], dict[str, float]]:
    """The words of a tool: which fields hold each, a bit a field, and its impact, above 0 and up to `PEAK`."""
    fields: dict[str, int] = {}
    counts: dict[str, float] = {}
    stuffed = "keyword-stuffing" in of.flags
    for bit, (name, text) in enumerate(texts(of).items()):
        in_text = words(text)
        field = FIELDS[name]
        weight = field.weight * (STUFFED if stuffed and name != "name" else 1)
        norm = 1 - B + B * max(len(in_text), field.pivot) / field.pivot
        each = weight / norm
        for word, count in Counter([*in_text, *joined_words(text)]).items():
            fields[word] = fields.get(word, 0) | 1 << bit
            counts[word] = counts.get(word, 0.0) + each * min(count, REPEATS)
    peak = PEAK * kept(of, "words")
    saturated = {word: math.ceil(count * peak / (count + K1) * STEPS) / STEPS for word, count in counts.items()}
    for name in {of.name, of.base_name, f"{of.server or ''} {of.base_name}"}:
        term = name_term(name_words(name))
        fields[term], saturated[term] = IN_NAME, PEAK
    for word in name_words(of.server or "") - LABELS:
        if len(word) > 1:
            fields[server_term(word)], saturated[server_term(word)] = IN_SERVER, PEAK
    return fields, saturated


def name_term(of: frozenset[str]) -> str:
    """A word for all words of a name together, which no text contains.

    A tool holds it if its name consists of the query's words. It has the largest impact there is and the weight of the
    whole query, so such a tool comes before those that only contain the words, however often.
    """
    return "=" + " ".join(sorted(of))


def server_term(word: str) -> str:
    """What only the tools of servers hold whose names have this word. No text contains it."""
    return f"@{word}"


def rarity(holders: int, tools: int) -> float:
    """Inverse document frequency, never negative; next to nothing for a word in every tool."""
    return math.log(1 + (max(0, tools - holders) + 0.5) / (holders + 0.5))


def cut(word: str) -> str:
    """A word as the engines keep it: only the start of a very long one, in tools and queries alike."""
    return word[: NAME_CHARACTERS if word.startswith("=") else WORD_CHARACTERS]


@cache
def fields_of(bits: int) -> tuple[str, ...]:
    """The names of the fields whose bits are set."""
    return tuple(name for at, name in enumerate(_FIELD_NAMES) if bits >> at & 1)


_PROBE = {
    "name": "getS3Objects_v2",
    "server": "Größe-Server",
    "title": "The running of relational analyses",
    "description": "It isn't what a naïve user's 天气予報 ภาษา says: list, lists, listing; x, 12MB, e-mail, ﬁles, שָׁלוֹם",
    "tags": ["one"],
    "examples": ["please show me my files"],
    "input_schema": {
        "type": "object",
        "properties": {"userName": {"type": "string", "description": "Who is asked for", "enum": ["Ana", "Bob"]}},
    },
}


@cache
def recipe() -> str:
    """A digest that changes whenever words, fields or weights do: an index of another recipe is written anew."""
    probe = replace(tool(_PROBE), enriched=("where did I put my pictures of children?",))
    content = json.dumps([list(FIELDS), *impacts(probe)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
