"""A report as a notebook shows it: its cards, its headline and its tables, without the page around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from toolsearch.support.html import block, folded, paragraph, table

__all__ = ["NotebookTable", "notebook_html", "table_html"]

MOST_ROWS = 20
UNFOLDED = 1  # tables; the others are folded


class NotebookTable(NamedTuple):
    """A table as it is shown: all cells are texts."""

    title: str
    heads: Sequence[str]
    cells: Sequence[Sequence[str]]
    note: str = ""


def notebook_html(
    title: str, cards: Sequence[tuple[str, str, str]], headline: Iterable[str], tables: Sequence[NotebookTable]
) -> str:
    """No script, no style of its own, everything escaped. `cards` are a label, a value and a note each.

    The first table stands open, the others are folded; of each, the first rows are shown.
    """
    at_the_top = table("", (), cards) if cards else ""
    shown = [table_html(each) for each in tables]
    return block(
        title,
        at_the_top,
        *map(paragraph, headline),
        *shown[:UNFOLDED],
        *(folded(each.title, html) for each, html in zip(tables[UNFOLDED:], shown[UNFOLDED:], strict=True)),
    )


def table_html(of: NotebookTable) -> str:
    """The first rows of a table."""
    return table(of.title, of.heads, of.cells, note=of.note, most=MOST_ROWS)
