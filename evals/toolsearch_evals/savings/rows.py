"""The rows of a sweep: what conversations cost with every tool sent and with search, and where search breaks even."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import NamedTuple, TypedDict

from toolsearch_evals.ranking.measures import bootstrap_of_ratio, mean, wilson
from toolsearch_evals.savings.plan import Arm
from toolsearch_evals.savings.scripted import PlayedConversation, PlayedTurn
from toolsearch_evals.token_usage import TokenUsage

__all__ = ["Arm", "BreakEven", "Prices", "Runs", "SavingsRow", "arm_of", "break_even", "break_even_of", "savings_row"]

Runs = Sequence[tuple[int, PlayedConversation]]  # conversations with their seeds


class Prices(NamedTuple):
    """What a cached and a written token cost; a new input token costs 1."""

    cached: float
    output: float


# One size, wire and arm. "static" is with every tool sent; all figures are means over conversations, shares are 0 … 1,
# and a cost is in units of one uncached input token. A met request bears what was paid for those that were not met.
SavingsRow = TypedDict(
    "SavingsRow",
    {
        "wire": str,
        "index": str,
        "mode": str,
        "settings": str,
        "tools": int,
        "conversations": int,
        "static tokens": float,
        "tokens": float,
        "saving": float,
        "saving, worst seed": float,
        "saving, best seed": float,
        "static cost": float,
        "cost": float,
        "cost saving": float,
        "static cost a met request": float | None,
        "cost a met request": float | None,
        "cost a met request low": float | None,
        "cost a met request high": float | None,
        "cost a met request ±": float | None,
        "requests to meet": int,
        "success": float | None,
        "success low": float | None,
        "success high": float | None,
        "user requests": int,
        "success, user wording": float | None,
        "success, user wording low": float | None,
        "success, user wording high": float | None,
        "agent requests": int,
        "success, agent wording": float | None,
        "success, agent wording low": float | None,
        "success, agent wording high": float | None,
        "searches a turn": float | None,
        "requests": float | None,
        "static requests": float | None,
        "static uncached": float,
        "static cached": float,
        "static output": float,
        "uncached": float,
        "cached": float,
        "output": float,
    },
)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """From how many tools search is cheaper than sending all of them; None if it never is.

    In tokens and by price of a conversation, and by price of a request that is met.
    """

    index: str
    mode: str
    settings: str
    wire: str
    tokens: float | None
    cost: float | None
    met: float | None

    @property
    def arm(self) -> Arm:
        return Arm(self.mode, self.index, self.settings)


class _MeanTokens(NamedTuple):
    """Tokens of a conversation, as means over several."""

    uncached: float
    cached: float
    output: float

    def cost(self, cached_weight: float, output_weight: float) -> float:
        return self.uncached + cached_weight * self.cached + output_weight * self.output


def savings_row(wire: str, arm: Arm, tools: int, *, static: Runs, searched: Runs, prices: Prices) -> SavingsRow:
    """The row of one size, wire and arm."""
    before, after = _mean_tokens(static), _mean_tokens(searched)
    cost_before, cost_after = (each.cost(*prices) for each in (before, after))
    by_seed = [_saving(_total(static, seed), _total(searched, seed)) for seed in sorted({seed for seed, _ in searched})]
    turns = [turn for _, played in searched for turn in played.turns]
    whole, user, agent = (_success(turns, wording) for wording in ("", "user", "agent"))
    met = _CostOfMet.of(searched, prices)
    return {
        "wire": wire,
        "index": arm.backend,
        "mode": arm.mode,
        "settings": arm.settings,
        "tools": tools,
        "conversations": len(searched),
        "static tokens": sum(before),
        "tokens": sum(after),
        "saving": _saving(sum(before), sum(after)),
        "saving, worst seed": min(by_seed),
        "saving, best seed": max(by_seed),
        "static cost": cost_before,
        "cost": cost_after,
        "cost saving": _saving(cost_before, cost_after),
        "static cost a met request": _cost_of_met(_costs_and_met(static, prices)),
        "cost a met request": met.mean,
        "cost a met request low": met.low,
        "cost a met request high": met.high,
        "cost a met request ±": None if met.low is None or met.high is None else (met.high - met.low) / 2,
        "requests to meet": whole.of,
        "success": whole.share,
        "success low": whole.low,
        "success high": whole.high,
        "user requests": user.of,
        "success, user wording": user.share,
        "success, user wording low": user.low,
        "success, user wording high": user.high,
        "agent requests": agent.of,
        "success, agent wording": agent.share,
        "success, agent wording low": agent.low,
        "success, agent wording high": agent.high,
        "searches a turn": mean([turn.searches for turn in turns]),
        "requests": mean([len(played.requests) for _, played in searched]),
        "static requests": mean([len(played.requests) for _, played in static]),
        "static uncached": before.uncached,
        "static cached": before.cached,
        "static output": before.output,
        "uncached": after.uncached,
        "cached": after.cached,
        "output": after.output,
    }


def arm_of(row: SavingsRow) -> Arm:
    """The arm of a row."""
    return Arm(row["mode"], row["index"], row["settings"])


def _mean_tokens(runs: Runs) -> _MeanTokens:
    usage: TokenUsage = reduce(add, (played.usage for _, played in runs), TokenUsage())
    return _MeanTokens(usage.uncached / len(runs), usage.cached / len(runs), usage.output / len(runs))


class _Share(NamedTuple):
    """How many of so many, with Wilson's 95 % interval; nothing is known about a share of none."""

    of: int
    share: float | None = None
    low: float | None = None
    high: float | None = None


