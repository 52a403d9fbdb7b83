"""How good a ranking is: recall, NDCG and coverage over groups of alternatives, with honest denominators.

A case needs one tool of each of its groups; a group that is there twice is one need. A tool that is retrieved twice
counts at its first place only. A search that failed stays in every denominator and scores nothing. A mean over no
cases is None, never 0.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real

from toolsearch import SetupError
from toolsearch_evals.data.cases import Case, Groups, distinct

__all__ = [
    "MEASURES",
    "JudgedCase",
    "Measure",
    "Summary",
    "bootstrap",
    "bootstrap_of_ratio",
    "coverage",
    "hit",
    "interval",
    "ndcg",
    "recall",
    "score_of",
    "summarise",
    "wilson",
]

RESAMPLES = 1_000  # of a bootstrap
Z = 1.96
ROUNDING = 1e-9  # by which a sum of floats may miss 1


def recall(retrieved: Sequence[str], gold: Groups, k: int) -> float:
    """The share of the groups with a tool among the first k."""
    gold, top = distinct(gold), set(_first_distinct(retrieved, k))
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
    gold = distinct(gold)
    waiting = set(range(len(gold)))
    gained = 0.0
    for place, tool_id in enumerate(_first_distinct(retrieved, k), 1):
        served = {at for at in waiting if tool_id in gold[at]}
        if served:
            gained += 1 / math.log2(place + 1)
            waiting -= served
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(len(gold), k) + 1))
    return gained / ideal


@dataclass(frozen=True, slots=True)
class Measure:
    """A number from 0 to 1 for each answer. A report shows the mean of a bucket of cases under `name`.

    `score(retrieved, gold)` gets the ids of at most fifteen tools, best first and each once, and the groups of ids of
    which one tool each is needed, at least one group. It is not called for a search that failed: that scores 0.
    `meaning` is a sentence for the report. A measure that is not `shown` is in JSON and CSV only. With `has_interval`,
    the 95 % interval of the mean is given too.
    """

    name: str
    score: Callable[[Sequence[str], Groups], float]
    meaning: str
    shown: bool = True
    has_interval: bool = False


def _recall_at(k: int, *, shown: bool = True, has_interval: bool = False) -> Measure:
    meaning = f"The share of the needed tools among the first {k}."
    return Measure(f"R@{k}", lambda retrieved, gold: recall(retrieved, gold, k), meaning, shown, has_interval)


MEASURES = (
    _recall_at(1),
    _recall_at(3, shown=False),  # tables would be too wide
    _recall_at(5, has_interval=True),
    _recall_at(10, shown=False),
    _recall_at(15),
    Measure("NDCG@10", lambda retrieved, gold: ndcg(retrieved, gold, 10), "Binary, over the first ten."),
    Measure(
        "hit@5",
        lambda retrieved, gold: hit(retrieved, gold, 5),
        "The share of cases with a needed tool among the first five.",
        has_interval=True,
    ),
    Measure(
        "C@5",
        lambda retrieved, gold: coverage(retrieved, gold, 5),
        "The share of cases with all needed tools among the first five.",
    ),
)


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """One case and the answer of a search; `error` says why there is no answer.

    `shown` are the tools that the search tool's own answer loads or names, and `tokens` what that answer costs.
    """

    case: Case
    retrieved: tuple[str, ...] = ()
    error: str | None = None
    seconds: float = 0.0
    by_steps: tuple[str, ...] | None = None
    shown: tuple[str, ...] = ()
    tokens: int | None = None


@dataclass(frozen=True)
class Summary:
    """Means over a bucket of cases.

    `n_scored` counts those with gold, failed searches included; without such cases, `values` are None.
    `intervals` are of 95 %, for the measures that have one, if there are such cases.
    `answered` is the share of the unanswerable cases that got an answer nevertheless, or failed; 0 is best.
    """

    n: int
    n_scored: int
    n_unanswerable: int
    errors: int
    values: dict[str, float | None]
    intervals: dict[str, tuple[float, float]]
    answered: float | None


def summarise(judged: Iterable[JudgedCase], measures: Sequence[Measure] = MEASURES) -> Summary:
    """The means of every measure over a bucket."""
    bucket = list(judged)
    scored = [each for each in bucket if each.case.gold]
    unanswerable = [each for each in bucket if not each.case.gold]
    values = {measure.name: [score_of(each, measure) for each in scored] for measure in measures}
    return Summary(
        n=len(bucket),
        n_scored=len(scored),
        n_unanswerable=len(unanswerable),
        errors=sum(each.error is not None for each in bucket),
        values={name: mean(of) for name, of in values.items()},
        intervals={each.name: interval(values[each.name]) for each in measures if each.has_interval and scored},
        answered=mean([float(bool(each.retrieved) or each.error is not None) for each in unanswerable]),
    )


def score_of(judged: JudgedCase, measure: Measure) -> float:
    """What a case with gold scores; a search that failed scores nothing.

    Raises `SetupError`, which names the measure, if it fails or gives no number from 0 to 1.
    """
    if judged.error:
        return 0.0
    try:
        score: object = measure.score(tuple(dict.fromkeys(judged.retrieved)), judged.case.gold)
    except Exception as error:  # a measure of another package may raise anything
        problem = f"failed on the case {judged.case.id!r}: {type(error).__name__}: {error}"
        raise SetupError(f"the measure {measure.name!r} {problem}") from error
    if not isinstance(score, Real) or not 0 <= float(score) <= 1 + ROUNDING:
        problem = f"gave {score!r} for the case {judged.case.id!r}; a score is a number from 0 to 1"
        raise SetupError(f"the measure {measure.name!r} {problem}")
    return float(score)


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of a mean of values between 0 and 1, by `bootstrap`.

    If all values are 0, or all are 1, resampling would show no doubt at all; then it is Wilson's interval of a share.
    Of one value between them, it is everything from 0 to 1.
    """
    n = len(values)
    if set(values) <= {0.0} or set(values) <= {1.0}:
        doubt = Z**2 / (n + Z**2)
        return (0.0, doubt) if not any(values) else (1 - doubt, 1.0)
    return bootstrap(values, seed) if n > 1 else (0.0, 1.0)


