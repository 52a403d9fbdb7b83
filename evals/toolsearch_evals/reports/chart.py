"""A line chart as data and as hand-written SVG, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Chart", "ChartLine", "svg"]

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 46
LETTER = 6.4  # mean width of a letter of 12 pixels, not too small


@dataclass(frozen=True, slots=True)
class ChartLine:
    """Points in the order of x; `tone` 0 is the plain grey of what others are compared with."""

    name: str
    points: tuple[tuple[float, float], ...]
    tone: int


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over one x axis; `marks` are places on it that a dashed line marks, with their labels."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[ChartLine, ...]
    marks: tuple[tuple[float, str], ...] = ()


def svg(chart: Chart) -> str:
    """The chart as an SVG element. Its colours are custom properties of the page; each point has a title."""
    xs = [x for line in chart.lines for x, _ in line.points]
    ys = [y for line in chart.lines for _, y in line.points if y > 0]
    across = _Scale(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    up = _Scale(min(ys), max(ys), HEIGHT - BOTTOM, TOP, round_off=True)
    parts = [_grid(chart, across, up, sorted(set(xs)))]
    parts += [_mark(at, label, across, row) for row, (at, label) in enumerate(chart.marks)]
    parts += [_line(line, across, up) for line in chart.lines]
    label = f"{chart.title}: {chart.y_label} against {chart.x_label}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
        f'<p class="legend">{"".join(_legend(line) for line in chart.lines)}</p>'
    )


class _Scale:
    """Maps values to positions by their logarithm."""

    def __init__(self, low: float, high: float, begin: float, end: float, *, round_off: bool = False) -> None:
        if round_off:
            low, high = max(t for t in _steps(low) if t <= low), min(t for t in _steps(high) if t >= high)
        self.low, self.high = low, high if high > low else low * 2
        self._begin, self._end = begin, end

    def __call__(self, value: float) -> float:
        share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return round(self._begin + share * (self._end - self._begin), 1)

    def ticks(self) -> list[float]:
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        return [m * 10.0**d for d in decades for m in (1, 2, 5) if self.low <= m * 10.0**d <= self.high]


def _steps(near: float) -> list[float]:
    decade = 10.0 ** math.floor(math.log10(near))
    return [m * decade for m in (1, 2, 5, 10)]


def _grid(chart: Chart, across: _Scale, up: _Scale, xs: Sequence[float]) -> str:
    parts = []
    for tick in up.ticks():
        y = up(tick)
        parts.append(f'<path class="grid" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{_short(tick)}</text>')
    free = -math.inf
    for x in xs:
        if across(x) - free >= 30:
            free = across(x)
            parts.append(f'<text x="{free}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:,.0f}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(chart.x_label)}</text>')
    return "".join(parts)


def _mark(at: float, label: str, across: _Scale, row: int) -> str:
    x = across(at)
    y = TOP + 12 + 16 * row
    # The first label goes to the left of its line, where no other line crosses it; all go where they have room.
    width = 6 + LETTER * len(label)
    before = x - width > LEFT if row == 0 else x + width > WIDTH
    side = f'x="{x - 6}" text-anchor="end"' if before else f'x="{x + 6}"'
    return (
        f'<path class="mark" d="M{x} {TOP}V{HEIGHT - BOTTOM}"/><text class="told" {side} y="{y}">{escape(label)}</text>'
    )


def _line(line: ChartLine, across: _Scale, up: _Scale) -> str:
    places = [(across(x), up(y)) for x, y in line.points]
    path = "L".join(f"{x} {y}" for x, y in places)
    circles = "".join(
        f'<circle class="tone{line.tone}" cx="{px}" cy="{py}" r="3.5">'
        f"<title>{escape(line.name)}, {x:,.0f} tools: {y:,.0f} tokens</title></circle>"
        for (px, py), (x, y) in zip(places, line.points, strict=True)
    )
    return f'<path class="line tone{line.tone}" d="M{path}"/>{circles}'


def _legend(line: ChartLine) -> str:
    return f'<span><i class="tone{line.tone}"></i>{escape(line.name)}</span>'


def _short(value: float) -> str:
    return f"{value / 1_000:g}k" if value >= 1_000 else f"{value:g}"
