"""How well an index ranks: every case of a data set is searched, and the answers are compared with the labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from toolsearch import Catalog, SetupError, ToolIndex, find
from toolsearch_evals.backends import label, open_backend
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.data.notes import data_notes
from toolsearch_evals.ranking.answers import AnswerReader
from toolsearch_evals.ranking.measure_plugins import further_measures
from toolsearch_evals.ranking.measures import MEASURES, JudgedCase, Measure, coverage, mean, recall, summarise
from toolsearch_evals.ranking.misses import miss_rows
from toolsearch_evals.ranking.report import ranking_report
from toolsearch_evals.reports.report import Report

__all__ = [
    "EVERY",
    "SHOWN",
    "Kept",
    "RankedSet",
    "RankingFacts",
    "buckets",
    "facts_of",
    "in_split",
    "judge",
    "ranking",
    "report_on",
]

DEPTH = 15  # tools asked for; what the deepest measure reads
FEW = 10  # cases; of more than two languages, one with fewer cases has no row of its own
BY_STEP = 5  # tools asked for with each step, as by the search tool
EVERY = "all cases"  # of several data sets
SHOWN, TOKENS = "R@shown", "tokens a search"
Tick = Callable[[str], None]
Kept = Callable[[str, str, Case, Callable[[], JudgedCase]], JudgedCase]
T = TypeVar("T")


def in_split(cases: Iterable[Case], split: str) -> tuple[Case, ...]:
    """The cases of "train", "dev", "test" or "all"; cases without a split are in each."""
    if split not in ("train", "dev", "test", "all"):
        raise SetupError(f"there is no split {split!r}; pass 'train', 'dev', 'test' or 'all'")
    return tuple(case for case in cases if split == "all" or case.split in ("", split))


def judge(catalog: Catalog, index: ToolIndex, case: Case, reader: AnswerReader | None = None) -> JudgedCase:
    """Searches for one case: the query as it is, and where the case has steps, one search for each of them.

    With a `reader`, the search tool's answer to the query is noted, too.
    """
    began = perf_counter()
    try:
        hits = find(catalog, index, case.query, DEPTH)
    except Exception as error:  # an index under test may raise anything: counted, not hidden
        return JudgedCase(case, error=f"{type(error).__name__}: {error}", seconds=perf_counter() - began)
    seconds = perf_counter() - began
    steps = [find(catalog, index, step, BY_STEP) for step in case.steps]
    by_steps = tuple(h.tool.id for found in steps for h in found) if steps else None
    judged = JudgedCase(case, tuple(h.tool.id for h in hits)[:DEPTH], hits.problem, seconds, by_steps)
    answer = reader.read(case.query) if reader and not hits.problem else None
    return replace(judged, shown=answer.shown, tokens=answer.tokens) if answer else judged


@dataclass(frozen=True)
class RankedSet:
    """The cases of one data set, searched by one index. `index` is its name in reports, `tools` their number."""

    dataset: str
    index: str
    tools: int
    judged: tuple[JudgedCase, ...]


@dataclass(frozen=True)
class RankingFacts:
    """What a report on a ranking says besides what the searches came to."""

    parameters: Mapping[str, Any]
    quarantined: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def ranking(
    datasets: Sequence[Dataset],
    indexes: Sequence[str],
    split: str = "all",
    tick: Tick = lambda _: None,
    *,
    measures: Sequence[Measure] = (),
    kept: Kept = lambda _dataset, _index, _case, search: search(),
) -> Report:
    """The report on these data sets and indexes.

    Of several data sets there are two means: the macro mean, in which each set weighs the same, and the micro mean, in
    which each case does. Of a set with several kinds of cases, the micro mean is the row of all cases, and the macro
    mean that of its kinds. `measures` are shown after ours and those of installed packages. `tick` is called after each
    search with what was searched. `kept(data set, index, case, search)` may answer for a search of an earlier time.
    """
    further = further_measures(measures)
    catalogs = [each.catalog() for each in datasets]
    sets = [
        _searched(dataset, catalog, notation, in_split(dataset.cases, split), tick=tick, kept=kept)
        for dataset, catalog in zip(datasets, catalogs, strict=True)
        for notation in indexes
    ]
    return report_on(sets, facts_of(datasets, catalogs, indexes, split), further)


def facts_of(
    datasets: Sequence[Dataset], catalogs: Sequence[Catalog], indexes: Sequence[str], split: str
) -> RankingFacts:
    """What is known before anything is searched. `catalogs` are those of the data sets."""
    parameters: dict[str, Any] = {
        "data sets": [each.key for each in datasets],
        "indexes": [label(name) for name in indexes],
        "split": split,
    }
    if enriched := sum(len(each.enriched or ()) for each in datasets):
        parameters["tools with example queries"] = enriched
    quarantined = tuple(
        f"{dataset.name}: {entry.name}: {entry.reason}"
        for dataset, catalog in zip(datasets, catalogs, strict=True)
        for entry in catalog.quarantined
    )
    return RankingFacts(parameters, quarantined, data_notes(datasets))


def _searched(
    dataset: Dataset, catalog: Catalog, notation: str, cases: Sequence[Case], *, tick: Tick, kept: Kept
) -> RankedSet:
    index, name = open_backend(notation), label(notation)
    reader = AnswerReader(catalog, index)
    judged = []
    for case in cases:
        judged.append(kept(dataset.key, name, case, partial(judge, catalog, index, case, reader)))
        tick(f"{dataset.name}, {name}")
    return RankedSet(dataset.name, name, len(catalog), tuple(judged))


def report_on(sets: Sequence[RankedSet], facts: RankingFacts, further: Sequence[Measure] = ()) -> Report:
    """The report on data sets that were searched; `further` are the measures besides ours."""
    used = (*MEASURES, *further)
    rows: list[dict[str, Any]] = []
    multi: list[dict[str, Any]] = []
    missed: list[dict[str, Any]] = []
    everything: dict[str, list[JudgedCase]] = {}
    for each in sets:
        place: dict[str, Any] = {"dataset": each.dataset, "index": each.index, "tools": each.tools}
        everything.setdefault(each.index, []).extend(each.judged)
        first, *others = (
            place | _ranking_row(bucket, judged, used) for bucket, judged in buckets(each.judged, lambda one: one.case)
        )
        rows += [first, *_mean_of_kinds(place, each.judged, used), *others]
        multi += [place | row for row in _step_rows(each.judged)]
        missed += miss_rows(place, each.judged)
    names = list(everything)
    means: list[dict[str, Any]] = []
    if len(sets) > len(names):
        means += [_mean_of_sets(name, rows, used) for name in names]
        means += [_all_sets(len(sets) // len(names), name, everything[name], rows, used) for name in names]
    parameters = dict(facts.parameters)
    return ranking_report(
        means + rows, multi, facts.quarantined, parameters, facts.notes, further=further, missed=missed
    )


def buckets(of: Sequence[T], case_of: Callable[[T], Case]) -> list[tuple[str, list[T]]]:
    """Groups by case: all, those that need a single tool, and each kind, wording and language.

    A bucket is left out if it would hold all cases: the language if there is only one, "single" if there are no other
    cases. Languages with few cases share one bucket, "others".
    """
    counts = Counter(case_of(each).language for each in of)
    few = {language for language, count in counts.items() if count < FEW} if len(counts) > 2 else set()

    def language(case: Case) -> str:
        return "others" if case.language in few else case.language

    ways: list[Callable[[Case], str]] = [
        lambda case: "single" if len(case.gold) == 1 else "",
        lambda case: case.kind,
        lambda case: case.wording and f"{case.wording} wording",
        language,
        lambda case: f"single, {language(case)}" if len(case.gold) == 1 else "",
    ]
    several = len(counts) > 1
    found: dict[str, list[T]] = {"all": list(of)}
    for name_of in ways if several else ways[:3]:
        groups: dict[str, list[T]] = {}
        for each in of:
            groups.setdefault(name_of(case_of(each)), []).append(each)
        if len(groups) > 1:
            found |= {name: groups[name] for name in sorted(groups) if name}
    return list(found.items())


def _ranking_row(bucket: str, judged: Sequence[JudgedCase], measures: Sequence[Measure]) -> dict[str, Any]:
    summary = summarise(judged, measures)
    seconds = mean([each.seconds for each in judged])
    return {
        "cases": bucket,
        "mean": "micro",
        "n": summary.n,
        "n_scored": summary.n_scored,
        "errors": summary.errors,
        **summary.values,
        **_intervals(summary.intervals, measures),
        SHOWN: mean([recall(each.shown, each.case.gold, len(each.shown)) for each in judged if each.case.gold]),
        "n_unanswerable": summary.n_unanswerable,
        "unanswerable answered": summary.answered,
        "milliseconds": None if seconds is None else 1_000 * seconds,
        TOKENS: mean([each.tokens for each in judged if each.tokens is not None]),
    }


def _intervals(of: Mapping[str, tuple[float, float]], measures: Sequence[Measure]) -> dict[str, float | None]:
    """Ends and half width of each interval, as a row has them."""
    cells: dict[str, float | None] = {}
    for name in _with_interval(measures):
        low, high = of.get(name, (None, None))
        cells |= {f"{name} low": low, f"{name} high": high}
        cells[f"{name} ±"] = None if low is None or high is None else (high - low) / 2
    return cells


def _with_interval(measures: Sequence[Measure]) -> list[str]:
    return [measure.name for measure in measures if measure.has_interval]


def _step_rows(judged: Sequence[JudgedCase]) -> list[dict[str, Any]]:
    """The whole request as one query, and one query a step, over the cases that have steps."""
    both = [each for each in judged if each.by_steps is not None and each.error is None]
    if not both:
        return []
    ways = {
        "one query, top 5": lambda each: each.retrieved[:BY_STEP],
        "one query a step, top 5 of each": _found_by_steps,
    }
    return [
        {
            "searched with": way,
            "n": len(both),
            "recall": mean([recall(of(each), each.case.gold, 100) for each in both]),
            "coverage": mean([coverage(of(each), each.case.gold, 100) for each in both]),
        }
        for way, of in ways.items()
    ]


def _found_by_steps(judged: JudgedCase) -> tuple[str, ...]:
    return judged.by_steps or ()


def _mean_of_sets(index: str, rows: Sequence[dict[str, Any]], measures: Sequence[Measure]) -> dict[str, Any]:
    """The mean of the data sets' means, each with the same weight."""
    whole = [row for row in rows if row["index"] == index and row["cases"] == "all"]
    place = {"dataset": f"mean of {len(whole)} sets", "index": index, "tools": sum(row["tools"] for row in whole)}
    return place | {"cases": "all"} | _macro(whole, measures)


