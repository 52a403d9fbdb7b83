"""`toolsearch eval datasets` and `derive`: what is measured with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import toolsearch_datasets
from toolsearch import SetupError
from toolsearch_evals.cli.app import app, example
from toolsearch_evals.cli.options import (
    DataOption,
    DatasetOption,
    error_console,
    make_folder,
    read_sets,
)
from toolsearch_evals.data.cases import GROUP as DATASETS
from toolsearch_evals.data.cases import load
from toolsearch_evals.data.check import problems
from toolsearch_evals.data.derive import write_derived_set
from toolsearch_evals.installed import installed_points, package_of
from toolsearch_evals.reports.report import counted

__all__ = ["check_datasets", "derive", "list_datasets"]

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
