"""Which tools a client is shown, and in which mode it is served."""

from __future__ import annotations

import json
import logging
from collections import Counter
from typing import Any

from mcp_types import Tool as McpTool
from pydantic import ValidationError

from toolsearch import Tool
from toolsearch.mcp.gateway.clients import Who, searches_itself
from toolsearch.mcp.gateway.conversations import Conversation
from toolsearch.mcp.gateway.descriptions import own_tools
from toolsearch.mcp.gateway.resolving import Resolver
from toolsearch.mcp.gateway.searches import Searches
from toolsearch.mcp.gateway.settings import GatewaySettings, Serving
from toolsearch.mcp.gateway.shown_tools import ShownTools
from toolsearch.mcp.servers import Servers

__all__ = ["ToolLists"]

log = logging.getLogger("toolsearch.mcp")

FEW_TOOLS, FEW_TOKENS = 25, 3_000  # up to as many, a client is shown all: searching costs more than it saves
CHARACTERS_A_TOKEN = 4
CHOICE_SECONDS = 1.0  # that a choice waits for servers of which nothing is known


class ToolLists:
    """Answers `tools/list`. For one event loop."""

    def __init__(
        self, servers: Servers, shown: ShownTools, searches: Searches, resolver: Resolver, settings: GatewaySettings
    ) -> None:
        self._servers, self._shown, self._searches = servers, shown, searches
        self._resolver, self._settings = resolver, settings
        self._are_few: bool | None = None
        self._has_shown_all = False

    async def mode(self, who: Who, conversation: Conversation) -> Serving:
        """The mode of a client: chosen once, so that what it was told stays true."""
        if conversation.mode is None:
            conversation.mode = await self._chosen(who, conversation)
        return conversation.mode

    async def _chosen(self, who: Who, conversation: Conversation) -> Serving:
        wanted = self._settings.mode
        if wanted == "live" and conversation.is_passing:
            return "bridge"  # nothing would remember what was found
        if wanted != "auto":
            return wanted
        if searches_itself(who.name):
            return "all"
        if self._are_few is None:
            await self._resolver.wait_for_servers(min(self._settings.search_seconds, CHOICE_SECONDS))
            if self._resolver.awaited() or not len(self._shown.catalog):
                return "bridge"  # which is right for any number of tools that may come
            self._are_few = self._is_small()
        return "all" if self._are_few else "bridge"

    def _is_small(self) -> bool:
        tools = list(self._shown.catalog)
        if not 0 < len(tools) <= FEW_TOOLS:
            return False
        characters = sum(len(json.dumps(self._shown.definition(tool), default=str)) for tool in tools)
        return characters <= FEW_TOKENS * CHARACTERS_A_TOKEN

    @property
    def some_are_shown_all(self) -> bool:
        """Whether a client may have been shown all tools."""
        return self._settings.mode == "all" or bool(self._are_few) or self._has_shown_all

    def likely_mode(self, name: str) -> Serving | None:
        """The mode that a client of this name will have; None if that is not settled, since nothing is waited for."""
        wanted = self._settings.mode
        if wanted != "auto":
            return wanted
        if searches_itself(name):
            return "all"
        if self._are_few is None:
            return None
        return "all" if self._are_few else "bridge"

    async def tools(self, who: Who, conversation: Conversation) -> list[McpTool]:
        """The tools of a client, its own search tools first; and it may now call actions among them by name."""
        mode = await self.mode(who, conversation)
        if mode == "all":
            await self._resolver.wait_for_servers(self._settings.search_seconds)
            listed, self._has_shown_all = list(self._shown.catalog), True
        elif mode == "live":
            session = self._searches.live_session(conversation)
            listed = [shown.tool for shown in session.tools() if not shown.built_in]
        else:
            self._shown.keep_up()
            listed = []
        conversation.listed = frozenset(tool.id for tool in listed)
        counts = Counter(dict.fromkeys(self._servers.names, 0))
        counts.update(tool.server or "" for tool in self._shown.catalog)
        own = own_tools(mode, counts, self._servers.health())
        return [*(McpTool.model_validate(each, by_name=False) for each in own), *map(self._as_sent, listed)]

    def _as_sent(self, tool: Tool) -> McpTool:
        """A tool as its server describes it; what the SDK cannot read of it is left out."""
        sent = self._shown.definition(tool)
        try:
            return McpTool.model_validate(sent, by_name=False)
        except ValidationError as error:
            log.debug("the definition of %r is not whole: %s", tool.id, error)
        plain: dict[str, Any] = {"description": tool.description, "inputSchema": dict(tool.input_schema)}
        return McpTool.model_validate({"name": tool.name, **plain}, by_name=False)

    def schema(self, name: str) -> dict[str, Any] | None:
        """The schema of a tool's input, by its served name: the SDK checks headers of HTTP against it."""
        tool = next((each for each in self._shown.catalog.named(name) if each.name == name), None)
        return dict(tool.input_schema) if tool is not None else None
