"""A report as one self-contained HTML page: nothing to load, light and dark, for a phone and for paper.

Everything can be read with scripts off. The only script that may run is the page's own: its hash is in the page's
Content-Security-Policy, which forbids everything else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources

from toolsearch_evals.reports.report import Card, Report
from toolsearch_evals.reports.sections import Space, case_section, chart_section, table_section, with_code
from toolsearch_evals.reports.values import described

__all__ = ["Inset", "asset", "head", "page"]

MOST = 480_000  # bytes of a page
CHARTS = 300_000  # of these, for charts; the tables have the same figures


@dataclass(frozen=True, slots=True)
class Inset:
    """A part of a page that a script of its own draws, after the charts: its heading, its place, its pieces.

    `html` is put in as it is. The script finds `data` as JSON in the element `#data`.
    """

    title: str
    place: str
    html: str
    style: str
    script: str
    data: object = None


def page(report: Report, inset: Inset | None = None) -> str:
    """The whole page. Everything in it is escaped, and what has no room is said to be left out.

    It has less than 500 kB without the data of an inset.
    """
    styles, scripts = [asset("page.css")], [asset("page.js")]
    if inset is not None:
        styles.append(inset.style)
        scripts.append(inset.script)
    data = "" if inset is None else f'<script type="application/json" id="data">{_inert(inset.data)}</script>'
    whole = (
        f"{head(report.title, styles, scripts)}"
        f'<body><a class="skip" href="#content">Skip to the content</a>\n{_main(report, inset)}\n{data}'
        f"{''.join(f'<script>{script}</script>' for script in scripts)}</body></html>\n"
    )
    return whole.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate cannot be written


def head(title: str, styles: Sequence[str], scripts: Sequence[str], more: str = "") -> str:
    """The beginning of a page with these styles, on which only these scripts run; its policy allows `more` too."""
    policy = (
        f"default-src 'none'; style-src {' '.join(map(_hash, styles))}; script-src {' '.join(map(_hash, scripts))}; "
        f"{more}base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>{''.join(f'<style>{style}</style>' for style in styles)}</head>"
    )


def _inert(data: object) -> str:
    """A value as JSON that no text in it can leave: there is no tag in it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _main(report: Report, inset: Inset | None) -> str:
    space = Space(MOST - len(asset("page.css")) - len(asset("page.js")))
    opening = [
        f"<h1>{escape(report.title)}</h1>",
        f'<p class="about">{escape(_about(report))}</p>',
        _cards(report.cards),
    ]
    opening += [f'<p class="lead">{escape(sentence)}</p>' for sentence in report.headline]
    closing = [
        _section("measured", "How it was measured", _list(report.measured)),
        _section("limits", "What it does not show", _list(report.limits)),
        (
            f"<footer>{escape(report.when)} · {escape(described(report.environment))}<br>"
            f"{escape(described(report.parameters))}</footer>"
        ),
    ]
    for text in (*opening, *closing):
        space.use(text)
    charts = chart_section(report.charts, report.waterfalls, space.part(CHARTS))
    tables = [table_section(table, f"table-{at}", space) for at, table in enumerate(report.tables, 1)]
    cases = [case_section(each, f"cases-{at}", space) for at, each in enumerate(report.cases, 1)]
    links = [(f"table-{at}", table.title) for at, table in enumerate(report.tables, 1)]
    links += [(f"cases-{at}", each.title) for at, each in enumerate(report.cases, 1)]
    links += [("measured", "How it was measured"), ("limits", "What it does not show")]
    drawn = ""
    if inset is not None:
        links.insert(0, (inset.place, inset.title))
        drawn = f'<section><h2 id="{inset.place}">{escape(inset.title)}</h2>{inset.html}</section>'
    body = [*opening, _contents(links), charts, drawn, *tables, *cases, *closing]
    return f'<main id="content">\n{_lines(body)}\n</main>'


def _about(report: Report) -> str:
    return f"{report.when[:10]} · toolsearch {report.environment.get('toolsearch', '')}"


def _cards(cards: Sequence[Card]) -> str:
    each = (
        f'<div class="card"><dt>{escape(card.label)}</dt><dd class="value">{escape(card.value)}</dd>'
        f'<dd class="sure">{escape(card.note)}</dd></div>'
        for card in cards
    )
    return f'<dl class="cards">{"".join(each)}</dl>' if cards else ""


def _contents(links: Sequence[tuple[str, str]]) -> str:
    each = "".join(f'<li><a href="#{place}">{escape(title)}</a></li>' for place, title in links)
    return f'<nav aria-label="On this page"><ul>{each}</ul></nav>'


def _section(place: str, title: str, inner: str) -> str:
    return f'<section class="measured"><h2 id="{place}">{title}</h2>{inner}</section>'


def _list(lines: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{with_code(line)}</li>' for line in lines)}</ul>"


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(filter(None, parts))


@cache
def asset(name: str) -> str:
    """A file of this package."""
    return resources.files("toolsearch_evals.reports").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """What a Content-Security-Policy calls an inline text."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
