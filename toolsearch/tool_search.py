"""The front door: a catalog, an index over it, and the sessions of all conversations."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import TypeAlias, Unpack

from toolsearch.calls import Caller
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.changes import Change
from toolsearch.catalog.tools import Tool, tool
from toolsearch.errors import SetupError
from toolsearch.protocols import ToolIndex, ToolRunner, Visibility
from toolsearch.search.abilities import BackgroundIndex, TieredIndex
from toolsearch.search.index import Hits, open_index
from toolsearch.search.learned import Learned
from toolsearch.search.probes import Suggestion, suggest
from toolsearch.search.upkeep import IndexUpkeep
from toolsearch.session.delivery import IN_TEXT
from toolsearch.session.pinning import PinnedTools
from toolsearch.session.registry import SessionRegistry
from toolsearch.session.session import Session
from toolsearch.session.view import View
from toolsearch.settings import SearchSettings, Settings
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject

__all__ = ["ToolSearch"]

log = logging.getLogger("toolsearch")

PinnedTool: TypeAlias = str | Tool | Callable[..., object] | JsonObject
"""What to pin: a tool's name or id, a pattern of ids, a server, or a tool itself, a function or a definition."""

_PATTERN = re.compile(r"[*?\[]")

ARGUMENTS = ("pinned", "visible", "run", "learned", "settings")  # of `ToolSearch`; all others are settings


class ToolSearch:
    """Binds a catalog to an index, keeps both in step, and creates sessions.

    `index` is a name ("keyword", "regex", …) or an object with the `ToolIndex` protocol. `pinned` tools (names, ids,
    patterns of ids such as "github/*", servers, or functions) are always shown and never searched.
    `visible(tool, caller)` decides, in addition to a tool's `roles`, whether a caller may see a tool. It is called once
    per caller and version of the catalog, and again if it has a `version()` that returns a new value.
    `run(tool, arguments, context)` runs tools that have no function of their own. With `learned`, successful calls
    improve later searches. Further options are those of `Settings`.
    """

    def __init__(
        self,
        catalog: Catalog | Iterable[object],
        index: str | ToolIndex | None = None,
        *,
        pinned: Iterable[PinnedTool] = (),
        visible: Visibility | None = None,
        run: ToolRunner | None = None,
        learned: Learned | None = None,
        settings: Settings | None = None,
        **options: Unpack[SearchSettings],
    ) -> None:
        checks.function("visible", visible, "of a Tool and a Caller", none="to show every tool")
        checks.function("run", run, "of a Tool, its arguments and a ToolContext", none="if every tool has one")
        checks.instance("learned", learned, Learned, "a Learned(…)", none="to learn nothing")
        checks.instance("settings", settings, Settings, "Settings, as Settings.of(…) gives", none="for the defaults")
        self.settings = chosen = _settings(settings, index, options)
        self.catalog = tools = _catalog(catalog)
        engine = open_index(chosen.index) if index is None or isinstance(index, str) else index
        _check_index(engine)
        tools.reserve([chosen.search_tool, *(chosen.doors if chosen.mode in IN_TEXT else ())])
        pins = _pin_all(tools, pinned, chosen.max_tools - 2)
        teaches = learned if "learned" in chosen.examples else None
        self.view = View(tools, engine, chosen, pins=pins, visible=visible, run=run, learned=teaches)
        self.registry = SessionRegistry(self.view, most=chosen.max_sessions, seconds=chosen.ttl_seconds)
        # The upkeep holds the view and the pins, not this object, so that nothing keeps a `ToolSearch` alive.
        self._upkeep = IndexUpkeep(
            tools,
            engine,
            pinned=partial(pins.of, tools),
            examples=chosen.examples,
            on_change=partial(_follow, self.view),
        )
        if log.isEnabledFor(logging.INFO):
            why = f", {self.view.choose_mode()[1]}" if chosen.mode == "auto" else ""
            log.info(
                "%d tools, index %r, %d pinned, mode %r%s", len(tools), engine.name, len(self.pinned), chosen.mode, why
            )

    @property
    def index(self) -> ToolIndex:
        return self.view.index

    @property
    def tier(self) -> str:
        """Which index this is, what it understands, and what a better one would bring, in one line."""
        name, index = self.index.name, self.index
        return f"{name}: {index.tier}" if checks.offers(index, TieredIndex) else name

    @property
    def pinned(self) -> tuple[Tool, ...]:
        """The tools that are always shown and never searched."""
        return self.view.pinned

    def suggest(self) -> list[Suggestion]:
        """The tools that need example queries most: their own summary does not find them, or finds a twin first.

        Pinned tools need none, as they are not searched. An index that works in the background is waited for.
        """
        self.wait()
        pinned = {tool.id for tool in self.pinned}
        return suggest(self.catalog, self.index, [tool for tool in self.catalog if tool.id not in pinned])

    @property
    def learned(self) -> Learned | None:
        return self.view.learned

    def find(self, query: str, limit: int = 5, *, caller: Caller | None = None, category: str | None = None) -> Hits:
        """The tools that fit a query, best first; see `toolsearch.find`. Filters apply before ranking."""
        return self.view.find(query, limit, caller=caller, category=category)

    def wait(self, seconds: float | None = None) -> bool:
        """Waits, at most `seconds`, until an index that works in the background has done what it can.

        Returns whether every tool is searched in full. Most indexes work at once, so there is nothing to wait for.
        """
        return self.index.wait(seconds) if checks.offers(self.index, BackgroundIndex) else True

    def session(
        self, conversation_id: str | None = None, *, caller: Caller | None = None, wire: object = None
    ) -> Session:
        """The session of a conversation, created at the first call; without an id, a new private one.

        It is for a loop of your own; an `Agent` keeps the sessions of its conversations. Raises `StateError` if the
        session belongs to another user or tenant. The caller's latest roles apply. `wire` is the module, or the model,
        that the requests are made with: whether it delivers natively decides how found tools reach the model.
        """
        return self.registry.open(conversation_id, caller, wire)

    def restore(self, state: JsonObject | str, *, caller: Caller | None = None, wire: object = None) -> Session:
        """A session from what `Session.export` returned; it replaces a live one with the same id.

        The state is trusted: never take it from a client. Raises `StateError` if it is not an exported session, or
        belongs to another user or tenant.
        """
        return self.registry.restore(state, caller, wire)

    def end_session(self, conversation_id: str) -> bool:
        """Forgets a session, or a conversation of an agent without a store; returns whether there was one.

        Raises `StateError` if the agent is working on the conversation.
        """
        return self.registry.end(conversation_id)

    def on_evict(self, listener: Callable[[Session], None]) -> None:
        """Calls `listener` with each session that is evicted because of age or number, so that it can be exported.

        This includes the sessions of the conversations of agents without a store.
        """
        self.registry.on_evict(listener)

    def conversation_ids(self) -> tuple[str, ...]:
        """The ids of the live sessions, the most recently used last, after those that are too old were evicted.

        The conversations of agents without a store follow, in the same order.
        """
        return self.registry.ids()

    def __repr__(self) -> str:
        return f"ToolSearch({self.catalog!r}, {self.index.name!r}, {len(self.pinned)} pinned)"


