"""`toolsearch eval`: parses and prints. A user's mistake is a `SetupError`, which the command prints as one line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import toolsearch_datasets
from toolsearch import SetupError
from toolsearch_evals.calibrate import calibrate as calibrate_indexes
from toolsearch_evals.cases import GROUP as DATASETS
from toolsearch_evals.cases import Dataset, load
from toolsearch_evals.check import problems
from toolsearch_evals.cli_options import (
    CachedWeightOption,
    DataOption,
    DatasetOption,
    FormatOption,
    OutOption,
    OutputWeightOption,
    Preset,
    RecognisedOption,
    ReportForm,
    SamplesOption,
    SettingsOption,
    Split,
    SplitOption,
    check_folder_exists,
    default_index,
    error_console,
    index_option,
    make_folder,
    print_report,
    read_labelled_sets,
    read_modes,
    read_one_labelled_set,
    read_sets,
    read_settings,
    read_sizes,
    with_examples,
)
from toolsearch_evals.compare import compare as compare_indexes
from toolsearch_evals.demo import demo as play_demo
from toolsearch_evals.derive import write_derived_set
from toolsearch_evals.elsewhere import steps as searches_elsewhere
from toolsearch_evals.fitting import write_fits
from toolsearch_evals.forms import write
from toolsearch_evals.import_cost import import_cost as measure_import_cost
from toolsearch_evals.installed import installed_points, package_of
from toolsearch_evals.learning import learning as measure_learning
from toolsearch_evals.ranking import in_split
from toolsearch_evals.ranking import ranking as rank
from toolsearch_evals.report import Report, counted
from toolsearch_evals.savings import SweepPlan, conversations_of, sweep
from toolsearch_evals.savings_report import savings_report
from toolsearch_evals.simulated_month import Habits
from toolsearch_evals.speed import speed as measure_speed
from toolsearch_evals.spring import spring_plan, spring_report
from toolsearch_evals.terminal import progress

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
datasets = typer.Typer(no_args_is_help=True, help="List and check data sets.")
app.add_typer(datasets, name="datasets")


def example(arguments: str) -> str:
    """The end of a command's help."""
    return f"Example: toolsearch eval {arguments}"


@app.callback()
def about() -> None:
    """Measure what tool search finds, saves and costs."""


