"""The report on a trace: what was searched for, found and called, what it cost, and every turn as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolsearch import Catalog
from toolsearch.layers import RecordedTurn
from toolsearch_evals.inspection.costs import cost_tables, lost_tables, tool_tables
from toolsearch_evals.inspection.traces import Conversation, Trace
from toolsearch_evals.recording.journal_report import journal_report
from toolsearch_evals.reports.report import Card, Column, Report, ReportTable, counted, shown

__all__ = ["inspect_report", "sums_of", "trace_data"]

SHOWN = 20  # rows of a table that is cut


def inspect_report(trace: Trace, catalog: Catalog | None = None) -> Report:
    """The report of `toolsearch inspect`. Tools that are never found are known only with the catalog."""
    base = journal_report(trace.recorded, catalog)
    vain, *_ = [table for table in base.tables if table.title == _VAIN]
    nothing = _nothing_rows(trace.recorded)
    rest = [table for table in base.tables if table is not vain]
    tables = (
        ReportTable("Queries that found nothing", _NOTHING_COLUMNS, nothing[:SHOWN], _nothing_note(nothing)),
        *[table for table in rest if not table.of_cases],
        *cost_tables(trace.conversations),
        *lost_tables(trace.conversations),
        *tool_tables(trace.conversations),
        *[table for table in rest if table.of_cases],
    )
    return replace(
        base,
        kind="inspect",
        title=f"Inside {trace.name}",
        headline=(*base.headline, *_money(trace.conversations), *_damage(trace)),
        tables=tables,
        cards=_cards(trace, nothing, base.cards),
        measured=(*base.measured, *_MEASURED),
        limits=(*base.limits, *_LIMITS),
        data={**base.data, **trace_data(trace)},
    )


def trace_data(trace: Trace) -> dict[str, Any]:
    """Every turn with its steps, and what could not be read."""
    return {
        "conversations": [
            {"id": each.id, "file": each.file, "source": each.source, "at": each.began, "turns": list(each.turns)}
            for each in trace.conversations
        ],
        "damaged": {"places": trace.damaged, "first": list(trace.told)},
    }


def sums_of(conversations: Iterable[Conversation]) -> dict[str, Any]:
    """Sums over all turns. `dollars` is None if no price is known."""
    turns = [turn for each in conversations for turn in each.turns]
    steps = [step for turn in turns for step in turn["steps"]]
    searches = [step for step in steps if step["kind"] == "search"]
    calls = [step for step in steps if step["kind"] == "call"]
    names = ("requests", "input", "cached", "output", "lost", "lost_dollars", "unpriced", "seconds")
    sums = {name: sum(turn.get(name, 0) for turn in turns) for name in names}
    priced = sums["requests"] > sums["unpriced"]
    return {
        "turns": len(turns),
        "searches": len(searches),
        "in vain": sum(bool(step.get("in_vain")) for step in searches),
        "calls": len(calls),
        "failed": sum(step.get("status", "") not in ("", "ok") for step in calls),
        **sums,
        "dollars": sum(turn.get("dollars", 0.0) for turn in turns) if priced else None,
    }


# -- rows --------------------------------------------------------------------------------------------------------------


def _nothing_rows(turns: Sequence[RecordedTurn]) -> list[dict[str, Any]]:
    """Queries with nothing that fits, those made most often first, and the tools that another search led to."""
    groups: dict[str, dict[str, Any]] = {}
    for turn in turns:
        called = dict.fromkeys(call.tool for call in turn.calls if call.tool and call.status == "ok")
        for search in turn.searches:
            is_known = len(search.verdicts) == len(search.queries)
            empty = (
                [q for q, v in zip(search.queries, search.verdicts, strict=False) if v == "none"] if is_known else []
            )
            for query in list(search.queries) if search.in_vain else empty:
                row = groups.setdefault(
                    " ".join(query.casefold().split()), {"query": query, "times": 0, "named": {}, "called": {}}
                )
                row["times"] += 1
                row["named"].update(dict.fromkeys(search.named[:3]))
                row["called"].update(called)
    rows = [{**row, **{key: ", ".join(row[key]) for key in ("named", "called")}} for row in groups.values()]
    return sorted(rows, key=lambda row: (-row["times"], row["query"]))


# -- words -------------------------------------------------------------------------------------------------------------


def _cards(trace: Trace, nothing: Sequence[Mapping[str, Any]], base: Sequence[Card]) -> tuple[Card, ...]:
    sums = sums_of(trace.conversations)
    times = sum(row["times"] for row in nothing)
    queries = sum(len(search.queries) for turn in trace.recorded for search in turn.searches)
    cards = [
        Card("Conversations", f"{len(trace.conversations):,}", counted(sums["turns"], "turn")),
        Card("Searches", f"{sums['searches']:,}", f"{times:,} of {counted(queries, 'query', 'queries')} found nothing"),
        Card("Calls", f"{sums['calls']:,}", f"{sums['failed']:,} without success"),
        *[card for card in base if card.label == "Loaded, never called"],
    ]
    if sums["requests"]:
        cached = f"{100 * sums['cached'] / sums['input']:.0f} % from the cache" if sums["input"] else "nothing read"
        cards.append(Card("Tokens read", f"{sums['input']:,}", cached))
        cards.append(Card("Tokens written", f"{sums['output']:,}", f"in {counted(sums['requests'], 'request')}"))
        cards.append(Card("Lost by the cache", f"{sums['lost']:,}", "tokens read again at the full price"))
        cards.append(Card("Cost", shown(sums["dollars"], "money"), _unpriced(sums["unpriced"])))
    return tuple(cards)


def _money(conversations: Sequence[Conversation]) -> tuple[str, ...]:
    sums = sums_of(conversations)
    if not sums["lost"]:
        return ()
    dearer = f", which cost {shown(sums['lost_dollars'], 'money')} more" if sums["lost_dollars"] else ""
    return (f"The cache lost {counted(sums['lost'], 'token')} of earlier requests{dearer}.",)


def _damage(trace: Trace) -> tuple[str, ...]:
    if not trace.damaged:
        return ()
    more = f" And {trace.damaged - len(trace.told):,} more." if trace.damaged > len(trace.told) else ""
    places, are = counted(trace.damaged, "place"), "is" if trace.damaged == 1 else "are"
    return (f"{places} could not be read, and {are} left out: {'; '.join(trace.told)}.{more}",)


def _unpriced(requests: int) -> str:
    return (
        f"without {counted(requests, 'request')} whose price is not known"
        if requests
        else "US dollars, by the table of prices"
    )


def _nothing_note(rows: Sequence[object]) -> str:
    if not rows:
        return "There is none."
    left = f" {len(rows) - SHOWN:,} more are in the JSON form." if len(rows) > SHOWN else ""
    return f"No tool has these words in its texts, or there is no such tool.{left}"


_VAIN = "Searches that ended in nothing"
_NOTHING_COLUMNS = (
    Column("query", "searched for"),
    Column("times", "times", "count"),
    Column("named", "nearest", is_result=True),
    Column("called", "called in these turns all the same", is_result=True),
)
_MEASURED = (
    (
        "What the cache lost: the input of the request before, of the same model in the same conversation, less what "
        "came from the cache; only for models of which some request took tokens from it."
    ),
    "The cause of a loss is what happened between the two requests; it is a guess.",
)
_LIMITS = (
    "A request that is retried, or that a layer makes for another purpose, counts for the cost, not for the cache.",
)