def _follow(view: View, change: Change) -> None:
    """Tells the view about a change of the catalog, and forgets what was learned about removed tools."""
    view.note_change(change)
    if view.learned is not None:
        view.learned.forget({t.id for t in change.removed} - {t.id for t in change.added})


def _settings(settings: Settings | None, index: object, options: JsonObject) -> Settings:
    values = settings.model_dump() if settings else {}
    if isinstance(index, str):
        values["index"] = index
    for name in options.keys() - Settings.model_fields.keys():
        if near := get_close_matches(name, ARGUMENTS, 1):
            raise SetupError(f"there is no argument {name!r}; did you mean {near[0]!r}?")
    return Settings.from_mapping({**values, **options})


def _catalog(tools: Catalog | Iterable[object]) -> Catalog:
    if isinstance(tools, str | bytes):
        raise SetupError(
            f"catalog must be a Catalog or a list of tools, not {checks.shown(tools)}; for a file pass "
            f"Catalog.from_file(…)"
        )
    return tools if isinstance(tools, Catalog) else Catalog(tools)


def _check_index(index: object) -> None:
    for needed in ("name", "add", "remove", "search"):
        if not hasattr(index, needed):
            raise SetupError(f"the index {checks.shown(index)} has no {needed!r}; see the ToolIndex protocol")
    if isinstance(index, type):
        raise SetupError(f"index must be a name or an object, as {index.__name__}(…) is, not {index!r}")


def _pin_all(catalog: Catalog, pinned: object, most: int) -> PinnedTools:
    """What to pin: tools as the catalog holds them, each once, and patterns of ids and servers."""
    wanted = [pinned] if isinstance(pinned, str | Tool) or callable(pinned) else pinned
    if not isinstance(wanted, Iterable):
        raise SetupError(f"pinned must be a list of tools, or of their names or ids, not {checks.shown(wanted)}")
    named: dict[str, Tool] = {}
    patterns: list[str] = []
    servers: set[str] = set()
    for each in wanted:
        text = each if isinstance(each, str) and not _names_one(catalog, each) else ""
        if _PATTERN.search(text):
            patterns.append(text)
        elif text in catalog.servers and not catalog.named(text):
            servers.add(text)
        else:
            new = _pin(catalog, each)
            named[new.id] = new
    pins = PinnedTools(tuple(named.values()), tuple(patterns), frozenset(servers), most)
    if (many := len(replace(pins, most=len(catalog)).of(catalog))) > most:
        raise SetupError(f"{many} tools are pinned; with max_tools={most + 2} at most {most} can be")
    return pins


def _names_one(catalog: Catalog, text: str) -> bool:
    """Whether a text is the id or the name of a tool to the letter, even if it looks like a pattern."""
    return text in catalog or any(text == held.name for held in catalog.named(text))


def _pin(catalog: Catalog, wanted: PinnedTool) -> Tool:
    if isinstance(wanted, str):
        named = [catalog[wanted]] if wanted in catalog else catalog.named(wanted)
        if len(named) == 1:
            return named[0]
        near = ", ".join(repr(t.id) for t in named or catalog.near(wanted))
        refused = next((q.reason for q in catalog.quarantined if q.name == wanted), None)
        problem = "is the name of several tools" if named else "is not in the catalog"
        later = f"; tools that come later are pinned by a pattern, as in {f'{wanted}/*'!r}"
        more = f": it was refused, because {refused}" if refused else f"; did you mean {near}?" if near else later
        raise SetupError(f"the pinned tool {wanted!r} {problem}{more}")
    new = wanted if isinstance(wanted, Tool) else tool(wanted)
    added = catalog.add(new)
    if added is None:
        raise SetupError(f"the pinned tool {new.id!r} was refused: {catalog.quarantined[-1].reason}")
    return added