@app.command(epilog=example("ranking --split test --index keyword"))
def ranking(
    *,
    data: DataOption = None,
    dataset: DatasetOption = None,
    index: Annotated[list[str] | None, index_option("auto, which is hybrid or keyword")] = None,
    split: SplitOption = Split.all,
    samples: SamplesOption = None,
    examples: Annotated[
        Path | None,
        typer.Option(
            help="Add the example queries of a file that `toolsearch enrich` wrote to the tools.", show_default="none"
        ),
    ] = None,
    enriched: Annotated[
        bool,
        typer.Option("--enriched/--plain", help="Add the data set's own example queries to the tools, or add none."),
    ] = False,
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Measure how well indexes rank the labelled tools, and how often they answer requests that no tool can meet."""
    loaded = with_examples(read_labelled_sets(data, dataset, samples), examples, own=enriched)
    names = index or [default_index()]
    total = len(names) * sum(len(in_split(each.cases, split)) for each in loaded)
    with progress(total, error_console()) as tick:
        report = rank(loaded, names, split, tick)
    print_report(report, form, out)


@app.command(epilog=example("compare hybrid keyword --split test"))
def compare(
    one: Annotated[str, typer.Argument(help="The first index, such as hybrid or hybrid:ENCODER=MODEL.")],
    other: Annotated[str, typer.Argument(help="The index that it is compared with.")],
    *,
    data: DataOption = None,
    dataset: DatasetOption = None,
    split: SplitOption = Split.all,
    samples: SamplesOption = None,
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Compare two indexes case by case: wins, losses, the difference with its interval, the cases that differ most."""
    loaded = read_labelled_sets(data, dataset, samples)
    with progress(sum(len(in_split(each.cases, split)) for each in loaded), error_console()) as tick:
        report = compare_indexes(loaded, one, other, split, tick)
    print_report(report, form, out, tables=1)  # the others hold whole answers, too wide for a terminal


@app.command(epilog=example("calibrate --index keyword"))
def calibrate(
    *,
    data: DataOption = None,
    dataset: DatasetOption = None,
    index: Annotated[list[str] | None, index_option("keyword")] = None,
    judge: Annotated[
        list[Path] | None,
        typer.Option(
            help="A data set to judge the fits on as well, as for --data; may be repeated.", show_default="none"
        ),
    ] = None,
    samples: SamplesOption = None,
    fits: Annotated[
        Path | None,
        typer.Option(
            callback=check_folder_exists,
            help="Write the fitted confidence into this file; the fits of other indexes in it are kept.",
            show_default="none",
        ),
    ] = None,
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Fit the confidence of indexes on the splits train and dev, and judge it on test and on other sets."""
    only_set = read_one_labelled_set(data, dataset, "confidence is fitted")
    names = index or ["keyword"]
    others = read_labelled_sets(judge, None, samples) if judge else []
    total = len(names) * (len([case for case in only_set.cases if case.split]) + searches_elsewhere(others))
    with progress(total, error_console()) as tick:
        report, entries = calibrate_indexes(only_set, names, tick, others=others)
    print_report(report, form, out)
    if fits is not None:
        write_fits(entries, fits)
        error_console().print(Text(f"Written: {fits}"))


@app.command(epilog=example("savings --sizes 5,50,500 --out build/savings"))
def savings(
    *,
    data: DataOption = None,
    dataset: DatasetOption = None,
    index: Annotated[list[str] | None, index_option("auto, which is hybrid or keyword")] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(help="How found tools reach the model: append or bridge; may be repeated.", show_default="append"),
    ] = None,
    wire: Annotated[
        list[str] | None,
        typer.Option(
            help="The message format of a provider: openai_chat, anthropic or an installed wire; may be repeated.",
            show_default="openai_chat and anthropic",
        ),
    ] = None,
    sizes: Annotated[
        str, typer.Option(help="Catalog sizes in tools, with commas between them.", show_default="from 5 to all")
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeded orders of tools and cases to play.")] = 3,
    conversations: Annotated[int, typer.Option(min=1, help="How many conversations to play for each seed.")] = 10,
    turns: Annotated[int, typer.Option(min=1, help="How many turns a conversation has; each turn is one case.")] = 3,
    one_by_one: Annotated[
        bool,
        typer.Option(
            "--one-by-one/--together",
            help="Call the tools of a turn one by one, in a request each, or together, in one reply.",
        ),
    ] = False,
    cached_weight: CachedWeightOption = SweepPlan.cached_weight,
    output_weight: OutputWeightOption = SweepPlan.output_weight,
    settings: SettingsOption = None,
    recognised: RecognisedOption = SweepPlan.recognised,
    split: SplitOption = Split.all,
    preset: Annotated[
        Preset | None,
        typer.Option(help="Repeat a published setting instead of going through many sizes.", show_default="none"),
    ] = None,
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Count the tokens of whole conversations by number of tools: with every tool sent, and with search."""
    only_set = read_one_labelled_set(data, dataset, "savings are measured")
    plan = SweepPlan(
        indexes=tuple(index or [default_index()]),
        modes=read_modes(mode),
        wires=tuple(wire or SweepPlan.wires),
        sizes=tuple(read_sizes(sizes)) if sizes else (),
        seeds=seeds,
        conversations=conversations,
        turns=turns,
        one_by_one=one_by_one,
        cached_weight=cached_weight,
        output_weight=output_weight,
        settings=read_settings(settings),
        recognised=recognised,
    )
    report = _preset_report(only_set, plan) if preset is not None else _sweep_report(only_set, plan, split)
    print_report(report, form, out, tables=3)  # the fourth, where the tokens go, is too wide for a terminal


def _preset_report(dataset: Dataset, plan: SweepPlan) -> Report:
    with progress(2 * conversations_of(spring_plan(dataset, plan), 28), error_console()) as tick:
        return spring_report(dataset, plan, tick)


def _sweep_report(dataset: Dataset, plan: SweepPlan, split: str) -> Report:
    with progress(conversations_of(plan, len(dataset.catalog())), error_console()) as tick:
        swept = sweep(dataset, in_split(dataset.cases, split), plan, tick)
    return savings_report(swept, plan, dataset, split)


@app.command(epilog=example("speed --sizes 500 --queries 20 --index keyword"))
def speed(
    *,
    data: DataOption = None,
    dataset: DatasetOption = None,
    index: Annotated[list[str] | None, index_option("all that are installed")] = None,
    sizes: Annotated[str, typer.Option(help="Catalog sizes in tools, with commas between them.")] = "100,1000,10000",
    queries: Annotated[
        int, typer.Option(min=2, help="The most queries in each wording: a user's and an agent's.")
    ] = 200,
    seed: Annotated[int, typer.Option(help="The seed that chooses the queries and the derived tools.")] = 0,
    budget_seconds: Annotated[
        float,
        typer.Option(
            min=1, help="The most seconds for building, for searching and for changing, for one engine at one size."
        ),
    ] = 120,
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Measure the time and memory of indexes, next to the published engines that are installed."""
    with progress(None, error_console()) as tick:
        report = measure_speed(
            read_sets(data, dataset),
            index or (),
            read_sizes(sizes),
            queries=queries,
            seed=seed,
            budget_seconds=budget_seconds,
            tick=tick,
        )
    print_report(report, form, out)


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


@app.command(epilog=example("learning --index keyword"))
def learning(
    *,
    data: DataOption = None,
    dataset: DatasetOption = None,
    index: Annotated[list[str] | None, index_option("keyword")] = None,
    split: SplitOption = Split.test,
    seeds: Annotated[int, typer.Option(min=1, help="How many months to simulate, each with other people.")] = 3,
    tenants: Annotated[
        int, typer.Option(min=1, help="How many tenants there are, each with habits of its own.")
    ] = Habits.tenants,
    needs: Annotated[int, typer.Option(min=1, help="How many different needs each tenant has.")] = Habits.needs,
    requests: Annotated[int, typer.Option(min=1, help="How many requests each tenant makes a day.")] = Habits.requests,
    mistaken: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="How often a wrong tool is called, and learned, although a fitting one was found: 0 to 1.",
        ),
    ] = Habits.mistaken,
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Simulate months of use: compare searches with and without the lessons from earlier calls."""
    only_set = read_one_labelled_set(data, dataset, "learning is measured")
    habits = Habits(tenants=tenants, needs=needs, requests=requests, mistaken=mistaken)
    names = index or ["keyword"]
    with progress(len(names) * seeds, error_console()) as tick:
        report = measure_learning(only_set, names, split, habits, seeds=seeds, tick=tick)
    print_report(report, form, out)


@app.command(name="import-cost", epilog=example("import-cost --runs 20"))
def import_cost(
    runs: Annotated[int, typer.Option(min=1, help="How many fresh interpreters run each program.")] = 10,
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Measure the CPU time of `import toolsearch`, next to importing pydantic and defining one model."""
    with progress(3 * (runs + 1), error_console()) as tick:
        report = measure_import_cost(runs, tick)
    print_report(report, form, out)


@app.command(epilog=example("demo --out build/demo"))
def demo(
    out: Annotated[Path, typer.Option("--out", callback=make_folder, help="The folder for the report.")] = Path(
        "build/demo"
    ),
) -> None:
    """Search real tools, then see what search saves as their number grows. Needs no network."""
    console = Console()
    report = play_demo(load("commons")[0], console, error_console())
    files = write(report, out)
    console.print(Text(f"\nThe report is in {out}: {', '.join(file.name for file in files)}"))


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
