"""Charts of a report as plots of altair, which a notebook shows as pictures: without a network and without a script."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, overload

from toolsearch import MissingExtra, SetupError
from toolsearch_evals.reports.axes import Scale
from toolsearch_evals.reports.chart import Chart, ChartLine

if TYPE_CHECKING:
    import altair

__all__ = ["Plots", "plots_of"]

WIDTH, HEIGHT = 460, 280
GREY = "#767676"  # of texts, axes and what others are compared with: as clear on white as on black
COLOURS = ("#4c7fd0", "#d0762b", "#3f9a5f", "#b65fb0", "#b08a00")  # of the tones from 1 on
CONFIG = {  # of the pictures; a chart itself has none, so that charts can be put together
    "background": None,
    "view": {"stroke": GREY, "strokeOpacity": 0.2},
    "axis": {"labelColor": GREY, "titleColor": GREY, "gridColor": GREY, "gridOpacity": 0.25, "domainColor": GREY},
    "legend": {"labelColor": GREY, "orient": "bottom", "labelLimit": 400, "columns": 2},
    "title": {"color": GREY, "anchor": "start"},
}
DASHES = ([1, 0], [1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4])


@dataclass(frozen=True)
class Plots(Sequence["altair.LayerChart"]):
    """Plots, each a chart of altair that can be changed, saved and combined. A notebook shows them as pictures."""

    charts: tuple[altair.LayerChart, ...]

    @overload
    def __getitem__(self, at: int) -> altair.LayerChart: ...
    @overload
    def __getitem__(self, at: slice) -> Plots: ...
    def __getitem__(self, at: int | slice) -> altair.LayerChart | Plots:
        return Plots(self.charts[at]) if isinstance(at, slice) else self.charts[at]

    def __len__(self) -> int:
        return len(self.charts)

    def __iter__(self) -> Iterator[altair.LayerChart]:
        return iter(self.charts)

    def __repr__(self) -> str:
        return f"Plots({len(self)})"

    def _repr_html_(self) -> str:
        """Pictures, not markup: whatever a picture holds, nothing in it runs."""
        return "".join(
            f'<img alt="{escape(_title(each))}" src="data:image/svg+xml;base64,{_picture(each)}">' for each in self
        )


def plots_of(charts: Sequence[Chart]) -> Plots:
    """A plot for each chart. Raises `SetupError` if there is none, and `MissingExtra` without altair."""
    if not charts:
        raise SetupError("this report has no charts: those on savings and on learning have some")
    for module, package in (("altair", "altair"), ("vl_convert", "vl-convert-python")):  # the second draws pictures
        if find_spec(module) is None:
            raise MissingExtra("plots()", package, "plots")
    return Plots(tuple(_plot(chart) for chart in charts))


def _plot(chart: Chart) -> altair.LayerChart:
    import altair as alt

    share = chart.unit == "share"
    number = ".0%" if share else "~s" if chart.unit == "count" else ""
    scale = chart.scales[0]
    up: Scale = "linear" if share or _has_none_above_0(chart) else scale
    x = alt.X("x:Q", title=chart.x_label, scale=alt.Scale(type=scale, nice=False), axis=alt.Axis(labelOverlap=True))
    y = alt.Y("y:Q", title=chart.y_label, scale=alt.Scale(type=up), axis=alt.Axis(format=number))
    names = [line.name for line in chart.lines]
    tones = [line.tone for line in chart.lines]
    colours = [GREY if tone == 0 else COLOURS[(tone - 1) % len(COLOURS)] for tone in tones]
    shown = alt.Chart(alt.InlineData(values=_values(chart))).encode(
        x=x,
        color=alt.Color("line:N", title=None, sort=names, scale=alt.Scale(domain=names, range=colours)),
    )
    lines = shown.mark_line(point=True).encode(
        y=y,
        strokeDash=alt.StrokeDash(
            "line:N",
            title=None,
            sort=names,
            scale=alt.Scale(domain=names, range=[DASHES[t % len(DASHES)] for t in tones]),
        ),
        tooltip=[alt.Tooltip("line:N"), alt.Tooltip("x:Q", title=chart.x_unit), alt.Tooltip("y:Q", format=number)],
    )
    spread = shown.mark_rule(opacity=0.6).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    layers = [lines, *([spread] if _has_intervals(chart) else [])]
    for row, (at, label) in enumerate(chart.marks):
        layers += _mark(at, label, row, is_right=_is_right(chart, at))
    return alt.LayerChart(layer=layers, title=_chart_title(chart), width=WIDTH, height=HEIGHT)


def _mark(at: float, label: str, row: int, *, is_right: bool) -> list[altair.Chart]:
    """A dashed line and its label, each label in a row of its own, on the side where it has room."""
    import altair as alt

    mark = alt.Chart(alt.InlineData(values=[{"x": at, "label": label}])).encode(x="x:Q")
    side: Literal["left", "right"] = "right" if is_right else "left"
    text = mark.mark_text(align=side, dx=-4 if is_right else 4, color=GREY).encode(
        text="label:N", y=alt.value(8 + 14 * row)
    )
    return [mark.mark_rule(strokeDash=[4, 4], color=GREY), text]


def _is_right(chart: Chart, at: float) -> bool:
    """Whether a place is in the right half of the x axis."""
    xs = [x for line in chart.lines for x, _ in line.points]
    low, high = min(xs, default=1), max(xs, default=1)
    middle = math.sqrt(low * high) if chart.scales[0] == "log" else (low + high) / 2
    return at > middle


def _values(chart: Chart) -> list[dict[str, object]]:
    return [_value(line, place) for line in chart.lines for place in range(len(line.points))]


def _value(line: ChartLine, place: int) -> dict[str, object]:
    x, y = line.points[place]
    low, high = line.interval(place) or (None, None)
    return {"line": line.name, "x": x, "y": y, "low": low, "high": high}


def _has_intervals(chart: Chart) -> bool:
    return any(each is not None for line in chart.lines for each in line.intervals)


def _has_none_above_0(chart: Chart) -> bool:
    """Whether a value, or the end of an interval, has no place on a logarithmic axis."""
    ends = [end for line in chart.lines for pair in line.intervals if pair for end in pair]
    return any(value <= 0 for value in (*ends, *(y for line in chart.lines for _, y in line.points)))


def _chart_title(chart: Chart) -> str:
    chosen = ", ".join(f"{name} {value}" for name, value in chart.choices)
    return f"{chart.title} ({chosen})" if chosen else chart.title


def _title(plot: altair.LayerChart) -> str:
    return str(plot.title)


def _picture(plot: altair.LayerChart) -> str:
    """The plot as SVG, in Base64. vl-convert draws it in this process."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(plot.to_dict(), config=CONFIG, allowed_base_urls=[])
    return base64.b64encode(svg.encode("utf-8")).decode("ascii")
