"""The figures at the top of a report on savings, and what a conversation costs by the price of named models."""

from __future__ import annotations

from collections.abc import Sequence

from toolsearch.layers import PRICES, Price
from toolsearch_evals.reports.report import Card, Column, ReportTable
from toolsearch_evals.savings.break_even import BreakEven
from toolsearch_evals.savings.rows import SavingsRow, arm_of

__all__ = ["dollar_table", "savings_cards"]

CONVERSATIONS = 1_000
# By wire a large, a middle and a small model; on other wires, all of them. The table of prices has more.
MODELS = {
    "anthropic": ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-4-5"),
    "openai_chat": ("gpt-5", "gpt-5-mini", "gpt-5-nano"),
}


def savings_cards(rows: Sequence[SavingsRow], break_evens: Sequence[BreakEven]) -> tuple[Card, ...]:
    """What the first arm saves on the first wire with the most tools, from where on, how often it succeeds, and the
    requests that it takes."""
    first = rows[0]
    mine = [row for row in rows if arm_of(row) == arm_of(first) and row["wire"] == first["wire"]]
    row = mine[-1]
    where = ", ".join(filter(None, (f"{row['tools']:,} tools", *arm_of(row), row["wire"])))
    return (
        Card("Tokens saved", _percent(row["saving"]), f"{_interval(row)}{_by_met(row)}{where}."),
        _even_card(break_evens[0]),
        _success_card(row),
        Card(
            "Requests a conversation",
            "–" if row["requests"] is None else f"{row['requests']:.1f}",
            "" if row["static requests"] is None else f"Instead of {row['static requests']:.1f} with all tools sent.",
        ),
    )


def _interval(row: SavingsRow) -> str:
    low, high = row["saving low"], row["saving high"]
    return "" if low is None or high is None else f"95 % interval {_percent(low)} to {_percent(high)}. "


def _by_met(row: SavingsRow) -> str:
    before, after = row["static cost a met request"], row["cost a met request"]
    if before is None or after is None:
        return ""
    return f"By the price of a met request, {_percent(1 - after / before)}. "


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %".replace("-", "−")


def _even_card(even: BreakEven) -> Card:
    by_tokens, by_price, by_met = (each.in_words(*even.sizes) for each in (even.by_tokens, even.by_cost, even.by_met))
    return Card("Break-even", f"{by_tokens} tools", f"By price, {by_price}; by that of a met request, {by_met}.")


def _success_card(row: SavingsRow) -> Card:
    success, low, high = row["success"], row["success low"], row["success high"]
    if success is None or low is None or high is None:
        return Card("Requests met", "–", "No request of these conversations can be met by a tool.")
    return Card(
        "Requests met",
        _percent(success),
        f"95 % interval {_percent(low)} to {_percent(high)}, n = {row['requests to meet']:,}.",
    )


def dollar_table(rows: Sequence[SavingsRow], columns: Sequence[Column]) -> ReportTable:
    """Dollars by the dated prices of some models, with the most tools; `columns` say which arm a row is of."""
    most = max(row["tools"] for row in rows)
    every = tuple(name for names in MODELS.values() for name in names)
    largest = [row for row in rows if row["tools"] == most]
    told = [_dollar_row(row, model, columns) for row in largest for model in MODELS.get(row["wire"], every)]
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


def _dollar_row(row: SavingsRow, model: str, columns: Sequence[Column]) -> dict[str, object]:
    price = PRICES[model]
    before = _dollars(price, row["static uncached"], row["static cached"], row["static output"])
    after = _dollars(price, row["uncached"], row["cached"], row["output"])
    arm = {column.key: dict(row)[column.key] for column in columns}
    saved = {"static dollars": before, "dollars": after, "saved dollars": before - after}
    return {"model": model, **arm, **saved, "date": price.date}


def _dollars(price: Price, new: float, cached: float, written: float) -> float:
    return (new * price.input + cached * price.cached + written * price.output) / 1_000_000 * CONVERSATIONS
