"""What journals say: queries with their hits and tokens, searches in vain, tools never called, tools never found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolsearch import Catalog
from toolsearch.layers import RecordedTurn
from toolsearch.tokens import counter
from toolsearch_evals.ranking.measures import bootstrap_of_ratio, wilson
from toolsearch_evals.recording.needs import needs_of
from toolsearch_evals.reports.report import Card, Column, Report, ReportTable, counted
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.savings.own_tokens import catalog_tokens
from toolsearch_evals.token_usage import TokenMeter

__all__ = ["journal_report"]

SHOWN = 20  # rows of a table that is cut


def journal_report(turns: Sequence[RecordedTurn], catalog: Catalog | None = None) -> Report:
    """The report on recorded turns. Tools that are never found are known only with the catalog."""
    searches = [*_search_rows(turns)]
    use = _use_of(turns)
    definitions = _definition_tokens(catalog)
    uncalled = _uncalled_rows(use, definitions)
    tables = [
        ReportTable("Every search", _SEARCH_COLUMNS, searches, of_cases=True),
        _cut("What was searched for most", _QUERY_COLUMNS, _query_rows(searches), _QUERY_NOTE),
        _cut("Searches that ended in nothing", _VAIN_COLUMNS, _query_rows([s for s in searches if s["in vain"]])),
        _cut("Tools that were found and never called", _UNCALLED_COLUMNS, uncalled, _UNCALLED_NOTE),
    ]
    unseen = [] if catalog is None else _unseen_rows(use, catalog, definitions)
    if catalog is not None:
        tables.append(_cut("Tools that were never found", _UNSEEN_COLUMNS, unseen, _UNSEEN_NOTE))
    tables.append(ReportTable("Every tool", _TOOL_COLUMNS, _tool_rows(use, catalog), of_cases=True))
    conversations = len({turn.conversation for turn in turns})
    return Report(
        kind="journals",
        title="What was searched for, found and called",
        headline=_headline(turns, searches, use, uncalled, unseen=unseen, catalog=catalog),
        parameters={
            "conversations": conversations,
            "turns": len(turns),
            "searches": len(searches),
            "tools": None if catalog is None else len(catalog),
        },
        tables=tuple(tables),
        measured=_MEASURED,
        limits=(*_LIMITS, *(_NO_CATALOG if catalog is None else ())),
        cards=_cards(turns, searches, uncalled, use),
        data={"tools": _tool_rows(use, catalog), "never called": uncalled, "never found": unseen},
    )


# -- rows --------------------------------------------------------------------------------------------------------------


def _search_rows(turns: Sequence[RecordedTurn]) -> Iterator[dict[str, Any]]:
    for turn in turns:
        for search, needed in zip(turn.searches, needs_of(turn), strict=True):
            yield {
                "conversation": turn.conversation,
                "turn": turn.turn,
                "queries": "; ".join(search.queries),
                "category": search.category,
                "status": search.status or "not answered",
                "hits": len(search.loaded) + len(search.already),
                "loaded": ", ".join(search.loaded),
                "already": ", ".join(search.already),
                "named": ", ".join(search.named),
                "called": ", ".join(needed),
                "in vain": search.in_vain,
                "answer tokens": search.answer_tokens,
                "turn input": turn.usage.input_tokens,
                "turn cached": turn.usage.cached_tokens,
                "turn output": turn.usage.output_tokens,
            }


def _query_rows(searches: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Searches with the same words together, those made most often first."""
    groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for search in searches:
        groups[" ".join(search["queries"].casefold().split())].append(search)
    rows = [
        {
            "queries": of[0]["queries"],
            "times": len(of),
            "hits": sum(each["hits"] for each in of) / len(of),
            "in vain": sum(each["in vain"] for each in of),
            "led to a call": sum(bool(each["called"]) for each in of),
            "called": ", ".join(dict.fromkeys(name for each in of for name in each["called"].split(", ") if name)),
            "named": ", ".join(dict.fromkeys(name for each in of for name in each["named"].split(", ") if name)),
            "answer tokens": sum(each["answer tokens"] for each in of) / len(of),
            "turn tokens": sum(each["turn input"] + each["turn output"] for each in of) / len(of),
        }
        for of in groups.values()
    ]
    return sorted(rows, key=lambda row: (-row["times"], row["queries"]))