def wilson(times: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share (1927)."""
    middle, spread = times + Z**2 / 2, Z * (times * (of - times) / of + Z**2 / 4) ** 0.5
    return max(0.0, (middle - spread) / (of + Z**2)), min(1.0, (middle + spread) / (of + Z**2))


def bootstrap(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The middle 95 % of the means of seeded resamples (Efron 1979)."""
    rng, n = random.Random(seed), len(values)
    means = sorted(sum(rng.choices(values, k=n)) / n for _ in range(RESAMPLES))
    return means[round(0.025 * RESAMPLES)], means[round(0.975 * RESAMPLES) - 1]


def bootstrap_of_ratio(pairs: Sequence[tuple[float, float]], seed: int = 0) -> tuple[float, float]:
    """As `bootstrap`, for the sum of the first numbers of the pairs over the sum of the second.

    Infinite where a resample has only zeros below the line.
    """
    rng, n = random.Random(seed), len(pairs)
    ratios = []
    for _ in range(RESAMPLES):
        above, below = map(sum, zip(*rng.choices(pairs, k=n), strict=True))
        ratios.append(above / below if below else math.inf)
    ratios.sort()
    return ratios[round(0.025 * RESAMPLES)], ratios[round(0.975 * RESAMPLES) - 1]


def mean(values: Sequence[float]) -> float | None:
    """The mean, or None if there are no values."""
    return sum(values) / len(values) if values else None


def _first_distinct(retrieved: Sequence[str], k: int) -> list[str]:
    return list(dict.fromkeys(retrieved))[:k]
