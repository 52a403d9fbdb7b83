"""The command `toolsearch learned`: shows what a program has learned from use, and forgets what should not stay."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.cells import cell_len, set_cell_size

from toolsearch import Learned, SetupError, StateError, TaughtLesson
from toolsearch.cli.output import FormatOption, OutputForm, print_json, show, show_folded

__all__ = ["learned"]

ALL = 10**9  # more past queries, or tenants, than a file holds


def learned(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What Learned.export() gave, as JSON.")],
    *,
    query: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Only lessons of this past query, in any order.", show_default="all"),
    ] = None,
    tool: Annotated[
        str | None, typer.Option(metavar="ID", help="Only lessons for this tool.", show_default="all")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only what this tenant has taught.", show_default="all")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="DATE", help="Only what was taught or confirmed since this day, as 2026-11-30.", show_default="all"
        ),
    ] = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="Forget these lessons: write the file without them.")
    ] = False,
    html: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a page with the lessons to this file.", show_default="none"),
    ] = None,
    form: FormatOption = OutputForm.text,
) -> None:
    """Show the lessons that a program has learned from use: query, tool, weight, times, users, last day, tenant.

    The exit code is 1 if there is no such lesson.
    """
    known = Learned(clock=time.time, capacity=ALL, tenants=ALL, without_tenant=True)
    try:
        known.restore(_read(file))
    except StateError as error:
        raise SetupError(
            f"the file {file!r} cannot be used: {error}; it must hold what Learned.export() gave"
        ) from None
    start = None if since is None else _seconds(since)
    lessons = known.taught(query=query, tool=tool, tenant=tenant, since=start)
    if forget:
        if not any(each is not None for each in (query, tool, tenant, since)):
            raise SetupError("--forget needs to know what: pass --query, --tool, --tenant or --since")
        gone = known.undo(query=query, tool=tool, tenant=tenant, since=start)
        _write(file, json.dumps(known.export(), ensure_ascii=False) + "\n")
        show_folded(f"{file}: {gone} lessons are forgotten, {len(known.taught())} are left.")
        raise typer.Exit(0 if gone else 1)
    if html is not None:
        _write(html, known.page(lessons))
    if form is OutputForm.json:
        print_json([asdict(each) for each in lessons])
    else:
        for line in _lines(lessons) if lessons else ["There is no such lesson."]:
            show(line)
    raise typer.Exit(0 if lessons else 1)


def _lines(lessons: Sequence[TaughtLesson]) -> list[str]:
    """The lessons as columns under their heads."""
    heads = tuple(each.name for each in fields(TaughtLesson))
    rows = [heads, *(each.row() for each in lessons)]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    padded = ([set_cell_size(cell, width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return ["  ".join(row).rstrip() for row in padded]


def _seconds(day: str) -> float:
    try:
        time_of = datetime.fromisoformat(day)
        return (time_of if time_of.tzinfo else time_of.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise SetupError(f"--since {day!r} is not a day: write it as in 2026-11-30") from None


def _read(file: str) -> str:
    try:
        return Path(file).read_text("utf-8-sig")
    except FileNotFoundError:
        raise SetupError(f"there is no file {file!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"the file {file!r} cannot be read: {error}") from None


def _write(file: str, text: str) -> None:
    """Writes a file; the old one stays until the new one is complete."""
    path = Path(file)
    try:
        fresh = path.with_name(f"{path.name}.new")
        fresh.write_text(text, "utf-8", newline="\n")
        fresh.replace(path)
    except OSError as error:
        raise SetupError(f"the file {file!r} cannot be written: {error.strerror}") from None
