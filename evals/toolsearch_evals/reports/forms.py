"""The forms of a report: JSON with everything, CSV, Markdown, and one HTML page."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from toolsearch import SetupError
from toolsearch_evals.reports.page import page
from toolsearch_evals.reports.report import Report, described

__all__ = ["FORMS", "as_csv", "as_html", "as_json", "as_markdown", "write"]

FORMAT = 1  # of the JSON


def as_json(report: Report) -> str:
    """Everything the report knows."""
    tables = [{"title": t.title, "note": t.note, "rows": list(t.rows)} for t in report.tables]
    whole = {
        "format": FORMAT,
        "kind": report.kind,
        "title": report.title,
        "when": report.when,
        "headline": report.headline,
        "parameters": dict(report.parameters),
        "environment": dict(report.environment),
        "tables": tables,
        **report.data,
        "measured": report.measured,
        "limits": report.limits,
    }
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def as_csv(report: Report) -> str:
    """The rows of the first table, with every key they have."""
    rows = report.tables[0].rows
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_markdown(report: Report) -> str:
    """The page as text: headline, tables, how it was measured, limits."""
    parts = [f"# {report.title}", *report.headline]
    for table in report.tables:
        lines = [
            _row([column.head for column in table.columns]),
            _row(["---" if column.unit == "text" else "---:" for column in table.columns]),
            *(_row(cells) for cells in table.cells()),
        ]
        parts += [f"## {table.title}", "\n".join(lines), *([table.note] if table.note else [])]
    parts += ["## How it was measured", "\n".join(f"- {line}" for line in report.measured)]
    parts += ["## What it does not show", "\n".join(f"- {line}" for line in report.limits)]
    parts += [f"{report.when} · {described(report.environment)} · {described(report.parameters)}"]
    return "\n\n".join(parts) + "\n"


def _row(cells: Sequence[str]) -> str:
    escaped = [cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;") for cell in cells]
    return f"| {' | '.join(escaped)} |"


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
            file.write_text(make(report), "utf-8", newline="\n")
            files.append(file)
    except OSError as error:
        raise SetupError(f"the report cannot be written to {str(folder)!r}: {error.strerror}") from None
    return files
