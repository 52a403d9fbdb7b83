"""Confidence judged on data sets that it was not fitted on, and on requests that are about something else.

Requests of one set are put to the catalog of another set, which nothing in it was made for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from toolsearch import Catalog, Hits, Scored, ToolIndex, find
from toolsearch.protocols import Ranking
from toolsearch.search import Fit
from toolsearch.search.confidence import DEPTH
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.ranking.measures import wilson
from toolsearch_evals.reports.report import Column, ReportTable

__all__ = ["judge", "judged_tables", "needed", "steps"]

SEED = 5
CROSSED = 150  # requests of one set that are put to another's catalog
BINS = 10
SHOWN = 5  # hits of a search


@dataclass(frozen=True)
class Refitted:
    """An index with the confidence of another fit."""

    index: ToolIndex
    fit: Fit

    @property
    def name(self) -> str:
        return self.index.name

    def add(self, tools: Any) -> None:
        self.index.add(tools)

    def remove(self, ids: Any) -> None:
        self.index.remove(ids)

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> Ranking:
        scored = self.index.search(query, max(limit, DEPTH), among)
        sure = [self.fit.relevant(each.signals or {}) for each in scored]
        hits: list[Scored] = [replace(each, confidence=p) for each, p in zip(scored, sure, strict=True)]
        near = scored.near if isinstance(scored, Ranking) else ()
        return Ranking(hits[:limit], answerable=self.fit.answerable(sure), near=near)


def needed(case: Case) -> AbstractSet[str]:
    """The ids of all tools that meet a part of a case."""
    return {tool_id for group in case.gold for tool_id in group}


def judge(
    datasets: Sequence[Dataset], make: Callable[[], ToolIndex], fit: Fit, tick: Callable[[], None]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """How a fit does on each of these sets: the rows of verdicts, and those of calibration errors."""
    searched: dict[str, tuple[Catalog, Refitted]] = {}
    verdicts, errors = [], []
    for dataset in datasets:
        if (place := _catalog_of(dataset)) not in searched:
            catalog = dataset.catalog()
            searched[place] = catalog, Refitted(make(), fit)
            searched[place][1].add(list(catalog))
        answers = _answers(*searched[place], [case for case in dataset.cases if case.gold], tick)
        verdicts.append({"requests": dataset.key, "to": place} | _verdicts(answers))
        errors.append({"set": dataset.key} | _errors(answers))
    for one, other in _pairs(datasets):
        answers = _answers(*searched[_catalog_of(other)], _asked(one), tick)
        verdicts.append({"requests": one.key, "to": _catalog_of(other)} | _verdicts(answers, elsewhere=True))
    return verdicts, errors


def steps(datasets: Sequence[Dataset]) -> int:
    """How many searches `judge` makes."""
    own = sum(bool(case.gold) for dataset in datasets for case in dataset.cases)
    return own + sum(len(_asked(one)) for one, _ in _pairs(datasets))


def _pairs(datasets: Sequence[Dataset]) -> list[tuple[Dataset, Dataset]]:
    """The sets whose requests are put to another's catalog, each catalog once."""
    first = {_catalog_of(dataset): dataset for dataset in reversed(datasets)}
    return list(permutations([each for each in datasets if first[_catalog_of(each)] is each], 2))


def _catalog_of(dataset: Dataset) -> str:
    """The name of a set's catalog: several files of requests in one folder have one."""
    return dataset.name.partition("/")[0]


def _asked(dataset: Dataset) -> list[Case]:
    cases = [case for case in dataset.cases if case.gold]
    return random.Random(SEED).sample(cases, min(CROSSED, len(cases)))


def _answers(
    catalog: Catalog, index: ToolIndex, cases: Sequence[Case], tick: Callable[[], None]
) -> list[tuple[Case, Hits]]:
    answers = []
    for case in cases:
        answers.append((case, find(catalog, index, case.query, SHOWN)))
        tick()
    return answers


def _verdicts(answers: Sequence[tuple[Case, Hits]], *, elsewhere: bool = False) -> dict[str, Any]:
    given = [hits.verdict for _, hits in answers]
    row: dict[str, Any] = {"n": len(answers)}
    for each in ("found", "weak", "none"):
        low, high = wilson(given.count(each), len(answers))
        row |= {each: given.count(each) / len(answers), f"{each} low": low, f"{each} high": high}
    if not elsewhere:
        lost = [any(tool.id in needed(case) for tool in hits.near) for case, hits in answers if hits.verdict == "none"]
        row["named"] = sum(lost) / len(lost) if lost else None
    return row


def _errors(answers: Sequence[tuple[Case, Hits]]) -> dict[str, Any]:
    by_hit = [
        [(hit.confidence, hit.tool.id in needed(case)) for hit in hits if hit.confidence is not None and not hit.exact]
        for case, hits in answers
    ]
    first, every = [of[0] for of in by_hit if of], [pair for of in by_hit for pair in of]
    return {
        "n": len(first),
        "confidence": sum(p for p, _ in first) / len(first) if first else None,
        "relevant": sum(y for _, y in first) / len(first) if first else None,
        "error of first hits": _error(first),
        "error of all hits": _error(every),
    }


def _error(pairs: Sequence[tuple[float, bool]]) -> float | None:
    """The mean distance of confidence and relevance over ten bins of confidence, weighted by their hits."""
    tenths: dict[int, float] = {}
    for p, relevant in pairs:
        place = min(int(p * BINS), BINS - 1)
        tenths[place] = tenths.get(place, 0.0) + p - relevant
    return sum(map(abs, tenths.values())) / len(pairs) if pairs else None


def judged_tables(verdicts: list[dict[str, Any]], errors: list[dict[str, Any]]) -> tuple[ReportTable, ...]:
    """The tables of a report; none if nothing was judged."""
    if not verdicts:
        return ()
    shares = [
        column
        for name in ("found", "weak", "none")
        for column in (
            Column(name, name, "share"),
            Column(f"{name} low", "at least", "share"),
            Column(f"{name} high", "at most", "share"),
        )
    ]
    return (
        ReportTable(
            "Verdicts on other sets",
            (
                Column("index", "index"),
                Column("requests", "requests of"),
                Column("to", "to the catalog of"),
                Column("n", "n", "count"),
                *shares,
                Column("named", "none: its tool is named", "share"),
            ),
            verdicts,
        ),
        ReportTable(
            "Calibration error on other sets",
            (
                Column("index", "index"),
                Column("set", "set"),
                Column("n", "n", "count"),
                Column("confidence", "mean", "score"),
                Column("relevant", "relevant", "score"),
                Column("error of first hits", "first hits", "score"),
                Column("error of all hits", "five hits", "score"),
            ),
            errors,
        ),
    )
