"""What `learning` measured, as a report: searches with and without what use has taught, week by week."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from toolsearch_evals.learning.simulated_month import KNOWN, UserRequest
from toolsearch_evals.ranking.measures import bootstrap, mean
from toolsearch_evals.reports.chart import Chart, ChartLine
from toolsearch_evals.reports.report import Card, Column, Report, ReportTable, shown

__all__ = ["FIRST", "JudgedRequest", "LearningRow", "learning_report", "learning_rows"]

FIRST = 5  # hits that a model looks at
MOST_CARDS = 4

LearningRow = TypedDict(
    "LearningRow",
    {
        "index": str,
        "week": str,
        "requests": str,
        "n": int,
        "without": float | None,
        "with": float | None,
        "difference": float | None,
        "difference ±": float | None,
        "first without": float | None,
        "first with": float | None,
        "helped": int,
        "harmed": int,
    },
)


@dataclass(frozen=True, slots=True)
class JudgedRequest:
    """The place of the first fitting tool among the hits, without and with what was learned; 0 if none fits."""

    request: UserRequest
    without: int
    learned: int


def learning_rows(index: str, week: str, judged: Sequence[JudgedRequest]) -> list[LearningRow]:
    """A row for all these requests, and one for each way they were known."""
    groups = {"all": judged} | {known: [each for each in judged if each.request.known == known] for known in KNOWN}
    return [_row(index, week, name, group) for name, group in groups.items()]


def _row(index: str, week: str, requests: str, group: Sequence[JudgedRequest]) -> LearningRow:
    differences = [float(each.learned > 0) - float(each.without > 0) for each in group]
    low, high = bootstrap(differences) if len(group) > 1 else (None, None)
    return {
        "index": index,
        "week": week,
        "requests": requests,
        "n": len(group),
        "without": mean([float(each.without > 0) for each in group]),
        "with": mean([float(each.learned > 0) for each in group]),
        "difference": mean(differences),
        "difference ±": None if low is None or high is None else (high - low) / 2,
        "first without": mean([float(each.without == 1) for each in group]),
        "first with": mean([float(each.learned == 1) for each in group]),
        "helped": sum(bool(each.learned) and not each.without for each in group),
        "harmed": sum(bool(each.without) and not each.learned for each in group),
    }


def learning_report(
    totals: Sequence[LearningRow], rows: Sequence[LearningRow], parameters: dict[str, Any], *, has_phrasings: bool
) -> Report:
    """The report on rows of whole months, `totals`, and of single weeks."""
    whole = [row for row in totals if row["requests"] == "all" and row["n"]]
    return Report(
        kind="learning",
        title="What use teaches",
        headline=tuple(
            f"{row['index']}: a fitting tool is among the first {FIRST} for {row['without']:.3f} of the requests "
            f"without learning and for {row['with']:.3f} with it; {row['helped']} were helped, {row['harmed']} harmed."
            for row in whole
        ),
        parameters=parameters,
        tables=(
            ReportTable("Whole months", tuple(each for each in _COLUMNS if each.key != "week"), totals),
            ReportTable("Week by week", _COLUMNS, rows),
        ),
        measured=_measured(parameters["mistaken"], parameters["mistaken_in_vain"]),
        limits=_limits(has_phrasings=has_phrasings),
        charts=_charts(rows),
        cards=tuple(
            Card(
                f"{row['index']}: hit@{FIRST}, with learning",
                shown(row["with"], "score"),
                f"{shown(row['without'], 'score')} without, n = {row['n']:,}.",
            )
            for row in whole[:MOST_CARDS]
        ),
    )


def _charts(rows: Sequence[LearningRow]) -> tuple[Chart, ...]:
    """Hits week by week, without and with learning, of all requests."""
    made = []
    for index in dict.fromkeys(row["index"] for row in rows):
        weekly = [row for row in rows if row["index"] == index and row["requests"] == "all"]
        before = _points(row["without"] for row in weekly)
        after = _points(row["with"] for row in weekly)
        if len(before) > 1:
            lines = (ChartLine("without learning", before, 0), ChartLine("with learning", after, 1))
            title = f"Requests with a fitting tool among the first {FIRST}"
            made.append(
                Chart(
                    title,
                    "week",
                    "share of the requests",
                    lines,
                    unit="share",
                    x_unit="weeks",
                    choices=(("index", index),),
                    scales=("linear",),
                )
            )
    return tuple(made)


def _points(values: Iterable[float | None]) -> tuple[tuple[float, float], ...]:
    """What is known of the weeks, the first of which is 1."""
    return tuple((float(week), value) for week, value in enumerate(values, 1) if value is not None)


def _measured(mistaken: float, mistaken_in_vain: float) -> tuple[str, ...]:
    return (
        "The same requests are searched without and with what the tenant's calls have taught until then.",
        (
            "Repeated: in words that the tenant has used before. With a slip: those words with two letters exchanged "
            "or in another order. Other words: a need that the tenant had before, in different words. New: a need that "
            "it has not had; only lessons from other needs can affect it."
        ),
        (
            f"A model calls a fitting tool if an answer loads it, among {FIRST} hits, or names it behind them; else it "
            "searches once more, in other words for the same need where the data set has some. In "
            f"{mistaken:.0%} of the requests that find one, and {mistaken_in_vain:.0%} "
            "of those that do not, it calls a wrong tool and is content; that is learned as well."
        ),
        "The difference is that of hit@5, with half of its 95 % interval (bootstrap over the requests).",
        "Helped: only with learning is a fitting tool among the first; harmed: only without.",
    )


def _limits(*, has_phrasings: bool) -> tuple[str, ...]:
    return (
        (
            "It is a simulation: how often people repeat themselves, and how, is assumed, and the gain follows "
            "from that. Measure your own use before you rely on a number."
        ),
        (
            "Rephrasings are other cases with the same gold, "
            + ("example queries of the tool, " if has_phrasings else "")
            + "exchanged letters, and another word order; people have more ways."
        ),
        "Wrong calls that succeed are random here; people who share a mistake would teach it more firmly.",
        "A data set with few cases for each tool has few wordings of a need, which flatters repetition.",
    )


_COLUMNS = (
    Column("index", "index"),
    Column("week", "week"),
    Column("requests", "requests"),
    Column("n", "n", "count"),
    Column("without", f"hit@{FIRST} without", "score"),
    Column("with", f"hit@{FIRST} with", "score"),
    Column("difference", "difference", "score", spread="difference ±"),
    Column("first without", "hit@1 without", "score"),
    Column("first with", "hit@1 with", "score"),
    Column("helped", "helped", "count"),
    Column("harmed", "harmed", "count"),
)