def _all_sets(
    sets: int, index: str, judged: Sequence[JudgedCase], rows: Sequence[dict[str, Any]], measures: Sequence[Measure]
) -> dict[str, Any]:
    """The mean of the cases of all data sets, each with the same weight."""
    tools = sum(row["tools"] for row in rows if row["index"] == index and row["cases"] == "all")
    place = {"dataset": f"all of {sets} sets", "index": index, "tools": tools}
    return place | _ranking_row(EVERY, judged, measures)


def _mean_of_kinds(
    place: Mapping[str, Any], judged: Sequence[JudgedCase], measures: Sequence[Measure]
) -> list[dict[str, Any]]:
    """The mean of the means of the kinds of cases, each with the same weight, if there are several."""
    kinds: dict[str, list[JudgedCase]] = {}
    for each in judged:
        kinds.setdefault(each.case.kind, []).append(each)
    whole = [_ranking_row(kind, of, measures) for kind, of in sorted(kinds.items())]
    scored = sum(row["n_scored"] > 0 for row in whole)
    return [{**place, "cases": f"mean of {scored} kinds", **_macro(whole, measures)}] if scored > 1 else []


def _macro(rows: Sequence[dict[str, Any]], measures: Sequence[Measure]) -> dict[str, Any]:
    """The mean of these rows' means, each with the same weight; their errors are taken as independent."""

    def over(key: str) -> float | None:
        return mean([row[key] for row in rows if row[key] is not None])

    sums = {key: sum(row[key] for row in rows) for key in ("n", "n_scored", "errors", "n_unanswerable")}
    others = (SHOWN, "unanswerable answered", "milliseconds", TOKENS)
    means = {name: over(name) for name in (*(each.name for each in measures), *others)}
    ends: dict[str, tuple[float, float]] = {}
    for name in _with_interval(measures):
        halves = [row[f"{name} ±"] for row in rows if row[f"{name} ±"] is not None]
        middle = means[name]
        if middle is not None:
            half = math.hypot(*halves) / len(halves)
            ends[name] = max(0.0, middle - half), min(1.0, middle + half)
    return {"mean": "macro"} | sums | means | _intervals(ends, measures)
