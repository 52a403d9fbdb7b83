"""What a server says of itself when it is connected: what it has, and how it wants to be used."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_types import ServerCapabilities
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

__all__ = ["NOTHING", "Offer"]


@dataclass(frozen=True)
class Offer:
    """The capabilities of a server, its instructions for a model, and its protocol; empty before it was connected."""

    capabilities: ServerCapabilities
    instructions: str = ""
    protocol: str = ""

    @property
    def is_modern(self) -> bool:
        """Whether it speaks the generation of the protocol without sessions, in which a client asks for all news."""
        return self.protocol in MODERN_PROTOCOL_VERSIONS

    def has(self, kind: str) -> bool:
        """Whether it offers "tools", "resources", "prompts", "completions" or "logging"."""
        return getattr(self.capabilities, kind, None) is not None


NOTHING = Offer(ServerCapabilities())
