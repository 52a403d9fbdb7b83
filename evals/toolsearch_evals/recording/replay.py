"""Recorded searches made again: with another index, another delivery, other settings, in the words they were made in.

Only searches are played: no model is asked, and no tool runs. Each conversation has one session, as it had then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from toolsearch import Catalog, Settings, SetupError, ToolCall, ToolIndex, ToolSearch, find
from toolsearch.layers import RecordedTurn
from toolsearch.tokens import counter
from toolsearch_evals.backends import label, open_backend
from toolsearch_evals.recording.needs import needs_of
from toolsearch_evals.recording.replay_report import Arm, Replay, SearchedAgain, Shown, replay_report
from toolsearch_evals.reports.report import Report
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.savings.own_tokens import catalog_tokens
from toolsearch_evals.savings.plan import MODES
from toolsearch_evals.token_usage import TokenMeter

__all__ = ["ReplayPlan", "replay_turns"]

DEPTH = 15  # tools that the index is asked for
IN_TEXT = ("bridge", "compact", "static")  # deliveries in which a search adds no definition to the tools of a request
Tick = Callable[[str], None]


@dataclass(frozen=True)
class ReplayPlan:
    """With what the searches are made again: every index with every delivery. `settings` are names and values."""

    indexes: tuple[str, ...] = ("keyword",)
    modes: tuple[str, ...] = ("append",)
    settings: tuple[tuple[str, str], ...] = ()

    def arms(self) -> Iterator[tuple[Arm, str]]:
        """Each way to search, and the notation of its index."""
        told = ", ".join(f"{name}={value}" for name, value in self.settings)
        for notation in self.indexes:
            for mode in self.modes:
                yield Arm(label(notation), mode, told), notation


def replay_turns(
    turns: Sequence[RecordedTurn], catalog: Catalog, plan: ReplayPlan, tick: Tick = lambda _: None
) -> Report:
    """The report on the searches of these turns, made again over a catalog.

    `tick` is called after each search. Raises `SetupError` if the turns hold no search, or if a delivery sends all the
    tools of the catalog, so that nothing would be searched.
    """
    if not any(turn.searches for turn in turns):
        raise SetupError("there is no search in these turns, so nothing can be searched again")
    meter = TokenMeter(counter())
    definitions = {each.id: each.tokens for each in catalog_tokens(catalog, FORMATS["openai_chat"], meter).tools}
    replays = [
        Replay(arm, tuple(_searched(turns, _engine(catalog, arm, notation, plan), definitions, meter, tick)))
        for arm, notation in plan.arms()
    ]
    return replay_report(replays, turns, catalog, meter.counter.name)


@dataclass(frozen=True)
class _Engine:
    catalog: Catalog
    index: ToolIndex
    search: ToolSearch

    def place(self, queries: Sequence[str], tool: str) -> int | None:
        """The best place of a tool among the first of the queries' hits, from 1."""
        answers = [[hit.tool.id for hit in find(self.catalog, self.index, query, DEPTH)] for query in queries]
        return min((ids.index(tool) + 1 for ids in answers if tool in ids), default=None)


def _engine(catalog: Catalog, arm: Arm, notation: str, plan: ReplayPlan) -> _Engine:
    settings = Settings.from_mapping({**dict(plan.settings), **MODES[arm.mode]})
    index = open_backend(notation)
    search = ToolSearch(catalog, index, settings=settings)
    session = search.session()
    if session.mode == "static":
        raise SetupError(
            f"in the mode {arm.mode!r} these {len(catalog):,} tools are all sent and none is searched for: "
            "name another delivery, as --mode append"
        )
    search.end_session(session.id)
    return _Engine(catalog, index, search)


def _searched(
    turns: Sequence[RecordedTurn], engine: _Engine, definitions: Mapping[str, int], meter: TokenMeter, tick: Tick
) -> Iterator[SearchedAgain]:
    for _, talk in groupby(turns, key=lambda turn: turn.conversation):
        session = engine.search.session()
        for turn in talk:
            then_listed = turn.mode not in IN_TEXT
            for search, tools in zip(turn.searches, needs_of(turn), strict=True):
                session.tools()  # as the request before the search
                asked = {"queries": list(search.queries), **({"category": search.category} if search.category else {})}
                result = session.handle(ToolCall("again", engine.search.settings.search_tool, asked))
                data = result.data if isinstance(result.data, Mapping) else {}
                loaded, already, named = (tuple(data.get(key, ())) for key in ("loaded", "already_loaded", "named"))
                now_listed = session.mode not in IN_TEXT
                needed = tuple(tool for tool in tools if tool in engine.catalog)
                yield SearchedAgain(
                    turn,
                    search.queries,
                    needed,
                    len(tools) - len(needed),
                    then=Shown.of(
                        search.loaded,
                        search.already,
                        search.named,
                        search.answer_tokens + _listed(search.loaded, definitions, then_listed),
                    ),
                    now=Shown.of(
                        loaded, already, named, meter.count(result.content) + _listed(loaded, definitions, now_listed)
                    ),
                    places={tool: engine.place(search.queries, tool) for tool in needed},
                )
                tick(engine.index.name)
        engine.search.end_session(session.id)


def _listed(loaded: Sequence[str], definitions: Mapping[str, int], are_listed: bool) -> int:
    return sum(definitions.get(tool, 0) for tool in loaded) if are_listed else 0
