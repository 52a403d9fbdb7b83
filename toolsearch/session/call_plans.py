"""Decides what to do with a call, from what the model was shown. Deciding changes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from toolsearch.calls import Status, ToolCall, ToolResult
from toolsearch.calls.answers import CALL_NAME_CHARACTERS, answer
from toolsearch.catalog.names import folded, without_program
from toolsearch.catalog.tools import Tool
from toolsearch.schemas.parallel_calls import is_parallel
from toolsearch.schemas.validation import ArgumentsError, parse_arguments, validate_arguments
from toolsearch.session.delivery import IN_TEXT
from toolsearch.session.loaded import LoadedTools
from toolsearch.session.meta_tool import SearchRequest, read_request, schema_text
from toolsearch.session.view import View
from toolsearch.session.visible_tools import VisibleTools
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import bounded, clean

__all__ = ["CallPlan", "CallPlanner", "check_arguments", "misfit"]

_PROBLEM_CHARACTERS = 4_000  # of all problems in one answer
# Some models put a marker of their chat template behind a name: `create_event<|channel|>json`.
_LEFTOVER = re.compile(r"\s*<[|\uff5c].*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What to do with a call. Exactly one of `result` (give this answer), `search` and `tool` (run it) is set.

    `arguments` are the checked arguments for the tool. `reveal` are the ids of tools to load for the next step.
    """

    call: ToolCall
    result: ToolResult | None = None
    search: SearchRequest | None = None
    tool: Tool | None = None
    arguments: JsonObject | None = None
    reveal: tuple[str, ...] = ()


