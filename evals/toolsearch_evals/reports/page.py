"""A report as one self-contained HTML page: no script, nothing to load, light and dark, also for a phone."""

from __future__ import annotations

import re
from html import escape

from toolsearch_evals.reports.chart import svg
from toolsearch_evals.reports.report import Report, ReportTable, described

__all__ = ["page"]

LONG = 40  # characters of a text, from which on it may take several lines

_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--soft:#5b6470;--rule:#dde1e6;--wash:#f5f7f9;
--t0:#8a929c;--t1:#1f6feb;--t2:#d1570a;--t3:#1a7f4b;--t4:#8b3fc4;--t5:#b0203c}
@media(prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e6e9ed;--soft:#9aa4b0;--rule:#30363d;--wash:#1c2127;
--t0:#8a929c;--t1:#6ea8fe;--t2:#ff9a52;--t3:#5fcf8f;--t4:#c792ea;--t5:#ff7b90}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,sans-serif}
main{max-width:72rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0 1rem}
h2{font-size:1.2rem;margin:2.5rem 0 .75rem}
.lead{font-size:1.1rem;max-width:52rem;margin:0 0 .75rem}
.lead:first-of-type{font-size:1.3rem;line-height:1.4}
.note,footer,li{color:var(--soft);max-width:52rem}
li{margin:.35rem 0}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1.5rem}
figure{margin:0;min-width:0}
figcaption{font-weight:600;margin-bottom:.25rem}
svg{width:100%;height:auto;display:block}
svg text{fill:var(--soft);font-size:12px}
svg .told{fill:var(--ink);stroke:var(--paper);stroke-width:4px;paint-order:stroke}
.grid{stroke:var(--rule);fill:none}
.mark{stroke:var(--ink);stroke-dasharray:4 4;fill:none;opacity:.6}
.line{fill:none;stroke-width:2.5}
.legend{margin:.25rem 0 0;font-size:.875rem;color:var(--soft)}
.legend span{margin-right:1rem;white-space:nowrap}
.legend i{display:inline-block;width:.8rem;height:.8rem;border-radius:50%;margin-right:.35rem;vertical-align:-.1rem}
.scroll{overflow-x:auto;border:1px solid var(--rule);border-radius:.5rem}
table{border-collapse:collapse;width:100%;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{padding:.4rem .7rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th{background:var(--wash);vertical-align:bottom;white-space:normal;min-width:4.5rem}
tr:last-child td{border-bottom:0}
.text{text-align:left}
td{vertical-align:top}
.long{white-space:normal;min-width:13rem;overflow-wrap:break-word}
.loss{color:var(--t5)}
footer{margin-top:3rem;padding-top:1rem;border-top:1px solid var(--rule);
font-size:.8rem;overflow-wrap:anywhere;max-width:none}
"""
_CODE = re.compile(r"`([^`]+)`")
_TONES = "".join(
    f".line.tone{t}{{stroke:var(--t{t})}}circle.tone{t}{{fill:var(--t{t})}}i.tone{t}{{background:var(--t{t})}}"
    for t in range(6)
)


def page(report: Report) -> str:
    """The whole page. Everything in it is escaped."""
    charts = "".join(f"<figure><figcaption>{escape(c.title)}</figcaption>{svg(c)}</figure>" for c in report.charts)
    body = [
        f"<h1>{escape(report.title)}</h1>",
        *(f'<p class="lead">{escape(sentence)}</p>' for sentence in report.headline),
        f'<div class="charts">{charts}</div>' if charts else "",
        *map(_table, report.tables),
        f"<h2>How it was measured</h2>{_list(report.measured)}",
        f"<h2>What it does not show</h2>{_list(report.limits)}",
        (
            f"<footer>{escape(report.when)} · {escape(described(report.environment))}<br>"
            f"{escape(described(report.parameters))}</footer>"
        ),
    ]
    whole = "\n".join(filter(None, body))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.title)}</title><style>{_STYLE}{_TONES}</style></head>"
        f"<body><main>\n{whole}\n</main></body></html>\n"
    )


def _table(table: ReportTable) -> str:
    kept = table.distinct_columns()
    units = [table.columns[at].unit for at in kept]
    head = "".join(f"<th{_side(table.columns[at].unit)}>{escape(table.columns[at].head)}</th>" for at in kept)
    rows = []
    for cells in table.cells():
        tds = (f"<td{_side(u, cells[at])}>{escape(cells[at])}</td>" for u, at in zip(units, kept, strict=True))
        rows.append(f"<tr>{''.join(tds)}</tr>")
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<h2>{escape(table.full_title)}</h2><div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{note}"
    )


def _side(unit: str, cell: str = "") -> str:
    text = "text long" if len(cell) > LONG else "text"
    name = text if unit == "text" else "loss" if cell.startswith("−") else ""
    return f' class="{name}"' if name else ""


def _list(lines: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{_with_code(line)}</li>' for line in lines)}</ul>"


def _with_code(line: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(line))
