"""Words and meaning together: the scores of `keyword` and `vector`, each on a scale of its own, added.

Words find names and rare terms, meaning finds what is said in other words; together they beat either by several
points. A score is 0 … 1: .4 from words and .6 from meaning, where 1 means the best of this search and a good one in
itself.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from toolsearch.catalog import Tool
from toolsearch.errors import QueryError, SetupError
from toolsearch.protocols import Scored
from toolsearch.search.index import QUERY_CHARACTERS
from toolsearch_indexes.confidence import DEPTH, Answer, Candidate, answer, fitted, placed, reachable, usual_cosine
from toolsearch_indexes.document import texts
from toolsearch_indexes.encoders import Encoder, EncoderError
from toolsearch_indexes.keyword import Found, KeywordIndex
from toolsearch_indexes.postings import best
from toolsearch_indexes.stem import stem
from toolsearch_indexes.text import sentences, spellings
from toolsearch_indexes.vector import NEAR, TOOLS_AT_ONCE, EncoderChanged, ToolVectors, alone, check_bars, meant

__all__ = ["HybridIndex"]

log = logging.getLogger("toolsearch")

KEYWORD_WEIGHT = 0.4
BY_WORDS, BY_MEANING = 60, 30  # candidates of each half, at least; one that is among neither is not found
SENTENCES = 8
GOOD_WORDS = 0.6  # of the query's rarity: a hit of words below it is no full hit, even if it is the best
GOOD_MEANING = 0.4  # the same as a cosine


class HybridIndex:
    """Keyword and vector search in one.

    `encoder` is a name from the entry points `toolsearch.encoders`, or an object; a missing one is a `SetupError`.
    `keyword_weight` is the share of the words in a score; `near` and `near_alone` are as in `VectorIndex`, for tools
    that no words speak for. A query of several sentences is searched whole and by sentence.

    If the encoder fails later, words alone are searched, and the answer says so in `degraded`. Tools that it refuses
    are found by their words; it is asked for them again with the next `add`.
    """

    name = "hybrid"

    def __init__(
        self,
        encoder: str | Encoder = "static",
        *,
        keyword_weight: float = KEYWORD_WEIGHT,
        near: float = NEAR,
        near_alone: float | None = None,
    ) -> None:
        if not 0 <= keyword_weight <= 1:
            raise SetupError(f"keyword_weight is a share, 0 … 1, not {keyword_weight!r}")
        check_bars(near, near_alone)
        self._words = KeywordIndex()
        self._vectors = ToolVectors(encoder)
        self._weight = keyword_weight
        self._near, self._near_alone = near, near_alone
        self._tools: dict[str, Tool] = {}
        self._waiting: dict[str, Tool] = {}  # tools that could not be encoded; the next `add` tries again
        self._changes = threading.RLock()

    def __len__(self) -> int:
        return len(self._tools)

    def add(self, tools: Sequence[Tool]) -> None:
        with self._changes:
            self._words.add(tools)
            new = {tool.id: tool for tool in tools}
            self._tools |= new
            before = [tool for tool_id, tool in self._waiting.items() if tool_id not in new]
            self._waiting = self._waiting | new
            error = None
            for these in (before, list(new.values())):
                for start in range(0, len(these), TOOLS_AT_ONCE):
                    error = self._encode(these[start : start + TOOLS_AT_ONCE]) or error
            if error is not None:
                told = "%d tools are found by their words only: they cannot be encoded"
                log.warning(told, len(self._waiting), exc_info=error)

    def _encode(self, tools: Sequence[Tool]) -> Exception | None:
        """Encodes tools at once, or one by one if that fails; those that are refused go on waiting.

        The last error is given back, and raised if the encoder is another one now or has encoded nothing yet because
        it is set up wrongly. One that does not answer is not asked for each tool.
        """
        error = self._tried(tools)
        if error is not None and len(tools) > 1:
            for tool in tools:
                each = self._tried([tool])
                error = each or error
                if isinstance(each, EncoderChanged | EncoderError | OSError):
                    break
        if isinstance(error, EncoderChanged) or (isinstance(error, SetupError) and not len(self._vectors)):
            raise error
        return error

    def _tried(self, tools: Sequence[Tool]) -> Exception | None:
        try:
            self._vectors.add(tools)
        except Exception as error:
            return error
        for tool in tools:
            self._waiting.pop(tool.id, None)
        return None

    def remove(self, ids: Sequence[str]) -> None:
        with self._changes:
            self._words.remove(ids)
            self._vectors.remove(ids)
            for tool_id in ids:
                self._tools.pop(tool_id, None)
                self._waiting.pop(tool_id, None)

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        query = query[:QUERY_CHARACTERS]
        if not self._tools or not query.strip():
            return []
        searched = reachable(len(self._tools), among)
        asked = [query, *_parts(query)]
        found = [self._words.look_up(text, max(limit, BY_WORDS), among) for text in asked]
        by_words = {tool_id: each.asked for each in reversed(found) for tool_id in each.scores}
        repaired = [self._repaired(text, each) for text, each in zip(asked, found, strict=True)]
        guessed = [at for at, text in enumerate(asked) if repaired[at] != text]
        try:
            spelled = [*asked, *(repaired[at] for at in guessed)]
            ids, cosines = self._vectors.look(spelled, max(limit, BY_MEANING), among, by_words)
        except QueryError as error:
            by_word = self._words.candidates(found[0], limit, among)
            degraded = f"searched by words only: {type(error.__cause__).__name__}"
            return answer(by_word, limit, fitted(self._words.name), searched, degraded)
        # Of two spellings the mean: a word that no tool knows is often spelt well, and the guess another word.
        if guessed:
            cosines[guessed] = (cosines[guessed] + cosines[len(asked) :]) / 2
        near = [dict(zip(ids, row, strict=True)) for row in cosines[: len(asked)].tolist()]
        least = [self._near if each.asked.wanted else alone(self._near_alone, searched) for each in found]
        close = {
            i for row, bar in zip(near, least, strict=True) for i, cosine in row.items() if cosine > 0 and cosine >= bar
        }
        scores = self._scores(found, near)
        first = best({i: scores[i] for i in close | by_words.keys()}, max(limit, DEPTH))
        sense = (meant(query),)
        says, usual = self._words.signals(found[0]), usual_cosine(near[0].values())
        hits: list[Candidate] = []
        for score, i in (pair for pair in first if pair[0] > 0):
            matched = self._words.matched(by_words[i], i) if len(hits) < limit and i in by_words else ()
            cosine = near[0].get(i, 0.0)
            signals = {"score": score, **says(i), "cosine": cosine, "height": cosine - usual}
            hits.append(Candidate(i, score, matched + sense if i in close else matched, signals))
        waiting = [i for i in list(self._waiting) if among is None or i in among]
        # It was fitted to the scores of the default weight.
        fit = self._vectors.fit(self.name) if self._weight == KEYWORD_WEIGHT else None
        if not waiting:
            return answer(placed(hits, searched), limit, fit, searched)
        many = "1 tool is" if len(waiting) == 1 else f"{len(waiting)} tools are"
        degraded = f"{many} searched by words only: {'it' if len(waiting) == 1 else 'they'} could not be encoded"
        return _unsure(answer(placed(hits, searched), limit, fit, searched, degraded), set(waiting))

    @property
    def encoder(self) -> Encoder:
        """What makes the vectors."""
        return self._vectors.encoder

    def _scores(self, found: Sequence[Found], near: Sequence[dict[str, float]]) -> dict[str, float]:
        """Each candidate's score: that of the whole query, or where it has sentences the mean with the best of them."""
        each_text = []
        for words, cosines in zip(found, near, strict=True):
            share = (1 - self._weight) / max([GOOD_MEANING, *cosines.values()])
            scores = {tool_id: share * cosine if cosine > 0 else 0.0 for tool_id, cosine in cosines.items()}
            if words.scores:
                share = self._weight / max([GOOD_WORDS * words.asked.weight, *words.scores.values()])
                for tool_id, score in words.scores.items():
                    scores[tool_id] = scores.get(tool_id, 0.0) + share * score
            each_text.append(scores)
        whole, *parts = each_text
        if not parts:
            return whole
        return {
            tool_id: (whole.get(tool_id, 0.0) + max(part.get(tool_id, 0.0) for part in parts)) / 2
            for tool_id in whole.keys() | {tool_id for part in parts for tool_id in part}
        }

    def _repaired(self, text: str, found: Found) -> str:
        """The text with guessed words in the place of misspelt ones, spelled as the best hit spells them."""
        guesses: dict[str, list[str]] = {}
        for word, share in found.asked.wanted.items():
            if share < 1:
                guesses.setdefault(found.asked.typed[word], []).append(word)
        for typed, stems in guesses.items():
            spelled = " ".join(self._spelled(word, typed, found) for word in stems)
            text = re.sub(rf"(?<!\w){re.escape(typed)}(?!\w)", spelled, text, flags=re.IGNORECASE)
        return text

    def _spelled(self, word: str, typed: str, found: Found) -> str:
        for tool_id in found.scores:
            tool = self._tools.get(tool_id)
            if tool is not None and any(match.word == typed for match in self._words.matched(found.asked, tool_id)):
                for text in texts(tool).values():
                    for spelling in spellings(text):
                        if stem(spelling) == word:
                            return spelling
                break
        return word


def _unsure(found: Answer, ids: AbstractSet[str]) -> Answer:
    """An answer without confidence in these tools; that no tool fits is not claimed where one of them was found."""
    if not any(hit.id in ids for hit in found):
        return found
    hits = (replace(hit, confidence=None) if hit.id in ids else hit for hit in found)
    return Answer(hits, degraded=found.degraded)


def _parts(query: str) -> list[str]:
    """The sentences of a query that has several, those of one word left out."""
    found = [part for part in sentences(query) if len(part.split()) > 1 or not part.isascii()]
    return found[:SENTENCES] if len(found) > 1 else []
