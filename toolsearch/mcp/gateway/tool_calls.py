"""The way of one call: which tool is meant, whether it may run, what the person says, the server, the result."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from toolsearch import Tool, ToolSearchError
from toolsearch.mcp.gateway.asking import Asker, CannotAsk
from toolsearch.mcp.gateway.conversations import Conversation
from toolsearch.mcp.gateway.descriptions import ACTION, CALL, FETCH, SEARCH
from toolsearch.mcp.gateway.gateway_log import GatewayLog
from toolsearch.mcp.gateway.in_flight import InFlight
from toolsearch.mcp.gateway.meta import LOG_LEVEL_KEY, passed_meta
from toolsearch.mcp.gateway.resolving import Resolver
from toolsearch.mcp.gateway.results import failed, passed_on, told
from toolsearch.mcp.gateway.searches import Searches
from toolsearch.mcp.gateway.settings import Confirm
from toolsearch.mcp.gateway.shown_tools import ShownTools
from toolsearch.mcp.gateway.spans import Spans
from toolsearch.mcp.guards import UnreadableArguments, read_arguments
from toolsearch.mcp.servers import Servers
from toolsearch.support.redaction import excerpt, visible

__all__ = ["ToolCalls"]

log = logging.getLogger("toolsearch.mcp")

REASON_CHARACTERS = 500
ERROR_CHARACTERS = 2_000  # of what a server says in an error
SHOWN_ARGUMENTS = 20_000  # characters of the arguments that a person is asked about


@dataclass(frozen=True)
class ToolCalls:
    """Answers `tools/call`, whatever the name. `confirm` is the setting."""

    servers: Servers
    shown: ShownTools
    searches: Searches
    resolver: Resolver
    log: GatewayLog
    spans: Spans
    in_flight: InFlight
    confirm: Confirm
    search_seconds: float

    async def answer(self, conversation: Conversation, params: CallToolRequestParams, asker: Asker) -> dict[str, Any]:
        """The result of a call, as JSON. Raises `MCPError` where a server answered a call by name with an error."""
        arguments = params.arguments or {}
        match params.name:
            case name if name == FETCH:
                return conversation.pages.page(arguments.get("key"), arguments.get("page", 1))
            case name if name == SEARCH:
                return await self._search(conversation, arguments)
            case name if name in (CALL, ACTION):
                return await self._through_door(conversation, name, params, asker)
            case name:
                return await self._by_name(conversation, name, params, asker)

    async def _search(self, conversation: Conversation, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """D15: a client may still have the list of another mode."""
        if conversation.mode == "all":
            return failed(
                f"{SEARCH!r} is off: every tool is listed already. Refresh the list of tools, and call one by its name."
            )
        await self.resolver.wait_for_servers(self.search_seconds)
        with self.spans.of("search", SEARCH):
            searched = await self.searches.search(conversation, arguments)
        self.log.search(conversation, arguments, searched)
        return failed(searched.text) if searched.failed else told(searched.text)

    # -- what is called ------------------------------------------------------------------------------------------

    async def _through_door(
        self, conversation: Conversation, door: str, params: CallToolRequestParams, asker: Asker
    ) -> dict[str, Any]:
        try:
            name, given = _inner(door, params.arguments or {})
        except UnreadableArguments as error:
            return failed(f"Nothing ran. {error}")
        tool = await self.resolver.tool(name)
        if isinstance(tool, str):
            return failed(tool)
        if tool.kind == "action" and door == CALL:
            # Only the bridge lists the door of actions; elsewhere a tool is called by its own name.
            how = f"through {ACTION}" if conversation.mode == "bridge" else f"by its own name, {tool.name}"
            return failed(
                f"{tool.name!r} did not run: it may change something. Call it {how}, with the same arguments."
            )
        arguments, problem = self.searches.checked(tool.name, given)
        if problem:
            self.log.call(conversation, tool, "invalid_arguments")
            return failed(problem)
        try:
            return await self._permitted(conversation, tool, arguments, params, asker)
        except MCPError as error:
            text = excerpt(error.message, ERROR_CHARACTERS, self.servers.config.masked)
            return failed(f"{tool.name!r} failed: the server {tool.server!r} answered: {text}")

    async def _by_name(
        self, conversation: Conversation, name: str, params: CallToolRequestParams, asker: Asker
    ) -> dict[str, Any]:
        """A tool that the client lists, or one whose name is known; an action only if the client knows its hints."""
        tool = await self.resolver.tool(name)
        if isinstance(tool, str):
            return failed(tool)
        if tool.kind == "action" and conversation.mode != "all" and tool.id not in conversation.listed:
            if conversation.mode == "live":
                self.searches.live_session(conversation).load([tool.id])
                return failed(
                    f"{tool.name!r} did not run: it was not listed, and may change something. It is listed now: "
                    "refresh the list of tools, and call it again."
                )
            return failed(
                f"{tool.name!r} did not run: it may change something. Call it through {ACTION}, with its name and "
                "arguments."
            )
        return await self._permitted(conversation, tool, params.arguments or {}, params, asker)

    # -- whether it may run --------------------------------------------------------------------------------------

    async def _permitted(
        self,
        conversation: Conversation,
        tool: Tool,
        arguments: Mapping[str, Any],
        params: CallToolRequestParams,
        asker: Asker,
    ) -> dict[str, Any]:
        """Runs a tool, once a person has agreed where one has to; what was agreed to is what runs."""
        denial = await self._denial(tool, arguments, asker)
        self.shown.keep_up()
        if not denial and self.shown.catalog.get(tool.id) != tool:
            held = self.shown.held.get(tool.id)
            why = held.reason if held is not None else "its definition has changed meanwhile. Search for it again."
            denial = f"{tool.name!r} did not run: {why}"
        if denial:
            self.log.call(conversation, tool, "denied")
            return failed(denial)
        return await self._run(conversation, tool, arguments, params, asker)

    async def _denial(self, tool: Tool, arguments: Mapping[str, Any], asker: Asker) -> str:
        """Why a call may not run; empty if it may. A person is asked where policy and settings want it."""
        original = self.shown.original(tool.id) or tool
        policy, server = self.shown.policy, tool.server or ""
        if policy.verdict(server, original) == "allow":
            return ""
        by_kind = policy.is_by_kind(server, original)
        if by_kind and (self.confirm == "never" or (self.confirm == "auto" and not asker.who.can_be_asked)):
            return ""  # the client asks by itself before it uses the door of actions: see docs/gateway.md
        text = visible(json.dumps(arguments, ensure_ascii=False))
        more = len(text) - SHOWN_ARGUMENTS
        shown = text if more <= 0 else f"{text[:SHOWN_ARGUMENTS]}… and {more:,} more characters"
        question = ElicitRequestFormParams(
            message=f"Run {visible(tool.id)} with {shown}?", requested_schema={"type": "object", "properties": {}}
        )
        try:
            action = (await asker.ask(question)).action
        except CannotAsk:
            other = ", or leave actions to the client's own questions with --confirm auto" if by_kind else ""
            allowed = json.dumps({"allow": [tool.id]}, ensure_ascii=False)
            how = f'add to the gateway\'s configuration, beside mcpServers: "toolsearch": {allowed}'
            if policy.is_by_pattern(server, original):  # it is stricter than `allow`, which would change nothing
                how = f"take {policy.why(server, original)} out of the gateway's configuration"
            return (
                f"{tool.name!r} did not run: a person has to agree, and this client cannot ask. Do not call it again. "
                f"A person can allow it for good: {how}{other}."
            )
        if action == "accept":
            await self.resolver.look_again(server)  # a person takes time, in which a definition may change untold
            return ""
        what = "the user declined" if action == "decline" else "the user gave no answer"
        return f"{tool.name!r} did not run: {what}. Do not call it again unless the user asks for it."

    # -- running -------------------------------------------------------------------------------------------------

    async def _run(
        self,
        conversation: Conversation,
        tool: Tool,
        arguments: Mapping[str, Any],
        params: CallToolRequestParams,
        asker: Asker,
    ) -> dict[str, Any]:
        original = self.shown.original(tool.id) or tool

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            await asker.context.session.report_progress(progress, total, message)

        async def elicit(question: ElicitRequestParams) -> ElicitResult:
            # A person sees one server, the gateway, and would take the question of any other for its own.
            told = f"The server {tool.server!r} asks, while {tool.id} runs: {question.message}"
            try:
                return await asker.ask(question.model_copy(update={"message": told}))
            except CannotAsk:
                return ElicitResult(action="decline")

        begun = self.log.now()
        status = "failed"
        try:
            server = tool.server or ""
            with (
                self.spans.of("execute_tool", tool.name, server) as span,
                self.in_flight.call(server, conversation, asker),
            ):
                result = await self.servers.call(
                    original.server or "",
                    original.name,
                    arguments,
                    progress=progress,
                    meta=self._meta(conversation, original.server or "", params, asker),
                    session=conversation.id,
                    elicit=elicit,
                    repeatable=original.repeatable,
                )
                if result.is_error:
                    span.set_attribute("error.type", "tool_error")
            status = "failed" if result.is_error else "ok"
        except MCPError:
            raise
        except ToolSearchError as error:
            return failed(f"{tool.name!r} failed: {str(error).rstrip('.')}.")
        except Exception as error:
            log.exception("a call of %r failed", tool.id)
            reason = self.servers.config.masked(f"{type(error).__name__}: {error}")[:REASON_CHARACTERS]
            return failed(f"{tool.name!r} failed: what the server {tool.server!r} answered cannot be used ({reason}).")
        finally:
            self.log.call(conversation, tool, status, begun)
        keeps = conversation.mode != "bridge" and params.name not in (CALL, ACTION)
        return conversation.pages.cut(passed_on(result), keep_structured=keeps)[0]

    def _meta(
        self, conversation: Conversation, server: str, params: CallToolRequestParams, asker: Asker
    ) -> dict[str, Any] | None:
        """The metadata of a call. An older client says once which logs it wants, a newer server is told each time."""
        meta = passed_meta(params.meta)
        if not asker.who.is_modern and self.servers.offer(server).is_modern:
            return {LOG_LEVEL_KEY: conversation.level, **(meta or {})}
        return meta


def _inner(door: str, outer: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a call through a door. Raises `UnreadableArguments`, in words for the model."""
    name, inner = outer.get("name"), outer.get("arguments")
    if not isinstance(name, str) or not name.strip() or not outer.keys() <= {"name", "arguments"}:
        given = ", ".join(map(repr, outer)) or "nothing"
        raise UnreadableArguments(
            f'{door} needs "name", the tool to call, and "arguments", an object, and no more; it got {given[:300]}. '
            "Call it again with these two."
        )
    return name.strip(), read_arguments(inner)
