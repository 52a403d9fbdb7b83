"""`run` of a `ToolSearch` for the tools of servers: awaited by async code, waited for by any other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from toolsearch import Tool, ToolContext

__all__ = ["Runner"]


class Runner:
    """Runs the tools of servers: it waits in a thread that has no event loop, and elsewhere can be awaited."""

    def __init__(
        self,
        call: Callable[
            [Tool, dict[str, Any], ToolContext, asyncio.AbstractEventLoop | None], Coroutine[Any, Any, object]
        ],
        wait: Callable[[Coroutine[Any, Any, object]], object],
        hop: Callable[[Coroutine[Any, Any, object]], Coroutine[Any, Any, object]],
    ) -> None:
        self._call, self._wait, self._hop = call, wait, hop

    async def call_async(self, tool: Tool, arguments: dict[str, Any], context: ToolContext) -> object:
        """The result as the server sent it; a caller that is cancelled cancels the call at the server."""
        return await self._hop(self._call(tool, arguments, context, asyncio.get_running_loop()))

    def __call__(self, tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
        """As `call_async`; without an event loop in this thread, it waits for the result and returns it."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._wait(self._call(tool, arguments, context, None))
        return self.call_async(tool, arguments, context)
