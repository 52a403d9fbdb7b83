"""The cases that a ranking missed, one by one: what was needed, what was found instead, and how far down it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolsearch_evals.ranking.measures import JudgedCase, recall
from toolsearch_evals.reports.report import Column, ReportTable

__all__ = ["miss_rows", "misses_table"]

TOP, INSTEAD = 5, 3  # a needed tool below the first five is missed; so many tools are shown that were found instead

_COLUMNS = (
    Column("dataset", "data set"),
    Column("index", "index"),
    Column("case", "case"),
    Column("kind", "kind"),
    Column("wording", "wording"),
    Column("language", "language"),
    Column("query", "query"),
    Column("missed", "needed, not among the first", is_result=True),
    Column("instead", "found instead", is_result=True),
    Column("place", "at place", "count"),
    Column("named", "shown by a search"),
)


def miss_rows(place: Mapping[str, Any], judged: Sequence[JudgedCase]) -> list[dict[str, Any]]:
    """A row for each case of which a needed tool is not among the first five, those that found nothing first.

    `place` says whose cases they are: the data set and the index.
    """
    missed = [each for each in judged if each.case.gold and recall(each.retrieved, each.case.gold, TOP) < 1]
    missed.sort(key=lambda each: (recall(each.retrieved, each.case.gold, TOP), _place(each) is not None, each.case.id))
    return [{**place, **_row(each)} for each in missed]


def _row(judged: JudgedCase) -> dict[str, Any]:
    case, top = judged.case, judged.retrieved[:TOP]
    missed = [group for group in case.gold if not set(group) & set(top)]
    needed = {i for group in case.gold for i in group}
    is_shown = all(set(group) & set(judged.shown) for group in missed)
    return {
        "case": case.id,
        "kind": case.kind,
        "wording": case.wording,
        "language": case.language,
        "query": case.query,
        "missed": "; ".join(" or ".join(group) for group in missed),
        "instead": judged.error or ", ".join([i for i in top if i not in needed][:INSTEAD]) or "nothing",
        "place": _place(judged),
        "named": ("yes" if is_shown else "no") if judged.shown else None,
    }


def _place(judged: JudgedCase) -> int | None:
    """Where the first tool of the first missed group is among those that were asked for."""
    missed = [group for group in judged.case.gold if not set(group) & set(judged.retrieved[:TOP])]
    return next((at for at, i in enumerate(judged.retrieved, 1) if missed and i in missed[0]), None)


def misses_table(rows: Sequence[Mapping[str, Any]]) -> ReportTable:
    """The rows as a table."""
    note = (
        f"Every case of which a needed tool is not among the first {TOP}. At place: where the first of them is, if it "
        "is among those asked for. Shown by a search: whether the search tool's own answer loads or names all of them."
    )
    return ReportTable("Misses, case by case", _COLUMNS, rows, note, of_cases=True)
