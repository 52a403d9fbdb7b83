"""A report as data: its headline, cards, charts, tables and cases. `forms` writes it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

import toolsearch
from toolsearch_evals.reports.chart import Chart
from toolsearch_evals.reports.frames import pandas_frame, polars_frame
from toolsearch_evals.reports.notebook import NotebookTable, notebook_html, table_html
from toolsearch_evals.reports.plots import Plots, plots_of
from toolsearch_evals.reports.values import Unit, counted, described, shown
from toolsearch_evals.reports.waterfall import Waterfall

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = [
    "Card",
    "Column",
    "Detail",
    "Details",
    "Report",
    "ReportTable",
    "Said",
    "Unit",
    "counted",
    "described",
    "environment",
    "shown",
]


@dataclass(frozen=True, slots=True)
class Column:
    """A key of the rows, its heading, and how its values are written: a "share" of 0.25 as 25.0 %.

    `spread` is the key of half the width of the value's interval, which is shown after it: ".783 ±.041". `ends` are the
    keys of the ends of an interval that is shown in full: "25.0 % [21.3, 29.9]". A text `is_result` if it was measured:
    then it stays in its table, even where it is the same in every row.
    """

    key: str
    head: str
    unit: Unit = "text"
    spread: str = ""
    ends: tuple[str, str] | None = None
    is_result: bool = False

    def cell(self, row: Mapping[str, Any]) -> str:
        """What stands in this column of a row."""
        text = shown(row.get(self.key), self.unit)
        spread = row.get(self.spread) if self.spread else None
        low, high = (row.get(end) for end in self.ends) if self.ends else (None, None)
        if low is not None and high is not None:
            return f"{text} [{', '.join(shown(end, self.unit).removesuffix(' %') for end in (low, high))}]"
        return text if spread is None else f"{text} ±{shown(spread, self.unit)}"


@dataclass(frozen=True)
class ReportTable:
    """Rows are flat and JSON-ready; they may hold more than the columns show.

    A table `of_cases` has a row for each of many cases: the terminal leaves it out, and Markdown shows its beginning.
    `further` rows are not shown, but stand in the CSV and the JSON.
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, Any]]
    note: str = ""
    of_cases: bool = False
    further: Sequence[Mapping[str, Any]] = ()

    def cells(self) -> list[list[str]]:
        """The rows as they are shown, all columns."""
        return [[column.cell(row) for column in self.columns] for row in self.rows]

    def to_pandas(self) -> pandas.DataFrame:
        """All keys of the rows, not only those of the columns. Raises `MissingExtra` without pandas."""
        return pandas_frame(self.rows)

    def to_polars(self) -> polars.DataFrame:
        """As `to_pandas`, for polars."""
        return polars_frame(self.rows)

    def __repr__(self) -> str:
        return f"ReportTable({self.title!r}, {counted(len(self.rows), 'row')})"

    def _repr_html_(self) -> str:
        return table_html(self.in_notebook())

    def in_notebook(self) -> NotebookTable:
        """What `notebook_html` shows of it."""
        return NotebookTable(self.title, [column.head for column in self.columns], self.cells(), self.note)

    def distinct_columns(self) -> list[int]:
        """Positions of the columns that distinguish rows; a text that is the same in every row is in `full_title`."""
        return [at for at, column in enumerate(self.columns) if column.key not in self._same()]

    @property
    def full_title(self) -> str:
        same = self._same()
        said = ", ".join(filter(None, same.values()))
        return f"{self.title} ({said})" if said else self.title

    def _same(self) -> dict[str, str]:
        asked = [column.key for column in self.columns if column.unit == "text" and not column.is_result]
        keys = asked if len(self.rows) > 1 else []
        return {k: str(self.rows[0].get(k) or "") for k in keys if len({row.get(k) for row in self.rows}) == 1}


@dataclass(frozen=True, slots=True)
class Card:
    """A figure that stands at the top: what it is, its value as it is written, and how sure it is."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of a conversation as it was played: who wrote it, and what."""

    who: str
    text: str


@dataclass(frozen=True, slots=True)
class Detail:
    """One case, folded on a page: a title, names and values, and how the conversation went."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    said: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True)
class Details:
    """Cases under a heading, the most telling first."""

    title: str
    each: tuple[Detail, ...]
    note: str = ""


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

    The first table is the whole result, and what the CSV holds; `data` is what the JSON holds in addition. Cards,
    charts, waterfalls and cases are for readers; without them the page is shorter.
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
    cards: tuple[Card, ...] = ()
    waterfalls: tuple[Waterfall, ...] = ()
    cases: tuple[Details, ...] = ()

    def to_pandas(self) -> pandas.DataFrame:
        """The rows of the first table as a data frame; each table has this method too.

        Raises `MissingExtra`, which has the install line, without pandas.
        """
        return self.tables[0].to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """As `to_pandas`, for polars."""
        return self.tables[0].to_polars()

    def plots(self) -> Plots:
        """The charts as plots of altair, which a notebook shows without a network.

        Raises `MissingExtra` without the extra "plots", and `SetupError` for a report without charts.
        """
        return plots_of(self.charts)

    def __repr__(self) -> str:
        return "\n".join(
            [f"Report({self.kind!r}, {self.title!r}, {counted(len(self.tables), 'table')})", *self.headline]
        )

    def _repr_html_(self) -> str:
        cards = [(card.label, card.value, card.note) for card in self.cards]
        return notebook_html(self.title, cards, self.headline, [table.in_notebook() for table in self.tables])
