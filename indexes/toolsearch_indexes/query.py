"""How a query is read against the words of a catalog, and what counts as evidence; shared by every engine for words."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from toolsearch.protocols import Matched
from toolsearch.search.index import QUERY_CHARACTERS
from toolsearch_indexes.bm25f import IN_NAME, IN_SERVER, cut, fields_of, name_term, rarity, server_term
from toolsearch_indexes.spelling import Vocabulary
from toolsearch_indexes.stem import stem
from toolsearch_indexes.synonyms import Synonym, find_synonyms
from toolsearch_indexes.text import (
    ACTIONS,
    FOREIGN_FUNCTION_WORDS,
    LABELS,
    content_words,
    is_unspaced,
    name_words,
    spellings,
)

__all__ = ["SMALL", "ReadQuery", "read_query"]

QUERY_WORDS = 64
REPAIR = 0.8  # what a guessed word counts, where a written one counts 1
REPAIRS = 8
SMALL = 50  # tools that are searched: among no more of them, few are near by chance, and few have one server
# What a synonym counts beside a word that the catalog knows, and instead of one that it does not know.
BESIDE = {"short_forms": 0.3, "things": 0.4, "verbs": 0.5, "asks": 0.8}
INSTEAD = 0.8
ACTIONS_ONLY = ("verbs", "asks")  # no evidence by themselves: "create" for "open" only moves tools up
NAMED = 0.3  # what a word that names a server counts more for the tools of that server
OWN = 0.7  # the share of a word's holders that must be tools of servers named so: less is an ordinary word
GUESSED = 0.75  # how much of a known word a guessed one is, where known words are counted


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """A query, read with the help of the words that a catalog knows."""

    words: list[str]
    wanted: dict[str, float]  # the words to look for: 1 for a written one, less for a guess or a synonym
    typed: dict[str, str]  # the words to look for as the query spells them
    weights: dict[str, float]  # the words to look for: their share in `wanted` times their rarity
    stands_for: dict[str, str]  # synonyms to look for: the word of the query that each stands for
    support: tuple[str, ...]  # synonyms that are no evidence by themselves: they move up tools that hold another word
    respelled: dict[str, str]  # words as the query spells them: what an encoder should read instead
    unknown: float  # how many meaningful words no tool holds
    is_known: bool  # whether the catalog knows more than a third of the meaningful words
    weight: float  # of all words together, each with the best that stands for it; also that of the name's term
    servers: dict[str, float]  # the terms for the servers that the query names, and their weights
    name: str | None  # the term for a name of exactly these words, if the catalog knows all of them and the name
    is_small: bool  # whether no more than `SMALL` tools are searched

    @property
    def holds_written(self) -> bool:
        """Whether any word to look for is the query's own, if misspelt, and no synonym."""
        return len(self.wanted) > len(self.stands_for)

    @property
    def knows_only_actions(self) -> bool:
        """Whether common actions are all that the catalog knows of a query, and most of it is something else."""
        return self.holds_written and not self.is_known and all(word in ACTIONS for word in self.wanted)

    @property
    def finding(self) -> dict[str, float]:
        """The weights of the words that find a tool, of the servers' terms, and of the name's."""
        weights = {word: weight for word, weight in self.weights.items() if word not in self.support} | self.servers
        return weights | {self.name: self.weight} if self.name else weights

    @property
    def supporting(self) -> dict[str, float]:
        """The weights of the words that only move up what the others find."""
        return {word: self.weights[word] for word in self.support}

    def evidence(self, fields: Mapping[str, int]) -> list[str]:
        """The query's words that a tool with these fields holds, or [] if they are too few for the tool to be a hit.

        One word is enough if the query `is_known`. Otherwise a tool must hold two of the words, or one in its name that
        is more than a common action; in a small catalog also one in the name of its server. A word and its synonyms are
        one word, and those in `support` do not count.
        """
        words = [word for word in self.wanted if word in fields]
        telling = [word for word in words if word not in self.support] if self.support else words
        if self.is_known:
            return words if telling else []
        if len({self.stands_for.get(word, word) for word in telling}) > 1:
            return words
        names = IN_NAME | IN_SERVER if self.is_small else IN_NAME
        return words if any(fields[word] & names and word not in ACTIONS for word in telling) else []

    def matched(self, words: Sequence[str], fields: Mapping[str, int]) -> tuple[Matched, ...]:
        """These words of a tool, spelled as in the query, with the fields they are in."""
        found: dict[str, int] = {}
        for word in words:
            typed = self.typed.get(word, word)
            found[typed] = found.get(typed, 0) | fields[word]
        return tuple([_matched(typed, bits) for typed, bits in found.items()])


