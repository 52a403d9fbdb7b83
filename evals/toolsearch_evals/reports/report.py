"""A report as data: its headline, its tables, and how their values are written. `forms` writes it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import Any, Literal

import toolsearch
from toolsearch_evals.reports.chart import Chart

__all__ = ["Column", "Report", "ReportTable", "counted", "described", "environment", "shown"]

Unit = Literal["text", "count", "share", "score", "number", "milliseconds"]


@dataclass(frozen=True, slots=True)
class Column:
    """A key of the rows, its heading, and how its values are written: a "share" of 0.25 as 25.0 %.

    `spread` is the key of half the width of the value's interval, which is shown after it: ".783 ±.041".
    """

    key: str
    head: str
    unit: Unit = "text"
    spread: str = ""

    def cell(self, row: Mapping[str, Any]) -> str:
        """What stands in this column of a row."""
        text = shown(row.get(self.key), self.unit)
        spread = row.get(self.spread) if self.spread else None
        return text if spread is None else f"{text} ±{shown(spread, self.unit)}"


@dataclass(frozen=True)
class ReportTable:
    """Rows are flat and JSON-ready; they may hold more than the columns show."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, Any]]
    note: str = ""

    def cells(self) -> list[list[str]]:
        """The rows as they are shown, all columns."""
        return [[column.cell(row) for column in self.columns] for row in self.rows]

    def distinct_columns(self) -> list[int]:
        """Positions of the columns that distinguish rows; a text that is the same in every row is in `full_title`."""
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
    """One evaluation. `headline` says what it found, `measured` how, and `limits` what it does not show.

    The first table is the whole result, and what the CSV holds; `data` is what the JSON holds in addition.
    """

    kind: str
    title: str
    headline: tuple[str, ...]
    parameters: Mapping[str, Any]
    tables: tuple[ReportTable, ...]
    measured: tuple[str, ...]
    limits: tuple[str, ...]
    charts: tuple[Chart, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    when: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    environment: Mapping[str, Any] = field(default_factory=environment)


def shown(value: Any, unit: Unit) -> str:
    """A value as people read it; an unknown value is a dash, never 0."""
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
