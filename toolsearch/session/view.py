"""What may be seen: a catalog through its index, for each caller; what every session of a `ToolSearch` stands on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Literal

from toolsearch.calls import Caller, check_caller
from toolsearch.catalog.catalog import Catalog, Change
from toolsearch.catalog.tools import Tool, definition_tokens
from toolsearch.errors import SetupError
from toolsearch.protocols import ToolIndex, ToolRunner, VersionedVisibility, Visibility
from toolsearch.search.index import Hits, clamped, find
from toolsearch.search.learned import Learned, raised
from toolsearch.settings import Settings
from toolsearch.support import checks

__all__ = ["Delivery", "View"]

log = logging.getLogger("toolsearch")

Delivery = Literal["static", "append", "bridge"]
DEEPER = 20  # hits beyond the limit among which what was learned may raise one


class View:
    """A catalog as callers may see it. It changes nothing, and is safe to use from several threads.

    What follows from a caller and the state of the catalog is computed once: `visible_ids` gives the same object until
    something changes, so an index can keep what it made of it. `pinned` tools are never searched.
    """

    def __init__(
        self,
        catalog: Catalog,
        index: ToolIndex,
        settings: Settings,
        *,
        pinned: tuple[Tool, ...] = (),
        visible: Visibility | None = None,
        run: ToolRunner | None = None,
        learned: Learned | None = None,
    ) -> None:
        self.catalog = catalog
        self.index = index
        self.settings = settings
        self.pinned = pinned
        self.run = run
        self.learned = learned
        self._visible = visible
        self._visibility_version = _version_of(visible)
        self._departed: dict[str, tuple[Tool, ...]] = {}  # server -> the tools that left it last
        # Each takes a version besides the caller, so that what is kept is of one state of the catalog.
        self._visible_ids = lru_cache(maxsize=256)(self._find_visible_ids)
        self._places = lru_cache(maxsize=256)(self._find_places)
        self._size = lru_cache(maxsize=256)(self._measure_size)

    # -- searching -----------------------------------------------------------------------------------------------

    def find(self, query: str, limit: int = 5, *, caller: Caller | None = None, category: str | None = None) -> Hits:
        """The tools that fit a query, best first; see `toolsearch.find`. Filters apply before ranking."""
        among = self.visible_ids(caller, category)
        if self.learned is None:
            return self._find(query, limit, among)
        return self._find_learned(self.learned, query, limit, among, caller)

    def _find_learned(
        self, learned: Learned, query: str, limit: int, among: frozenset[str] | None, caller: Caller | None
    ) -> Hits:
        """As `find`, with what the caller's tenant has taught added to the scores."""
        tenant = None if caller is None else caller.tenant
        lessons = learned.lessons(str(query or ""), tenant=tenant, among=self.catalog if among is None else among)
        pinned = {t.id for t in self.pinned}
        taught = {
            tool: lesson
            for i, lesson in lessons.items()
            if i not in pinned and (tool := self.catalog.get(i)) is not None
        }
        if not taught:
            return self._find(query, limit, among)
        hits = self._find(query, clamped(limit) + DEEPER, among)
        return raised(hits, taught, learned.weight, clamped(limit), self.settings.sure_from)

    def _find(self, query: str, limit: int, among: frozenset[str] | None) -> Hits:
        settings = self.settings
        return find(
            self.catalog,
            self.index,
            query,
            limit,
            among,
            sure_from=settings.sure_from,
            nothing_below=settings.nothing_below,
        )

    # -- who sees what -------------------------------------------------------------------------------------------

    def visible_ids(self, caller: Caller | None, category: str | None = None) -> frozenset[str] | None:
        """The ids a caller may see, the same object as long as nothing changes; None where that is all of them."""
        check_caller(caller)
        checks.text("category", category, none="for all")
        return self._visible_ids(caller, category, self._version())

    def _find_visible_ids(
        self, caller: Caller | None, category: str | None, _version: Hashable
    ) -> frozenset[str] | None:
        tools = list(self.catalog)
        wanted = None if category is None else category.casefold()
        seen = [
            t for t in tools if self._may_see(t, caller) and (wanted is None or (t.category or "").casefold() == wanted)
        ]
        return None if len(seen) == len(tools) else frozenset(t.id for t in seen)

    def _version(self) -> Hashable:
        """What everything that is kept depends on, besides the caller."""
        version = self._visibility_version
        return self.catalog.version, None if version is None else version()

    def _may_see(self, held: Tool, caller: Caller | None) -> bool:
        if held.roles and (caller is None or not (held.roles & caller.roles)):
            return False
        try:
            return self._visible is None or bool(self._visible(held, caller))
        except Exception:
            log.exception("visible(%r, …) failed: the tool stays hidden", held.id)
            return False

    def live(self, tool_id: str, caller: Caller | None) -> Tool | None:
        """The tool as the catalog holds it now, if the caller may see it."""
        visible = self.visible_ids(caller)
        return self.catalog.get(tool_id) if visible is None or tool_id in visible else None

    def all_visible(self, caller: Caller | None) -> list[Tool]:
        """Every tool a caller may see, by id: the same list whatever the order of registration."""
        ids = self.visible_ids(caller)
        return sorted((t for t in self.catalog if ids is None or t.id in ids), key=lambda t: t.id)

    def _searchable(self, caller: Caller | None) -> list[Tool]:
        pinned = {t.id for t in self.pinned}
        return [t for t in self.all_visible(caller) if t.id not in pinned]

    def places(self, caller: Caller | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Servers and categories that hold a tool the caller may see and search for."""
        return self._places(caller, self._version())

    def _find_places(self, caller: Caller | None, _version: Hashable) -> tuple[tuple[str, ...], tuple[str, ...]]:
        tools = self._searchable(caller)
        servers = {t.server for t in tools if t.server}
        categories = {t.category for t in tools if t.category}
        return tuple(sorted(servers)), tuple(sorted(categories))

    def missing(self, caller: Caller | None) -> dict[str, str]:
        """Servers that cannot be reached now, and why; not those all of whose tools are hidden from the caller."""
        missing = self.catalog.missing
        if not missing:
            return {}
        seen = {t.server for t in self.all_visible(caller)}
        hidden = set(self.catalog.servers) - seen
        hidden |= {
            server
            for server, tools in self._departed.items()
            if server not in seen and not any(self._may_see(t, caller) for t in tools)
        }
        return {server: why for server, why in missing.items() if server not in hidden}

    def note_change(self, change: Change) -> None:
        """Remembers which tools left which server last, so that `missing` can tell who knew of them."""
        for server in {t.server for t in change.removed if t.server}:
            self._departed[server] = tuple(t for t in change.removed if t.server == server)

    # -- delivery ------------------------------------------------------------------------------------------------

    def choose_mode(self, caller: Caller | None = None) -> tuple[Delivery, str]:
        """How tools are delivered to this caller's sessions, and why."""
        mode, most = self.settings.mode, self.settings.max_tools
        if mode in ("append", "bridge"):
            return mode, "the setting `mode`"
        ids = self.visible_ids(caller)
        total = len(self.catalog if ids is None else ids)
        if mode == "static" and total > most:
            raise SetupError(f"{total} tools cannot all be shown with max_tools={most}; use mode='append' or 'auto'")
        if mode == "static":
            return mode, "the setting `mode`"
        least, budget = self.settings.auto_tools, self.settings.auto_tokens
        many, tokens = self._size(caller, self._version())
        size = f"{many} tools, about {tokens:,} tokens"
        if total <= most and (many < least or tokens < budget):
            return "static", f"{size}: below {least} tools or {budget:,} tokens, showing all costs less than searching"
        if many < least or tokens < budget:
            return "append", f"{size}: few, but {total} in all are more than a request carries ({most})"
        return "append", f"{size}: from {least} tools and {budget:,} tokens on, searching pays"

    def _measure_size(self, caller: Caller | None, _version: Hashable) -> tuple[int, int]:
        """Number and tokens of the tools that searching would keep out of a request: pinned ones are always in it."""
        tools = self._searchable(caller)
        return len(tools), sum(map(definition_tokens, tools))


def _version_of(visible: object) -> Callable[[], Hashable] | None:
    """What says of a `Visibility` whether its answers still hold, if it has that."""
    if isinstance(visible, VersionedVisibility) and callable(visible.version):
        return visible.version
    return None
