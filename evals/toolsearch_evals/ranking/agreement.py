"""How far a second annotator agrees with the labels of a data set: a sheet without labels, and the comparison.

The sheet has, for each drawn case, the query and the tools that two indexes find for it, pooled and in random order.
The annotator chooses all that would do what is asked, or none. What the pool lacks cannot be chosen, and is counted
apart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from toolsearch import SetupError, ToolIndex, find
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.data.files import JsonObject, read_lines
from toolsearch_evals.ranking.measures import wilson
from toolsearch_evals.reports.report import Column, Report, ReportTable, counted

__all__ = ["CANDIDATES", "Judged", "agreement_report", "agreement_rows", "read_labels", "sheet_of"]

CANDIDATES = 20  # tools of the pool
_DRAWS = 2_000  # of the bootstrap
Pair = tuple[bool, bool]  # of a case and a tool: chosen by the labels, and by the annotator


@dataclass(frozen=True)
class Judged:
    """A case with what the annotator chose among the candidates."""

    case: Case
    candidates: tuple[str, ...]
    chosen: frozenset[str]

    @property
    def labelled(self) -> frozenset[str]:
        """The tools of the labels that the annotator could choose."""
        return frozenset(chain.from_iterable(self.case.gold)).intersection(self.candidates)

    @property
    def pairs(self) -> list[Pair]:
        """Of each candidate, whether the labels and the annotator have it."""
        return [(each in self.labelled, each in self.chosen) for each in self.candidates]

    @property
    def is_same(self) -> bool:
        """Whether both have exactly the same candidates."""
        return self.chosen == self.labelled

    @property
    def meets(self) -> bool:
        """Whether the choice does what is asked by the labels: a tool of every need that could be met, or none."""
        needs = [found for group in self.case.gold if (found := set(group).intersection(self.candidates))]
        return all(self.chosen & need for need in needs) if needs else not self.chosen

    @property
    def is_pooled(self) -> bool:
        """Whether the candidates have a tool for every need."""
        return all(set(group).intersection(self.candidates) for group in self.case.gold)


def sheet_of(
    dataset: Dataset, indexes: Sequence[ToolIndex], count: int, seed: int, without: Iterable[str] = ()
) -> list[JsonObject]:
    """Lines of a sheet: id, query, and candidates with what they say; `chosen` is to be filled in.

    The indexes must hold the tools. Cases whose ids are in `without` are not drawn.
    """
    catalog, left_out = dataset.catalog(), frozenset(without)
    known = [case for case in dataset.cases if case.id not in left_out]
    if count > len(known):
        raise SetupError(f"{count} cases cannot be drawn: {dataset.key!r} has {len(known)} to draw from")
    lines = []
    for case in random.Random(seed).sample(known, count):
        found = (
            [hit.tool for hit in find(catalog, index, case.query, CANDIDATES, nothing_below=0)] for index in indexes
        )
        pool = {each.id: each for each in chain.from_iterable(zip_longest(*found)) if each is not None}
        chosen = [*pool.values()][:CANDIDATES]
        random.Random(f"{seed} {case.id}").shuffle(chosen)
        candidates = [{"id": each.id, "about": each.summary(200)} for each in chosen]
        lines.append({"id": case.id, "query": case.query, "candidates": candidates, "chosen": None})
    return lines


def read_labels(dataset: Dataset, file: Path) -> list[Judged]:
    """What an annotator chose on a sheet. Raises `SetupError` naming the case that is not filled in, or wrongly."""
    cases = {case.id: case for case in dataset.cases}
    judged = []
    for line in read_lines(file, needed=("id", "candidates", "chosen")):
        where = f"{str(file)!r}, case {line['id']!r}"
        if line["id"] not in cases:
            raise SetupError(f"{where}, is not a case of {dataset.key!r}")
        candidates = tuple(each["id"] if isinstance(each, dict) else each for each in line["candidates"])
        if not isinstance(line["chosen"], list):
            raise SetupError(f"{where}, is not filled in: 'chosen' must list tools, or be [] for none")
        if strange := [each for each in line["chosen"] if each not in candidates]:
            raise SetupError(f"{where}: {strange[0]!r} is not one of its candidates")
        judged.append(Judged(cases[line["id"]], candidates, frozenset(line["chosen"])))
    if not judged:
        raise SetupError(f"{str(file)!r} has no case")
    return judged


def agreement_rows(judged: Sequence[Judged], seed: int = 0) -> list[dict[str, Any]]:
    """A row for all cases and one for each kind: n, and each measure with its 95 % interval over the cases."""
    kinds: dict[str, list[Judged]] = {}
    for each in judged:
        kinds.setdefault(each.case.kind or "without a kind", []).append(each)
    rows = [_row("all", judged, seed)]
    return rows + [_row(kind, of, seed) for kind, of in sorted(kinds.items()) if len(kinds) > 1]


def _row(kind: str, judged: Sequence[Judged], seed: int) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": kind, "n": len(judged), "pooled": sum(each.is_pooled for each in judged)}
    low, high = _interval(judged, _kappa, seed)
    row |= {"kappa": _kappa(judged), "kappa low": low, "kappa high": high}
    for name, holds in _SHARES.items():
        times = sum(map(holds, judged))
        low, high = wilson(times, len(judged))
        row |= {name: times / len(judged), f"{name} low": low, f"{name} high": high}
    return row


def _kappa(judged: Sequence[Judged]) -> float | None:
    """Cohen's kappa over all pairs of a case and a candidate: 1 is full agreement, 0 what chance would give."""
    pairs = [pair for each in judged for pair in each.pairs]
    if not pairs:
        return None
    one, other = (sum(pair[at] for pair in pairs) / len(pairs) for at in (0, 1))
    by_chance = one * other + (1 - one) * (1 - other)
    if by_chance == 1:
        return None  # neither ever chose anything, so there is nothing to agree on
    return (sum(a == b for a, b in pairs) / len(pairs) - by_chance) / (1 - by_chance)


