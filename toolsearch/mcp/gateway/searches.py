"""Searches of clients: over the tools that they may find, with a word on servers and tools that are not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toolsearch import Session, ToolCall, ToolResult, ToolSearch
from toolsearch.mcp.gateway.conversations import Conversation
from toolsearch.mcp.gateway.descriptions import ACTION, CALL, SEARCH
from toolsearch.mcp.gateway.shown_tools import ShownTools
from toolsearch.mcp.guards import Held

__all__ = ["Searched", "Searches"]

NAMED_HELD = 3


@dataclass(frozen=True)
class Searched:
    """What a search gave: the text, whether it failed, and the same for the log."""

    text: str
    failed: bool
    data: Mapping[str, Any]


class Searches:
    """The search of a gateway, in the modes that have one. Safe for threads."""

    def __init__(self, shown: ShownTools, index: str) -> None:
        self._shown, self._index = shown, index
        self._bridge = ToolSearch(
            shown.catalog,
            index=index,
            mode="bridge",
            search_tool=SEARCH,
            call_tool=CALL,
            action_tool=ACTION,
            not_loaded="run",
            max_sessions=None,
        )
        self._checking = self._bridge.session()  # deciding on a call changes nothing in it

    @cached_property
    def _live(self) -> ToolSearch:
        """Made when the first client wants it: it keeps an index of its own in step."""
        return ToolSearch(
            self._shown.catalog, index=self._index, mode="append", search_tool=SEARCH, call_tool=CALL, max_sessions=None
        )

    def live_session(self, conversation: Conversation) -> Session:
        """The session that remembers what a client was shown, in the mode "live"."""
        if conversation.searching is None:
            conversation.searching = self._live.session(conversation.id)
        return conversation.searching

    def end(self, conversation: Conversation) -> None:
        """Forgets what a client was shown."""
        if conversation.searching is not None:
            self._live.end_session(conversation.searching.id)

    async def search(self, conversation: Conversation, arguments: Mapping[str, Any]) -> Searched:
        """The answer to a search. In "bridge" it always has the schemas: one process of a client may hold many chats,
        and nobody tells which of them has seen one before.
        """
        call = ToolCall("search", SEARCH, arguments)
        if conversation.mode == "live":
            return self._told(await self.live_session(conversation).ahandle(call))
        session = self._bridge.session()
        try:
            return self._told(await session.ahandle(call))
        finally:
            self._bridge.end_session(session.id)

    def checked(self, name: str, arguments: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
        """The arguments of a call, checked; or why the tool cannot take them, with its schema."""
        plan = self._checking.decide(ToolCall("call", ACTION, {"name": name, "arguments": arguments}))
        return (plan.arguments or {}, "") if plan.result is None else ({}, plan.result.content)

    def _told(self, result: ToolResult) -> Searched:
        data = result.data if isinstance(result.data, Mapping) else {}
        text = "\n".join(filter(None, (result.content, _about_held(self._shown.held))))
        return Searched(text, not result.ok, data)


def _about_held(held: Mapping[str, Held]) -> str:
    """A line on tools that are held back, so that nobody looks for them in vain."""
    if not held:
        return ""
    first = list(held.values())[:NAMED_HELD]
    more = f" and {len(held) - NAMED_HELD} more" if len(held) > NAMED_HELD else ""
    names = ", ".join(each.tool.id for each in first)
    return f"Held back until a person approves their definitions: {names}{more} ({first[0].command})."
