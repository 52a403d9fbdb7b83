"""Intervals of 95 %: a bootstrap over conversations, paired, and where a difference crosses zero.

All figures of a sweep are computed from the same seeded resamples of its conversations (Efron 1979). So the costs with
every tool sent and with search are compared conversation by conversation.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any, Literal

from toolsearch_evals.ranking.measures import RESAMPLES

__all__ = ["Crossing", "Resamples", "crossing", "middle", "resamples"]


class Resamples:
    """Seeded resamples of so many conversations; none of a single one, which would show no doubt at all."""

    def __init__(self, many: int, seed: int = 0) -> None:
        rng, places = random.Random(seed), range(many)
        self._draws: list[Any] = [
            itemgetter(*rng.choices(places, k=many), 0) for _ in range(RESAMPLES if many > 1 else 0)
        ]
        self._many = many

    def sums(self, values: Sequence[float]) -> list[float]:
        """The sum over the conversations of each resample; `values` has one for each conversation."""
        return [sum(draw(values)[: self._many]) for draw in self._draws]


@cache
def resamples(many: int) -> Resamples:
    """The resamples of so many conversations; always the same."""
    return Resamples(many)


def middle(values: Iterable[float]) -> tuple[float, float] | tuple[None, None]:
    """The middle 95 % of what resamples gave; nothing if there are none, or one of its ends is not finite."""
    ordered = sorted(values)
    if not ordered:
        return None, None
    low, high = ordered[round(0.025 * len(ordered))], ordered[round(0.975 * len(ordered)) - 1]
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where search begins to be cheaper.

    `bound` is "" where it was measured, between two sizes of the sweep. It is "≤" where search is cheaper from the size
    `at` on, and costs the same at all smaller ones, if there are any; ">" where it is not cheaper at the largest size,
    and `at` is that; "?" where nothing is known, since neither way has met a request. An end of the interval is None
    where it lies beyond the sizes.
    """

    at: float
    bound: Literal["", "≤", ">", "?"]
    low: float | None = None
    high: float | None = None

    @property
    def measured(self) -> float | None:
        """The place, if it is one; None for a bound."""
        return None if self.bound else self.at

    def in_words(self, least: float, most: float) -> str:
        """As people read it: "29 [27, 31]", "≤ 5" or "> 673"; between the smallest and the largest size."""
        if self.bound == "?":
            return "–"
        if self.bound:
            return f"{self.bound} {self.at:,.0f}"
        low = f"≤ {least:,.0f}" if self.low is None else f"{self.low:,.0f}"
        high = f"> {most:,.0f}" if self.high is None else f"{self.high:,.0f}"
        return f"{self.at:,.0f} [{low}, {high}]"


def crossing(sizes: Sequence[float], saved: Sequence[float], by_resample: Sequence[Sequence[float]] = ()) -> Crossing:
    """Where `saved`, the difference of two costs at each size, leaves 0 for good; sizes are in order.

    The difference grows evenly with the definitions, so a straight line between two sizes is right; a share of the cost
    does not. `by_resample` has, for each size, the difference in each resample.
    """
    at = _where(sizes, saved)
    ends = sorted(_where(sizes, each) for each in zip(*by_resample, strict=True))
    low = ends[round(0.025 * len(ends))] if ends else -math.inf
    high = ends[round(0.975 * len(ends)) - 1] if ends else math.inf
    if math.isinf(at):
        return Crossing(sizes[0], "≤") if at < 0 else Crossing(sizes[-1], ">")
    if not any(each for size, each in zip(sizes, saved, strict=True) if size < at):  # an arm that sends all as well
        return Crossing(at, "≤")
    return Crossing(at, "", None if math.isinf(low) else low, None if math.isinf(high) else high)


def _where(sizes: Sequence[float], saved: Sequence[float]) -> float:
    """The size from which all is saved; minus infinity if that is every one, infinity if it is none."""
    if saved[-1] <= 0:
        return math.inf
    for at in range(len(sizes) - 2, -1, -1):
        loss, gain = saved[at], saved[at + 1]
        if loss <= 0:
            few, many = sizes[at], sizes[at + 1]
            return many if math.isinf(loss) or loss == 0 else few + (many - few) * -loss / (gain - loss)
    return -math.inf
