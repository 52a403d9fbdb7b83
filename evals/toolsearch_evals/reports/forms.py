"""The forms of a report: JSON with everything, CSV, Markdown, and one HTML page."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import indent

from toolsearch import SetupError
from toolsearch.support.redaction import visible
from toolsearch_evals.reports.page import page
from toolsearch_evals.reports.report import Details, Report, described

__all__ = ["FORMS", "as_csv", "as_html", "as_json", "as_markdown", "write"]

FORMAT = 1  # of the JSON
_SLASH = "\\"
BEGINNING = 20  # rows of a table of cases


def as_json(report: Report) -> str:
    """Everything the report knows."""
    tables = [{"title": t.title, "note": t.note, "rows": [*t.rows, *t.further]} for t in report.tables]
    whole = {
        "format": FORMAT,
        "kind": report.kind,
        "title": report.title,
        "when": report.when,
        "headline": report.headline,
        "cards": [asdict(card) for card in report.cards],
        "parameters": dict(report.parameters),
        "environment": dict(report.environment),
        "tables": tables,
        "cases": [asdict(each) for each in report.cases],
        **report.data,
        "measured": report.measured,
        "limits": report.limits,
    }
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def as_csv(report: Report) -> str:
    """The rows of the first table, with every key they have. A text that a spreadsheet would run begins with "'"."""
    rows = [*report.tables[0].rows, *report.tables[0].further]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _inert(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _inert(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def as_markdown(report: Report) -> str:
    """The page as text: headline, tables, how it was measured, limits."""
    cards = "\n".join(f"- {_plain(f'{card.label}: {card.value}')}{_bracketed(card.note)}" for card in report.cards)
    parts = [f"# {_plain(report.title)}", *([cards] if cards else []), *map(_plain, report.headline)]
    for table in report.tables:
        cells = table.cells()
        shown = cells[:BEGINNING] if table.of_cases else cells
        lines = [
            _row([column.head for column in table.columns]),
            _row(["---" if column.unit == "text" else "---:" for column in table.columns]),
            *map(_row, shown),
        ]
        more = f"{len(cells) - len(shown):,} more are in the JSON form." if len(shown) < len(cells) else ""
        parts += filter(None, [f"## {_plain(table.title)}", "\n".join(lines), more, _plain(table.note)])
    for cases in report.cases:
        parts += _cases(cases)
    parts += ["## How it was measured", "\n".join(f"- {_plain(line)}" for line in report.measured)]
    parts += ["## What it does not show", "\n".join(f"- {_plain(line)}" for line in report.limits)]
    parts += [_plain(f"{report.when} · {described(report.environment)} · {described(report.parameters)}")]
    return "\n\n".join(parts) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(cell.replace(_SLASH, _SLASH * 2).replace('|', f'{_SLASH}|')) for cell in cells)} |"


def _cases(cases: Details) -> list[str]:
    """A heading for each case, its names and values, and what was said, indented as code."""
    parts = [f"## {_plain(cases.title)}", *([_plain(cases.note)] if cases.note else [])]
    for each in cases.each:
        parts += [
            f"### {_plain(each.title)}",
            "\n".join(f"- {_plain(name)}: {_plain(value)}" for name, value in each.facts),
        ]
        parts += [f"{_plain(said.who)}:\n\n{indent(visible(said.text), '    ', lambda _: True)}" for said in each.said]
    return [part for part in parts if part]


def _plain(text: str) -> str:
    """A text on one line, in which nothing is a tag, a link or a picture, and no control character is left."""
    line = visible(" ".join(text.split())).replace("<", "&lt;")
    return line.replace("](", f"]{_SLASH}(").replace("![", f"!{_SLASH}[")


def _bracketed(note: str) -> str:
    return f" ({_plain(note)})" if note else ""


def as_html(report: Report) -> str:
    """One self-contained page."""
    return page(report)


FORMS: dict[str, Callable[[Report], str]] = {
    "json": as_json,
    "csv": as_csv,
    "md": as_markdown,
    "html": as_html,
}


def write(report: Report, folder: Path) -> list[Path]:
    """Writes `report.json`, `.csv`, `.md` and `.html` into a folder, which is made if need be."""
    files = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for form, make in FORMS.items():
            file = folder / f"report.{form}"
            file.write_text(make(report), "utf-8", "replace", newline="\n")
            files.append(file)
    except OSError as error:
        raise SetupError(f"the report cannot be written to {str(folder)!r}: {error.strerror}") from None
    return files
