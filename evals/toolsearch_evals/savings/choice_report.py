"""The choice of a delivery by price as a report: its regret, where it turns, what each way costs; and as a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from toolsearch import SetupError
from toolsearch_evals.data.cases import Dataset
from toolsearch_evals.reports.report import Column, Report, ReportTable, counted
from toolsearch_evals.savings.choice import (
    CACHED,
    HERE,
    Cell,
    Extra,
    by_fit,
    cells_of,
    extra_of,
    policies,
    regrets,
    requests_a_turn,
    turning_point,
)
from toolsearch_evals.savings.jobs import Job
from toolsearch_evals.savings.plan import DELIVERIES, HELPED, STATIC, SweepPlan
from toolsearch_evals.savings.sweep import SweepResult

__all__ = ["choice_plan", "choice_report", "fit_of", "write_fit"]

FITTED = "the new fit, turns and cache known"
_SITUATION = (
    Column("wire", "wire"),
    Column("turns", "turns", "count"),
    Column("cache", "cache"),
    Column("tools", "tools", "count"),
)


def choice_plan(plan: SweepPlan, judged: Iterable[int]) -> SweepPlan:
    """The plan with everything that may be chosen, and the turns of the conversations that only judge."""
    modes = tuple(way for way in (*DELIVERIES, *HELPED) if way != STATIC.mode)
    return replace(plan, modes=modes, turns=tuple(sorted({*plan.turns, *judged})), static_success=(1.0,))


def fit_of(swept: SweepResult, plan: SweepPlan, turns: Sequence[int], dataset: Dataset, command: str) -> dict[str, Any]:
    """What ships: fitted on the even seeds of the conversations of these lengths."""
    used = {job: each for job, each in swept.played.items() if job.turns in turns and _is_fitted(job)}
    requests = round(requests_a_turn(used), 3)
    cells = cells_of(used, _stage(swept), plan.pricings(), lambda _: True)
    ways = [name.removesuffix(" helped") for name in HELPED]
    played = [way for way in ways if any(f"{way} helped" in cell.costs for cell in cells)]
    return {
        "command": command,
        "fitted on": f"{dataset.name}, {counted(len({(j.seed, j.number, j.turns) for j in used}), 'conversation')} of "
        f"{', '.join(map(str, turns))} turns, even seeds; o200k tokens of JSON; a cached token .1, a written one 5",
        "cached": CACHED,
        "requests": requests,
        "extra": {way: asdict(extra_of(cells, f"{way} helped", requests)) for way in played},
    }


def choice_report(
    swept: SweepResult, plan: SweepPlan, dataset: Dataset, fit: Mapping[str, Any] | None, turns: Sequence[int]
) -> Report:
    """The report. With a fit, on what was not fitted: the odd seeds, with other lengths of conversations among them."""
    stage = _stage(swept)
    judged = cells_of(swept.played, stage, plan.pricings(), lambda job: fit is None or not _is_fitted(job))
    choices = policies(stage)
    if fit is not None:
        extra = {way: Extra(**each) for way, each in fit["extra"].items()}
        searching = policies(stage, auto_tools=0, auto_tokens=0)[HERE]
        choices = {FITTED: by_fit(extra, fit["requests"], searching), **choices}
    tables = [_regret_table(wire, [c for c in judged if c.situation.wire == wire], choices) for wire in plan.wires]
    first = tables[0].rows[0]
    return Report(
        kind="delivery",
        title=f"The choice of a delivery by price: {dataset.name}, {counted(len(dataset.definitions), 'tool')}",
        headline=(
            (
                f"{first['policy']}: on {plan.wires[0]} {first['mean']:.1%} dearer than the cheapest way of each "
                f"situation, as the mean of {first['cells']}; at worst {first['worst']:.0%}."
            ),
        ),
        parameters={"data set": dataset.key, "fitted turns": list(turns) if fit else [], **_parameters(plan)},
        tables=(*tables, _price_table(judged), _turn_table(judged)),
        measured=(f"Token counts: {'; '.join(f'{wire} {how}' for wire, how in swept.tokenizers.items())}.",),
        limits=(
            (
                "The model is scripted and an oracle: it never takes a wrong tool, recognises a right name with a "
                "probability, and in compact misfits with a probability. Turns are independent of each other."
            ),
        ),
        data={"fit": fit, "cells": [_row(cell) for cell in judged], "refused_calls": swept.refused},
    )


def _stage(swept: SweepResult) -> Any:
    if swept.stage is None:
        raise SetupError("a sweep without its stage has no catalogs to choose for: play it again")
    return swept.stage


def _is_fitted(job: Job) -> bool:
    return job.seed % 2 == 0


def _regret_table(wire: str, cells: Sequence[Cell], choices: Mapping[str, Any]) -> ReportTable:
    rows = [{"wire": wire, **each._asdict()} for each in regrets(cells, choices)]
    heads = (
        Column("wire", "wire"),
        Column("policy", "policy", is_result=True),
        Column("cells", "situations", "count"),
        *(Column(key, key, "percent") for key in ("mean", "p90", "worst")),
    )
    note = (
        "How much more the choice costs than the cheapest way of each situation, by the price of a met request. Ways: "
        f"{', '.join(way for way in _ways(cells) if way != 'compact')}; static where a request carries so many tools. "
        "“helped”: with the directory and tools that come with a message, as auto has them."
    )
    return ReportTable("Regret of each policy", heads, rows, note)


def _ways(cells: Iterable[Cell]) -> list[str]:
    known = {way for cell in cells for way in cell.costs}
    return [way for way in (*DELIVERIES, *HELPED) if way in known]


def _row(cell: Cell) -> dict[str, Any]:
    prices = {way: cell.price(way) if cell.met[way] else None for way in cell.costs}
    met = {f"{way} met": share / cell.met[STATIC.mode] for way, share in cell.met.items() if cell.met[STATIC.mode]}
    sizes = {"definitions": cell.definitions, "sent": cell.sent}
    return {**cell.situation._asdict(), **sizes, **prices, **met}


def _price_table(cells: Sequence[Cell]) -> ReportTable:
    heads = (
        *_SITUATION,
        Column("definitions", "definitions, estimated", "count"),
        *(Column(way, way, "count") for way in _ways(cells)),
    )
    note = "The price of a met request, in new input tokens."
    return ReportTable("What each way costs", heads, [_row(cell) for cell in cells], note)


def _turn_table(cells: Sequence[Cell]) -> ReportTable:
    """From how many tools, and tokens of definitions, on a way costs less than showing all."""
    groups: dict[tuple[str, int, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.situation.wire, cell.situation.turns, cell.situation.cache), []).append(cell)
    rows = []
    for (wire, turns, cache), of in groups.items():
        row: dict[str, Any] = {"wire": wire, "turns": turns, "cache": cache}
        for way in _ways(of):
            if way != STATIC.mode:
                row[way] = _crossing(of, way, lambda cell: cell.situation.tools)
                row[f"{way} definitions"] = _crossing(of, way, lambda cell: cell.definitions)
        rows.append(row)
    ways = [way for way in _ways(cells) if way != STATIC.mode]
    heads = (*_SITUATION[:3], *(Column(way, way, is_result=True) for way in ways))
    note = "By the price of a met request; interpolated between the sizes that were played. ≤ and > are bounds."
    return ReportTable("From how many tools on a way costs less than showing all", heads, rows, note)


def _crossing(cells: Sequence[Cell], way: str, size_of: Callable[[Cell], float]) -> str:
    sizes, at = sorted(map(size_of, cells)), turning_point(cells, way, size_of)
    if at < sizes[0]:
        return f"≤ {sizes[0]:,.0f}"
    return f"> {sizes[-1]:,.0f}" if at > sizes[-1] else f"{at:,.0f}"


def _parameters(plan: SweepPlan) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(plan).items()}


def write_fit(fit: Mapping[str, Any], file: Path) -> None:
    """Writes what ships."""
    file.write_text(json.dumps(fit, indent=2, ensure_ascii=False) + "\n", "utf-8", newline="\n")