class CallPlanner:
    """Plans the calls of one conversation. Not thread-safe by itself: its session holds a lock."""

    def __init__(self, view: View, tools: LoadedTools) -> None:
        self._settings = view.settings
        self._tools = tools

    def decide(self, call: ToolCall) -> CallPlan:
        """The plan for a call as a model wrote it, however odd it is; `check_arguments` comes next."""
        if call.cut:
            return _cut(call)
        call = self._cleaned(str(call.id), call.name, call.arguments)
        outer, call = call.name, self._unwrap(call)
        search, is_in_text = self._tools.search_tool, self._tools.mode in IN_TEXT
        if search is not None and (call.name == search.name or self._is_search(call.name)):
            return self.decide_search(ToolCall(call.id, search.name, call.arguments))
        if call.name == self._settings.search_tool or (is_in_text and call.name in self._settings.doors):
            return _answer(call, *self._misused_built_in(call))
        tool = self._resolve(call)
        if isinstance(tool, CallPlan):
            return tool
        if is_in_text and outer == self._settings.call_tool != (door := self._settings.door_of(tool.kind)):
            text = (
                f"{call.name!r} did not run: it may change something. Call it through {door}, with the same arguments."
            )
            return _answer(call, "invalid_arguments", text)
        loads = () if tool.id in self._tools.callable else (tool.id,)
        return CallPlan(call, tool=tool, reveal=loads)

    def decide_again(self, call: ToolCall, tool_id: str, checked: str) -> CallPlan:
        """The plan for a call that was decided before, with the tool of this id as it is now.

        `call.arguments` were checked against the definition with the digest `checked`. If the tool has another
        definition now, they are checked again.
        """
        tool = self._tools.live(tool_id)
        if tool is None:
            return self._gone(call)
        if checked == tool.digest and isinstance(call.arguments, Mapping):
            return CallPlan(call, tool=tool, arguments=call.arguments)
        return CallPlan(call, tool=tool)

    def decide_search(self, call: ToolCall) -> CallPlan:
        """The plan for a call of the search tool."""
        try:
            request = read_request(parse_arguments(call.arguments), self._settings)
        except ArgumentsError as error:
            return _answer(call, "invalid_arguments", f"Nothing was searched: {error}. Send valid JSON.")
        if not request.queries:
            text = 'Nothing was searched: there is no query. Pass "queries", each a few words for one capability.'
            return _answer(call, "invalid_arguments", text)
        return CallPlan(call, search=request)

    # -- what a call means ---------------------------------------------------------------------------------------

    def _unwrap(self, call: ToolCall) -> ToolCall:
        """A call through the bridge as the call it stands for; any other call as it is."""
        if self._tools.mode not in IN_TEXT or call.name not in self._settings.doors:
            return call
        try:
            outer = parse_arguments(call.arguments)
        except ArgumentsError:
            return call
        name, inner = outer.get("name"), outer.get("arguments")
        # Otherwise an argument with a wrong name would be lost, and the tool would run without it.
        fits = (
            outer.keys() <= {"name", "arguments"} and isinstance(name, str) and isinstance(inner, str | Mapping | None)
        )
        return self._cleaned(call.id, name, inner) if fits else call

    @property
    def _visible(self) -> VisibleTools:
        return self._tools.view.visible(self._tools.caller)

    def _cleaned(self, call_id: str, name: object, arguments: str | JsonObject | None) -> ToolCall:
        """The call without what a chat template left behind its name, unless that is part of a tool's name."""
        written = clean(str(name)[:CALL_NAME_CHARACTERS])
        plain = _LEFTOVER.sub("", written)
        is_whole = plain in ("", written) or self._tools.id_of(written) or self._visible.exact(written)
        return ToolCall(call_id, written if is_whole else plain, arguments)

    def _is_search(self, name: str) -> bool:
        """Whether a name is another spelling of the search tool's name, and not the name of a tool."""
        plain = folded(without_program(name)) == folded(self._settings.search_tool)
        return plain and self._tools.id_of(name) is None and not self._visible.exact(name)

    def _resolve(self, call: ToolCall) -> Tool | CallPlan:
        """The live tool a call means, or the plan that answers why it cannot run.

        A name to the letter goes before any other spelling, whether the tool is loaded or not: first the names that
        this conversation knows, then all that the caller may see. Another spelling counts where it can mean one tool
        only, and tools of several servers are never told apart by what happens to be loaded.
        """
        visible = self._visible
        names = list(dict.fromkeys((call.name, without_program(call.name))))
        for name in names:
            if (tool_id := self._tools.id_of(name)) is not None:
                tool = visible.get(tool_id)
                return self._gone(call) if tool is None else self._if_loaded(call, tool)
        found = _distinct(tool for name in names for tool in visible.exact(name))
        if not found:
            found = _distinct(tool for name in names for tool in visible.folded(name))
            if len({tool.server for tool in found}) == 1:
                loaded = [t for t in found if t.id in self._tools.callable and self._is_spelled(t, names)]
                found = loaded if len(loaded) == 1 else found
        if not found:
            return self._unknown(call)
        return self._if_loaded(call, found[0]) if len(found) == 1 else self._ambiguous(call, found)

    def _if_loaded(self, call: ToolCall, tool: Tool) -> Tool | CallPlan:
        if tool.id in self._tools.callable or self._settings.not_loaded == "run":
            return tool
        return self._not_loaded(call, tool)

    def _is_spelled(self, tool: Tool, names: Iterable[str]) -> bool:
        return folded(self._tools.name_of(tool)) in map(folded, names)

    # -- why a call cannot run -----------------------------------------------------------------------------------

    def _misused_built_in(self, call: ToolCall) -> tuple[Status, str]:
        if self._tools.mode == "static":
            return "unknown", (
                f"{call.name!r} is off: every tool is listed already. Refresh the list of tools and call one of them."
            )
        if call.name == self._settings.search_tool:
            text = f"{call.name!r} is off: every tool is listed already. Call one through {self._settings.call_tool}."
            return "unknown", text
        try:
            arguments = ", ".join(map(repr, parse_arguments(call.arguments))) or "nothing"
        except ArgumentsError as error:
            arguments = str(error)
        return "invalid_arguments", (
            f'{call.name!r} did nothing: it needs "name", the tool to call, and "arguments", an object, and no more; '
            f"it got {arguments[:300]}. Call it again with these two."
        )

    def _gone(self, call: ToolCall) -> CallPlan:
        if self._tools.id_of(call.name) in self._tools.aside:
            way = (
                f"search for another one with {self._settings.search_tool}"
                if self._tools.search_tool
                else "use another one"
            )
            text = (
                f"{call.name!r} did not run: the provider refuses this tool, so it cannot be used here. Instead, {way}."
            )
            return _answer(call, "unknown", text)
        again = f"search again with {self._settings.search_tool}" if self._tools.search_tool else "use a listed tool"
        return _answer(call, "unknown", f"{call.name!r} did not run: it is no longer available. To go on, {again}.")

    def _ambiguous(self, call: ToolCall, tools: list[Tool]) -> CallPlan:
        names = ", ".join(repr(self._tools.name_of(t)) for t in tools[:3])
        way = "Search for" if self._settings.not_loaded == "refuse" and self._tools.search_tool else "Use"
        text = f"{call.name!r} did not run: several tools share this name. {way} one of the full names: {names}."
        return _answer(call, "unknown", text)

    def _not_loaded(self, call: ToolCall, tool: Tool) -> CallPlan:
        if self._tools.refused[tool.id]:
            text = (
                f"{call.name!r} did not run: it is loaded, but the program has not sent the new tool list since "
                "(it has to call session.tools() before each request). Use a tool that is listed, or say that this one "
                "cannot be used now."
            )
            return _answer(call, "not_loaded", text, (tool.id,))
        what = f"{call.name!r} did not run: it exists but was not loaded."
        if self._settings.not_loaded == "refuse" and tool.id not in self._tools.ids():
            way = f"Load it with {self._settings.search_tool} first" if self._tools.search_tool else "Use a listed tool"
            return _answer(call, "not_loaded", f"{what} {way}.")
        name = repr(self._tools.name_of(tool))
        if self._tools.mode in IN_TEXT:
            name += f" through {self._settings.door_of(tool.kind)}"
        text = f"{what} It is loaded now: call {name} in your next step. Its arguments: {schema_text(tool)}"
        return _answer(call, "not_loaded", text, (tool.id,))

    def _unknown(self, call: ToolCall) -> CallPlan:
        if is_parallel(call.name):
            text = f"{call.name[:100]!r} did not run: there is no such tool, and what it holds cannot be read. "
            return _answer(call, "unknown", text + "Instead, call the tools directly, several in one reply.")
        near = self._visible.near(call.name)
        hint = f" Similar names: {', '.join(repr(self._tools.name_of(t)) for t in near)}" if near else ""
        if near and self._settings.not_loaded == "refuse" and self._tools.search_tool:
            hint += " (search for one by its name)"
        search = f" or search with {self._settings.search_tool}" if self._tools.search_tool else ""
        end = "." if near else ""
        text = f"{call.name[:100]!r} did not run: there is no such tool.{hint}{end} Use a listed tool{search}."
        return _answer(call, "unknown", text)


