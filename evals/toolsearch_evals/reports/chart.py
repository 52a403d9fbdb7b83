"""A line chart as data and as hand-written SVG, with even or with logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from toolsearch_evals.reports.axes import Axis, Scale, tick_text
from toolsearch_evals.reports.values import Unit, plain, shown

__all__ = ["TONES", "Chart", "ChartLine", "legend", "legend_sample", "svg"]

WIDTH, HEIGHT = 520, 340
LEFT, RIGHT, TOP, BOTTOM = 60, 16, 16, 46
LETTER = 7.4  # mean width of a letter of 13 pixels, not too small
BETWEEN = 46  # the least distance of two labels of the x axis
DOT = 4.2
TONES = 6  # of lines, each with a colour, a dash and a shape of its own
_SHAPES = ("circle", "circle", "square", "triangle", "diamond", "cross")


@dataclass(frozen=True, slots=True)
class ChartLine:
    """Points in the order of x; `tone` 0 is the plain grey of what others are compared with.

    `intervals` are low and high ends, one for each point, or None where there is none.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    tone: int
    intervals: tuple[tuple[float, float] | None, ...] = ()

    def interval(self, at: int) -> tuple[float, float] | None:
        return self.intervals[at] if at < len(self.intervals) else None


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over one x axis; `marks` are places on it that a dashed line marks, with their labels.

    `unit` is that of the values, `x_unit` what x counts. A page shows charts that differ in a `choices` value one at a
    time, and lets the reader choose: (("wire", "anthropic"),). It offers both `scales`; a share is even on the y axis.
    """

    title: str
    x_label: str
    y_label: str
    lines: tuple[ChartLine, ...]
    marks: tuple[tuple[float, str], ...] = ()
    unit: Unit = "count"
    x_unit: str = "tools"
    choices: tuple[tuple[str, str], ...] = ()
    scales: tuple[Scale, ...] = ("log",)

    def rows(self) -> list[list[str]]:
        """The values as a table: a row for each x, and in it a cell for each line."""
        values = {
            (x, at): told(self, line, place)
            for at, line in enumerate(self.lines)
            for place, (x, _) in enumerate(line.points)
        }
        xs = sorted({x for x, _ in values})
        return [[plain(x), *(values.get((x, at), "–") for at in range(len(self.lines)))] for x in xs]


def told(chart: Chart, line: ChartLine, place: int) -> str:
    """A value of a line in words, with its interval if it has one."""
    ends = line.interval(place)
    spread = f" ({shown(ends[0], chart.unit)} to {shown(ends[1], chart.unit)})" if ends else ""
    return f"{shown(line.points[place][1], chart.unit)}{spread}"


def svg(chart: Chart, scale: Scale | None = None, *, has_titles: bool = True) -> str:
    """The chart as an SVG element, by its first scale if none is given.

    Its colours are custom properties of the page, and each point has a title. A share begins at 0, or below if it must.
    """
    scale = scale or chart.scales[0]
    across = Axis(scale, *_range([x for line in chart.lines for x, _ in line.points]), LEFT, WIDTH - RIGHT - 6)
    up = _upwards(chart, scale)
    xs = sorted({x for line in chart.lines for x, _ in line.points})
    parts = [_grid(chart, across, up, xs, scale)]
    parts += [_mark(at, label, across, row) for row, (at, label) in enumerate(chart.marks)]
    parts.append(f'<path class="cursor" d="M0 {TOP}V{HEIGHT - BOTTOM}"/>')
    parts += [_line(chart, line, across, up, has_titles=has_titles) for line in chart.lines]
    label = f"{chart.title}: {chart.y_label} against {chart.x_label}"
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def legend(lines: Sequence[ChartLine]) -> str:
    """The names of the lines, each beside its dash and shape."""
    return f'<p class="legend">{"".join(map(_legend, lines))}</p>'


def _range(values: Sequence[float]) -> tuple[float, float]:
    return min(values, default=1), max(values, default=1)


def _upwards(chart: Chart, scale: Scale) -> Axis:
    ends = [end for line in chart.lines for pair in line.intervals if pair for end in pair]
    values = [y for line in chart.lines for _, y in line.points] + ends
    if scale == "log" and chart.unit != "share":
        return Axis("log", *_range([y for y in values if y > 0]), HEIGHT - BOTTOM, TOP, is_rounded=True)
    low, high = _range(values)
    high = max(high, 1.0) if chart.unit == "share" else high
    return Axis("linear", min(0, low), high, HEIGHT - BOTTOM, TOP, is_rounded=True)


def _grid(chart: Chart, across: Axis, up: Axis, xs: Sequence[float], scale: Scale) -> str:
    parts = []
    for tick in up.ticks():
        y = up(tick)
        name = "grid zero" if tick == 0 else "grid"
        parts.append(f'<path class="{name}" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{tick_text(tick, chart.unit)}</text>')
    free = -math.inf
    for x in xs if scale == "log" else across.ticks():
        if across(x) - free >= BETWEEN:
            free = across(x)
            parts.append(f'<text x="{free}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{plain(x)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(chart.x_label)}</text>')
    return "".join(parts)


def _mark(at: float, label: str, across: Axis, row: int) -> str:
    x = across(at)
    y = TOP + 12 + 16 * row
    # The first label goes to the left of its line, where no other line crosses it; all go where they have room.
    width = 6 + LETTER * len(label)
    before = x - width > LEFT if row == 0 else x + width > WIDTH
    side = f'x="{x - 6}" text-anchor="end"' if before else f'x="{x + 6}"'
    return (
        f'<path class="mark" d="M{x} {TOP}V{HEIGHT - BOTTOM}"/><text class="told" {side} y="{y}">{escape(label)}</text>'
    )


def _line(chart: Chart, line: ChartLine, across: Axis, up: Axis, *, has_titles: bool) -> str:
    tone = line.tone % TONES
    places = [(across(x), up(y)) for x, y in line.points]
    path = "L".join(f"{x} {y}" for x, y in places)
    spread = "".join(
        f"M{x} {up(ends[0])}V{up(ends[1])}" for at, (x, _) in enumerate(places) if (ends := line.interval(at))
    )
    whiskers = f'<path class="spread tone{tone}" d="{spread}"/>' if spread else ""
    dots = "".join(
        _dot(tone, px, py, f"{plain(x)} {chart.x_unit}\n{line.name}: {told(chart, line, at)}" if has_titles else "")
        for at, ((px, py), (x, _)) in enumerate(zip(places, line.points, strict=True))
    )
    return f'<path class="line tone{tone}" d="M{path}"/>{whiskers}{dots}' if places else ""


def _dot(tone: int, x: float, y: float, title: str) -> str:
    named = f"<title>{escape(title)}</title>" if title else ""
    return f'<path class="dot tone{tone}" data-x="{x}" d="{_outline(tone, x, y)}">{named}</path>'


def _outline(tone: int, x: float, y: float) -> str:
    """The shape of a tone around a place, as the data of a path."""
    r = DOT
    match _SHAPES[tone]:
        case "square":
            return f"M{x - r:g} {y - r:g}h{2 * r}v{2 * r}h{-2 * r}z"
        case "triangle":
            return f"M{x:g} {y - r * 1.2:g}l{r * 1.2:g} {r * 2.1:g}h{-2.4 * r:g}z"
        case "diamond":
            return f"M{x:g} {y - r * 1.4:g}l{r * 1.2:g} {r * 1.4:g}l{-r * 1.2:g} {r * 1.4:g}l{-r * 1.2:g} {-r * 1.4:g}z"
        case "cross":
            t = r * 0.45
            side = r - t
            return (
                f"M{x - t:g} {y - r:g}h{2 * t:g}v{side:g}h{side:g}v{2 * t:g}h{-side:g}v{side:g}"
                f"h{-2 * t:g}v{-side:g}h{-side:g}v{-2 * t:g}h{side:g}z"
            )
        case _:
            return f"M{x - r:g} {y:g}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z"


def _legend(line: ChartLine) -> str:
    sample = f'<svg class="sample" viewBox="0 0 32 16" aria-hidden="true">{legend_sample(line)}</svg>'
    return f"<span>{sample}{escape(line.name)}</span>"


def legend_sample(line: ChartLine) -> str:
    """The dash and the shape of a line, 32 wide and 16 high."""
    tone = line.tone % TONES
    return f'<path class="line tone{tone}" d="M0 8H32"/><path class="dot tone{tone}" d="{_outline(tone, 16, 8)}"/>'
