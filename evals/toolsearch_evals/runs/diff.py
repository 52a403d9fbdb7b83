"""Two runs of a kind, compared unit by unit: the differences, the cases that changed, and what else was different."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from toolsearch import SetupError
from toolsearch_evals.reports.report import Column, Report, ReportTable, Unit, counted, shown
from toolsearch_evals.runs.kinds import Outcome, RunKind
from toolsearch_evals.runs.paired import EXACT, SWAPS, Sample, paired_difference
from toolsearch_evals.runs.reading import StoredRun

__all__ = ["diff_runs", "difference_places"]

CHANGED = 10  # cases shown each way
Units = dict[str, tuple[float, float]]


def diff_runs(first: StoredRun, second: StoredRun, kind: RunKind) -> Report:
    """The report on how the second run differs from the first. A group that only one of them has is left out.

    Where neither has a group of the other's, but both have one only, these are compared: two indexes, for example.
    Raises `SetupError` for runs of different kinds or on different cases, and for runs that share no group.
    """
    _require_comparable(first, second)
    one, other = (_by_group(kind.samples(each)) for each in (first, second))
    pairs = _paired_groups(list(one), list(other), first, second)
    rows = [
        row
        for before, after in pairs.items()
        for measure, unit in kind.measures().items()
        if (row := _row(_told(before, after), measure, unit, one[before], other[after]))
    ]
    if not rows:
        raise SetupError(f"{str(first.folder)!r} and {str(second.folder)!r} have no unit in common: nothing to compare")
    cases = _changed_cases(kind.outcomes(first), kind.outcomes(second), pairs)
    names = (first.name, second.name) if first.name != second.name else ("first", "second")
    tables = [ReportTable("Differences", _columns(names), rows)]
    other_things = first.manifest.differences(second.manifest)
    facts = [{"what": name, "first": _short(a), "second": _short(b)} for name, (a, b) in other_things.items()]
    if facts:
        tables.append(ReportTable("What else differs", _fact_columns(names), facts))
    for title, sign in (("Cases that got worse", -1), ("Cases that got better", 1)):
        if some := [case for case in cases if sign * case["change"] > 0]:
            note = f"{counted(len(some), 'case')}; at most {CHANGED} are shown, the largest changes first."
            tables.append(ReportTable(title, _case_columns(names), some[:CHANGED], note))
    return Report(
        kind="diff",
        title=f"{names[1]} against {names[0]}",
        headline=tuple(_sentence(row) for row in rows if row["measure"] == kind.headline) + _unfinished(first, second),
        parameters={"first": first.name, "second": second.name, "kind of run": kind.name},
        tables=tuple(tables),
        measured=_MEASURED,
        limits=_LIMITS,
        data={"changed_cases": cases},
    )


def difference_places(report: Report) -> dict[str, dict[str, float | None]]:
    """By group, the difference of each measure, which bars are held against."""
    places: dict[str, dict[str, float | None]] = {}
    for row in report.tables[0].rows:
        places.setdefault(f"{row['group']}, difference", {})[row["measure"]] = row["difference"]
    return places


def _short(value: object) -> str:
    """A value of a manifest; of a hash the beginning is enough."""
    text = "not there" if value is None else str(value)
    return text[:12] if re.fullmatch("[0-9a-f]{64}", text) else text


def _require_comparable(first: StoredRun, second: StoredRun) -> None:
    one, other = str(first.folder), str(second.folder)
    if first.manifest.kind != second.manifest.kind:
        kinds = f"{first.manifest.kind!r}, and {other!r} one of {second.manifest.kind!r}"
        raise SetupError(f"{one!r} is a run of {kinds}: they cannot be compared")
    if first.manifest.data != second.manifest.data:
        changed = sorted(
            key
            for key in {*first.manifest.data, *second.manifest.data}
            if first.manifest.data.get(key) != second.manifest.data.get(key)
        )
        raise SetupError(
            f"{one!r} and {other!r} are runs on different cases of {', '.join(map(repr, changed))}: they cannot be "
            "compared. Play the older one again on the cases that there are now"
        )


def _by_group(samples: Iterable[Sample]) -> dict[str, dict[str, Units]]:
    """Units by group and measure."""
    found: dict[str, dict[str, Units]] = {}
    for group, measure, unit, above, below in samples:
        found.setdefault(group, {}).setdefault(measure, {})[unit] = (above, below)
    return found


def _paired_groups(one: list[str], other: list[str], first: StoredRun, second: StoredRun) -> dict[str, str]:
    both = {group: group for group in one if group in other}
    if not both and len(one) == len(other) == 1:
        both = {one[0]: other[0]}
    if not both:
        raise SetupError(
            f"{str(first.folder)!r} has {', '.join(map(repr, one)) or 'nothing'}, and {str(second.folder)!r} has "
            f"{', '.join(map(repr, other)) or 'nothing'}: there is nothing that both have"
        )
    return both


def _told(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _row(
    group: str, measure: str, unit: Unit, before: Mapping[str, Units], after: Mapping[str, Units]
) -> dict[str, Any] | None:
    one, other = before.get(measure, {}), after.get(measure, {})
    units = [each for each in one if each in other]
    if not units:
        return None
    found = paired_difference([one[each] for each in units], [other[each] for each in units])
    spread = None if found.low is None or found.high is None else (found.high - found.low) / 2
    values = {"first": found.first, "second": found.second, "difference": found.difference}
    texts = {f"{name} shown": shown(value, unit) for name, value in values.items()}
    if spread is not None:
        texts["difference shown"] += f" ±{shown(spread, unit)}"
    texts = {name: text.replace("-", "−") for name, text in texts.items()}
    same = found.n - found.rises - found.falls
    return {"group": group, "measure": measure, **asdict(found), "±": spread, "same": same, **texts}


def _changed_cases(
    first: Iterable[Outcome], second: Iterable[Outcome], pairs: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The cases of which something else became, the largest change first."""
    after = {(each.group, each.case): each for each in second}
    changed = [
        {
            "group": _told(each.group, pairs[each.group]),
            "case": each.case,
            "first": each.shown,
            "second": then.shown,
            "change": then.value - each.value,
        }
        for each in first
        if each.group in pairs
        and (then := after.get((pairs[each.group], each.case))) is not None
        and then.value != each.value
    ]
    return sorted(changed, key=lambda case: (-abs(case["change"]), case["group"], case["case"]))


