"""What one conversation's model may see and call, and the answer to each of its calls.

A session owns the found set: it grows in the order of discovery, keeps the bytes of what was shown, and shrinks only
by an announced eviction. What is callable is what the last `tools()` showed.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import math
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from toolsearch.calls import STATUSES, Caller, Status, ToolCall, ToolContext, ToolResult, check_caller
from toolsearch.catalog.functions import adrained, context_parameters, drained, in_async, is_async
from toolsearch.catalog.names import base_name, squashed
from toolsearch.catalog.tools import Shown, Tool
from toolsearch.errors import SetupError, StateError
from toolsearch.schemas.validation import ArgumentsError, parse_arguments, validate_arguments
from toolsearch.search.index import Hits
from toolsearch.session.loaded import LoadedTools
from toolsearch.session.meta_tool import Request, bridge_tool, read_request, schema_text, search_tool
from toolsearch.session.searching import SearchLog
from toolsearch.session.view import View
from toolsearch.support import checks
from toolsearch.support.text import clean, text_of

__all__ = ["CallPlan", "Session"]

log = logging.getLogger("toolsearch")

FORMAT = 1  # of `Session.export`
_PROGRAM = re.compile(r"(?:functions|tools|default_api)[._:/]+")


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What is to be done with a call. Exactly one of `result` (answer it), `search` and `tool` (run it) is set.

    `reveal` are tools to load for the next step.
    """

    call: ToolCall
    result: ToolResult | None = None
    search: Request | None = None
    tool: Tool | None = None
    arguments: Mapping[str, Any] | None = None
    reveal: tuple[str, ...] = ()


