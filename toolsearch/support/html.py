"""The small HTML tables that notebooks show; everything in them is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["table"]


def table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, note: str = "", most: int = 100, style: str = ""
) -> str:
    """A titled table of at most `most` rows; a last line says how many are left out. `style` applies to every cell."""
    rows = list(rows)
    head = "".join(f"<th style='text-align:left'>{escape(h)}</th>" for h in heads)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left{style}'>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows[:most]
    )
    left_out = f"… and {len(rows) - most:,} more" if len(rows) > most else ""
    notes = "".join(f"<p>{escape(text)}</p>" for text in (note, left_out) if text)
    rows_html = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    return f"<div><p><b>{escape(title)}</b></p>{rows_html}{notes}</div>"
