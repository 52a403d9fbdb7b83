"""What one conversation's model may see and call, and the answer to each of its calls.

A session owns the found set: it grows in the order of discovery, keeps the bytes of what was shown, and shrinks only
by an announced eviction. What is callable is what the last `tools()` showed.
"""

from __future__ import annotations

import inspect
import logging
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from toolsearch.arguments import ArgumentsError, parse_arguments, validate_arguments
from toolsearch.calls import Caller, Status, ToolCall, ToolContext, ToolResult, clean, text_of
from toolsearch.catalog import Tool
from toolsearch.errors import SetupError, StateError
from toolsearch.functions import context_parameters, is_async
from toolsearch.index import Hits
from toolsearch.names import provider_name
from toolsearch.search_tool import Outcome, Request, bridge_tool, read_request, schema_text, search_tool
from toolsearch.tokens import ESTIMATE

if TYPE_CHECKING:
    from toolsearch.search import ToolSearch

__all__ = ["Decision", "Session", "Shown"]

log = logging.getLogger("toolsearch")

FORMAT = 1  # of `Session.export`


@dataclass(frozen=True, slots=True)
class Shown:
    """A tool as a request carries it: the name the model calls it by, and the definition as it was first shown."""

    name: str
    tool: Tool


@dataclass(frozen=True, slots=True)
class Decision:
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

    def __init__(self, search: ToolSearch, session_id: str, caller: Caller | None) -> None:
        self.id = session_id
        self.caller = caller
        self._search = search
        self._settings = search.settings
        self._lock = threading.RLock()
        self._found: dict[str, Tool] = {}  # as first shown, in the order of discovery
        self._names: dict[str, str] = {}  # tool id -> name, also of tools that have left: a history may hold them
        self._ids: dict[str, str] = {}  # name -> tool id
        self._callable: frozenset[str] = frozenset()
        self._notices: list[str] = []
        self._asked: dict[str, int] = {}  # searches by what they ask
        self._in_vain = 0  # searches in a row that found nothing
        self._told_full = False
        self.mode, self._why = search.chosen_mode(caller)
        self._pinned = [live for t in search.pinned if (live := self._live(t.id)) is not None]
        self._built_in = self._make_built_in()
        for tool in self._pinned:
            self._name(tool)
        self._callable = frozenset(self._names)

    def _make_built_in(self) -> list[Tool]:
        if self.mode == "static":
            return []
        settings = self._settings
        servers, categories = self._search.places(self.caller)
        made = [search_tool(settings.search_tool, servers, categories, settings.queries)]
        return made + ([bridge_tool(settings.call_tool, settings.search_tool)] if self.mode == "bridge" else [])

    def _live(self, tool_id: str) -> Tool | None:
        """The tool as the catalog holds it now, if the caller may see it."""
        visible = self._search.visible_ids(self.caller)
        return self._search.catalog.get(tool_id) if visible is None or tool_id in visible else None

    # -- what the model sees -------------------------------------------------------------------------------------

    def tools(self) -> list[Shown]:
        """What the next request carries: built-in tools, pinned ones, found ones in the order of discovery.

        Fixes what is callable until the next time. What an earlier request carried keeps its bytes and its place.
        """
        with self._lock:
            if self.mode == "static":
                self._reveal_all()
            self._callable = frozenset([*(t.id for t in self._pinned), *self._found])
            in_request = [] if self.mode == "bridge" else list(self._found.values())
            built_in = [Shown(t.name, t) for t in self._built_in]
            return built_in + [Shown(self._names[t.id], t) for t in [*self._pinned, *in_request]]

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
        if self._pinned:
            lines.append("Always listed; call them directly and do not search for them:")
            lines += [f"- {self._names[t.id]}: {t.summary()}" for t in self._pinned]
        return "\n".join(lines)

    def why(self) -> str:
        """Why found tools are delivered the way they are."""
        return f"{self.mode}: {self._why}"

    @property
    def loaded(self) -> tuple[Tool, ...]:
        """The found tools, in the order of discovery."""
        with self._lock:
            return tuple(self._found.values())

    def notices(self) -> list[str]:
        """What changed without the model asking (evicted, gone, changed tools), each told once."""
        with self._lock:
            told, self._notices = self._notices, []
            return told

    # -- calls ---------------------------------------------------------------------------------------------------

    def handle(self, call: ToolCall) -> ToolResult:
        """Answers one call: searches, runs the tool, or says why not and what to do. Nothing a model writes raises."""
        decision = self._settled(call)
        if decision.result is not None:
            return decision.result
        if decision.search is not None:
            return self._searched(decision.call, decision.search)
        try:
            value = self._run(decision)
            if inspect.isawaitable(value):
                _close(value)
                return self._async_met(decision)
        except Exception as error:
            return self._failed(decision, error)
        return self._returned(decision, value)

    async def ahandle(self, call: ToolCall) -> ToolResult:
        """As `handle`, for async code: async tools are awaited, others and searches run in a thread."""
        import asyncio

        decision = await asyncio.to_thread(self._settled, call)
        if decision.result is not None:
            return decision.result
        if decision.search is not None:
            return await asyncio.to_thread(self._searched, decision.call, decision.search)
        try:
            if is_async((decision.tool and decision.tool.run) or self._search.run):
                value = await self._run(decision)
            else:
                value = await asyncio.to_thread(self._run, decision)
                value = await value if inspect.isawaitable(value) else value
        except Exception as error:
            return self._failed(decision, error)
        return self._returned(decision, value)

    def unwrap(self, call: ToolCall) -> ToolCall:
        """A call through the bridge as the call it stands for; any other call as it is."""
        if self.mode != "bridge" or call.name != self._settings.call_tool:
            return call
        try:
            outer = parse_arguments(call.arguments)
        except ArgumentsError:
            return call
        name, inner = outer.get("name"), outer.get("arguments", {})
        if not isinstance(name, str) or not isinstance(inner, str | Mapping | None):
            return call
        return ToolCall(call.id, name, inner)

    def decide(self, call: ToolCall) -> Decision:
        """What is to be done with a call. Changes nothing; `handle` and the loop both act on it."""
        call = self.unwrap(ToolCall(str(call.id), clean(str(call.name)), call.arguments))
        with self._lock:
            if self._built_in and call.name == self._built_in[0].name:
                return self._decide_search(call)
            if call.name in (self._settings.search_tool, self._settings.call_tool):
                return self._decide_built_in(call)
            tool, refusal, reveal = self._resolve(call)
            if tool is None or refusal is not None:
                return Decision(call, refusal, reveal=reveal)
            try:
                arguments = validate_arguments(tool.input_schema, parse_arguments(call.arguments))
            except ArgumentsError as error:
                return Decision(call, self._misfit(call, tool, error), reveal=reveal)
            return Decision(call, tool=tool, arguments=arguments, reveal=reveal)

    def _settled(self, call: ToolCall) -> Decision:
        decision = self.decide(call)
        with self._lock:
            self._reveal(decision.reveal)
        return decision

    def _decide_search(self, call: ToolCall) -> Decision:
        try:
            request = read_request(parse_arguments(call.arguments), self._settings)
        except ArgumentsError as error:
            return Decision(
                call, _answer(call, "invalid_arguments", f"Nothing was searched: {error}. Send valid JSON.")
            )
        if not request.queries:
            text = 'Nothing was searched: there is no query. Pass "queries", each a few words for one capability.'
            return Decision(call, _answer(call, "invalid_arguments", text))
        return Decision(call, search=request)

    def _decide_built_in(self, call: ToolCall) -> Decision:
        if self.mode == "static":
            text = (
                f"{call.name!r} is off: every tool is listed already. Refresh the list of tools and call one of them."
            )
            return Decision(call, _answer(call, "unknown", text))
        if self.mode == "bridge":
            text = f'{call.name!r} did nothing: it needs "name", the tool to call, and "arguments", an object.'
            return Decision(call, _answer(call, "invalid_arguments", text))
        return Decision(call, self._unknown(call))

    def _resolve(self, call: ToolCall) -> tuple[Tool | None, ToolResult | None, tuple[str, ...]]:
        """The live tool a call means, or the answer why there is none; and what to load."""
        live = None
        tool_id = self._ids.get(call.name)
        if tool_id is not None and (live := self._live(tool_id)) is None:
            again = f"search again with {self._settings.search_tool}" if self._built_in else "use a listed tool"
            text = f"{call.name!r} did not run: it is no longer available. To go on, {again}."
            return None, _answer(call, "unknown", text), ()
        if live is None:
            means = [t for t in self._search.catalog.named(call.name) if self._live(t.id) is not None]
            ready = [t for t in means if t.id in self._callable]
            if len(means) > 1 and len(ready) != 1:
                names = ", ".join(repr(self._name_of(t)) for t in means[:3])
                text = f"{call.name!r} did not run: several tools are called so. Use one of the full names: {names}."
                return None, _answer(call, "unknown", text), ()
            if not means:
                return None, self._unknown(call), ()
            live = (ready or means)[0]
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
        name = self._name_of(tool)
        text = f"{what} It is loaded now: call {name!r} in your next step. Its arguments: {schema_text(tool)}"
        return None, _answer(call, "not_loaded", text), (tool.id,)

    def _unknown(self, call: ToolCall) -> ToolResult:
        near = self._search.catalog.near(call.name, 3, self._search.visible_ids(self.caller))
        hint = f" Similar names: {', '.join(repr(self._name_of(t)) for t in near)}." if near else ""
        search = f" or search with {self._settings.search_tool}" if self._built_in else ""
        text = f"{call.name[:100]!r} did not run: there is no such tool.{hint} Use a listed tool{search}."
        return _answer(call, "unknown", text)

    def _misfit(self, call: ToolCall, tool: Tool, error: ArgumentsError) -> ToolResult:
        problems = "; ".join(error.problems[:8])
        text = f"{call.name!r} did not run: {problems}. Correct the arguments and call it again. They are: "
        return _answer(call, "invalid_arguments", text + schema_text(tool))

    # -- running -------------------------------------------------------------------------------------------------

    def _run(self, decision: Decision) -> Any:
        tool, arguments = decision.tool, dict(decision.arguments or {})
        assert tool is not None
        context = ToolContext(self.id, decision.call.id, self.caller)
        if tool.function is not None:
            positional, keywords = tool.function.bind(arguments, context)
            return tool.function.call(*positional, **keywords)
        if tool.run is not None:
            return tool.run(**arguments, **dict.fromkeys(context_parameters(tool.run), context))
        if self._search.run is not None:
            return self._search.run(tool, arguments, context)
        raise SetupError(f"the tool {tool.id!r} has no function: pass run=… with it, or run=… to ToolSearch")

    def _returned(self, decision: Decision, value: Any) -> ToolResult:
        call = decision.call
        if isinstance(value, ToolResult):
            return replace(value, call_id=call.id, name=call.name)
        try:
            return _answer(call, "ok", text_of(value), value)
        except Exception as error:
            text = f"{call.name!r} ran, but what it returned cannot be shown: {_reason(error)}. Do not run it again."
            return _answer(call, "ok", text, value)

    def _failed(self, decision: Decision, error: Exception) -> ToolResult:
        call, tool = decision.call, decision.tool
        if isinstance(error, ArgumentsError) and tool is not None:
            return self._misfit(call, tool, error)
        if isinstance(error, SetupError):
            log.error("%s", error)
        log.debug("tool %r failed", call.name, exc_info=error)
        what = f"{call.name!r} failed: {_reason(error)}."
        text = f"{what} If other arguments can help, call it again; else say what happened."
        return _answer(call, "failed", text)

    def _async_met(self, decision: Decision) -> ToolResult:
        log.error(
            "tool %r is async: use `await session.ahandle(call)` instead of `session.handle(call)`", decision.call.name
        )
        text = (
            f"{decision.call.name!r} did not run: it is async, and the program must use `await session.ahandle(call)`."
        )
        return _answer(decision.call, "failed", text)

    # -- searching -----------------------------------------------------------------------------------------------

    def _searched(self, call: ToolCall, request: Request) -> ToolResult:
        with self._lock:
            times = self._asked[request.key] = self._asked.get(request.key, 0) + 1
            try:
                outcome = self._look_up(request)
            except Exception as error:
                log.exception("the index %r failed", self._search.index.name)
                text = f"The search failed: {_reason(error)}. Use a listed tool, or say what happened."
                return _answer(call, "failed", text)
            self._in_vain = self._in_vain + 1 if outcome.empty else 0
            text = self._braked(outcome, times) or outcome.text()
            return _answer(call, "ok", text, outcome.data)

    def preselect(self, text: str, limit: int | None = None) -> Hits:
        """Searches with the user's own words before the first request and loads what fits; no model call is needed."""
        hits = self._search.find(text, limit or self._settings.results, caller=self.caller)
        if self.mode != "static":
            with self._lock:
                self._reveal([h.tool.id for h in hits])
        return hits

    def _look_up(self, request: Request) -> Outcome:
        """Searches, loads what fits the budget, and says all that is to be said."""
        search = self._search
        bridge = self._settings.call_tool if self.mode == "bridge" else None
        outcome = Outcome(request, {}, call_tool=bridge, missing=search.missing(self.caller))
        category = None
        if (asked := request.category) is not None:
            known = search.places(self.caller)[1]
            category = next((c for c in known if c.casefold() == asked.casefold()), None)
            if category is None:
                listed = ", ".join(map(repr, known[:30])) or "none"
                problem = f"There is no category {asked[:80]!r}; there are: {listed}. Use one of them, or none."
                outcome.answers = [Hits(query, problem=problem) for query in request.queries[:1]]
                return outcome
        outcome.answers = [
            search.find(query, request.limit, caller=self.caller, category=category) for query in request.queries
        ]
        fitting = _in_turn(outcome.answers)
        for tool in [*fitting, *(t for hits in outcome.answers for t in hits.near)]:
            outcome.names[tool.id] = self._name_of(tool)
        held = {*self._found, *(t.id for t in self._pinned)}
        outcome.already = [t for t in fitting if t.id in held]
        self._fill(outcome, [t for t in fitting if t.id not in held])
        outcome.evicted = self._reveal([t.id for t in outcome.new], late=[t.id for t in outcome.already])
        held = {*self._found, *(t.id for t in self._pinned)}
        outcome.already = [t for t in outcome.already if t.id in held]
        return outcome

    def _fill(self, outcome: Outcome, tools: list[Tool]) -> None:
        """Takes tools in order until the answer costs too much or a request cannot carry more; the best one always."""
        request = self._most_tokens()
        outcome.left_out = list(tools)
        while outcome.left_out:
            request -= definition_tokens(outcome.left_out[0])
            outcome.new.append(outcome.left_out.pop(0))
            fits = request >= 0 and len(outcome.new) <= self._room()
            if len(outcome.new) > 1 and not (fits and ESTIMATE.count(outcome.text()) <= self._settings.answer_tokens):
                outcome.left_out.insert(0, outcome.new.pop())
                break

    def _braked(self, outcome: Outcome, times: int) -> str | None:
        """A short answer in place of a long one, where searching again leads nowhere."""
        if times > 1 and outcome.already and not outcome.new:
            names = ", ".join(outcome.names[t.id] for t in outcome.already[:10])
            return (
                f"You have searched for this already. Loaded are: {names}. Call one now, or search for something else."
            )
        if times > 1 and outcome.empty:
            return (
                "You have searched for this already and nothing fits. Use other words, or say that no tool can do it."
            )
        if self._in_vain >= 3:
            return (
                f"{outcome.text()}\nThat was search number {self._in_vain} in a row that found nothing. Stop searching "
                "for this: say that no tool can do it, or ask what else would help."
            )
        return None

    # -- the found set -------------------------------------------------------------------------------------------

    def _reveal(self, ids: Iterable[str], late: Sequence[str] = ()) -> list[str]:
        """Loads tools in the order given, as many as fit; returns the names of those that had to leave for them.

        Those in `late` are needed as well, and leave last.
        """
        held = {*self._found, *(t.id for t in self._pinned)}
        new = [i for i in dict.fromkeys(ids) if i not in held][: self._room()]
        for tool_id in new:
            if (tool := self._search.catalog.get(tool_id)) is not None:
                self._name(tool)
                self._found[tool_id] = tool
        return self._evict(new, late) if new else []

    def _reveal_all(self) -> None:
        """Loads all there is, in the mode "static"; what came later than a request has room for is not shown."""
        held = {*self._found, *(t.id for t in self._pinned)}
        new = [t.id for t in self._search.all_visible(self.caller) if t.id not in held]
        room = max(0, self._room() - len(self._found))
        self._reveal(new[:room])
        if new[room:] and not self._told_full:
            self._told_full = True
            self._notices.append(f"{len(new) - room} tools are not shown: a request carries {self._settings.max_tools}")

    def _room(self) -> int:
        """How many found tools a request can carry."""
        if self.mode == "bridge":
            return self._settings.max_tools
        return self._settings.max_tools - len(self._built_in) - len(self._pinned)

    def _most_tokens(self) -> float:
        """How many tokens of found definitions a request can carry; those of "static" and "bridge" are not counted."""
        return (self.mode == "append" and self._settings.max_tool_tokens) or math.inf

    def _evict(self, keep: Sequence[str] = (), late: Sequence[str] = ()) -> list[str]:
        """Unloads the oldest found tools until the caps hold; those just loaded stay."""
        gone = []
        order = {tool_id: place for place, tool_id in enumerate(self._found)}
        most = self._most_tokens()
        sizes = {i: definition_tokens(t) for i, t in self._found.items()} if most < math.inf else {}
        for tool_id in sorted(self._found.keys() - set(keep), key=lambda i: (i in late, order[i])):
            if len(self._found) <= self._room() and sum(sizes.values()) <= most:
                break
            del self._found[tool_id]
            sizes.pop(tool_id, None)
            gone.append(self._names[tool_id])
        if gone:
            self._notices.append(f"unloaded to stay within the limit: {', '.join(gone)}")
        return gone

    def _name(self, tool: Tool) -> None:
        """Gives a tool its name in this session, once; a name already given to another tool gets a suffix."""
        if tool.id not in self._names:
            name = self._name_of(tool)
            self._names[tool.id] = name
            self._ids[name] = tool.id

    def _name_of(self, tool: Tool) -> str:
        if tool.id in self._names:
            return self._names[tool.id]
        try:
            name = self._search.catalog.provider_name(tool.id)
        except KeyError:  # it has just left the catalog
            name = provider_name(tool.name, tool.id, tool.server, shared=False)
        if self._ids.get(name, tool.id) != tool.id:
            name = provider_name(tool.name, tool.id, tool.server, shared=True)
        return name

    def compacted(self) -> list[str]:
        """Call it after the history was shortened: the provider's cache is lost, so pending changes take effect.

        Tools that are gone or hidden now leave, changed ones show their new definition. Returns what changed.
        """
        with self._lock:
            told = []
            before = [*self._pinned, *self._found.values()]
            live = {t.id: now for t in before if (now := self._live(t.id)) is not None}
            for shown in before:
                if shown.id not in live:
                    told.append(f"{self._names[shown.id]} is no longer available")
                elif live[shown.id] != shown:
                    told.append(f"{self._names[shown.id]} has changed")
            self._pinned = [live[t.id] for t in self._pinned if t.id in live]
            self._found = {i: live[i] for i in self._found if i in live}
            # What an earlier search said is gone from the history, so asking again is no repetition.
            self._asked, self._in_vain = {}, 0
            self._notices += told
            return told

    # -- storing -------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """The session as JSON-ready data, for `ToolSearch.restore`. Keep it where the client cannot change it."""
        with self._lock:
            return {
                "format": FORMAT,
                "id": self.id,
                "mode": self.mode,
                "why": self._why,
                "names": dict(self._names),
                "found": [[i, t.digest] for i, t in self._found.items()],
                "callable": sorted(self._callable),
                "built_in": [[t.description, dict(t.input_schema)] for t in self._built_in],
                "asked": dict(self._asked),
                "in_vain": self._in_vain,
            }

    @classmethod
    def restored(cls, search: ToolSearch, state: Mapping[str, Any], caller: Caller | None) -> Session:
        """The session that gave `state`; `ToolSearch.restore` calls this."""
        session = cls(search, state["id"], caller)
        session._restore(state)
        return session

    def _restore(self, state: Mapping[str, Any]) -> None:
        try:
            if state["mode"] not in ("static", "append", "bridge"):
                raise ValueError(f"the mode {state['mode']!r} is not known")
            self.mode, self._why = state["mode"], state["why"]
            self._built_in = [
                replace(tool, description=description, input_schema=schema)
                for tool, (description, schema) in zip(self._make_built_in(), state["built_in"], strict=True)
            ]
            self._names = dict(state["names"])
            self._ids = {name: tool_id for tool_id, name in self._names.items()}
            for tool in self._pinned:
                self._name(tool)
            for tool_id, digest in state["found"]:
                live = self._live(tool_id)
                if live is None:
                    self._notices.append(f"{self._names[tool_id]} is no longer available and was unloaded")
                    continue
                if live.digest != digest:
                    self._notices.append(f"{self._names[tool_id]} has changed since it was loaded")
                self._found[tool_id] = live
            self._evict()
            self._callable = frozenset(state["callable"]) & frozenset([*self._found, *(t.id for t in self._pinned)])
            self._asked, self._in_vain = dict(state["asked"]), int(state["in_vain"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"this is no exported session: {type(error).__name__}: {error}") from None

    def __repr__(self) -> str:
        return f"Session({self.id!r}, {self.mode}, {len(self._pinned)} pinned, {len(self._found)} found)"


def definition_tokens(tool: Tool) -> int:
    """An estimate of what one definition costs in a request."""
    return ESTIMATE.of([tool.name, tool.description, tool.input_schema]) + 10


def _answer(call: ToolCall, status: Status, text: str, data: Any = None) -> ToolResult:
    return ToolResult(call.id, call.name, status, text, data)


def _reason(error: Exception) -> str:
    """What went wrong, bounded, whatever the exception's own text does."""
    try:
        said = f"{type(error).__name__}: {error}"
    except Exception:
        said = type(error).__name__
    return clean(said)[:2_000].rstrip(".")


def _in_turn(answers: list[Hits]) -> list[Tool]:
    """The tools of all answers, each once: every query's best first, then every query's second, and so on."""
    turns: dict[str, Tool] = {}
    for rank in range(max(map(len, answers), default=0)):
        for hits in answers:
            if rank < len(hits):
                turns.setdefault(hits[rank].tool.id, hits[rank].tool)
    return list(turns.values())


def _close(value: Any) -> None:
    close = getattr(value, "close", None) or getattr(value, "cancel", None)
    if close is not None:
        close()
