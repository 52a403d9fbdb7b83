"""A sweep as a report: what was saved, from how many tools on, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from toolsearch_evals.data.cases import Dataset
from toolsearch_evals.reports.report import Column, Report, ReportTable, counted
from toolsearch_evals.savings.cards import dollar_table, savings_cards
from toolsearch_evals.savings.charts import savings_charts
from toolsearch_evals.savings.notes import limits, measured
from toolsearch_evals.savings.own_tokens import dearest_table
from toolsearch_evals.savings.rows import BreakEven, SavingsRow, arm_of
from toolsearch_evals.savings.sweep import SweepPlan, SweepResult
from toolsearch_evals.savings.worked import waterfalls, worst_cases

__all__ = ["savings_report"]

OPENAI_MOST = 128  # tools; the provider refuses a request with more
_ARM = (
    Column("wire", "wire"),
    Column("mode", "delivery"),
    Column("index", "index"),
)
_SETTINGS = Column("settings", "settings")  # only where several are played
_TOOLS = Column("tools", "tools", "count")


def savings_report(swept: SweepResult, plan: SweepPlan, dataset: Dataset, split: str) -> Report:
    """The report; its first table is the whole sweep."""
    return Report(
        kind="savings",
        title=f"What tool search saves: {dataset.name}, {counted(len(dataset.definitions), 'tool')}",
        headline=_headline(swept, plan),
        parameters={"data set": dataset.key, "split": split, **_parameters(swept, plan)},
        tables=(
            _conversation_table(swept, plan),
            _break_even_table(swept.break_evens),
            _wording_table(swept.rows),
            _where_table(swept.rows),
            dollar_table(swept.rows, _ways(swept.rows)),
            *([dearest_table(swept.stage.definitions(plan.wires[0]))] if swept.stage else []),
        ),
        measured=measured(plan, swept.tokenizers),
        limits=limits(swept, plan),
        charts=savings_charts(swept),
        cards=savings_cards(swept.rows, swept.break_evens),
        waterfalls=waterfalls(swept),
        cases=worst_cases(swept),
        data={
            "tokenizers": swept.tokenizers,
            "break_even": [asdict(each) for each in swept.break_evens],
            "refused_calls": swept.refused,
            "quarantined": swept.quarantined,
        },
    )


def _parameters(swept: SweepResult, plan: SweepPlan) -> dict[str, Any]:
    values = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(plan).items()}
    sizes = sorted({row["tools"] for row in swept.rows})
    return values | {"sizes": sizes, "settings": [f"{name}={value}" for name, value in plan.settings]}


def _headline(swept: SweepResult, plan: SweepPlan) -> tuple[str, ...]:
    """What a met request costs with each arm on the first wire; then, for its first arm, the tokens, where it breaks
    even, and what it misses.

    The sentence on tokens says how they were counted, and calls an estimate one.
    """
    first = swept.rows[0]
    mine = [row for row in swept.rows if arm_of(row) == arm_of(first) and row["wire"] == first["wire"]]
    largest = [row for row in swept.rows if (row["wire"], row["tools"]) == (first["wire"], mine[-1]["tools"])]
    whose = f" ({', '.join(filter(None, (*arm_of(first), first['wire'])))}.)"
    told = (_gain(mine[-1], plan, swept.tokenizers[first["wire"]]), _begin(swept, mine), _success(mine[-1]) + whose)
    return (*map(_price, largest), *told)


def _price(row: SavingsRow) -> str:
    """What a met request costs with one arm."""
    before, after = row["static cost a met request"], row["cost a met request"]
    start = f"{', '.join(filter(None, arm_of(row)))}, {counted(row['tools'], 'tool')}: "
    if before is None or after is None:
        return f"{start}no request was met, so a met request has no price."
    spread = f" ±{row['cost a met request ±']:,.0f}" if row["cost a met request ±"] is not None else ""
    return (
        f"{start}a request that is met costs as much as {after:,.0f}{spread} new input tokens when the tools are "
        f"searched for, and {before:,.0f} when all are sent: {_more_or_less(1 - after / before)}."
    )


def _gain(row: SavingsRow, plan: SweepPlan, counted_by: str) -> str:
    turns = f"{plan.turns[0]} turns" if plan.turns[0] > 1 else "one turn"
    about = "about " if "estimate" in counted_by else ""
    return (
        f"With {counted(row['tools'], 'tool')}, a conversation of {turns} takes {_fewer_or_more(row['saving'])} tokens "
        f"when the tools are searched for: {about}{row['tokens']:,.0f} instead of {about}{row['static tokens']:,.0f}, "
        f"by {counted_by.partition(':')[0]}. By price, where what is sent again is cached, it costs "
        f"{_more_or_less(row['cost saving'])}."
    )


def _begin(swept: SweepResult, mine: Sequence[SavingsRow]) -> str:
    few, even = mine[0], swept.break_evens[0]
    by_tokens, by_price, by_met = (_from(each, few["tools"]) for each in (even.tokens, even.cost, even.met))
    begin = f"Counted in tokens, search is cheaper {by_tokens}; by price, {by_price}; by the price of a met request, "
    begin += f"{by_met}."
    if len(mine) > 1 and few["saving"] < 0:
        begin += f" With {counted(few['tools'], 'tool')} it takes {_fewer_or_more(few['saving'])} tokens."
    return begin


def _success(row: SavingsRow) -> str:
    if row["success"] is None:
        return "No request of these conversations can be met by a tool."
    by_wording = [
        f"{success:.0%} in {whose} words"
        for success, whose in (
            (row["success, user wording"], "a user's"),
            (row["success, agent wording"], "an agent's"),
        )
        if success is not None
    ]
    wordings = f"; {', '.join(by_wording)}" if by_wording else ""
    return (
        f"With {counted(row['tools'], 'tool')} and search, the right ones were found and called in "
        f"{row['success']:.0%} of the {counted(row['requests to meet'], 'request')} that can be met (95% interval "
        f"{row['success low']:.0%} to {row['success high']:.0%}{wordings}); sending every tool is assumed to succeed "
        f"always. With search, a conversation takes {row['requests']:.1f} requests instead of "
        f"{row['static requests']:.1f}."
    )


def _more_or_less(saving: float) -> str:
    return f"{abs(saving):.0%} {'less' if saving >= 0 else 'more'}"


def _fewer_or_more(saving: float) -> str:
    return _more_or_less(saving).replace("less", "fewer")


def _from(tools: float | None, least: float) -> str:
    if tools is None:
        return "at no size of this sweep"
    return f"from {least:,.0f} tools or fewer on" if tools <= least else f"from about {tools:.0f} tools on"


def _conversation_table(swept: SweepResult, plan: SweepPlan) -> ReportTable:
    heads = (
        *_ways(swept.rows),
        _TOOLS,
        Column("static tokens", "tokens, all sent", "count"),
        Column("tokens", "tokens, searched", "count"),
        Column("saving", "saved", "share"),
        Column("static cost a met request", "price met, all sent", "count"),
        Column("cost a met request", "price met, searched", "count", "cost a met request ±"),
        Column("success", "right tools", "share"),
        Column("requests", "requests", "number"),
    )
    played, turns = counted(swept.rows[0]["conversations"], "conversation"), counted(plan.turns[0], "turn")
    note = f"Means over {played} of {turns}." if swept.rows[0]["conversations"] > 1 else f"One conversation of {turns}."
    note += (
        " Price met: all that was paid, over the requests that were met, in new input tokens. Right tools: the "
        "requests that can be met whose right tools were called."
    )
    most = max(row["tools"] for row in swept.rows)
    if "openai_chat" in plan.wires and most > OPENAI_MOST:
        note += (
            f" OpenAI refuses more than {OPENAI_MOST} tools in a request: beyond that, sending all is only calculated."
        )
    return ReportTable("A conversation, by number of tools", heads, swept.rows, note)


def _ways(rows: Sequence[SavingsRow]) -> tuple[Column, ...]:
    """The columns that say which arm a row is of."""
    return (*_ARM, *([_SETTINGS] if any(row["settings"] for row in rows) else []))


def _break_even_table(break_evens: Sequence[BreakEven]) -> ReportTable:
    heads = (
        *_ARM,
        *([_SETTINGS] if any(each.settings for each in break_evens) else []),
        Column("tokens", "by tokens", "count"),
        Column("cost", "by price", "count"),
        Column("met", "by price met", "count"),
    )
    note = "The number of tools from which search is cheaper; a dash if it never is."
    return ReportTable("Break-even", heads, [asdict(each) for each in break_evens], note)


def _wording_table(rows: Sequence[SavingsRow]) -> ReportTable:
    heads = [*_ways(rows), _TOOLS]
    for wording in ("agent", "user"):
        heads += [
            Column(f"{wording} requests", f"{wording}'s requests", "count"),
            Column(f"success, {wording} wording", "met", "share"),
            Column(f"success, {wording} wording low", "from", "share"),
            Column(f"success, {wording} wording high", "to", "share"),
        ]
    note = "The share of the requests in an agent's and in a user's words that were met, with its 95 % interval."
    return ReportTable("Right tools called, by wording", tuple(heads), rows, note)


def _where_table(rows: Sequence[SavingsRow]) -> ReportTable:
    heads = (
        *_ways(rows),
        _TOOLS,
        Column("static requests", "all sent: requests", "number"),
        Column("static uncached", "all sent: new", "count"),
        Column("static cached", "all sent: cached", "count"),
        Column("static output", "all sent: written", "count"),
        Column("searches a turn", "searches a turn", "number"),
        Column("uncached", "searched: new", "count"),
        Column("cached", "searched: cached", "count"),
        Column("output", "searched: written", "count"),
        Column("cost saving", "saved by price", "share"),
        Column("saving, worst seed", "saved, worst seed", "share"),
        Column("saving, best seed", "saved, best seed", "share"),
    )
    return ReportTable("Where the tokens go", heads, rows)
