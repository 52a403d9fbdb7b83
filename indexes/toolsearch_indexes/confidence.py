"""What is known of a hit as named signals, and how sure they make it: P(relevant), where a model was fitted.

`toolsearch eval calibrate` fits the model, for each index and each encoder; what it fitted to the data set that ships
is in `calibration.json`. An index without a fit reports nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from toolsearch.protocols import Matched, Scored
from toolsearch.search import Fit
from toolsearch.search.confidence import DEPTH
from toolsearch_indexes.asked import Asked
from toolsearch_indexes.impacts import PEAK, rarity
from toolsearch_indexes.text import ACTIONS

__all__ = [
    "DEPTH",
    "NEIGHBOURS",
    "SHIPPED",
    "Answer",
    "Candidate",
    "WordSignals",
    "answer",
    "fitted",
    "name_of",
    "placed",
    "reachable",
    "shared_signals",
    "usual_cosine",
]

SHIPPED = Path(__file__).with_name("calibration.json")
NEIGHBOURS = 30  # nearest tools that a cosine is compared with
USUAL_NEXT, USUAL_BEHIND = 0.7, 0.55  # of the best: the next scores, and cosines behind the first five; medians
FEWEST = 200  # tools: in a smaller catalog rarity says little, so words are weighed as if it had so many

Signals = dict[str, float]


@dataclass(slots=True)
class Candidate:
    """A hit before it is known how sure it is; of those beyond the limit, `matched` need not be known."""

    id: str
    score: float
    matched: tuple[Matched, ...]
    signals: Signals


class Answer(list[Scored]):
    """Hits, and of the whole search: `answerable`, P(some tool can do it), and `degraded`, what did not take part."""

    def __init__(
        self, hits: Iterable[Scored] = (), *, answerable: float | None = None, degraded: str | None = None
    ) -> None:
        super().__init__(hits)
        self.answerable = answerable
        self.degraded = degraded


def answer(found: Sequence[Candidate], limit: int, fit: Fit | None, tools: int, degraded: str | None = None) -> Answer:
    """The first `limit` hits with their confidence, if there is a fit. `found` are at least `DEPTH`, if there are.

    Where so few `tools` were searched that there are no ten hits, that says nothing against those there are: the
    missing ones count as if they were as likely as usual.
    """
    limit = max(limit, 0)
    if fit is None:
        return Answer((Scored(f.id, f.score, f.matched, None, f.signals) for f in found[:limit]), degraded=degraded)
    sure = [fit.relevant(each.signals) for each in found[: max(limit, DEPTH)]]
    hits = (Scored(f.id, f.score, f.matched, p, f.signals) for f, p in zip(found[:limit], sure, strict=False))
    absent = USUAL_BEHIND * max(sure, default=0.0) * max(0.0, 1 - tools / FEWEST)
    return Answer(
        hits, answerable=fit.answerable(sure + [absent] * (DEPTH - len(sure)) if sure else []), degraded=degraded
    )


def reachable(tools: int, among: AbstractSet[str] | None) -> int:
    """Of so many tools those that are searched. Among the ids that are allowed there may be some of no tool."""
    return tools if among is None else min(tools, len(among))


def fitted(index: str, encoder: str = "", probe: tuple[float, ...] = ()) -> Fit | None:
    """What ships for an index, and for the encoder of that name or with that probe; see `Fit.load`."""
    return Fit.load(SHIPPED, index, encoder, probe)


# -- signals ---------------------------------------------------------------------------------------------------------


def placed(found: list[Candidate], tools: int) -> list[Candidate]:
    """Tells the candidates, best first, what their scores say beside each other, where so many tools were searched.

    That is a score's share of the best, and how far the best is ahead of the second and of the mean of the next four.
    That there are no four says something in a large catalog: there they count 0. It says nothing in a small one.
    """
    if not found:
        return found
    best = found[0].score
    absent = USUAL_NEXT * best * max(0.0, 1 - tools / FEWEST)
    others = [each.score for each in found[1:5]] + [absent] * (5 - len(found[:5]))
    lead, margin = 1 - sum(others) / (4 * best), 1 - others[0] / best
    for each in found:
        each.signals |= {"share": each.score / best, "lead": lead, "margin": margin}
    return found


class WordSignals:
    """What the words of a query say of the tools that hold some of them, in a catalog of so many tools."""

    def __init__(self, asked: Asked, tools: int) -> None:
        floor = math.log((FEWEST + 1) / (tools + 1)) if tools < FEWEST else 0.0
        never = math.log(2 * (max(tools, FEWEST) + 1))  # the rarity of a word that no tool holds
        self._rarities = {word: asked.weights[word] + share * floor for word, share in asked.wanted.items()}
        known = sum(self._rarities.values())
        self._total = known + asked.unknown * never
        self._strongest = PEAK * asked.weight * self._total / known if known else 0.0
        self._words = len(asked.words)
        self._actions = [word for word in asked.words if word in ACTIONS]

    def of(self, held: Collection[str], name: Collection[str], score: float) -> Signals:
        """Of a tool with this BM25 score. `held` are at least those of its words that are looked for; `name` those its
        base name consists of.
        """
        rarities = self._rarities
        has = [word for word in rarities if word in held]
        said = [word for word in name if word in rarities]
        done = [word for word in name if word in ACTIONS]
        other = self._actions and not [word for word in self._actions if word in held]
        unasked = done and not [word for word in done if word in rarities]
        return {
            "held": sum([rarities[word] for word in has]) / self._total if self._total else 0.0,
            "words": math.log1p(len(has)),
            "missing": math.log1p(max(0, self._words - len(has))),
            "strength": score / self._strongest if self._strongest else 0.0,
            "name": len(said) / len(name) if name else 0.0,
            "other action": 1.0 if other else 0.0,
            "action unasked": 1.0 if unasked else 0.0,
        }


def shared_signals(asked: Sequence[str], counts: Mapping[str, int], held: Collection[str], tools: int) -> Signals:
    """As `WordSignals`, where no words are searched for: `counts` are the tools that hold each of the words asked."""
    many = max(tools, FEWEST)
    rarities = {word: rarity(counts.get(word, 0), many) for word in asked}
    has = [word for word in asked if word in held]
    total = sum(rarities.values())
    return {
        "held": sum(rarities[word] for word in has) / total if total else 0.0,
        "words": math.log1p(len(has)),
        "missing": math.log1p(len(asked) - len(has)),
    }


def usual_cosine(cosines: Iterable[float]) -> float:
    """The mean cosine of the tools behind the first five, with which a hit's is compared.

    Of at least `NEIGHBOURS` tools; where there are fewer, the others are taken to be as usual.
    """
    ranked = sorted(cosines, reverse=True)[:NEIGHBOURS]
    usual = USUAL_BEHIND * max(ranked, default=0.0)
    behind = [*ranked[5:], *[usual] * (NEIGHBOURS - max(5, len(ranked)))]
    return sum(behind) / len(behind)


def name_of(fields: Iterable[str]) -> list[str]:
    """The words of a tool's base name, from the words an engine keeps of it: of the terms for names, the shortest."""
    terms = [word[1:].split() for word in fields if word.startswith("=")]
    return min(terms, key=lambda words: (len(words), words), default=[])
