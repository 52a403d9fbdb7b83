"""Draws docs/images/savings.svg again: the tokens of `toolsearch eval demo`, as a picture that stands alone."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from toolsearch_evals.cli.demo import PLAN
from toolsearch_evals.data.cases import Dataset, load
from toolsearch_evals.reports.chart import HEIGHT, WIDTH, Chart, legend_sample, svg
from toolsearch_evals.savings.report import savings_report
from toolsearch_evals.savings.sweep import sweep

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "savings.svg"
ABOVE = 68  # the height of title and legend
NAMES = ("every tool sent with each request", "tools searched for (toolsearch)")
# An opaque sheet of its own, so it can be read on a page of any colour.
STYLE = """
svg{--paper:#fff;--ink:#1b1f24;--soft:#5b6470;--rule:#dde1e6;--t0:#78808a;--t1:#1f6feb}
@media(prefers-color-scheme:dark){svg{--paper:#14171b;--ink:#e6e9ed;--soft:#9aa4b0;--rule:#30363d;--t0:#98a1ab;--t1:#6ea8fe}}
.paper{fill:var(--paper);stroke:var(--rule)}
text{fill:var(--soft);font:13px system-ui,sans-serif}
.name{font-size:12px}
.title{fill:var(--ink);font-size:15px;font-weight:600}
.told{fill:var(--ink);stroke:var(--paper);stroke-width:4px;paint-order:stroke}
.grid{stroke:var(--rule);fill:none}
.mark{stroke:var(--ink);stroke-dasharray:4 4;fill:none;opacity:.6}
.cursor{display:none}
.line{fill:none;stroke-width:2.5}
.line.tone0{stroke:var(--t0);stroke-dasharray:7 4}.line.tone1{stroke:var(--t1)}
.dot.tone0{fill:var(--t0)}.dot.tone1{fill:var(--t1)}
"""


def savings_chart() -> Chart:
    """What `toolsearch eval demo` measures, of which the picture shows sending every tool and searching."""
    plan = replace(PLAN, modes=("append",))
    dataset: Dataset = load("commons")[0]
    charts = savings_report(sweep(dataset, dataset.cases, plan), plan, dataset, "all").charts
    chart = next(chart for chart in charts if chart.title.startswith("Tokens of a conversation"))
    lines = tuple(replace(line, name=name) for line, name in zip(chart.lines, NAMES, strict=True))
    return replace(chart, title="Tokens of a conversation of three turns", lines=lines)


def picture(chart: Chart) -> str:
    """The chart as a whole SVG file, with its colours, a title and a legend."""
    drawing = svg(chart).partition("</svg>")[0].partition(">")[2]
    label = f"{chart.title}, against the number of tools in the catalog"
    legend = "".join(
        f'<g transform="translate({x} -24)">{legend_sample(line)}'
        f'<text class="name" x="38" y="12">{line.name}</text></g>'
        for line, x in zip(chart.lines, (20, 272), strict=True)
    )
    whole = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-ABOVE} {WIDTH} {HEIGHT + ABOVE}" width="{WIDTH}" '
        f'height="{HEIGHT + ABOVE}" role="img" aria-label="{label}"><style>{STYLE}</style>'
        f'<rect class="paper" x=".5" y="{0.5 - ABOVE}" width="{WIDTH - 1}" height="{HEIGHT + ABOVE - 1}" rx="8"/>'
        f'<text class="title" x="20" y="-40">{chart.title}</text>{legend}{drawing}</svg>\n'
    )
    ElementTree.fromstring(whole)  # raises for what is not well-formed
    return whole.replace("><", ">\n<")


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(savings_chart()), "utf-8")
