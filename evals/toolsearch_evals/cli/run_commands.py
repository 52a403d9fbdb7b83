"""`toolsearch eval score`, `diff` and `runs list`: what can be asked of runs that were kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from toolsearch import SetupError
from toolsearch_evals.agent.agent_run import score_agent
from toolsearch_evals.cli.app import app, example
from toolsearch_evals.cli.options import (
    DataOption,
    DatasetOption,
    FormatOption,
    OutOption,
    ReportForm,
    print_report,
    read_one_labelled_set,
)
from toolsearch_evals.cli.run_options import FailUnderOption, check_bars
from toolsearch_evals.cli.savings_options import read_axes
from toolsearch_evals.data.cases import dataset_names
from toolsearch_evals.runs.bars import agent_places, ranking_places, read_bars, savings_places
from toolsearch_evals.runs.diff import diff_runs, difference_places
from toolsearch_evals.runs.kinds import AGENT, RANKING, RunKind
from toolsearch_evals.runs.ranking_run import score_ranking
from toolsearch_evals.runs.reading import StoredRun, as_written, is_run, read_run
from toolsearch_evals.savings.savings_run import SAVINGS_RUNS, score_savings

__all__ = ["diff", "list_runs", "score"]

_ITS_OWN = "the run's own"
KINDS = {kind.name: kind for kind in (RANKING, SAVINGS_RUNS, AGENT)}

runs = typer.Typer(no_args_is_help=True, help="List the runs that were kept.")
app.add_typer(runs, name="runs")


@app.command(epilog=example("score runs/first"))
def score(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    *,
    data: DataOption = None,
    dataset: DatasetOption = None,
    cache: Annotated[
        str, typer.Option(help="Of savings: cold, warm or both, as for savings.", show_default=_ITS_OWN)
    ] = "",
    prices: Annotated[str, typer.Option(help="Of savings: prices, as for savings.", show_default=_ITS_OWN)] = "",
    cached_weight: Annotated[
        float | None, typer.Option(min=0, help="Of savings: the price of a cached input token.", show_default=_ITS_OWN)
    ] = None,
    output_weight: Annotated[
        float | None, typer.Option(min=0, help="Of savings: the price of an output token.", show_default=_ITS_OWN)
    ] = None,
    static_success: Annotated[
        str, typer.Option(help="Of savings: how often sending every tool succeeds.", show_default=_ITS_OWN)
    ] = "",
    fail_under: FailUnderOption = "",
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Make the report of a run again without playing it: with the measures that there are now, or with other prices.

    A run of savings needs the data set that it played.
    """
    stored = read_run(run).require_unchanged()
    kind = _kind(stored)
    if not stored.units:
        raise SetupError(f"nothing of the run {str(run)!r} is finished, so there is nothing to score: go on with it")
    bars = read_bars(fail_under, kind.with_bars())
    if kind is SAVINGS_RUNS:
        axes = read_axes("1", "0", cache or "cold", prices or "plain", static_success or "1")
        asked = {
            "caches": axes["caches"] if cache else None,
            "prices": axes["prices"] if prices else None,
            "cached_weight": cached_weight,
            "output_weight": output_weight,
            "static_success": axes["static_success"] if static_success else None,
        }
        only_set = read_one_labelled_set(data, dataset or _shipped(stored, data), "savings are measured")
        given = {name: value for name, value in asked.items() if value is not None}
        with as_written(stored):
            report, places = score_savings(stored, only_set, given), savings_places
    else:
        make, places = (score_agent, agent_places) if kind is AGENT else (score_ranking, ranking_places)
        with as_written(stored):
            report = make(stored)
    print_report(report, form, out, tables=3)
    check_bars(bars, places(report))


def _shipped(stored: StoredRun, data: list[Path] | None) -> list[str] | None:
    """The data set of the run, if it can be read by its name and no folder is given."""
    names = [key.partition("/")[0] for key in stored.manifest.data]
    return None if data else [name for name in names if name in dataset_names()] or None


@app.command(epilog=example("diff runs/first runs/second"))
def diff(
    first: Annotated[Path, typer.Argument(help="The folder of a run, such as the baseline.")],
    second: Annotated[Path, typer.Argument(help="The folder of the run that is compared with it.")],
    *,
    fail_under: FailUnderOption = "",
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Compare two runs case by case: differences with intervals and permutation tests, and the cases that changed.

    The bars of --fail-under are for the differences: success=-.02 fails if success fell by more than .02.
    """
    one, other = (read_run(each).require_unchanged() for each in (first, second))
    kind = _kind(one)
    bars = read_bars(fail_under, kind.with_bars())
    with as_written(one, other):
        report = diff_runs(one, other, kind)
    print_report(report, form, out)
    check_bars(bars, difference_places(report))


def _kind(stored: StoredRun) -> RunKind:
    if stored.manifest.kind not in KINDS:
        raise SetupError(
            f"{str(stored.folder)!r} is a run of {stored.manifest.kind!r}, which cannot be read again; those of "
            f"{', '.join(map(repr, KINDS))} can"
        )
    return KINDS[stored.manifest.kind]


@runs.command(name="list", epilog=example("runs list build"))
def list_runs(
    folder: Annotated[Path, typer.Argument(help="The folder that holds the folders of the runs.")] = Path("runs"),
) -> None:
    """List the runs in a folder by date: name, kind, state, and the first sentence of what was found."""
    if not folder.is_dir():
        raise SetupError(f"there is no folder {str(folder)!r}: name the one that holds the folders of the runs")
    console = Console()
    found: list[StoredRun] = []
    for each in filter(is_run, sorted(folder.iterdir())):
        try:
            found.append(read_run(each))
        except SetupError as error:
            console.print(Text(f"{each.name}", style="bold").append(f"  cannot be read: {error}"), soft_wrap=True)
    for stored in sorted(found, key=lambda each: each.manifest.when):
        line = Text(f"{stored.name}", style="bold").append(f"  {stored.manifest.kind}, {stored.manifest.when}, ")
        console.print(line.append(_state(stored)), soft_wrap=True)
        if told := stored.headline():
            console.print(Text(f"  {told}"), soft_wrap=True)
    if not any(map(is_run, folder.iterdir())):
        console.print(Text(f"There is no run in {str(folder)!r}."))


def _state(stored: StoredRun) -> str:
    if stored.changed:
        return f"changed after it was closed: {', '.join(stored.changed)}"
    return "closed" if stored.is_closed else f"not finished, {len(stored.units)} units are there"
