"""What a server says of itself when it is connected: what it has, and how it wants to be used."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_types import ServerCapabilities

__all__ = ["NOTHING", "Offer"]


@dataclass(frozen=True)
class Offer:
    """The capabilities of a server, and its instructions for a model; both empty before it was connected."""

    capabilities: ServerCapabilities
    instructions: str = ""

    def has(self, kind: str) -> bool:
        """Whether it offers "tools", "resources", "prompts", "completions" or "logging"."""
        return getattr(self.capabilities, kind, None) is not None


NOTHING = Offer(ServerCapabilities())
