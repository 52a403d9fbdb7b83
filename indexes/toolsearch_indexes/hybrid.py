"""Words and meaning together: the scores of `keyword` and `vector`, each on a scale of its own, added.

Words find names and rare terms; meaning finds what is said in other words. Together they beat either by several
points. A score is 0 … 1: 0.4 from words and 0.6 from meaning. On either scale, 1 is the best hit of this search,
provided that it is a good one in itself.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from toolsearch.catalog import Tool
from toolsearch.errors import QueryError
from toolsearch.protocols import Ranking, Scored
from toolsearch.search.index import NEAREST, QUERY_CHARACTERS
from toolsearch.support.checks import number
from toolsearch_indexes.document import texts
from toolsearch_indexes.encoders import Encoder
from toolsearch_indexes.encoders.static import StaticEncoder
from toolsearch_indexes.encoding import EncodedTools
from toolsearch_indexes.faiss_matrix import APPROXIMATE_FROM
from toolsearch_indexes.fitted_confidence import (
    DEPTH,
    Candidate,
    add_rank_signals,
    count_searched,
    shipped_fit,
    usual_cosine,
    with_confidence,
)
from toolsearch_indexes.keyword import KeywordIndex, WordHits
from toolsearch_indexes.postings import best
from toolsearch_indexes.query import ReadQuery
from toolsearch_indexes.readable_scripts import can_read
from toolsearch_indexes.stem import stem
from toolsearch_indexes.text import sentences, spellings
from toolsearch_indexes.tool_vectors import ToolVectors
from toolsearch_indexes.vector import NEAR, NEVER, check_bars, least_cosine_alone, meaning_match

__all__ = ["HybridIndex"]

KEYWORD_WEIGHT = 0.4
BY_WORDS, BY_MEANING = 60, 30  # candidates of each half, at least; a tool that is among neither is not found
SENTENCES = 8
GOOD_WORDS = 0.6  # share of the query's rarity: a hit of words below it is no full hit, even if it is the best
GOOD_MEANING = 0.4  # the same as a cosine
OF_NAMED_SERVER = 0.15  # what a tool gets besides if the text names its server, whatever words and meaning say
MOST_WAITING = 0.1  # of the tools; if more are not encoded yet, meaning would only favour those that are


@dataclass(frozen=True, slots=True)
class _Text:
    """The whole query or one of its sentences, and what its words find."""

    text: str
    hits: WordHits
    respelled: str  # the text with other words in place of misspelt ones and short forms, if there are any


@dataclass(frozen=True, slots=True)
class _TextHits:
    """What the words and the meaning of one text find."""

    words: WordHits
    cosines: dict[str, float]
    least_cosine: float  # from which on a cosine is evidence


class HybridIndex:
    """Keyword and vector search in one.

    `encoder` is a name from the entry points `toolsearch.encoders`, or an object; a missing one is a `SetupError`.
    `keyword_weight` is the share of the words in a score. `near` and `near_alone` are as in `VectorIndex`, for tools
    that hold no word of the query; `approximate_from` is as there too. A query of several sentences is searched as a
    whole and sentence by sentence.

    If the encoder fails later, only words are searched, and the answer says so in `degraded`. Tools that the encoder
    refuses are found by their words; the next `add` tries to encode them again.

    With `in_background`, for an encoder that takes long, `add` returns at once and a thread encodes the tools. Until
    nine in ten tools are encoded, only words are searched, and answers say so; `wait` waits for the end.
    """

    name = "hybrid"

    def __init__(
        self,
        encoder: str | Encoder = "static",
        *,
        keyword_weight: float = KEYWORD_WEIGHT,
        near: float = NEAR,
        near_alone: float | None = None,
        in_background: bool = False,
        approximate_from: int | None = APPROXIMATE_FROM,
    ) -> None:
        number("keyword_weight", keyword_weight, "a share", least=0, most=1)
        check_bars(near, near_alone)
        self._words = KeywordIndex()
        self._meaning = EncodedTools(encoder, in_background=in_background, approximate_from=approximate_from)
        self._weight = keyword_weight
        self._near, self._near_alone = near, near_alone
        self._tools: dict[str, Tool] = {}
        self._changes = threading.RLock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(tools={len(self._tools)}, encoder={self.encoder!r})"

    def __len__(self) -> int:
        return len(self._tools)

    def add(self, tools: Sequence[Tool]) -> None:
        with self._changes:
            self._words.add(tools)
            self._tools |= {tool.id: tool for tool in tools}
            self._meaning.add(tools)

    def remove(self, ids: Sequence[str]) -> None:
        with self._changes:
            self._words.remove(ids)
            self._meaning.remove(ids)
            for tool_id in ids:
                self._tools.pop(tool_id, None)

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until the background has encoded what it can, at most `seconds`; whether every tool has its vector."""
        return self._meaning.wait(seconds)

    def prepare(self, queries: Sequence[str]) -> None:
        """Encodes queries together that are about to be searched for one by one."""
        texts: dict[int, tuple[ToolVectors, list[str]]] = {}
        for query in (each[:QUERY_CHARACTERS] for each in queries):
            vectors = self._meaning_for(query).vectors
            texts.setdefault(id(vectors), (vectors, []))[1].extend((query, *_parts(query)))
        for vectors, some in texts.values():
            if len(vectors):
                vectors.prepare(list(dict.fromkeys(some)))

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        query = query[:QUERY_CHARACTERS]
        if not self._tools or not query.strip():
            return []
        searched = count_searched(len(self._tools), among)
        by_words = [self._search_words(text, limit, among) for text in (query, *_parts(query))]
        meaning, words = self._meaning_for(query), by_words[0].hits
        waiting = {tool_id for tool_id in list(meaning.waiting) if among is None or tool_id in among}
        if meaning.is_encoding and len(waiting) > MOST_WAITING * searched:
            degraded = f"searched by words only so far: {len(waiting)} of {searched} tools are not encoded yet"
            return self._by_words_only(words, limit, among, degraded)
        if not can_read(meaning.vectors.encoder, query, well=bool(words.scores)):
            return self._by_words_only(words, limit, among)
        try:
            by_both = self._search_meaning(meaning.vectors, by_words, limit, among)
        except QueryError as error:
            degraded = f"searched by words only: {type(error.__cause__).__name__}"
            return self._by_words_only(words, limit, among, degraded)
        scores = self._scores(by_both)
        candidates = add_rank_signals(self._blend(query, by_both, scores, limit), searched)
        near = _nearest(scores)
        # It was fitted to the scores of the default weight.
        fit = meaning.vectors.fit(HybridIndex.name) if self._weight == KEYWORD_WEIGHT else None
        if not waiting:
            return with_confidence(candidates, limit, fit, searched, near=near)
        tools, they = ("1 tool is", "it") if len(waiting) == 1 else (f"{len(waiting)} tools are", "they")
        why = "not encoded yet" if meaning.is_encoding else f"{they} could not be encoded"
        degraded = f"{tools} searched by words only: {why}"
        ranking = with_confidence(candidates, limit, fit, searched, near=near, degraded=degraded)
        return _without_confidence(ranking, waiting)

    def _meaning_for(self, query: str) -> EncodedTools:
        """The tools by the vectors to search with this query."""
        return self._meaning

    @property
    def tier(self) -> str:
        """What the index understands, and what a better one would bring."""
        if isinstance(self.encoder, StaticEncoder):
            return (
                "words, and meaning by word vectors; pip install 'toolsearch-kit[best]' and index=\"best\" add models "
                "of sentences and other languages (R@5 .78 -> .79 on public sets)"
            )
        return "words and meaning"

    @property
    def encoder(self) -> Encoder:
        """What makes the vectors."""
        return self._meaning.vectors.encoder

    @property
    def is_approximate(self) -> bool:
        """Whether faiss finds the tools that are near in meaning now."""
        return self._meaning.vectors.is_approximate

    def _by_words_only(
        self, hits: WordHits, limit: int, among: AbstractSet[str] | None, degraded: str | None = None
    ) -> list[Scored]:
        candidates = self._words.candidates(hits, limit, among)
        searched, fit = count_searched(len(self._tools), among), shipped_fit(self._words.name)
        return with_confidence(candidates, limit, fit, searched, near=hits.near, degraded=degraded)

    def _search_words(self, text: str, limit: int, among: AbstractSet[str] | None) -> _Text:
        hits = self._words.look_up(text, max(limit, BY_WORDS), among)
        return _Text(text, hits, self._respell(text, hits))

    def _search_meaning(
        self, vectors: ToolVectors, by_words: Sequence[_Text], limit: int, among: AbstractSet[str] | None
    ) -> list[_TextHits]:
        """Adds the cosines of the tools nearest to each text, and of all that the words of any text find."""
        respelled = [at for at, text in enumerate(by_words) if text.respelled != text.text]
        queries = [*(text.text for text in by_words), *(by_words[at].respelled for at in respelled)]
        also = {tool_id for text in by_words for tool_id in text.hits.scores}
        ids, cosines = vectors.find_nearest(queries, max(limit, BY_MEANING), among, also)
        # Of two spellings the mean: a word that no tool knows is often spelt well, and the guess another word.
        if respelled:
            cosines[respelled] = (cosines[respelled] + cosines[len(by_words) :]) / 2
        alone = self._least_alone(vectors, count_searched(len(self._tools), among))
        return [
            _TextHits(text.hits, dict(zip(ids, row, strict=True)), self._least_cosine(text.hits.query, row, alone))
            for text, row in zip(by_words, cosines[: len(by_words)].tolist(), strict=True)
        ]

    def _least_cosine(self, read: ReadQuery, cosines: Sequence[float], alone: float) -> float:
        """The cosine from which on a tool is a hit.

        One known word lowers the bar only where some tool is near without it, or in a small catalog. A mere action
        raises it: a tool that does the same to something else is near a query for its verb alone.
        """
        if read.knows_only_actions:
            return NEVER
        is_lower = read.holds_written and (read.is_known or read.is_small or max(cosines, default=0.0) >= alone)
        return self._near if is_lower else alone

    def _least_alone(self, vectors: ToolVectors, tools: int) -> float:
        """The cosine that counts as evidence among so many tools where the catalog knows no word of the query."""
        return least_cosine_alone(self._near_alone, tools)

    def _blend(
        self, query: str, by_both: Sequence[_TextHits], scores: Mapping[str, float], limit: int
    ) -> list[Candidate]:
        """The tools that words or meaning speak for, best first."""
        close = {
            tool_id
            for text in by_both
            for tool_id, cosine in text.cosines.items()
            if cosine > 0 and cosine >= text.least_cosine
        }
        # Of the texts whose words find a tool, the first says how it matched.
        reads: dict[str, ReadQuery] = {i: text.words.query for text in reversed(by_both) for i in text.words.scores}
        whole, *_ = by_both
        word_signals, usual = self._words.signals(whole.words), usual_cosine(whole.cosines.values())
        by_meaning = (meaning_match(query),)
        candidates: list[Candidate] = []
        for score, tool_id in best({i: scores[i] for i in close | reads.keys()}, max(limit, DEPTH)):
            if score <= 0:
                break
            is_shown = len(candidates) < limit
            matched = self._words.matched(reads[tool_id], tool_id) if is_shown and tool_id in reads else ()
            cosine = whole.cosines.get(tool_id, 0.0)
            signals = {"score": score, **word_signals(tool_id), "cosine": cosine, "height": cosine - usual}
            matched = matched + by_meaning if tool_id in close else matched
            candidates.append(Candidate(tool_id, score, matched, signals))
        return candidates

    def _scores(self, by_both: Iterable[_TextHits]) -> dict[str, float]:
        """Each candidate's score: that of the whole query, or if it has sentences, the mean with the best of them."""
        whole, *parts = [self._text_scores(text) for text in by_both]
        if not parts:
            return whole
        best_part = dict(parts[0])
        for part in parts[1:]:
            for tool_id, score in part.items():
                if score > best_part.get(tool_id, -1.0):
                    best_part[tool_id] = score
        every = whole | best_part
        return {tool_id: (whole.get(tool_id, 0.0) + best_part.get(tool_id, 0.0)) / 2 for tool_id in every}

    def _text_scores(self, text: _TextHits) -> dict[str, float]:
        """For each candidate the weighted sum of what the meaning, the words and a server's name in a text give it."""
        share = (1 - self._weight) / max([GOOD_MEANING, *text.cosines.values()])
        scores = {tool_id: share * cosine if cosine > 0 else 0.0 for tool_id, cosine in text.cosines.items()}
        if text.words.scores:
            share = self._weight / max([GOOD_WORDS * text.words.query.weight, *text.words.scores.values()])
            for tool_id, score in text.words.scores.items():
                scores[tool_id] = scores.get(tool_id, 0.0) + share * score
        if servers := list(text.words.query.servers):
            for tool_id in text.words.scores:
                if self._words.holds_any(tool_id, servers):
                    scores[tool_id] += OF_NAMED_SERVER
        return scores

    def _respell(self, text: str, hits: WordHits) -> str:
        """The text with guessed words in place of misspelt ones, as the best hit spells them, and with synonyms."""
        guesses: dict[str, list[str]] = {}
        for word, share in hits.query.wanted.items():
            if share < 1 and word not in hits.query.stands_for:
                guesses.setdefault(hits.query.typed[word], []).append(word)
        spellings_of = {
            typed: " ".join(self._spelling(word, typed, hits) for word in stems) for typed, stems in guesses.items()
        }
        for typed, spelled in (spellings_of | hits.query.respelled).items():
            text = re.sub(rf"(?<!\w){re.escape(typed)}(?!\w)", spelled, text, flags=re.IGNORECASE)
        return text

    def _spelling(self, stemmed: str, typed: str, hits: WordHits) -> str:
        """The stem of a guessed word as the best hit that matched the typed word spells it, or else the stem itself."""
        query = hits.query
        meant = [word for word in query.wanted if query.typed.get(word, word) == typed]
        for tool_id in hits.scores:
            tool = self._tools.get(tool_id)
            if tool is not None and self._words.holds_any(tool_id, meant):
                spelled = (spelling for text in texts(tool).values() for spelling in spellings(text))
                return next((spelling for spelling in spelled if stem(spelling) == stemmed), stemmed)
        return stemmed


def _nearest(scores: Mapping[str, float]) -> Iterator[str]:
    """The ids of the tools with the best scores; nothing is ranked until the first is asked for."""
    for _, tool_id in best(scores, NEAREST):
        yield tool_id


def _without_confidence(hits: Ranking, ids: AbstractSet[str]) -> Ranking:
    """The hits without the confidence of these tools.

    If one of them is among the hits, the answer does not claim either that no tool fits.
    """
    if not any(hit.id in ids for hit in hits):
        return hits
    doubted = (replace(hit, confidence=None) if hit.id in ids else hit for hit in hits)
    return Ranking(doubted, near=hits.near, degraded=hits.degraded)


def _parts(query: str) -> list[str]:
    """The sentences of a query that has several, without those of one word."""
    parts = [part for part in sentences(query) if len(part.split()) > 1 or not part.isascii()]
    return parts[:SENTENCES] if len(parts) > 1 else []