@lru_cache(maxsize=4096)
def _matched(word: str, bits: int) -> Matched:
    return Matched(word, fields_of(bits))


def read_query(
    query: str, holders: Callable[[str], int], tools: int, vocabulary: Vocabulary, *, searched: int | None = None
) -> ReadQuery:
    """Reads a query. `holders` says how many of the `tools` hold a word; `vocabulary` repairs spelling.

    `searched` is how many of the tools are searched; None for all.
    """
    query = query[:QUERY_CHARACTERS]
    words = _first(dict.fromkeys(map(cut, content_words(query))))
    counts = {word: holders(word) for word in words}
    wanted = {word: 1.0 for word, count in counts.items() if count and not _is_shared_label(word, count, tools)}
    spelled = spellings(query)
    stems = [cut(stem(word)) for word in spelled]
    typed = dict(zip(reversed(stems), reversed(spelled), strict=True))
    synonyms = _Synonyms.of(stems, counts, holders)
    words = [word for word in words if counts[word] or word not in synonyms.parts]
    replaced: dict[str, tuple[str, ...]] = {}  # unknown words: what is looked for instead
    unknown = [word for word in words if not counts[word]]
    if unknown:
        joined = _joined_words(spelled, holders, set(unknown))
        for at, word in enumerate(unknown):
            guesses = [joined[word]] if word in joined else []
            if not guesses and at < REPAIRS and word not in synonyms.instead:
                guesses = vocabulary.repair(word, holders, typed.get(word, ""))
            for guess in guesses:
                wanted.setdefault(guess, REPAIR)
                typed.setdefault(guess, typed.get(word, word))
            replaced[word] = tuple(guesses) or synonyms.instead.get(word, ())
    name = _name(words, wanted, replaced, holders)
    stands_for = {word: own for word, own in synonyms.stands_for.items() if word not in wanted}
    weights = {word: share * rarity(counts.get(word) or holders(word), tools) for word, share in wanted.items()}
    for word, own in stands_for.items():
        share = wanted[word] = synonyms.shares[word]
        weights[word] = share * min(rarity(holders(word), tools), weights.get(own, math.inf))
        typed.setdefault(word, typed.get(own, own))
    return ReadQuery(
        words,
        wanted,
        typed,
        weights,
        stands_for,
        support=tuple(sorted(word for word in stands_for if word in synonyms.actions)),
        respelled={typed[word]: text for word, text in synonyms.respelled.items() if word in typed},
        unknown=_count_words(word for word in unknown if not replaced[word] and _is_meaningful(word)),
        is_known=_is_known(words, wanted, stands_for, synonyms.actions),
        weight=_weight(weights, stands_for, synonyms.actions),
        servers=_named_servers(weights, holders, tools),
        name=name,
        is_small=(tools if searched is None else searched) <= SMALL,
    )


@dataclass(slots=True)
class _Synonyms:
    """The synonyms of a query's words that the catalog knows."""

    shares: dict[str, float] = field(default_factory=dict)  # the words to look for: what they count
    stands_for: dict[str, str] = field(default_factory=dict)  # the same: the word of the query
    actions: set[str] = field(default_factory=set)  # those of them that only say what is done
    instead: dict[str, tuple[str, ...]] = field(default_factory=dict)  # for words that the catalog does not know
    respelled: dict[str, str] = field(default_factory=dict)  # words of the query: what an encoder should read instead
    parts: set[str] = field(default_factory=set)  # pieces of short forms such as `k8s`

    @classmethod
    def of(cls, stems: Sequence[str], counts: Mapping[str, int], holders: Callable[[str], int]) -> _Synonyms:
        found = cls()
        for form, synonyms in find_synonyms([*stems, *(word for word in counts if not word.isalpha())]):
            if usable := [synonym for synonym in synonyms if all(map(holders, synonym.words))]:
                own = next((word for word in reversed(form) if word in counts), form[-1])
                is_known = all(counts.get(word, 1) for word in form)
                for synonym in usable:
                    found._add(form, own, synonym, is_known)
        return found

    def _add(self, form: Sequence[str], own: str, synonym: Synonym, is_known: bool) -> None:
        is_action = synonym.section in ACTIONS_ONLY
        share = BESIDE[synonym.section] if is_known else INSTEAD
        for word in synonym.words:
            if share > self.shares.get(word, 0.0):
                self.shares[word], self.stands_for[word] = share, own
                (self.actions.add if is_action else self.actions.discard)(word)
        if not is_known:
            self.instead.setdefault(own, synonym.words)
            if not own.isalpha():
                self.parts |= name_words(own)
        if synonym.section == "asks" or (synonym.section == "short_forms" and not is_known and len(form) == 1):
            self.respelled.setdefault(own, synonym.text)


