"""The sections of a report page: charts with their switches, tables, and folded cases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from toolsearch_evals.reports.chart import Chart, legend, svg
from toolsearch_evals.reports.report import Detail, Details, ReportTable, Said
from toolsearch_evals.reports.values import counted
from toolsearch_evals.reports.waterfall import Waterfall, waterfall_svg

__all__ = ["Space", "case_section", "chart_section", "table_section", "with_code"]

LONG = 40  # characters of a text, from which on it may take several lines
LONGEST = 600  # characters of a cell
LONGEST_SAID = 4_000  # characters of a piece of a conversation
TALL = 20  # rows, from which on a table scrolls in itself
_CODE = re.compile(r"`([^`]+)`")
Choices = Sequence[tuple[str, Sequence[str]]]  # a key and its values


class Space:
    """How many bytes of a page are free."""

    def __init__(self, free: int) -> None:
        self._free = free
        self._from: Space | None = None

    def part(self, most: int) -> Space:
        """A space within this one; what is used of it is used of both."""
        made = Space(min(most, self._free))
        made._from = self
        return made

    def use(self, text: str) -> bool:
        """Takes the room of a text, if there is enough."""
        size = len(text.encode("utf-8", "replace"))
        if size > self._free or (self._from is not None and not self._from.use(text)):
            return False
        self._free -= size
        return True


# -- charts --------------------------------------------------------------------------------------------------------


def chart_section(charts: Sequence[Chart], waterfalls: Sequence[Waterfall], space: Space) -> str:
    """All charts, and a switch for each choice that they differ in. Without a script, all are shown."""
    choices = _choices(charts, waterfalls)
    falls = [_waterfall(each, choices) for each in waterfalls]
    fitting = [figure for figure in falls if space.use(figure)]  # first, as there is no table of them
    made = [*(_chart(chart, choices) for chart in charts), *falls]
    kept = [*(figure for figure in made[: len(charts)] if space.use(figure)), *fitting]
    if not kept:
        return ""
    missing = len(made) - len(kept)
    note = f"{counted(missing, 'chart')} more would make the page too large; the tables have the figures."
    return (
        f'<section class="charts"><h2 class="sr">Charts</h2>{_switches(choices)}'
        f'<div class="grid-of-charts">{"".join(kept)}</div>{_note(note if missing else "")}</section>'
    )


def _choices(charts: Sequence[Chart], waterfalls: Sequence[Waterfall]) -> Choices:
    found: dict[str, dict[str, None]] = {}
    for choices in (*(each.choices for each in charts), *(each.choices for each in waterfalls)):
        for key, value in choices:
            found.setdefault(key, {})[value] = None
    for chart in charts:
        if len(chart.scales) > 1:
            found.setdefault("scale", {}).update(dict.fromkeys(chart.scales))
    return [(key, tuple(values)) for key, values in found.items() if len(values) > 1]


def _switches(choices: Choices) -> str:
    """Radio buttons; they stay hidden without the script that they need."""
    sets = []
    for at, (key, values) in enumerate(choices):
        buttons = "".join(
            f'<label><input type="radio" name="choice-{at}" data-key="{at}" value="{escape(value)}"'
            f"{' checked' if value == values[0] else ''}>{escape(value)}</label>"
            for value in values
        )
        sets.append(f"<fieldset><legend>{escape(key)}</legend>{buttons}</fieldset>")
    return f'<div class="switches" hidden>{"".join(sets)}</div>' if sets else ""


def _which(of: Sequence[tuple[str, str]], choices: Choices) -> tuple[str, str]:
    """The attributes by which a part is switched, and its choices in words."""
    keys = [key for key, _ in choices]
    mine = [(keys.index(key), value) for key, value in of if key in keys]
    attributes = " data-c" + "".join(f' data-c{at}="{escape(value)}"' for at, value in mine) if mine else ""
    named = [f"{value} {keys[at]}" if value.replace(".", "").isdigit() else value for at, value in mine]
    return attributes, ", ".join(named)


def _chart(chart: Chart, choices: Choices) -> str:
    plots: list[str] = []
    for scale in chart.scales:
        attributes, _ = _which((("scale", scale),), choices)
        plots.append(f'<div class="plot"{attributes}>{svg(chart, scale, has_titles=not plots)}</div>')
    values = _values(chart.title, [chart.x_unit, *(line.name for line in chart.lines)], chart.rows())
    return _figure(chart, choices, f"{''.join(plots)}{legend(chart.lines)}{values}")


def _waterfall(of: Waterfall, choices: Choices) -> str:
    keys = "".join(
        f'<span><svg class="sample" viewBox="0 0 32 16" aria-hidden="true">'
        f'<rect class="bar kind{at}" x="4" y="2" width="24" height="12"/></svg>{escape(kind)}</span>'
        for at, kind in enumerate(of.split)
    )
    values = _values(of.title, ["", *of.split, "together"], of.rows())
    return _figure(of, choices, f'{waterfall_svg(of)}<p class="legend">{keys}</p>{values}')


def _values(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """What a drawing shows, as a folded table."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        '<details class="values"><summary>Values</summary><div class="scroll" tabindex="0"><table>'
        f'<caption class="sr">{escape(title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details>"
    )


