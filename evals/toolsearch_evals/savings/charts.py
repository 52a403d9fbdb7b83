"""The charts of a report on savings: what a conversation costs by number of tools, all sent and searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toolsearch_evals.reports.chart import Chart, ChartLine
from toolsearch_evals.savings.rows import Arm, arm_of
from toolsearch_evals.savings.sweep import SweepResult

__all__ = ["savings_charts"]

Marks = tuple[tuple[float, str], ...]


def savings_charts(swept: SweepResult, wires: Sequence[str]) -> tuple[Chart, ...]:
    """A chart of tokens and one of prices for each wire."""
    return tuple(_chart(swept, wire, by) for wire in wires for by in ("tokens", "cost"))


def _chart(swept: SweepResult, wire: str, by: Literal["tokens", "cost"]) -> Chart:
    rows = [row for row in swept.rows if row["wire"] == wire]
    arms = list(dict.fromkeys(map(arm_of, rows)))
    static: Literal["static tokens", "static cost"] = "static tokens" if by == "tokens" else "static cost"
    lines = [ChartLine("all tools sent", tuple((r["tools"], r[static]) for r in rows if arm_of(r) == arms[0]), 0)]
    for tone, arm in enumerate(arms, 1):
        points = tuple((row["tools"], row[by]) for row in rows if arm_of(row) == arm)
        lines.append(ChartLine(", ".join(filter(None, arm)), points, tone))
    evens = [
        (each.tokens if by == "tokens" else each.cost, each.arm) for each in swept.break_evens if each.wire == wire
    ]
    what = "tokens" if by == "tokens" else "price, in uncached input tokens"
    title = f"{wire}: {what} of a conversation ({swept.tokenizers[wire].partition(':')[0]})"
    return Chart(title, "tools in the catalog (both axes logarithmic)", what, tuple(lines), _marks(evens, arms))


def _marks(evens: Sequence[tuple[float | None, Arm]], arms: Sequence[Arm]) -> Marks:
    """Where arms break even, in order; the label distinguishes arms by what differs."""
    differing = [at for at in range(len(Arm._fields)) if len({arm[at] for arm in arms}) > 1]
    together: dict[float, list[str]] = {}
    for even, arm in evens:
        if even is not None:
            at = next((known for known in together if abs(even - known) < 0.5), even)
            together.setdefault(at, []).append(", ".join(arm[i] for i in differing))
    marks = []
    for at, names in sorted(together.items()):
        more = f" and {names[1]}" if len(names) == 2 and len(differing) == 1 else f" and {len(names) - 1} more"
        whose = f" ({names[0]}{more if len(names) > 1 else ''})" if differing else ""
        marks.append((at, f"even at {at:.0f}{whose}"))
    return tuple(marks)
