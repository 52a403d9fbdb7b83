"""The tables of a report on savings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolsearch_evals.reports.report import Column, ReportTable, counted
from toolsearch_evals.savings.plan import SweepPlan
from toolsearch_evals.savings.rows import SavingsRow
from toolsearch_evals.savings.sweep import SweepResult

__all__ = [
    "assumption_table",
    "break_even_table",
    "conversation_table",
    "definitions_table",
    "static_success_table",
    "ways",
    "where_table",
    "wording_table",
]

OPENAI_MOST = 128  # tools; the provider refuses a request with more
SHOWN_SIZES = (20, 50, 100, 200)  # of the table by assumptions, and the largest
_ARM = (
    Column("wire", "wire"),
    Column("mode", "delivery"),
    Column("index", "index"),
)
_SETTINGS = Column("settings", "settings")  # only where several are played
_TOOLS = Column("tools", "tools", "count")
# What is assumed, as columns; only those that differ are shown.
_ASSUMED = (
    Column("turns", "turns", "count"),
    Column("locality", "locality", "number"),
    Column("profile", "prices"),
    Column("cache", "cache"),
)


def ways(rows: Iterable[SavingsRow | dict[str, Any]]) -> tuple[Column, ...]:
    """The columns that say which arm a row is of."""
    return (*_ARM, *([_SETTINGS] if any(row["settings"] for row in rows) else []))


def conversation_table(swept: SweepResult, plan: SweepPlan) -> ReportTable:
    """What is told first, by number of tools; the CSV and the JSON have all rows."""
    rows = swept.first().rows
    heads = (
        *ways(rows),
        _TOOLS,
        Column("static cost a met request", "price met, all sent", "count"),
        Column("cost a met request", "price met, searched", "count", "cost a met request ±"),
        Column("saving", "tokens saved", "percent", ends=("saving low", "saving high")),
        Column("success", "right tools", "percent", ends=("success low", "success high")),
        Column("requests", "requests", "number"),
    )
    first = rows[0]
    played, turns = counted(first["conversations"], "conversation"), counted(first["turns"], "turn")
    note = f"Means over {played} of {turns}" if first["conversations"] > 1 else f"One conversation of {turns}"
    note += (
        f" with {counted(first['different cases'], 'different case')}; 95 % intervals. Price met: all that was paid, "
        "over the requests that were met, in new input tokens"
        f" ({first['profile']} prices, the cache {first['cache']} at first). Right tools: the requests that can be met "
        "whose right tools were called."
    )
    most = max(row["tools"] for row in rows)
    if "openai_chat" in plan.wires and most > OPENAI_MOST:
        note += (
            f" OpenAI refuses more than {OPENAI_MOST} tools in a request: beyond that, sending all is only calculated."
        )
    further = [row for row in swept.rows if row not in rows]
    return ReportTable("A conversation, by number of tools", heads, rows, note, further=further)


def assumption_table(swept: SweepResult) -> ReportTable | None:
    """The price of a met request by turns, prices, cache and delivery, at a few sizes; None if nothing differs."""
    assumed = _differing(swept.rows)
    if not assumed:
        return None
    most = max(row["tools"] for row in swept.rows)
    sizes = [size for size in SHOWN_SIZES if size < most and any(row["tools"] == size for row in swept.rows)]
    heads = [*assumed, *ways(swept.rows)]
    heads += [Column(f"{size}", f"{size:,} tools", "count", f"{size} ±") for size in (*sizes, most)]
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in swept.rows:
        assumption = tuple(dict(row)[column.key] for column in _ASSUMED)
        all_sent = ("all sent", "", "", row["wire"])
        for arm, cost, spread in (
            (all_sent, row["static cost a met request"], None),
            (
                (row["mode"], row["index"], row["settings"], row["wire"]),
                row["cost a met request"],
                row["cost a met request ±"],
            ),
        ):
            line = lines.setdefault((*assumption, *arm), _named(assumption, arm))
            line |= {f"{row['tools']}": cost, f"{row['tools']} ±": spread}
    note = (
        "The price of a request that is met, in new input tokens, ± half of its 95 % interval. Sending all is assumed "
        f"to meet {swept.rows[0]['static success']:.0%} of the requests that can be met."
    )
    return ReportTable("The price of a met request, by what is assumed", tuple(heads), list(lines.values()), note)


def _named(assumption: Sequence[Any], arm: Sequence[str]) -> dict[str, Any]:
    keys = (*(column.key for column in _ASSUMED), "mode", "index", "settings", "wire")
    return dict(zip(keys, (*assumption, *arm), strict=True))


def _differing(rows: Sequence[SavingsRow]) -> list[Column]:
    return [column for column in _ASSUMED if len({dict(row)[column.key] for row in rows}) > 1]


def break_even_table(swept: SweepResult) -> ReportTable:
    """From how many tools on search is cheaper."""
    head = swept.break_evens[0]
    rows = [each.as_row() for each in swept.break_evens]
    told = [row for row in rows if row["static success"] == head.static_success]
    heads = (
        *_differing(swept.rows),
        *ways(rows),
        Column("tokens", "by tokens", is_result=True),
        Column("cost", "by price", is_result=True),
        Column("met", "by price met", is_result=True),
    )
    note = (
        "From how many tools on search is cheaper. In brackets: 95 % intervals over conversations. ≤ and > are bounds: "
        "search is cheaper at this size and all larger ones, and no dearer at a smaller one; or it is not cheaper at "
        "the largest."
    )
    return ReportTable("Break-even, in tools", heads, told, note, further=[row for row in rows if row not in told])


def definitions_table(swept: SweepResult) -> ReportTable:
    """Break-even in tokens of definitions, which says more about another catalog than a number of tools."""
    told = [each for each in swept.break_evens if each.static_success == swept.break_evens[0].static_success]
    rows = [each.as_row() for each in told]
    heads = (
        *_differing(swept.rows),
        *ways(rows),
        Column("tokens, definitions", "by tokens", is_result=True),
        Column("cost, definitions", "by price", is_result=True),
        Column("met, definitions", "by price met", is_result=True),
    )
    note = "From how many tokens of definitions on, as the wire sends them, with the system message (some 40 tokens)."
    return ReportTable("Break-even, in tokens of definitions", heads, rows, note)


def static_success_table(swept: SweepResult) -> ReportTable | None:
    """Break-even by the price of a met request, if sending all meets fewer requests; None if one share is assumed."""
    shares = dict.fromkeys(each.static_success for each in swept.break_evens)
    if len(shares) == 1:
        return None
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    keys = [column.key for column in (*_ASSUMED, *_ARM, _SETTINGS)]
    for row in (each.as_row() for each in swept.break_evens):
        line = lines.setdefault(tuple(row[key] for key in keys), {key: row[key] for key in keys})
        line[f"{row['static success']}"] = row["met"]
    met = [Column(f"{share}", f"if all sent meets {share:.0%}", is_result=True) for share in shares]
    note = (
        "From how many tools on a met request costs less with search, if sending every tool meets only this share of "
        "the requests that can be met: models choose worse among many tools."
    )
    heads = (*_differing(swept.rows), *ways(list(lines.values())), *met)
    return ReportTable("Break-even, by what sending all meets", heads, list(lines.values()), note)


def wording_table(rows: Sequence[SavingsRow]) -> ReportTable:
    """How often requests were met, in an agent's and in a user's words."""
    heads = [*ways(rows), _TOOLS]
    for wording in ("agent", "user"):
        heads += [
            Column(f"{wording} requests", f"{wording}'s requests", "count"),
            Column(f"success, {wording} wording", "met", "share"),
            Column(f"success, {wording} wording low", "from", "share"),
            Column(f"success, {wording} wording high", "to", "share"),
        ]
    note = "The share of the requests in an agent's and in a user's words that were met, with its 95 % interval."
    return ReportTable("Right tools called, by wording", tuple(heads), rows, note)


def where_table(rows: Sequence[SavingsRow]) -> ReportTable:
    """Where the tokens go."""
    heads = (
        *ways(rows),
        _TOOLS,
        Column("definition tokens", "definitions", "count"),
        Column("static tokens", "all sent: tokens", "count"),
        Column("tokens", "searched: tokens", "count"),
        Column("static requests", "all sent: requests", "number"),
        Column("static uncached", "all sent: new", "count"),
        Column("static cached", "all sent: cached", "count"),
        Column("static output", "all sent: written", "count"),
        Column("searches a turn", "searches a turn", "number"),
        Column("uncached", "searched: new", "count"),
        Column("cached", "searched: cached", "count"),
        Column("output", "searched: written", "count"),
        Column("cost saving", "saved by price", "share", ends=("cost saving low", "cost saving high")),
    )
    return ReportTable("Where the tokens go", heads, rows)
