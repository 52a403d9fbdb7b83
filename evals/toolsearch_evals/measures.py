"""How good a ranking is: recall, NDCG and coverage over groups of alternatives, with honest denominators.

A case needs one tool of each of its groups. A tool that is retrieved twice counts at its first place only. A search
that failed stays in every denominator and scores nothing. A mean over no cases is None, never 0.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from toolsearch_evals.cases import Case, Groups

__all__ = [
    "MEASURES",
    "Judged",
    "Summary",
    "bootstrap",
    "coverage",
    "hit",
    "interval",
    "ndcg",
    "recall",
    "summarise",
    "value",
    "wilson",
]

RESAMPLES = 1_000  # of a bootstrap
WITH_INTERVAL = ("R@5", "hit@5")
Z = 1.96


def recall(retrieved: Sequence[str], gold: Groups, k: int) -> float:
    """The share of the groups with a tool among the first k."""
    top = set(_first(retrieved, k))
    return sum(not top.isdisjoint(group) for group in gold) / len(gold)


def hit(retrieved: Sequence[str], gold: Groups, k: int) -> float:
    """1 if any group has a tool among the first k, else 0."""
    return float(recall(retrieved, gold, k) > 0)


def coverage(retrieved: Sequence[str], gold: Groups, k: int) -> float:
    """1 if every group has a tool among the first k, else 0."""
    return float(recall(retrieved, gold, k) == 1)


def ndcg(retrieved: Sequence[str], gold: Groups, k: int) -> float:
    """Normalised discounted cumulative gain, binary: a place gains if its tool is the first one of some group.

    DCG with 1 / log2(place + 1) (Järvelin and Kekäläinen 2002); the ideal has each group at a place of its own.
    """
    waiting = set(range(len(gold)))
    gained = 0.0
    for place, tool_id in enumerate(_first(retrieved, k), 1):
        served = {at for at in waiting if tool_id in gold[at]}
        if served:
            gained += 1 / math.log2(place + 1)
            waiting -= served
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(len(gold), k) + 1))
    return gained / ideal


MEASURES: dict[str, Callable[[Sequence[str], Groups], float]] = {
    "R@1": lambda retrieved, gold: recall(retrieved, gold, 1),
    "R@3": lambda retrieved, gold: recall(retrieved, gold, 3),
    "R@5": lambda retrieved, gold: recall(retrieved, gold, 5),
    "R@10": lambda retrieved, gold: recall(retrieved, gold, 10),
    "NDCG@10": lambda retrieved, gold: ndcg(retrieved, gold, 10),
    "hit@5": lambda retrieved, gold: hit(retrieved, gold, 5),
    "C@5": lambda retrieved, gold: coverage(retrieved, gold, 5),
}


@dataclass(frozen=True, slots=True)
class Judged:
    """One case and what a search made of it; `error` says why there is no answer."""

    case: Case
    retrieved: tuple[str, ...] = ()
    error: str | None = None
    seconds: float = 0.0
    by_steps: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Summary:
    """Means over a bucket of cases.

    `n_scored` counts those with gold, failed searches included; `values` are None where there are none.
    `intervals` are of 95 %, for R@5 and hit@5 where there are cases.
    `answered` is the share of the unanswerable cases that got an answer all the same, or failed; 0 is best.
    """

    n: int
    n_scored: int
    n_unanswerable: int
    errors: int
    values: dict[str, float | None]
    intervals: dict[str, tuple[float, float]]
    answered: float | None


def summarise(judged: Iterable[Judged]) -> Summary:
    """The means of every measure over a bucket."""
    bucket = list(judged)
    scored = [each for each in bucket if each.case.gold]
    unanswerable = [each for each in bucket if not each.case.gold]
    values = {name: [value(each, name) for each in scored] for name in MEASURES}
    return Summary(
        n=len(bucket),
        n_scored=len(scored),
        n_unanswerable=len(unanswerable),
        errors=sum(each.error is not None for each in bucket),
        values={name: mean(of) for name, of in values.items()},
        intervals={name: interval(values[name]) for name in WITH_INTERVAL if scored},
        answered=mean([float(bool(each.retrieved) or each.error is not None) for each in unanswerable]),
    )


def value(judged: Judged, measure: str) -> float:
    """What a case with gold scores; a search that failed scores nothing."""
    return 0.0 if judged.error else MEASURES[measure](judged.retrieved, judged.case.gold)


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of a mean of values between 0 and 1, by `bootstrap`.

    Where all values are 0, or all 1, resampling would show no doubt at all; there it is Wilson's interval of a share.
    """
    n = len(values)
    if set(values) <= {0.0} or set(values) <= {1.0}:
        doubt = Z**2 / (n + Z**2)
        return (0.0, doubt) if not any(values) else (1 - doubt, 1.0)
    return bootstrap(values, seed)


def wilson(times: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share (1927)."""
    middle, spread = times + Z**2 / 2, Z * (times * (of - times) / of + Z**2 / 4) ** 0.5
    return max(0.0, (middle - spread) / (of + Z**2)), min(1.0, (middle + spread) / (of + Z**2))


def bootstrap(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The middle 95 % of the means of seeded resamples (Efron 1979)."""
    rng, n = random.Random(seed), len(values)
    means = sorted(sum(rng.choices(values, k=n)) / n for _ in range(RESAMPLES))
    return means[round(0.025 * RESAMPLES)], means[round(0.975 * RESAMPLES) - 1]


def mean(values: Sequence[float]) -> float | None:
    """The mean, or None of nothing."""
    return sum(values) / len(values) if values else None


def _first(retrieved: Sequence[str], k: int) -> list[str]:
    return list(dict.fromkeys(retrieved))[:k]
