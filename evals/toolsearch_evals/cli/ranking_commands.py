"""`toolsearch eval ranking`, `compare`, `calibrate` and `learning`: how well search finds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from toolsearch_evals.cli.app import app, example
from toolsearch_evals.cli.options import (
    DataOption,
    DatasetOption,
    FormatOption,
    OutOption,
    OwnToolsOption,
    ReportForm,
    SamplesOption,
    Split,
    SplitOption,
    check_folder_exists,
    default_index,
    error_console,
    index_option,
    print_report,
    read_labelled_sets,
    read_one_labelled_set,
    with_examples,
)
from toolsearch_evals.cli.run_options import (
    FailUnderOption,
    ResumeOption,
    RunOption,
    check_bars,
    command_of,
    kept_run,
)
from toolsearch_evals.cli.terminal import progress
from toolsearch_evals.confidence.calibrate import calibrate as calibrate_indexes
from toolsearch_evals.confidence.elsewhere import steps as searches_elsewhere
from toolsearch_evals.confidence.fitting import write_fits
from toolsearch_evals.learning.months import learning as measure_learning
from toolsearch_evals.learning.simulated_month import Habits
from toolsearch_evals.ranking.compare import compare as compare_indexes
from toolsearch_evals.ranking.rank import in_split
from toolsearch_evals.ranking.rank import ranking as rank
from toolsearch_evals.runs.bars import ranking_places, read_bars
from toolsearch_evals.runs.kinds import RANKING
from toolsearch_evals.runs.ranking_run import play_ranking, ranking_manifest

__all__ = ["calibrate", "compare", "learning", "ranking"]


@app.command(epilog=example("ranking --split test --index keyword"))
def ranking(
    *,
    context: typer.Context,
    data: DataOption = None,
    dataset: DatasetOption = None,
    tools: OwnToolsOption = None,
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
    run: RunOption = None,
    resume: ResumeOption = False,
    fail_under: FailUnderOption = "",
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Measure how well indexes rank the labelled tools, and how often they answer requests that no tool can meet."""
    folders = [*(data or ()), *map(Path, tools or ())]
    loaded = with_examples(read_labelled_sets(folders, dataset, samples), examples, own=enriched)
    names = index or [default_index()]
    bars = read_bars(fail_under, RANKING.with_bars())
    total = len(names) * sum(len(in_split(each.cases, split)) for each in loaded)
    if run is None and not resume:
        with progress(total, error_console()) as tick:
            report = rank(loaded, names, split, tick)
    else:
        manifest = ranking_manifest(command_of(context), loaded, names, split)
        with kept_run(run, manifest, total, resume=resume) as kept, progress(total, error_console()) as tick:
            report = kept.close(play_ranking(kept, loaded, names, split, tick))
    print_report(report, form, out)
    check_bars(bars, ranking_places(report))


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
