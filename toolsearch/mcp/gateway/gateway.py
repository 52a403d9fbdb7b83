"""One server of MCP in front of all others: it answers clients, and keeps in step with the servers behind it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from mcp.server.stdio import stdio_server

from toolsearch.mcp.config import ConfigSource
from toolsearch.mcp.gateway.changes import Changes
from toolsearch.mcp.gateway.handlers import GatewayServer, Handlers, gateway_server
from toolsearch.mcp.gateway.parts import Parts
from toolsearch.mcp.gateway.settings import GatewaySettings
from toolsearch.mcp.servers import Servers
from toolsearch.support.threads import in_thread

__all__ = ["Gateway"]


class Gateway:
    """All servers of one configuration, or of several, behind `server`, which is one of the SDK's.

        async with Gateway("mcp.json") as gateway:
            await gateway.serve_stdio()

    `configs` are as for `Servers`; files are read again when they change, and never written. `settings` are those of
    `GatewaySettings`. What is kept for the next start lies in `cache_folder`, or in the user's. For one event loop.
    Raises `SetupError` for a configuration or a setting that cannot be read.
    """

    def __init__(
        self,
        *configs: ConfigSource,
        environ: Mapping[str, str] | None = None,
        root: str | os.PathLike[str] | None = None,
        cache_folder: Path | None = None,
        **settings: object,
    ) -> None:
        self._parts = parts = Parts(configs, environ, root, cache_folder, settings)
        self._changes = Changes(parts)
        self.server: GatewayServer = gateway_server(Handlers(parts, self._changes))

    @property
    def settings(self) -> GatewaySettings:
        return self._parts.settings

    @property
    def servers(self) -> Servers:
        """The servers behind it."""
        return self._parts.servers

    async def __aenter__(self) -> Gateway:
        """Starts the servers. Only those that are `required` are waited for."""
        is_required = any(entry.required for entry in self.servers.config.servers.values())
        # What an earlier run kept comes first: the processes of many servers would take the CPU from it.
        await in_thread(self._parts.shown.refresh)
        await in_thread(lambda: self.servers.start(wait=is_required))
        self._changes.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._changes.end()
        self._parts.asking.close()
        await in_thread(self.servers.close)
        self._parts.log.close()

    def client_left(self, session_id: str) -> None:
        """Forgets a client that has ended its session, and ends what servers keep for it. In the gateway's loop."""
        self._parts.conversations.end(session_id)

    async def serve_stdio(self) -> None:
        """Serves the client at the other end of stdin and stdout, until it leaves."""
        async with stdio_server() as (read, write):
            await self.server.run(read, write, self.server.create_initialization_options())
