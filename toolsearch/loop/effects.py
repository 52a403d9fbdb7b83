"""What the loop asks of its driver, and what the driver hands it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from toolsearch.events.facts import Event, ReplyDiscarded, TextDelta
from toolsearch.loop.activities import Activity

__all__ = [
    "CANCEL",
    "Abandon",
    "Append",
    "Cancelled",
    "Effect",
    "Effects",
    "Emit",
    "InboxItem",
    "Overdue",
    "Receive",
    "Spawn",
    "StreamEvent",
]

StreamEvent = Event | TextDelta | ReplyDiscarded


@dataclass(frozen=True, slots=True)
class Emit:
    """Show an event."""

    event: StreamEvent


@dataclass(frozen=True, slots=True)
class Append:
    """Append facts to the stored journal, the first of which has this place in it."""

    position: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Receive:
    """Give the next item of the inbox; None after so many seconds."""

    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start an activity in the background; what it posts carries the key."""

    key: int
    activity: Activity


@dataclass(frozen=True, slots=True)
class Abandon:
    """Stop an activity, if that can be done; nobody waits for it any more."""

    key: int


Effect: TypeAlias = Emit | Append | Receive | Spawn | Abandon
T = TypeVar("T")
Effects: TypeAlias = Generator[Effect, Any, T]


@dataclass(frozen=True, slots=True)
class InboxItem:
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


CANCEL = InboxItem(-1)
