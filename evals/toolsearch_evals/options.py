"""What the commands of `toolsearch eval` share: options, the data they read, and how a report is told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import toolsearch_datasets
from toolsearch import SetupError
from toolsearch.catalog import Examples
from toolsearch_evals.cases import Dataset, load, only, read_samples, require_gold
from toolsearch_evals.report import FORMS, Report, write
from toolsearch_evals.savings import Mode
from toolsearch_evals.terminal import show

__all__ = [
    "INDEXES",
    "Cases",
    "Data",
    "Form",
    "Format",
    "Index",
    "Name",
    "Out",
    "Preset",
    "Samples",
    "Split",
    "errors",
    "in_folder",
    "labelled",
    "modes",
    "numbers",
    "read_sets",
    "tell",
    "with_examples",
    "writable",
]


class Split(StrEnum):
    """Which cases count."""

    train = "train"
    dev = "dev"
    test = "test"
    all = "all"


class Form(StrEnum):
    """How a report is printed."""

    table = "table"
    json = "json"
    csv = "csv"
    md = "md"
    html = "html"


class Preset(StrEnum):
    """A published setting to repeat."""

    spring = "spring"


Data = Annotated[
    list[Path] | None, typer.Option("--data", help="A folder with tools.jsonl and cases; may be repeated.")
]
Name = Annotated[list[str] | None, typer.Option("--dataset", help="A data set that ships; may be repeated.")]
Index = Annotated[
    list[str] | None,
    typer.Option("--index", help="A search backend: keyword, or hybrid:ENCODER=MODEL; may be repeated."),
]


def writable(folder: Path | None) -> Path | None:
    """A folder to write into, made now: a run is long, and its end is late to find that there is none."""
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(f"the folder {str(folder)!r} cannot be made: {error.strerror}") from None
    return folder


def in_folder(file: Path | None) -> Path | None:
    """A file to write, whose folder is there: found out now, as above."""
    if file is not None and not file.parent.is_dir():
        raise SetupError(f"there is no folder {str(file.parent)!r} to write {file.name!r} into; make it first")
    return file


Out = Annotated[
    Path | None,
    typer.Option("--out", callback=writable, help="Write report.html, .json, .csv and .md into this folder."),
]
Format = Annotated[Form, typer.Option("--format", help="What is printed.")]
Cases = Annotated[Split, typer.Option("--split", help="Which cases count; those without a split always do.")]
Samples = Annotated[
    Path | None,
    typer.Option(
        "--samples", help='Only these cases: a JSON list of ids, or {"set/cases": \\[ids], "set/queries": \\[ids]}.'
    ),
]
INDEXES = ("keyword", "regex")


def numbers(sizes: str) -> list[int]:
    """Sizes written with commas."""
    try:
        return [int(number) for number in sizes.split(",")]
    except ValueError:
        raise SetupError(f"the sizes {sizes!r} are not whole numbers with commas, like 1000,10000") from None


def read_sets(folders: Sequence[Path] | None, names: Sequence[str] | None) -> list[Dataset]:
    """The data sets asked for; `commons` where none is."""
    sources: list[str | Path] = [*(names or ()), *(folders or ())]
    for name in names or ():
        if name not in toolsearch_datasets.names():
            known = ", ".join(map(repr, toolsearch_datasets.names()))
            raise SetupError(f"there is no data set {name!r}; shipped are: {known}. For a folder use --data.")
    return [each for source in sources or ["commons"] for each in load(source)]


def labelled(folders: Sequence[Path] | None, names: Sequence[str] | None, samples: Path | None = None) -> list[Dataset]:
    """The data sets asked for, with cases, each gold a tool of its set; cut down to a sample where one is given."""
    found = read_sets(folders, names)
    for each in found:
        if not each.cases:
            raise SetupError(f"{str(each.folder)!r} has no labelled case: it needs a cases.jsonl, with one a line")
        require_gold(each)
    return found if samples is None else only(found, read_samples(samples))


def with_examples(of: list[Dataset], file: Path | None, *, own: bool) -> list[Dataset]:
    """The data sets with the example queries of a file, or with their own; as they are where neither is wanted."""
    if file is not None and own:
        raise SetupError("--examples names a file and --enriched takes the data set's own: pass one of them")
    if file is None and not own:
        return of
    examples = None if file is None else Examples.load(file)
    made = [replace(each, enriched=each.examples() if examples is None else examples) for each in of]
    for each in made:
        if not any(t.enriched for t in each.catalog()):
            where = "has no examples.jsonl" if file is None else f"has no tool that {str(file)!r} has queries for"
            raise SetupError(f"the data set {each.key!r} {where}")
    return made


def modes(asked: Sequence[str] | None) -> tuple[Mode, ...]:
    """Deliveries by name; append where none is asked for."""
    known: dict[str, Mode] = {"append": "append", "bridge": "bridge"}
    for name in asked or ():
        if name not in known:
            raise SetupError(f"there is no delivery {name!r} to measure; there are: 'append', 'bridge'")
    return tuple(known[name] for name in asked or ("append",))


def tell(report: Report, form: Form, out: Path | None, tables: int | None = None) -> None:
    """Prints a report in a form, and writes it in all of them where a folder is given.

    In the terminal, with a number, only the first so many tables.
    """
    if form is Form.table:
        show(report, Console(), tables)
    else:
        sys.stdout.write(FORMS[form](report))
    if out is not None:
        files = write(report, out)
        errors().print(Text(f"Written: {', '.join(str(file) for file in files)}"))


def errors() -> Console:
    """Progress and notes go to the error stream, so that what is printed can be piped."""
    return Console(stderr=True)
