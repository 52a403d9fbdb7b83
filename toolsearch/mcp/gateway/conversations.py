"""The conversations at a gateway: one for each client that keeps a session, and a passing one for any other request."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic

from mcp.server.session import ServerSession

from toolsearch import Session
from toolsearch.mcp.gateway.clients import Who
from toolsearch.mcp.gateway.settings import Serving
from toolsearch.mcp.guards import ResultPages

__all__ = ["Conversation", "Conversations"]


@dataclass(eq=False)
class Conversation:
    """What one client was shown, and what is kept for it. `id` names it in the log and to the servers.

    `mode` is chosen once, when the client first asks for the tools. `listed` are the ids of the tools that the client
    was told of, `searching` is the session whose searches it makes, `channel` the way to tell it what has changed, and
    `subscribed` are the resources that it wants to hear of. `level` is that from which on it wants logs.
    """

    id: str
    pages: ResultPages
    is_passing: bool = False
    client: str = ""
    mode: Serving | None = None
    listed: frozenset[str] = frozenset()
    searching: Session | None = None
    channel: ServerSession | None = None
    subscribed: set[str] = field(default_factory=set)
    level: str = "debug"
    used: float = field(default_factory=monotonic)


class Conversations:
    """The conversations of all clients: at most so many, each until it was idle for so long. For one event loop."""

    def __init__(
        self, most: int, idle_seconds: float, result_tokens: int, ended: Callable[[Conversation], object]
    ) -> None:
        self._most, self._idle = most, idle_seconds
        self._ended = ended
        self._open: OrderedDict[str, Conversation] = OrderedDict()
        # Also the pages of clients without a session: their keys cannot be guessed, and keep them apart.
        self._pages = ResultPages(result_tokens)

    def of(self, who: Who) -> Conversation:
        """The conversation of a request's sender."""
        if who.key is None:
            return Conversation(f"once-{secrets.token_hex(8)}", self._pages, is_passing=True, client=who.name)
        found = self._open.pop(who.key, None)
        if found is None:
            found = _new(self._pages, who.name)
        found.client, found.used = who.name or found.client, monotonic()
        self._open[who.key] = found
        self._drop()
        return found

    def end(self, key: str) -> None:
        """Ends the conversation of a client that has left, if there is one."""
        if (found := self._open.pop(key, None)) is not None:
            self._ended(found)

    def _drop(self) -> None:
        bar = monotonic() - self._idle
        while len(self._open) > self._most or (len(self._open) > 1 and next(iter(self._open.values())).used < bar):
            self._ended(self._open.popitem(last=False)[1])

    def __iter__(self) -> Iterator[Conversation]:
        return iter([*self._open.values()])

    def __len__(self) -> int:
        return len(self._open)


def _new(pages: ResultPages, client: str) -> Conversation:
    name = secrets.token_hex(4)
    return Conversation(name, pages.for_session(name), client=client)
