"""How a query is read against the words of a catalog, and what counts as evidence; shared by every engine for words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from toolsearch.protocols import Matched
from toolsearch.search.index import QUERY_CHARACTERS
from toolsearch_indexes.impacts import IN_NAME, cut, fields_of, name_term, rarity
from toolsearch_indexes.spelling import Vocabulary
from toolsearch_indexes.stem import stem
from toolsearch_indexes.text import ACTIONS, FOREIGN_FUNCTION_WORDS, LABELS, content_words, is_unspaced, spellings

__all__ = ["Asked", "read"]

QUERY_WORDS = 64
REPAIR = 0.8  # what a guessed word counts beside a written one
REPAIRS = 8
GUESSED = 0.75  # of a known word: one whose spelling was guessed


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as the words of a catalog let it be read."""

    words: list[str]
    wanted: dict[str, float]  # the words to look for: 1, or `REPAIR` where the spelling was guessed
    typed: dict[str, str]  # those words as the query spells them
    weights: dict[str, float]  # of the words to look for: share and rarity
    unknown: float  # words that tell what is wanted and that no tool holds, counted as `enough` counts them
    name: str | None  # the term of a name that consists of all these words, if the query holds no others

    @property
    def weight(self) -> float:
        """The rarity of all words to look for together; what the term of a name weighs."""
        return sum(self.weights.values())

    @property
    def all_weights(self) -> dict[str, float]:
        """The weights with that of the name."""
        return self.weights | {self.name: self.weight} if self.name else self.weights

    @property
    def enough(self) -> bool:
        """Whether the catalog knows more than a third of the words that tell what is wanted.

        Of the character pairs of an unspaced script most lie across words or in endings: three count as one.
        """
        telling = _telling(word for word in self.words if word in self.wanted or word not in FOREIGN_FUNCTION_WORDS)
        known = sum(1.0 if share == 1 else GUESSED for share in self.wanted.values())
        return known * 3 > telling

    def evidence(self, fields: Mapping[str, int], enough: bool) -> list[str]:
        """The words that a tool with these fields holds, if they make it an answer; otherwise none.

        Where the catalog knows too few of the words, it has to hold two of them, or one in its name that says more
        than what is done.
        """
        held = [word for word in self.wanted if word in fields]
        if enough or len(held) > 1 or any(fields[word] & IN_NAME and word not in ACTIONS for word in held):
            return held
        return []

    def matched(self, held: Sequence[str], fields: Mapping[str, int]) -> tuple[Matched, ...]:
        """Words that a tool holds as the query spells them, and where they are."""
        return tuple(Matched(self.typed.get(word, word), fields_of(fields[word])) for word in held)


def read(query: str, holders: Callable[[str], int], tools: int, vocabulary: Vocabulary) -> Asked:
    """Reads a query. `holders` says how many of the `tools` hold a word; `vocabulary` repairs spelling."""
    query = query[:QUERY_CHARACTERS]
    asked = list(dict.fromkeys(map(cut, content_words(query))))[:QUERY_WORDS]
    counts = {word: holders(word) for word in asked}
    wanted = {word: 1.0 for word, count in counts.items() if count and not _says_nothing(word, count, tools)}
    spelled = spellings(query)
    typed = {cut(stem(word)): word for word in reversed(spelled)}
    unknown = [word for word in asked if not counts[word]]
    if unknown:
        joined = _joined(spelled, holders)
        for at, word in enumerate(unknown):
            guesses = [joined[word]] if word in joined else []
            if not guesses and at < REPAIRS:
                guesses = vocabulary.repaired(word, holders, typed.get(word, ""))
            for guess in guesses:
                wanted.setdefault(guess, REPAIR)
                typed.setdefault(guess, typed.get(word, word))
                counts[word] = 1
    weights = {word: share * rarity(holders(word), tools) for word, share in wanted.items()}
    name = cut(name_term(frozenset(wanted))) if wanted and all(counts.values()) else None
    left = _telling(word for word in unknown if not counts[word] and word not in FOREIGN_FUNCTION_WORDS)
    return Asked(asked, wanted, typed, weights, left, name if name and holders(name) else None)


def _telling(words: Iterable[str]) -> float:
    """How many words these are; three pairs of an unspaced script are one."""
    return sum(1 / 3 if is_unspaced(word) else 1 for word in words)


def _joined(spelled: Sequence[str], holders: Callable[[str], int]) -> dict[str, str]:
    """Words that the catalog knows as one with their neighbour: `white board` may be `whiteboard` there."""
    joined: dict[str, str] = {}
    for before, after in pairwise(spelled[:QUERY_WORDS]):
        for word in (stem(before + after), before + after):
            if holders(word):
                joined.setdefault(stem(before), word)
                joined.setdefault(stem(after), word)
    return joined


def _says_nothing(word: str, count: int, tools: int) -> bool:
    """Whether a word is one that catalogs put before every name, and this one does."""
    return word in LABELS and 2 < tools < 2 * count
