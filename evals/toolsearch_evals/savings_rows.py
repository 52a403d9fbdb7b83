"""The rows of a sweep: what conversations cost with every tool sent and with search, and where search breaks even."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import NamedTuple, TypedDict

from toolsearch_evals.measures import mean
from toolsearch_evals.scripted import PlayedConversation, PlayedTurn
from toolsearch_evals.token_usage import TokenUsage

__all__ = ["BreakEven", "Runs", "SavingsRow", "break_even", "break_even_of", "savings_row"]

Runs = Sequence[tuple[int, PlayedConversation]]  # conversations with their seeds

# One size, wire, index and mode. "static" is with every tool sent; all figures are means over conversations, shares are
# 0 … 1, and a cost is in units of one uncached input token.
SavingsRow = TypedDict(
    "SavingsRow",
    {
        "wire": str,
        "index": str,
        "mode": str,
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
        "success": float | None,
        "success, user wording": float | None,
        "success, agent wording": float | None,
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
    """From how many tools search is cheaper than sending all of them; None if it never is."""

    index: str
    mode: str
    wire: str
    tokens: float | None
    cost: float | None


class _MeanTokens(NamedTuple):
    """Tokens of a conversation, as means over several."""

    uncached: float
    cached: float
    output: float

    def cost(self, cached_weight: float, output_weight: float) -> float:
        return self.uncached + cached_weight * self.cached + output_weight * self.output


def savings_row(
    wire: str,
    index: str,
    mode: str,
    tools: int,
    *,
    static: Runs,
    searched: Runs,
    cached_weight: float,
    output_weight: float,
) -> SavingsRow:
    """The row of one size, wire, index and mode."""
    before, after = _mean_tokens(static), _mean_tokens(searched)
    cost_before, cost_after = (each.cost(cached_weight, output_weight) for each in (before, after))
    by_seed = [_saving(_total(static, seed), _total(searched, seed)) for seed in sorted({seed for seed, _ in searched})]
    turns = [turn for _, played in searched for turn in played.turns]
    return {
        "wire": wire,
        "index": index,
        "mode": mode,
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
        "success": _success(turns),
        "success, user wording": _success([turn for turn in turns if turn.case.wording == "user"]),
        "success, agent wording": _success([turn for turn in turns if turn.case.wording == "agent"]),
        "searches a turn": mean([turn.searches for turn in turns]),
        "requests": mean([played.requests for _, played in searched]),
        "static requests": mean([played.requests for _, played in static]),
        "static uncached": before.uncached,
        "static cached": before.cached,
        "static output": before.output,
        "uncached": after.uncached,
        "cached": after.cached,
        "output": after.output,
    }


def _mean_tokens(runs: Runs) -> _MeanTokens:
    usage: TokenUsage = reduce(add, (played.usage for _, played in runs), TokenUsage())
    return _MeanTokens(usage.uncached / len(runs), usage.cached / len(runs), usage.output / len(runs))


def _success(turns: Sequence[PlayedTurn]) -> float | None:
    """The share of the turns that a tool can serve in which the right tools were called."""
    return mean([float(turn.served) for turn in turns if turn.case.gold])


def _total(runs: Runs, seed: int) -> int:
    return sum(played.usage.total for of, played in runs if of == seed)


def _saving(before: float, after: float) -> float:
    return (before - after) / before


def break_even_of(rows: Sequence[SavingsRow]) -> BreakEven:
    """Where one index and mode breaks even on one wire, from its rows by number of tools."""
    first = rows[0]
    by_tokens = break_even([(row["tools"], row["saving"]) for row in rows])
    by_cost = break_even([(row["tools"], row["cost saving"]) for row in rows])
    return BreakEven(first["index"], first["mode"], first["wire"], by_tokens, by_cost)


def break_even(savings: Sequence[tuple[float, float]]) -> float | None:
    """The number of tools from which the saving stays above 0, interpolated between two sizes of the sweep.

    `savings` are (tools, saving) by number of tools. If all of them save, it is the smallest number
    (a bound); if the largest does not, None.
    """
    if not savings or savings[-1][1] <= 0:
        return None
    for (few, loss), (many, gain) in reversed(list(pairwise(savings))):
        if loss <= 0:
            return few + (many - few) * -loss / (gain - loss)
    return savings[0][0]
