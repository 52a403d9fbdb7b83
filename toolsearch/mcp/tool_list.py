"""The tools of one server, in step with the catalog: those in its list, and those that a search of its own gave."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping

from mcp import Client
from mcp_types import CallToolResult, TextContent

from toolsearch import Catalog, SetupError, Tool
from toolsearch.mcp.config import ServerEntry
from toolsearch.mcp.definitions import is_of, sync_tools
from toolsearch.mcp.listing import Listing, list_all
from toolsearch.support.threads import in_thread

__all__ = ["ToolList"]

log = logging.getLogger("toolsearch.mcp")

MOST_HANDED = 1_000  # tools that stand in no list; the oldest leave first
_LISTS = ("tools", "results", "matches", "items")  # keys under which a search has what it found
_DEEPEST = 4


class ToolList:
    """What a server offers. All in one event loop, but for `definition`; the catalog is changed in a thread."""

    def __init__(
        self,
        entry: ServerEntry,
        catalog: Catalog,
        report: Callable[[], None],
        is_denied: Callable[[Tool], bool] | None = None,
    ) -> None:
        self._entry, self._catalog, self._report, self._is_denied = entry, catalog, report, is_denied
        self._listed: list[object] | None = None
        self._definitions: dict[str, Mapping[str, object]] = {}  # as the server sent them, by name
        self._handed: dict[str, Mapping[str, object]] = {}
        self._checked: dict[str, bool] = {}  # by the digest of a tool: whether its definition is the one it was made of
        self._changing = asyncio.Lock()
        self.read_at = float("-inf")  # when it was last read, by time.monotonic

    def __len__(self) -> int:
        return len(self._listed or ()) + len(self._handed)

    async def read(self, client: Client) -> None:
        """Reads the whole list; what the client raises leaves everything as it was."""
        async with self._changing:
            begun = time.monotonic()
            has_tools = client.server_capabilities.tools is not None
            listing = await list_all(client.session) if has_tools else Listing([])
            if listing.problem:
                log.warning("server %r: %s", self._entry.name, listing.problem)
            self.read_at = begun
            if listing.tools == self._listed:
                return
            self._listed = listing.tools
            self._definitions = {
                str(each["name"]): each
                for each in listing.tools
                if isinstance(each, Mapping) and isinstance(each.get("name"), str)
            }
            self._handed = {name: each for name, each in self._handed.items() if name not in self._definitions}
            await self._put_in_step()

    async def take_from(self, result: CallToolResult) -> list[str]:
        """The ids of the tools whose definitions a search of the server's own gave; they are in the catalog then."""
        found = {str(each["name"]): each for each in _definitions_in(result)}
        if not found or result.is_error:
            return []
        async with self._changing:
            new = {name: each for name, each in found.items() if name not in self._definitions}
            if any(self._handed.get(name) != each for name, each in new.items()):
                kept = {name: each for name, each in self._handed.items() if name not in new}
                self._handed = dict([*kept.items(), *new.items()][-MOST_HANDED:])
                await self._put_in_step()
        tools = (tool for tool in self._catalog if tool.server == self._entry.name)
        return [tool.id for tool in tools if tool.name in found]

    async def _put_in_step(self) -> None:
        self._checked = {}
        await in_thread(self._sync)
        self._report()

    def _sync(self) -> None:
        name, sources = self._entry.name, [*(self._listed or ()), *self._handed.values()]
        try:
            sync_tools(self._catalog, sources, self._entry, self._is_denied)
        except SetupError as error:
            log.warning("server %r lists no usable tool: %s", name, error)
            self._catalog.sync([], server=name)

    def definition(self, tool: Tool) -> Mapping[str, object]:
        """What the server sent of a tool; empty if that is not known."""
        sent = self._definitions.get(tool.name) or self._handed.get(tool.name)
        if sent is None:
            return {}
        if tool.digest not in self._checked:
            self._checked[tool.digest] = is_of(sent, tool, self._entry)
        return sent if self._checked[tool.digest] else {}


def _definitions_in(result: CallToolResult) -> Iterator[Mapping[str, object]]:
    """The definitions of tools in a result: in its structured content, or else in the JSON of its texts."""
    if result.structured_content is not None:
        yield from _found_in(result.structured_content, _DEEPEST)
        return
    for block in result.content:
        if isinstance(block, TextContent) and block.text.lstrip()[:1] in ("{", "["):
            try:
                yield from _found_in(json.loads(block.text), _DEEPEST)
            except (ValueError, RecursionError):
                continue


def _found_in(value: object, levels: int) -> Iterator[Mapping[str, object]]:
    if isinstance(value, list) and levels:
        for each in value:
            yield from _found_in(each, levels - 1)
    elif isinstance(value, Mapping) and levels:
        if isinstance(value.get("name"), str) and isinstance(value.get("inputSchema"), Mapping):
            yield value
            return
        for key in _LISTS:
            yield from _found_in(value.get(key), levels - 1)
