"""Spring AI's published setting on our data: 28 tools of which a request needs 3, with search and without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from toolsearch import SetupError
from toolsearch_evals.cases import Dataset
from toolsearch_evals.replies import FORMATS
from toolsearch_evals.report import Column, Report, Table
from toolsearch_evals.savings import Plan, Swept, sweep
from toolsearch_evals.usage import tokenizer

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


def spring_plan(dataset: Dataset, plan: Plan) -> Plan:
    """The plan in this setting: each case that needs three tools is one conversation of one turn."""
    cases = [case for case in dataset.cases if len(case.gold) == NEEDED]
    if not cases or len(dataset.definitions) < TOOLS:
        raise SetupError(
            f"the data set {dataset.name!r} cannot play this setting: it needs {TOOLS} tools (there are "
            f"{len(dataset.definitions)}) and a case with {NEEDED} needed tools (there are {len(cases)})"
        )
    return replace(plan, sizes=(TOOLS,), turns=1, conversations=len(cases))


def spring_report(dataset: Dataset, plan: Plan, tick: Tick = lambda _: None) -> Report:
    """Savings by wire and index, the tools called together and one by one, beside what was published."""
    plan = spring_plan(dataset, plan)
    cases = [case for case in dataset.cases if len(case.gold) == NEEDED]
    ways = {
        "together": sweep(dataset, cases, plan, tick),
        "one by one": sweep(dataset, cases, replace(plan, one_by_one=True), tick),
    }
    rows: list[dict[str, Any]] = [{"calls": way} | row for way, swept in ways.items() for row in swept.rows]
    tokenizers = {w: tokenizer(ways["together"].counter, is_public=FORMATS[w].tokenizer_is_public) for w in plan.wires}
    low, high = min(row["saving"] for row in rows), max(row["saving"] for row in rows)
    return Report(
        kind="spring",
        title="Spring's published setting: 28 tools, 3 of them needed",
        headline=(
            f"On our data search saves {low:.0%} to {high:.0%} of the tokens; Spring published 34% to 64%.",
            (
                f"The needed tools were found and called in {rows[0]['success']:.0%} of the requests "
                f"({rows[0]['index']}); what was published has no such figure."
            ),
        ),
        parameters={
            "data set": dataset.key,
            "tools": TOOLS,
            "needed": NEEDED,
            "cases": len(cases),
            "seeds": plan.seeds,
        },
        tables=(Table("Here", _HERE, rows), Table("As published", _THERE, _published())),
        measured=(
            (
                f"{len(cases)} cases with three needed tools, each one conversation of one turn, among "
                f"{TOOLS - NEEDED} other tools; {plan.seeds} seeded choices of the others. The model searches once "
                "with one query a needed tool, and calls the tools together in one reply, or one by one."
            ),
            "Tokenizer: " + "; ".join(f"{wire}: {name}" for wire, name in tokenizers.items()) + ".",
            "Otherwise as in `toolsearch eval savings`: whole conversations, exact payloads, a scripted model.",
        ),
        limits=(
            "The tools differ, and how many requests the published runs took with all tools sent is not known.",
            "The published figures come from one task, one run a cell, with real models; ours from a scripted one.",
        ),
        data={"tokenizers": tokenizers, "refused_calls": _refused(ways)},
    )


_HERE = (
    Column("wire", "wire"),
    Column("mode", "delivery"),
    Column("index", "index"),
    Column("calls", "calls"),
    Column("static tokens", "tokens, all tools sent", "count"),
    Column("tokens", "tokens, searched", "count"),
    Column("saving", "saved", "share"),
    Column("cost saving", "saved, by price", "share"),
    Column("success", "right tools called", "share"),
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


def _refused(ways: dict[str, Swept]) -> list[str]:
    return [told for swept in ways.values() for told in swept.refused]