def _success(turns: Sequence[PlayedTurn], wording: str) -> _Share:
    """The share of the turns that a tool can serve in which the right tools were called; of one wording, if given."""
    served = [turn.served for turn in turns if turn.case.gold and wording in ("", turn.case.wording)]
    return _Share(len(served), mean(served), *wilson(sum(served), len(served))) if served else _Share(0)


class _CostOfMet(NamedTuple):
    """The price of all conversations over the number of requests met, with its 95 % interval over conversations.

    The mean is None if nothing was met. The ends are None too if a resample of the conversations meets nothing.
    """

    mean: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, runs: Runs, prices: Prices) -> _CostOfMet:
        pairs = _costs_and_met(runs, prices)
        low, high = bootstrap_of_ratio(pairs)
        whole = _cost_of_met(pairs)
        return cls(whole) if whole is None or math.isinf(high) else cls(whole, low, high)


def _costs_and_met(runs: Runs, prices: Prices) -> list[tuple[float, int]]:
    """Of each conversation the price, and how many requests were met."""
    return [(played.usage.cost(*prices), sum(turn.served for turn in played.turns)) for _, played in runs]


def _cost_of_met(pairs: Sequence[tuple[float, int]]) -> float | None:
    met = sum(served for _, served in pairs)
    return sum(cost for cost, _ in pairs) / met if met else None


def _total(runs: Runs, seed: int) -> int:
    return sum(played.usage.total for of, played in runs if of == seed)


def _saving(before: float, after: float) -> float:
    return (before - after) / before


def break_even_of(rows: Sequence[SavingsRow]) -> BreakEven:
    """Where one arm breaks even on one wire, from its rows by number of tools."""
    arm = arm_of(rows[0])

    def where(saved: Callable[[SavingsRow], float | None]) -> float | None:
        """Where the difference between the costs, which grows evenly with the tools, leaves 0; a share does not."""
        return break_even([(row["tools"], value) for row in rows if (value := saved(row)) is not None])

    return BreakEven(
        arm.backend,
        arm.mode,
        arm.settings,
        rows[0]["wire"],
        where(lambda row: row["static tokens"] - row["tokens"]),
        where(lambda row: row["static cost"] - row["cost"]),
        where(_saved_on_a_met_request),
    )


def _saved_on_a_met_request(row: SavingsRow) -> float | None:
    before, after = row["static cost a met request"], row["cost a met request"]
    return None if before is None else before - (math.inf if after is None else after)


def break_even(savings: Sequence[tuple[float, float]]) -> float | None:
    """The number of tools from which the saving stays above 0, interpolated between two sizes of the sweep.

    `savings` are (tools, saving) by number of tools. If all of them save, it is the smallest number
    (a bound); if the largest does not, None.
    """
    if not savings or savings[-1][1] <= 0:
        return None
    for (few, loss), (many, gain) in reversed(list(pairwise(savings))):
        if loss <= 0:
            return many if math.isinf(loss) else few + (many - few) * -loss / (gain - loss)
    return savings[0][0]
