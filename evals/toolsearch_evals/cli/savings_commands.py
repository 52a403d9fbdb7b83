"""`toolsearch eval savings` and `demo`: what search saves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

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
    read_one_labelled_set,
    read_settings,
    read_sizes,
)
from toolsearch_evals.cli.own_savings import own_options, own_tools_report
from toolsearch_evals.cli.run_options import (
    FailUnderOption,
    ResumeOption,
    RunOption,
    check_bars,
    command_of,
    kept_run,
)
from toolsearch_evals.cli.savings_options import (
    CachesOption,
    ConversationsOption,
    Counted,
    LocalityOption,
    ModesOption,
    OneByOneOption,
    PricesOption,
    ProcessesOption,
    SeedsOption,
    StaticSuccessOption,
    TokensOption,
    TurnsOption,
    WiresOption,
    read_axes,
    read_modes,
)
from toolsearch_evals.cli.terminal import progress
from toolsearch_evals.data.cases import Dataset, load
from toolsearch_evals.ranking.rank import in_split
from toolsearch_evals.reports.forms import write
from toolsearch_evals.reports.report import Report
from toolsearch_evals.runs.bars import read_bars, savings_places
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.savings.report import savings_report
from toolsearch_evals.savings.savings_run import FORGETFUL, SAVINGS_RUNS, Memory, memory_of, savings_manifest
from toolsearch_evals.savings.spring import spring_plan, spring_report
from toolsearch_evals.savings.stage import playable
from toolsearch_evals.savings.sweep import SweepPlan, conversations_of, sweep
from toolsearch_evals.savings.workers import most_processes

__all__ = ["demo", "savings"]


SizesOption = Annotated[
    str, typer.Option("--sizes", help="Catalog sizes in tools, with commas between them.", show_default="from 5 to all")
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
    mode: ModesOption = None,
    wire: WiresOption = None,
    sizes: SizesOption = "",
    seeds: SeedsOption = 3,
    conversations: ConversationsOption = 10,
    turns: TurnsOption = "3,10",
    locality: LocalityOption = "0",
    one_by_one: OneByOneOption = False,
    settings: SettingsOption = None,
    recognised: RecognisedOption = SweepPlan.recognised,
    tokens: TokensOption = Counted.json,
    cache: CachesOption = "cold,warm",
    prices: PricesOption = "plain",
    cached_weight: CachedWeightOption = SweepPlan.cached_weight,
    output_weight: OutputWeightOption = SweepPlan.output_weight,
    static_success: StaticSuccessOption = "1,.9,.8",
    split: SplitOption = Split.all,
    preset: PresetOption = None,
    run: RunOption = None,
    resume: ResumeOption = False,
    fail_under: FailUnderOption = "",
    processes: ProcessesOption = 0,
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Count the tokens of whole conversations by number of tools: with every tool sent, and with search."""
    bars = read_bars(fail_under, SAVINGS_RUNS.with_bars())
    kept = _Kept(context, run, resume, processes)
    if tools:
        print_report(own_tools_report(tools, own_options(context)), form, out)
        return
    only_set = read_one_labelled_set(data, dataset, "savings are measured")
    plan = SweepPlan(
        indexes=tuple(index or [default_index()]),
        modes=read_modes(mode, is_published=preset is not None),
        wires=tuple(wire or (SweepPlan.wires if preset is None else FORMATS)),
        sizes=tuple(read_sizes(sizes)) if sizes else (),
        seeds=seeds,
        conversations=conversations,
        one_by_one=one_by_one,
        settings=read_settings(settings),
        recognised=recognised,
        tokens=tokens.value,
        cached_weight=cached_weight,
        output_weight=output_weight,
        **read_axes(turns, locality, cache, prices, static_success),
    )
    report = _preset_report(only_set, plan, kept) if preset else _sweep_report(only_set, plan, split, kept)
    print_report(report, form, out, tables=6)  # those after it are too wide for a terminal
    check_bars(bars, savings_places(report))


class _Kept(NamedTuple):
    """How conversations are played: kept as a run, if one is named or gone on with, and by how many processes."""

    context: typer.Context
    run: Path | None
    resume: bool
    processes: int

    @property
    def is_asked(self) -> bool:
        return self.run is not None or self.resume


def _preset_report(dataset: Dataset, plan: SweepPlan, kept: _Kept) -> Report:
    if kept.is_asked:
        raise SetupError("a preset is not kept as a run: leave out --preset or --run")
    with progress(2 * conversations_of(spring_plan(dataset, plan), 28), error_console()) as tick:
        return spring_report(dataset, plan, tick)


def _sweep_report(dataset: Dataset, plan: SweepPlan, split: str, kept: _Kept) -> Report:
    plan = playable(plan, dataset, in_split(dataset.cases, split))
    if not kept.is_asked:
        return _played(dataset, plan, split, FORGETFUL, kept.processes)
    manifest = savings_manifest(command_of(kept.context), dataset, plan, split)
    many = conversations_of(plan, manifest.facts["tools"])
    with kept_run(kept.run, manifest, many, resume=kept.resume) as run:
        return run.close(_played(dataset, plan, split, memory_of(run, dataset.cases), kept.processes))


def _played(dataset: Dataset, plan: SweepPlan, split: str, memory: Memory, processes: int) -> Report:
    many, cases = conversations_of(plan, len(dataset.catalog())), in_split(dataset.cases, split)
    by = processes or most_processes(many)
    with progress(many, error_console()) as tick:
        swept = sweep(dataset, cases, plan, tick, known=memory.known, keep=memory.keep, processes=by)
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