class Session:
    """One conversation. Made by `ToolSearch.session`; safe to use from several threads."""

    def __init__(self, view: View, conversation_id: str, caller: Caller | None) -> None:
        check_caller(caller)
        self.id = conversation_id
        self.caller = caller
        self._view = view
        self._settings = view.settings
        self._lock = threading.RLock()
        self._told_full = False
        self._tools = LoadedTools(view, caller)
        self._searching = SearchLog(view, self._tools)
        self._callable = self._tools.ids()
        mode, self._why = view.choose_mode(caller)
        self._deliver(mode)

    def _deliver(self, mode: Literal["static", "append", "bridge"]) -> None:
        """Sets the mode, and the built-in tools and caps that go with it."""
        settings = self._settings
        self.mode = mode
        self._searching.bridge = mode == "bridge"
        self._built_in = []
        if mode != "static":
            self._built_in.append(search_tool(settings.search_tool, *self._view.places(self.caller), settings.queries))
        if mode == "bridge":
            self._built_in.append(bridge_tool(settings.call_tool, settings.search_tool))
        # In "bridge" found tools are in no request, so only their number is bounded.
        others = 0 if mode == "bridge" else len(self._built_in) + len(self._tools.pinned)
        self._tools.room = settings.max_tools - others
        self._tools.most_tokens = (mode == "append" and settings.max_tool_tokens) or math.inf

    def rebind_caller(self, caller: Caller | None) -> None:
        """Takes the roles the caller has now; raises `StateError` for another user or tenant."""
        check_caller(caller)
        mine, theirs = self.caller or Caller(), caller or Caller()
        if (mine.user, mine.tenant) != (theirs.user, theirs.tenant):
            raise StateError(f"the session {self.id!r} belongs to another caller")
        with self._lock:
            self.caller = self._tools.caller = caller

    # -- what the model sees -------------------------------------------------------------------------------------

    def tools(self) -> list[Shown]:
        """What the next request carries: built-in tools, pinned ones, found ones in the order of discovery.

        Fixes what is callable until the next time. What an earlier request carried keeps its bytes and its place.
        """
        with self._lock:
            tools = self._tools
            if self.mode == "static" and (beyond := tools.reveal_all()) and not self._told_full:
                self._told_full = True
                tools.notices.append(f"not shown: {beyond} tools; a request carries {self._settings.max_tools}")
            self._callable = tools.ids()
            in_request = () if self.mode == "bridge" else tools.found.values()
            built_in = [Shown(t.name, t, built_in=True) for t in self._built_in]
            return built_in + [Shown(tools.name_of(t), t) for t in [*tools.pinned, *in_request]]

    def instructions(self) -> str:
        """The note for the system message; the same text throughout the session. Empty in the mode "static"."""
        if self.mode == "static":
            return ""
        name = self._settings.search_tool
        lines = [
            f"More tools exist than are listed. Find them with {name}: when no listed tool fits, search for what is "
            f"missing, one short query per capability, several in one call. "
            + (f"Then call what was found through {self._settings.call_tool}. " if self.mode == "bridge" else "")
            + "If nothing fits, search once more in other words; if that finds nothing either, say so."
        ]
        if pinned := self._tools.pinned:
            lines.append("Always listed; call them directly and do not search for them:")
            lines += [f"- {self._tools.name_of(t)}: {t.summary()}" for t in pinned]
        return "\n".join(lines)

    def why(self) -> str:
        """Why found tools are delivered the way they are."""
        return f"{self.mode}: {self._why}"

    @property
    def loaded(self) -> tuple[Tool, ...]:
        """The found tools, in the order of discovery."""
        with self._lock:
            return tuple(self._tools.found.values())

    def notices(self) -> list[str]:
        """What changed without the model asking (evicted, gone, changed tools), each told once."""
        with self._lock:
            told, self._tools.notices = self._tools.notices, []
            return told

    # -- calls ---------------------------------------------------------------------------------------------------

    def handle(self, call: ToolCall, *, cancelled: threading.Event | None = None) -> ToolResult:
        """Answers one call: searches, runs the tool, or says why not and what to do. Nothing a model writes raises.

        The tool sees `cancelled` in its `ToolContext`.
        """
        decision = self._settled(call)
        if decision.result is not None:
            return decision.result
        if decision.search is not None:
            return self._searched(decision.call, decision.search)
        value, error = self._attempt(decision, cancelled)
        if error is not None:
            return self._failed(decision, error)
        if inspect.isawaitable(value) or hasattr(value, "__anext__"):
            _close(value)
            return self._async_met(decision)
        return self._returned(decision, value)

    async def ahandle(self, call: ToolCall, *, cancelled: threading.Event | None = None) -> ToolResult:
        """As `handle`, for async code: async tools are awaited, others and searches run in a thread of their own."""
        import asyncio

        from toolsearch.support.threads import in_thread

        decision = self._settled(call)
        if decision.result is not None:
            return decision.result
        if decision.search is not None:
            request = decision.search
            return await in_thread(lambda: self._searched(decision.call, request))
        if is_async(in_async((decision.tool and decision.tool.run) or self._view.run)):
            value, error = self._attempt(decision, cancelled, in_async)
        else:
            value, error = await in_thread(lambda: self._attempt(decision, cancelled))
        try:
            if inspect.isawaitable(value):
                value = drained(await value)
            if hasattr(value, "__anext__"):
                value = await adrained(value)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as raised:
            task = asyncio.current_task()
            if isinstance(raised, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            error = raised
        return self._returned(decision, value) if error is None else self._failed(decision, error)

    def unwrap(self, call: ToolCall) -> ToolCall:
        """A call through the bridge as the call it stands for; any other call as it is."""
        if self.mode != "bridge" or call.name != self._settings.call_tool:
            return call
        try:
            outer = parse_arguments(call.arguments)
        except ArgumentsError:
            return call
        name, inner = outer.get("name"), outer.get("arguments")
        # Anything misnamed would be lost, and the tool run without it.
        fits = (
            outer.keys() <= {"name", "arguments"} and isinstance(name, str) and isinstance(inner, str | Mapping | None)
        )
        return ToolCall(call.id, str(name), inner) if fits else call

    def decide(self, call: ToolCall) -> CallPlan:
        """What is to be done with a call. Changes nothing; `handle` and the loop both act on it."""
        checks.instance("call", call, ToolCall, "a ToolCall, as calls_in(reply) of a wire gives them")
        call = self.unwrap(ToolCall(str(call.id), clean(str(call.name)), call.arguments))
        with self._lock:
            if self._built_in and call.name == self._built_in[0].name:
                return self._decide_search(call)
            if self._built_in and self._is_search(call.name):
                return self._decide_search(ToolCall(call.id, self._built_in[0].name, call.arguments))
            if call.name == self._settings.search_tool or (
                self.mode == "bridge" and call.name == self._settings.call_tool
            ):
                return self._decide_built_in(call)
            tool, refusal, reveal = self._resolve(call)
            if tool is None or refusal is not None:
                return CallPlan(call, refusal, reveal=reveal)
            try:
                arguments = validate_arguments(tool.input_schema, parse_arguments(call.arguments))
            except ArgumentsError as error:
                return CallPlan(call, self._misfit(call, tool, error), reveal=reveal)
            return CallPlan(call, tool=tool, arguments=arguments, reveal=reveal)

    def _is_search(self, name: str) -> bool:
        """Whether a name is the search tool's in another spelling, and no tool's."""
        return squashed(base_name(name)) == squashed(self._built_in[0].name) and not self._view.catalog.named(name)

    def _settled(self, call: ToolCall) -> CallPlan:
        decision = self.decide(call)
        with self._lock:
            self._tools.reveal(decision.reveal)
        return decision

    def _decide_search(self, call: ToolCall) -> CallPlan:
        try:
            request = read_request(parse_arguments(call.arguments), self._settings)
        except ArgumentsError as error:
            return CallPlan(
                call, _answer(call, "invalid_arguments", f"Nothing was searched: {error}. Send valid JSON.")
            )
        if not request.queries:
            text = 'Nothing was searched: there is no query. Pass "queries", each a few words for one capability.'
            return CallPlan(call, _answer(call, "invalid_arguments", text))
        return CallPlan(call, search=request)

    def _decide_built_in(self, call: ToolCall) -> CallPlan:
        if self.mode == "static":
            text = (
                f"{call.name!r} is off: every tool is listed already. Refresh the list of tools and call one of them."
            )
            return CallPlan(call, _answer(call, "unknown", text))
        try:
            given = ", ".join(map(repr, parse_arguments(call.arguments))) or "nothing"
        except ArgumentsError as error:
            given = str(error)
        text = (
            f'{call.name!r} did nothing: it needs "name", the tool to call, and "arguments", an object, and no more; '
            f"it got {given[:300]}. Call it again with these two."
        )
        return CallPlan(call, _answer(call, "invalid_arguments", text))

    def _resolve(self, call: ToolCall) -> tuple[Tool | None, ToolResult | None, tuple[str, ...]]:
        """The live tool a call means, or the answer why there is none; and what to load."""
        live = None
        tool_id = self._tools.id_of(call.name)
        if tool_id is not None and (live := self._tools.live(tool_id)) is None:
            again = f"search again with {self._settings.search_tool}" if self._built_in else "use a listed tool"
            text = f"{call.name!r} did not run: it is no longer available. To go on, {again}."
            return None, _answer(call, "unknown", text), ()
        if live is None:
            named = self._view.catalog.named
            # Models put a program's namespace before a name; a server's is not dropped, it may be another's tool.
            plain = _PROGRAM.sub("", call.name)
            means = [t for t in named(call.name) or named(plain) if self._tools.live(t.id) is not None]
            ready = [t for t in means if t.id in self._callable]
            spelled = [t for t in ready if squashed(self._tools.name_of(t)) == squashed(call.name)]
            if len(means) > 1 and len(spelled) != 1:
                names = ", ".join(repr(self._tools.name_of(t)) for t in means[:3])
                text = f"{call.name!r} did not run: several tools are called so. Use one of the full names: {names}."
                return None, _answer(call, "unknown", text), ()
            if not means:
                return None, self._unknown(call), ()
            live = (spelled or means)[0]
        if live.id in self._callable:
            return live, None, ()
        return self._resolve_not_loaded(call, live)

    def _resolve_not_loaded(self, call: ToolCall, tool: Tool) -> tuple[Tool | None, ToolResult | None, tuple[str, ...]]:
        policy = self._settings.not_loaded
        if policy == "run":
            return tool, None, (tool.id,)
        what = f"{call.name!r} did not run: it exists but was not loaded."
        if policy == "refuse":
            way = f"Load it with {self._settings.search_tool} first" if self._built_in else "Use a listed tool"
            return None, _answer(call, "not_loaded", f"{what} {way}."), ()
        name = self._tools.name_of(tool)
        text = f"{what} It is loaded now: call {name!r} in your next step. Its arguments: {schema_text(tool)}"
        return None, _answer(call, "not_loaded", text), (tool.id,)

    def _unknown(self, call: ToolCall) -> ToolResult:
        near = self._view.catalog.near(call.name, 3, self._view.visible_ids(self.caller))
        hint = f" Similar names: {', '.join(repr(self._tools.name_of(t)) for t in near)}." if near else ""
        search = f" or search with {self._settings.search_tool}" if self._built_in else ""
        text = f"{call.name[:100]!r} did not run: there is no such tool.{hint} Use a listed tool{search}."
        return _answer(call, "unknown", text)

    def _misfit(self, call: ToolCall, tool: Tool, error: ArgumentsError) -> ToolResult:
        problems = "; ".join(error.problems[:8])
        end = "" if problems.endswith("?") else "."
        text = f"{call.name!r} did not run: {problems}{end} Correct the arguments and call it again. They are: "
        return _answer(call, "invalid_arguments", text + schema_text(tool))

    # -- running -------------------------------------------------------------------------------------------------

    def _attempt(
        self, decision: CallPlan, cancelled: threading.Event | None, way: Callable[[Any], Any] = lambda call: call
    ) -> tuple[Any, BaseException | None]:
        """What the tool returned, or what it raised: whatever that is, it is an answer. Only Ctrl-C is none."""
        try:
            return drained(self._run(decision, cancelled, way)), None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return None, error

    def _run(self, decision: CallPlan, cancelled: threading.Event | None, way: Callable[[Any], Any]) -> Any:
        tool, arguments = decision.tool, dict(decision.arguments or {})
        assert tool is not None
        flag = cancelled or threading.Event()
        context = ToolContext(self.id, decision.call.id, self.caller, _digest(decision), flag)
        if tool.function is not None:
            positional, keywords = tool.function.bind(arguments, context)
            return way(tool.function.call)(*positional, **keywords)
        if tool.run is not None:
            return way(tool.run)(**arguments, **dict.fromkeys(context_parameters(tool.run), context))
        if self._view.run is not None:
            return way(self._view.run)(tool, arguments, context)
        raise SetupError(f"the tool {tool.id!r} has no function: pass run=… with it, or run=… to ToolSearch")

    def _returned(self, decision: CallPlan, value: Any) -> ToolResult:
        call = decision.call
        made = value if isinstance(value, ToolResult) else _answer(call, "ok", value, value)
        try:
            text = text_of(made.content)
        except Exception as error:
            text = f"{call.name!r} ran, but what it returned cannot be shown: {_reason(error)}. Do not run it again."
        status = made.status if made.status in STATUSES else "failed"
        result = replace(made, call_id=call.id, name=call.name, status=status, content=text)
        if result.ok and decision.tool is not None:
            self._teach(decision.tool)
        return result

    def _teach(self, tool: Tool) -> None:
        """A call that ended well: what was searched for before it is what the tool is for."""
        learned = self._view.learned
        with self._lock:
            led = self._searching.trail.pop_queries(tool.id)
        if learned is None:
            return
        caller = self.caller or Caller()
        try:
            for query, times in led:
                learned.teach(query, tool.id, tenant=caller.tenant, user=caller.user, times=times)
        except Exception:
            log.exception("nothing was learned from the call of %r", tool.id)

    def _failed(self, decision: CallPlan, error: BaseException) -> ToolResult:
        call, tool = decision.call, decision.tool
        if isinstance(error, ArgumentsError) and tool is not None:
            return self._misfit(call, tool, error)
        if isinstance(error, SetupError):
            log.error("%s", error)
            return _answer(call, "failed", f"{call.name!r} cannot run here: {_reason(error)}. Use another tool.")
        log.debug("tool %r failed", call.name, exc_info=error)
        what = f"{call.name!r} failed: {_reason(error)}."
        text = f"{what} If other arguments can help, call it again; else say what happened."
        return _answer(call, "failed", text, error)

    def _async_met(self, decision: CallPlan) -> ToolResult:
        name = decision.call.name
        log.error("tool %r is async: use `await session.ahandle(call)`, or `arun` of an agent", name)
        text = (
            f"{name!r} did not run: it is async, and the program must use `await session.ahandle(call)`, or `arun` of "
            "an agent."
        )
        return _answer(decision.call, "failed", text)

    # -- searching -----------------------------------------------------------------------------------------------

    def _searched(self, call: ToolCall, request: Request) -> ToolResult:
        try:
            outcome = self._searching.look_up(request)  # without the lock: other calls do not wait for an index
            with self._lock:
                self._searching.take(outcome)
        except Exception as error:
            log.exception("the index %r failed", self._view.index.name)
            text = f"The search failed: {_reason(error)}. Use a listed tool, or say what happened."
            return _answer(call, "failed", text)
        with self._lock:
            return _answer(call, "ok", self._searching.told(outcome), outcome.data)

    def resolve(self, name: str) -> Tool | None:
        """The tool that a call by this name would run now; None where it would run none."""
        with self._lock:
            return self._resolve(ToolCall("", name))[0]

    def live(self, tool_id: str) -> Tool | None:
        """A tool as the catalog holds it now, if the caller may see it."""
        return self._tools.live(tool_id)

    def load(self, ids: Iterable[str]) -> None:
        """Loads tools without a search, for the next request; ids the caller may not see are left out."""
        wanted = checks.names("ids", ids, "ids")
        with self._lock:
            self._tools.reveal([i for i in wanted if self._tools.live(i) is not None])

    def preselect(self, text: str, limit: int | None = None) -> Hits:
        """Searches with the user's own words before the first request and loads what fits; no model call is needed."""
        hits = self._view.find(text, limit or self._settings.results, caller=self.caller)
        if self.mode != "static":
            with self._lock:
                self._searching.load(hits)
        return hits

    def after_compaction(self) -> list[str]:
        """Call it after the history was shortened: the provider's cache is lost, so pending changes take effect.

        Tools that are gone or hidden now leave, changed ones show their new definition, and the mode "auto" is
        decided again. Returns what changed.
        """
        with self._lock:
            told = self._tools.compact()
            if self._settings.mode == "auto":
                mode, self._why = self._view.choose_mode(self.caller)
                if mode != self.mode:
                    told.append(f"tools are delivered as {mode!r} now, not as {self.mode!r}: {self._why}")
                    self._tools.found.clear()
                    self._deliver(mode)
            self._searching.forget()
            self._tools.notices += told
            return told

    # -- storing -------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
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
                "callable": sorted(self._callable),
                "built_in": [[t.description, dict(t.input_schema)] for t in self._built_in],
                **self._searching.export(),
            }

    @classmethod
    def from_state(cls, view: View, state: Mapping[str, Any], caller: Caller | None) -> Session:
        """The session that gave `state`; `ToolSearch.restore` calls this."""
        session = cls(view, state["id"], caller)
        session._restore(state)
        return session

    def _restore(self, state: Mapping[str, Any]) -> None:
        if (version := state.get("format")) != FORMAT:
            raise StateError(f"the format {version!r} of this session is not known; {FORMAT} is")
        try:
            if state["mode"] not in ("static", "append", "bridge"):
                raise ValueError(f"the mode {state['mode']!r} is not known")
            self._why = state["why"]
            self._deliver(state["mode"])
            self._built_in = [
                replace(tool, description=description, input_schema=schema)
                for tool, (description, schema) in zip(self._built_in, state["built_in"], strict=True)
            ]
            self._tools.restore(state)
            self._callable = frozenset(state["callable"])
            self._searching.restore(state)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise StateError(f"this is no exported session: {type(error).__name__}: {error}") from None

    def __repr__(self) -> str:
        return f"Session({self.id!r}, {self.mode}, {len(self._tools.pinned)} pinned, {len(self._tools.found)} found)"


def _answer(call: ToolCall, status: Status, text: str, data: Any = None) -> ToolResult:
    return ToolResult(call.id, call.name, status, text, data)


def _digest(decision: CallPlan) -> str:
    """Of what is called with what: providers give two calls of a conversation the same id."""
    name = decision.tool.id if decision.tool else decision.call.name
    said = json.dumps([name, decision.arguments], sort_keys=True, default=str)
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16]


def _reason(error: BaseException) -> str:
    """What went wrong, bounded, whatever the exception's own text does."""
    try:
        said = f"{type(error).__name__}: {error}"
    except Exception:
        said = type(error).__name__
    return clean(said)[:2_000].rstrip(".")


def _close(value: Any) -> None:
    close = getattr(value, "close", None) or getattr(value, "cancel", None)
    if close is not None:
        close()
