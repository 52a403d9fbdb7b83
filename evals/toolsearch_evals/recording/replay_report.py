"""The report on recorded searches that were made again: what is found now, at which place, and at which cost."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolsearch import Catalog
from toolsearch.layers import RecordedTurn
from toolsearch_evals.ranking.measures import bootstrap_of_ratio, wilson
from toolsearch_evals.reports.report import Card, Column, Report, ReportTable, counted

__all__ = ["Arm", "Replay", "SearchedAgain", "Shown", "replay_report"]

EXAMPLES = 20  # searches of each table of changes that are shown


class Arm(NamedTuple):
    """With what was searched: the index as reports call it, the delivery, and settings in words."""

    backend: str
    mode: str
    settings: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer: the tools it made callable, all that it showed in order, and its tokens with new definitions."""

    callable: tuple[str, ...]
    shown: tuple[str, ...]
    tokens: int

    @classmethod
    def of(cls, loaded: Sequence[str], already: Sequence[str], named: Sequence[str], tokens: int) -> Shown:
        fit = tuple(dict.fromkeys((*loaded, *already)))
        return cls(fit, tuple(dict.fromkeys((*fit, *named))), tokens)

    def place(self, tool: str) -> int | None:
        """The place of a tool in the answer, from 1."""
        return self.shown.index(tool) + 1 if tool in self.shown else None


@dataclass(frozen=True, slots=True)
class SearchedAgain:
    """One recorded search, then and now. `needed` are the tools it was for, `gone` those of them that are not there.

    `places` are those that the index now gives the needed tools, None beyond the first fifteen.
    """

    turn: RecordedTurn
    queries: tuple[str, ...]
    needed: tuple[str, ...]
    gone: int
    then: Shown
    now: Shown
    places: Mapping[str, int | None]


@dataclass(frozen=True)
class Replay:
    """All recorded searches, made again in one way."""

    arm: Arm
    searches: tuple[SearchedAgain, ...]


# What a search adds above the line and below it.
_Part = Callable[[SearchedAgain], tuple[float, float]]


def _loaded(of: Callable[[SearchedAgain], Shown]) -> _Part:
    return lambda each: (sum(tool in of(each).callable for tool in each.needed), len(each.needed))


def _reciprocal(place: Callable[[SearchedAgain, str], int | None]) -> _Part:
    def part(each: SearchedAgain) -> tuple[float, float]:
        places = [place(each, tool) for tool in each.needed]
        return sum(1 / at for at in places if at), len(places)

    return part


def _within(k: int) -> _Part:
    return lambda each: (sum((each.places[tool] or math.inf) <= k for tool in each.needed), len(each.needed))


_THEN, _NOW = (lambda each: each.then), (lambda each: each.now)
_SHARES: dict[str, _Part] = {
    "loaded then": _loaded(_THEN),
    "loaded now": _loaded(_NOW),
    "in vain then": lambda each: (not each.then.callable, 1),
    "in vain now": lambda each: (not each.now.callable, 1),
    "R@1 now": _within(1),
    "R@5 now": _within(5),
}
_MEANS: dict[str, _Part] = {
    "MRR then": _reciprocal(lambda each, tool: each.then.place(tool)),
    "MRR now": _reciprocal(lambda each, tool: each.now.place(tool)),
    "tokens then": lambda each: (each.then.tokens, 1),
    "tokens now": lambda each: (each.now.tokens, 1),
}
_DIFFERENCES: dict[str, tuple[_Part, _Part]] = {
    "loaded": (_SHARES["loaded then"], _SHARES["loaded now"]),
    "tokens": (_MEANS["tokens then"], _MEANS["tokens now"]),
}


def replay_report(replays: Sequence[Replay], turns: Sequence[RecordedTurn], catalog: Catalog, tokenizer: str) -> Report:
    """The report; the first table has a row for each way to search."""
    rows = [_row(replay) for replay in replays]
    first = replays[0]
    talks = len({each.turn.conversation for each in first.searches})
    return Report(
        kind="replay",
        title="Recorded searches, made again",
        headline=tuple(_sentence(row) for row in rows),
        parameters={
            "searches": len(first.searches),
            "conversations": talks,
            "tools": len(catalog),
            "indexes": list(dict.fromkeys(each.arm.backend for each in replays)),
            "modes": list(dict.fromkeys(each.arm.mode for each in replays)),
            "settings": first.arm.settings or None,
        },
        tables=(
            ReportTable("Then and now", _COLUMNS, rows, _NOTE),
            _changes("Found then, not loaded now", replays, lost=True),
            _changes("Loaded now, not then", replays, lost=False),
            ReportTable("Every search", _SEARCH_COLUMNS, [*_search_rows(replays)], of_cases=True),
        ),
        measured=_measured(talks, tokenizer),
        limits=(*_LIMITS, *_gone(first, turns)),
        cards=_cards(rows[0]),
        data={"tokenizer": tokenizer},
    )


