"""A session is one conversation: the tools its model may see and call, and the answer to each call.

A session holds the found tools in the order of discovery, each with the exact definition that was shown. Tools leave
only by an eviction that is announced. The model can call the tools that the last `tools()` returned.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, repeat

from toolsearch.calls import Caller, LoadedTool, ToolCall, ToolResult, check_caller, native_of
from toolsearch.catalog.tools import Shown, Tool
from toolsearch.errors import StateError
from toolsearch.schemas.parallel_calls import inner_calls, is_parallel
from toolsearch.session.call_plans import CallPlan, CallPlanner, check_arguments
from toolsearch.session.instructions import Instructions
from toolsearch.session.loaded import LoadedTools
from toolsearch.session.performing import Performer
from toolsearch.session.preselection import Preselection, query_of
from toolsearch.session.replies import PlannedReply, list_of
from toolsearch.session.searching import SearchLog
from toolsearch.session.view import Delivery, View
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.large_values import is_large
from toolsearch.support.text import clean

__all__ = ["Session"]

log = logging.getLogger("toolsearch")

FORMAT = 1  # of `Session.export`
_SEND = "call session.tools(), or tools_for of a wire, before each request, and send what it gives"


class Session:
    """One conversation. `ToolSearch.session` creates it. Safe to use from several threads."""

    def __init__(self, view: View, conversation_id: str, caller: Caller | None, wire: object = None) -> None:
        check_caller(caller)
        self.id = conversation_id
        self.caller = caller
        self._settings = view.settings
        self._wire = wire
        self._lock = threading.RLock()
        self._tools = LoadedTools(view, caller)
        self._searching = SearchLog(view, self._tools)
        self._preselection = Preselection(view.settings, self._tools, self._searching)
        self._planner = CallPlanner(view, self._tools)
        mode, self._why = view.choose_mode(caller, wire)
        self._tools.native = native_of(wire)
        self._tools.deliver(mode)
        self._performer = Performer(conversation_id, view, self._tools, self._searching, self._lock)
        self._instructions = Instructions(view, self._tools)

    @property
    def mode(self) -> Delivery:
        """How found tools reach the model."""
        return self._tools.mode

    def rebind_caller(self, caller: Caller | None) -> None:
        """Updates the caller's roles; raises `StateError` for another user or tenant."""
        check_caller(caller)
        mine, theirs = self.caller or Caller(), caller or Caller()
        if (mine.user, mine.tenant) != (theirs.user, theirs.tenant):
            raise StateError(f"session {self.id!r} belongs to another caller")
        with self._lock:
            self.caller = self._tools.caller = caller

    def use_wire(self, wire: object) -> None:
        """Goes on with this wire, or model. If it cannot deliver natively, found tools are listed from now on."""
        with self._lock:
            self._wire, self._tools.native = wire, native_of(wire)
            if self.mode == "native" and (problem := self._tools.view.not_native(wire, self.caller)):
                self._why = problem
                self._tools.deliver("append")

    # -- what the model sees -------------------------------------------------------------------------------------

    def tools(self) -> list[Shown]:
        """The tools of the next request: built-in ones, pinned ones, and found ones in the order of discovery.

        The model can call these tools until the next time, so ask once for each request; `shown` only reads. A tool
        that an earlier request carried keeps its exact definition and its place.
        """
        with self._lock:
            return self._tools.show()

    def deferred(self) -> list[Shown]:
        """In the mode "native", all tools that can be found, for a wire that declares them; else none.

        Like what is shown, they keep their bytes and order; tools that come later stand at the end.
        """
        with self._lock:
            return self._tools.deferred()

    def shown(self) -> list[Shown]:
        """The tools that the model is shown, and can call: what `tools` gave last. Changes nothing."""
        with self._lock:
            return self._tools.shown()

    def instructions(self) -> str:
        """The note for the system message, empty in the mode "static".

        It is the same throughout the session, unless the caller loses the right to see what it names.
        """
        with self._lock:
            return self._instructions.text()

    @property
    def has_directory(self) -> bool:
        """Whether the instructions say what there is: see the setting `directory`."""
        return self._instructions.has_directory

    def why(self) -> str:
        """The mode, and why it was chosen."""
        return f"{self.mode}: {self._why}"

    @property
    def loaded(self) -> tuple[Tool, ...]:
        """The found tools, in the order of discovery."""
        with self._lock:
            return tuple(self._tools.found.values())

    def notices(self) -> list[str]:
        """What changed without a request of the model (tools evicted, gone or changed); each is reported once."""
        with self._lock:
            notices, self._tools.notices = self._tools.notices, []
            return notices

    # -- calls ---------------------------------------------------------------------------------------------------

    def handle(self, call: ToolCall, *, cancelled: threading.Event | None = None) -> ToolResult:
        """Answers one call: searches, runs the tool, or says why it cannot. Nothing that a model writes raises.

        The tool gets `cancelled` in its `ToolContext`.
        """
        return self.handle_all([call], cancelled=cancelled)[0]

    async def ahandle(self, call: ToolCall, *, cancelled: threading.Event | None = None) -> ToolResult:
        """As `handle`, for async code: async tools are awaited; other tools and searches run in their own threads."""
        return (await self.ahandle_all([call], cancelled=cancelled))[0]

    def handle_all(self, calls: Iterable[ToolCall], *, cancelled: threading.Event | None = None) -> list[ToolResult]:
        """Answers the calls of one reply, one after the other, in the model's order.

        Whether a call can run is decided for all of them first, from what the model was shown: a tool that one of them
        finds cannot be called by another one.
        """
        reply = self._decide_reply(calls)
        plans = (self._renewed(plan) if place else plan for place, plan in enumerate(reply.plans))
        return reply.results([self.perform(plan, cancelled=cancelled) for plan in plans])

    async def ahandle_all(
        self, calls: Iterable[ToolCall], *, cancelled: threading.Event | None = None
    ) -> list[ToolResult]:
        """As `handle_all`, for async code: the calls run together, unless one is of a tool marked `alone`.

        Searches run one after the other all the same, so that their tools are listed in the model's order.
        """
        from toolsearch.support.threads import in_thread_if  # which brings asyncio

        calls = list_of(calls)
        are_large = any(is_large(getattr(call, "arguments", None)) for call in calls)
        reply = await in_thread_if(are_large, lambda: self._decide_reply(calls))
        results: dict[int, ToolResult] = {}

        async def work(places: Iterable[int]) -> None:
            for place in places:
                plan = self._renewed(reply.plans[place]) if place else reply.plans[place]
                results[place] = await self.aperform(plan, cancelled=cancelled)

        jobs = reply.jobs()
        if len(jobs) == 1:
            await work(jobs[0])
        elif jobs:
            import asyncio

            await asyncio.gather(*map(work, jobs))
        return reply.results(results[place] for place in sorted(results))

    def inner_calls(self, call: ToolCall) -> list[ToolCall]:
        """The calls inside a call of `multi_tool_use.parallel`, which models of OpenAI make now and then.

        The list is empty for every other call, and for one that cannot be read: `handle` says what to do instead. The
        first of them has the id of the call, the others have none.
        """
        checks.instance("call", call, ToolCall, "a ToolCall, as calls_in(reply) of a wire gives them")
        if call.cut or not is_parallel(call.name) or self._tools.id_of(call.name) is not None:
            return []
        ids = chain([call.id], repeat(""))
        inner = inner_calls(call.name, call.arguments)
        return [ToolCall(i, name, given) for i, (name, given) in zip(ids, inner, strict=False)]

    def decide(self, call: ToolCall) -> CallPlan:
        """Decides what to do with a call; `perform` does it. Changes nothing."""
        checks.instance("call", call, ToolCall, "a ToolCall, as calls_in(reply) of a wire gives them")
        with self._lock:
            plan = self._planner.decide(call)
        return check_arguments(plan)

    def decide_again(self, call: ToolCall, tool_id: str, *, checked: str = "") -> CallPlan:
        """The plan for a call that was decided before, with the tool of this id as it is now.

        `checked` is the digest of the definition that `call.arguments` were checked against. If the tool has another
        definition now, they are checked again. An empty `tool_id` means the search tool.
        """
        with self._lock:
            if not tool_id:
                return self._planner.decide_search(call)
            plan = self._planner.decide_again(call, tool_id, checked)
        return check_arguments(plan)

    def perform(self, plan: CallPlan, *, cancelled: threading.Event | None = None) -> ToolResult:
        """Does what the plan says, and nothing else: gives its answer, searches, or runs its tool."""
        return self._performer.perform(plan, cancelled)

    async def aperform(self, plan: CallPlan, *, cancelled: threading.Event | None = None) -> ToolResult:
        """As `perform`, for async code."""
        return await self._performer.aperform(plan, cancelled)

    def _decide_reply(self, calls: Iterable[ToolCall]) -> PlannedReply:
        """What to do with the calls of a reply, all decided from the same state; then loads what they load."""
        asked = list_of(calls)
        inner = [self.inner_calls(call) for call in asked]
        with self._lock:
            single = chain.from_iterable(held or [call] for call, held in zip(asked, inner, strict=True))
            plans = [self._planner.decide(call) for call in single]
            for plan in plans:
                self._tools.reveal(plan.reveal)
            self._note_refused(plans)
        return PlannedReply(asked, inner, [check_arguments(plan) for plan in plans])

    def _note_refused(self, plans: Iterable[CallPlan]) -> None:
        refused = {i for p in plans if p.result is not None and p.result.status == "not_loaded" for i in p.reveal}
        for tool_id in refused & self._tools.ids():
            self._tools.refused[tool_id] += 1
            if self._tools.refused[tool_id] == 2:
                log.warning("%r was found, but its definition is not sent to the model: %s", tool_id, _SEND)

    def _renewed(self, plan: CallPlan) -> CallPlan:
        """The plan with the tool as it is now: it was decided before other calls of the reply ran."""
        if plan.tool is None:
            return plan
        call = ToolCall(plan.call.id, plan.call.name, plan.arguments)
        return replace(self.decide_again(call, plan.tool.id, checked=plan.tool.digest), reveal=plan.reveal)

    def with_found(self, result: ToolResult, ids: Iterable[str]) -> ToolResult:
        """The result with the loaded ones of these tools as what it made callable."""
        return self._performer.with_found(result, ids)

    # -- without a call ------------------------------------------------------------------------------------------

    def live(self, tool_id: str) -> Tool | None:
        """The current definition of a tool, if the caller may see it."""
        return self._tools.live(tool_id)

    def load(self, ids: Iterable[str]) -> None:
        """Loads tools for the next request without a search; ids that the caller may not see are skipped."""
        wanted = checks.names("ids", ids, "ids")
        with self._lock:
            self._tools.reveal([i for i in wanted if self._tools.live(i) is not None])

    def unload(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Takes found tools out of the next request; `set_aside` is for those that a provider refuses.

        Returns the ids of those that were there; pinned tools stay. A search, or a call, loads them again. In the mode
        "static" every tool that the caller may see is listed again.
        """
        leaving = checks.names("ids", ids, "ids")
        with self._lock:
            return self._tools.unload(leaving)

    def set_aside(self, names: Iterable[str], why: str = "") -> tuple[str, ...]:
        """Hides tools from this conversation for good, because a provider refuses their definitions.

        `names` are ids, or names that the model calls; see `toolsearch.wires.refused_tool`. Pinned tools and those of
        the mode "static" leave as well; no search finds them again, and no call runs them. Returns their ids; the model
        reads about it in `notices`.
        """
        given = checks.names("names", names, "names")
        checks.text("why", why)
        with self._lock:
            return self._tools.set_aside(given, why)

    @property
    def refused(self) -> dict[str, str]:
        """The tools that were set aside in this conversation: their ids, and why."""
        with self._lock:
            return dict(self._tools.aside)

    def preselects(self, limit: int | None = None) -> bool:
        """Whether `preselect` searches at all, with this limit or the setting `preselect`."""
        return self._preselection.most(limit) > 0

    def preselect(self, text: str, limit: int | None = None) -> str:
        """Searches with the user's own words before the first request of a turn, and loads what fits.

        Returns the text to add to the user's message: the names of the tools, in "bridge" with their schemas; empty if
        nothing new fits. `limit` is the most tools, in place of the setting `preselect`.
        """
        checks.text("text", text)
        checks.whole("limit", limit, 0, none="for the setting `preselect`")
        most, query = self._preselection.most(limit), query_of(text)
        if not (most and query):
            return ""
        try:
            hits = self._tools.view.find(query, most, caller=self.caller)
            with self._lock:
                return self._preselection.deliver(hits, most)
        except Exception:
            log.exception("the pre-selection failed: the model has to search itself")
            return ""

    def brought_with_message(self, ids: Iterable[str]) -> tuple[LoadedTool, ...]:
        """The definitions of pre-selected tools that come with the user's message, where the wire can do that."""
        with self._lock:
            native = self._tools.native
            return self._tools.bring(ids) if native is not None and native.with_messages else ()

    def after_compaction(self) -> list[str]:
        """Call this after the history was shortened: the provider's cache is lost, so pending changes take effect.

        Tools that are gone or hidden leave, changed tools get their new definition, and the mode "auto" is decided
        again. Returns what changed.
        """
        with self._lock:
            changes = self._tools.compact()
            if self._settings.mode in ("auto", "search"):
                mode, self._why = self._tools.view.choose_mode(self.caller, self._wire)
                if mode != self.mode:
                    changes.append(f"tools are delivered as {mode!r} now, not as {self.mode!r}: {self._why}")
                    self._tools.found.clear()
                    self._tools.deliver(mode)
            self._searching.forget()
            self._instructions.write_anew()
            self._tools.notices += changes
            return changes

    # -- storing -------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, object]:
        """The session as JSON-ready data, for `ToolSearch.restore`. Keep it where the client cannot change it."""
        with self._lock:
            caller = self.caller or Caller()
            return {
                "format": FORMAT,
                "id": self.id,
                "user": caller.user,
                "tenant": caller.tenant,
                "mode": self.mode,
                "why": self._why,
                **self._tools.export(),
                **self._searching.export(),
                **self._instructions.export(),
            }

    @classmethod
    def from_state(
        cls,
        view: View,
        state: JsonObject,
        caller: Caller | None,
        called: Iterable[str] = (),
        wire: object = None,
    ) -> Session:
        """The session from what `export` returned; `ToolSearch.restore` calls this.

        `called` are the ids of tools that were called with success since: what led to them has been taught.
        """
        session = cls(view, clean(state["id"]), caller, wire)
        if (version := state.get("format")) != FORMAT:
            raise StateError(f"this session has the format {version!r}; this version reads {FORMAT}")
        try:
            session._why = state["why"]
            session._tools.restore(state)
            session._searching.restore(state)
            session._instructions.restore(state)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise StateError(f"this is not an exported session: {type(error).__name__}: {error}") from None
        for tool_id in called:
            session._searching.trail.pop_queries(tool_id)
        if wire is not None:
            session.use_wire(wire)
        return session

    def __repr__(self) -> str:
        return f"Session({self.id!r}, {self.mode}, {len(self._tools.pinned)} pinned, {len(self._tools.found)} found)"

    def _repr_html_(self) -> str:
        from toolsearch.session.session_html import session_html

        with self._lock:
            title, through = f"Session {self.id!r}, {self.why()}", self._settings.call_tool
            return session_html(title, self.mode, self.shown(), self.loaded, through)
