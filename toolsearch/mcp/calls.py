"""One call of a tool at its server, and how: on which connection, for how long, and who hears and answers meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, RequestParamsMeta, TextContent

from toolsearch import Tool, ToolResult
from toolsearch.mcp.faults import CallFailed
from toolsearch.mcp.links import LinkKey
from toolsearch.mcp.questions import NOBODY, Elicit
from toolsearch.mcp.supervisor import Supervisor
from toolsearch.support.redaction import excerpt
from toolsearch.support.text import bounded

__all__ = ["CallOptions", "call_tool", "failure", "hidden_error", "hiding", "in_loop"]

F = TypeVar("F")
ERROR_CHARACTERS = 2_000  # of what a server says in an error, for a model
MESSAGE_CHARACTERS = 20_000  # of the same, for a program


@dataclass(frozen=True, kw_only=True)
class CallOptions:
    """How a request is made. `key` is that of the connection, None for the server's own; `seconds` limits it in all."""

    seconds: float
    key: LinkKey | None = None
    progress: ProgressFnT | None = None
    meta: Mapping[str, Any] | None = None
    elicit: Elicit | None = None
    repeatable: bool = False


async def call_tool(
    supervisor: Supervisor, name: str, arguments: Mapping[str, Any], options: CallOptions
) -> CallToolResult:
    """The result of a tool, as its server sent it. Definitions in that of its server's own search are taken up."""
    meta: RequestParamsMeta | None = dict(options.meta) if options.meta else None  # type: ignore[assignment]

    async def send(client: Client) -> CallToolResult:
        return await client.call_tool(name, dict(arguments), progress_callback=options.progress, meta=meta)

    result = await supervisor.ask(
        send, key=options.key, seconds=options.seconds, elicit=options.elicit, repeatable=options.repeatable
    )
    supervisor.relist_if_stale()
    if name == supervisor.entry.options.get("search_tool"):
        await supervisor.tools.take_from(result)
    return result


def hiding(result: CallToolResult, hidden: Callable[[str], str]) -> CallToolResult:
    """A result that is an error without the secrets of the configuration: servers say which key was refused."""
    if not result.is_error:
        return result
    content = [
        block.model_copy(update={"text": hidden(block.text)}) if isinstance(block, TextContent) else block
        for block in result.content
    ]
    return result.model_copy(update={"content": content})


def hidden_error(error: MCPError, hidden: Callable[[str], str]) -> MCPError:
    """An error that a server answered, without the secrets of the configuration, and of a bounded length."""
    message = bounded(hidden(error.message), MESSAGE_CHARACTERS)
    return MCPError(error.code, message, _hidden(error.data, hidden))


def _hidden(value: Any, hidden: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return hidden(value)
    if isinstance(value, Mapping):
        return {key: _hidden(item, hidden) for key, item in value.items()}
    return [_hidden(item, hidden) for item in value] if isinstance(value, list) else value


def failure(tool: Tool, error: Exception, masked: Callable[[str], str], *, can_ask: bool) -> ToolResult:
    """The result of a call that gave none. Its `data` is an error without what the server sent along."""
    text = excerpt(str(error), ERROR_CHARACTERS, masked)
    if isinstance(error, MCPError):
        nobody = "elicitation" in text.lower() and not can_ask
        text = NOBODY if nobody else f"the server {tool.server!r} answered: {text}"
    told = f"{tool.name!r} failed: {text}."
    return ToolResult("", tool.name, "failed", told, CallFailed(told) if isinstance(error, MCPError) else error)


def in_loop(function: F, loop: asyncio.AbstractEventLoop) -> F:
    """A coroutine function of the program that is called in another thread, and runs in its own loop; None stays."""
    if function is None:
        return function
    called: Any = function

    async def call(*arguments: Any) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(called(*arguments), loop))

    return call  # type: ignore[return-value]
