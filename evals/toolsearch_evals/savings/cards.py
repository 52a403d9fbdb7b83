"""The figures at the top of a report on savings, and what a conversation costs by the price of named models."""

from __future__ import annotations

from collections.abc import Sequence

from toolsearch.layers import PRICES, Price
from toolsearch_evals.reports.report import Card, Column, ReportTable
from toolsearch_evals.savings.rows import BreakEven, SavingsRow, arm_of

__all__ = ["dollar_table", "savings_cards"]

CONVERSATIONS = 1_000
# Of each maker a large, a middle and a small model. The table of prices has more, and says how old they are.
MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-4-5", "gpt-5", "gpt-5-mini", "gpt-5-nano")


def savings_cards(rows: Sequence[SavingsRow], break_evens: Sequence[BreakEven]) -> tuple[Card, ...]:
    """What the first arm saves on the first wire with the most tools, from where on, how often it succeeds, and the
    requests that it takes."""
    first = rows[0]
    mine = [row for row in rows if arm_of(row) == arm_of(first) and row["wire"] == first["wire"]]
    few, row = mine[0], mine[-1]
    where = ", ".join(filter(None, (f"{row['tools']:,} tools", *arm_of(row), row["wire"])))
    return (
        Card("Tokens saved", f"{row['saving']:.0%}".replace("-", "−"), f"{_by_met(row)}{where}."),
        _even_card(break_evens[0], few["tools"]),
        _success_card(row),
        Card(
            "Requests a conversation",
            "–" if row["requests"] is None else f"{row['requests']:.1f}",
            "" if row["static requests"] is None else f"Instead of {row['static requests']:.1f} with all tools sent.",
        ),
    )


def _by_met(row: SavingsRow) -> str:
    before, after = row["static cost a met request"], row["cost a met request"]
    if before is None or after is None:
        return ""
    return f"By the price of a met request, {1 - after / before:.0%}. ".replace("-", "−")


def _even_card(even: BreakEven, least: int) -> Card:
    by_price, by_met = _from(even.cost, least), _from(even.met, least)
    return Card(
        "Break-even", f"{_from(even.tokens, least)} tools", f"By price, {by_price}; by that of a met request, {by_met}."
    )


def _from(tools: float | None, least: int) -> str:
    """A number of tools; a bound is called one."""
    return "no number of" if tools is None else f"≤ {least:,}" if tools <= least else f"{tools:,.0f}"


def _success_card(row: SavingsRow) -> Card:
    success, low, high = row["success"], row["success low"], row["success high"]
    if success is None or low is None or high is None:
        return Card("Requests met", "–", "No request of these conversations can be met by a tool.")
    return Card(
        "Requests met", f"{success:.0%}", f"95 % interval {low:.0%} to {high:.0%}, n = {row['requests to meet']:,}."
    )


def dollar_table(rows: Sequence[SavingsRow], columns: Sequence[Column]) -> ReportTable:
    """Dollars by the dated prices of some models, with the most tools; `columns` say which arm a row is of."""
    most = max(row["tools"] for row in rows)
    told = []
    for model in MODELS:
        price = PRICES[model]
        for row in rows:
            if row["tools"] == most:
                before = _dollars(price, row["static uncached"], row["static cached"], row["static output"])
                after = _dollars(price, row["uncached"], row["cached"], row["output"])
                told.append(
                    {
                        "model": model,
                        **{column.key: dict(row)[column.key] for column in columns},
                        "static dollars": before,
                        "dollars": after,
                        "saved dollars": before - after,
                        "date": price.date,
                    }
                )
    heads = (
        Column("model", "model"),
        *columns,
        Column("static dollars", "all sent", "dollars"),
        Column("dollars", "searched", "dollars"),
        Column("saved dollars", "saved", "dollars"),
        Column("date", "prices of"),
    )
    note = (
        f"With {most:,} tools. New, cached and written tokens by the prices of `toolsearch.layers.PRICES`, which were "
        "collected by hand at the given date. Tokens are counted as above, whatever the model; its maker's count "
        "differs."
    )
    return ReportTable(f"Dollars for {CONVERSATIONS:,} conversations", heads, told, note)


def _dollars(price: Price, new: float, cached: float, written: float) -> float:
    return (new * price.input + cached * price.cached + written * price.output) / 1_000_000 * CONVERSATIONS
