"""What `ranking` measured, as a report: a row for each data set, index and bucket of cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolsearch_evals.ranking.measures import MEASURES, Measure
from toolsearch_evals.ranking.misses import misses_table
from toolsearch_evals.reports.report import Card, Column, Report, ReportTable, shown

__all__ = ["ranking_report"]

Row = dict[str, Any]
MOST_CARDS = 4

_STEP_COLUMNS = (
    Column("dataset", "data set"),
    Column("index", "index"),
    Column("searched with", "searched with"),
    Column("n", "n", "count"),
    Column("recall", "needed tools found", "score"),
    Column("coverage", "all found", "score"),
)


def ranking_report(
    rows: Sequence[Row],
    step_rows: Sequence[Row],
    quarantined: Sequence[str],
    parameters: dict[str, Any],
    derived: tuple[str, ...],
    *,
    further: Sequence[Measure] = (),
    missed: Sequence[Row] = (),
) -> Report:
    """The report on rows of one data set, index and bucket each; `step_rows` are on the cases that have steps.

    `further` are the measures besides ours, and `missed` rows of single cases.
    """
    tables = [ReportTable("Ranking", _columns(rows, (*MEASURES, *further)), rows)]
    if step_rows:
        tables.append(ReportTable("Requests that need several tools", _STEP_COLUMNS, step_rows))
    if missed:
        tables.append(misses_table(missed))
    macro = [row for row in rows if row["mean"] == "macro"][: len(parameters["indexes"])]
    micro = [row for row in rows if row["mean"] == "micro"]
    several = len(parameters["data sets"]) > 1
    names = dict.fromkeys(row["dataset"] for row in micro if row["cases"] == "all")
    first = [*macro, *micro[: len(macro)]] if several else [row for row in micro if row["cases"] == "all"] + macro
    return Report(
        kind="ranking",
        title=f"How well the indexes rank: {', '.join(names)}",
        headline=tuple(map(_headline, first)),
        parameters=parameters,
        tables=tuple(tables),
        measured=(*_MEASURED, *(f"{each.name}: {each.meaning}" for each in further)),
        limits=(*_LIMITS, *derived, *(f"Set aside, so never found: {entry}" for entry in quarantined)),
        data={"quarantined": list(quarantined)},
        cards=_cards(macro if several else [row for row in first if row["mean"] == "micro"]),
    )


def _cards(rows: Sequence[Row]) -> tuple[Card, ...]:
    """Of one row its main measures; of several, what each finds."""
    if len(rows) != 1:
        return tuple(_card(f"R@5, {row['index']}, {row['dataset']}", row, "R@5") for row in rows[:MOST_CARDS])
    (row,) = rows
    unanswerable = shown(row["unanswerable answered"], "share")
    return (
        _card(f"R@5, {row['index']}, {row['dataset']}", row, "R@5"),
        _card("hit@5", row, "hit@5"),
        Card("R@shown", shown(row["R@shown"], "score"), "Among the tools that a search loads or names."),
        Card(
            "False answers",
            unanswerable,
            f"Of {row['n_unanswerable']:,} requests that no tool can meet.",
        ),
    )


def _card(label: str, row: Row, measure: str) -> Card:
    low, high = (shown(row[f"{measure} {end}"], "score") for end in ("low", "high"))
    kinds = f"{row['cases']}, " if row["mean"] == "macro" else ""
    return Card(label, shown(row[measure], "score"), f"{kinds}95 % interval {low} to {high}, n = {row['n_scored']:,}.")


def _columns(rows: Sequence[Row], measures: Sequence[Measure]) -> tuple[Column, ...]:
    return (
        Column("dataset", "data set"),
        Column("index", "index"),
        Column("cases", "cases"),
        Column("n", "n", "count"),
        *([Column("errors", "errors", "count")] if any(row["errors"] for row in rows) else []),
        *(
            Column(each.name, each.name, "score", f"{each.name} ±" if each.has_interval else "")
            for each in measures
            if each.shown
        ),
        Column("R@shown", "R@ shown", "score"),
        Column("unanswerable answered", "false answers", "share"),
        Column("milliseconds", "ms a query", "milliseconds"),
        Column("tokens a search", "tokens a search", "count"),
    )


def _headline(row: dict[str, Any]) -> str:
    if row["R@5"] is None:
        return f"{row['dataset']}: no case to score."
    spread = "" if row["R@5 ±"] is None else f" ±{row['R@5 ±']:.3f}"
    of_kinds = f", {row['cases']}" if row["cases"].startswith("mean of ") else ""
    which = f"{row['dataset']}{of_kinds}, {row['index']}, {row['mean']} mean"
    sentence = f"{which}: {row['R@5']:.3f}{spread} of the needed tools are among the first five"
    if row["tokens a search"] is not None:
        sentence += f", {row['R@shown']:.3f} among those that a search shows, for {row['tokens a search']:,.0f} tokens"
    if row["unanswerable answered"] is not None:
        sentence += f"; {row['unanswerable answered']:.0%} of the unanswerable requests get an answer all the same"
    return f"{sentence} ({row['n']:,} cases, {row['errors']} errors)."


_MEASURED = (
    (
        "Each case's query is searched as it stands. R@k is the share of the needed tools among the first "
        "k, where any tool of a group of alternatives will do; hit@5 is the share of cases with one of them, "
        "C@5 with all of them among the first 5; NDCG@10 is binary. The bucket single is the cases that need "
        "one tool."
    ),
    (
        "R@shown and tokens a search come from the search tool of a real session in the mode append, with the default "
        "settings: R@shown is the share of the needed tools that its answer loads or names; the tokens are those of "
        "the answer and of the definitions that it adds to the list of tools."
    ),
    (
        "± is half of the 95 % interval: percentiles of a seeded bootstrap over the cases; Wilson's interval "
        "where all cases score the same 0 or 1. Other cases of the same kind might have moved the mean that far."
    ),
    (
        "There are two means. The micro mean gives each case the same weight: the row of all cases of a set, or of all "
        "sets. The macro mean gives each set, or each kind of cases, the same weight, however many cases it has: the "
        "rows that are called the mean of sets or of kinds. Where the two differ, large groups do better or worse."
    ),
    "A search that failed counts as one that found nothing. A bucket without cases to score shows a dash.",
    (
        "False answers: the share of the requests that no tool can meet for which tools came back "
        "nevertheless; 0 is best. An index without calibrated confidence answers on any evidence."
    ),
    "ms a query: mean wall-clock time of `toolsearch.find` in this process.",
)
_LIMITS = (
    "Labels are incomplete: a fitting tool that the labels do not name counts as a miss.",
    (
        "Two indexes answer the same cases, so a difference may be certain even if the intervals "
        "overlap: `toolsearch eval compare` shows it."
    ),
)
