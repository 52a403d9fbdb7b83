"""Two indexes on the same cases: which does better, how often, and whether chance alone would explain it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from toolsearch import SetupError
from toolsearch_evals.backends import label, open_backend
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.data.notes import data_notes
from toolsearch_evals.ranking.measures import MEASURES, JudgedCase, Measure, bootstrap, mean, score_of
from toolsearch_evals.ranking.rank import buckets, in_split, judge
from toolsearch_evals.reports.report import Card, Column, Report, ReportTable, shown

__all__ = ["compare", "sign_test"]

COMPARED = tuple(measure for measure in MEASURES if measure.name in ("R@5", "NDCG@10"))
DIFFERING = 10  # cases shown each way
FIRST = 5  # tools of an answer shown
Tick = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Pair:
    """One case, with the answers of both indexes."""

    dataset: str
    one: JudgedCase
    other: JudgedCase

    @property
    def case(self) -> Case:
        return self.one.case

    def difference(self, measure: Measure) -> float:
        return score_of(self.one, measure) - score_of(self.other, measure)


def compare(
    datasets: Sequence[Dataset], one: str, other: str, split: str = "all", tick: Tick = lambda _: None
) -> Report:
    """The report on two indexes by notation. A difference is the value of the first minus that of the second.

    `tick` is called after each case. Raises `SetupError` for the same index twice, and if no case can be scored.
    """
    names = (label(one), label(other))
    if names[0] == names[1]:
        raise SetupError(
            f"{one!r} and {other!r} are the same index or have the same name in reports; name two that differ"
        )
    pairs = [pair for dataset in datasets for pair in _pairs(dataset, one, other, split, tick)]
    scored = [pair for pair in pairs if pair.case.gold]
    if not scored:
        raise SetupError("there is no case to compare: none of them needs a tool")
    by_set = {
        name: [pair for pair in scored if pair.dataset == name] for name in dict.fromkeys(p.dataset for p in scored)
    }
    parts = [(name, *part) for name, of in by_set.items() for part in buckets(of, lambda pair: pair.case)]
    if len(by_set) > 1:
        parts.insert(0, (f"all of {len(by_set)} sets", "all", scored))
    rows = [{"dataset": name} | _row(bucket, of, measure) for name, bucket, of in parts for measure in COMPARED]
    parameters = {"data sets": [d.key for d in datasets], "indexes": list(names), "split": split}
    return _compare_report(rows, pairs, names, parameters, data_notes(datasets))


def _pairs(dataset: Dataset, one: str, other: str, split: str, tick: Tick) -> Iterator[_Pair]:
    """Both indexes search every case of the split."""
    catalog = dataset.catalog()
    first, second = open_backend(one), open_backend(other)
    for index in (first, second):
        index.add(list(catalog))
    for case in in_split(dataset.cases, split):
        yield _Pair(dataset.name, judge(catalog, first, case), judge(catalog, second, case))
        tick(f"{dataset.name}, {case.id}")


def sign_test(wins: int, losses: int) -> float:
    """The probability of a split at least this uneven if both sides win equally often: two-sided, exact, no ties."""
    n, less = wins + losses, min(wins, losses)
    chance: float = 2 * sum(comb(n, k) for k in range(less + 1)) / 2**n
    return min(1.0, chance)


def _row(bucket: str, pairs: Sequence[_Pair], measure: Measure) -> dict[str, Any]:
    differences = [pair.difference(measure) for pair in pairs]
    wins, losses = (sum(sign * each > 0 for each in differences) for sign in (1, -1))
    low, high = bootstrap(differences) if len(pairs) > 1 else (-1.0, 1.0)  # one case tells nothing of others
    return {
        "cases": bucket,
        "measure": measure.name,
        "n": len(pairs),
        "first": mean([score_of(pair.one, measure) for pair in pairs]),
        "second": mean([score_of(pair.other, measure) for pair in pairs]),
        "difference": mean(differences),
        "low": low,
        "high": high,
        "±": (high - low) / 2,
        "wins": wins,
        "losses": losses,
        "ties": len(pairs) - wins - losses,
        "p": sign_test(wins, losses),
    }


def _differing_rows(pairs: Iterable[_Pair], sign: int) -> list[dict[str, Any]]:
    """The cases with the largest difference in one direction, by the sum over both measures, then by id."""
    by = [(sign * sum(pair.difference(measure) for measure in COMPARED), pair) for pair in pairs]
    most = sorted((each for each in by if each[0] > 0), key=lambda each: (-each[0], each[1].dataset, each[1].case.id))
    return [
        {
            "dataset": pair.dataset,
            "id": pair.case.id,
            "kind": pair.case.kind or "not said",
            "query": pair.case.query,
            "needed": "; ".join(" or ".join(group) for group in pair.case.gold),
            "first": _answer_text(pair.one),
            "second": _answer_text(pair.other),
            "difference": pair.difference(COMPARED[-1]),
        }
        for _, pair in most[:DIFFERING]
    ]


def _answer_text(judged: JudgedCase) -> str:
    return judged.error or ", ".join(judged.retrieved[:FIRST]) or "nothing"


def _compare_report(
    rows: list[dict[str, Any]],
    pairs: Sequence[_Pair],
    names: tuple[str, str],
    parameters: dict[str, Any],
    derived: tuple[str, ...],
) -> Report:
    scored = [pair for pair in pairs if pair.case.gold]
    tables = [ReportTable(f"{names[0]} against {names[1]}", _columns(names), rows)]
    for better, sign in ((names[0], 1), (names[1], -1)):
        if found := _differing_rows(scored, sign):
            tables.append(ReportTable(f"Where {better} does better", _case_columns(names), found))
    return Report(
        kind="compare",
        title=f"{names[0]} against {names[1]}",
        headline=tuple(_sentence(row, names) for row in rows[: len(COMPARED)]) + _unanswerable(pairs, names),
        parameters=parameters,
        tables=tuple(tables),
        measured=_MEASURED,
        limits=(*_LIMITS, *derived),
        cards=tuple(map(_card, rows[: len(COMPARED)])),
    )


def _card(row: Mapping[str, Any]) -> Card:
    ends = f"{shown(row['low'], 'score')} to {shown(row['high'], 'score')}"
    return Card(
        f"{row['measure']}, difference",
        shown(row["difference"], "score"),
        f"95 % interval {ends}, n = {row['n']:,}; {row['wins']:,} wins, {row['losses']:,} losses.",
    )


def _columns(names: tuple[str, str]) -> tuple[Column, ...]:
    return (
        Column("dataset", "data set"),
        Column("cases", "cases"),
        Column("measure", "measure"),
        Column("n", "n", "count"),
        Column("first", names[0], "score"),
        Column("second", names[1], "score"),
        Column("difference", "difference", "score", "±"),
        Column("wins", "wins", "count"),
        Column("losses", "losses", "count"),
        Column("ties", "ties", "count"),
        Column("p", "sign test p", "score"),
    )


def _case_columns(names: tuple[str, str]) -> tuple[Column, ...]:
    return (
        Column("dataset", "data set"),
        Column("id", "case"),
        Column("kind", "kind"),
        Column("query", "query"),
        Column("needed", "needed"),
        Column("first", names[0], is_result=True),
        Column("second", names[1], is_result=True),
        Column("difference", COMPARED[-1].name, "score"),
    )


def _sentence(row: dict[str, Any], names: tuple[str, str]) -> str:
    if not row["wins"] + row["losses"]:
        return f"{row['measure']}, {row['dataset']}: both {row['first']:.3f}; no case differs."
    zero = "leaves out" if row["low"] > 0 or row["high"] < 0 else "holds"
    return (
        f"{row['measure']}, {row['dataset']}: {names[0]} {row['first']:.3f}, {names[1]} {row['second']:.3f}; "
        f"difference {row['difference']:+.3f} ±{row['±']:.3f} (the interval {zero} 0), {row['wins']} wins, "
        f"{row['losses']} losses, {row['ties']} ties, sign test p {row['p']:.2g}."
    )


def _unanswerable(pairs: Sequence[_Pair], names: tuple[str, str]) -> tuple[str, ...]:
    of = [pair for pair in pairs if not pair.case.gold]
    if not of:
        return ()
    first = sum(bool(pair.one.retrieved or pair.one.error) for pair in of)
    second = sum(bool(pair.other.retrieved or pair.other.error) for pair in of)
    return (f"Of {len(of)} requests that no tool can meet, {names[0]} answers {first}, {names[1]} {second}.",)


_MEASURED = (
    (
        "Both indexes search every case. A win is a case where the first index scores higher, a tie one where "
        "both score the same. A search that failed scores nothing."
    ),
    (
        "± is half of the 95 % interval of the mean difference: a seeded bootstrap over the cases, both "
        "indexes on the same cases. The sign test is two-sided and exact, and leaves ties out."
    ),
    (
        f"The cases shown are those with the largest difference, at most {DIFFERING} each way, with the first "
        f"{FIRST} tools of each answer."
    ),
)
_LIMITS = (
    "If you look at several kinds, one in twenty differs at p = .05 by chance alone.",
    "Cases that no tool can meet have no score; the headline says how often each index answers them.",
)
