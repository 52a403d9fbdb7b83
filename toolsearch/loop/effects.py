"""What the loop asks its driver to do, and the items the driver gives it in return."""

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
    """Show an event to the consumer of the stream."""

    event: StreamEvent


@dataclass(frozen=True, slots=True)
class Append:
    """Append facts to the stored journal; `position` is the place of the first one."""

    position: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Receive:
    """Return the next item of the inbox, or None after so many seconds."""

    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start an activity in the background; the items it posts carry the key."""

    key: int
    activity: Activity


@dataclass(frozen=True, slots=True)
class Abandon:
    """Stop an activity if possible; nobody waits for it any more."""

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
    value: object = None
    error: BaseException | None = None


class Cancelled(BaseException):
    """The turn has to stop now."""


class Overdue(Cancelled):
    """The time limit of the turn is reached."""


CANCEL = InboxItem(-1)
