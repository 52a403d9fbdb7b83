"""Which tool a name means: the served name, an id, or the tool's own name as long as only one server has it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic

from toolsearch import SetupError, StateError, Tool
from toolsearch.mcp.gateway.descriptions import SEARCH
from toolsearch.mcp.gateway.shown_tools import ShownTools
from toolsearch.mcp.servers import Servers

__all__ = ["Resolver"]

NEAR = 3
RELIST_SECONDS, BETWEEN_SECONDS = 3.0, 1.0
_CLIENTS = re.compile(r"mcp__.+?__(?=.+__)")
LOOK_SECONDS = 5.0


class Resolver:
    """Finds tools by name, and waits for servers that are still connecting where that may help."""

    def __init__(self, servers: Servers, shown: ShownTools, wait_seconds: float) -> None:
        self._servers, self._shown, self._wait = servers, shown, wait_seconds
        self._relisted = float("-inf")

    async def tool(self, name: str) -> Tool | str:
        """The tool that is meant; or, for the model, why there is none.

        A name that is not known may be new: servers that are connecting are waited for, the others are listed again.
        """
        self._shown.keep_up()
        found = self._named(name)
        if isinstance(found, Tool):
            await self._settle(found)
            return self._shown.catalog.get(found.id) or self._why_not(name)
        if not found:
            await self.wait_for_servers(self._wait, self._connecting())
            found = self._named(name)
        if not found and not self._is_kept_back(name):
            await self._relist()
            found = self._named(name)
        if isinstance(found, Tool):
            return found
        if found:
            names = ", ".join(repr(tool.name) for tool in found[:NEAR])
            return f"{name!r} did not run: several tools share this name. Use one of the full names: {names}."
        return self._why_not(name)

    async def wait_for_servers(self, seconds: float, names: Iterable[str] | None = None) -> None:
        """Waits for these servers, or for those that are connecting and of which nothing is known yet."""
        self._shown.keep_up()
        late = self.awaited() if names is None else list(names)
        if late and seconds > 0:
            await self._servers.ready(seconds, late)
            self._shown.keep_up()

    def awaited(self) -> list[str]:
        """The servers that are connecting and of which nothing is known yet."""
        known = {tool.server for tool in self._shown.catalog}
        return [name for name in self._connecting() if name not in known]

    def _connecting(self) -> list[str]:
        return [name for name, each in self._servers.health().items() if each.state == "connecting"]

    async def look_again(self, server: str) -> None:
        """Reads the tools of a server again, if it gives them in time: a change of them may not have been told."""
        with suppress(SetupError, StateError, TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._servers.refresh(server)
        self._shown.keep_up()

    async def _settle(self, tool: Tool) -> None:
        """A tool that is only known from an earlier run is compared with what its server says now."""
        server = tool.server or ""
        if (health := self._servers.health().get(server)) is not None and health.state == "connecting":
            await self.wait_for_servers(self._wait, [server])

    def _named(self, name: str) -> Tool | list[Tool]:
        """What a name means; models also write the prefix that their client puts before names of this gateway."""
        found = self._shown.catalog.named(name)
        if not found and (prefix := _CLIENTS.match(name)):
            found = self._shown.catalog.named(name[prefix.end() :])
        return found[0] if len(found) == 1 else found

    async def _relist(self) -> None:
        """Lists all servers again; not more often than now and then, and not as long as one that hangs would take."""
        if monotonic() - self._relisted < BETWEEN_SECONDS:
            return
        self._relisted = monotonic()
        with suppress(SetupError, StateError, TimeoutError):
            async with asyncio.timeout(RELIST_SECONDS):
                await self._servers.refresh()
        self._shown.keep_up()

    def _is_kept_back(self, name: str) -> bool:
        return name in self._shown.held_names or name in self._shown.denied_names

    def _why_not(self, name: str) -> str:
        """Why a name means no tool that can be called."""
        if (held := self._shown.held_names.get(name)) is not None:
            return f"{name!r} did not run: {held.reason}"
        if name in self._shown.denied_names:
            return f"{name!r} did not run: the configuration of this gateway denies it. Do not try it again."
        near = ", ".join(repr(tool.name) for tool in self._shown.catalog.near(name, NEAR))
        hint = f" Similar names: {near}." if near else ""
        away = [f"{n!r} ({h.reason or h.state})" for n, h in self._servers.health().items() if h.state != "ready"]
        missing = f" These servers cannot be reached now: {', '.join(away[:10])}." if away else ""
        return f"{name[:100]!r} did not run: there is no such tool.{hint} Use a listed tool, or {SEARCH}.{missing}"
