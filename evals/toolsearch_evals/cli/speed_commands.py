"""`toolsearch eval speed` and `import-cost`: how fast it is."""

from __future__ import annotations

from typing import Annotated

import typer

from toolsearch_evals.cli.app import app, example
from toolsearch_evals.cli.options import (
    DataOption,
    DatasetOption,
    FormatOption,
    OutOption,
    ReportForm,
    error_console,
    index_option,
    print_report,
    read_sets,
    read_sizes,
)
from toolsearch_evals.cli.terminal import progress
from toolsearch_evals.speed.import_cost import import_cost as measure_import_cost
from toolsearch_evals.speed.timing import speed as measure_speed

__all__ = ["import_cost", "speed"]


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
