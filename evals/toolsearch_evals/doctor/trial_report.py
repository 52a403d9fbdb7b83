"""What the doctor's checks are worth, as a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch_evals.doctor.alarms import Alarms
from toolsearch_evals.doctor.findings import CHECKS
from toolsearch_evals.doctor.rates import Rate
from toolsearch_evals.doctor.trials import GROUPS, Harm, Trial
from toolsearch_evals.reports.report import Column, Report, ReportTable

__all__ = ["Tried", "trial_report"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Tried:
    """Everything that was measured: trials, alarms by data set, and by data set what labels say of the tools named."""

    trials: Sequence[Trial]
    alarms: Mapping[str, Mapping[str, Alarms]]
    labels: Mapping[str, Mapping[str, tuple[Harm, Harm]]]
    rates: Mapping[str, Rate]


def trial_report(tried: Tried, parameters: Mapping[str, Any]) -> Report:
    """The report: a row for each check, each defect, each data set."""
    rows = [_check_row(check, rate) for check, rate in tried.rates.items() if rate.planted or rate.shipped]
    rows.sort(key=lambda row: -(row["rank"] or 0))
    harmful = [row["check"] for row in rows if row["rank"]]
    return Report(
        kind="doctor checks",
        title="What the doctor's checks are worth",
        headline=(
            (
                f"{len(harmful)} of {len(rows)} checks stand for harm that was measured, the most harmful first: "
                f"{', '.join(harmful)}."
            ),
        ),
        parameters=parameters,
        tables=(
            ReportTable("Checks", _CHECK_COLUMNS, rows, _CHECK_NOTE),
            ReportTable("Defects", _DEFECT_COLUMNS, [_defect_row(each) for each in tried.trials], _DEFECT_NOTE),
            ReportTable("Tools that nobody spoiled", _ALARM_COLUMNS, _alarm_rows(tried.alarms), _ALARM_NOTE),
            ReportTable("What labels say", _LABEL_COLUMNS, _label_rows(tried.labels), _LABEL_NOTE),
        ),
        measured=(
            (
                "Each defect is planted into tools that labelled cases need and of which the doctor says nothing, "
                f"spread over {GROUPS} copies of the catalog. Lost is what the same cases find less than before."
            ),
            "Requests are judged by the rules of the strict loopback providers, calls by the tool's own schema.",
            "Intervals are of 95 %: a seeded bootstrap over the cases, or Wilson's where all cases agree.",
        ),
        limits=(
            "Whether a model obeys a hostile text, or errs on a contradiction, is not measured: that needs a model.",
            "The defects were thought of by the authors of the checks, so real ones may be found less often.",
        ),
    )


def _check_row(check: str, rate: Rate) -> Row:
    row: Row = {
        "check": check,
        "what": CHECKS[check].harm,
        "found": _of(rate.found, rate.planted),
        "rank": rate.rank or None,
    }
    row |= _harm("lost", rate.harm)
    for name, alarms in (("shipped", rate.shipped), ("published", rate.published)):
        is_known = alarms is not None and (alarms.named > alarms.unjudged or not alarms.named)
        row |= {name: alarms and alarms.named, f"{name} false": alarms.false if alarms and is_known else None}
    return row


def _defect_row(trial: Trial) -> Row:
    effects = {"search": "searches", "request": "requests", "call": "calls", "text": "texts", "configuration": "starts"}
    return {
        "check": trial.defect.check,
        "defect": trial.defect.name,
        "found": _of(trial.found, trial.planted),
        "measured": f"{trial.harm.cases} {effects[trial.defect.effect]}" if trial.harm.cases else "",
        **_harm("lost", trial.harm if trial.harm.cases else None),
        **_harm("first", trial.first),
        "through": trial.through and trial.through.lost,
    }


def _harm(key: str, harm: Harm | None) -> Row:
    if harm is None:
        return {key: None}
    return {key: harm.lost, f"{key} low": harm.low, f"{key} high": harm.high}


def _of(times: int, of: int) -> str:
    return f"{times} of {of}" if of else ""


def _alarm_rows(alarms: Mapping[str, Mapping[str, Alarms]]) -> list[Row]:
    return [
        {
            "dataset": name,
            "tools": of.tools,
            "check": check,
            "named": of.named,
            "false": of.false if of.named > of.unjudged else None,
            "unjudged": of.unjudged,
        }
        for name, by_check in alarms.items()
        for check, of in by_check.items()
        if of.named
    ]


def _label_rows(labels: Mapping[str, Mapping[str, tuple[Harm, Harm]]]) -> list[Row]:
    return [
        {"dataset": name, "check": check, "cases": own.cases, **_harm("own", own), **_harm("others", others)}
        for name, by_check in labels.items()
        for check, (own, others) in by_check.items()
        if own.cases
    ]


_CHECK_COLUMNS = (
    Column("check", "check"),
    Column("lost", "harm", "share", ends=("lost low", "lost high")),
    Column("rank", "to expect", "share"),
    Column("found", "found", is_result=True),
    Column("shipped", "named of shipped", "count"),
    Column("shipped false", "false", "count"),
    Column("published", "of published", "count"),
    Column("published false", "false", "count"),
)
_CHECK_NOTE = (
    "Harm: what the defects below cost. To expect: the same, by the share of the tools that it named with need. False: "
    "named without need."
)
_DEFECT_COLUMNS = (
    Column("check", "check"),
    Column("defect", "defect"),
    Column("found", "found", is_result=True),
    Column("measured", "measured on", is_result=True),
    Column("lost", "harm", "share", ends=("lost low", "lost high")),
    Column("first", "in first place", "share", ends=("first low", "first high")),
    Column("through", "by toolsearch", "share"),
)
_DEFECT_NOTE = (
    "Harm: of searches, what is lost among the first five; of requests and calls, the share that is refused; of texts, "
    "the share that reaches the model. By toolsearch: the same where it sends the tools."
)
_ALARM_COLUMNS = (
    Column("dataset", "data set"),
    Column("tools", "tools", "count"),
    Column("check", "check"),
    Column("named", "named", "count"),
    Column("false", "false", "count"),
    Column("unjudged", "unknown", "count"),
)
_ALARM_NOTE = (
    "False: named without need. What searches miss is judged by the labels of the set (unknown without), a "
    "contradiction by a call; of hostile texts, all count as false but those of the one server that was written so."
)
_LABEL_COLUMNS = (
    Column("dataset", "data set"),
    Column("check", "check"),
    Column("cases", "cases of tools named", "count"),
    Column("own", "lost", "share", ends=("own low", "own high")),
    Column("others", "lost of all other tools", "share", ends=("others low", "others high")),
)
_LABEL_NOTE = "Of shadowed tools in the first place, of the others among the first five."
