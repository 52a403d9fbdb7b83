"""A sweep as a report: what was saved, from how many tools on, and what it cost."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from toolsearch_evals.data.cases import Dataset
from toolsearch_evals.reports.report import Report, counted
from toolsearch_evals.savings.cards import dollar_table, savings_cards
from toolsearch_evals.savings.charts import savings_charts
from toolsearch_evals.savings.headline import headline
from toolsearch_evals.savings.notes import limits, measured
from toolsearch_evals.savings.own_tokens import dearest_table
from toolsearch_evals.savings.sweep import SweepPlan, SweepResult
from toolsearch_evals.savings.tables import (
    assumption_table,
    break_even_table,
    conversation_table,
    definitions_table,
    static_success_table,
    ways,
    where_table,
    wording_table,
)
from toolsearch_evals.savings.worked import waterfalls, worst_cases

__all__ = ["savings_report"]


def savings_report(swept: SweepResult, plan: SweepPlan, dataset: Dataset, split: str) -> Report:
    """The report; its first table is the whole sweep."""
    told = swept.first()
    assumed = filter(None, (assumption_table(swept), static_success_table(swept)))
    return Report(
        kind="savings",
        title=f"What tool search saves: {dataset.name}, {counted(len(dataset.definitions), 'tool')}",
        headline=headline(swept),
        parameters={"data set": dataset.key, "split": split, **_parameters(swept, plan)},
        tables=(
            conversation_table(swept, plan),
            break_even_table(swept),
            *assumed,
            definitions_table(swept),
            wording_table(told.rows),
            where_table(told.rows),
            dollar_table(told.rows, ways(told.rows)),
            *([dearest_table(swept.stage.definitions(plan.wires[0]))] if swept.stage else []),
        ),
        measured=measured(plan, swept.tokenizers),
        limits=limits(swept, plan),
        charts=savings_charts(swept),
        cards=savings_cards(told.rows, told.break_evens),
        waterfalls=waterfalls(swept),
        cases=worst_cases(swept),
        data={
            "tokenizers": swept.tokenizers,
            "break_even": [each.as_row() for each in swept.break_evens],
            "refused_calls": swept.refused,
            "quarantined": swept.quarantined,
        },
    )


def _parameters(swept: SweepResult, plan: SweepPlan) -> dict[str, Any]:
    values = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(plan).items()}
    sizes = sorted({row["tools"] for row in swept.rows})
    return values | {"sizes": sizes, "settings": [f"{name}={value}" for name, value in plan.settings]}
