"""The conversations of one size, played in one way: their tokens, prices and requests met, and sums over resamples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from toolsearch_evals.savings.intervals import resamples
from toolsearch_evals.savings.played import PlayedConversation, PlayedTurn
from toolsearch_evals.savings.prices import PriceProfile, cost

__all__ = ["Pricing", "Runs", "Sums", "ratios"]


class Pricing(NamedTuple):
    """What is assumed after playing: prices, whether caches begin warm, and how often sending all succeeds."""

    profile: PriceProfile
    cache: str = "cold"
    static_success: float = 1.0

    @property
    def is_warm(self) -> bool:
        return self.cache == "warm"


class Sums(NamedTuple):
    """A figure of each conversation, its sum, and its sum in each resample."""

    values: list[float]
    total: float
    resampled: list[float]


class Runs:
    """Conversations with their seeds, in the order in which those of other arms are."""

    def __init__(self, played: Sequence[tuple[int, PlayedConversation]]) -> None:
        self.seeds = [seed for seed, _ in played]
        self.conversations = [conversation for _, conversation in played]
        self._sums: dict[object, Sums] = {}

    def __len__(self) -> int:
        return len(self.conversations)

    @property
    def turns(self) -> list[PlayedTurn]:
        return [turn for each in self.conversations for turn in each.turns]

    @property
    def tokens(self) -> Sums:
        return self._of("tokens", lambda each: each.usage.total)

    @property
    def met(self) -> Sums:
        """The requests whose needed tools were all called."""
        return self._of("met", lambda each: sum(turn.served for turn in each.turns))

    def cost(self, pricing: Pricing) -> Sums:
        profile, is_warm = pricing.profile, pricing.is_warm
        return self._of((profile, is_warm), lambda each: cost(each, profile, warm=is_warm))

    @property
    def definitions(self) -> float:
        """Mean tokens of the tools, with the system message, in the first request."""
        return sum(each.requests[0].fixed for each in self.conversations) / len(self)

    def _of(self, key: object, measure: Callable[[PlayedConversation], float]) -> Sums:
        if key not in self._sums:
            values = [float(measure(each)) for each in self.conversations]
            self._sums[key] = Sums(values, sum(values), resamples(len(values)).sums(values))
        return self._sums[key]


def ratios(above: Sequence[float], below: Sequence[float], factor: float = 1.0) -> list[float]:
    """The quotients, times a factor; infinite where there is a zero below the line."""
    return [factor * a / b if b else math.inf for a, b in zip(above, below, strict=True)]
