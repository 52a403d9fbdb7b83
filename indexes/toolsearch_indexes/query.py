"""How a query is read against the words of a catalog, and what counts as evidence; shared by every engine for words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from toolsearch.protocols import Matched
from toolsearch.search.index import QUERY_CHARACTERS
from toolsearch_indexes.bm25f import IN_NAME, cut, fields_of, name_term, rarity
from toolsearch_indexes.spelling import Vocabulary
from toolsearch_indexes.stem import stem
from toolsearch_indexes.text import ACTIONS, FOREIGN_FUNCTION_WORDS, LABELS, content_words, is_unspaced, spellings

__all__ = ["ReadQuery", "read_query"]

QUERY_WORDS = 64
REPAIR = 0.8  # what a guessed word counts, where a written one counts 1
REPAIRS = 8
GUESSED = 0.75  # how much of a known word a guessed one is, where known words are counted


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """A query, read with the help of the words that a catalog knows."""

    words: list[str]
    wanted: dict[str, float]  # the words to look for: 1, or `REPAIR` where the spelling was guessed
    typed: dict[str, str]  # the words to look for as the query spells them
    weights: dict[str, float]  # the words to look for: their share in `wanted` times their rarity
    unknown: float  # how many meaningful words no tool holds
    is_known: bool  # whether the catalog knows more than a third of the meaningful words
    name: str | None  # the term for a name of exactly these words, if the catalog knows all of them and the name

    @property
    def weight(self) -> float:
        """The rarity of all words to look for together; this is also the weight of the name's term."""
        return sum(self.weights.values())

    @property
    def all_weights(self) -> dict[str, float]:
        """The weights of the words and of the name's term."""
        return self.weights | {self.name: self.weight} if self.name else self.weights

    def evidence(self, fields: Mapping[str, int]) -> list[str]:
        """The query's words that a tool with these fields holds, or [] if they are too few for the tool to be a hit.

        One word is enough if the query `is_known`. Otherwise a tool must hold two of the words, or one in its name that
        is more than a common action.
        """
        words = [word for word in self.wanted if word in fields]
        if self.is_known or len(words) > 1 or any(fields[w] & IN_NAME and w not in ACTIONS for w in words):
            return words
        return []

    def matched(self, words: Sequence[str], fields: Mapping[str, int]) -> tuple[Matched, ...]:
        """These words of a tool, spelled as in the query, with the fields they are in."""
        return tuple(Matched(self.typed.get(word, word), fields_of(fields[word])) for word in words)


def read_query(query: str, holders: Callable[[str], int], tools: int, vocabulary: Vocabulary) -> ReadQuery:
    """Reads a query. `holders` says how many of the `tools` hold a word; `vocabulary` repairs spelling."""
    query = query[:QUERY_CHARACTERS]
    words = list(dict.fromkeys(map(cut, content_words(query))))[:QUERY_WORDS]
    counts = {word: holders(word) for word in words}
    wanted = {word: 1.0 for word, count in counts.items() if count and not _is_shared_label(word, count, tools)}
    spelled = spellings(query)
    typed = {cut(stem(word)): word for word in reversed(spelled)}
    unknown = [word for word in words if not counts[word]]
    if unknown:
        joined = _joined_words(spelled, holders)
        for at, word in enumerate(unknown):
            guesses = [joined[word]] if word in joined else []
            if not guesses and at < REPAIRS:
                guesses = vocabulary.repair(word, holders, typed.get(word, ""))
            for guess in guesses:
                wanted.setdefault(guess, REPAIR)
                typed.setdefault(guess, typed.get(word, word))
                counts[word] = 1
    weights = {word: share * rarity(holders(word), tools) for word, share in wanted.items()}
    name = cut(name_term(frozenset(wanted))) if wanted and all(counts.values()) else None
    still_unknown = _count_words(word for word in unknown if not counts[word] and _is_meaningful(word))
    return ReadQuery(
        words,
        wanted,
        typed,
        weights,
        unknown=still_unknown,
        is_known=_is_known(words, wanted),
        name=name if name and holders(name) else None,
    )


def _is_known(words: Iterable[str], wanted: Mapping[str, float]) -> bool:
    """Whether more than a third of the meaningful words of a query are wanted; a guessed word counts less."""
    meaningful = _count_words(word for word in words if word in wanted or _is_meaningful(word))
    known = sum(1.0 if share == 1 else GUESSED for share in wanted.values())
    return known * 3 > meaningful


def _count_words(words: Iterable[str]) -> float:
    """How many words these are.

    In a script without spaces most pairs of characters lie across two words or in endings, so three pairs count as one
    word.
    """
    return sum(1 / 3 if is_unspaced(word) else 1 for word in words)


def _is_meaningful(word: str) -> bool:
    """Whether it says something that a catalog does not know this word."""
    return word not in FOREIGN_FUNCTION_WORDS


def _joined_words(spelled: Sequence[str], holders: Callable[[str], int]) -> dict[str, str]:
    """Words that the catalog knows joined with their neighbour: `white board` may be `whiteboard` there."""
    joined: dict[str, str] = {}
    for before, after in pairwise(spelled[:QUERY_WORDS]):
        for word in (stem(before + after), before + after):
            if holders(word):
                joined.setdefault(stem(before), word)
                joined.setdefault(stem(after), word)
    return joined


def _is_shared_label(word: str, count: int, tools: int) -> bool:
    """Whether a word is a label such as "mcp" that this catalog puts before most of its names."""
    return word in LABELS and 2 < tools < 2 * count