@dataclass
class _Use:
    """How often each tool was loaded by a search, only named, loaded without one, and called, by its id."""

    loaded: Counter[str] = field(default_factory=Counter)
    named: Counter[str] = field(default_factory=Counter)
    preselected: Counter[str] = field(default_factory=Counter)
    called: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    def row(self, tool: str) -> dict[str, Any]:
        names = ("loaded", "named", "preselected", "called", "failed")
        return {"tool": tool, **{name: getattr(self, name)[tool] for name in names}}

    @property
    def tools(self) -> list[str]:
        return sorted({*self.loaded, *self.named, *self.preselected, *self.called, *self.failed})


def _use_of(turns: Sequence[RecordedTurn]) -> _Use:
    use = _Use()
    for turn in turns:
        use.preselected.update(turn.preselected)
        for search in turn.searches:
            use.loaded.update(search.loaded)
            use.named.update(search.named)
        for call in turn.calls:
            if call.tool:
                (use.called if call.status == "ok" else use.failed)[call.tool] += 1
    return use


def _definition_tokens(catalog: Catalog | None) -> dict[str, int]:
    if catalog is None:
        return {}
    tokens = catalog_tokens(catalog, FORMATS["openai_chat"], TokenMeter(counter()))
    return {each.id: each.tokens for each in tokens.tools}


def _uncalled_rows(use: _Use, definitions: Mapping[str, int]) -> list[dict[str, Any]]:
    """Tools that were loaded and never called, not even in vain; those that were loaded most often first."""
    rows = [
        {**use.row(tool), "tokens": definitions.get(tool)}
        for tool in {*use.loaded, *use.preselected}
        if not use.called[tool] and not use.failed[tool]
    ]
    return sorted(rows, key=lambda row: (-row["loaded"] - row["preselected"], row["tool"]))


def _unseen_rows(use: _Use, catalog: Catalog, definitions: Mapping[str, int]) -> list[dict[str, Any]]:
    """Tools of the catalog that no search has loaded, in its order."""
    return [
        {**use.row(tool.id), "server": tool.server or "", "tokens": definitions.get(tool.id)}
        for tool in catalog
        if not use.loaded[tool.id]
    ]


def _tool_rows(use: _Use, catalog: Catalog | None) -> list[dict[str, Any]]:
    known = [] if catalog is None else [tool.id for tool in catalog]
    return [use.row(tool) for tool in dict.fromkeys((*known, *use.tools))]


# -- words -------------------------------------------------------------------------------------------------------------


def _headline(
    turns: Sequence[RecordedTurn],
    searches: Sequence[Mapping[str, Any]],
    use: _Use,
    uncalled: Sequence[Mapping[str, Any]],
    *,
    unseen: Sequence[Mapping[str, Any]],
    catalog: Catalog | None,
) -> tuple[str, ...]:
    conversations = counted(len({turn.conversation for turn in turns}), "conversation")
    made = f"{conversations} with {counted(len(turns), 'turn')} made {counted(len(searches), 'search', 'searches')}."
    if not searches:
        return (made,)
    led = sum(bool(each["called"]) for each in searches)
    told = [
        (
            f"{made} {_share(led, len(searches))} led to a call; "
            f"{_share(sum(each['in vain'] for each in searches), len(searches))} ended in nothing."
        ),
        (
            f"Searches loaded {counted(len(use.loaded), 'tool')}; never called: "
            f"{sum(not use.called[tool] and not use.failed[tool] for tool in use.loaded):,}."
        ),
    ]
    if catalog is not None:
        told.append(f"The catalog has {counted(len(catalog), 'tool')}; never loaded by a search: {len(unseen):,}.")
    return tuple(told)


def _share(times: int, of: int) -> str:
    low, high = wilson(times, of)
    return f"{times:,} of {of:,} ({100 * low:.0f} to {100 * high:.0f} %)"


def _cards(
    turns: Sequence[RecordedTurn],
    searches: Sequence[Mapping[str, Any]],
    uncalled: Sequence[Mapping[str, Any]],
    use: _Use,
) -> tuple[Card, ...]:
    if not searches:
        return ()
    vain = sum(each["in vain"] for each in searches)
    low, high = wilson(vain, len(searches))
    answers = sum(each["answer tokens"] for each in searches)
    return (
        Card("Searches", f"{len(searches):,}", f"in {counted(len(turns), 'turn')}"),
        Card("Ended in nothing", f"{100 * vain / len(searches):.1f} %", f"95 %: {100 * low:.1f} to {100 * high:.1f} %"),
        Card("Tokens of an answer", f"{answers / len(searches):,.0f}", _spread(turns)),
        Card(
            "Loaded, never called", f"{len(uncalled):,}", f"of {counted(len({*use.loaded, *use.preselected}), 'tool')}"
        ),
    )


