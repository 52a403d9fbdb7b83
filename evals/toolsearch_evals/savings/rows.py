"""The rows of a sweep: what conversations cost with every tool sent and with search, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypedDict

from toolsearch_evals.ranking.measures import mean, wilson
from toolsearch_evals.savings.intervals import middle
from toolsearch_evals.savings.jobs import Job
from toolsearch_evals.savings.plan import STATIC, Arm
from toolsearch_evals.savings.played import PlayedConversation, PlayedTurn
from toolsearch_evals.savings.prices import cached_tokens
from toolsearch_evals.savings.runs import Pricing, Runs, ratios

__all__ = ["Cell", "SavingsRow", "Setting", "arm_of", "cells_of", "met_prices", "savings_row"]


class Setting(NamedTuple):
    """What the rows of one line have in common: turns, locality, wire, and how it is searched."""

    turns: int
    locality: float
    wire: str
    arm: Arm


class Cell(NamedTuple):
    """One size of a setting: the same conversations with every tool sent and with search."""

    setting: Setting
    tools: int
    static: Runs
    searched: Runs


# One size, setting and pricing. "static" is with every tool sent; all figures are means over conversations, shares are
# 0 … 1, and a cost is in units of one uncached input token. A met request bears what was paid for those that were not
# met. "low" and "high" are the ends of a 95 % interval: of a bootstrap over the conversations, or Wilson's of a share.
_Costs = TypedDict(
    "_Costs",
    {
        "wire": str,
        "index": str,
        "mode": str,
        "settings": str,
        "tools": int,
        "turns": int,
        "locality": float,
        "cache": str,
        "profile": str,
        "static success": float,
        "conversations": int,
        "different cases": int,
        "definition tokens": float,
        "static tokens": float,
        "tokens": float,
        "saving": float,
        "saving low": float | None,
        "saving high": float | None,
        "saving, worst seed": float,
        "saving, best seed": float,
        "static cost": float,
        "cost": float,
        "cost saving": float,
        "cost saving low": float | None,
        "cost saving high": float | None,
        "static cost a met request": float | None,
        "cost a met request": float | None,
        "cost a met request low": float | None,
        "cost a met request high": float | None,
        "cost a met request ±": float | None,
        "met saving": float | None,
        "met saving low": float | None,
        "met saving high": float | None,
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

_Successes = TypedDict(
    "_Successes",
    {
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
    },
)


class SavingsRow(_Costs, _Successes):
    """One size, wire and arm."""


def cells_of(played: Mapping[Job, PlayedConversation]) -> dict[Setting, list[Cell]]:
    """What was played, by setting and then by size, from small to large."""
    runs: dict[tuple[Setting, int], list[tuple[int, PlayedConversation]]] = {}
    for job, conversation in played.items():
        setting = Setting(job.turns, job.locality, job.wire, job.arm)
        runs.setdefault((setting, job.size), []).append((job.seed, conversation))
    made = {key: Runs(of) for key, of in runs.items()}
    cells: dict[Setting, list[Cell]] = {}
    for (setting, size), searched in sorted(made.items(), key=lambda each: each[0][1]):
        if setting.arm != STATIC:
            static = made[setting._replace(arm=STATIC), size]
            cells.setdefault(setting, []).append(Cell(setting, size, static, searched))
    return cells


def savings_row(cell: Cell, pricing: Pricing) -> SavingsRow:
    """The row of one size, setting and pricing."""
    (turns, locality, wire, arm), many = cell.setting, len(cell.searched)
    static, searched = cell.static, cell.searched
    cost_before, cost_after = static.cost(pricing), searched.cost(pricing)
    saved = _Saving.of(static.tokens.total, searched.tokens.total, static.tokens.resampled, searched.tokens.resampled)
    saved_cost = _Saving.of(cost_before.total, cost_after.total, cost_before.resampled, cost_after.resampled)
    met = _Met.of(cell, pricing)
    by_seed = [_saved_of_seed(cell, seed) for seed in sorted({*searched.seeds})]
    before, after = _split(static, pricing), _split(searched, pricing)
    return {
        "wire": wire,
        "index": arm.backend,
        "mode": arm.mode,
        "settings": arm.settings,
        "tools": cell.tools,
        "turns": turns,
        "locality": locality,
        "cache": pricing.cache,
        "profile": pricing.profile.name,
        "static success": pricing.static_success,
        "conversations": many,
        "different cases": len({turn.case.id for turn in searched.turns}),
        "definition tokens": static.definitions,
        "static tokens": static.tokens.total / many,
        "tokens": searched.tokens.total / many,
        "saving": saved.share,
        "saving low": saved.low,
        "saving high": saved.high,
        "saving, worst seed": min(by_seed),
        "saving, best seed": max(by_seed),
        "static cost": cost_before.total / many,
        "cost": cost_after.total / many,
        "cost saving": saved_cost.share,
        "cost saving low": saved_cost.low,
        "cost saving high": saved_cost.high,
        "static cost a met request": met.static,
        "cost a met request": met.mean,
        "cost a met request low": met.low,
        "cost a met request high": met.high,
        "cost a met request ±": None if met.low is None or met.high is None else (met.high - met.low) / 2,
        "met saving": met.saving,
        "met saving low": met.saving_low,
        "met saving high": met.saving_high,
        **_successes(searched.turns),
        "searches a turn": mean([turn.searches for turn in searched.turns]),
        "requests": mean([len(played.requests) for played in searched.conversations]),
        "static requests": mean([len(played.requests) for played in static.conversations]),
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


class _Split(NamedTuple):
    """Tokens of a conversation, as means over several."""

    uncached: float
    cached: float
    output: float


def _split(runs: Runs, pricing: Pricing) -> _Split:
    cached = whole = output = 0
    for conversation in runs.conversations:
        for at, request in enumerate(conversation.requests):
            cached += cached_tokens(request, pricing.profile, is_first=at == 0, warm=pricing.is_warm)
            whole += request.input
            output += request.output
    many = len(runs)
    return _Split((whole - cached) / many, cached / many, output / many)


class _Saving(NamedTuple):
    """The share that is saved, and its interval; both costs are of the same conversations."""

    share: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, before: float, after: float, befores: Sequence[float], afters: Sequence[float]) -> _Saving:
        return cls(1 - after / before, *middle(1 - each for each in ratios(afters, befores)))


def _saved_of_seed(cell: Cell, seed: int) -> float:
    before, after = (
        sum(tokens for of, tokens in zip(runs.seeds, runs.tokens.values, strict=True) if of == seed)
        for runs in (cell.static, cell.searched)
    )
    return (before - after) / before


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


def _successes(turns: Sequence[PlayedTurn]) -> _Successes:
    whole, user, agent = (_success(turns, wording) for wording in ("", "user", "agent"))
    return {
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
    }


class _Met(NamedTuple):
    """The price of all conversations over the number of requests met, with its 95 % interval, and what is saved of it.

    With every tool sent, only `static_success` of the requests is met. A price is None if nothing was met; the ends of
    an interval are None too if a resample of the conversations meets nothing.
    """

    static: float | None = None
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    saving: float | None = None
    saving_low: float | None = None
    saving_high: float | None = None

    @classmethod
    def of(cls, cell: Cell, pricing: Pricing) -> _Met:
        befores, afters = met_prices(cell, pricing)
        (before, *more_before), (after, *more_after) = befores, afters
        static, searched = (None if math.isinf(each) else each for each in (before, after))
        low, high = middle(more_after)
        if static is None or searched is None:
            return cls(static, searched, low, high)
        saved = middle(1 - each for each in ratios(more_after, more_before))
        return cls(static, searched, low, high, 1 - searched / static, *saved)


def met_prices(cell: Cell, pricing: Pricing) -> tuple[list[float], list[float]]:
    """The price of a met request, with every tool sent and with search: of all, then of each resample.

    Infinite where nothing was met.
    """
    prices = []
    for runs, share in ((cell.static, pricing.static_success), (cell.searched, 1.0)):
        cost, met = runs.cost(pricing), runs.met
        prices.append(ratios([cost.total, *cost.resampled], [met.total, *met.resampled], 1 / share))
    return prices[0], prices[1]
