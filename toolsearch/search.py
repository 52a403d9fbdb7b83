"""The front door: a catalog, an index over it, and the sessions of all conversations."""

from __future__ import annotations

import json
import logging
import secrets
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from time import monotonic
from typing import Any, Literal

from toolsearch.calls import Caller, ToolContext, check_caller, clean
from toolsearch.catalog import Catalog, Change, Tool, tool
from toolsearch.errors import SetupError, StateError
from toolsearch.found import definition_tokens
from toolsearch.index import Hits, ToolIndex, clamped, find, open_index
from toolsearch.learned import Learned, raised
from toolsearch.options import function, instance, shown, text
from toolsearch.session import Session
from toolsearch.settings import Settings

__all__ = ["ToolSearch"]

log = logging.getLogger("toolsearch")

ARGUMENTS = ("pinned", "visible", "run", "learned", "settings")  # those of `ToolSearch` that are no settings
DEEPER = 20  # hits beyond the limit among which what was learned may raise one


class ToolSearch:
    """Binds a catalog to an index, keeps both in step, and makes sessions.

    `index` is a name ("keyword", "regex", …) or an object with the `ToolIndex` protocol. `pinned` tools (names, ids,
    or functions) are always shown and never searched. `visible(tool, caller)` decides beside a tool's `roles` what a
    caller may see; it is asked once per caller and version of the catalog, and again when its own `version()`, if it
    has one, gives something else. `run(tool, arguments, context)` runs tools that have no function of their own.
    `learned` lets use teach (None: it does not). Further options are those of `Settings`.
    """

    def __init__(
        self,
        catalog: Catalog | Iterable[Any],
        index: str | ToolIndex | None = None,
        *,
        pinned: Iterable[Any] = (),
        visible: Callable[[Tool, Caller | None], bool] | None = None,
        run: Callable[[Tool, dict[str, Any], ToolContext], Any] | None = None,
        learned: Learned | None = None,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        function("visible", visible, "of a Tool and a Caller", none="to show every tool")
        function("run", run, "of a Tool, its arguments and a ToolContext", none="where every tool has a function")
        instance("learned", learned, Learned, "a Learned(…)", none="to learn nothing")
        instance("settings", settings, Settings, "Settings, as Settings.of(…) gives", none="for the defaults")
        given = settings.model_dump() if settings else {}
        if isinstance(index, str):
            given["index"] = index
        for name in options.keys() - Settings.model_fields.keys():
            if near := get_close_matches(name, ARGUMENTS, 1):
                raise SetupError(f"there is no argument {name!r}; did you mean {near[0]!r}?")
        self.settings = Settings.of(**(given | options))
        if isinstance(catalog, str | bytes):
            raise SetupError(
                f"catalog must be a Catalog or a list of tools, not {shown(catalog)}; for a file pass "
                f"toolsearch.files.read_tools(…)"
            )
        self.catalog = catalog if isinstance(catalog, Catalog) else Catalog(catalog)
        self.run = run
        self.learned = learned if "learned" in self.settings.examples else None
        self._visible = visible
        self._lock = threading.RLock()
        self._sessions: OrderedDict[str, tuple[Session, float]] = OrderedDict()
        self._evicted: list[Session] = []  # not yet told
        self._on_evict: list[Callable[[Session], None]] = []
        self._gone: dict[str, tuple[Tool, ...]] = {}  # server -> the tools that left it last
        self.index: ToolIndex = open_index(self.settings.index) if index is None or isinstance(index, str) else index
        for needed in ("name", "add", "remove", "search"):
            if not hasattr(self.index, needed):
                raise SetupError(f"the index {shown(self.index)} has no {needed!r}; see the ToolIndex protocol")
        if isinstance(self.index, type):
            raise SetupError(f"index must be a name or an object, as {self.index.__name__}(…) is, not {self.index!r}")
        bridge = [self.settings.call_tool] if self.settings.mode == "bridge" else []
        self.catalog.reserve([self.settings.search_tool, *bridge])
        wanted = [pinned] if isinstance(pinned, str | Tool) or callable(pinned) else pinned
        if not isinstance(wanted, Iterable):
            raise SetupError(f"pinned must be a list of tools, or of their names or ids, not {shown(wanted)}")
        self.pinned: tuple[Tool, ...] = tuple({t.id: t for t in map(self._pin, wanted)}.values())
        most = self.settings.max_tools - 2
        if len(self.pinned) > most:
            raise SetupError(
                f"{len(self.pinned)} tools are pinned; with max_tools={self.settings.max_tools} at most {most} can be"
            )
        self._seen = lru_cache(maxsize=256)(self._compute_seen)
        self._places = lru_cache(maxsize=256)(self._compute_places)
        self._sizes = lru_cache(maxsize=256)(self._compute_sizes)
        self._keep_in_step()

    # -- searching -----------------------------------------------------------------------------------------------

    def find(self, query: str, limit: int = 5, *, caller: Caller | None = None, category: str | None = None) -> Hits:
        """The tools that fit a query, best first; see `toolsearch.index.find`. Filters apply before ranking."""
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
        told = {
            tool: lesson
            for i, lesson in lessons.items()
            if i not in pinned and (tool := self.catalog.get(i)) is not None
        }
        if not told:
            return self._find(query, limit, among)
        hits = self._find(query, clamped(limit) + DEEPER, among)
        return raised(hits, told, learned.weight, clamped(limit), self.settings.found)

    def _find(self, query: str, limit: int, among: frozenset[str] | None) -> Hits:
        settings = self.settings
        return find(self.catalog, self.index, query, limit, among, found=settings.found, none=settings.none)

    def visible_ids(self, caller: Caller | None, category: str | None = None) -> frozenset[str] | None:
        """The ids a caller may see, the same object as long as nothing changes; None where that is all of them."""
        check_caller(caller)
        text("category", category, none="for all")
        return self._seen(caller, category, self._version())

    def _compute_seen(self, caller: Caller | None, category: str | None, version: Any) -> frozenset[str] | None:
        del version  # part of the cache's key
        tools = list(self.catalog)
        wanted = None if category is None else category.casefold()
        seen = [
            t for t in tools if self._may_see(t, caller) and (wanted is None or (t.category or "").casefold() == wanted)
        ]
        return None if len(seen) == len(tools) else frozenset(t.id for t in seen)

    def _version(self) -> Any:
        """What everything that is kept about visibility depends on, beside the caller."""
        version = getattr(self._visible, "version", None)
        return self.catalog.version, version() if callable(version) else None

    def _may_see(self, held: Tool, caller: Caller | None) -> bool:
        if held.roles and (caller is None or not (held.roles & caller.roles)):
            return False
        try:
            return self._visible is None or bool(self._visible(held, caller))
        except Exception:
            log.exception("visible(%r, …) failed: the tool stays hidden", held.id)
            return False

    def all_visible(self, caller: Caller | None) -> list[Tool]:
        """Every tool a caller may see, by id: the same list whatever the order of registration."""
        ids = self.visible_ids(caller)
        return sorted((t for t in self.catalog if ids is None or t.id in ids), key=lambda t: t.id)

    def places(self, caller: Caller | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Servers and categories that hold a tool the caller may see and search for."""
        return self._places(caller, self._version())

    def _compute_places(self, caller: Caller | None, version: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
        del version  # part of the cache's key
        pinned = {t.id for t in self.pinned}
        tools = [t for t in self.all_visible(caller) if t.id not in pinned]
        return tuple(sorted({t.server for t in tools if t.server})), tuple(
            sorted({t.category for t in tools if t.category})
        )

    def missing(self, caller: Caller | None) -> dict[str, str]:
        """Servers that cannot be reached now, and why; not those all of whose tools are hidden from the caller."""
        missing = self.catalog.missing
        if not missing:
            return {}
        seen = {t.server for t in self.all_visible(caller)}
        hidden = set(self.catalog.servers) - seen
        hidden |= {
            server
            for server, tools in self._gone.items()
            if server not in seen and not any(self._may_see(t, caller) for t in tools)
        }
        return {server: why for server, why in missing.items() if server not in hidden}

    # -- sessions ------------------------------------------------------------------------------------------------

    def session(self, session_id: str | None = None, *, caller: Caller | None = None) -> Session:
        """The session of a conversation, made at the first call; without an id, a fresh private one.

        Raises `StateError` if the session belongs to another user or tenant; the roles given last hold.
        """
        check_caller(caller)
        text("session_id", session_id, none="for a fresh session")
        with self._lock:
            kept = self._sessions.get(session_id) if session_id is not None else None
            if kept is None:
                session = Session(self, clean(session_id or "") or secrets.token_urlsafe(16), caller)
            else:
                session = kept[0]
                session.acts_for(caller)
            self._keep(session)  # the one asked for never leaves by its age
        self._tell_evicted()
        return session

    def restore(self, state: Mapping[str, Any] | str, *, caller: Caller | None = None) -> Session:
        """A session from what `Session.export` gave; it takes the place of a live one with its id.

        The state is trusted: never take it from a client. Raises `StateError` for what is none, and for
        the session of another user or tenant.
        """
        check_caller(caller)
        try:
            held = json.loads(state) if isinstance(state, str) else state
        except (ValueError, RecursionError) as error:
            raise StateError(f"this is no exported session: {error}") from None
        if not isinstance(held, Mapping) or not isinstance(held.get("id"), str):
            raise StateError("this is no exported session: it has no id")
        mine = caller or Caller()
        if (held.get("user", mine.user), held.get("tenant", mine.tenant)) != (mine.user, mine.tenant):
            raise StateError(f"the session {held['id']!r} belongs to another caller")
        with self._lock:
            session = self._keep(Session.restored(self, held, caller))
        self._tell_evicted()
        return session

    def end_session(self, session_id: str) -> bool:
        """Forgets a session; says whether there was one."""
        text("session_id", session_id)
        with self._lock:
            return self._sessions.pop(session_id, None) is not None

    def on_evict(self, listener: Callable[[Session], None]) -> None:
        """Calls `listener` with each session that leaves by age or number, so that it can be exported."""
        function("listener", listener, "that takes a Session")
        self._on_evict.append(listener)

    @property
    def sessions(self) -> tuple[str, ...]:
        """Ids of the live sessions, the one used last at the end."""
        with self._lock:
            self._drop_idle()
            ids = tuple(self._sessions)
        self._tell_evicted()
        return ids

    def _keep(self, session: Session) -> Session:
        self._sessions[session.id] = session, monotonic()
        self._sessions.move_to_end(session.id)
        self._drop_idle()
        most = self.settings.max_sessions
        while most is not None and len(self._sessions) > most:
            self._evict(next(iter(self._sessions)))
        return session

    def _drop_idle(self) -> None:
        ttl = self.settings.ttl_seconds
        while ttl is not None and self._sessions:
            oldest, (_, used) = next(iter(self._sessions.items()))
            if monotonic() - used <= ttl:
                break
            self._evict(oldest)

    def _evict(self, session_id: str) -> None:
        self._evicted.append(self._sessions.pop(session_id)[0])

    def _tell_evicted(self) -> None:
        """Outside the lock: a listener may ask for sessions itself."""
        with self._lock:
            evicted, self._evicted = self._evicted, []
        for session in evicted:
            for listener in self._on_evict:
                try:
                    listener(session)
                except Exception:
                    log.exception("a listener for evicted sessions failed")

    # -- delivery ------------------------------------------------------------------------------------------------

    def chosen_mode(self, caller: Caller | None = None) -> tuple[Literal["static", "append", "bridge"], str]:
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
        many, tokens = self._sizes(caller, self._version())
        size = f"{many} tools, about {tokens:,} tokens"
        if total <= most and (many < least or tokens < budget):
            return "static", f"{size}: below {least} tools or {budget:,} tokens, showing all costs less than searching"
        if many < least or tokens < budget:
            return "append", f"{size}: few, but {total} in all are more than a request carries ({most})"
        return "append", f"{size}: from {least} tools and {budget:,} tokens on, searching pays"

    def _compute_sizes(self, caller: Caller | None, version: Any) -> tuple[int, int]:
        """Number and tokens of the tools that searching would keep out of a request: pinned ones are always in it."""
        del version  # part of the cache's key
        pinned = {t.id for t in self.pinned}
        tools = [t for t in self.all_visible(caller) if t.id not in pinned]
        return len(tools), sum(map(definition_tokens, tools))

    # -- inside --------------------------------------------------------------------------------------------------

    def _pin(self, wanted: Any) -> Tool:
        if isinstance(wanted, str):
            named = [self.catalog[wanted]] if wanted in self.catalog else self.catalog.named(wanted)
            if len(named) == 1:
                return named[0]
            near = ", ".join(repr(t.id) for t in named or self.catalog.near(wanted))
            refused = next((q.reason for q in self.catalog.quarantined if q.name == wanted), None)
            problem = "is the name of several tools" if named else "is not in the catalog"
            more = f": it was refused, because {refused}" if refused else f"; did you mean {near}?" if near else ""
            raise SetupError(f"the pinned tool {wanted!r} {problem}{more}")
        made = wanted if isinstance(wanted, Tool) else tool(wanted)
        held = self.catalog.add(made)
        if held is None:
            raise SetupError(f"the pinned tool {made.id!r} was refused: {self.catalog.quarantined[-1].reason}")
        return held

    def _keep_in_step(self) -> None:
        """Puts the catalog into the index, and every later change of it; pinned tools stay out."""
        pinned = {t.id for t in self.pinned}
        me = weakref.ref(self)
        self._tidied = False

        def changed(change: Change) -> None:
            search = me()
            if search is None:
                end()
                return
            for server in {t.server for t in change.removed if t.server}:
                search._gone[server] = tuple(t for t in change.removed if t.server == server)
            if search.learned is not None:
                search.learned.forget({t.id for t in change.removed} - {t.id for t in change.added})
            try:
                added = [t for t in change.added if t.id not in pinned]
                stays = {t.id for t in added}  # `add` replaces them: so no search meets a moment without them
                search.index.remove([t.id for t in change.removed if t.id not in stays])
                search._tidy()
                search._add(added)
            except SetupError:
                log.exception("the index %r has not taken over a change of the catalog", search.index.name)

        end = self.catalog.subscribe(changed)
        try:
            searched = [t for t in self.catalog if t.id not in pinned]
            self._tidy()
            self._add(searched)
        except BaseException:
            end()
            raise

    def _tidy(self) -> None:
        """Once: what an index kept of tools that have left goes. A catalog that is still empty says nothing of that."""
        if self._tidied:
            return
        pinned = {t.id for t in self.pinned}
        if searched := [t.id for t in self.catalog if t.id not in pinned]:
            if callable(keep_only := getattr(self.index, "keep_only", None)):
                keep_only(searched)
            self._tidied = True

    def _add(self, tools: Sequence[Tool]) -> None:
        """Indexes tools; where the index refuses a batch, one by one, so that a bad one costs only itself.

        A `SetupError` is none of a tool's: it is raised.
        """
        try:
            self.index.add([self._searched(each) for each in tools])
        except SetupError:
            raise
        except Exception:
            if len(tools) == 1:
                log.exception("the index %r cannot take %r: it is found by its name only", self.index.name, tools[0].id)
                self.index.remove([tools[0].id])  # what it held of it before
            for each in tools if len(tools) > 1 else ():
                self._add([each])

    def _searched(self, held: Tool) -> Tool:
        """The tool as it is indexed: with those example queries that the setting `examples` wants."""
        wanted = self.settings.examples
        if held.examples and "author" not in wanted:
            held = replace(held, examples=())
        return replace(held, enriched=()) if held.enriched and "enriched" not in wanted else held

    def __repr__(self) -> str:
        return f"ToolSearch({self.catalog!r}, {self.index.name!r}, {len(self.pinned)} pinned)"
