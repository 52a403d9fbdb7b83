"""`toolsearch eval`: parsing and printing; a mistake is a `SetupError`, which the command line tells in a line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import toolsearch_datasets
from toolsearch import SetupError
from toolsearch_evals.cases import Dataset, load, only, read_samples, require_gold
from toolsearch_evals.check import problems
from toolsearch_evals.demo import demo as play_demo
from toolsearch_evals.findings import savings_report
from toolsearch_evals.import_cost import import_cost as measure_import_cost
from toolsearch_evals.ranking import in_split
from toolsearch_evals.ranking import ranking as rank
from toolsearch_evals.report import FORMS, Report, write
from toolsearch_evals.savings import Mode, Plan, conversations_of, sweep
from toolsearch_evals.speed import speed as measure_speed
from toolsearch_evals.spring import spring_plan, spring_report
from toolsearch_evals.terminal import progress, show

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
datasets = typer.Typer(no_args_is_help=True, help="The data sets that ship with toolsearch, and checks on any.")
app.add_typer(datasets, name="datasets")


class Split(StrEnum):
    """Which cases count."""

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
Index = Annotated[list[str] | None, typer.Option("--index", help="A search backend by name; may be repeated.")]


def _writable(folder: Path | None) -> Path | None:
    """A folder to write into, made now: a run is long, and its end is late to find that there is none."""
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(f"the folder {str(folder)!r} cannot be made: {error.strerror}") from None
    return folder


Out = Annotated[
    Path | None,
    typer.Option("--out", callback=_writable, help="Write report.html, .json, .csv and .md into this folder."),
]
Format = Annotated[Form, typer.Option("--format", help="What is printed.")]
Cases = Annotated[Split, typer.Option("--split", help="Which cases count; those without a split always do.")]
INDEXES = ("keyword", "regex")


@app.callback()
def about() -> None:
    """Measure what tool search finds, saves and costs."""


@app.command()
def ranking(
    *,
    data: Data = None,
    dataset: Name = None,
    index: Index = None,
    split: Cases = Split.all,
    samples: Annotated[
        Path | None,
        typer.Option(help='Only these cases: a JSON list of ids, or {"set/cases": [ids], "set/queries": [ids]}.'),
    ] = None,
    out: Out = None,
    form: Format = Form.table,
) -> None:
    """How well the indexes rank the labelled tools, and how often they answer what no tool can do."""
    loaded = _load(data, dataset)
    for each in loaded:
        require_gold(each)
    if samples is not None:
        loaded = only(loaded, read_samples(samples))
    names = index or INDEXES
    total = len(names) * sum(len(in_split(each.cases, split)) for each in loaded)
    with progress(total, _errors()) as tick:
        report = rank(loaded, names, split, tick)
    _tell(report, form, out)


@app.command()
def savings(
    *,
    data: Data = None,
    dataset: Name = None,
    index: Index = None,
    mode: Annotated[list[str] | None, typer.Option(help="Delivery, append or bridge; may be repeated.")] = None,
    wire: Annotated[list[str] | None, typer.Option(help="openai_chat or anthropic; may be repeated.")] = None,
    sizes: Annotated[str, typer.Option(help="Numbers of tools, with commas; if not given, from 5 to all.")] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Seeded orders of tools and cases.")] = 3,
    conversations: Annotated[int, typer.Option(min=1, help="Conversations for each seed.")] = 10,
    turns: Annotated[int, typer.Option(min=1, help="Cases in a conversation.")] = 3,
    one_by_one: Annotated[
        bool, typer.Option("--one-by-one/--together", help="Tools of one turn: a request for each, or one reply.")
    ] = False,
    cached_weight: Annotated[
        float, typer.Option(min=0, help="The price of a cached input token; a new one is 1.")
    ] = 0.1,
    output_weight: Annotated[
        float, typer.Option(min=0, help="The price of an output token; a new input one is 1.")
    ] = 5,
    split: Cases = Split.all,
    preset: Annotated[Preset | None, typer.Option(help="Repeat a published setting instead of a sweep.")] = None,
    out: Out = None,
    form: Format = Form.table,
) -> None:
    """Tokens of whole conversations with every tool sent against searching, by number of tools."""
    loaded = _load(data, dataset)
    for each in loaded:
        require_gold(each)
    if len(loaded) != 1:
        raise SetupError(
            f"savings are measured on one data set, not on {len(loaded)}: {', '.join(d.key for d in loaded)}"
        )
    plan = Plan(
        indexes=tuple(index or INDEXES),
        modes=_modes(mode),
        wires=tuple(wire or Plan.wires),
        sizes=tuple(_numbers(sizes)) if sizes else (),
        seeds=seeds,
        conversations=conversations,
        turns=turns,
        one_by_one=one_by_one,
        cached_weight=cached_weight,
        output_weight=output_weight,
    )
    only_set = loaded[0]
    if preset is not None:
        with progress(2 * conversations_of(spring_plan(only_set, plan), 28), _errors()) as tick:
            report = spring_report(only_set, plan, tick)
    else:
        with progress(conversations_of(plan, len(only_set.catalog())), _errors()) as tick:
            swept = sweep(only_set, in_split(only_set.cases, split), plan, tick)
        report = savings_report(swept, plan, only_set, split)
    _tell(report, form, out)


@app.command()
def speed(
    *,
    data: Data = None,
    dataset: Name = None,
    index: Index = None,
    sizes: Annotated[str, typer.Option(help="Numbers of tools, with commas.")] = "1000,10000",
    queries: Annotated[int, typer.Option(min=2, help="Most queries of each wording.")] = 200,
    seed: Annotated[int, typer.Option(help="For the sample of queries and for derived tools.")] = 0,
    out: Out = None,
    form: Format = Form.table,
) -> None:
    """How long searches take, beside bm25s and rank-bm25 where they are installed."""
    with progress(None, _errors()) as tick:
        numbers = _numbers(sizes)
        report = measure_speed(_load(data, dataset), index or INDEXES, numbers, queries=queries, seed=seed, tick=tick)
    _tell(report, form, out)


def _numbers(sizes: str) -> list[int]:
    try:
        return [int(number) for number in sizes.split(",")]
    except ValueError:
        raise SetupError(f"the sizes {sizes!r} are not whole numbers with commas, like 1000,10000") from None


@app.command(name="import-cost")
def import_cost(
    runs: Annotated[int, typer.Option(min=1, help="Fresh interpreters for each program.")] = 10,
    out: Out = None,
    form: Format = Form.table,
) -> None:
    """CPU time of `import toolsearch` beside importing pydantic and defining one model."""
    with progress(3 * (runs + 1), _errors()) as tick:
        report = measure_import_cost(runs, tick)
    _tell(report, form, out)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", callback=_writable, help="Where the report goes.")] = Path("build/demo"),
) -> None:
    """Search real tools, then see what that saves as their number grows. Needs no network."""
    console = Console()
    report = play_demo(load("commons")[0], console, _errors())
    files = write(report, out)
    console.print(Text(f"\nThe report is in {out}: {', '.join(file.name for file in files)}"))


@datasets.command(name="list")
def list_datasets() -> None:
    """The data sets that ship, with counts and licence."""
    console = Console()
    for name, entry in toolsearch_datasets.manifest().items():
        counts = ", ".join(f"{entry[key]} {key}" for key in ("tools", "servers", "cases", "unanswerable"))
        console.print(Text(f"{name}: {entry['title']}. {counts}. {entry['licence']}."))


@datasets.command(name="check")
def check_datasets(data: Data = None, dataset: Name = None) -> None:
    """Check labels, ids, counts, checksums and schemas; exit code 1 if anything is wrong."""
    console = Console()
    wrong = 0
    for each in _load(data, dataset or ([] if data else list(toolsearch_datasets.names()))):
        found = problems(each)
        wrong += len(found)
        state = f"{len(found)} problems" if found else "in order"
        console.print(Text(f"{each.key}: {len(each.definitions)} tools, {len(each.cases)} cases: {state}"))
        for problem in found:
            console.print(Text(f"  {problem}"))
    if wrong:
        raise typer.Exit(1)


def _load(folders: Sequence[Path] | None, names: Sequence[str] | None) -> list[Dataset]:
    """The data sets asked for; `commons` where none is."""
    sources: list[str | Path] = [*(names or ()), *(folders or ())]
    for name in names or ():
        if name not in toolsearch_datasets.names():
            known = ", ".join(map(repr, toolsearch_datasets.names()))
            raise SetupError(f"there is no data set {name!r}; shipped are: {known}. For a folder use --data.")
    return [each for source in sources or ["commons"] for each in load(source)]


def _modes(asked: Sequence[str] | None) -> tuple[Mode, ...]:
    known: dict[str, Mode] = {"append": "append", "bridge": "bridge"}
    for name in asked or ():
        if name not in known:
            raise SetupError(f"there is no delivery {name!r} to measure; there are: 'append', 'bridge'")
    return tuple(known[name] for name in asked or ("append",))


def _tell(report: Report, form: Form, out: Path | None) -> None:
    if form is Form.table:
        show(report, Console())
    else:
        sys.stdout.write(FORMS[form](report))
    if out is not None:
        files = write(report, out)
        _errors().print(Text(f"Written: {', '.join(str(file) for file in files)}"))


def _errors() -> Console:
    """Progress and notes go to the error stream, so that what is printed can be piped."""
    return Console(stderr=True)