def _cut(call: ToolCall) -> CallPlan:
    """The answer to a call in whose middle the reply ended."""
    why, way = _CUT.get(call.cut, _CUT["broken off"])
    return _answer(call, "invalid_arguments", f"{clean(str(call.name))[:100]!r} did not run: your reply {why}. {way}")


_CUT = {
    "cut off": (
        "was cut off at the token limit before this call was whole",
        "Send less: make the call again with shorter arguments, or do it in several smaller calls.",
    ),
    "context overflow": (
        "was cut off before this call was whole, because the conversation has no room for more",
        "Send less: make the call again with much shorter arguments, or answer now with what you have.",
    ),
    "filtered": (
        "was stopped by a content filter before this call was whole",
        "Do not send the same again: word it differently, or say that you cannot do it.",
    ),
    "refused": (
        "ended with a refusal before this call was whole",
        "If it is to run after all, make the call again.",
    ),
    "broken off": ("broke off before this call was whole", "Make the call again."),
}


def check_arguments(plan: CallPlan) -> CallPlan:
    """The plan with the arguments checked, if a tool is to run. This needs no lock, and large arguments take long."""
    call, tool = plan.call, plan.tool
    if tool is None or plan.arguments is not None:
        return plan
    try:
        arguments = validate_arguments(tool.input_schema, parse_arguments(call.arguments), tool.digest)
    except ArgumentsError as error:
        return CallPlan(call, misfit(call, tool, error), reveal=plan.reveal)
    return replace(plan, arguments=arguments)


def misfit(call: ToolCall, tool: Tool, error: ArgumentsError) -> ToolResult:
    """The answer to a call whose arguments the tool cannot take."""
    problems = bounded("; ".join(bounded(each, 1_000) for each in error.problems[:8]), _PROBLEM_CHARACTERS)
    end = "" if problems.endswith("?") else "."
    text = f"{call.name!r} did not run: {problems}{end} Correct the arguments and call it again. They are: "
    return answer(call.id, call.name, "invalid_arguments", text + schema_text(tool))


def _distinct(tools: Iterable[Tool]) -> list[Tool]:
    return list({tool.id: tool for tool in tools}.values())


def _answer(call: ToolCall, status: Status, text: str, reveal: tuple[str, ...] = ()) -> CallPlan:
    return CallPlan(call, answer(call.id, call.name, status, text), reveal=reveal)
