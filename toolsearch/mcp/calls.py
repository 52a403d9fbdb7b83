"""One call of a tool at its server, and how: on which connection, for how long, and who hears and answers meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import CallToolResult, RequestParamsMeta

from toolsearch.mcp.links import LinkKey
from toolsearch.mcp.questions import Elicit
from toolsearch.mcp.supervisor import Supervisor

__all__ = ["CallOptions", "call_tool", "in_loop"]

F = TypeVar("F")


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
    """The result of a tool, as its server sent it."""
    meta: RequestParamsMeta | None = dict(options.meta) if options.meta else None  # type: ignore[assignment]

    async def send(client: Client) -> CallToolResult:
        return await client.call_tool(name, dict(arguments), progress_callback=options.progress, meta=meta)

    result = await supervisor.ask(
        send, key=options.key, seconds=options.seconds, elicit=options.elicit, repeatable=options.repeatable
    )
    supervisor.relist_if_stale()
    return result


def in_loop(function: F, loop: asyncio.AbstractEventLoop) -> F:
    """A coroutine function of the program that is called in another thread, and runs in its own loop; None stays."""
    if function is None:
        return function
    called: Any = function

    async def call(*arguments: Any) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(called(*arguments), loop))

    return call  # type: ignore[return-value]
