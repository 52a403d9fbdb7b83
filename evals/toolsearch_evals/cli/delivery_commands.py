"""`toolsearch eval delivery`: the choice of a delivery by price, fitted and judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolsearch_evals.cli.app import app, example
from toolsearch_evals.cli.options import (
    DataOption,
    DatasetOption,
    FormatOption,
    OutOption,
    RecognisedOption,
    ReportForm,
    SettingsOption,
    Split,
    SplitOption,
    check_folder_exists,
    default_index,
    error_console,
    index_option,
    print_report,
    read_one_labelled_set,
    read_settings,
    read_sizes,
)
from toolsearch_evals.cli.run_options import command_of
from toolsearch_evals.cli.savings_options import (
    CachesOption,
    ConversationsOption,
    LocalityOption,
    ProcessesOption,
    SeedsOption,
    TurnsOption,
    WiresOption,
    read_axes,
)
from toolsearch_evals.cli.terminal import progress
from toolsearch_evals.ranking.rank import in_split
from toolsearch_evals.savings.choice_report import choice_plan, choice_report, fit_of, write_fit
from toolsearch_evals.savings.stage import playable
from toolsearch_evals.savings.sweep import SweepPlan, conversations_of, sweep
from toolsearch_evals.savings.workers import most_processes

__all__ = ["delivery"]


@app.command(epilog=example("delivery --sizes 20,50 --turns 3,10"))
def delivery(
    *,
    context: typer.Context,
    data: DataOption = None,
    dataset: DatasetOption = None,
    index: Annotated[str, index_option("auto, which is hybrid or keyword")] = "",
    wire: WiresOption = None,
    sizes: Annotated[str, typer.Option(help="Catalog sizes in tools, with commas between them.")] = "20,30,50,100,200",
    seeds: SeedsOption = 4,
    conversations: ConversationsOption = 6,
    turns: TurnsOption = "3,10,20",
    judged_turns: Annotated[
        str, typer.Option(help="Further lengths of conversations, on which nothing is fitted.")
    ] = "5,15",
    locality: LocalityOption = "0",
    settings: SettingsOption = None,
    recognised: RecognisedOption = SweepPlan.recognised,
    cache: CachesOption = "cold,warm",
    split: SplitOption = Split.all,
    fit: Annotated[
        Path | None,
        typer.Option(
            "--fit",
            callback=check_folder_exists,
            help="Fit the rule on the even seeds, write it to this file, and judge on the odd seeds.",
            show_default="only judge the rule that ships",
        ),
    ] = None,
    processes: ProcessesOption = 0,
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Judge how mode="auto" chooses a delivery: by how much it costs more than the cheapest way of each situation."""
    only_set = read_one_labelled_set(data, dataset, "a delivery is chosen")
    cases = in_split(only_set.cases, split)
    axes = read_axes(turns, locality, cache, "plain", "1")
    plan = SweepPlan(
        indexes=(index or default_index(),),
        wires=tuple(wire or SweepPlan.wires),
        sizes=tuple(read_sizes(sizes)),
        seeds=seeds,
        conversations=conversations,
        settings=read_settings(settings),
        recognised=recognised,
        **axes,
    )
    plan = playable(choice_plan(plan, read_axes(judged_turns, "0", cache, "plain", "1")["turns"]), only_set, cases)
    many = conversations_of(plan, len(only_set.catalog()))
    with progress(many, error_console()) as tick:
        swept = sweep(only_set, cases, plan, tick, processes=processes or most_processes(many))
    fitted = None
    if fit is not None:
        fitted = fit_of(swept, plan, axes["turns"], only_set, command_of(context))
        write_fit(fitted, fit)
    print_report(choice_report(swept, plan, only_set, fitted, axes["turns"]), form, out)
