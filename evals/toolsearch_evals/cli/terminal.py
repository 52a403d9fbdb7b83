"""A report in the terminal: tables, bars and a progress line, by rich."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from toolsearch.support.redaction import visible
from toolsearch_evals.reports.report import Report, ReportTable
from toolsearch_evals.savings.rows import SavingsRow

__all__ = ["bars", "progress", "show"]

BAR = 44  # characters


def show(report: Report, console: Console, tables: int | None = None) -> None:
    """Prints the headline and the tables, but those of single cases; with a number, only that many tables."""
    console.print(_text(f"\n{report.title}", "bold"))
    for sentence in report.headline:
        console.print(_text(sentence))
    for table in [each for each in report.tables if not each.of_cases][:tables]:
        console.print(_text(f"\n{table.full_title}", "bold"))
        console.print(_table(table, console.width), crop=False)
        if table.note:
            console.print(_text(table.note, "dim"))


def _text(text: str, style: str = "") -> Text:
    """A text without control characters: a terminal would obey those in the name of a tool or a case."""
    return Text(visible(text), style=style)


def _table(table: ReportTable, width: int) -> RichTable:
    """The table; if it would be wider than the terminal, words of a heading stand below each other."""
    made = RichTable(box=SIMPLE_HEAD, padding=0, pad_edge=False)
    kept = table.distinct_columns()
    heads = {at: table.columns[at].head for at in kept}
    rows = [[visible(cell) for cell in cells] for cells in table.cells()]
    least = {at: max(map(len, (*head.split(), *(cells[at] for cells in rows)))) for at, head in heads.items()}
    is_narrow = sum(max(least[at], len(head)) + 1 for at, head in heads.items()) > width
    for at, head in heads.items():
        side: Literal["left", "right"] = "left" if table.columns[at].unit == "text" else "right"
        text = fill(head, least[at]) if is_narrow else head
        made.add_column(Text(text), justify=side, min_width=min(30, least[at]), overflow="fold")
    for cells in rows:
        made.add_row(*(Text(cells[at], style="red" if cells[at].startswith("−") else "") for at in kept))
    return made


def bars(rows: Sequence[SavingsRow], console: Console) -> None:
    """Prints bars: tokens of a conversation by number of tools, all sent and searched, for rows of one arm and wire."""
    first = rows[0]
    console.print(
        Text(f"\nTokens of a conversation ({first['wire']}, {first['mode']}, {first['index']})", style="bold")
    )
    most = max(max(row["static tokens"], row["tokens"]) for row in rows)
    for row in rows:
        for label, tokens, style in (
            (f"{row['tools']:>5} tools, all sent", row["static tokens"], "grey50"),
            ("searched", row["tokens"], "blue"),
        ):
            bar = "█" * max(1, round(BAR * tokens / most))
            console.print(Text(f"{label:>21}  ").append(bar, style=style).append(f" {tokens:,.0f}"))


@contextmanager
def progress(total: int | None, console: Console) -> Generator[Callable[[str], None]]:
    """A progress bar. Call what it yields after each step, with a description of what was done."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)

        def tick(done: str) -> None:
            bar.update(task, advance=1, description=visible(done))

        yield tick
