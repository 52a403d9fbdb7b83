"""How well an index ranks: every case of a data set is searched, and the answers are held against the labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeVar

from toolsearch import Catalog, SetupError, ToolIndex, find
from toolsearch_evals.backends import label, open_backend
from toolsearch_evals.cases import Case, Dataset
from toolsearch_evals.derive import told_of
from toolsearch_evals.measures import MEASURES, WITH_INTERVAL, Judged, coverage, mean, recall, summarise
from toolsearch_evals.report import Column, Report, Table

__all__ = ["buckets", "in_split", "judge", "ranking"]

DEPTH = 10  # tools asked for; what the deepest measure reads
SHOWN = tuple(name for name in MEASURES if name not in ("R@3", "R@10"))  # in tables, for width; the rows have all
FEW = 10  # cases; a language with fewer has no row of its own where there are more than two
BY_STEP = 5  # tools asked for with each step, as the search tool does
Tick = Callable[[str], None]
T = TypeVar("T")


def in_split(cases: Iterable[Case], split: str) -> tuple[Case, ...]:
    """The cases of "train", "dev", "test" or "all"; cases without a split are in each."""
    if split not in ("train", "dev", "test", "all"):
        raise SetupError(f"there is no split {split!r}; there are 'train', 'dev', 'test' and 'all'")
    return tuple(case for case in cases if split == "all" or case.split in ("", split))


def judge(catalog: Catalog, index: ToolIndex, case: Case) -> Judged:
    """Searches for one case: the query as it is, and where the case has steps, one search for each of them."""
    began = perf_counter()
    try:
        hits = find(catalog, index, case.query, DEPTH)
    except Exception as error:  # an index under test may raise anything: counted, not hidden
        return Judged(case, error=f"{type(error).__name__}: {error}", seconds=perf_counter() - began)
    seconds = perf_counter() - began
    steps = [find(catalog, index, step, BY_STEP) for step in case.steps]
    by_steps = tuple(h.tool.id for found in steps for h in found) if steps else None
    return Judged(case, tuple(h.tool.id for h in hits)[:DEPTH], hits.problem, seconds, by_steps)


def ranking(
    datasets: Sequence[Dataset], indexes: Sequence[str], split: str = "all", tick: Tick = lambda _: None
) -> Report:
    """The report on these data sets and indexes; with several data sets, their macro mean too.

    `tick` is called after each search with what was searched.
    """
    rows: list[dict[str, Any]] = []
    multi: list[dict[str, Any]] = []
    quarantined: list[str] = []
    for dataset in datasets:
        catalog = dataset.catalog()
        quarantined += [f"{dataset.name}: {entry.name}: {entry.reason}" for entry in catalog.quarantined]
        cases = in_split(dataset.cases, split)
        for name in indexes:
            index = open_backend(name)
            index.add(list(catalog))
            judged = []
            for case in cases:
                judged.append(judge(catalog, index, case))
                tick(f"{dataset.name}, {label(name)}")
            place = {"dataset": dataset.name, "index": label(name), "tools": len(catalog)}
            rows += [place | _row(bucket, each) for bucket, each in buckets(judged, lambda each: each.case)]
            multi += [place | row for row in _multi(judged)]
    labels = [label(name) for name in indexes]
    macro = [row for name in labels for row in _macro(name, rows)] if len(datasets) > 1 else []
    parameters: dict[str, Any] = {"data sets": [d.key for d in datasets], "indexes": labels, "split": split}
    if enriched := sum(len(d.enriched or ()) for d in datasets):
        parameters["tools with example queries"] = enriched
    return _report(macro + rows, multi, quarantined, parameters, told_of(datasets))


def buckets(of: Sequence[T], case_of: Callable[[T], Case]) -> list[tuple[str, list[T]]]:
    """What belongs to all cases, to those that need a single tool, and to each kind, wording and language.

    Only a bucket that tells cases apart is there: languages where there are several, "single" where other cases are.
    Languages of a few cases each are one bucket, "others".
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


def _row(bucket: str, judged: Sequence[Judged]) -> dict[str, Any]:
    summary = summarise(judged)
    seconds = mean([each.seconds for each in judged])
    return {
        "cases": bucket,
        "n": summary.n,
        "n_scored": summary.n_scored,
        "errors": summary.errors,
        **summary.values,
        **_intervals(summary.intervals),
        "n_unanswerable": summary.n_unanswerable,
        "unanswerable answered": summary.answered,
        "milliseconds": None if seconds is None else 1_000 * seconds,
    }


def _intervals(of: Mapping[str, tuple[float, float]]) -> dict[str, float | None]:
    """Ends and half width of each interval, as a row has them."""
    told: dict[str, float | None] = {}
    for name in WITH_INTERVAL:
        low, high = of.get(name, (None, None))
        told |= {f"{name} low": low, f"{name} high": high}
        told[f"{name} ±"] = None if low is None or high is None else (high - low) / 2
    return told