def _spread(turns: Sequence[RecordedTurn]) -> str:
    """The interval of the tokens of an answer, over conversations."""
    sums: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for turn in turns:
        tokens = sum(search.answer_tokens for search in turn.searches)
        sums[turn.conversation] = sums[turn.conversation][0] + tokens, sums[turn.conversation][1] + len(turn.searches)
    pairs = [pair for pair in sums.values() if pair[1]]
    if len(pairs) < 2:
        return "one conversation, so no interval"
    low, high = bootstrap_of_ratio(pairs)
    return f"95 %: {low:,.0f} to {high:,.0f}"


def _cut(title: str, columns: tuple[Column, ...], rows: Sequence[Mapping[str, Any]], note: str = "") -> ReportTable:
    if not rows:
        return ReportTable(title, columns, (), "There is none.")
    left = f"{len(rows) - SHOWN:,} more are in the JSON form." if len(rows) > SHOWN else ""
    return ReportTable(title, columns, rows[:SHOWN], " ".join(filter(None, (note, left))))


_SEARCH_COLUMNS = (
    Column("conversation", "conversation"),
    Column("turn", "turn", "count"),
    Column("queries", "searched for"),
    Column("hits", "hits", "count"),
    Column("loaded", "loaded", is_result=True),
    Column("called", "called then", is_result=True),
    Column("answer tokens", "tokens of the answer", "count"),
    Column("turn input", "input of the turn", "count"),
    Column("turn cached", "cached", "count"),
    Column("turn output", "output", "count"),
)
_QUERY_COLUMNS = (
    Column("queries", "searched for"),
    Column("times", "times", "count"),
    Column("hits", "hits", "number"),
    Column("in vain", "in vain", "count"),
    Column("led to a call", "led to a call", "count"),
    Column("called", "called", is_result=True),
    Column("answer tokens", "tokens of the answer", "count"),
    Column("turn tokens", "tokens of the turn", "count"),
)
_QUERY_NOTE = (
    "hits: tools that the answer loads or says are loaded. Tokens of a turn: input and output of all its requests."
)
_VAIN_COLUMNS = (
    Column("queries", "searched for"),
    Column("times", "times", "count"),
    Column("called", "called after another search", is_result=True),
    Column("named", "named as nearest", is_result=True),
)
_UNCALLED_COLUMNS = (
    Column("tool", "tool"),
    Column("loaded", "loaded", "count"),
    Column("preselected", "loaded without a search", "count"),
    Column("tokens", "tokens of its definition", "count"),
)
_UNCALLED_NOTE = (
    "They cost tokens whenever they are found: their texts may promise too much, or resemble another tool's."
)
_UNSEEN_COLUMNS = (
    Column("tool", "tool"),
    Column("server", "server"),
    Column("named", "only named", "count"),
    Column("called", "called all the same", "count"),
    Column("tokens", "tokens of its definition", "count"),
)
_UNSEEN_NOTE = "Nobody needs them, or the words of their texts are not those that are searched for."
_TOOL_COLUMNS = (
    Column("tool", "tool"),
    Column("loaded", "loaded", "count"),
    Column("named", "only named", "count"),
    Column("preselected", "loaded without a search", "count"),
    Column("called", "called", "count"),
    Column("failed", "called in vain", "count"),
)
_MEASURED = (
    "A search counts as in vain if it loads no tool and says of none that it is loaded.",
    (
        "A call counts for the last search before it in the turn whose answer shows the tool, and for the searches in"
        " vain directly before that one. Only successful calls count."
    ),
    "Tokens of an answer are those of its text. Tokens of a turn are what the provider counted, of all its requests.",
    "Intervals are of 95 %: Wilson's for shares, a seeded bootstrap over conversations for tokens.",
)
_LIMITS = (
    "Texts are redacted: two queries that differ only in an address or a number are one.",
    "A tool that was called in a later turn than the one that found it counts as called, but for no search.",
)
_NO_CATALOG = ("Which tools were never found is not known without the tools: pass them with --tools.",)
