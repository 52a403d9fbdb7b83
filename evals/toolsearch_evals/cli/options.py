"""What the commands of `toolsearch eval` share: options, reading data, and printing a report."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from toolsearch import SetupError, open_index
from toolsearch.catalog import Examples
from toolsearch_evals.cli.terminal import show
from toolsearch_evals.data.cases import (
    Dataset,
    dataset_names,
    is_case_file,
    load,
    only,
    read_samples,
    require_gold,
    unknown_dataset,
)
from toolsearch_evals.reports.forms import FORMS, write
from toolsearch_evals.reports.report import Report
from toolsearch_evals.runs.reading import is_run

__all__ = [
    "CachedWeightOption",
    "DataOption",
    "DatasetOption",
    "FormatOption",
    "OutOption",
    "OutputWeightOption",
    "OwnToolsOption",
    "Preset",
    "RecognisedOption",
    "ReportForm",
    "SamplesOption",
    "SettingsOption",
    "Split",
    "SplitOption",
    "check_folder_exists",
    "default_index",
    "error_console",
    "index_option",
    "make_folder",
    "print_report",
    "read_labelled_sets",
    "read_one_labelled_set",
    "read_sets",
    "read_settings",
    "read_sizes",
    "with_examples",
]


class Split(StrEnum):
    """Which cases count."""

    train = "train"
    dev = "dev"
    test = "test"
    all = "all"


class ReportForm(StrEnum):
    """How a report is printed."""

    table = "table"
    json = "json"
    csv = "csv"
    md = "md"
    html = "html"


class Preset(StrEnum):
    """A published setting to repeat."""

    spring = "spring"


DataOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--data",
        help="A data set of your own: a folder, a file of tools and perhaps one of cases after it, or a public set as "
        "FORM:FOLDER; may be repeated.",
        show_default=False,
    ),
]
DatasetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset",
        help="A data set by name, one that ships or that a package installs; may be repeated.",
        show_default="commons, without --data",
    ),
]


OwnToolsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tools",
        metavar="FILE",
        help="A file or folder of your own tools, as `toolsearch search --tools` reads; savings on these need no "
        "cases. May be repeated.",
        show_default="none",
    ),
]


def index_option(default: str) -> Any:
    """The option --index; each command has a default of its own."""
    text = "An index, such as keyword, hybrid or hybrid:ENCODER=MODEL; may be repeated."
    return typer.Option("--index", help=text, show_default=default)


def make_folder(folder: Path | None) -> Path | None:
    """Makes the folder to write into now, so that a long run does not end with the news that it cannot be made."""
    if folder is not None:
        if is_run(folder):
            raise SetupError(f"the folder {str(folder)!r} holds a run, which is kept as it is: name another folder")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(f"the folder {str(folder)!r} cannot be made: {error.strerror}") from None
    return folder


def check_folder_exists(file: Path | None) -> Path | None:
    """Checks now, before a long run, that the folder of a file to write exists."""
    if file is not None and not file.parent.is_dir():
        raise SetupError(f"there is no folder {str(file.parent)!r} to write {file.name!r} into; create it first")
    return file


OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        callback=make_folder,
        help="Write report.html, .json, .csv and .md into this folder.",
        show_default="none",
    ),
]
FormatOption = Annotated[ReportForm, typer.Option("--format", help="The form in which the report is printed.")]
SplitOption = Annotated[
    Split, typer.Option("--split", help="The split whose cases count; cases without a split always count.")
]
SamplesOption = Annotated[
    Path | None,
    typer.Option(
        "--samples",
        help='A JSON file of the cases to run: a list of ids, or {"set/cases": \\[ids], "set/queries": \\[ids]}.',
        show_default="all cases",
    ),
]
CachedWeightOption = Annotated[
    float, typer.Option(min=0, help="The price of a cached input token; a new input token costs 1.")
]
OutputWeightOption = Annotated[
    float, typer.Option(min=0, help="The price of an output token; a new input token costs 1.")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting of the sessions that search, such as results=2; may be repeated. A name that is repeated is "
        "played with each of its values.",
        show_default="the settings' own",
    ),
]
RecognisedOption = Annotated[
    float,
    typer.Option(
        min=0, max=1, help="How often the model takes a right tool of which it has read only the name: 0 to 1."
    ),
]


def default_index() -> str:
    """The index that `toolsearch search` and a `ToolSearch` use, under the name of the one that `auto` opens here."""
    return open_index("auto").name


def read_sizes(sizes: str) -> list[int]:
    """Sizes from a text with commas."""
    try:
        return [int(number) for number in sizes.split(",")]
    except ValueError:
        raise SetupError(
            f"the sizes {sizes!r} are not whole numbers with commas between them, such as 1000,10000"
        ) from None


def read_sets(folders: Sequence[Path] | None, names: Sequence[str] | None) -> list[Dataset]:
    """The data sets asked for; `commons` if none is."""
    known = dataset_names()
    for name in names or ():
        if name not in known:
            raise unknown_dataset(name)
    pairs: list[tuple[str | Path, Path | None]] = [(name, None) for name in names or ()]
    for source in folders or ():
        if pairs and pairs[-1][1] is None and is_case_file(source) and Path(pairs[-1][0]).is_file():
            pairs[-1] = pairs[-1][0], source  # `--data tools.json --data cases.jsonl`
        else:
            pairs.append((source, None))
    return [each for source, cases in pairs or [("commons", None)] for each in load(source, cases=cases)]


def read_labelled_sets(
    folders: Sequence[Path] | None, names: Sequence[str] | None, samples: Path | None = None
) -> list[Dataset]:
    """The data sets asked for, which must have cases whose gold is in the set; cut down to a sample if one is given."""
    found = read_sets(folders, names)
    for each in found:
        if not each.cases:
            place = each.key if each.folder is None or str(each.folder) == "." else str(each.folder)
            if each.empty_drafts:
                raise SetupError(f"{place!r} has no case yet, only drafts without a query: write some of them first")
            raise SetupError(
                f"{place!r} has no labelled case: it needs a cases.jsonl with one case a line. "
                "`toolsearch eval init TOOLS --out FOLDER` drafts one; "
                "`toolsearch eval savings --tools TOOLS` needs none"
            )
        require_gold(each)
    return found if samples is None else only(found, read_samples(samples))


def read_one_labelled_set(folders: Sequence[Path] | None, names: Sequence[str] | None, purpose: str) -> Dataset:
    """The one data set asked for, with cases. `purpose` begins the message if there are several."""
    found = read_labelled_sets(folders, names)
    if len(found) != 1:
        raise SetupError(f"{purpose} on one data set, not on {len(found)}: {', '.join(each.key for each in found)}")
    return found[0]


def with_examples(of: list[Dataset], file: Path | None, *, own: bool) -> list[Dataset]:
    """The data sets with the example queries of a file, or with their own; unchanged if neither is wanted."""
    if file is not None and own:
        raise SetupError("--examples takes a file and --enriched the data set's own queries: pass only one of them")
    if file is None and not own:
        return of
    examples = None if file is None else Examples.load(file)
    made = [replace(each, enriched=each.examples() if examples is None else examples) for each in of]
    for each in made:
        if not any(t.enriched for t in each.catalog()):
            where = "has no examples.jsonl" if file is None else f"has no tool that {str(file)!r} has queries for"
            raise SetupError(f"the data set {each.key!r} {where}")
    return made


def read_settings(asked: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """Names and values of settings from `NAME=VALUE`."""
    for text in asked or ():
        if not re.fullmatch(r"\s*[^\s=]+\s*=.*", text, re.DOTALL):
            raise SetupError(f"{text!r} is not a setting and its value, such as results=2")
    parts = [text.partition("=") for text in asked or ()]
    return tuple((name.strip(), value.strip()) for name, _, value in parts)


def print_report(report: Report, form: ReportForm, out: Path | None, tables: int | None = None) -> None:
    """Prints a report in one form, and writes it in every form if a folder is given.

    With a number of `tables`, the terminal shows only that many.
    """
    if form is ReportForm.table:
        show(report, Console(), tables)
    else:
        sys.stdout.write(FORMS[form](report))
    if out is not None:
        files = write(report, out)
        error_console().print(Text(f"Written: {', '.join(str(file) for file in files)}"))


def error_console() -> Console:
    """The error stream, for progress and notes, so that the printed report can be piped."""
    return Console(stderr=True)
