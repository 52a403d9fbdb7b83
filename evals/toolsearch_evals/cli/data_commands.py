"""`toolsearch eval datasets` and `derive`: what is measured with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import toolsearch_datasets
from toolsearch import SetupError
from toolsearch_evals.backends import installed_indexes, open_backend
from toolsearch_evals.cli.app import app, example
from toolsearch_evals.cli.options import (
    DataOption,
    DatasetOption,
    FormatOption,
    OutOption,
    ReportForm,
    check_folder_exists,
    error_console,
    index_option,
    make_folder,
    print_report,
    read_one_labelled_set,
    read_sets,
)
from toolsearch_evals.data.cases import GROUP as DATASETS
from toolsearch_evals.data.cases import load
from toolsearch_evals.data.check import problems
from toolsearch_evals.data.derive import write_derived_set
from toolsearch_evals.data.files import as_lines
from toolsearch_evals.installed import installed_points, package_of
from toolsearch_evals.ranking.agreement import agreement_report, read_labels, sheet_of
from toolsearch_evals.reports.report import counted

__all__ = ["check_datasets", "derive", "list_datasets", "show_agreement", "write_sheet"]

datasets = typer.Typer(no_args_is_help=True, help="List and check data sets.")
app.add_typer(datasets, name="datasets")


@app.command(epilog=example("derive --size 10000 --seed 1 --out build/derived"))
def derive(
    *,
    out: Annotated[Path, typer.Option("--out", callback=make_folder, help="The folder for the derived data set.")],
    size: Annotated[
        int, typer.Option(min=1, help="How many tools the data set gets, including the given ones.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 1,
    data: DataOption = None,
    dataset: DatasetOption = None,
) -> None:
    """Make a larger catalog, for measuring speed and scale, from a given one and a seed; it is marked as derived."""
    files = write_derived_set(read_sets(data, dataset)[0], size, seed, out)
    error_console().print(Text(f"Written: {', '.join(str(file) for file in files)}"))


@datasets.command(name="list", epilog=example("datasets list"))
def list_datasets() -> None:
    """List the data sets that ship, with counts and licence, and those that packages install."""
    console = Console()
    for name, entry in toolsearch_datasets.manifest().items():
        counts = ", ".join(f"{entry[key]} {key}" for key in ("tools", "servers", "cases", "unanswerable"))
        console.print(Text(f"{name}: {entry['title']}. {counts}. {entry['licence']}."))
    for point in installed_points(DATASETS):
        console.print(Text(f"{point.name}: installed by {package_of(point)!r}. {_counts(point.name)}"))


def _counts(name: str) -> str:
    """What an installed data set holds, as sentences, or why it cannot be used."""
    try:
        sets = load(name)
    except SetupError as error:
        return f"It cannot be used: {error}"
    each = [
        f"{counted(len(one.definitions), 'tool')}, {counted(len(one.cases), 'case')}, "
        f"{sum(not case.gold for case in one.cases)} unanswerable."
        for one in sets
    ]
    return " ".join(each)


@datasets.command(name="sheet", epilog=example("datasets sheet --cases 150 --out sheet.jsonl"))
def write_sheet(
    *,
    out: Annotated[Path, typer.Option("--out", callback=check_folder_exists, help="The file to write.")],
    data: DataOption = None,
    dataset: DatasetOption = None,
    index: Annotated[list[str] | None, index_option("keyword and hybrid, as far as they are installed")] = None,
    cases: Annotated[int, typer.Option(min=1, help="How many cases to draw.")] = 150,
    seed: Annotated[int, typer.Option(help="The seed that draws them, and puts the tools in a random order.")] = 0,
    without: Annotated[
        list[str] | None,
        typer.Option(help="The id of a case that the annotator knows; may be repeated.", show_default="none"),
    ] = None,
) -> None:
    """Write a sheet for a second annotator: queries with tools to choose from, without the labels."""
    only_set = read_one_labelled_set(data, dataset, "a sheet is drawn")
    names = index or [name for name in ("keyword", "hybrid") if name in installed_indexes()]
    opened = [open_backend(name) for name in names]
    for each in opened:
        each.add(list(only_set.catalog()))
    lines = sheet_of(only_set, opened, cases, seed, without or ())
    if out.exists():
        raise SetupError(f"{str(out)!r} exists already, and may be filled in: name another file")
    out.write_text(as_lines(lines), "utf-8", newline="\n")
    error_console().print(Text(f"Written: {out}. Fill in `chosen` of each line, then: datasets agreement {out}"))


@datasets.command(name="agreement", epilog=example("datasets agreement sheet.jsonl"))
def show_agreement(
    labels: Annotated[Path, typer.Argument(help="A sheet that is filled in.")],
    *,
    data: DataOption = None,
    dataset: DatasetOption = None,
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Say how far a second annotator agrees with the labels of a data set, in all and by kind of case."""
    only_set = read_one_labelled_set(data, dataset, "agreement is measured")
    print_report(agreement_report(only_set, read_labels(only_set, labels), labels.name), form, out)


@datasets.command(name="check", epilog=example("datasets check --data my_tools"))
def check_datasets(data: DataOption = None, dataset: DatasetOption = None) -> None:
    """Check labels, ids, counts, checksums and schemas. The exit code is 1 if anything is wrong."""
    console = Console()
    wrong = 0
    for each in read_sets(data, dataset or ([] if data else list(toolsearch_datasets.names()))):
        found = problems(each)
        wrong += len(found)
        state = counted(len(found), "problem") if found else "in order"
        tools, cases = counted(len(each.definitions), "tool"), counted(len(each.cases), "case")
        console.print(Text(f"{each.key}: {tools}, {cases}: {state}"))
        for problem in found:
            console.print(Text(f"  {problem}"))
    if wrong:
        raise typer.Exit(1)
