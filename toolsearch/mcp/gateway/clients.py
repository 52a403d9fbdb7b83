"""Who sends a request: which conversation it belongs to, what the client is called, and what it can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp.server.context import ServerRequestContext
from mcp_types import ClientCapabilities, RequestId
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

__all__ = ["ONLY", "Context", "Who", "searches_itself", "who"]

Context: TypeAlias = ServerRequestContext[Any, Any]

ONLY = "stdio"  # the one conversation of a connection that only one client has
SESSION_HEADER = "mcp-session-id"
# Clients that defer tools and search them on their own, as public code shows. Shown a search too, models search twice.
_SEARCHING = ("claude-code", "github-copilot-cli", "copilot-cli")


@dataclass(frozen=True)
class Who:
    """The sender of a request. `key` is that of its conversation, None where every request is one of its own.

    `is_modern`: a client of the stateless generation, which takes no requests of a server.
    """

    key: str | None
    name: str
    version: str
    capabilities: ClientCapabilities
    is_modern: bool
    request_id: RequestId | None

    @property
    def can_be_asked(self) -> bool:
        """Whether the client says that it can put a form before a person."""
        return self.capabilities.elicitation is not None


def who(context: Context) -> Who:
    """The sender of the request that a handler was given."""
    session = context.session
    info = session.client_params.client_info if session.client_params is not None else None
    return Who(
        _key(context),
        info.name if info is not None else "",
        info.version if info is not None else "",
        session.client_capabilities or ClientCapabilities(),
        context.protocol_version in MODERN_PROTOCOL_VERSIONS,
        context.request_id,
    )


def _key(context: Context) -> str | None:
    """`context.session` is another object for each request; what lasts is the connection of stdio, or a header."""
    if context.request is None:
        return ONLY
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return None
    session: str | None = context.request.headers.get(SESSION_HEADER)
    return session


def searches_itself(name: str) -> bool:
    """Whether a client of this name searches the tools of its servers on its own."""
    return name.lower().startswith(_SEARCHING)
