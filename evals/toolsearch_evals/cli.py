"""`toolsearch eval`: parsing and printing; a mistake is a `SetupError`, which the command line tells in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import toolsearch_datasets
from toolsearch import SetupError
from toolsearch_evals.calibrate import calibrate as calibrate_indexes
from toolsearch_evals.cases import load
from toolsearch_evals.check import problems
from toolsearch_evals.compare import compare as compare_indexes
from toolsearch_evals.demo import demo as play_demo
from toolsearch_evals.derive import derive as derive_set
from toolsearch_evals.findings import savings_report
from toolsearch_evals.fitting import write_fits
from toolsearch_evals.import_cost import import_cost as measure_import_cost
from toolsearch_evals.learning import Habits
from toolsearch_evals.learning import learning as measure_learning
from toolsearch_evals.options import (
    INDEXES,
    Cases,
    Data,
    Form,
    Format,
    Index,
    Name,
    Out,
    Preset,
    Samples,
    Split,
    errors,
    in_folder,
    labelled,
    modes,
    numbers,
    read_sets,
    tell,
    with_examples,
    writable,
)
from toolsearch_evals.ranking import in_split
from toolsearch_evals.ranking import ranking as rank
from toolsearch_evals.report import counted, write
from toolsearch_evals.savings import Plan, conversations_of, sweep
from toolsearch_evals.speed import speed as measure_speed
from toolsearch_evals.spring import spring_plan, spring_report
from toolsearch_evals.terminal import progress

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
datasets = typer.Typer(no_args_is_help=True, help="The data sets that ship with toolsearch, and checks on any.")
app.add_typer(datasets, name="datasets")


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
    samples: Samples = None,
    examples: Annotated[
        Path | None, typer.Option(help="Example queries to put beside the tools, from `toolsearch enrich`.")
    ] = None,
    enriched: Annotated[
        bool, typer.Option("--enriched/--plain", help="Put the data set's own examples.jsonl beside the tools.")
    ] = False,
    out: Out = None,
    form: Format = Form.table,
) -> None:
    """How well the indexes rank the labelled tools, and how often they answer what no tool can do."""
    loaded = with_examples(labelled(data, dataset, samples), examples, own=enriched)
    names = index or INDEXES
    total = len(names) * sum(len(in_split(each.cases, split)) for each in loaded)
    with progress(total, errors()) as tick:
        report = rank(loaded, names, split, tick)
    tell(report, form, out)


@app.command()
def compare(
    one: Annotated[str, typer.Argument(help="An index, as with --index.")],
    other: Annotated[str, typer.Argument(help="The index it is compared with.")],
    *,
    data: Data = None,
    dataset: Name = None,
    split: Cases = Split.all,
    samples: Samples = None,
    out: Out = None,
    form: Format = Form.table,
) -> None:
    """Two indexes case by case: wins and losses, the difference with its interval, and the cases that differ most."""
    loaded = labelled(data, dataset, samples)
    with progress(sum(len(in_split(each.cases, split)) for each in loaded), errors()) as tick:
        report = compare_indexes(loaded, one, other, split, tick)
    tell(report, form, out, tables=1)  # those behind it hold whole answers, too wide for a terminal


@app.command()
def calibrate(
    *,
    data: Data = None,
    dataset: Name = None,
    index: Index = None,
    fits: Annotated[
        Path | None,
        typer.Option(callback=in_folder, help="Write what was fitted into this file; other indexes in it stay."),
    ] = None,
    out: Out = None,
    form: Format = Form.table,
) -> None:
    """Fit the confidence of indexes on the splits train and dev, and judge it on test."""
    loaded = labelled(data, dataset)
    if len(loaded) != 1:
        raise SetupError(
            f"confidence is fitted on one data set, not on {len(loaded)}: {', '.join(d.key for d in loaded)}"
        )
    names = index or INDEXES[:1]
    total = len(names) * len([case for case in loaded[0].cases if case.split])
    with progress(total, errors()) as tick:
        report, entries = calibrate_indexes(loaded[0], names, tick)
    tell(report, form, out)
    if fits is not None:
        write_fits(entries, fits)
        errors().print(Text(f"Written: {fits}"))


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
    loaded = labelled(data, dataset)
    if len(loaded) != 1:
        raise SetupError(
            f"savings are measured on one data set, not on {len(loaded)}: {', '.join(d.key for d in loaded)}"
        )
    plan = Plan(
        indexes=tuple(index or INDEXES),
        modes=modes(mode),
        wires=tuple(wire or Plan.wires),
        sizes=tuple(numbers(sizes)) if sizes else (),
        seeds=seeds,
        conversations=conversations,
        turns=turns,
        one_by_one=one_by_one,
        cached_weight=cached_weight,
        output_weight=output_weight,
    )
    only_set = loaded[0]
    if preset is not None:
        with progress(2 * conversations_of(spring_plan(only_set, plan), 28), errors()) as tick:
            report = spring_report(only_set, plan, tick)
    else:
        with progress(conversations_of(plan, len(only_set.catalog())), errors()) as tick:
            swept = sweep(only_set, in_split(only_set.cases, split), plan, tick)
        report = savings_report(swept, plan, only_set, split)
    tell(report, form, out, tables=2)  # the third, where the tokens go, is too wide for a terminal


@app.command()
def speed(
    *,
    data: Data = None,
    dataset: Name = None,
    index: Index = None,
    sizes: Annotated[str, typer.Option(help="Numbers of tools, with commas.")] = "100,1000,10000",
    queries: Annotated[int, typer.Option(min=2, help="Most queries of each wording.")] = 200,
    seed: Annotated[int, typer.Option(help="For the sample of queries and for derived tools.")] = 0,
    budget_seconds: Annotated[
        float, typer.Option(min=1, help="Most for building, searching and changing each, of an engine at one size.")
    ] = 120,
    out: Out = None,
    form: Format = Form.table,
) -> None:
    """How fast all indexes are, beside published engines where they are installed: time and memory."""
    with progress(None, errors()) as tick:
        report = measure_speed(
            read_sets(data, dataset),
            index or (),
            numbers(sizes),
            queries=queries,
            seed=seed,
            budget_seconds=budget_seconds,
            tick=tick,
        )
    tell(report, form, out)


@app.command()
def derive(
    *,
    out: Annotated[Path, typer.Option("--out", callback=writable, help="The folder for the derived data set.")],
    tools: Annotated[int, typer.Option(min=1, help="How many tools it has, the given ones included.")] = 10_000,
    seed: Annotated[int, typer.Option(help="One seed gives the same files.")] = 1,
    data: Data = None,
    dataset: Name = None,
) -> None:
    """A larger catalog for speed and scale, made up from a given one by a seed and marked as derived."""
    files = derive_set(read_sets(data, dataset)[0], tools, seed, out)
    errors().print(Text(f"Written: {', '.join(str(file) for file in files)}"))


@app.command()
def learning(
    *,
    data: Data = None,
    dataset: Name = None,
    index: Index = None,
    split: Cases = Split.test,
    seeds: Annotated[int, typer.Option(min=1, help="Months, each of other people.")] = 3,
    tenants: Annotated[int, typer.Option(min=1, help="Tenants with habits of their own.")] = Habits.tenants,
    needs: Annotated[int, typer.Option(min=1, help="Different needs of a tenant.")] = Habits.needs,
    requests: Annotated[int, typer.Option(min=1, help="Requests of a tenant a day.")] = Habits.requests,
    mistaken: Annotated[
        float, typer.Option(min=0, max=1, help="How often a wrong tool is called where a fitting one was found.")
    ] = Habits.mistaken,
    out: Out = None,
    form: Format = Form.table,
) -> None:
    """Simulated months of use: searches with and without what calls have taught, and who was harmed."""
    loaded = labelled(data, dataset)
    if len(loaded) != 1:
        raise SetupError(f"learning is measured on one data set, not on {len(loaded)}")
    habits = Habits(tenants=tenants, needs=needs, requests=requests, mistaken=mistaken)
    names = index or ["keyword"]
    with progress(len(names) * seeds, errors()) as tick:
        report = measure_learning(loaded[0], names, split, habits, seeds=seeds, tick=tick)
    tell(report, form, out)


@app.command(name="import-cost")
def import_cost(
    runs: Annotated[int, typer.Option(min=1, help="Fresh interpreters for each program.")] = 10,
    out: Out = None,
    form: Format = Form.table,
) -> None:
    """CPU time of `import toolsearch` beside importing pydantic and defining one model."""
    with progress(3 * (runs + 1), errors()) as tick:
        report = measure_import_cost(runs, tick)
    tell(report, form, out)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", callback=writable, help="Where the report goes.")] = Path("build/demo"),
) -> None:
    """Search real tools, then see what that saves as their number grows. Needs no network."""
    console = Console()
    report = play_demo(load("commons")[0], console, errors())
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
