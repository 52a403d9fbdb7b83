"""The charts of a report on savings: what is saved and what is met, by number of tools, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from toolsearch_evals.reports.chart import Chart, ChartLine
from toolsearch_evals.savings.rows import Arm, SavingsRow, arm_of
from toolsearch_evals.savings.sweep import SweepResult

__all__ = ["savings_charts"]

X = "tools in the catalog"
Marks = tuple[tuple[float, str], ...]
Ends = tuple[float, float] | None


def savings_charts(swept: SweepResult, wires: Sequence[str]) -> tuple[Chart, ...]:
    """Of each wire: what is saved and what is met, side by side; the tokens, and the price of a met request."""
    return tuple(chart for wire in wires for chart in _charts(swept, wire))


def _charts(swept: SweepResult, wire: str) -> tuple[Chart, ...]:
    rows = [row for row in swept.rows if row["wire"] == wire]
    arms = list(dict.fromkeys(map(arm_of, rows)))
    mine = [(tone, _name(arm, arms), [row for row in rows if arm_of(row) == arm]) for tone, arm in enumerate(arms, 1)]
    before = mine[0][2]
    counted_by = swept.tokenizers[wire].partition(":")[0]
    even = [each for each in swept.break_evens if each.wire == wire]
    choices = (("wire", wire),)
    saved = Chart(
        f"Tokens saved ({counted_by})",
        X,
        "share of the tokens saved",
        tuple(ChartLine(name, tuple((r["tools"], r["saving"]) for r in of), tone) for tone, name, of in mine),
        _marks([(each.tokens, each.arm) for each in even], arms),
        unit="share",
        choices=choices,
        scales=("log", "linear"),
    )
    met = Chart(
        "Requests met: the right tools were called",
        X,
        "share of the requests met",
        tuple(_met_line(tone, name, of) for tone, name, of in mine),
        unit="share",
        choices=choices,
        scales=("log", "linear"),
    )
    tokens = Chart(
        f"Tokens of a conversation ({counted_by})",
        X,
        "tokens",
        (
            ChartLine("all tools sent", tuple((r["tools"], r["static tokens"]) for r in before), 0),
            *(ChartLine(name, tuple((r["tools"], r["tokens"]) for r in of), tone) for tone, name, of in mine),
        ),
        saved.marks,
        choices=choices,
        scales=("log", "linear"),
    )
    price = Chart(
        "Price of a request that is met, in new input tokens",
        X,
        "new input tokens",
        (_price_line(0, "all tools sent", before, "static "), *(_price_line(t, name, of) for t, name, of in mine)),
        _marks([(each.met, each.arm) for each in even], arms),
        choices=choices,
        scales=("log", "linear"),
    )
    return saved, met, tokens, price


def _name(arm: Arm, arms: Sequence[Arm]) -> str:
    """What sets an arm apart from the others; all of it where there is only one."""
    differing = [at for at in range(len(Arm._fields)) if len({each[at] for each in arms}) > 1]
    return ", ".join(filter(None, (arm[at] for at in differing))) or f"searched ({', '.join(filter(None, arm))})"


def _met_line(tone: int, name: str, rows: Sequence[SavingsRow]) -> ChartLine:
    told = [(row["tools"], row["success"], _ends(row["success low"], row["success high"])) for row in rows]
    return _line(tone, name, told)


def _price_line(tone: int, name: str, rows: Sequence[SavingsRow], start: str = "") -> ChartLine:
    if start:
        return _line(tone, name, [(row["tools"], row["static cost a met request"], None) for row in rows])
    told = [
        (
            row["tools"],
            row["cost a met request"],
            _ends(row["cost a met request low"], row["cost a met request high"]),
        )
        for row in rows
    ]
    return _line(tone, name, told)


def _line(tone: int, name: str, told: Sequence[tuple[int, float | None, Ends]]) -> ChartLine:
    """A line through the values that are known."""
    known = [(tools, value, ends) for tools, value, ends in told if value is not None]
    points = tuple((float(tools), value) for tools, value, _ in known)
    return ChartLine(name, points, tone, tuple(ends for *_, ends in known))


def _ends(low: float | None, high: float | None) -> Ends:
    return None if low is None or high is None else (low, high)


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
