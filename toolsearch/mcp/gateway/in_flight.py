"""The calls that run at each server, so that what a server logs meanwhile goes to the client it is meant for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from mcp_types import LoggingMessageNotification

from toolsearch.mcp.gateway.asking import Asker
from toolsearch.mcp.gateway.conversations import Conversation
from toolsearch.mcp.gateway.meta import LOG_LEVEL_KEY

__all__ = ["InFlight"]


@dataclass
class InFlight:
    """Open calls by server: the conversation of each, and its asker. For one event loop."""

    _open: dict[str, dict[object, tuple[Conversation, Asker]]] = field(default_factory=lambda: defaultdict(dict))

    @contextmanager
    def call(self, server: str, conversation: Conversation, asker: Asker) -> Generator[None]:
        """Counts a call as open while the block runs."""
        key = object()
        self._open[server][key] = conversation, asker
        try:
            yield
        finally:
            del self._open[server][key]

    async def tell_log(self, server: str, news: LoggingMessageNotification, clients: list[Conversation]) -> None:
        """Passes on what a server logs: to the client whose call runs there, or to the only client.

        Where several clients could be meant, none is told: a log may name what another client works on.
        """
        calls = [*self._open[server].values()]
        if len({id(conversation) for conversation, _ in calls}) == 1:
            context = calls[-1][1].context
            is_modern = calls[-1][1].who.is_modern
            if is_modern and LOG_LEVEL_KEY not in (context.meta or {}):
                return  # such a client asks for the log, call by call
            with suppress(Exception):  # the client may have left
                await context.session.send_notification(news, related_request_id=context.request_id)
        elif not calls and len(clients) == 1 and (channel := clients[0].channel) is not None:
            with suppress(Exception):
                await channel.send_notification(news)