def _multi(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """The whole request as one query beside one query a step, over the cases that have steps."""
    both = [each for each in judged if each.by_steps is not None and each.error is None]
    if not both:
        return []
    ways = {"one query, top 5": lambda each: each.retrieved[:BY_STEP], "one query a step, top 5 of each": _all_steps}
    return [
        {
            "searched with": way,
            "n": len(both),
            "recall": mean([recall(of(each), each.case.gold, 100) for each in both]),
            "coverage": mean([coverage(of(each), each.case.gold, 100) for each in both]),
        }
        for way, of in ways.items()
    ]


def _all_steps(judged: Judged) -> tuple[str, ...]:
    return judged.by_steps or ()


def _macro(index: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mean of the data sets' means, each set counting alike; the sets' errors are taken as independent."""
    whole = [row for row in rows if row["index"] == index and row["cases"] == "all"]

    def over(key: str) -> float | None:
        return mean([row[key] for row in whole if row[key] is not None])

    sums = {key: sum(row[key] for row in whole) for key in ("tools", "n", "n_scored", "errors", "n_unanswerable")}
    means = {name: over(name) for name in (*MEASURES, "unanswerable answered", "milliseconds")}
    ends: dict[str, tuple[float, float]] = {}
    for name in WITH_INTERVAL:
        halves = [row[f"{name} ±"] for row in whole if row[f"{name} ±"] is not None]
        middle = means[name]
        if middle is not None:
            half = math.hypot(*halves) / len(halves)
            ends[name] = max(0.0, middle - half), min(1.0, middle + half)
    place = {"dataset": f"mean of {len(whole)} sets", "index": index, "cases": "all"}
    return [place | sums | means | _intervals(ends)]


def _report(
    rows: list[dict[str, Any]],
    multi: list[dict[str, Any]],
    quarantined: list[str],
    parameters: dict[str, Any],
    derived: tuple[str, ...],
) -> Report:
    columns = (
        Column("dataset", "data set"),
        Column("index", "index"),
        Column("cases", "cases"),
        Column("n", "n", "count"),
        *([Column("errors", "errors", "count")] if any(row["errors"] for row in rows) else []),
        *(Column(name, name, "score", f"{name} ±" if name in WITH_INTERVAL else "") for name in SHOWN),
        Column("unanswerable answered", "false answers", "share"),
        Column("milliseconds", "ms a query", "milliseconds"),
    )
    tables = [Table("Ranking", columns, rows)]
    if multi:
        heads = (
            Column("dataset", "data set"),
            Column("index", "index"),
            Column("searched with", "searched with"),
            Column("n", "n", "count"),
            Column("recall", "needed tools found", "score"),
            Column("coverage", "all found", "score"),
        )
        tables.append(Table("Requests that need several tools", heads, multi))
    first = [row for row in rows if row["cases"] == "all"][: len(parameters["indexes"])]
    return Report(
        kind="ranking",
        title="How well the indexes rank",
        headline=tuple(map(_headline, first)),
        parameters=parameters,
        tables=tuple(tables),
        measured=(
            (
                "Each case's query is searched as it stands. R@k is the share of the needed tools among the first "
                "k, where any tool of a group of alternatives will do; hit@5 is the share of cases with one of them, "
                "C@5 with all of them among the first 5; NDCG@10 is binary. The bucket single is the cases that need "
                "one tool."
            ),
            (
                "± is half of the 95 % interval: percentiles of a seeded bootstrap over the cases; Wilson's interval "
                "where all cases score the same 0 or 1. It says what other cases of this kind would have changed."
            ),
            "A search that failed counts as one that found nothing. A bucket without cases to score shows a dash.",
            (
                "False answers: the share of the requests that no tool can meet for which tools came back "
                "all the same; 0 is best. An index without calibrated confidence answers on any evidence."
            ),
            "ms a query: mean wall-clock time of `toolsearch.find` in this process.",
        ),
        limits=(
            "Labels are not complete: a fitting tool that the labels do not name counts as a miss.",
            (
                "Two indexes answer the same cases, so a difference may be sure where the intervals overlap: "
                "`toolsearch eval compare` tells."
            ),
            *derived,
            *(f"Set aside, so never found: {entry}" for entry in quarantined),
        ),
        data={"quarantined": quarantined},
    )


def _headline(row: dict[str, Any]) -> str:
    if row["R@5"] is None:
        return f"{row['dataset']}: no case to score."
    spread = "" if row["R@5 ±"] is None else f" ±{row['R@5 ±']:.3f}"
    said = f"{row['dataset']}, {row['index']}: {row['R@5']:.3f}{spread} of the needed tools are among the first five"
    if row["unanswerable answered"] is not None:
        said += f"; {row['unanswerable answered']:.0%} of the unanswerable requests get an answer all the same"
    return f"{said} ({row['n']:,} cases, {row['errors']} errors)."
