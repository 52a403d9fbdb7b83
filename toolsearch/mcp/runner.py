"""`run` of a `ToolSearch` for the tools of servers: awaited by async code, waited for by any other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError

from toolsearch import Caller, Tool, ToolContext, ToolResult
from toolsearch.mcp.calls import CallOptions, call_tool, failure, hiding
from toolsearch.mcp.config import Config
from toolsearch.mcp.faults import CallFailed, ServerUnavailable
from toolsearch.mcp.links import LinkKey
from toolsearch.mcp.questions import Ask, Asking, Waiting
from toolsearch.mcp.supervisor import Supervisor
from toolsearch.support.tool_questions import HANDOVER

__all__ = ["Runner", "ToolProgress"]

T = TypeVar("T")
ToolProgress: TypeAlias = Callable[[Tool, ToolContext, float, float | None, str | None], object]


class _Servers(Protocol):
    @property
    def config(self) -> Config: ...

    def supervisor(self, server: str) -> Supervisor: ...

    def is_denied(self, tool: Tool) -> bool: ...

    def limit(self, server: str, seconds: float | None) -> float: ...

    def link_key(self, server: str, session: str | None, caller: Caller | None) -> LinkKey | None: ...

    async def hop(self, coroutine: Coroutine[Any, Any, T]) -> T: ...

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T: ...


class Runner:
    """Runs the tools of servers: it waits in a thread that has no event loop, and elsewhere can be awaited.

    The result is as the server sent it. Tools that a search of the server's own gave are loaded in the session.
    """

    def __init__(self, servers: _Servers, ask: Ask | None, progress: ToolProgress | None) -> None:
        self._servers, self._ask, self._progress = servers, ask, progress

    async def call_async(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> object:
        """As a call of it; a caller that is cancelled cancels the call at the server."""
        asked = self._asked(tool, context, asyncio.get_running_loop())
        return await self._servers.hop(self._run(tool, arguments, context, asked))

    def __call__(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """As `call_async`; without an event loop in this thread, it waits for the result and returns it."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._servers.wait(self._run(tool, arguments, context, self._asked(tool, context, None)))
        return self.call_async(tool, arguments, context)

    def _asked(
        self, tool: Tool, context: ToolContext, loop: asyncio.AbstractEventLoop | None
    ) -> Asking | Waiting | None:
        """Who is asked what the server wants to know: a function of the program, or a person who may answer later."""
        if self._ask is not None:
            return Asking(self._ask, tool.server or "", tool.name, context.caller, context.conversation_id, loop)
        handover = HANDOVER.get()
        return None if handover is None else Waiting(handover.given)

    async def _run(
        self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext, asked: Asking | Waiting | None
    ) -> object:
        servers, server, conversation = self._servers, tool.server or "", context.conversation_id
        if servers.is_denied(tool):  # it is in no list, but a stored session may have it
            told = f"{tool.name!r} did not run: the configuration denies it. Do not call it again."
            return ToolResult("", tool.name, "denied", told)
        options = CallOptions(
            seconds=servers.limit(server, None),
            key=servers.link_key(server, conversation, context.caller),
            progress=self._progress_of(tool, context),
            elicit=asked.elicit if asked is not None else None,
            repeatable=tool.repeatable,
        )
        supervisor = servers.supervisor(server)
        try:
            sent = await call_tool(supervisor, tool.name, arguments, options)
        except (MCPError, CallFailed, ServerUnavailable) as error:
            return failure(tool, error, servers.config.masked, can_ask=asked is not None)
        if isinstance(asked, Waiting) and asked.open is not None:
            return ToolResult("", tool.name, "ok", asked.open.question, asked.open)
        result = hiding(sent, servers.config.without_secrets)
        if tool.name != supervisor.entry.options.get("search_tool"):
            return result
        handed = await supervisor.tools.take_from(sent)
        return ToolResult("", tool.name, "ok", result, result, found=dict.fromkeys(handed, ""))  # type: ignore[arg-type]

    def _progress_of(self, tool: Tool, context: ToolContext) -> ProgressFnT | None:
        told = self._progress
        if told is None:
            return None

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            told(tool, context, progress, total, message)

        return progress
