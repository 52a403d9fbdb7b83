"""The sweep of `toolsearch_evals.savings` as a report: what was saved, from how many tools on, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal

from toolsearch_evals.cases import Dataset
from toolsearch_evals.chart import Chart, ChartLine
from toolsearch_evals.report import Column, Report, ReportTable, counted
from toolsearch_evals.savings import SweepPlan, SweepResult
from toolsearch_evals.savings_rows import BreakEven, SavingsRow

__all__ = ["savings_report"]

Marks = tuple[tuple[float, str], ...]

OPENAI_MOST = 128  # tools; the provider refuses a request with more
COLUMNS = (
    Column("wire", "wire"),
    Column("mode", "delivery"),
    Column("index", "index"),
    Column("tools", "tools", "count"),
    Column("static tokens", "tokens, all sent", "count"),
    Column("tokens", "tokens, searched", "count"),
    Column("saving", "saved", "share"),
    Column("cost saving", "saved by price", "share"),
    Column("success", "right tools called", "share"),
    Column("searches a turn", "searches a turn", "number"),
    Column("requests", "requests", "number"),
)


def savings_report(swept: SweepResult, plan: SweepPlan, dataset: Dataset, split: str) -> Report:
    """The report; its first table is the whole sweep."""
    tokenizers = swept.tokenizers
    charts = [
        chart
        for wire in plan.wires
        for chart in (_chart(swept, wire, "tokens", tokenizers[wire]), _chart(swept, wire, "cost", tokenizers[wire]))
    ]
    return Report(
        kind="savings",
        title="What tool search saves",
        headline=_headline(swept, plan),
        parameters={
            "data set": dataset.key,
            "split": split,
            **{key: list(value) if isinstance(value, tuple) else value for key, value in asdict(plan).items()},
            "sizes": sorted({row["tools"] for row in swept.rows}),
        },
        tables=(
            ReportTable("Tokens of a conversation, by number of tools", COLUMNS, swept.rows, _table_note(swept, plan)),
            _break_even_table(swept.break_evens),
            _where_table(swept.rows),
        ),
        measured=_measured(plan, tokenizers),
        limits=_limits(swept),
        charts=tuple(charts),
        data={
            "tokenizers": tokenizers,
            "break_even": [asdict(each) for each in swept.break_evens],
            "refused_calls": swept.refused,
            "quarantined": swept.quarantined,
        },
    )


def _headline(swept: SweepResult, plan: SweepPlan) -> tuple[str, ...]:
    """The finding in three sentences, for the first arm on the first wire: the gain, the break-even, the price.

    The first says how the tokens were counted, and calls an estimate one.
    """
    first = swept.rows[0]
    mine = [row for row in swept.rows if _arm(row) == _arm(first) and row["wire"] == first["wire"]]
    few, many = mine[0], mine[-1]
    even = swept.break_evens[0]
    turns = f"{plan.turns} turns" if plan.turns > 1 else "one turn"
    counted_by = swept.tokenizers[first["wire"]]
    about = "about " if "estimate" in counted_by else ""
    gain = (
        f"With {many['tools']} tools, a conversation of {turns} takes {_fewer_or_more(many['saving'])} tokens when "
        f"the tools are searched for: {about}{many['tokens']:,.0f} instead of {about}{many['static tokens']:,.0f}, "
        f"by {counted_by.partition(':')[0]}. By price, where what is sent again is cached, it costs "
        f"{_more_or_less(many['cost saving'])}."
    )
    by_tokens, by_price = _from(even.tokens, few["tools"]), _from(even.cost, few["tools"])
    begin = f"Counted in tokens, search is cheaper {by_tokens}; by price, {by_price}."
    if few is not many and few["saving"] < 0:
        begin += f" With {few['tools']} tools it takes {_fewer_or_more(few['saving'])} tokens."
    by_wording = [
        f"{success:.0%} in {whose} words"
        for success, whose in (
            (many["success, user wording"], "a user's"),
            (many["success, agent wording"], "an agent's"),
        )
        if success is not None
    ]
    wordings = f" ({', '.join(by_wording)})" if by_wording else ""
    price = "No request of these conversations can be met by a tool."
    if many["success"] is not None:
        price = (
            f"With {many['tools']} tools and search, the right ones were found and called in {many['success']:.0%} of "
            f"the requests that can be met{wordings}; sending every tool is assumed to succeed always. With search, "
            f"a conversation takes {many['requests']:.1f} requests instead of {many['static requests']:.1f}."
        )
    return gain, begin, f"{price} ({first['index']}, {first['mode']}, {first['wire']}.)"


def _arm(row: SavingsRow) -> tuple[str, str]:
    return row["mode"], row["index"]


def _more_or_less(saving: float) -> str:
    return f"{abs(saving):.0%} {'less' if saving >= 0 else 'more'}"


def _from(tools: float | None, least: float) -> str:
    if tools is None:
        return "at no size of this sweep"
    return f"from {least:,.0f} tools or fewer on" if tools <= least else f"from about {tools:.0f} tools on"


def _table_note(swept: SweepResult, plan: SweepPlan) -> str:
    played, turns = counted(swept.rows[0]["conversations"], "conversation"), counted(plan.turns, "turn")
    note = f"Means over {played} of {turns}." if swept.rows[0]["conversations"] > 1 else f"One conversation of {turns}."
    most = max(row["tools"] for row in swept.rows)
    if "openai_chat" in plan.wires and most > OPENAI_MOST:
        note += (
            f" OpenAI refuses more than {OPENAI_MOST} tools in a request: beyond that, sending all is only calculated."
        )
    return note


def _break_even_table(break_evens: Sequence[BreakEven]) -> ReportTable:
    heads = (
        Column("wire", "wire"),
        Column("mode", "delivery"),
        Column("index", "index"),
        Column("tokens", "by tokens", "count"),
        Column("cost", "by price", "count"),
    )
    note = "The number of tools from which search is cheaper; a dash if it never is."
    return ReportTable("Break-even", heads, [asdict(each) for each in break_evens], note)


def _where_table(rows: Sequence[SavingsRow]) -> ReportTable:
    heads = (
        *COLUMNS[:4],
        Column("static requests", "all sent: requests", "number"),
        Column("static uncached", "all sent: new", "count"),
        Column("static cached", "all sent: cached", "count"),
        Column("static output", "all sent: written", "count"),
        Column("uncached", "searched: new", "count"),
        Column("cached", "searched: cached", "count"),
        Column("output", "searched: written", "count"),
        Column("saving, worst seed", "saved, worst seed", "share"),
        Column("saving, best seed", "saved, best seed", "share"),
        Column("success, user wording", "right tools, user wording", "share"),
        Column("success, agent wording", "right tools, agent wording", "share"),
    )
    return ReportTable("Where the tokens go", heads, rows)


def _chart(swept: SweepResult, wire: str, by: Literal["tokens", "cost"], tokenizer_name: str) -> Chart:
    rows = [row for row in swept.rows if row["wire"] == wire]
    arms = list(dict.fromkeys(map(_arm, rows)))
    static: Literal["static tokens", "static cost"] = "static tokens" if by == "tokens" else "static cost"
    lines = [ChartLine("all tools sent", tuple((r["tools"], r[static]) for r in rows if _arm(r) == arms[0]), 0)]
    for tone, (mode, index) in enumerate(arms, 1):
        points = tuple((row["tools"], row[by]) for row in rows if _arm(row) == (mode, index))
        lines.append(ChartLine(f"{mode}, {index}", points, tone))
    evens = [
        (each.tokens if by == "tokens" else each.cost, (each.mode, each.index))
        for each in swept.break_evens
        if each.wire == wire
    ]
    what = "tokens" if by == "tokens" else "price, in uncached input tokens"
    title = f"{wire}: {what} of a conversation ({tokenizer_name.partition(':')[0]})"
    return Chart(title, "tools in the catalog (both axes logarithmic)", what, tuple(lines), _marks(evens, arms))


def _marks(evens: Sequence[tuple[float | None, tuple[str, str]]], arms: Sequence[tuple[str, str]]) -> Marks:
    """Where arms, each a mode and an index, break even, in order; the label distinguishes arms by what differs."""
    differing = [at for at in (0, 1) if len({arm[at] for arm in arms}) > 1]
    together: dict[float, list[str]] = {}
    for even, arm in evens:
        if even is not None:
            at = next((known for known in together if abs(even - known) < 0.5), even)
            together.setdefault(at, []).append(", ".join(arm[i] for i in differing))
    marks = []
    for at, names in sorted(together.items()):
        more = f" and {names[1]}" if len(names) == 2 and len(differing) == 1 else f" and {len(names) - 1} more"
        whose = f" ({names[0]}{more if len(names) > 1 else ''})" if differing else ""
        marks.append((at, f"even at {at:.0f}{whose}"))
    return tuple(marks)


def _measured(plan: SweepPlan, tokenizers: dict[str, str]) -> tuple[str, ...]:
    calls = "one by one, a request for each" if plan.one_by_one else "together in one reply"
    return (
        (
            "A scripted model plays whole conversations through real sessions and the real wires. The exact JSON of "
            "every request (tools, system message, messages) is counted, and so is everything that the model writes. "
            "This includes search calls, search results, the search tool's own definition and the instructions."
        ),
        "Tokenizer: " + "; ".join(f"{wire}: {name}" for wire, name in tokenizers.items()) + ".",
        (
            f"A conversation is a system message and {plan.turns} cases of the data set in succession, unanswerable "
            "ones in their natural share. The catalog of size N holds what the conversation needs and the first of "
            f"a seeded order of the others; {plan.conversations} conversations for each of {plan.seeds} seeds, the "
            "same at every size."
        ),
        (
            "With search, the model calls what is loaded already, and searches for the rest with the case's own "
            "words (one query a step where the case has steps). A miss costs a second search with the largest limit "
            "and a third with the content words alone; then the turn has failed. An unanswerable request costs one "
            "search."
        ),
        (
            "All tools sent: every definition is in every request, and the right tool is assumed to be called at once, "
            "always."
        ),
        (
            f"Tools needed in one turn are called {calls}. Arguments are the smallest that fit the schema; every "
            "tool returns the same small record."
        ),
        (
            "Cached is what a request shares, from its first byte on, with the one before it: tools, then system, "
            f"then messages. By price, a cached token counts {plan.cached_weight:g} and a written one "
            f"{plan.output_weight:g} of a new input token."
        ),
    )


def _limits(swept: SweepResult) -> tuple[str, ...]:
    limits = [
        (
            "The scripted model never mistakes a tool. Real models choose worse the more tools they are shown, "
            "which is not counted in favour of search here; and they may search when they need not, which is not "
            "counted against it."
        ),
        "A turn that fails ends early and calls no tool, so a low success flatters the saving a little.",
        (
            "Searches use the cases' own words. A real model words its own queries, and the figures for agent wording "
            "are closer to that than those for user wording."
        ),
        (
            "Prices differ by provider; writing to a cache, its least length and its lifetime are not counted. Each "
            "conversation begins with a cold cache."
        ),
        (
            "A case whose tools would not fit into the smallest catalog together with those of the others is put off "
            "to a later conversation; with very small catalogs, that makes requests for several tools rarer."
        ),
    ]
    if swept.refused:
        limits.append(f"{len(swept.refused)} calls were refused by the session, the first: {swept.refused[0]}")
    limits += [f"Set aside, and so in no catalog: {entry}" for entry in swept.quarantined]
    return tuple(limits)


def _fewer_or_more(saving: float) -> str:
    return _more_or_less(saving).replace("less", "fewer")
