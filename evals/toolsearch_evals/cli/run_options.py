"""What the commands share that keep a run or hold a report against bars."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from toolsearch import SetupError
from toolsearch_evals.cli.options import error_console
from toolsearch_evals.reports.report import counted
from toolsearch_evals.runs.bars import Bar, Places, missed
from toolsearch_evals.runs.folder import Run
from toolsearch_evals.runs.manifest import Manifest, command_text

__all__ = ["FailUnderOption", "ResumeOption", "RunOption", "check_bars", "command_of", "kept_run"]

# Options that say where a report goes, and not what is in it.
_ASIDE = ("run", "resume", "out", "form", "fail_under", "processes")

RunOption = Annotated[
    Path | None,
    typer.Option(
        "--run",
        help="Keep the run in this new folder, such as runs/first, to go on with it, score it again and compare it.",
        show_default="none",
    ),
]
ResumeOption = Annotated[
    bool,
    typer.Option("--resume", help="Go on with the interrupted run in the folder of --run; play only what is missing."),
]
FailUnderOption = Annotated[
    str,
    typer.Option(
        "--fail-under",
        metavar="NAME=VALUE,…",
        help="Exit with code 1 if a measure is under its bar, such as success=.8,saving=.5.",
        show_default="no bar",
    ),
]


def command_of(context: typer.Context) -> str:
    """The command as it was given, without the options that change nothing in its figures."""
    words: list[str | Path] = ["toolsearch", "eval", str(context.info_name)]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        if parameter.name in _ASIDE or value in (None, parameter.default):
            continue
        names = parameter.secondary_opts if value is False else parameter.opts
        option = max(names, key=len) if parameter.param_type_name == "option" else ""
        for each in value if isinstance(value, list | tuple) else [value]:
            words += [option] if option else []
            words += [] if isinstance(each, bool) else [each if isinstance(each, Path) else str(each)]
    return command_text(words)


@contextmanager
def kept_run(folder: Path | None, manifest: Manifest, total: int, *, resume: bool) -> Generator[Run]:
    """The run to record in. If it is interrupted, a sentence says what is kept and how to go on."""
    if folder is None:
        raise SetupError("--resume goes on with the run of a folder: name it with --run")
    with Run.begin(folder, manifest, resume=resume) as run:
        try:
            yield run
        except KeyboardInterrupt:
            done = f"Interrupted: {run.finished:,} of {counted(total, 'unit')} are kept in {folder}."
            error_console().print(Text(f"\n{done} Go on with the same command and --resume."), soft_wrap=True)
            raise


def check_bars(bars: Sequence[Bar], places: Places) -> None:
    """Ends the command with the code 1, and a sentence for each bar that was missed, if one was."""
    under = missed(bars, places)
    for sentence in under:
        error_console().print(Text(sentence, style="red"), soft_wrap=True)
    if under:
        raise typer.Exit(1)
