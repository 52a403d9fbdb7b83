"""A waterfall as data and as SVG: parts that add up to a whole, each bar beginning where the one before it ended."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from toolsearch_evals.reports.axes import Axis
from toolsearch_evals.reports.values import Unit, shown

__all__ = ["Step", "Waterfall", "waterfall_svg"]

WIDTH, LEFT, ROW, BAR = 520, 186, 34, 18
VALUE = 112  # kept free for the value to the right of the longest bar


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the whole, and how it is split, in the order of the waterfall's `split`."""

    name: str
    values: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.values)


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Steps that add up to `whole`, as a page draws them. `split` names at most two kinds, such as new and cached."""

    title: str
    split: tuple[str, ...]
    steps: tuple[Step, ...]
    whole: str = "in all"
    unit: Unit = "count"
    choices: tuple[tuple[str, str], ...] = ()
    reach: float = 0  # the end of the axis; the whole if that is more. Waterfalls side by side need the same

    def all_steps(self) -> tuple[Step, ...]:
        """The steps, and last the whole."""
        sums = tuple(sum(step.values[at] for step in self.steps) for at in range(len(self.split)))
        return (*self.steps, Step(self.whole, sums))

    def rows(self) -> list[list[str]]:
        """The values as a table: a row for each step."""
        return [[s.name, *(shown(v, self.unit) for v in s.values), shown(s.total, self.unit)] for s in self.all_steps()]


def waterfall_svg(of: Waterfall) -> str:
    """The waterfall as an SVG element. Of a bar, the first kind is full and the second an outline."""
    *steps, whole = of.all_steps()
    across = Axis("linear", 0, max(whole.total, of.reach) or 1, LEFT, WIDTH - VALUE)
    parts, reached = [], 0.0
    for row, step in enumerate(steps):
        parts.append(_bar(of, step, row, reached, across))
        reached += step.total
    parts.append(_bar(of, whole, len(steps), 0, across))
    height = ROW * (len(steps) + 1)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(of.title)}">'
        f'<path class="grid" d="M{LEFT} 0V{height}"/>{"".join(parts)}</svg>'
    )


def _bar(of: Waterfall, step: Step, row: int, begin: float, across: Axis) -> str:
    y = ROW * row + (ROW - BAR) / 2
    parts, at = [], begin
    for kind, value in enumerate(step.values):
        wide = round(across(at + value) - across(at), 1)
        if value > 0:
            title = f"{step.name}, {of.split[kind]}: {shown(value, of.unit)}"
            parts.append(
                f'<rect class="bar kind{kind}" x="{across(at)}" y="{y}" width="{max(wide, 1)}" height="{BAR}">'
                f"<title>{escape(title)}</title></rect>"
            )
        at += value
    middle = y + BAR / 2 + 4.5
    name = f'<text x="{LEFT - 8}" y="{middle}" text-anchor="end">{escape(step.name)}</text>'
    value_text = escape(shown(step.total, of.unit))
    return f'{name}{"".join(parts)}<text class="told" x="{across(at) + 7}" y="{middle}">{value_text}</text>'