def _pairs(searches: Sequence[SearchedAgain], part: _Part) -> list[tuple[float, float]]:
    """What each conversation adds above and below the line: its searches are not independent of each other."""
    sums: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for each in searches:
        above, below = part(each)
        had = sums[each.turn.conversation]
        sums[each.turn.conversation] = had[0] + above, had[1] + below
    return [pair for pair in sums.values() if pair[1]]


def _ratio(pairs: Sequence[tuple[float, float]]) -> float | None:
    below = sum(pair[1] for pair in pairs)
    return sum(pair[0] for pair in pairs) / below if below else None


def _ends(pairs: Sequence[tuple[float, float]], *, is_share: bool) -> tuple[float | None, float | None]:
    """The 95 % interval; unknown for fewer than two conversations, unless a share of 0 or 1 has Wilson's."""
    value, below = _ratio(pairs), sum(pair[1] for pair in pairs)
    if value is not None and is_share and value in (0.0, 1.0):
        return wilson(round(value * below), round(below))
    return bootstrap_of_ratio(pairs) if len(pairs) > 1 else (None, None)


def _row(replay: Replay) -> dict[str, Any]:
    arm = replay.arm
    row: dict[str, Any] = {"index": arm.backend, "mode": arm.mode, "settings": arm.settings}
    row["searches"] = len(replay.searches)
    row["conversations"] = len({each.turn.conversation for each in replay.searches})
    row["needs"] = sum(len(each.needed) for each in replay.searches)
    for name, part in {**_SHARES, **_MEANS}.items():
        pairs = _pairs(replay.searches, part)
        low, high = _ends(pairs, is_share=name in _SHARES)
        row |= {name: _ratio(pairs), f"{name} low": low, f"{name} high": high}
    for name, (then, now) in _DIFFERENCES.items():
        pairs = _pairs(replay.searches, _difference(then, now))
        low, high = _ends(pairs, is_share=False)
        row |= {f"{name} difference": _ratio(pairs), f"{name} difference low": low, f"{name} difference high": high}
    return row


def _difference(then: _Part, now: _Part) -> _Part:
    return lambda each: (now(each)[0] - then(each)[0], now(each)[1])


# -- words -------------------------------------------------------------------------------------------------------------


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _between(row: Mapping[str, Any], name: str, shown: Callable[[float | None], str]) -> str:
    low, high = row[f"{name} low"], row[f"{name} high"]
    return "one conversation, so no interval" if low is None else f"95 %: {shown(low)} to {shown(high)}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+,.0f}".replace("-", "−")


def _sentence(row: Mapping[str, Any]) -> str:
    way = ", ".join(filter(None, (row["index"], row["mode"], row["settings"])))
    if not row["needs"]:
        found = "none of the searches led to a successful call of a tool that is there"
    else:
        found = (
            f"of {counted(row['needs'], 'tool')} that searches led to, it loads {_percent(row['loaded now'])} "
            f"({_between(row, 'loaded now', _percent)}), then {_percent(row['loaded then'])}"
        )
    tokens = (
        f"a search adds {row['tokens now']:,.0f} tokens, then {row['tokens then']:,.0f}: "
        f"{_signed(row['tokens difference'])} ({_between(row, 'tokens difference', _signed)})"
    )
    return f"{way}: {found}; {tokens}."


def _cards(row: Mapping[str, Any]) -> tuple[Card, ...]:
    return (
        Card("Needed tools loaded now", _percent(row["loaded now"]), _between(row, "loaded now", _percent)),
        Card("Loaded then", _percent(row["loaded then"]), f"{counted(row['needs'], 'need')}"),
        Card("Tokens of a search", f"{row['tokens now']:,.0f}", f"then {row['tokens then']:,.0f}"),
        Card("Searches", f"{row['searches']:,}", counted(row["conversations"], "conversation")),
    )