def _name(
    words: Iterable[str],
    wanted: Mapping[str, float],
    replaced: Mapping[str, tuple[str, ...]],
    holders: Callable[[str], int],
) -> str | None:
    """The term for a name of these words, with those that replace unknown ones, if a tool has such a name."""
    meant = {other for word in words for other in replaced.get(word, (word,) if word in wanted else ())}
    if not meant or not all(replaced.values()):
        return None
    name = cut(name_term(frozenset(meant)))
    return name if holders(name) else None


def _named_servers(weights: Mapping[str, float], holders: Callable[[str], int], tools: int) -> dict[str, float]:
    """The terms for the servers that these words name, and what each adds for the tools of such a server.

    A word names a server if few other tools hold it. Where all tools are of one server, its name tells none apart.
    """
    servers = {}
    for word, weight in weights.items():
        term = cut(server_term(word))
        if 0 < (count := holders(term)) < tools and count >= OWN * holders(word):
            servers[term] = NAMED * weight
    return servers


def _weight(weights: Mapping[str, float], stands_for: Mapping[str, str], support: Collection[str]) -> float:
    """The weight of all words, counting of a word and its synonyms the best, and of those that only support none."""
    best: dict[str, float] = {}
    for word, weight in weights.items():
        if word not in support:
            own = stands_for.get(word, word)
            best[own] = max(best.get(own, 0.0), weight)
    return sum(best.values())


def _is_known(
    words: Iterable[str], wanted: Mapping[str, float], stands_for: Mapping[str, str], support: Collection[str]
) -> bool:
    """Whether more than a third of the meaningful words of a query are wanted; a guess or a synonym counts less."""
    replaced = {own for word, own in stands_for.items() if own not in wanted and word not in support}
    meaningful = _count_words(word for word in words if word in wanted or word in replaced or _is_meaningful(word))
    known = sum(1.0 if share == 1 else GUESSED for word, share in wanted.items() if word not in stands_for)
    return (known + GUESSED * len(replaced)) * 3 > meaningful


def _first(words: Iterable[str]) -> list[str]:
    """The first `QUERY_WORDS` words, and all pairs of characters, which say less; `QUERY_CHARACTERS` bounds them."""
    spaced = 0
    first = []
    for word in words:
        spaced += not is_unspaced(word)
        if spaced <= QUERY_WORDS or is_unspaced(word):
            first.append(word)
    return first


def _count_words(words: Iterable[str]) -> float:
    """How many words these are.

    In a script without spaces most pairs of characters lie across two words or in endings, so three pairs count as one
    word.
    """
    return sum([1 if word.isascii() or not is_unspaced(word) else 1 / 3 for word in words])


def _is_meaningful(word: str) -> bool:
    """Whether it says something that a catalog does not know this word."""
    return word not in FOREIGN_FUNCTION_WORDS


def _joined_words(spelled: Sequence[str], holders: Callable[[str], int], unknown: AbstractSet[str]) -> dict[str, str]:
    """Words that the catalog knows joined with their neighbour: `white board` may be `whiteboard` there.

    Only pairs with an unknown word are looked at: a pair is in few queries, so its stem is not known yet.
    """
    joined: dict[str, str] = {}
    for before, after in pairwise(spelled[:QUERY_WORDS]):
        stems = stem(before), stem(after)
        if unknown.isdisjoint(stems):
            continue
        for word in (stem(before + after), before + after):
            if holders(word):
                joined.setdefault(stems[0], word)
                joined.setdefault(stems[1], word)
    return joined


def _is_shared_label(word: str, count: int, tools: int) -> bool:
    """Whether a word is a label such as "mcp" that this catalog puts before most of its names."""
    return word in LABELS and 2 < tools < 2 * count
