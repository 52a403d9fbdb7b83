"""What conversations cost: by model, by tool, and by what the cache of a provider lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from toolsearch_evals.inspection.steps import Step
from toolsearch_evals.inspection.traces import Conversation
from toolsearch_evals.reports.report import Column, ReportTable

__all__ = ["COST_COLUMNS", "COST_NOTE", "cost_rows", "cost_tables", "lost_tables", "tool_tables"]

SHOWN = 20  # tools that a table shows


def cost_rows(conversations: Iterable[Conversation]) -> list[dict[str, Any]]:
    """A row for each model and purpose: requests, tokens, US dollars, and what the cache lost."""
    groups: dict[tuple[str, str], list[Step]] = defaultdict(list)
    for step in _rounds(conversations):
        groups[step.get("model", ""), step.get("purpose", "")].append(step)
    rows = []
    for (model, purpose), of in groups.items():
        priced = [step["dollars"] for step in of if "dollars" in step]
        sums = {name: sum(step.get(name, 0) for step in of) for name in ("input", "cached", "output", "lost")}
        rows.append(
            {
                "model": model or "not named",
                "purpose": purpose or "chat",
                "requests": len(of),
                "failed": sum("error" in step for step in of),
                **sums,
                "dollars": sum(priced) if priced else None,
                "lost dollars": sum(step.get("lost_dollars", 0.0) for step in of) if priced else None,
            }
        )
    return sorted(rows, key=lambda row: -(row["input"] + row["output"]))


def cost_tables(conversations: Sequence[Conversation]) -> Iterator[ReportTable]:
    """By model and purpose, requests and their cost; no table if no request was kept."""
    if rows := cost_rows(conversations):
        yield ReportTable("What the models cost", COST_COLUMNS, rows, COST_NOTE)


def lost_tables(conversations: Iterable[Conversation]) -> Iterator[ReportTable]:
    """By cause, what the cache lost; no table if nothing was lost."""
    groups: dict[str, list[Step]] = defaultdict(list)
    for step in _rounds(conversations):
        if step.get("lost"):
            groups[step.get("why") or "not known"].append(step)
    rows: list[dict[str, Any]] = [
        {
            "why": why,
            "requests": len(of),
            "lost": sum(step["lost"] for step in of),
            "dollars": sum(step.get("lost_dollars", 0.0) for step in of) or None,
        }
        for why, of in groups.items()
    ]
    if rows:
        rows.sort(key=lambda row: -row["lost"])
        yield ReportTable("What the cache lost", _LOST_COLUMNS, rows, _LOST_NOTE)


def tool_tables(conversations: Iterable[Conversation]) -> Iterator[ReportTable]:
    """By tool, the tokens of its results, the most first; no table if no result was kept."""
    groups: dict[str, list[Step]] = defaultdict(list)
    for step in _steps(conversations, "call"):
        if step.get("tool") and step.get("tokens"):
            groups[step["tool"]].append(step)
    rows: list[dict[str, Any]] = [
        {
            "tool": tool,
            "calls": len(of),
            "tokens": sum(step["tokens"] for step in of),
            "most": max(step["tokens"] for step in of),
            "seconds": sum(step.get("seconds", 0.0) for step in of) / len(of),
        }
        for tool, of in groups.items()
    ]
    rows.sort(key=lambda row: (-row["tokens"], row["tool"]))
    if rows:
        left = f" {len(rows) - SHOWN:,} more are in the JSON form." if len(rows) > SHOWN else ""
        yield ReportTable(
            "What models read of each tool", _TOOL_COLUMNS, rows[:SHOWN], _TOOL_NOTE + left, further=rows[SHOWN:]
        )


def _rounds(conversations: Iterable[Conversation]) -> Iterator[Step]:
    return _steps(conversations, "round")


def _steps(conversations: Iterable[Conversation], kind: str) -> Iterator[Step]:
    turns = (turn for each in conversations for turn in each.turns)
    return (step for turn in turns for step in turn["steps"] if step["kind"] == kind)


COST_COLUMNS = (
    Column("model", "model"),
    Column("purpose", "for"),
    Column("requests", "requests", "count"),
    Column("failed", "failed", "count"),
    Column("input", "input", "count"),
    Column("cached", "from the cache", "count"),
    Column("output", "output", "count"),
    Column("lost", "lost by the cache", "count"),
    Column("dollars", "US dollars", "money"),
    Column("lost dollars", "of these by the loss", "money"),
)
COST_NOTE = (
    "Prices are those of the dated table `toolsearch.layers.PRICES`: check them before you bill anybody. A dash: the "
    "price of the model is not known."
)
_LOST_COLUMNS = (
    Column("why", "after", is_result=True),
    Column("requests", "requests", "count"),
    Column("lost", "tokens", "count"),
    Column("dollars", "US dollars", "money"),
)
_LOST_NOTE = "A request begins with what the one before it was; what of that did not come from the cache is lost."
_TOOL_COLUMNS = (
    Column("tool", "tool", is_result=True),
    Column("calls", "calls", "count"),
    Column("tokens", "tokens of its results", "count"),
    Column("most", "of the longest", "count"),
    Column("seconds", "seconds a call", "number"),
)
_TOOL_NOTE = "A result is read again by every later request of its conversation, until it is left out or cached."