_COLUMNS = (
    Column("index", "index"),
    Column("mode", "delivery"),
    Column("settings", "settings"),
    Column("searches", "n", "count"),
    Column("needs", "needs", "count"),
    Column("loaded then", "loaded then", "share"),
    Column("loaded now", "loaded now", "share"),
    Column("loaded now low", "from", "share"),
    Column("loaded now high", "to", "share"),
    Column("MRR then", "MRR then", "score"),
    Column("MRR now", "MRR now", "score"),
    Column("R@5 now", "R@5 now", "share"),
    Column("in vain then", "in vain then", "share"),
    Column("in vain now", "in vain now", "share"),
    Column("tokens then", "tokens then", "count"),
    Column("tokens now", "tokens now", "count"),
)
_NOTE = (
    "needs: tools that were called with success after a search. loaded: of these, those that the answer makes "
    "callable. MRR: mean of 1 / place in the answer, 0 if the answer does not show it. R@5: among the first five hits "
    "of the best query. in vain: searches that load nothing. tokens: of the answer, with the definitions that it adds."
)
_CHANGE_COLUMNS = (
    Column("queries", "searched for"),
    Column("tool", "called then"),
    Column("index", "index"),
    Column("mode", "delivery"),
    Column("place", "place now", "count"),
    Column("instead", "loaded now"),
)
_SEARCH_COLUMNS = (
    Column("conversation", "conversation"),
    Column("turn", "turn", "count"),
    Column("index", "index"),
    Column("mode", "delivery"),
    Column("queries", "searched for"),
    Column("needed", "called then"),
    Column("then", "loaded then"),
    Column("now", "loaded now"),
    Column("tokens then", "tokens then", "count"),
    Column("tokens now", "tokens now", "count"),
)


def _changes(title: str, replays: Sequence[Replay], *, lost: bool) -> ReportTable:
    rows = [
        {
            "queries": "; ".join(each.queries),
            "tool": tool,
            "index": replay.arm.backend,
            "mode": replay.arm.mode,
            "place": each.places[tool],
            "instead": ", ".join(each.now.callable[:5]),
        }
        for replay in replays
        for each in replay.searches
        for tool in each.needed
        if (tool in each.then.callable, tool in each.now.callable) == (lost, not lost)
    ]
    left = f"{len(rows) - EXAMPLES:,} more are among all searches." if len(rows) > EXAMPLES else ""
    return ReportTable(title, _CHANGE_COLUMNS, rows[:EXAMPLES], left or ("" if rows else "There is none."))


def _search_rows(replays: Sequence[Replay]) -> Iterator[dict[str, Any]]:
    for replay in replays:
        for each in replay.searches:
            yield {
                "conversation": each.turn.conversation,
                "turn": each.turn.turn,
                "index": replay.arm.backend,
                "mode": replay.arm.mode,
                "queries": "; ".join(each.queries),
                "needed": ", ".join(each.needed),
                "then": ", ".join(each.then.callable),
                "now": ", ".join(each.now.callable),
                "places": ", ".join(f"{tool} {place or '–'}" for tool, place in each.places.items()),
                "tokens then": each.then.tokens,
                "tokens now": each.now.tokens,
            }


def _measured(talks: int, tokenizer: str) -> tuple[str, ...]:
    return (
        (
            "Every recorded search was made again in the words of the model, in one session for each conversation, in"
            " the recorded order. No model was asked and no tool ran."
        ),
        (
            "A search was for the tools that were called with success after it in the same turn, if its answer showed"
            " them; a search in vain directly before such a search was for them too."
        ),
        (
            f"The intervals are of 95 %, by a seeded bootstrap over {counted(talks, 'conversation')}; a share of 0 or"
            " 1 has Wilson's."
        ),
        (
            f"Tokens are counted with {tokenizer}. Definitions are counted as they are in the tools given now, for "
            "then and for now, as OpenAI Chat Completions lists them; in the delivery 'bridge' the answer itself has"
            " them."
        ),
    )


_LIMITS = (
    (
        "Only tools that were found then could be called then. So a tool that is not loaded any more is a loss, but a"
        " better tool that nobody saw is no gain; gains are only of searches in vain that a later search put right."
    ),
    (
        "After another answer the model might have searched again, in other words or not at all. What another model "
        "does cannot be replayed: `toolsearch eval agent` asks one, on tasks with checkable end states."
    ),
    (
        "Texts are redacted: a query that had an address or a number is searched for without it. What a caller may "
        "see, pre-selection and what was learned from use are not played."
    ),
)


def _gone(first: Replay, turns: Sequence[RecordedTurn]) -> tuple[str, ...]:
    gone = sum(each.gone for each in first.searches)
    told = [f"{counted(gone, 'call')} left out: the tools are not among those given."] if gone else []
    hidden = sum("[" in query for turn in turns for search in turn.searches for query in search.queries)
    redacted = f"{counted(hidden, 'query', 'queries')} may have a redacted part, such as [number]."
    return (*told, *([redacted] if hidden else []))
