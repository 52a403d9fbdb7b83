"""`toolsearch eval record`, `replay` and `journals`: what real conversations say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from toolsearch import SetupError
from toolsearch.cli.tool_files import ToolFiles, catalog_of
from toolsearch.layers import private
from toolsearch_evals.cli.app import app, example
from toolsearch_evals.cli.options import (
    FormatOption,
    OutOption,
    ReportForm,
    SettingsOption,
    default_index,
    error_console,
    index_option,
    print_report,
    read_settings,
)
from toolsearch_evals.cli.savings_options import read_modes
from toolsearch_evals.cli.terminal import progress
from toolsearch_evals.data.drafts import write_drafts
from toolsearch_evals.recording.cases import drafted_cases
from toolsearch_evals.recording.journal_report import journal_report
from toolsearch_evals.recording.journals import read_turns
from toolsearch_evals.recording.replay import ReplayPlan, replay_turns
from toolsearch_evals.reports.report import counted

__all__ = ["journals", "record", "replay"]

JournalsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="JOURNAL...",
        help="Journals: the file of a SqliteStore, JSON that a conversation exported, or lines that `record` wrote; "
        "folders of them.",
    ),
]
RedactOption = Annotated[
    bool,
    typer.Option(
        "--redact/--as-recorded",
        help="Take e-mail addresses, long numbers and secrets out of the texts, or leave them as they were recorded.",
    ),
]


@app.command(epilog=example("record journals.db --tools tools.json --out own"))
def record(
    files: JournalsArgument,
    *,
    tools: ToolFiles,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="The folder for the data set.")],
    redact: RedactOption = True,
) -> None:
    """Draft labelled cases from real conversations, which you then review: gold are the tools that were called.

    Writes tools.jsonl, cases.jsonl and a README on how to label. Nothing that exists is overwritten.
    """
    catalog = catalog_of(tools)
    turns = read_turns(files, _redaction(redact))
    made = drafted_cases(turns, catalog)
    if not made.drafts.lines:
        why = f"; called were {_some(made.unknown)}, which are not among these tools" if made.unknown else ""
        raise SetupError(f"no case can be drafted from {counted(len(turns), 'turn')}: no tool was called{why}")
    written = write_drafts(catalog, made.drafts, out)
    console = Console()
    told = f"{counted(len(made.drafts.lines), 'draft')} from {counted(len(turns), 'turn')}"
    console.print(Text(f"{', '.join(map(str, written))}: {told}."))
    if made.silent:
        console.print(Text(f"Left out: {counted(made.silent, 'turn')} without a successful call or a search in vain."))
    if made.unknown:
        console.print(Text(f"Turns left out, as these are not among the tools given: {_some(made.unknown)}."))
    console.print(Text(f"Read {out / 'README.md'}, edit the cases, then: toolsearch eval datasets check --data {out}"))


@app.command(epilog=example("replay journals.db --tools tools.json --mode bridge"))
def replay(
    files: JournalsArgument,
    *,
    tools: ToolFiles,
    index: Annotated[list[str] | None, index_option("the one that `auto` opens here")] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(help="How found tools are delivered; may be repeated.", show_default="append"),
    ] = None,
    settings: SettingsOption = None,
    redact: RedactOption = True,
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Make the searches of real conversations again, with other indexes, deliveries or settings: what if?"""
    chosen = read_settings(settings)
    names = [name for name, _ in chosen]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SetupError(f"a replay takes one value of each setting, not several of {twice!r}")
    plan = ReplayPlan(tuple(index or [default_index()]), read_modes(mode) if mode else ("append",), chosen)
    catalog = catalog_of(tools)
    turns = read_turns(files, _redaction(redact))
    total = sum(len(turn.searches) for turn in turns) * len(plan.indexes) * len(plan.modes)
    with progress(total, error_console()) as tick:
        report = replay_turns(turns, catalog, plan, tick)
    print_report(report, form, out)


@app.command(epilog=example("journals journals.db --tools tools.json"))
def journals(
    files: JournalsArgument,
    *,
    tools: Annotated[
        list[str] | None,
        typer.Option("--tools", metavar="FILE", help="The tools, to see which are never found.", show_default="none"),
    ] = None,
    redact: RedactOption = True,
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Sum up real conversations: what was searched for, what it found and cost, which tools are of no use."""
    catalog = catalog_of(tools) if tools else None
    print_report(journal_report(read_turns(files, _redaction(redact)), catalog), form, out)


def _redaction(redact: bool) -> Callable[[str], str]:  # the value of an option
    return private if redact else str


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(map(repr, names[:5])) + more
