"""What a turn does through its driver: facts taken in, stored and shown, activities run and waited for.

Nothing here decides anything. Facts are taken in on the driver's thread only; what comes in late, after a time-out or a
cancellation, is dropped.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolsearch.calls import Caller, ToolResult
from toolsearch.events.facts import Compacted, Event, JudgedCall, ToolReturned
from toolsearch.events.turn_view import TurnView
from toolsearch.loop.activities import Activity, FunctionActivity
from toolsearch.loop.conversation import Conversation
from toolsearch.loop.effects import (
    CANCEL,
    Abandon,
    Append,
    Cancelled,
    Effects,
    Emit,
    InboxItem,
    Overdue,
    Receive,
    Spawn,
    StreamEvent,
)
from toolsearch.loop.layering import Perform, Steps, Wanted
from toolsearch.loop.resumption import Resolution
from toolsearch.loop.trampoline import Trampoline
from toolsearch.protocols import Do, Layer, Model, NamedModel, Observer, Record, RedactingLayer, Sleep
from toolsearch.tool_search import ToolSearch

__all__ = ["AgentParts", "Perform", "RequestDropped", "TurnIO"]

log = logging.getLogger("toolsearch")


@dataclass(frozen=True, slots=True)
class AgentParts:
    """What an agent is made of."""

    model: Model
    search: ToolSearch
    system: str
    layers: list[Layer]
    observers: list[Observer]
    clock: Callable[[], float]

    @property
    def model_name(self) -> str:
        return str(self.model.name or "") if isinstance(self.model, NamedModel) else ""


class RequestDropped(Exception):  # it is no failure
    """The request shows what is shown no more: it is made anew."""


class TurnIO:
    """One turn's way to its driver. `post` puts an item into the turn's inbox, from any thread."""

    def __init__(self, parts: AgentParts, caller: Caller | None, post: Callable[[InboxItem], None]) -> None:
        self.parts, self.caller = parts, caller
        self.cancelled = threading.Event()  # tools see it
        self.until: float | None = None  # when the turn's own time is over
        self.started: set[str] = set()  # calls that this process has begun
        self.is_torn = False  # whether a store refused facts: what is kept is not what this turn knows
        self.was_compacted = False  # whether the transcript was cut since the session was told
        self.conversation: Conversation
        self._post = post
        self._keys = 0
        self._redactors = [layer for layer in parts.layers if isinstance(layer, RedactingLayer)]

    @property
    def turn(self) -> TurnView:
        return self.conversation.turn

    @property
    def actor(self) -> str:
        return (self.caller.user if self.caller else None) or ""

    def now(self) -> float:
        return self.parts.clock()

    def cancel(self) -> None:
        self.cancelled.set()
        self._post(CANCEL)

    # -- facts ---------------------------------------------------------------------------------------------------

    def record(self, *events: Event) -> Effects[None]:
        """Takes facts in, stores them, and shows them; what a layer redacts is redacted before all that."""
        position = len(self.conversation.journal)
        for layer in self._redactors:
            events = tuple([layer.as_stored(event) for event in events])
        kept = tuple([self.conversation.apply(self._timed(event)) for event in events])
        try:
            yield Append(position, kept)
        except Exception:
            self.is_torn = True
            raise
        self.was_compacted |= any(isinstance(event, Compacted) for event in kept)
        for event in kept:  # all are observed, even if whoever reads the stream leaves at the first
            self._observe(event)
        for event in kept:
            yield Emit(event)

    def show(self, event: StreamEvent) -> Effects[None]:
        """Shows an event that is not stored."""
        self._observe(event)
        yield Emit(event)

    def answer(self, call: JudgedCall, result: ToolResult, by: str, seconds: float = 0.0) -> Effects[None]:
        """Records the answer to a call; `by` says who gave it, see `ToolReturned`."""
        yield from self.record(self._returned(call, result, by, seconds))

    def resolve(self, resolutions: Iterable[Resolution]) -> Effects[None]:
        """Records what becomes of calls, one after the other."""
        for each in resolutions:
            answer = [] if each.result is None else [self._returned(each.call, each.result, each.by)]
            yield from self.record(*each.facts, *answer)

    def _returned(self, call: JudgedCall, result: ToolResult, by: str, seconds: float = 0.0) -> ToolReturned:
        data = result.data if _is_plain(result.data) else None
        return ToolReturned(call.id, result.status, result.content, data, by, seconds, self.now())

    def _timed(self, event: Event) -> Event:
        """A fact of a layer, which knows no time, gets it here."""
        untimed: Any = event
        return replace(untimed, at=self.now()) if getattr(event, "at", None) == 0.0 else event

    def _observe(self, event: StreamEvent) -> None:
        for observer in self.parts.observers:
            try:
                observer(event)
            except Exception:
                log.exception("the observer %r failed", observer)

    # -- layers --------------------------------------------------------------------------------------------------

    def interpret(
        self,
        inner: Steps[Any],
        perform: Callable[[Any, float | None], Generator[Any, Any, Any]],
        after_record: Callable[[Event], None] = lambda _: None,
    ) -> Effects[Any]:
        """Does what layers ask for; `perform` is the innermost step. `after_record` may raise `RequestDropped`."""
        steps: Trampoline[Wanted[Any], Any] = Trampoline(inner, passing=(GeneratorExit, Cancelled, RequestDropped))
        try:
            while steps.advance():
                with steps:
                    match steps.wanted:
                        case Sleep(seconds):
                            yield from self._pause(seconds)
                        case Do(function, bound):
                            steps.answer = yield from self.run_activity(FunctionActivity(function), bound)
                        case Record(event):
                            yield from self.record(event)
                            after_record(event)
                        case Perform(request, bound):
                            steps.answer = yield from perform(request, bound)
            return steps.result
        finally:
            steps.close()

    # -- activities ----------------------------------------------------------------------------------------------

    def spawn(self, activity: Activity) -> Effects[int]:
        """Starts an activity; returns the key that its items carry."""
        self._keys += 1
        yield Spawn(self._keys, activity)
        return self._keys

    def receive(self, seconds: float | None = None) -> Effects[InboxItem | None]:
        """The next item, or None after so many seconds. Raises where the turn is to stop, or its time is over."""
        left = None if self.until is None else max(0.0, self.until - time.monotonic())
        first = left is not None and (seconds is None or left < seconds)
        item: InboxItem | None = yield Receive(left if first else seconds)
        if item is CANCEL:
            raise Cancelled
        if item is None and first:
            raise Overdue
        return item

    def run_activity(
        self, activity: Activity, seconds: float | None = None, posted: Callable[[Any], Effects[None]] | None = None
    ) -> Effects[Any]:
        """Runs one activity and waits for it; `posted` takes what it posts, None drops it."""
        until = None if seconds is None else time.monotonic() + seconds
        key = yield from self.spawn(activity)
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            item = yield from self.receive(left)
            if item is None and left is not None:
                yield Abandon(key)
                raise TimeoutError(f"no answer within {seconds:g} s")
            if item is None or item.key != key:
                continue
            if not item.done:
                if posted is not None:
                    yield from posted(item.posted)
            elif isinstance(item.error, GeneratorExit):  # of the activity; nobody closes this generator
                raise RuntimeError("it raised GeneratorExit") from item.error
            elif item.error is not None:
                raise item.error
            else:
                return item.value

    def _pause(self, seconds: float) -> Effects[None]:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            yield from self.receive(left)


def _is_plain(value: object) -> bool:
    """Whether a value can be stored as it is; one that is nested without end cannot."""
    try:
        return _is_json(value)
    except RecursionError:
        return False


def _is_json(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        items: Sequence[object] = value
        return all(map(_is_json, items))
    return value is None or isinstance(value, str | int | float)
