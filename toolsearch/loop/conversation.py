"""A conversation as a state machine: facts in, commands out; no clock, no I/O, no thread.

    next() -> CallModel | CallTools | Paused | Finished     what is to be done now
    apply(fact)                                             what has happened

    a turn         RunBegan UserSaid (ModelReplied batch?)* RunEnded
    a batch        one slot a call of the reply; each is answered once, by ToolReturned
    a slot         open -> ToolStarted -> ToolReturned, or -> ToolWaiting -> ToolApproved | ToolDenied -> …
                   a call that has started may wait too: begun, and now waits; it starts again once that is decided

Invariants. A fact that cannot be is refused, and changes nothing. The answers of a batch come in any order and take
effect together, in the order the model asked. What is said while a batch is open is read after it. The journal is the
only history: `replay` of it gives the same conversation, and reads no catalog but for the tools still to be shown.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from toolsearch.calls import ToolCall
from toolsearch.errors import SetupError, StateError
from toolsearch.events.facts import (
    Answers,
    Compacted,
    Ending,
    Event,
    JudgedCall,
    Message,
    ModelReplied,
    Note,
    RunBegan,
    RunEnded,
    ToolApproved,
    ToolDenied,
    ToolReturned,
    ToolsFound,
    ToolsRevealed,
    ToolStarted,
    ToolsUnloaded,
    ToolWaiting,
    UserSaid,
)
from toolsearch.events.journal import cleaned, read_event, stored
from toolsearch.events.requests import CallModel, CallTools, Finished, Paused, Waiting
from toolsearch.events.turn_view import TurnView
from toolsearch.session.session import Session
from toolsearch.support.text import clean

if TYPE_CHECKING:
    from toolsearch.calls import Caller
    from toolsearch.tool_search import ToolSearch

__all__ = ["Conversation"]

Command = CallModel | CallTools | Paused | Finished


@dataclass(slots=True)
class _Slot:
    """One call of the batch that is open. `started`: it was begun, and what came of it is not known."""

    call: JudgedCall
    started: bool = False
    waiting: ToolWaiting | None = None
    approved: ToolApproved | None = None
    denied: ToolDenied | None = None
    result: ToolReturned | None = None

    @property
    def settled(self) -> ToolApproved | ToolDenied | None:
        """What was decided of a call that waits."""
        return self.approved or self.denied

    @property
    def delegated(self) -> ToolApproved | ToolDenied | None:
        """What was decided about something the call began, and not about the call."""
        return self.settled if self.waiting is not None and self.waiting.kind == "delegated" else None


class Conversation:
    """The state of one conversation. Use it with a driver of your own, or let an `Agent` drive it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._journal: list[Event] = []
        self._messages: list[tuple[int, Message]] = []  # with the place in the journal where each begins
        self._slots: dict[str, _Slot] = {}  # of the open batch, in the model's order
        self._replied_at = 0
        self._heard: list[tuple[int, Message]] = []  # what was said while the batch was open
        self._used_ids: set[str] = set()
        self._began = 0  # the place where the turn begins
        self._running = False
        self._ending: Ending | None = None
        self._finished: Finished | None = None
        self._session_state: Mapping[str, Any] = {}
        self._session_at = -1  # the place of the fact that holds it

    # -- what is known -------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def journal(self) -> tuple[Event, ...]:
        """Every fact, in order."""
        return tuple(self._journal)

    @property
    def transcript(self) -> tuple[Message, ...]:
        """What the model is shown."""
        return tuple(message for _, message in self._messages)

    @property
    def running(self) -> bool:
        """Whether a turn is going on: begun, and not ended."""
        return self._running

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The calls that wait for a person."""
        return tuple(
            Waiting(slot.call, slot.waiting)
            for slot in self._slots.values()
            if slot.waiting is not None and slot.result is None and slot.settled is None
        )

    @property
    def open(self) -> tuple[JudgedCall, ...]:
        """The calls without an answer, waiting ones too, in the model's order."""
        return tuple(slot.call for slot in self._slots.values() if slot.result is None)

    @property
    def begun(self) -> frozenset[str]:
        """Ids of the open calls that were begun, by whatever process."""
        return frozenset(slot.call.id for slot in self._slots.values() if slot.started and slot.result is None)

    @property
    def turn(self) -> TurnView:
        return TurnView(tuple(self._journal), self._began)

    def places(self) -> tuple[int, ...]:
        """For each message of the transcript the place in the journal where it begins, for `Compacted`.

        The answers of a batch have the place of the reply they belong to, so no cut parts them.
        """
        return tuple(place for place, _ in self._messages)

    # -- what to do ----------------------------------------------------------------------------------------------

    def next(self) -> Command:
        """What is to be done now. Asking changes nothing but what the session counts as callable."""
        if not self._running:
            return self._finished or Finished("", "nothing was said", conversation_id=self.id)
        todo = [slot for slot in self._slots.values() if slot.result is None]
        if ready := [slot for slot in todo if slot.waiting is None or slot.settled]:
            return self._calls(ready)
        if todo:
            return Paused(self.waiting, self.id, self.turn.usage)
        if self._ending is not None:
            text = self._ending.text
            return self._end(self._last_text() if text is None else text, self._ending.reason)
        last = self._last()
        if last is None:
            return self._end("", "nothing was said")
        if isinstance(last, ModelReplied):
            return self._end(last.text, "answered", last.value)
        if isinstance(last, Answers) and (ended := self._ended_by(last)):
            return ended
        return CallModel(
            self.transcript, tuple(self.session.tools()), conversation_id=self.id, turn=self.turn, places=self.places()
        )

    def _calls(self, ready: Sequence[_Slot]) -> CallTools:
        """A call that waits for what it began may run itself, whatever is decided about that."""
        delegated = {slot.call.id: decided for slot in ready if (decided := slot.delegated)}
        approved = {slot.call.id: slot.approved for slot in ready if slot.approved}
        return CallTools(
            tuple(slot.call for slot in ready),
            frozenset(slot.call.id for slot in ready if slot.started),
            {
                **approved,
                **{i: ToolApproved(i, actor=decided.actor, at=decided.at) for i, decided in delegated.items()},
            },
            {slot.call.id: slot.denied for slot in ready if slot.denied and slot.call.id not in delegated},
            delegated,
        )

    def _last(self) -> Message | None:
        """The last message that somebody said or a tool gave."""
        return next((message for _, message in reversed(self._messages) if not isinstance(message, Note)), None)

    def _ended_by(self, answers: Answers) -> Finished | None:
        """The end of a turn by its tools: one that is terminal, or all of a round that return directly."""
        reply = next(m for _, m in reversed(self._messages) if isinstance(m, ModelReplied))
        results = {result.call_id: result for result in answers.results}
        if done := [call for call in reply.calls if call.marks.terminal and results[call.id].status == "ok"]:
            return self._end(results[done[-1].id].content, "terminal tool", results[done[-1].id].data)
        direct = all(call.marks.return_direct and results[call.id].status == "ok" for call in reply.calls)
        if direct:
            text = "\n\n".join(result.content for result in answers.results)
            return self._end(text, "returned directly", answers.results[-1].data)
        return None

    def _end(self, text: str, reason: str, value: Any = None) -> Finished:
        return Finished(text, reason, value, self.id, self.turn.usage)

    def _last_text(self) -> str:
        """The last words of the model in this turn, if it has said anything."""
        return next((reply.text for reply in reversed(self.turn.replies) if reply.text), "")

    def decide_calls(self, calls: Sequence[ToolCall]) -> tuple[JudgedCall, ...]:
        """The calls of a reply, each with an id of its own and what is to be done with it, for `ModelReplied`.

        Changes nothing. What a call is decided to `reveal` is to be loaded with `session.load`.
        """
        ids = self.distinct([call.id for call in calls])
        return tuple([self._settle(ToolCall(i, call.name, call.arguments)) for i, call in zip(ids, calls, strict=True)])

    def _settle(self, call: ToolCall) -> JudgedCall:
        decision = self.session.decide(call)
        asked = JudgedCall(call.id, decision.call.name, decision.call.arguments, reveal=decision.reveal)
        if (result := decision.result) is not None:
            return replace(asked, kind="answered", status=result.status, answer=result.content)
        if (tool := decision.tool) is None:
            return replace(asked, kind="search")
        return replace(asked, tool=tool.id, digest=tool.digest, given=decision.arguments, marks=tool.marks)

    def distinct(self, ids: Sequence[Any]) -> list[str]:
        """Call ids that no earlier call of the conversation has; one that is new and not empty stays as it is."""
        made: list[str] = []
        for place, given in enumerate(ids):
            told = clean(str(given or ""))
            new, number = told, len(self._journal)
            while not new or new in self._used_ids or new in made:
                new = f"{told[:24] or 'call'}_{number}_{place}"
                number += 1
            made.append(new)
        return made

    # -- what has happened ---------------------------------------------------------------------------------------

    def apply(self, event: Event) -> Event:
        """Takes in a fact, and returns it as it is kept. Raises `StateError` for one that cannot be."""
        event = cleaned(event)
        match event:
            case RunBegan():
                self._check(not self._running, event, "a turn is going on already")
                self._running, self._ending, self._finished = True, None, None
                self._began = len(self._journal)
            case UserSaid():
                self._check(self._running, event, "no turn has begun")
                self._hear(event)
            case ModelReplied():
                self._replied(event)
            case ToolStarted() | ToolWaiting() | ToolApproved() | ToolDenied() | ToolReturned() | ToolsFound():
                self._called(event)
            case Compacted():
                self._compacted(event)
            case Ending():
                self._check(self._running, event, "no turn is going on")
                self._ending = self._ending or event
            case RunEnded():
                self._check(self._running, event, "no turn is going on")
                self._check(not self.open, event, f"the call {self.open[0].id!r} has no answer" if self.open else "")
                self._running = False
                self._finished = Finished(event.text, event.reason, event.value, self.id, self.turn.usage)
            case ToolsUnloaded() if event.told:
                self._hear(Note("Tools have changed: " + "; ".join(event.told)))
            case _:
                pass
        if isinstance(event, ToolsFound | ToolsRevealed | ToolsUnloaded) and event.session:
            self._session_state, self._session_at = event.session, len(self._journal)
        self._journal.append(event)
        return event

    def _hear(self, message: Message) -> None:
        """Nothing comes between a reply and its answers: what is said meanwhile is read after them."""
        (self._heard if self._slots else self._messages).append((len(self._journal), message))

    def _replied(self, event: ModelReplied) -> None:
        self._check(self._running, event, "no turn has begun")
        self._check(not self._slots, event, "calls of the reply before it have no answer yet")
        self._check(
            not isinstance(self._last(), ModelReplied), event, "it answers nothing: the last message is a reply"
        )
        ids = [call.id for call in event.calls]
        twice = next((i for i in ids if not i or i in self._used_ids or ids.count(i) > 1), None)
        self._check(twice is None, event, f"the call id {twice!r} is used already; see `distinct`")
        self._replied_at = len(self._journal)
        self._messages.append((self._replied_at, event))
        self._used_ids |= set(ids)
        self._slots = {call.id: _Slot(call) for call in event.calls}

    def _called(self, event: ToolStarted | ToolWaiting | ToolApproved | ToolDenied | ToolReturned | ToolsFound) -> None:
        slot = self._slots.get(event.call_id)
        if slot is None or slot.result is not None:
            known = event.call_id in self._used_ids
            why = "has its answer already" if known else "was never made in this conversation"
            raise StateError(f"{type(event).__name__}: the call {event.call_id!r} {why}")
        match event:
            case ToolStarted():
                may = slot.waiting is None or slot.approved is not None or slot.delegated is not None
                self._check(may, event, "the call waits for a person")
                self._check(
                    not slot.started or slot.call.marks.repeatable, event, "the call was begun, and may not be twice"
                )
                slot.started = True
            case ToolWaiting():
                self._check(slot.denied is None or slot.delegated is not None, event, "the call was declined")
                self._check(slot.waiting is None or slot.settled is not None, event, "the call waits already")
                slot.waiting, slot.approved, slot.denied, slot.started = event, None, None, False
            case ToolApproved() | ToolDenied():
                self._check(slot.waiting is not None, event, f"the call {event.call_id!r} waits for nothing")
                self._check(slot.settled is None, event, f"the call {event.call_id!r} was decided already")
                if isinstance(event, ToolApproved):
                    slot.approved = event
                else:
                    slot.denied = event
            case ToolReturned():
                slot.result = event
                if not self.open:
                    self._close_batch()
            case ToolsFound():
                self._check(slot.call.kind == "search", event, "the call is no search")

    def _close_batch(self) -> None:
        """All calls are answered: the answers take effect, in the order of the calls, and what was said meanwhile."""
        results = tuple(slot.result for slot in self._slots.values() if slot.result is not None)
        self._messages.append((self._replied_at, Answers(results)))
        self._messages += self._heard
        self._slots, self._heard = {}, []

    def _compacted(self, event: Compacted) -> None:
        most = self._replied_at if self._slots else len(self._journal)
        why = "calls of the reply there have no answer yet" if self._slots else "the journal is not so long"
        self._check(0 <= event.before <= most, event, f"it cannot cut before place {event.before}: {why}")
        self._check(all(place < event.before for place in event.kept), event, "what it keeps is kept anyway")
        kept = [each for each in self._messages if each[0] >= event.before or each[0] in event.kept]
        # Its place is before the cut, so that the next summary takes the place of this one.
        note = [(event.before - 1, Note(event.summary))] if event.summary else []
        self._messages = [*note, *kept]

    def _check(self, holds: bool, event: Event, why: str) -> None:
        if not holds:
            raise StateError(f"{type(event).__name__} cannot be: {why}")

    # -- storing -------------------------------------------------------------------------------------------------

    def export(self) -> list[dict[str, Any]]:
        """The journal as JSON-ready data, for `replay`. Keep it where the client cannot change it."""
        return [stored(event) for event in self._journal]

    @classmethod
    def replay(
        cls,
        search: ToolSearch,
        events: Iterable[Event | Mapping[str, Any]],
        *,
        conversation_id: str | None = None,
        caller: Caller | None = None,
    ) -> Conversation:
        """The conversation with this journal: facts, or what `export` gave. Raises `StateError` for what is none.

        The journal is trusted: never take it from a client.
        """
        if conversation_id is not None and not isinstance(conversation_id, str):
            raise SetupError(f"a conversation id must be text, not {conversation_id!r}")
        made = cls(Session(search.view, clean(conversation_id or "") or secrets.token_urlsafe(16), caller))
        for place, event in enumerate(events):
            fact = read_event(event, place) if isinstance(event, Mapping) else event
            try:
                made.apply(fact)
            except (TypeError, AttributeError) as error:  # a field holds what it never does
                kind = type(fact).__name__
                raise StateError(f"fact {place} of the journal, a {kind}, cannot be: {error}") from None
        if (state := made._session_state) and not isinstance(state, Mapping):
            raise StateError(f"fact {made._session_at} of the journal holds no session, but {state!r}")
        if state:
            made.session = Session.from_state(search.view, {**state, "id": made.id}, caller)
        if made._slots and made._session_at < made._replied_at:
            made.session.tools()  # as it was done before the reply: its calls are of what was shown then
        return made

    def __repr__(self) -> str:
        state = "running" if self._running else "idle"
        return f"Conversation({self.id!r}, {state}, {len(self._journal)} facts, {len(self._messages)} messages)"
