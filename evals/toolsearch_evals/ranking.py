"""How well an index ranks: every case of a data set is searched, and the answers are held against the labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any

from toolsearch import Catalog, SetupError, ToolIndex, find, open_index
from toolsearch_evals.cases import Case, Dataset
from toolsearch_evals.measures import MEASURES, Judged, coverage, mean, recall, summarise
from toolsearch_evals.report import Column, Report, Table

__all__ = ["in_split", "judge", "ranking"]

DEPTH = 10  # tools asked for; what the deepest measure reads
BY_STEP = 5  # tools asked for with each step, as the search tool does
Tick = Callable[[str], None]


def in_split(cases: Iterable[Case], split: str) -> tuple[Case, ...]:
    """The cases of "dev", "test" or "all"; cases without a split are in each."""
    if split not in ("dev", "test", "all"):
        raise SetupError(f"there is no split {split!r}; there are 'dev', 'test' and 'all'")
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
            index = open_index(name)
            index.add(list(catalog))
            judged = []
            for case in cases:
                judged.append(judge(catalog, index, case))
                tick(f"{dataset.name}, {name}")
            place = {"dataset": dataset.name, "index": name, "tools": len(catalog)}
            rows += [place | row for row in _buckets(judged)]
            multi += [place | row for row in _multi(judged)]
    macro = [row for name in indexes for row in _macro(name, rows)] if len(datasets) > 1 else []
    parameters = {"data sets": [d.key for d in datasets], "indexes": list(indexes), "split": split}
    return _report(macro + rows, multi, quarantined, parameters)


def _buckets(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    rows = [_row("all", judged)]
    for of in ("kind", "wording"):
        names = sorted({getattr(each.case, of) for each in judged} - {""})
        if len(names) > 1:
            rows += [
                _row(
                    f"{name} wording" if of == "wording" else name,
                    [each for each in judged if getattr(each.case, of) == name],
                )
                for name in names
            ]
    return rows


def _row(bucket: str, judged: Sequence[Judged]) -> dict[str, Any]:
    summary = summarise(judged)
    seconds = mean([each.seconds for each in judged])
    return {
        "cases": bucket,
        "n": summary.n,
        "n_scored": summary.n_scored,
        "errors": summary.errors,
        **summary.values,
        "n_unanswerable": summary.n_unanswerable,
        "unanswerable answered": summary.answered,
        "milliseconds": None if seconds is None else 1_000 * seconds,
    }


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
    """The mean of the data sets' means, each set counting alike."""
    whole = [row for row in rows if row["index"] == index and row["cases"] == "all"]

    def over(key: str) -> float | None:
        return mean([row[key] for row in whole if row[key] is not None])

    sums = {key: sum(row[key] for row in whole) for key in ("tools", "n", "n_scored", "errors", "n_unanswerable")}
    return [
        {"dataset": f"mean of {len(whole)} sets", "index": index, "cases": "all", **sums}
        | {name: over(name) for name in (*MEASURES, "unanswerable answered", "milliseconds")}
    ]


def _report(
    rows: list[dict[str, Any]], multi: list[dict[str, Any]], quarantined: list[str], parameters: dict[str, Any]
) -> Report:
    columns = (
        Column("dataset", "data set"),
        Column("index", "index"),
        Column("cases", "cases"),
        Column("n", "n", "count"),
        Column("errors", "errors", "count"),
        *(Column(name, name, "score") for name in MEASURES),
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
                "k, where any tool of a group of alternatives will do; C@5 is the share of cases with all of them "
                "among the first 5; NDCG@10 is binary."
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
            "With a few hundred cases, differences of a point or two are noise.",
            *(f"Set aside, so never found: {entry}" for entry in quarantined),
        ),
        data={"quarantined": quarantined},
    )


def _headline(row: dict[str, Any]) -> str:
    if row["R@5"] is None:
        return f"{row['dataset']}: no case to score."
    said = f"{row['dataset']}, {row['index']}: {row['R@5']:.3f} of the needed tools are among the first five"
    if row["unanswerable answered"] is not None:
        said += f"; {row['unanswerable answered']:.0%} of the unanswerable requests get an answer all the same"
    return f"{said} ({row['n']:,} cases, {row['errors']} errors)."
