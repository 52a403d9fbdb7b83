"""What is known about a hit, as named numbers (signals), and the confidence a fitted model gives it: P(relevant).

`toolsearch eval calibrate` fits a model for each index and each encoder. The models fitted to the data set that ships
are in `calibration.json`. An index without one reports no confidence.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from toolsearch.protocols import Matched, Ranking, Scored
from toolsearch.search import Fit
from toolsearch.search.confidence import DEPTH
from toolsearch.search.index import NEAREST
from toolsearch_indexes.bm25f import PEAK, rarity
from toolsearch_indexes.query import ReadQuery
from toolsearch_indexes.text import ACTIONS

__all__ = [
    "DEPTH",
    "NEIGHBOURS",
    "SHIPPED",
    "Candidate",
    "WordSignals",
    "add_rank_signals",
    "count_searched",
    "name_of",
    "shared_signals",
    "shipped_fit",
    "usual_cosine",
    "with_confidence",
]

SHIPPED = Path(__file__).with_name("calibration.json")
NEIGHBOURS = 30  # nearest tools that a cosine is compared with
USUAL_NEXT, USUAL_BEHIND = 0.7, 0.55  # shares of the best: the next scores, and cosines behind the fifth; medians
FEWEST = 200  # tools: in a smaller catalog rarity says little, so words are weighed as if it had this many

Signals = dict[str, float]


@dataclass(slots=True)
class Candidate:
    """A hit before it has a confidence; beyond the limit `matched` may be left empty."""

    id: str
    score: float
    matched: tuple[Matched, ...]
    signals: Signals


def with_confidence(
    candidates: Sequence[Candidate],
    limit: int,
    fit: Fit | None,
    tools: int,
    *,
    near: Iterable[str],
    degraded: str | None = None,
) -> Ranking:
    """The first `limit` candidates, with their confidence if there is a fit.

    `near` are the ids of the nearest tools, whether there is evidence for them or not. Pass at least `DEPTH`
    candidates, if there are as many. Where so few `tools` were searched that there are no ten hits, their absence says
    nothing against the hits there are: the missing ones count as if they were as likely as usual.
    """
    limit = max(limit, 0)
    shown = candidates[:limit]
    if fit is None:
        hits = (Scored(c.id, c.score, c.matched, None, c.signals) for c in shown)
        return Ranking(hits, near=islice(near, NEAREST), degraded=degraded)
    relevant = [fit.relevant(each.signals) for each in candidates[: max(limit, DEPTH)]]
    hits = (Scored(c.id, c.score, c.matched, p, c.signals) for c, p in zip(shown, relevant, strict=False))
    absent = USUAL_BEHIND * max(relevant, default=0.0) * max(0.0, 1 - tools / FEWEST)
    answerable = fit.answerable(relevant + [absent] * (DEPTH - len(relevant)) if relevant else [])
    return Ranking(hits, answerable=answerable, near=islice(near, NEAREST), degraded=degraded)


def count_searched(tools: int, among: AbstractSet[str] | None) -> int:
    """How many of the `tools` are searched. Some of the ids in `among` may belong to no tool."""
    return tools if among is None else min(tools, len(among))


def shipped_fit(index: str, encoder: str = "", probe: tuple[float, ...] = ()) -> Fit | None:
    """The fit that ships for an index and for the encoder of that name, or with that probe; see `Fit.load`."""
    return Fit.load(SHIPPED, index, encoder, probe)


# -- signals ---------------------------------------------------------------------------------------------------------


def add_rank_signals(candidates: list[Candidate], tools: int) -> list[Candidate]:
    """Adds to the candidates, best first, what their scores say next to each other, where `tools` were searched.

    These are a score's share of the best, and how far the best is ahead of the second ("margin") and of the mean of the
    next four ("lead"). Missing ones of the four count 0 in a large catalog, where that says something, and as usual in
    a small one.
    """
    if not candidates:
        return candidates
    best = candidates[0].score
    absent = USUAL_NEXT * best * max(0.0, 1 - tools / FEWEST)
    others = [each.score for each in candidates[1:5]] + [absent] * (5 - len(candidates[:5]))
    lead, margin = 1 - sum(others) / (4 * best), 1 - others[0] / best
    for each in candidates:
        each.signals |= {"share": each.score / best, "lead": lead, "margin": margin}
    return candidates


class WordSignals:
    """What the words of a query say about the tools that hold some of them, in a catalog of `tools` tools."""

    def __init__(self, query: ReadQuery, tools: int) -> None:
        floor = math.log((FEWEST + 1) / (tools + 1)) if tools < FEWEST else 0.0
        never = math.log(2 * (max(tools, FEWEST) + 1))  # the rarity of a word that no tool holds
        self._rarities = {word: query.weights[word] + share * floor for word, share in query.wanted.items()}
        self._wanted, own = query.wanted, query.stands_for.get
        self._terms = [(word, own(word, word), rare) for word, rare in self._rarities.items()]
        known = sum(self._best(self._rarities).values())
        self._total = known + query.unknown * never
        self._strongest = PEAK * query.weight * self._total / known if known else 0.0
        self._words = len(query.words)
        self._actions = ACTIONS.intersection(query.words)

    def of(self, words: Collection[str], name: Collection[str], score: float) -> Signals:
        """The signals of a tool with this BM25 score.

        `words` are those the tool holds, or at least those of them that the query looks for; `name` are the words of
        its base name.
        """
        rarities, best = self._rarities, self._best(words)
        actions_in_name = ACTIONS.intersection(name)
        other_action = self._actions and self._actions.isdisjoint(best)
        action_unasked = actions_in_name and actions_in_name.isdisjoint(rarities)
        return {
            "held": sum(best.values()) / self._total if self._total else 0.0,
            "words": math.log1p(len(best)),
            "missing": math.log1p(max(0, self._words - len(best))),
            "strength": score / self._strongest if self._strongest else 0.0,
            "name": sum([self._wanted[word] for word in name if word in rarities]) / len(name) if name else 0.0,
            "other action": 1.0 if other_action else 0.0,
            "action unasked": 1.0 if action_unasked else 0.0,
        }

    def _best(self, words: Collection[str]) -> dict[str, float]:
        """The words of the query that these hold, or stand for, and the rarity of each, that of the rarest for it."""
        best: dict[str, float] = {}
        for word, own, rare in self._terms:
            if word in words and rare > best.get(own, -1.0):
                best[own] = rare
        return best


def shared_signals(
    query_words: Sequence[str], counts: Mapping[str, int], words: Collection[str], tools: int
) -> Signals:
    """As `WordSignals`, for an index that does not search for words.

    `counts` says how many tools hold each of the query's words, `words` are those of the tool.
    """
    many = max(tools, FEWEST)
    rarities = {word: rarity(counts.get(word, 0), many) for word in query_words}
    shared = [word for word in query_words if word in words]
    total = sum(rarities.values())
    return {
        "held": sum(rarities[word] for word in shared) / total if total else 0.0,
        "words": math.log1p(len(shared)),
        "missing": math.log1p(len(query_words) - len(shared)),
    }


def usual_cosine(cosines: Iterable[float]) -> float:
    """The mean cosine of the tools behind the first five, with which a hit's cosine is compared.

    Pass at least `NEIGHBOURS` cosines; missing ones are taken to be as usual.
    """
    ranked = sorted(cosines, reverse=True)[:NEIGHBOURS]
    usual = USUAL_BEHIND * max(ranked, default=0.0)
    behind = [*ranked[5:], *[usual] * (NEIGHBOURS - max(5, len(ranked)))]
    return sum(behind) / len(behind)


def name_of(fields: Iterable[str]) -> list[str]:
    """The words of a tool's base name, which an engine stores as the shortest of the tool's terms for names."""
    terms = [word[1:].split() for word in fields if word.startswith("=")]
    return min(terms, key=lambda words: (len(words), words), default=[])
