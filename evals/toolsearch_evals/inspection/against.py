"""Two traces side by side: which conversations belong together, and what differs between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from toolsearch_evals.inspection.costs import COST_COLUMNS, COST_NOTE, cost_rows
from toolsearch_evals.inspection.inspect_report import sums_of, trace_data
from toolsearch_evals.inspection.traces import Conversation, Trace
from toolsearch_evals.reports.report import Card, Column, Report, ReportTable, Unit, counted, shown

__all__ = ["Pair", "against_report", "pairs_of"]

Pair: TypeAlias = tuple[int | None, int | None]
"""The places of two conversations in their traces; None for one without a partner."""


def pairs_of(one: Sequence[Conversation], other: Sequence[Conversation]) -> list[Pair]:
    """The conversations that belong together: those with the same id, then those that begin with the same words.

    Two traces of one conversation belong together whatever they say. Those without a partner come last.
    """
    if len(one) == len(other) == 1:
        return [(0, 0)]
    pairs: list[tuple[int, int]] = []
    left: list[dict[int, Conversation]] = [dict(enumerate(one)), dict(enumerate(other))]
    for key in (_id, _begin):
        places = {key(each): at for at, each in reversed(left[1].items()) if key(each)}
        for at, each in list(left[0].items()):
            if (there := places.pop(key(each), None)) is not None:
                pairs.append((at, there))
                del left[0][at], left[1][there]
    return [*sorted(pairs), *((at, None) for at in left[0]), *((None, at) for at in left[1])]


def _id(of: Conversation) -> str:
    return of.id


def _begin(of: Conversation) -> str:
    return str(of.turns[0].get("said", "")) if of.turns else ""


def against_report(one: Trace, other: Trace) -> Report:
    """The report of `toolsearch inspect --against`: the first trace is A, the second is B."""
    pairs = pairs_of(one.conversations, other.conversations)
    sums = [sums_of(each.conversations) for each in (one, other)]
    matched = sum(None not in pair for pair in pairs)
    traces = [
        {"trace": f"{letter}: {of.name}", **sum_} for letter, of, sum_ in zip("AB", (one, other), sums, strict=True)
    ]
    costs = [
        {"trace": letter, **row} for letter, of in (("A", one), ("B", other)) for row in cost_rows(of.conversations)
    ]
    rows = [_row(*_both(pair, one, other)) for pair in pairs]
    second = trace_data(other)
    return Report(
        kind="inspect-against",
        title=f"{one.name} against {other.name}",
        headline=(
            f"A is {one.name}, B is {other.name}; {counted(matched, 'conversation')} are in both, {_alone(pairs)}.",
            _difference(*sums),
            *(f"{each.name}: {counted(each.damaged, 'place')} could not be read: {'; '.join(each.told)}."
              for each in (one, other) if each.damaged),
        ),
        parameters={"conversations": [len(one.conversations), len(other.conversations)]},
        tables=(
            ReportTable("Both traces", _SUM_COLUMNS, [*traces, _minus(*sums)]),
            ReportTable("Conversation by conversation", _PAIR_COLUMNS, rows, _PAIR_NOTE),
            *([ReportTable("What the models cost", (_TRACE, *COST_COLUMNS), costs, COST_NOTE)] if costs else []),
        ),
        measured=_MEASURED,
        limits=("Two traces differ by chance too: one pair of conversations proves nothing.",),
        cards=tuple(_card(label, key, unit, sums) for label, key, unit in _CARDS),
        data={
            **trace_data(one),
            "against": second["conversations"],
            "pairs": [list(pair) for pair in pairs],
            "damaged against": second["damaged"],
        },
    )  # fmt: skip


def _both(pair: Pair, one: Trace, other: Trace) -> tuple[Conversation | None, Conversation | None]:
    at, there = pair
    return (
        None if at is None else one.conversations[at],
        None if there is None else other.conversations[there],
    )


def _row(one: Conversation | None, other: Conversation | None) -> dict[str, Any]:
    """One pair, each sum twice."""
    both = [None if each is None else sums_of([each]) for each in (one, other)]
    tools = [dict.fromkeys(_called(each)) for each in (one, other)]
    row: dict[str, Any] = {"conversation": next(each.id for each in (one, other) if each is not None)}
    for letter, sums, mine, its in zip("AB", both, tools, reversed(tools), strict=True):
        row[f"only {letter}"] = ", ".join(tool for tool in mine if tool not in its)
        for key in ("turns", "searches", "calls", "dollars"):
            row[f"{key} {letter}"] = None if sums is None else sums[key]
        row[f"tokens {letter}"] = None if sums is None else sums["input"] + sums["output"]
    return row


def _called(of: Conversation | None) -> list[str]:
    """The tools that were called with success, in order."""
    steps = [] if of is None else [step for turn in of.turns for step in turn["steps"]]
    return [step["tool"] for step in steps if step["kind"] == "call" and step.get("status") == "ok" and "tool" in step]


def _minus(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    keys = [column.key for column in _SUM_COLUMNS[1:]]
    known = [key for key in keys if one[key] is not None and other[key] is not None]
    return {"trace": "B − A", **{key: other[key] - one[key] for key in known}}


def _alone(pairs: Sequence[Pair]) -> str:
    return f"{sum(pair[1] is None for pair in pairs):,} only in A, {sum(pair[0] is None for pair in pairs):,} only in B"


def _difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """In words, what B has more or less of."""
    tokens = [each["input"] + each["output"] for each in (one, other)]
    told = [
        _more("search", "searches", one["searches"], other["searches"]),
        _more("call", "calls", one["calls"], other["calls"]),
        _more("token", "tokens", *tokens),
    ]
    return (
        f"B has {', '.join(told)} than A."
        if any(not each.startswith("as many") for each in told)
        else "B has as much as A."
    )


def _more(word: str, several: str, one: int, other: int) -> str:
    if one == other:
        return f"as many {several}"
    share = f" ({100 * (other - one) / one:+.0f} %)".replace("-", "−") if one else ""
    less = "more" if other > one else "fewer"
    return f"{abs(other - one):,} {less} {word if abs(other - one) == 1 else several}{share}"


def _card(label: str, key: str, unit: Unit, sums: Sequence[Mapping[str, Any]]) -> Card:
    one, other = (shown(each[key], unit) for each in sums)
    return Card(label, f"{one} → {other}", "A → B")


_CARDS: tuple[tuple[str, str, Unit], ...] = (
    ("Searches", "searches", "count"),
    ("Calls", "calls", "count"),
    ("Tokens read", "input", "count"),
    ("Cost", "dollars", "money"),
)
_TRACE = Column("trace", "trace", is_result=True)
_SUM_COLUMNS = (
    _TRACE,
    Column("turns", "turns", "count"),
    Column("searches", "searches", "count"),
    Column("in vain", "in vain", "count"),
    Column("calls", "calls", "count"),
    Column("failed", "without success", "count"),
    Column("requests", "requests", "count"),
    Column("input", "input", "count"),
    Column("cached", "from the cache", "count"),
    Column("output", "output", "count"),
    Column("lost", "lost by the cache", "count"),
    Column("dollars", "US dollars", "money"),
)
_UNITS: tuple[tuple[str, Unit], ...] = (
    ("turns", "count"),
    ("searches", "count"),
    ("calls", "count"),
    ("tokens", "count"),
    ("dollars", "money"),
)
_PAIR_COLUMNS = (
    Column("conversation", "conversation", is_result=True),
    *(Column(f"{key} {letter}", f"{key} {letter}", unit) for key, unit in _UNITS for letter in "AB"),
    Column("only A", "called only in A", is_result=True),
    Column("only B", "called only in B", is_result=True),
)
_PAIR_NOTE = "A dash: the conversation is not in that trace, or the price of a model is not known."
_MEASURED = (
    "Conversations with the same id belong together, or else those that begin with the same words of the user.",
    (
        "In the timeline, a search or a call is marked that its partner does not have in that turn: other queries, "
        "another tool, or other arguments."
    ),
)
