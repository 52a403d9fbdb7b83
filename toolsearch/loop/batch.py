"""The open batch of a conversation: the calls of the last reply, until each has its answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from toolsearch.errors import StateError
from toolsearch.events.facts import (
    Event,
    JudgedCall,
    ToolApproved,
    ToolDenied,
    ToolReturned,
    ToolsFound,
    ToolStarted,
    ToolWaiting,
)
from toolsearch.events.requests import CallTools, Waiting

__all__ = ["Batch", "CallFact", "require"]

CallFact: TypeAlias = ToolStarted | ToolWaiting | ToolApproved | ToolDenied | ToolReturned | ToolsFound
"""The facts about one call."""


def require(holds: bool, event: Event, why: str) -> None:
    """Refuses a fact that is not valid now: raises `StateError` unless the condition holds."""
    if not holds:
        raise StateError(f"{type(event).__name__} is not valid now: {why}")


@dataclass(slots=True)
class _Slot:
    """The state of one call. `started` means that it was begun, and its outcome is not known yet."""

    call: JudgedCall
    started: bool = False
    waiting: ToolWaiting | None = None
    approved: ToolApproved | None = None
    denied: ToolDenied | None = None
    result: ToolReturned | None = None

    @property
    def decision(self) -> ToolApproved | ToolDenied | None:
        """The decision about a waiting call, if there is one."""
        return self.approved or self.denied

    @property
    def delegated(self) -> ToolApproved | ToolDenied | None:
        """The decision, if it is about something that the call began, and not about the call itself."""
        return self.decision if self.waiting is not None and self.waiting.kind == "delegated" else None

    @property
    def is_undecided(self) -> bool:
        """Whether the call waits for a person who has not decided yet."""
        return self.waiting is not None and self.decision is None


class Batch:
    """The calls of one reply, one slot each, in the model's order. A batch without calls is closed."""

    def __init__(self, calls: Iterable[JudgedCall] = ()) -> None:
        self._slots = {call.id: _Slot(call) for call in calls}

    def __bool__(self) -> bool:
        return bool(self._slots)

    def _unanswered(self) -> list[_Slot]:
        return [slot for slot in self._slots.values() if slot.result is None]

    @property
    def open(self) -> tuple[JudgedCall, ...]:
        """The calls without an answer, including waiting ones."""
        return tuple(slot.call for slot in self._unanswered())

    @property
    def begun(self) -> frozenset[str]:
        """The ids of the open calls that were begun."""
        return frozenset(slot.call.id for slot in self._unanswered() if slot.started)

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The calls that wait for a person."""
        return tuple(
            Waiting(slot.call, slot.waiting)
            for slot in self._unanswered()
            if slot.waiting is not None and slot.decision is None
        )

    @property
    def results(self) -> tuple[ToolReturned, ...]:
        """The answers so far."""
        return tuple(slot.result for slot in self._slots.values() if slot.result is not None)

    def is_open(self, call_id: str) -> bool:
        """Whether a call belongs to this batch and has no answer yet."""
        return call_id in self._slots and self._slots[call_id].result is None

    def command(self) -> CallTools | None:
        """What to do about the calls that wait for nobody; None if there are none."""
        ready = [slot for slot in self._unanswered() if not slot.is_undecided]
        if not ready:
            return None
        delegated = {slot.call.id: decision for slot in ready if (decision := slot.delegated)}
        approved = {slot.call.id: slot.approved for slot in ready if slot.approved}
        # A call may run itself, whatever is decided about something that it began.
        passed_on = {
            call_id: ToolApproved(call_id, actor=decision.actor, at=decision.at)
            for call_id, decision in delegated.items()
        }
        return CallTools(
            tuple(slot.call for slot in ready),
            frozenset(slot.call.id for slot in ready if slot.started),
            {**approved, **passed_on},
            {slot.call.id: slot.denied for slot in ready if slot.denied and slot.call.id not in delegated},
            delegated,
        )

    def apply(self, event: CallFact) -> None:
        """Records a fact about an open call. Raises `StateError` if the fact is not valid now, and changes nothing."""
        slot = self._slots[event.call_id]
        match event:
            case ToolStarted():
                may_start = slot.waiting is None or slot.approved is not None or slot.delegated is not None
                require(may_start, event, "the call waits for a person")
                may_repeat = not slot.started or slot.call.marks.repeatable
                require(may_repeat, event, "the call was begun already, and may not run twice")
                slot.started = True
            case ToolWaiting():
                require(slot.denied is None or slot.delegated is not None, event, "the call was declined")
                require(not slot.is_undecided, event, "the call waits already")
                slot.waiting, slot.approved, slot.denied, slot.started = event, None, None, False
            case ToolApproved() | ToolDenied():
                require(slot.waiting is not None, event, f"the call {event.call_id!r} is not waiting")
                require(slot.decision is None, event, f"the call {event.call_id!r} was decided already")
                if isinstance(event, ToolApproved):
                    slot.approved = event
                else:
                    slot.denied = event
            case ToolReturned():
                slot.result = event
            case ToolsFound():
                require(slot.call.kind == "search", event, "the call is not a search")
