"""Conversations in memory: they are listed, ended and evicted as the sessions of their `ToolSearch` are."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from toolsearch.calls import Caller
from toolsearch.events.journal import read_events
from toolsearch.loop.conversation import Conversation
from toolsearch.stores.recent import RecentJournals
from toolsearch.tool_search import ToolSearch

__all__ = ["Evictions"]


class Evictions:
    """Follows the conversations of one agent, if they are kept in memory."""

    def __init__(self, search: ToolSearch) -> None:
        self._search = search
        self._is_used = False
        self._callers: dict[str, Caller | None] = {}  # who asked last, by conversation

    def journals(self, live: Container[str]) -> RecentJournals:
        """A store in memory. The `ToolSearch` lists, ends and evicts its conversations as it does its own sessions."""
        self._is_used = True
        settings = self._search.settings
        journals = RecentJournals(settings.max_sessions, live, settings.ttl_seconds, self._note_left)
        self._search.registry.share(journals)
        return journals

    def note_turn(self, conversation_id: str, caller: Caller | None) -> None:
        """Remembers for whom the last turn was: the roles of a caller are not in the journal."""
        if self._is_used:
            self._callers[conversation_id] = caller

    def _note_left(self, conversation_id: str, facts: list[dict[str, Any]], is_evicted: bool) -> None:
        caller = self._callers.pop(conversation_id, None)
        registry = self._search.registry
        if is_evicted and registry.is_watched:
            events = read_events(facts)
            conversation = Conversation.replay(self._search, events, conversation_id=conversation_id, caller=caller)
            registry.report(conversation.session)
