"""The charts of a report on savings: what is saved and what is met, by number of tools, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from toolsearch_evals.reports.axes import Scale
from toolsearch_evals.reports.chart import Chart, ChartLine
from toolsearch_evals.savings.break_even import BreakEven
from toolsearch_evals.savings.plan import Arm
from toolsearch_evals.savings.rows import SavingsRow, arm_of
from toolsearch_evals.savings.sweep import SweepResult

__all__ = ["savings_charts"]

X = "tools in the catalog"
# What a page lets the reader choose, where several were played or assumed; by its key in the rows.
CHOICES = {"wire": "wire", "turns": "turns", "locality": "locality", "cache": "cache", "profile": "prices"}
Marks = tuple[tuple[float, str], ...]
Ends = tuple[float, float] | None
Choice = tuple[tuple[str, str], ...]
BOTH: tuple[Scale, ...] = ("log", "linear")


def savings_charts(swept: SweepResult) -> tuple[Chart, ...]:
    """Of each wire, and of whatever else a reader can choose: what is saved and what is met, side by side; the tokens,
    and the price of a met request."""
    groups: dict[Choice, list[SavingsRow]] = {}
    for row in swept.rows:
        groups.setdefault(_choice(row), []).append(row)
    evens: dict[Choice, list[BreakEven]] = {}
    for even in swept.break_evens:
        if even.static_success == swept.break_evens[0].static_success:
            evens.setdefault(_choice(asdict(even)), []).append(even)
    return tuple(chart for choice, rows in groups.items() for chart in _charts(swept, choice, rows, evens[choice]))


def _choice(of: Mapping[str, object]) -> Choice:
    return tuple((name, f"{of[key]}") for key, name in CHOICES.items() if key in of)


def _charts(
    swept: SweepResult, choice: Choice, rows: Sequence[SavingsRow], even: Sequence[BreakEven]
) -> tuple[Chart, ...]:
    arms = list(dict.fromkeys(map(arm_of, rows)))
    mine = [(tone, _name(arm, arms), [row for row in rows if arm_of(row) == arm]) for tone, arm in enumerate(arms, 1)]
    counted_by = swept.tokenizers[rows[0]["wire"]].partition(":")[0]
    saved = Chart(
        f"Tokens saved ({counted_by})",
        X,
        "share of the tokens saved",
        tuple(_line(tone, name, of, "saving") for tone, name, of in mine),
        _marks([(each.tokens, each.arm) for each in even], arms),
        unit="share",
        choices=choice,
        scales=BOTH,
    )
    met = Chart(
        "Requests met: the right tools were called",
        X,
        "share of the requests met",
        tuple(_line(tone, name, of, "success") for tone, name, of in mine),
        unit="share",
        choices=choice,
        scales=BOTH,
    )
    tokens = Chart(
        f"Tokens of a conversation ({counted_by})",
        X,
        "tokens",
        _lines(mine, "tokens"),
        saved.marks,
        choices=choice,
        scales=BOTH,
    )
    price = Chart(
        "Price of a request that is met, in new input tokens",
        X,
        "new input tokens",
        _lines(mine, "cost a met request"),
        _marks([(each.met, each.arm) for each in even], arms),
        choices=choice,
        scales=BOTH,
    )
    return saved, met, tokens, price


def _name(arm: Arm, arms: Sequence[Arm]) -> str:
    """What sets an arm apart from the others; all of it where there is only one."""
    differing = [at for at in range(len(Arm._fields)) if len({each[at] for each in arms}) > 1]
    return ", ".join(filter(None, (arm[at] for at in differing))) or f"searched ({', '.join(filter(None, arm))})"


def _lines(mine: Sequence[tuple[int, str, Sequence[SavingsRow]]], key: str) -> tuple[ChartLine, ...]:
    """A line of all tools sent, and one for each arm."""
    return (
        _line(0, "all tools sent", mine[0][2], f"static {key}"),
        *(_line(tone, name, of, key) for tone, name, of in mine),
    )


def _line(tone: int, name: str, rows: Sequence[SavingsRow], key: str) -> ChartLine:
    """A line through what is known of a figure, with its interval where there is one."""
    known = [dict(row) for row in rows if dict(row)[key] is not None]
    points = tuple((_number(row["tools"]), _number(row[key])) for row in known)
    return ChartLine(name, points, tone, tuple(_ends(row.get(f"{key} low"), row.get(f"{key} high")) for row in known))


def _ends(low: object, high: object) -> Ends:
    return None if low is None or high is None else (_number(low), _number(high))


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


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
