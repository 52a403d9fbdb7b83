"""What the commands print: hits, one a line, for people or as JSON; warnings, on standard error."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer
from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console
from rich.text import Text

from toolsearch import Catalog, Hit, Hits, Suggestion

__all__ = [
    "FormatOption",
    "OutputForm",
    "check_as_json",
    "hit_lines",
    "hits_as_json",
    "print_json",
    "show",
    "show_folded",
    "suggestion_lines",
    "suggestions_as_json",
    "warn",
    "warn_of_unread",
]

LEAST_SUMMARY = 20  # columns; where fewer are left beside the id, the summary goes below it
MARGIN = 6  # columns of the confidence and the space after it


class OutputForm(StrEnum):
    """How a command prints what it found."""

    text = "text"
    json = "json"


FormatOption = Annotated[OutputForm, typer.Option("--format", help="Print text for people, or JSON for programs.")]


def show(text: str) -> None:
    """Prints a text as it is: the texts of tools are data, so nothing in them is markup."""
    Console().print(Text(text), soft_wrap=True)


def show_folded(text: str) -> None:
    """Prints a sentence, folded between words."""
    Console().print(Text(text))


def warn(text: str) -> None:
    """Prints to standard error, so that what is piped on stays clean."""
    Console(stderr=True).print(Text(text))


def warn_of_unread(catalog: Catalog, *, told: str = "") -> None:
    """Says what of the files is not in the catalog, and why. An only reason that an error `told` is left out."""
    refused = catalog.quarantined
    for entry in refused:
        if len(refused) > 1 or entry.reason not in told:
            warn(f"quarantined {entry.name}: {entry.reason}")
    for notice in catalog.notices:
        warn(f"note: {notice}")


def print_json(value: object) -> None:
    """Prints JSON that nothing wraps or colours."""
    Console().out(json.dumps(value, indent=2, ensure_ascii=False), highlight=False)


# -- hits --------------------------------------------------------------------------------------------------------


def hit_lines(hits: Hits, width: int, *, verbose: bool) -> Iterator[str]:
    """The hits as lines of at most `width` columns: confidence, id and summary, one a line.

    An id is never cut. Where it leaves no room for the summary, that goes below it; a longer one is folded.
    """
    room = width - MARGIN
    widths = [cell_len(hit.tool.id) for hit in hits]
    column = max((each for each in widths if each + 2 + LEAST_SUMMARY <= room), default=0)
    below = " " * MARGIN
    for hit, its_width in zip(hits, widths, strict=True):
        first, *rest = chop_cells(hit.tool.id, room)
        summary = hit.tool.summary(1_000)
        if its_width <= column:
            yield f"{_confidence(hit)}  {set_cell_size(first, column)}  {_cut(summary, room - column - 2)}".rstrip()
        else:
            yield f"{_confidence(hit)}  {first}"
            yield from (below + part for part in [*rest, _cut(summary, room)])
        if verbose:
            words = ", ".join(f"{m.word} ({', '.join(m.fields)})" for m in hit.matched)
            matched = f"score {hit.shown_score}{f'; matched {words}' if words else ''}"
            yield from (below + line.plain.rstrip() for line in Text(matched).wrap(Console(width=room), room))


def _confidence(hit: Hit) -> str:
    """Four columns: the probability that the tool fits; "name" where the query is its name, a dash if it is unknown."""
    text = "-" if hit.confidence is None else f"{hit.confidence:.2f}".removeprefix("0")
    return f"{'name' if hit.exact else text:>4}"


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def hits_as_json(hits: Hits, catalog: Catalog) -> dict[str, object]:
    """The answer to one query, for other programs; `confidence` is null for an index that has none."""
    return {
        "query": hits.query,
        "index": hits.index_name,
        "tools": len(catalog),
        "verdict": hits.verdict,
        "hits": [
            {
                "id": hit.tool.id,
                "name": hit.tool.name,
                "server": hit.tool.server,
                "summary": hit.tool.summary(),
                "confidence": hit.confidence,
                "score": hit.score if math.isfinite(hit.score) else None,
                "exact": hit.exact,
                "matched": [{"word": m.word, "fields": list(m.fields)} for m in hit.matched],
            }
            for hit in hits
        ],
        "unknown": list(hits.unknown),
        "near": [tool.id for tool in hits.near],
        "hint": hits.hint,
        "degraded": hits.degraded,
        **_unread(catalog),
    }


def check_as_json(catalog: Catalog) -> dict[str, object]:
    """What `toolsearch check` found, for other programs."""
    return {
        "tools": len(catalog),
        "servers": list(catalog.servers),
        "suspicious": [{"id": tool.id, "flags": list(tool.flags)} for tool in catalog.suspicious],
        **_unread(catalog),
    }


def _unread(catalog: Catalog) -> dict[str, object]:
    return {
        "quarantined": [{"name": entry.name, "reason": entry.reason} for entry in catalog.quarantined],
        "notices": list(catalog.notices),
    }


# -- suggestions -------------------------------------------------------------------------------------------------


def suggestion_lines(suggestions: Sequence[Suggestion]) -> Iterator[str]:
    """One line a tool: how much harm, its id, and what is wrong."""
    for each in suggestions:
        yield f"{each.harm:.2f}  {each.tool}: {each.problem}"


def suggestions_as_json(suggestions: Sequence[Suggestion], catalog: Catalog) -> dict[str, object]:
    """What `toolsearch enrich --suggest` found, for other programs."""
    return {"tools": len(catalog), "suggested": [asdict(each) for each in suggestions], **_unread(catalog)}
