"""`toolsearch inspect`: a page that shows what was recorded, turn by turn."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from toolsearch import SetupError
from toolsearch.cli.output import warn_of_unread
from toolsearch.cli.tool_files import catalog_of
from toolsearch.layers import private
from toolsearch_evals.backends import check_notation
from toolsearch_evals.cli.options import check_folder_exists, default_index, error_console, index_option
from toolsearch_evals.cli.terminal import show
from toolsearch_evals.inspection import Words, against_report, inspect_page, inspect_report, read_trace
from toolsearch_evals.inspection.box import SearchBox
from toolsearch_evals.inspection.live import LiveBox
from toolsearch_evals.inspection.live_tools import live_tools
from toolsearch_evals.reports.forms import as_json
from toolsearch_evals.reports.report import Report, counted

__all__ = ["inspect"]


class InspectForm(StrEnum):
    """What is made."""

    html = "html"
    json = "json"
    table = "table"


_FILES = (
    "What was recorded: the file of a SqliteStore, JSON that a conversation exported, lines that `record` wrote, the "
    "log of `toolsearch serve --log`; folders of them."
)


_FilesArgument = Annotated[list[Path] | None, typer.Argument(metavar="STORE|LOG...", help=_FILES, show_default=False)]
_LiveOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="Instead: serve a search box over the servers of this mcp.json, or over the tools of this file, until "
        "Ctrl-C. May be repeated.",
        show_default="none",
    ),
]
_PortOption = Annotated[
    int, typer.Option(min=0, max=65_535, help="With --live: the port on loopback; 0 takes any that is free.")
]
_AgainstOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="STORE|LOG", help="A second trace, to show both side by side; may be repeated.", show_default="none"
    ),
]
_ToolsOption = Annotated[
    list[str] | None,
    typer.Option("--tools", metavar="FILE", help="The tools, to see which are never found.", show_default="none"),
]
_ConversationOption = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="Only the conversation with this id; may be repeated.", show_default="all"),
]
_CharactersOption = Annotated[int, typer.Option(min=1, help="The most characters of each text.")]
_RedactOption = Annotated[
    bool,
    typer.Option(
        "--redact/--as-recorded",
        help="Take e-mail addresses, long numbers, secrets and users out, or leave them as they were recorded.",
    ),
]
_FormOption = Annotated[
    InspectForm, typer.Option("--format", help="A page, its data as JSON, or its tables in the terminal.")
]
_OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        callback=check_folder_exists,
        help="The file to write.",
        show_default="inspect.html for a page, the standard output for JSON",
    ),
]


def inspect(
    files: _FilesArgument = None,
    *,
    live: _LiveOption = None,
    index: Annotated[list[str] | None, index_option("with --live: the one that `auto` opens here")] = None,
    port: _PortOption = 0,
    against: _AgainstOption = None,
    tools: _ToolsOption = None,
    conversation: _ConversationOption = None,
    characters: _CharactersOption = 600,
    redact: _RedactOption = True,
    form: _FormOption = InspectForm.html,
    out: _OutOption = None,
) -> None:
    """Show what was recorded as one page: conversations as a timeline, searches in vain, tools of no use, cost.

    The page opens from the disk and loads nothing. What cannot be read of a file is counted and named.

    With --live, try queries on tools instead, in a browser on this machine.
    """
    if live:
        if files or against:
            raise SetupError("--live shows tools, not what was recorded: leave the files away")
        _serve(live, index or [default_index()], port)
        return
    if not files:
        raise SetupError("name what was recorded, such as journals.db, or pass --live mcp.json for a search box")
    words = Words(characters, private if redact else str, names_people=not redact)
    if against and tools:
        raise SetupError("--tools is for one trace: with --against, no table says which tools are never found")
    traces = [read_trace(each, words, conversation or ()) for each in (files, against) if each]
    report = against_report(*traces) if against else inspect_report(traces[0], catalog_of(tools) if tools else None)
    _print(report, form, out)
    for trace in traces:
        if trace.damaged:
            error_console().print(Text(f"{trace.name}: not read: {counted(trace.damaged, 'place')}. {trace.told[0]}"))


def _serve(files: list[str], indexes: list[str], port: int) -> None:
    """Serves the search box until Ctrl-C."""
    for name in indexes:
        check_notation(name)
    with live_tools(files) as (catalog, states):
        warn_of_unread(catalog)
        box = LiveBox(SearchBox(catalog, indexes), states, port=port)
        for each in states():
            if each["state"] != "ready":
                error_console().print(Text(f"{each['name']}: {each['state']}, {each['reason']}"))
        told = (
            f"{counted(len(catalog), 'tool')} by {', '.join(indexes)}. Only this address opens the box; Ctrl-C ends it:"
        )
        Console().print(Text(told))
        Console().print(Text(box.address), soft_wrap=True)
        box.serve()


def _print(report: Report, form: InspectForm, out: Path | None) -> None:
    """Writes the report in its form, or prints it."""
    if form is InspectForm.table:
        if out is not None:
            raise SetupError("tables are for the terminal: leave --out away, or pass --format html or json")
        show(report, Console())
        return
    text = as_json(report) if form is InspectForm.json else inspect_page(report)
    file = out or (Path("inspect.html") if form is InspectForm.html else None)
    if file is None:
        sys.stdout.write(text)
        return
    try:
        file.write_text(text, "utf-8", "replace", newline="\n")
    except OSError as error:
        raise SetupError(f"{str(file)!r} cannot be written: {error.strerror}") from None
    Console().print(Text(f"{file}: {report.headline[0]}"))
