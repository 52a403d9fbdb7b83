"""From how many tools on search is cheaper than sending all of them, in tools and in tokens of definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from operator import sub
from typing import Any

from toolsearch_evals.savings.intervals import Crossing, crossing
from toolsearch_evals.savings.plan import Arm
from toolsearch_evals.savings.rows import Cell, met_prices
from toolsearch_evals.savings.runs import Pricing, Sums

__all__ = ["BreakEven", "break_even_of"]


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Where one arm breaks even, in one setting and by one pricing.

    In tokens and by price of a conversation, and by the price of a request that is met (`met`): in tools, and in tokens
    of all definitions as the wire sends them, with the system message (`…_definitions`). `sizes` are the least and the
    most tools that were played, `definitions` their tokens.
    """

    index: str
    mode: str
    settings: str
    wire: str
    turns: int
    locality: float
    cache: str
    profile: str
    static_success: float
    sizes: tuple[float, float]
    definitions: tuple[float, float]
    by_tokens: Crossing
    by_cost: Crossing
    by_met: Crossing
    tokens_definitions: Crossing
    cost_definitions: Crossing
    met_definitions: Crossing

    @property
    def arm(self) -> Arm:
        return Arm(self.mode, self.index, self.settings)

    @property
    def tokens(self) -> float | None:
        """By tokens, in tools; None where it was not measured but only bounded."""
        return self.by_tokens.measured

    @property
    def cost(self) -> float | None:
        """By price, likewise."""
        return self.by_cost.measured

    @property
    def met(self) -> float | None:
        """By the price of a met request, likewise."""
        return self.by_met.measured

    def as_row(self) -> dict[str, Any]:
        """Flat, for a table: bounds and intervals in words, and the numbers beside them."""
        row = {key: value for key, value in asdict(self).items() if not isinstance(value, dict | tuple)}
        row["static success"] = row.pop("static_success")
        for name, what, (least, most) in (
            ("tokens", self.by_tokens, self.sizes),
            ("cost", self.by_cost, self.sizes),
            ("met", self.by_met, self.sizes),
            ("tokens, definitions", self.tokens_definitions, self.definitions),
            ("cost, definitions", self.cost_definitions, self.definitions),
            ("met, definitions", self.met_definitions, self.definitions),
        ):
            row |= {name: what.in_words(least, most), f"{name} at": what.measured, f"{name} bound": what.bound}
            row |= {f"{name} low": what.low, f"{name} high": what.high}
        return row


def break_even_of(cells: Sequence[Cell], pricing: Pricing) -> BreakEven:
    """Where one setting breaks even, from its cells by number of tools."""
    setting = cells[0].setting
    sizes, definitions = [float(each.tools) for each in cells], [each.static.definitions for each in cells]

    def where(saved: Callable[[Cell], list[float]]) -> tuple[Crossing, Crossing]:
        """In tools and in tokens of definitions. `saved` gives the difference of all, then of each resample."""
        differences = [saved(cell) for cell in cells]
        whole, by_resample = [each[0] for each in differences], [each[1:] for each in differences]
        return crossing(sizes, whole, by_resample), crossing(definitions, whole, by_resample)

    by_tokens = where(lambda cell: _difference(cell.static.tokens, cell.searched.tokens))
    by_cost = where(lambda cell: _difference(cell.static.cost(pricing), cell.searched.cost(pricing)))
    by_met = where(lambda cell: list(map(_less, *met_prices(cell, pricing))))
    if not any(runs.met.total for cell in cells for runs in (cell.static, cell.searched)):
        by_met = (Crossing(sizes[-1], "?"), Crossing(definitions[-1], "?"))
    return BreakEven(
        index=setting.arm.backend,
        mode=setting.arm.mode,
        settings=setting.arm.settings,
        wire=setting.wire,
        turns=setting.turns,
        locality=setting.locality,
        cache=pricing.cache,
        profile=pricing.profile.name,
        static_success=pricing.static_success,
        sizes=(sizes[0], sizes[-1]),
        definitions=(definitions[0], definitions[-1]),
        by_tokens=by_tokens[0],
        by_cost=by_cost[0],
        by_met=by_met[0],
        tokens_definitions=by_tokens[1],
        cost_definitions=by_cost[1],
        met_definitions=by_met[1],
    )


def _less(before: float, after: float) -> float:
    """The difference; none where neither way has met a request."""
    return 0.0 if before == after else before - after


def _difference(before: Sums, after: Sums) -> list[float]:
    return [before.total - after.total, *map(sub, before.resampled, after.resampled)]
