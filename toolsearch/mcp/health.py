"""The state of a server: what it is, why, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["ServerHealth", "State"]

State = Literal["connecting", "ready", "failed", "needs login", "disabled"]


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """What is known of a server now.

    `reason` says what is wrong, in words that a model may read, and is empty for a server that is ready. `tools` is how
    many it has: those of a server that was lost stay. `since` is when this state began, in seconds since 1970.
    `attempts` counts the connections tried since it was last ready, and `seconds` is how long the last one took that
    succeeded.
    """

    state: State
    reason: str = ""
    tools: int = 0
    since: float = 0.0
    attempts: int = 0
    seconds: float | None = None

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"

    @property
    def is_settled(self) -> bool:
        """Whether the first attempt is over, with whatever outcome."""
        return self.state != "connecting"
