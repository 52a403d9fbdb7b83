"""`toolsearch doctor`: what is wrong with tools and servers, ranked by measured harm."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from toolsearch import Catalog
from toolsearch.catalog.files import add_file
from toolsearch.cli.targets import Target, targets_of
from toolsearch.cli.tool_files import catalog_of, fill
from toolsearch.mcp import read_config
from toolsearch_evals.cli.options import OutOption, error_console
from toolsearch_evals.cli.terminal import show
from toolsearch_evals.doctor.examination import Examination, examine
from toolsearch_evals.doctor.rates import rates
from toolsearch_evals.doctor.report import doctor_report
from toolsearch_evals.doctor.servers import Started, configurations_in, examine_servers
from toolsearch_evals.reports.forms import FORMS, write
from toolsearch_evals.reports.report import Report, counted

__all__ = ["doctor"]


class DoctorForm(StrEnum):
    """How the report is printed."""

    text = "text"
    json = "json"
    html = "html"


class FailOn(StrEnum):
    """What makes the exit code 1."""

    harm = "harm"
    left = "left"
    any = "any"
    none = "none"


def doctor(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE…",
            help="mcp.json, whose servers are started; files of tools, as `toolsearch search --tools` reads; folders "
            "of them; - for standard input.",
        ),
    ],
    *,
    need: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SERVER:TOOL",
            help="A tool that must be there, be found, and be callable; may be repeated.",
            show_default="none",
        ),
    ] = None,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            help="The findings for which the exit code is 1: those whose harm was measured, those that harm even where "
            "toolsearch sends the tools, any, or none."
        ),
    ] = FailOn.harm,
    target: Annotated[
        list[Target] | None,
        typer.Option(help="A provider that the tools are meant for; may be repeated.", show_default="all"),
    ] = None,
    index: Annotated[str, typer.Option(help="The index to search with.")] = "keyword",
    wire: Annotated[str, typer.Option(help="The wire in whose form tokens are counted.")] = "openai_chat",
    seconds: Annotated[float, typer.Option(min=1, help="How long a server may take to start.")] = 20.0,
    form: Annotated[
        DoctorForm, typer.Option("--format", help="Text for people, JSON for programs, or a page.")
    ] = DoctorForm.text,
    out: OutOption = None,
) -> None:
    """Say what is wrong with tools and servers: what is refused, cannot be called, is not found, looks hostile.

    The most harmful comes first, by measured rates. The exit code is 1 for a finding as --fail-on says or a tool
    of --need that is not met, and 2 if a file cannot be used.
    """
    targets = targets_of(target or [Target.all])
    with error_console().status("Reading files, and starting servers …"):
        catalog, started = _read(files, seconds)
    with error_console().status(f"Looking at {counted(len(catalog), 'tool')} …"):
        examination = examine(
            catalog,
            index=index,
            wire=wire,
            providers=targets,
            needs=need or (),
            more=[finding for each in started for finding in each.findings],
            servers=[row for each in started for row in each.rows],
        )
    parameters = {"files": [Path(file).name for file in files], "index": index, "wire": wire, "targets": targets}
    _print(doctor_report(examination, ", ".join(Path(file).name for file in files), parameters), form, out)
    raise typer.Exit(_exit_code(examination, fail_on))


def _print(report: Report, form: DoctorForm, out: Path | None) -> None:
    if form is DoctorForm.text:
        show(report, Console())
    else:
        sys.stdout.write(FORMS[form.value](report))
    if out is not None:
        write(report, out)


def _read(files: list[str], seconds: float) -> tuple[Catalog, list[Started]]:
    """The tools of all files and servers, and what was seen of the servers."""
    configurations, others = configurations_in(files)
    catalog = Catalog()
    for file in others:
        own = catalog_of([file]) if file != "-" and len(files) > 1 else None
        if own is not None and not own.servers:  # the answer of one server, which does not say its name
            add_file(catalog, file, Path(file).stem)
        else:
            fill(catalog, [file])
    started = [examine_servers(read_config(file), seconds) for file in configurations]
    for each in started:
        catalog.extend(each.catalog)
    return catalog, started


def _exit_code(of: Examination, fail_on: FailOn) -> int:
    left = [each for each in of.harmful if rates()[each.check].is_left]
    failing = {FailOn.harm: of.harmful, FailOn.left: left, FailOn.any: of.findings, FailOn.none: ()}[fail_on]
    return 1 if failing or not all(each.is_met for each in of.needs) else 0
