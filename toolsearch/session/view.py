"""The catalog as each caller may see and search it. All sessions of a `ToolSearch` share one view."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from functools import lru_cache, partial
from typing import NamedTuple

from toolsearch.calls import Caller, check_caller, native_of
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.changes import Change
from toolsearch.catalog.names import escaped
from toolsearch.catalog.roster import Roster
from toolsearch.catalog.tools import Tool
from toolsearch.protocols import ServerVisibility, ToolIndex, ToolRunner, VersionedVisibility, Visibility
from toolsearch.search.abilities import BatchIndex
from toolsearch.search.index import Hits, clamped, find
from toolsearch.search.learned import Learned
from toolsearch.search.lessons import raised
from toolsearch.session.delivery import Delivery, Searchable, Ways, choose
from toolsearch.session.pinning import PinnedTools
from toolsearch.session.visible_tools import VisibleTools, may_see, visible_tools
from toolsearch.settings import Settings
from toolsearch.support import checks
from toolsearch.support.redaction import excerpt

__all__ = ["Delivery", "View"]

REASON_CHARACTERS = 200  # of why a server cannot be reached, for a model
EXTRA_HITS = 20  # hits beyond the limit that are searched too, so that a learned one among them can move up


class _State(NamedTuple):
    """A state of the catalog and of the rules, and what each caller may see of it, computed once."""

    roster: Roster
    rules: Hashable
    pinned: tuple[Tool, ...]
    visible: Callable[[Caller | None, str | None], VisibleTools]


class View:
    """A catalog as callers may see it. It changes nothing, and is safe to use from several threads.

    What a caller may see of a state of the catalog is computed once: `visible_ids` returns the same object until
    something changes, so an index can cache what it derives from it. `pinned` tools are never searched.
    """

    def __init__(
        self,
        catalog: Catalog,
        index: ToolIndex,
        settings: Settings,
        *,
        pins: PinnedTools | None = None,
        visible: Visibility | None = None,
        run: ToolRunner | None = None,
        learned: Learned | None = None,
    ) -> None:
        self.catalog = catalog
        self.index = index
        self.settings = settings
        self._pins = pins or PinnedTools()
        self.run = run
        self.learned = learned
        self._visible = visible
        self._visibility_version = _version_of(visible)
        self._departed: dict[str, tuple[Tool, ...]] = {}  # server -> the tools that left it last
        self._state: _State | None = None
        self._without: frozenset[str] = frozenset()

    def without(self, ids: Iterable[str]) -> View:
        """This view without some tools, as one conversation has it where a provider refuses them."""
        narrowed = copy(self)
        narrowed._without, narrowed._state = self._without.union(ids), None
        return narrowed

    # -- searching -----------------------------------------------------------------------------------------------

    def prepare(self, queries: Sequence[str]) -> None:
        """Tells the index which queries follow, as some are quicker if they know them together."""
        if len(queries) > 1 and checks.offers(self.index, BatchIndex):
            self.index.prepare(queries)

    def find(self, query: str, limit: int = 5, *, caller: Caller | None = None, category: str | None = None) -> Hits:
        """The tools that fit a query, best first; see `toolsearch.find`. Filters apply before ranking."""
        seen = self.visible(caller, category)
        if self.learned is None:
            return self._find(query, limit, seen)
        return self._find_learned(self.learned, query, limit, seen, caller)

    def _find_learned(
        self, learned: Learned, query: str, limit: int, seen: VisibleTools, caller: Caller | None
    ) -> Hits:
        """As `find`, with what the caller's tenant has taught added to the scores."""
        tenant = None if caller is None else caller.tenant
        among = seen.roster.tools if seen.ids is None else seen.ids
        lessons = learned.lessons(str(query or ""), tenant=tenant, among=among)
        taught = {
            tool: lesson for i, lesson in lessons.items() if i not in seen.pinned and (tool := seen.get(i)) is not None
        }
        if not taught:
            return self._find(query, limit, seen)
        hits = self._find(query, clamped(limit) + EXTRA_HITS, seen)
        return raised(hits, taught, learned.weight, clamped(limit), self.settings.sure_from)

    def _find(self, query: str, limit: int, seen: VisibleTools) -> Hits:
        settings = self.settings
        return find(
            seen.roster,
            self.index,
            query,
            limit,
            seen.ids,
            sure_from=settings.sure_from,
            nothing_below=settings.nothing_below,
        )

    # -- who sees what -------------------------------------------------------------------------------------------

    def visible(self, caller: Caller | None, category: str | None = None) -> VisibleTools:
        """What a caller may see now, as the same object until something changes."""
        check_caller(caller)
        checks.text("category", category, none="for all")
        return self._now().visible(caller, category)

    @property
    def pinned(self) -> tuple[Tool, ...]:
        """The tools that are listed in every request; those that were named, though they may have left the catalog."""
        return self._now().pinned

    def _now(self) -> _State:
        """What belongs to the present state of the catalog and of the rules."""
        roster, version = self.catalog.roster, self._visibility_version
        rules = None if version is None else version()
        state = self._state
        if state is None or state.roster is not roster or state.rules != rules:
            pinned = self._pins.of(roster)
            visible = partial(visible_tools, roster, self.may_see, frozenset(t.id for t in pinned))
            # It belongs to this state, and leaves with it.
            self._state = state = _State(roster, rules, pinned, lru_cache(maxsize=256)(visible))
        return state

    def visible_ids(self, caller: Caller | None, category: str | None = None) -> frozenset[str] | None:
        """The ids that a caller may see now; None means all tools of this state of the catalog."""
        return self.visible(caller, category).ids

    def may_see(self, tool: Tool, caller: Caller | None) -> bool:
        """Whether a caller may see this very tool."""
        return tool.id not in self._without and may_see(tool, caller, self._visible)

    def live(self, tool_id: str, caller: Caller | None) -> Tool | None:
        """The current definition of a tool, if the caller may see it."""
        return self.visible(caller).get(tool_id)

    def missing(self, caller: Caller | None) -> dict[str, str]:
        """The servers that cannot be reached now and why, without secrets; only those that the caller may see."""
        told = self.catalog.missing_for(caller)
        return {server: excerpt(why, REASON_CHARACTERS) for server, why in told.items() if self._sees(server, caller)}

    def _sees(self, server: str, caller: Caller | None) -> bool:
        """Whether a caller may see a tool of a server: one of now, or of before; if none is known, any at all."""
        seen = self.visible(caller)
        if any(tool.server == server for tool in seen.all):
            return True
        known = self._departed.get(server, ())
        if known or server in seen.roster.places[0]:
            return any(self.may_see(tool, caller) for tool in known)
        if checks.offers(self._visible, ServerVisibility):
            return bool(self._visible.sees_server(server, caller))
        return self.may_see(Tool(id=f"{escaped(server)}/", name="", server=server), caller)

    def note_change(self, change: Change) -> None:
        """Remembers which tools left which server last, so that `missing` knows which callers could see them."""
        for server in {t.server for t in change.removed if t.server}:
            self._departed[server] = tuple(t for t in change.removed if t.server == server)

    # -- delivery ------------------------------------------------------------------------------------------------

    def choose_mode(self, caller: Caller | None = None, wire: object = None) -> tuple[Delivery, str]:
        """The mode for this caller's sessions, and why it was chosen; `wire` is None where it is not known."""
        settings, seen = self.settings, self.visible(caller)
        not_native, taken = self.not_native(wire, caller), [door for door in settings.doors if seen.exact(door)]
        # A function of the program that asks a model says nothing of the wire behind it.
        is_known = any(hasattr(wire, name) for name in ("native", "tools_for"))
        if not is_known and settings.mode != "native":
            not_native = "the session was not told its wire"
        not_bridge = f"a tool has the name {taken[0]!r} (see the setting `call_tool`)" if taken else ""
        ways = Ways(not_native, not_bridge, is_wire_known=is_known)
        return choose(settings, Searchable(*seen.size, len(seen)), ways)

    def not_native(self, wire: object, caller: Caller | None) -> str:
        """Why a wire cannot deliver natively; empty if it can, or is not known."""
        if wire is None:
            return ""
        if (native := native_of(wire)) is None:
            why = getattr(wire, "not_native", "")
            return f"{_named(wire)} cannot deliver natively" + (f": {why}" if why else "")
        most = native.most_declared
        if native.declares and most is not None and (many := len(self.visible(caller))) > most:
            return f"{many:,} tools are more than {_named(wire)} declares ({most:,})"
        return ""


def _version_of(visible: object) -> Callable[[], Hashable] | None:
    """The `version` function of a `Visibility`, if it has one."""
    if checks.offers(visible, VersionedVisibility) and callable(visible.version):
        return visible.version
    return None


def _named(wire: object) -> str:
    """What to call a wire, a module, or a model in a sentence."""
    name = getattr(wire, "__name__", None) or type(wire).__name__
    return f"the wire {str(name).rpartition('.')[2]!r}"
