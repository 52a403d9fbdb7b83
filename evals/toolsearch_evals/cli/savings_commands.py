"""`toolsearch eval savings` and `demo`: what search saves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from toolsearch import SetupError
from toolsearch_evals.cli.app import app, example
from toolsearch_evals.cli.demo import demo as play_demo
from toolsearch_evals.cli.options import (
    CachedWeightOption,
    DataOption,
    DatasetOption,
    FormatOption,
    OutOption,
    OutputWeightOption,
    OwnToolsOption,
    Preset,
    RecognisedOption,
    ReportForm,
    SettingsOption,
    Split,
    SplitOption,
    default_index,
    error_console,
    index_option,
    make_folder,
    print_report,
    read_modes,
    read_one_labelled_set,
    read_settings,
    read_sizes,
)
from toolsearch_evals.cli.own_savings import OwnOptions, own_tools_report
from toolsearch_evals.cli.run_options import (
    FailUnderOption,
    ResumeOption,
    RunOption,
    check_bars,
    command_of,
    kept_run,
)
from toolsearch_evals.cli.terminal import progress
from toolsearch_evals.data.cases import Dataset, load
from toolsearch_evals.ranking.rank import in_split
from toolsearch_evals.reports.forms import write
from toolsearch_evals.reports.report import Report
from toolsearch_evals.runs.bars import read_bars, savings_places
from toolsearch_evals.savings.report import savings_report
from toolsearch_evals.savings.savings_run import FORGETFUL, SAVINGS_RUNS, Memory, memory_of, savings_manifest
from toolsearch_evals.savings.spring import spring_plan, spring_report
from toolsearch_evals.savings.sweep import SweepPlan, conversations_of, sweep

__all__ = ["demo", "savings"]


WireOption = Annotated[
    list[str] | None,
    typer.Option(
        help="The message format of a provider: openai_chat, anthropic or an installed wire; may be repeated.",
        show_default="openai_chat and anthropic",
    ),
]
ModeOption = Annotated[
    list[str] | None,
    typer.Option(help="How found tools reach the model: append or bridge; may be repeated.", show_default="append"),
]
SizesOption = Annotated[
    str, typer.Option("--sizes", help="Catalog sizes in tools, with commas between them.", show_default="from 5 to all")
]
OneByOneOption = Annotated[
    bool,
    typer.Option(
        "--one-by-one/--together",
        help="Call the tools of a turn one by one, in a request each, or together, in one reply.",
    ),
]
PresetOption = Annotated[
    Preset | None,
    typer.Option(
        "--preset", help="Repeat a published setting instead of going through many sizes.", show_default="none"
    ),
]


@app.command(epilog=example("savings --sizes 5,50,500 --out build/savings"))
def savings(
    *,
    context: typer.Context,
    data: DataOption = None,
    dataset: DatasetOption = None,
    tools: OwnToolsOption = None,
    index: Annotated[list[str] | None, index_option("auto, which is hybrid or keyword")] = None,
    mode: ModeOption = None,
    wire: WireOption = None,
    sizes: SizesOption = "",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeded orders of tools and cases to play.")] = 3,
    conversations: Annotated[int, typer.Option(min=1, help="How many conversations to play for each seed.")] = 10,
    turns: Annotated[int, typer.Option(min=1, help="How many turns a conversation has; each turn is one case.")] = 3,
    one_by_one: OneByOneOption = False,
    cached_weight: CachedWeightOption = SweepPlan.cached_weight,
    output_weight: OutputWeightOption = SweepPlan.output_weight,
    settings: SettingsOption = None,
    recognised: RecognisedOption = SweepPlan.recognised,
    split: SplitOption = Split.all,
    preset: PresetOption = None,
    run: RunOption = None,
    resume: ResumeOption = False,
    fail_under: FailUnderOption = "",
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Count the tokens of whole conversations by number of tools: with every tool sent, and with search."""
    bars = read_bars(fail_under, SAVINGS_RUNS.with_bars())
    if tools:
        if bars or run is not None or resume:
            raise SetupError("without cases nothing is met or kept: leave out --run, --resume and --fail-under")
        own = OwnOptions(index, mode, wire, read_settings(settings), has_cases=bool(data or dataset))
        print_report(own_tools_report(tools, own), form, out)
        return
    only_set = read_one_labelled_set(data, dataset, "savings are measured")
    plan = SweepPlan(
        indexes=tuple(index or [default_index()]),
        modes=read_modes(mode),
        wires=tuple(wire or SweepPlan.wires),
        sizes=tuple(read_sizes(sizes)) if sizes else (),
        seeds=seeds,
        conversations=conversations,
        turns=(turns,),
        one_by_one=one_by_one,
        cached_weight=cached_weight,
        output_weight=output_weight,
        settings=read_settings(settings),
        recognised=recognised,
    )
    if preset is None:
        report = _sweep_report(only_set, plan, split, context, run, resume=resume)
    elif run is None and not resume:
        report = _preset_report(only_set, plan)
    else:
        raise SetupError("a preset is not kept as a run: leave out --preset or --run")
    print_report(report, form, out, tables=3)  # the fourth, where the tokens go, is too wide for a terminal
    check_bars(bars, savings_places(report))


def _preset_report(dataset: Dataset, plan: SweepPlan) -> Report:
    with progress(2 * conversations_of(spring_plan(dataset, plan), 28), error_console()) as tick:
        return spring_report(dataset, plan, tick)


def _sweep_report(
    dataset: Dataset, plan: SweepPlan, split: str, context: typer.Context, run: Path | None, *, resume: bool
) -> Report:
    if run is None and not resume:
        return _played(dataset, plan, split, FORGETFUL)
    manifest = savings_manifest(command_of(context), dataset, plan, split)
    many = conversations_of(plan, manifest.facts["tools"])
    with kept_run(run, manifest, many, resume=resume) as kept:
        return kept.close(_played(dataset, plan, split, memory_of(kept, dataset.cases)))


def _played(dataset: Dataset, plan: SweepPlan, split: str, memory: Memory) -> Report:
    with progress(conversations_of(plan, len(dataset.catalog())), error_console()) as tick:
        swept = sweep(dataset, in_split(dataset.cases, split), plan, tick, known=memory.known, keep=memory.keep)
    return savings_report(swept, plan, dataset, split)


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