def _figure(of: Chart | Waterfall, choices: Choices, drawing: str) -> str:
    """A drawing under its title."""
    attributes, which = _which(of.choices, choices)
    told = f' <span class="which">{escape(which)}</span>' if which else ""
    return f"<figure{attributes}><figcaption>{escape(of.title)}{told}</figcaption>{drawing}</figure>"


# -- tables --------------------------------------------------------------------------------------------------------


def table_section(table: ReportTable, place: str, space: Space) -> str:
    """A table under its heading; its last rows are left out where there is no room."""
    kept = table.distinct_columns()
    units = [table.columns[at].unit for at in kept]
    head = "".join(
        f'<th scope="col"{_side(table.columns[at].unit)}>{escape(table.columns[at].head)}</th>' for at in kept
    )
    rows: list[str] = []
    for cells in table.cells():
        tds = (f"<td{_side(u, cells[at])}>{escape(_cut(cells[at]))}</td>" for u, at in zip(units, kept, strict=True))
        row = f"<tr>{''.join(tds)}</tr>"
        if not space.use(row):
            break
        rows.append(row)
    missing = len(table.rows) - len(rows)
    left_out = (
        f"{counted(missing, 'more row')} would make the page too large; the JSON form has all." if missing else ""
    )
    title = escape(table.full_title)
    tall = " tall" if len(rows) > TALL else ""
    return (
        f'<section><h2 id="{place}">{title}</h2>'
        f'<div class="scroll of-report{tall}" role="region" aria-labelledby="{place}" tabindex="0"><table>'
        f'<caption class="sr">{title}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{_note(left_out)}{_note(table.note)}</section>"
    )


def _side(unit: str, cell: str = "") -> str:
    text = "text long" if len(cell) > LONG else "text"
    name = text if unit == "text" else "loss" if cell.startswith("−") else ""
    return f' class="{name}"' if name else ""


# -- cases ---------------------------------------------------------------------------------------------------------


def case_section(details: Details, place: str, space: Space) -> str:
    """Cases under a heading, each folded; the last are left out where there is no room."""
    kept: list[str] = []
    for each in details.each:
        case = _case(each)
        if not space.use(case):
            break
        kept.append(case)
    missing = len(details.each) - len(kept)
    left_out = f"{counted(missing, 'more case')} would make the page too large." if missing else ""
    return (
        f'<section><h2 id="{place}">{escape(details.title)}</h2>{_note(details.note)}'
        f"{''.join(kept)}{_note(left_out)}</section>"
    )


def _case(detail: Detail) -> str:
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(_cut(value))}</dd>" for name, value in detail.facts)
    listed = f"<dl>{facts}</dl>" if facts else ""
    talk = f'<ol class="talk">{"".join(map(_said, detail.said))}</ol>' if detail.said else ""
    return f'<details class="case"><summary>{escape(_cut(detail.title))}</summary>{listed}{talk}</details>'


def _said(said: Said) -> str:
    side = f' class="{said.who}"' if said.who in ("user", "model") else ""
    return f"<li{side}><b>{escape(said.who)}</b><pre>{escape(_cut(said.text, LONGEST_SAID))}</pre></li>"


def _cut(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters)"


def _note(text: str) -> str:
    return f'<p class="note">{with_code(text)}</p>' if text else ""


def with_code(line: str) -> str:
    """A line escaped, in which `code` is code."""
    return _CODE.sub(r"<code>\1</code>", escape(line))
