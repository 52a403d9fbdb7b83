"""`toolsearch eval doctor-checks`: what the checks of `toolsearch doctor` are worth."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

import toolsearch_datasets
from toolsearch_evals.backends import label
from toolsearch_evals.cli.app import app, example
from toolsearch_evals.cli.options import FormatOption, OutOption, ReportForm, error_console, print_report
from toolsearch_evals.cli.terminal import progress
from toolsearch_evals.data.cases import Case, Dataset, load
from toolsearch_evals.doctor.alarms import alarms, judged_by_labels
from toolsearch_evals.doctor.configured import configuration_alarms, configuration_trials, server_trials
from toolsearch_evals.doctor.planting import DEFECTS
from toolsearch_evals.doctor.rates import FILE, as_json, as_rates
from toolsearch_evals.doctor.trial_report import Tried, trial_report
from toolsearch_evals.doctor.trials import Searched, trials

__all__ = ["doctor_checks"]


@app.command(name="doctor-checks", epilog=example("doctor-checks --planted 20"))
def doctor_checks(
    *,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            help="A folder of published tools that nobody spoiled, to count false alarms on; may be repeated.",
            show_default="the sets that ship only",
        ),
    ] = None,
    planted_in: Annotated[
        str,
        typer.Option(metavar="DATASET", help="The tools and labelled cases to plant defects into: a name, a folder."),
    ] = "commons",
    index: Annotated[str, typer.Option(help="The index to search with.")] = "keyword",
    planted: Annotated[int, typer.Option(min=4, help="The most tools to plant a defect into.")] = 160,
    seed: Annotated[int, typer.Option(help="The seed that draws them.")] = 0,
    form: FormatOption = ReportForm.table,
    out: OutOption = None,
) -> None:
    """Plant defects into clean tools, and measure what each costs, how many are found, and how often tools are
    suspected that nobody spoiled.

    With --out, rates.json is written too, which `toolsearch doctor` shows.
    """
    shipped = [each for name in toolsearch_datasets.names() for each in load(name)]
    published = [each for folder in data or () for each in load(folder)[:1]]
    base = load(planted_in)[0]
    with progress(len(DEFECTS) + len(shipped) + len(published), error_console()) as tick:
        searched = {each.key: Searched(each.catalog(), index) for each in (base, *shipped, *published)}
        made = list(trials(searched[base.key], _cases(base), index, most=planted, seed=seed, tick=tick))
        made += [*configuration_trials(), *server_trials()]
        counted, labels = {}, {}
        for each in (*shipped, *published):
            counted[each.key] = alarms(searched[each.key], _cases(each))
            labels[each.key] = judged_by_labels(searched[each.key], _cases(each))
            tick(each.name)
    keys = [each.key for each in shipped]
    rates = as_rates(
        made,
        [configuration_alarms(), *(of for key, of in counted.items() if key in keys)],
        [of for key, of in counted.items() if key not in keys],
    )
    parameters: dict[str, Any] = {
        "planted in": base.name,
        "index": label(index),
        "at most": planted,
        "seed": seed,
        "data sets": [*counted],
    }
    print_report(trial_report(Tried(made, counted, labels, rates), parameters), form, out)
    if out is not None:
        about = {
            "day": datetime.now(UTC).date().isoformat(),
            **parameters,
            "defects": [each.defect.name for each in made],
        }
        (out / FILE).write_text(as_json(rates, about), "utf-8", newline="\n")


def _cases(dataset: Dataset) -> list[Case]:
    """Those that may be tuned on."""
    return [case for case in dataset.cases if case.split != "test"]
