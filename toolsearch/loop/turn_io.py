"""What a turn does through its driver: it records facts, shows events, and runs activities.

Nothing here decides anything. Facts are recorded on the driver's thread only. Items that arrive late, after a time-out
or a cancellation, are dropped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from toolsearch.calls import Caller, ToolResult, actor_of
from toolsearch.calls.returned import data_to_store, parts_to_store
from toolsearch.errors import SetupError
from toolsearch.events.facts import Compacted, Event, JudgedCall, TextDelta, ToolReturned, ToolsRevealed
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
from toolsearch.loop.large_facts import is_plain
from toolsearch.loop.layering import Perform, Steps, Wanted
from toolsearch.loop.resumption import Resolution
from toolsearch.loop.trampoline import Trampoline
from toolsearch.protocols import Do, Layer, Model, NamedModel, Observer, Record, RedactingLayer, Sleep
from toolsearch.support import checks
from toolsearch.support.checks import offers
from toolsearch.support.text import NOTHING
from toolsearch.support.threads import StopFlag
from toolsearch.tool_search import ToolSearch

__all__ = ["AgentParts", "RequestDropped", "TurnIO"]

log = logging.getLogger("toolsearch")

RequestT = TypeVar("RequestT")


@dataclass(frozen=True, slots=True)
class AgentParts:
    """The parts of an agent."""

    model: Model
    search: ToolSearch
    system: str | Callable[[str], str]
    layers: list[Layer]
    observers: list[Observer]
    clock: Callable[[], float]
    preselect: int | None = None  # the most tools that come with the user's message, in place of the setting

    def system_text(self, note: str) -> str:
        """The system text with the session's note about searching: behind it, or where the program's function says."""
        if isinstance(self.system, str):
            return "\n\n".join(filter(None, (self.system, note)))
        text: object = self.system(note)
        if not isinstance(text, str):
            raise SetupError(f"the function system of the agent must return a text, not {text!r}")
        return text

    @property
    def model_name(self) -> str:
        return str(self.model.name or "") if offers(self.model, NamedModel) else ""


class RequestDropped(Exception):  # not a failure
    """The request contains messages that have been cut since: it has to be made anew."""


class TurnIO:
    """The connection of one turn to its driver. `post` puts an item into the turn's inbox, from any thread."""

    def __init__(self, parts: AgentParts, caller: Caller | None, post: Callable[[InboxItem], None]) -> None:
        self.parts, self.caller = parts, caller
        self.cancelled = StopFlag()  # tools get it in their `ToolContext`
        self.until: float | None = None  # when the time limit of the turn is reached
        self.started: set[str] = set()  # calls that this process was the first to begin
        self.performed: set[str] = set()  # those that have come through the layers, so that they may have run
        self.is_torn = False  # whether a store refused facts, so that it lacks some of this turn
        self.was_compacted = False  # whether the transcript was cut, and the session does not know yet
        self.conversation: Conversation
        self._post = post
        self._keys = 0
        self._redactors = [layer for layer in parts.layers if offers(layer, RedactingLayer)]

    @property
    def turn(self) -> TurnView:
        return self.conversation.turn

    @property
    def actor(self) -> str:
        return actor_of(self.caller)

    def now(self) -> float:
        return checks.time_of(self.parts.clock)

    def cancel(self) -> None:
        self.cancelled.set()
        self._post(CANCEL)

    # -- facts ---------------------------------------------------------------------------------------------------

    def record(self, *events: Event) -> Effects[None]:
        """Applies facts to the conversation, stores them, and shows them. Layers redact them before that."""
        position = len(self.conversation.journal)
        for layer in self._redactors:
            events = tuple([layer.as_stored(event) for event in events])
        applied = tuple([self.conversation.apply(self._with_time(event)) for event in events])
        try:
            yield Append(position, applied)
        except Exception:
            self.is_torn = True
            raise
        self.was_compacted |= any(isinstance(event, Compacted) for event in applied)
        for event in applied:  # all are observed, even if the consumer of the stream stops at the first
            self._observe(event)
        for event in applied:
            yield Emit(event)

    def show(self, event: StreamEvent) -> Effects[None]:
        """Shows an event that is not stored."""
        self._observe(event)
        yield Emit(event)

    def answer(self, call: JudgedCall, result: ToolResult, by: str, seconds: float = 0.0) -> Effects[None]:
        """Records the answer to a call; `by` says who gave it, see `ToolReturned`."""
        answer = self._answer_fact(call, result, by, seconds)
        if result.loaded and call.kind != "search":  # what a search brings is stored with what it found
            # Stored together, so that the session knows in the next turn, or process, that the model has it.
            yield from self.record(answer, ToolsRevealed((), self.conversation.session.export()))
        else:
            yield from self.record(answer)

    def resolve(self, resolutions: Iterable[Resolution]) -> Effects[None]:
        """Records resolutions, one after the other."""
        for each in resolutions:
            answer = [] if each.result is None else [self._answer_fact(each.call, each.result, each.by)]
            yield from self.record(*each.facts, *answer)

    def _answer_fact(self, call: JudgedCall, result: ToolResult, by: str, seconds: float = 0.0) -> ToolReturned:
        data = data_to_store(result)
        if not is_plain(data):
            data = None
        content = result.content if result.content.strip() else NOTHING  # a layer may have given a blank one
        parts = parts_to_store(result)
        return ToolReturned(call.id, result.status, content, data, by, seconds, self.now(), parts, result.loaded)

    def _with_time(self, event: Event) -> Event:
        """The fact with the time; layers do not know it and leave it out."""
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
        inner: Steps[RequestT],
        perform: Callable[[RequestT, float | None], Effects[object]],
        after_record: Callable[[Event], None] = lambda _: None,
    ) -> Effects[object]:
        """Does what layers yield; `perform` does the innermost step. `after_record` may raise `RequestDropped`."""
        steps: Trampoline[Wanted[RequestT], object] = Trampoline(
            inner, passing=(GeneratorExit, Cancelled, RequestDropped)
        )
        try:
            while steps.advance():
                with steps:
                    match steps.wanted:
                        case Sleep(seconds):
                            yield from self._pause(seconds)
                        case Do(function, bound, share):
                            bound = self._within_turn(bound, share)
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
        """Starts an activity; returns the key of its items."""
        self._keys += 1
        yield Spawn(self._keys, activity)
        return self._keys

    def receive(self, seconds: float | None = None) -> Effects[InboxItem | None]:
        """The next item, or None after so many seconds. Raises if the turn has to stop, or its time is over."""
        left = None if self.until is None else max(0.0, self.until - time.monotonic())
        first = left is not None and (seconds is None or left < seconds)
        item: InboxItem | None = yield Receive(left if first else seconds)
        if item is CANCEL:
            raise Cancelled
        if item is None and first:
            raise Overdue
        return item

    def run_activity(
        self,
        activity: Activity,
        seconds: float | None = None,
        posted: Callable[[TextDelta], Effects[None]] | None = None,
    ) -> Effects[object]:
        """Runs one activity and waits for its result; `posted` gets what it posts, None drops that."""
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
            elif isinstance(item.error, GeneratorExit):  # raised by the activity; nobody closes this generator
                raise RuntimeError("the activity raised GeneratorExit") from item.error
            elif item.error is not None:
                raise item.error
            else:
                return item.value

    def _within_turn(self, seconds: float | None, share: float | None) -> float | None:
        """The time limit, and at most this share of what is left of the turn."""
        if share is None or self.until is None:
            return seconds
        left = max(0.0, self.until - time.monotonic()) * share
        return left if seconds is None else min(seconds, left)

    def _pause(self, seconds: float) -> Effects[None]:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            yield from self.receive(left)
