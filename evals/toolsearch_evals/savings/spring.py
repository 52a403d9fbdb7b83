"""Spring AI's published setting on our data: 28 tools of which a request needs 3, with search and without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from toolsearch import SetupError
from toolsearch_evals.data.cases import Dataset
from toolsearch_evals.reports.report import Column, Report, ReportTable
from toolsearch_evals.savings.rows import SavingsRow
from toolsearch_evals.savings.sweep import SweepPlan, SweepResult, sweep

__all__ = ["PUBLISHED", "spring_plan", "spring_report"]

TOOLS, NEEDED = 28, 3
# Tokens with and without search, as published on 2025-12-11: one request that needs three tools, among 25 others, one
# run a cell.
PUBLISHED = (
    ("Lucene", "Gemini 3 Pro", 2_165, 5_375),
    ("Lucene", "GPT-5-mini", 4_706, 7_175),
    ("Lucene", "Claude Sonnet 4.5", 6_273, 17_342),
    ("vector", "Gemini 3 Pro", 2_214, 5_122),
    ("vector", "GPT-5-mini", 3_697, 6_959),
    ("vector", "Claude Sonnet 4.5", 6_319, 17_291),
)
Tick = Callable[[str], None]


def spring_plan(dataset: Dataset, plan: SweepPlan) -> SweepPlan:
    """The plan in this setting: each case that needs three tools is one conversation of one turn."""
    cases = [case for case in dataset.cases if len(case.gold) == NEEDED]
    if not cases or len(dataset.definitions) < TOOLS:
        raise SetupError(
            f"the data set {dataset.name!r} does not allow this setting: it needs {TOOLS} tools (there are "
            f"{len(dataset.definitions)}) and a case with {NEEDED} needed tools (there are {len(cases)})"
        )
    return replace(
        plan,
        sizes=(TOOLS,),
        turns=(1,),
        localities=(0.0,),
        conversations=len(cases),
        caches=plan.caches[:1],
        prices=plan.prices[:1],
        static_success=plan.static_success[:1],
    )


class SpringRow(SavingsRow):
    """A row of the sweep, and whether the needed tools were called "together" or "one by one"."""

    calls: str


def spring_report(dataset: Dataset, plan: SweepPlan, tick: Tick = lambda _: None) -> Report:
    """Savings by wire and index, with the tools called together and one by one, next to the published figures."""
    plan = spring_plan(dataset, plan)
    cases = [case for case in dataset.cases if len(case.gold) == NEEDED]
    ways = {
        "together": sweep(dataset, cases, plan, tick),
        "one by one": sweep(dataset, cases, replace(plan, one_by_one=True), tick),
    }
    rows: list[SpringRow] = [{"calls": way, **row} for way, swept in ways.items() for row in swept.rows]
    tokenizers = ways["together"].tokenizers
    return Report(
        kind="spring",
        title="Spring's published setting: 28 tools, 3 of them needed",
        headline=_headline(rows),
        parameters={
            "data set": dataset.key,
            "tools": TOOLS,
            "needed": NEEDED,
            "cases": len(cases),
            "seeds": plan.seeds,
        },
        tables=(ReportTable("Here", _HERE, rows), ReportTable("As published", _THERE, _published())),
        measured=_measured(len(cases), plan.seeds, tokenizers),
        limits=(
            (
                "The tools differ: the longer the definitions, the more is saved. How many requests the published runs "
                "took with all tools sent is not known; each request that a model makes more, or that search saves, "
                "moves the share by many points. Real models also write more than this one, which nothing saves."
            ),
            "The published figures come from one task, one run a cell, with real models; ours from a scripted one.",
        ),
        data={"tokenizers": tokenizers, "refused_calls": _refused(ways)},
    )


def _headline(rows: Sequence[SpringRow]) -> tuple[str, ...]:
    least, most = min(rows, key=lambda row: row["saving"]), max(rows, key=lambda row: row["saving"])
    return (
        (
            f"On our data search saves {_share(least)} to {_share(most)} of the tokens; Spring published 34% to 64%, "
            "from one run each."
        ),
        (
            f"The needed tools were found and called in {rows[0]['success']:.0%} of the requests "
            f"({rows[0]['index']}); what was published has no such figure."
        ),
    )


def _share(row: SpringRow) -> str:
    """What is saved, with its interval."""
    low, high = row["saving low"], row["saving high"]
    told = f"{row['saving']:.0%}"
    return told if low is None or high is None else f"{told} ({low:.0%} to {high:.0%})"


def _measured(cases: int, seeds: int, tokenizers: dict[str, str]) -> tuple[str, ...]:
    return (
        (
            f"{cases} cases with three needed tools, each one conversation of one turn, among "
            f"{TOOLS - NEEDED} other tools; {seeds} seeded choices of the others. The model searches once "
            "with one query a needed tool, and calls the tools together in one reply, or one by one."
        ),
        "Tokenizer: " + "; ".join(f"{wire}: {name}" for wire, name in tokenizers.items()) + ".",
        (
            "Otherwise as in `toolsearch eval savings`: whole conversations, exact payloads, a scripted model. "
            "Intervals of 95 % are a bootstrap over the conversations; those of shares of requests are Wilson's."
        ),
    )


_HERE = (
    Column("wire", "wire"),
    Column("mode", "delivery"),
    Column("index", "index"),
    Column("calls", "calls"),
    Column("static tokens", "tokens, all tools sent", "count"),
    Column("tokens", "tokens, searched", "count"),
    Column("saving", "saved", "share", ends=("saving low", "saving high")),
    Column("cost saving", "saved, by price", "share", ends=("cost saving low", "cost saving high")),
    Column("success", "right tools called", "share", ends=("success low", "success high")),
    Column("requests", "requests", "number"),
    Column("static requests", "requests, all sent", "number"),
)
_THERE = (
    Column("index", "index"),
    Column("model", "model"),
    Column("static tokens", "tokens, all tools sent", "count"),
    Column("tokens", "tokens, searched", "count"),
    Column("saving", "saved", "share"),
)


def _published() -> list[dict[str, Any]]:
    return [
        {"index": index, "model": model, "static tokens": without, "tokens": searched, "saving": 1 - searched / without}
        for index, model, searched, without in PUBLISHED
    ]


def _refused(ways: dict[str, SweepResult]) -> list[str]:
    return [call for swept in ways.values() for call in swept.refused]