def _sentence(row: Mapping[str, Any]) -> str:
    if not row["rises"] + row["falls"]:
        return f"{row['measure']}, {row['group']}: {row['first shown']} in both; no unit differs."
    doubt = ""
    if row["low"] is not None:
        doubt = f" (the interval {'leaves out' if row['low'] > 0 or row['high'] < 0 else 'holds'} 0)"
    return (
        f"{row['measure']}, {row['group']}: {row['first shown']}, then {row['second shown']}; difference "
        f"{row['difference shown']}{doubt}, {row['rises']} rise, {row['falls']} fall, {row['same']} stay, "
        f"permutation p {row['p']:.2g}."
    )


def _unfinished(*runs: StoredRun) -> tuple[str, ...]:
    return tuple(
        f"{run.name} is not finished ({counted(len(run.units), 'unit')} so far): what both have is compared."
        for run in runs
        if not run.is_closed
    )


def _columns(names: tuple[str, str]) -> tuple[Column, ...]:
    return (
        Column("group", "of"),
        Column("measure", "measure"),
        Column("n", "n", "count"),
        Column("first shown", names[0], is_result=True),
        Column("second shown", names[1], is_result=True),
        Column("difference shown", "difference", is_result=True),
        Column("rises", "rise", "count"),
        Column("falls", "fall", "count"),
        Column("p", "permutation p", "score"),
    )


def _case_columns(names: tuple[str, str]) -> tuple[Column, ...]:
    return (
        Column("group", "of"),
        Column("case", "case"),
        Column("first", names[0], is_result=True),
        Column("second", names[1], is_result=True),
        Column("change", "change", "score"),
    )


def _fact_columns(names: tuple[str, str]) -> tuple[Column, ...]:
    return (
        Column("what", "what"),
        Column("first", names[0], is_result=True),
        Column("second", names[1], is_result=True),
    )


_MEASURED = (
    (
        "The units that both runs have (cases, conversations or tasks) are compared one by one; a difference is the "
        "value of the second run minus that of the first. A measure of several units is a sum over a sum."
    ),
    "± is half of the 95 % interval of the difference: a seeded bootstrap over the units, both runs on the same ones.",
    (
        "The permutation test is two-sided: how often a difference at least this large comes about if each unit's two "
        f"values are swapped at random. With at most {EXACT} units that differ, all swaps are tried; else {SWAPS:,} "
        "seeded ones are drawn."
    ),
)
_LIMITS = (
    "If you look at several measures, one in twenty differs at p = .05 by chance alone.",
    "Two versions of a catalog are compared as they are: what differs beside the tools stands in the last table.",
)
