"""The catalog as each caller may see and search it. All sessions of a `ToolSearch` share one view."""

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
EXTRA_HITS = 20  # hits beyond the limit that are searched too, so that a learned one among them can move up


class View:
    """A catalog as callers may see it. It changes nothing, and is safe to use from several threads.

    What depends on a caller and the state of the catalog is computed once: `visible_ids` returns the same object until
    something changes, so an index can cache what it derives from it. `pinned` tools are never searched.
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
        # Each takes a version as well as the caller, so that a cached value belongs to one state of the catalog.
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
        hits = self._find(query, clamped(limit) + EXTRA_HITS, among)
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
        """The ids that a caller may see, as the same object until something changes; None means all of them."""
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
        """What all cached values depend on, apart from the caller."""
        version = self._visibility_version
        return self.catalog.version, None if version is None else version()

    def _may_see(self, tool: Tool, caller: Caller | None) -> bool:
        if tool.roles and (caller is None or not (tool.roles & caller.roles)):
            return False
        try:
            return self._visible is None or bool(self._visible(tool, caller))
        except Exception:
            log.exception("visible(%r, …) failed: the tool stays hidden", tool.id)
            return False

    def live(self, tool_id: str, caller: Caller | None) -> Tool | None:
        """The current definition of a tool, if the caller may see it."""
        visible = self.visible_ids(caller)
        return self.catalog.get(tool_id) if visible is None or tool_id in visible else None

    def all_visible(self, caller: Caller | None) -> list[Tool]:
        """Every tool a caller may see, sorted by id, so that the order of registration does not matter."""
        ids = self.visible_ids(caller)
        return sorted((t for t in self.catalog if ids is None or t.id in ids), key=lambda t: t.id)

    def _searchable(self, caller: Caller | None) -> list[Tool]:
        pinned = {t.id for t in self.pinned}
        return [t for t in self.all_visible(caller) if t.id not in pinned]

    def places(self, caller: Caller | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The servers and categories with a tool that the caller may see and search for."""
        return self._places(caller, self._version())

    def _find_places(self, caller: Caller | None, _version: Hashable) -> tuple[tuple[str, ...], tuple[str, ...]]:
        tools = self._searchable(caller)
        servers = {t.server for t in tools if t.server}
        categories = {t.category for t in tools if t.category}
        return tuple(sorted(servers)), tuple(sorted(categories))

    def missing(self, caller: Caller | None) -> dict[str, str]:
        """The servers that cannot be reached now, and why; none whose tools are all hidden from the caller."""
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
        """Remembers which tools left which server last, so that `missing` knows which callers could see them."""
        for server in {t.server for t in change.removed if t.server}:
            self._departed[server] = tuple(t for t in change.removed if t.server == server)

    # -- delivery ------------------------------------------------------------------------------------------------

    def choose_mode(self, caller: Caller | None = None) -> tuple[Delivery, str]:
        """The mode for this caller's sessions, and why it was chosen."""
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
        """The number and tokens of the tools that searching keeps out of a request: all but the pinned ones."""
        tools = self._searchable(caller)
        return len(tools), sum(map(definition_tokens, tools))


def _version_of(visible: object) -> Callable[[], Hashable] | None:
    """The `version` function of a `Visibility`, if it has one."""
    if checks.offers(visible, VersionedVisibility) and callable(visible.version):
        return visible.version
    return None
