"""Whether a text is in English, as most tools are described: by its script, its function words and its accents."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from toolsearch_indexes.stem import stem
from toolsearch_indexes.text import FOREIGN_FUNCTION_WORDS, STOP_WORDS

__all__ = ["is_english"]

_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH, _OTHER = STOP_WORDS - FOREIGN_FUNCTION_WORDS, FOREIGN_FUNCTION_WORDS - STOP_WORDS
OTHER_SCRIPT = 1 / 3  # of the letters; an English request may quote a name or a word


@lru_cache(1_024)
def is_english(text: str) -> bool:
    """Whether a text seems to be English; where nothing speaks against it, as in a list of names, it is."""
    words = _WORD.findall(text)
    foreign = sum(len(word) for word in words if not _is_latin(word))
    if foreign > OTHER_SCRIPT * sum(map(len, words)):
        return False
    stems = [stem(word.lower()) for word in words]
    english, other = (sum(word in of for word in stems) for of in (_ENGLISH, _OTHER))
    return english > other or (english == other and all(word.isascii() for word in words))


def _is_latin(word: str) -> bool:
    return word.isascii() or all(unicodedata.name(letter, "").startswith("LATIN") for letter in word)
