"""An examination as a report: what is wrong, the most harmful first, and what the tools cost in a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from toolsearch_evals.doctor.alarms import Alarms
from toolsearch_evals.doctor.examination import Examination, Tokens
from toolsearch_evals.doctor.findings import CHECKS, Finding
from toolsearch_evals.doctor.rates import Rate, rates
from toolsearch_evals.reports.report import Card, Column, Report, ReportTable, counted
from toolsearch_evals.savings.own_tokens import dearest_table

__all__ = ["doctor_report"]

Row = dict[str, Any]
FEW = 3  # findings of a check that the terminal shows


def doctor_report(of: Examination, name: str, parameters: Mapping[str, Any]) -> Report:
    """The report on the tools of `name`; its first table has a row for each check that struck."""
    by_check: dict[str, list[Finding]] = {}
    for each in of.findings:
        by_check.setdefault(each.check, []).append(each)
    few = [each for found in by_check.values() for each in found[:FEW]]
    tables = [ReportTable("What was found", _CHECK_COLUMNS, [_check_row(*each) for each in by_check.items()], _NOTE)]
    if of.needs:
        tables.append(ReportTable("What must be there", _NEED_COLUMNS, [_need_row(each) for each in of.needs]))
    if of.servers:
        tables.append(ReportTable("Servers", _SERVER_COLUMNS, of.servers))
    todo = [{"check": check, "what": CHECKS[check].title, "remedy": CHECKS[check].remedy} for check in by_check]
    tables.append(ReportTable("What to do", _REMEDY_COLUMNS, todo))
    tables.append(ReportTable("Where", _FINDING_COLUMNS, [asdict(each) for each in few], _few_note(of, few)))
    if len(few) < len(of.findings):
        rows = [asdict(each) for each in of.findings]
        tables.append(ReportTable("All findings", _FINDING_COLUMNS, rows, of_cases=True))
    if of.tokens is not None:
        tables += [_token_table(of.tokens), dearest_table(of.tokens.all)]
    return Report(
        kind="doctor",
        title=f"The doctor on the tools of {name}",
        headline=_headline(of, by_check),
        parameters=parameters,
        tables=tuple(tables),
        measured=_MEASURED,
        limits=_LIMITS,
        cards=_cards(of),
        data={"needs": [asdict(each) for each in of.needs]},
    )


def _headline(of: Examination, by_check: Mapping[str, Sequence[Finding]]) -> tuple[str, ...]:
    told = []
    servers = len({tool.server for tool in of.catalog if tool.server})
    whose = f" of {counted(servers, 'server')}" if servers else ""
    if of.tokens is not None:
        told.append(
            f"{counted(len(of.catalog), 'tool')}{whose} take {of.tokens.all.total:,} tokens in every request when all "
            f"are sent ({of.tokens.wire}, counted by {of.tokens.counted_by}). With search, the first request carries "
            f"{of.tokens.first:,}{_by_a_search(of.tokens)}."
        )
    else:
        told.append("There is no usable tool.")
    worst = [f"{CHECKS[check].title} ({len(found)})" for check, found in by_check.items() if rates()[check].is_harmful]
    told.append(
        f"What harms, by what was measured: {'; '.join(worst)}."
        if worst
        else "Nothing was found that is known to harm."
    )
    told += [f"{need.asked} is needed, but {need.problem}." for need in of.needs if not need.is_met]
    return tuple(told)


def _by_a_search(tokens: Tokens) -> str:
    if tokens.answer is None:
        return ""
    return f", and a search adds {tokens.answer.answer:,.0f} and definitions of {tokens.answer.added:,.0f}"


def _cards(of: Examination) -> tuple[Card, ...]:
    harmful = of.harmful
    cards = [Card("What harms", f"{len(harmful):,}", "Findings of checks whose harm was measured.")]
    cards.append(Card("Worth a look", f"{len(of.findings) - len(harmful):,}", "Findings without a measured harm."))
    if of.tokens is not None:
        tools = counted(len(of.catalog), "tool")
        cards += [
            Card("All tools sent", f"{of.tokens.all.total:,}", f"Tokens in every request, {tools}."),
            Card("With search", f"{of.tokens.first:,}", "Tokens of tools and instructions at first."),
        ]
    return tuple(cards)


# -- tables ----------------------------------------------------------------------------------------------------------


def _check_row(check: str, found: Sequence[Finding]) -> Row:
    rate = rates()[check]
    return {
        "check": check,
        "times": len(found),
        "harm": rate.harm.lost if rate.harm else None,
        "harm low": rate.harm.low if rate.harm else None,
        "harm high": rate.harm.high if rate.harm else None,
        "of": CHECKS[check].harm,
        "through": rate.harm and (rate.harm.lost if rate.through is None else rate.through),
        "is_harmful": rate.is_harmful,
        "finds": f"{rate.found} of {rate.planted}" if rate.planted else "",
        "alarms": _alarms(rate),
    }


def _alarms(rate: Rate) -> str:
    """False alarms among tools that nobody spoiled: the shipped ones, and published ones."""
    return "; ".join(_false(each) for each in (rate.shipped, rate.published) if each is not None)


def _false(alarms: Alarms) -> str:
    is_known = alarms.named > alarms.unjudged or not alarms.named
    return f"{alarms.false if is_known else '?'} of {alarms.tools:,}"


def _need_row(need: Any) -> Row:
    return {"asked": need.asked, "tool": need.tool, "state": need.problem or "found, and can be called"}


def _token_table(tokens: Tokens) -> ReportTable:
    columns = (
        Column("server", "server"),
        Column("tools", "tools", "count"),
        Column("tokens", "tokens", "count"),
        Column("share", "share", "share"),
    )
    note = (
        f"Tokens of the definitions in every request when all are sent; with search, {tokens.first:,} for all servers."
    )
    return ReportTable("Tokens by server", columns, tokens.all.by_server(), note)


def _few_note(of: Examination, few: Sequence[Finding]) -> str:
    more = len(of.findings) - len(few)
    return f"At most {FEW} of a check are shown; {more:,} more are in the forms html and json." if more else ""


_CHECK_COLUMNS = (
    Column("check", "check"),
    Column("times", "times", "count"),
    Column("harm", "harm", "share", ends=("harm low", "harm high")),
    Column("through", "by toolsearch", "share"),
    Column("of", "of", is_result=True),
    Column("finds", "finds", is_result=True),
    Column("alarms", "false alarms", is_result=True),
)
_NOTE = (
    "Harm: the share of these that fails where the check strikes, as measured on planted defects, or a dash. By "
    "toolsearch: the same where it sends the tools. Finds: so many of the planted defects. False alarms: among the "
    "tools that ship, and among published ones, as far as labels tell. First is what harms most, by the share of tools "
    "that the check named with need."
)
_REMEDY_COLUMNS = (Column("check", "check"), Column("what", "what it is"), Column("remedy", "what to do"))
_FINDING_COLUMNS = (Column("check", "check"), Column("where", "where", is_result=True), Column("text", "what"))
_NEED_COLUMNS = (Column("asked", "needed"), Column("tool", "tool"), Column("state", "state", is_result=True))
_SERVER_COLUMNS = (
    Column("server", "server"),
    Column("state", "state", is_result=True),
    Column("tools", "tools", "count"),
    Column("seconds", "seconds", "number"),
    Column("given", "secrets it is given", is_result=True),
    Column("noise", "noise", "count"),
    Column("left", "left behind", "count"),
)
_MEASURED = (
    (
        "The rates of the checks were measured by `toolsearch eval doctor-checks`: each defect is planted into clean "
        "tools, and what searches, requests and calls lose is counted."
    ),
    "What a provider refuses is judged by the rules of the strict loopback provider; nothing is sent anywhere.",
    "Searches: each tool is searched for by its own summary, in all of these tools together.",
)
_LIMITS = (
    "Nothing was asked of a model, so whether one obeys a hostile text or calls the wrong of two tools is not known.",
    (
        "No labelled case was used: a tool that its own summary finds may still be missed by a user's words. "
        "`toolsearch eval init` drafts cases to measure that with."
    ),
    "No rule of style is checked: none is known to change what is found or called.",
)