_SHARES: Mapping[str, Callable[[Judged], bool]] = {
    "same set": lambda each: each.is_same,
    "needs met": lambda each: each.meets,
    "answerable": lambda each: bool(each.chosen) == bool(each.labelled),
}


def _interval(
    judged: Sequence[Judged], measure: Callable[[Sequence[Judged]], float | None], seed: int
) -> tuple[float | None, float | None]:
    """Percentiles of a seeded bootstrap over the cases; unknown if all cases agree, for then nothing varies."""
    rng = random.Random(seed)
    if all(each.is_same for each in judged):
        return None, None
    drawn = (measure(rng.choices(judged, k=len(judged))) for _ in range(_DRAWS))
    known = sorted(value for value in drawn if value is not None)
    return known[int(0.025 * len(known))], known[int(0.975 * (len(known) - 1))]


# -- the report --------------------------------------------------------------------------------------------------------


def agreement_report(dataset: Dataset, judged: Sequence[Judged], name: str) -> Report:
    """The agreement as a report, with the cases that differ."""
    rows = agreement_rows(judged)
    shares = [
        column
        for measure in ("kappa", *_SHARES)
        for column in (
            Column(measure, measure, "score"),
            Column(f"{measure} low", "from", "score"),
            Column(f"{measure} high", "to", "score"),
        )
    ]
    columns = (Column("kind", "cases"), Column("n", "n", "count"), Column("pooled", "in the pool", "count"), *shares)
    differing = [_difference(each) for each in judged if not each.is_same]
    tables = [ReportTable("Agreement", columns, rows)]
    if differing:
        heads = (
            Column("case", "case"),
            Column("query", "query"),
            Column("labels", "the labels"),
            Column("annotator", "the annotator"),
        )
        tables.append(ReportTable("Cases that differ", heads, differing))
    return Report(
        kind="agreement",
        title=f"How far a second annotator agrees with the labels of {dataset.name}",
        headline=(_headline(rows[0]),),
        parameters={"data set": dataset.key, "labels": name, "candidates": CANDIDATES},
        tables=tuple(tables),
        measured=_MEASURED,
        limits=_LIMITS,
    )


def _difference(each: Judged) -> dict[str, str]:
    told = {"case": each.case.id, "query": each.case.query}
    return told | {"labels": ", ".join(sorted(each.labelled)), "annotator": ", ".join(sorted(each.chosen))}


def _headline(row: Mapping[str, Any]) -> str:
    kappa = "no kappa" if row["kappa"] is None else f"Cohen's kappa {row['kappa']:.2f}"
    interval = "" if row["kappa low"] is None else f" (95% interval {row['kappa low']:.2f} to {row['kappa high']:.2f})"
    return (
        f"{counted(row['n'], 'case')}: {kappa}{interval}; exactly the same tools in {row['same set']:.0%} (95% "
        f"interval {row['same set low']:.0%} to {row['same set high']:.0%})."
    )


_MEASURED = (
    (
        f"For each case, the annotator chose from at most {CANDIDATES} tools that two indexes found, in random order, "
        "without seeing the labels. What the pool lacks counts for neither side; in the pool are the cases of which "
        "it has a tool for every need."
    ),
    (
        "kappa: Cohen's kappa over all pairs of a case and a candidate. same set: exactly the same candidates. needs "
        "met: the choice has a tool for every need of the labels, and none where no tool does it. answerable: both "
        "have some tool, or neither has."
    ),
    "Intervals: of kappa, percentiles of a seeded bootstrap over the cases; of shares, Wilson's.",
)
_LIMITS = (
    "The pool was made by indexes that are measured on the same set, so a tool that both miss could not be chosen.",
    "Most candidates are plainly wrong, which makes kappa look high. The row of a kind with few cases says little.",
)
