"""The small pieces of HTML that notebooks show: no script, nothing loaded, no colour of their own, all texts escaped.

Without colours they are as light or as dark as the notebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from toolsearch.support.text import bounded, clean

__all__ = ["block", "folded", "paragraph", "table", "text_block"]

MOST_CHARACTERS = 4_000  # of a text that is shown as it is
UNFOLDED_LINES, UNFOLDED_CHARACTERS = 20, 2_500  # a longer text is folded


def table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, note: str = "", most: int = 100, style: str = ""
) -> str:
    """A titled table of at most `most` rows; a last line says how many are left out. `style` applies to every cell.

    Without a title, or without heads, it has none.
    """
    rows = list(rows)
    head = "".join(f"<th style='text-align:left'>{_escaped(h)}</th>" for h in heads)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left{style}'>{_escaped(cell)}</td>" for cell in row) + "</tr>"
        for row in rows[:most]
    )
    left_out = f"… and {len(rows) - most:,} more" if len(rows) > most else ""
    notes = "".join(paragraph(text) for text in (note, left_out) if text)
    heads_html = f"<thead><tr>{head}</tr></thead>" if head else ""
    rows_html = f"<table>{heads_html}<tbody>{body}</tbody></table>" if rows else ""
    return block(title, rows_html, notes)


def block(title: str, *parts: str) -> str:
    """A title, if there is one, above parts, which are HTML already."""
    above = f"<p><b>{_escaped(title)}</b></p>" if title else ""
    return f"<div>{above}{''.join(parts)}</div>"


def paragraph(text: str) -> str:
    """A text as a paragraph."""
    return f"<p>{_escaped(text)}</p>"


def text_block(text: str, most: int = MOST_CHARACTERS) -> str:
    """A text with its line breaks, at most `most` characters of it; a long one is folded below its first line."""
    if not text:
        return ""
    shown = bounded(text, most)
    whole = f"<pre style='white-space:pre-wrap;overflow-wrap:anywhere'>{_escaped(shown)}</pre>"
    if shown.count("\n") < UNFOLDED_LINES and len(shown) < UNFOLDED_CHARACTERS:
        return whole
    first = bounded(shown.strip().partition("\n")[0], 120)
    return folded(first, whole)


def folded(title: str, inner: str) -> str:
    """HTML that shows only its title until a reader opens it."""
    return f"<details><summary>{_escaped(title)}</summary>{inner}</details>"


def _escaped(text: str) -> str:
    return escape(clean(text))
