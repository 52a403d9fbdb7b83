"""A report as data, and its forms: JSON with everything, CSV, Markdown, and the page of `toolsearch_evals.page`."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import toolsearch
from toolsearch import SetupError
from toolsearch_evals.chart import Chart

__all__ = ["FORMS", "Column", "Report", "Table", "counted", "environment", "shown", "write"]

FORMAT = 1  # of the JSON

Unit = Literal["text", "count", "share", "score", "number", "milliseconds"]


@dataclass(frozen=True, slots=True)
class Column:
    """A key of the rows, its heading, and how its values are written: a "share" of 0.25 as 25.0 %.

    `spread` is the key of half the width of the value's interval, which is shown behind it: ".783 ±.041".
    """

    key: str
    head: str
    unit: Unit = "text"
    spread: str = ""

    def cell(self, row: Mapping[str, Any]) -> str:
        """What stands in this column of a row."""
        told = shown(row.get(self.key), self.unit)
        spread = row.get(self.spread) if self.spread else None
        return told if spread is None else f"{told} ±{shown(spread, self.unit)}"


@dataclass(frozen=True)
class Table:
    """Rows are flat and JSON-ready; they may hold more than the columns show."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, Any]]
    note: str = ""

    def cells(self) -> list[list[str]]:
        """The rows as they are shown, all columns."""
        return [[column.cell(row) for column in self.columns] for row in self.rows]

    def telling(self) -> list[int]:
        """Places of the columns that tell rows apart; a text that is the same in every row is in `full_title`."""
        return [at for at, column in enumerate(self.columns) if column.key not in self._same()]

    @property
    def full_title(self) -> str:
        same = self._same()
        return f"{self.title} ({', '.join(same.values())})" if same else self.title

    def _same(self) -> dict[str, str]:
        keys = [column.key for column in self.columns if column.unit == "text"] if len(self.rows) > 1 else []
        return {k: str(self.rows[0].get(k)) for k in keys if len({row.get(k) for row in self.rows}) == 1}


def environment() -> dict[str, Any]:
    """Versions and kind of machine; no name of a machine or a user."""
    versions: dict[str, str | None] = {}
    for package in ("pydantic", "numpy", "tiktoken", "bpe-openai", "bm25s", "rank-bm25"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return {
        "toolsearch": toolsearch.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "packages": versions,
    }


@dataclass(frozen=True)
class Report:
    """One evaluation. `headline` is what it found, in sentences; `measured` says how; `limits` what it does not show.

    The first table is the whole result and what the CSV holds; `data` is what the JSON holds beside it.
    """

    kind: str
    title: str
    headline: tuple[str, ...]
    parameters: Mapping[str, Any]
    tables: tuple[Table, ...]
    measured: tuple[str, ...]
    limits: tuple[str, ...]
    charts: tuple[Chart, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    when: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    environment: Mapping[str, Any] = field(default_factory=environment)


def shown(value: Any, unit: Unit) -> str:
    """A value as a person reads it; what is not known is a dash, never 0."""
    if value is None or value == "":
        return "–"
    if unit == "text":
        return str(value)
    if unit == "count":
        return f"{value:,.0f}"
    if unit == "share":
        return f"{100 * value:.1f} %".replace("-", "−")
    if unit == "milliseconds":
        return f"{value:,.1f}" if value >= 100 else f"{value:.3f}"
    if unit == "score":
        return f"{'−' if value < 0 else ''}{f'{abs(value):.3f}'.removeprefix('0')}"
    return f"{value:.2f}".replace("-", "−")


def counted(number: int, what: str) -> str:
    """A number of things in a sentence: "1 case", "2 cases"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


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


def described(values: Mapping[str, Any]) -> str:
    """Names and values in a line, nested ones unfolded, unknown ones left out."""
    flat = {
        k: v
        for key, value in values.items()
        for k, v in (value.items() if isinstance(value, Mapping) else [(key, value)])
    }
    texts = {
        k: ", ".join(map(str, v)) if isinstance(v, list | tuple) else str(v) for k, v in flat.items() if v is not None
    }
    return "; ".join(f"{key} {text}" for key, text in texts.items() if text)


def _row(cells: Sequence[str]) -> str:
    escaped = [cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def as_html(report: Report) -> str:
    """One self-contained page."""
    from toolsearch_evals.page import page

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
