"""The report of an evaluation of a model: success, tools, tokens, cost and time by arm, and where tasks failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from toolsearch.support.json_types import JsonObject
from toolsearch_evals.agent.cards import cards_of, unmet_tasks
from toolsearch_evals.agent.rows import against_static, rows_of, token_check
from toolsearch_evals.reports.report import Column, Report, ReportTable, counted

__all__ = ["agent_report"]

_ARM = (Column("tools", "tools", "count"), Column("arm", "tools sent"))


def agent_report(scores: Sequence[JsonObject], facts: Mapping[str, object], missing: Sequence[str] = ()) -> Report:
    """The report on these scores, at least one.

    `facts` say what was played, for the report's parameters; `missing` says in sentences what was not.
    """
    rows, pairs, checked = rows_of(scores), against_static(scores), token_check(scores)
    tables = [_success_table(rows), _cost_table(rows), _token_table(checked)]
    tables += [_pair_table(pairs)] if pairs else []
    tables += [_failed_table(scores)] if any(not each["success"] for each in scores) else []
    return Report(
        kind="agent",
        title=f"Tasks with {facts['model']}",
        headline=(*missing, *_headline(rows, pairs, checked)),
        parameters=dict(facts),
        tables=tuple(tables),
        measured=_measured(facts),
        limits=_LIMITS,
        data={"format of scores": 1, "missing": list(missing)},
        cards=cards_of(rows, pairs, checked),
        cases=unmet_tasks(scores),
    )


def _headline(
    rows: Sequence[JsonObject], pairs: Sequence[JsonObject], checked: Sequence[JsonObject]
) -> tuple[str, ...]:
    lines = [
        f"{row['arm']}, {counted(row['tools'], 'tool')}: {row['success']:.0%} of {counted(row['n'], 'task')} met "
        f"(95% interval {row['success low']:.0%} to {row['success high']:.0%}){_errors(row['errors'])}."
        for row in rows
    ]
    lines += [
        f"With {counted(row['tools'], 'tool')}, {row['arm']} was billed {_more_or_less(row['input saved'])} input "
        f"tokens than sending all, and its share of tasks met differs by {100 * row['more met']:+.0f} points "
        f"(interval {100 * row['more met low']:+.0f} to {100 * row['more met high']:+.0f}; {row['n']} pairs)."
        for row in pairs
        if row["input saved"] is not None
    ]
    told = [row["difference"] for row in checked if row["difference"] is not None]
    if told:
        lines.append(f"The provider billed {min(told):+.1%} to {max(told):+.1%} against the tokens counted here.")
    else:
        lines.append("The endpoint did not say what it billed: tokens are those counted here.")
    return tuple(lines)


def _more_or_less(saved: float) -> str:
    return f"{abs(saved):.0%} {'fewer' if saved >= 0 else 'more'}"


def _errors(number: int) -> str:
    return f"; {counted(number, 'error')} of the endpoint count as not met" if number else ""


def _success_table(rows: Sequence[JsonObject]) -> ReportTable:
    heads = (
        *_ARM,
        Column("n", "tasks", "count"),
        Column("success", "met", "share"),
        Column("success low", "from", "share"),
        Column("success high", "to", "share"),
        Column("right tools", "right tools", "share"),
        Column("errors", "errors", "count"),
        Column("wrong calls", "wrong calls", "number"),
        Column("searches", "searches", "number"),
        Column("rounds", "replies", "number"),
        Column("failed requests", "failed requests", "count"),
    )
    note = (
        "Met: the world is as the user asked, nothing else in it has changed, and the answer says what was asked. "
        "Right tools: each tool that the task needs was called and ran. Errors: tasks that the endpoint failed; they "
        "count as not met. Wrong calls, searches and replies are means of a task."
    )
    return ReportTable("Tasks", heads, rows, note)


def _cost_table(rows: Sequence[JsonObject]) -> ReportTable:
    heads = (
        *_ARM,
        Column("input", "input tokens billed", "count", "input ±"),
        Column("cached share", "of them cached", "share"),
        Column("written", "tokens written", "count"),
        Column("counted", "input tokens counted", "count"),
        Column("dollars a 1,000", "1,000 cost", "dollars"),
        Column("dollars a 1,000 met", "1,000 met cost", "dollars"),
        Column("seconds", "seconds", "number", "seconds ±"),
        Column("first seconds", "to the first token", "number"),
    )
    note = (
        "Means of a task; what 1,000 tasks cost, and as many as it takes to meet 1,000. A dash: the endpoint does "
        "not say it, or no price is known."
    )
    return ReportTable("What a task costs", heads, rows, note)


def _token_table(rows: Sequence[JsonObject]) -> ReportTable:
    heads = (
        *_ARM,
        Column("requests", "requests", "count"),
        Column("billed requests", "with a bill", "count"),
        Column("billed", "prompt tokens billed", "count"),
        Column("counted", "prompt tokens counted", "count"),
        Column("difference", "difference", "share"),
    )
    note = "Counted: the JSON of tools, system text and messages as sent. A provider renders it in a form of its own."
    return ReportTable("Billed and counted", heads, rows, note)


def _pair_table(rows: Sequence[JsonObject]) -> ReportTable:
    heads = (
        *_ARM,
        Column("n", "tasks", "count"),
        Column("more met", "more met", "share"),
        Column("more met low", "from", "share"),
        Column("more met high", "to", "share"),
        Column("met by search alone", "met by it alone", "count"),
        Column("met by all sent alone", "met by static alone", "count"),
        Column("input saved", "input saved", "share"),
        Column("input saved low", "from", "share"),
        Column("input saved high", "to", "share"),
        Column("dollars saved", "dollars saved", "share"),
    )
    return ReportTable("Against sending all tools", heads, rows, "Pairs: the same task, once with each.")


def _failed_table(scores: Sequence[JsonObject]) -> ReportTable:
    rows = [
        {
            "case": each["case"],
            "tools": each["tools"],
            "arm": each["arm"],
            "problem": "; ".join(each["problems"][:3]),
            "called": _calls_text(each["calls"]),
        }
        for each in scores
        if not each["success"]
    ]
    heads = (Column("case", "task"), *_ARM, Column("problem", "what is wrong"), Column("called", "what was called"))
    return ReportTable("Tasks not met", heads, rows)


def _calls_text(calls: Sequence[JsonObject]) -> str:
    """The calls in order; the same one several times in a row once, with how often."""
    runs = [(text, len(list(same))) for text, same in groupby(map(_call_text, calls))]
    return ", ".join(text if times == 1 else f"{text} × {times}" for text, times in runs) or "nothing"


def _call_text(call: JsonObject) -> str:
    return call["tool"] or "?" if call["status"] == "ok" else f"{call['tool'] or '?'} ({call['status']})"


def _measured(facts: Mapping[str, object]) -> tuple[str, ...]:
    world = (
        "Each task is a conversation of its own with an agent of this library, in a new world of 44 tools of six "
        "servers that really change it; further tools come from commons, without the servers that could do the same."
    )
    again = (
        "A request that fails for a moment is made again, up to five times, after as long as the provider says; the "
        "task's seconds include the waiting. Failed requests are not billed here."
    )
    billed = (
        "Billed tokens, cached ones among them, are those that the provider says. Dollars are by the price table of "
        "`toolsearch.layers.PRICES`, or by `--price`."
    )
    probe = f"The endpoint was asked first whether it reads tools. {facts['probe']}"
    return world, probe, billed, again, "Shares have Wilson's 95 % interval, means one by bootstrap over tasks."


_LIMITS = (
    "40 tasks of one invented office are few, and short: one to four calls each. They show large differences only.",
    "With repeats, the runs of one task are not independent, so intervals are too narrow.",
    "A model is not the same every time, and a provider may change it under the same name.",
    "Tasks run one after the other, so a provider's cache is warm for all but the first: this is kind to sending all.",
)
