"""What the loop asks of its driver, and what the driver hands it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolsearch.events.facts import Event, ReplyDiscarded, TextDelta
from toolsearch.loop.activities import Activity

__all__ = ["CANCEL", "Cancelled", "Drop", "Emit", "Item", "Overdue", "Receive", "Spawn", "Store", "Visible"]

Visible = Event | TextDelta | ReplyDiscarded


@dataclass(frozen=True, slots=True)
class Emit:
    """Show an event."""

    event: Visible


@dataclass(frozen=True, slots=True)
class Store:
    """Keep facts, the first of which has this place in the journal."""

    position: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Receive:
    """Give the next item of the inbox; None after so many seconds."""

    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Spawn:
    """Run an activity beside; what it posts carries the key."""

    key: int
    activity: Activity


@dataclass(frozen=True, slots=True)
class Drop:
    """Stop an activity, if that can be done; nobody waits for it any more."""

    key: int


@dataclass(frozen=True, slots=True)
class Item:
    """Something an activity posted, or how it ended."""

    key: int
    posted: Any = None
    done: bool = False
    value: Any = None
    error: BaseException | None = None


class Cancelled(BaseException):
    """The turn is to stop now."""


class Overdue(Cancelled):
    """The turn's own time is over."""


CANCEL = Item(-1)
