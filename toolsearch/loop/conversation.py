"""A conversation as a state machine: facts in, commands out; no clock, no I/O, no thread.

    next() -> CallModel | CallTools | Paused | Finished     what to do now
    apply(fact)                                             what has happened

    a turn         RunBegan UserSaid (ModelReplied batch?)* RunEnded
                   a reply that is empty or broken off is left out, and the model is asked once more; one that is
                   paused is continued by the next
    a batch        one slot per call of the reply; each is answered once, by ToolReturned
    a slot         open -> ToolStarted -> ToolReturned, or -> ToolWaiting -> ToolApproved | ToolDenied -> …
                   a call that has started may wait too; it starts again after the decision

Invariants. A fact that is not valid now is refused, and changes nothing. The answers of a batch may come in any order;
they take effect together, in the order of the model's calls. The model reads a message that comes while a batch is open
after the batch. The journal is the only history: `replay` builds the same conversation from it, and reads the catalog
only for the tools that are still to be shown.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from toolsearch.calls import Caller, JsonPart, ToolCall
from toolsearch.calls.answers import ANSWER_CHARACTERS
from toolsearch.errors import SetupError, StateError
from toolsearch.events import synthetic
from toolsearch.events.facts import (
    Answers,
    Compacted,
    Ending,
    Event,
    JudgedCall,
    Message,
    ModelReplied,
    Note,
    Reply,
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
from toolsearch.events.stops import no_answer, with_cut_end
from toolsearch.events.turn_view import TurnView
from toolsearch.loop.batch import Batch, CallFact, require
from toolsearch.loop.replies import answer_of, asks_again, is_asking_again, is_paused, note_for
from toolsearch.loop.session_states import SessionStates
from toolsearch.session.session import Session
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import LEVELS, bounded, clean, is_deeper, kept
from toolsearch.tool_search import ToolSearch

__all__ = ["Conversation"]

TOO_DEEP = f"(arguments that are nested more than {LEVELS} levels deep)"

Command = CallModel | CallTools | Paused | Finished


class Conversation:
    """The state of one conversation. Use it with a driver of your own, or let an `Agent` drive it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._journal: list[Event] = []
        self._messages: list[tuple[int, Message]] = []  # with the place in the journal where each begins
        self._batch = Batch()
        self._replied_at = 0  # the place of the reply that the batch belongs to
        self._postponed: list[tuple[int, Message]] = []  # messages that came while the batch was open
        self._used_ids: set[str] = set()  # ids of all calls
        self._began = 0  # the place where the turn begins
        self._running = False
        self._ending: Ending | None = None
        self._finished: Finished | None = None
        self._sessions = SessionStates()

    # -- what is known -------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The id of the conversation, and of its session."""
        return self.session.id

    @property
    def journal(self) -> tuple[Event, ...]:
        """Every fact, in order."""
        return tuple(self._journal)

    @property
    def transcript(self) -> tuple[Message, ...]:
        """The messages that the model is shown."""
        return tuple(message for _, message in self._messages)

    @property
    def running(self) -> bool:
        """Whether a turn has begun and not ended."""
        return self._running

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The calls that wait for a person."""
        return self._batch.waiting

    @property
    def open(self) -> tuple[JudgedCall, ...]:
        """The calls without an answer, including waiting ones, in the model's order."""
        return self._batch.open

    @property
    def begun(self) -> frozenset[str]:
        """The ids of the open calls that were begun, by this process or another."""
        return self._batch.begun

    @property
    def turn(self) -> TurnView:
        """The facts of the current turn, or of the last one."""
        return TurnView(tuple(self._journal), self._began)

    @property
    def has_session(self) -> bool:
        """Whether a fact has the exported session, so that a replay restores it and does not begin a new one."""
        return bool(self._sessions.state)

    def places(self) -> tuple[int, ...]:
        """For each message of the transcript, the place in the journal where it begins; `Compacted` uses these.

        The answers of a batch have the place of the reply they belong to, so that no cut separates them.
        """
        return tuple(place for place, _ in self._messages)

    # -- what to do ----------------------------------------------------------------------------------------------

    def next(self) -> Command:
        """What to do now. This changes nothing, except that the session fixes which tools can be called."""
        if not self._running:
            return self._finished or Finished("", "nothing was said", conversation_id=self.id)
        if (command := self._batch.command()) is not None:
            return command
        if self.open:
            return Paused(self.waiting, self.id, self.turn.usage)
        if self._ending is not None:
            text = self._ending.text
            if text is None:
                text = self._last_text() or synthetic.without_answer(self._ending.reason)
            return self._end(text, self._ending.reason)
        last = self._last()
        if last is None:
            return self._end("", "nothing was said")
        if isinstance(last, ModelReplied) and not is_paused(self._journal, last):
            return self._end(answer_of(self._journal), no_answer(last) or "answered", last.value)
        if isinstance(last, Answers) and (ended := self._end_by_tools(last)):
            return ended
        tools, deferred = tuple(self.session.tools()), tuple(self.session.deferred())
        return CallModel(
            self.transcript,
            tools,
            conversation_id=self.id,
            turn=self.turn,
            places=self.places(),
            deferred=deferred,
        )

    def _last(self) -> Message | None:
        """The last message that is not a note of the program."""
        return next((message for _, message in reversed(self._messages) if not isinstance(message, Note)), None)

    def asks_again(self, reply: Reply) -> bool:
        """Whether the model will be asked again after this reply, which is empty or broken off."""
        return asks_again(self._journal, reply)

    def _end_by_tools(self, answers: Answers) -> Finished | None:
        """The end of a turn by its tools: one is terminal, or all of the round return directly."""
        reply = next(m for _, m in reversed(self._messages) if isinstance(m, ModelReplied))
        results = {result.call_id: result for result in answers.results}
        if done := [call for call in reply.calls if call.marks.terminal and results[call.id].status == "ok"]:
            return self._end(results[done[-1].id].content, "terminal tool", _value_of(results[done[-1].id]))
        direct = all(call.marks.return_direct and results[call.id].status == "ok" for call in reply.calls)
        if direct:
            text = "\n\n".join(result.content for result in answers.results)
            return self._end(text, "returned directly", _value_of(answers.results[-1]))
        return None

    def _end(self, text: str, reason: str, value: object = None) -> Finished:
        return Finished(text, reason, value, self.id, self.turn.usage)

    def _last_text(self) -> str:
        """The last text of the model in this turn; empty if there is none."""
        return next((reply.text for reply in reversed(self.turn.replies) if reply.text.strip()), "")

    def decide_calls(self, calls: Sequence[ToolCall], stop: str = "") -> tuple[JudgedCall, ...]:
        """Decides what to do with each call of a reply, and gives it a unique id; pass the result to `ModelReplied`.

        `stop` is that of the reply: if the reply was cut off, its last call does not run. Changes nothing. Load the
        tools in the `reveal` of the calls with `session.load`.
        """
        marked = with_cut_end(calls, stop)
        single = [inner for call in marked for inner in self.session.inner_calls(call) or [call]]
        ids = self.distinct_ids([call.id for call in single])
        return tuple([self._decide(replace(call, id=i)) for i, call in zip(ids, single, strict=True)])

    def _decide(self, call: ToolCall) -> JudgedCall:
        plan = self.session.decide(call)
        arguments = TOO_DEEP if is_deeper(plan.call.arguments, LEVELS) else plan.call.arguments
        judged = JudgedCall(call.id, plan.call.name, kept(arguments), reveal=plan.reveal)
        if (result := plan.result) is not None:
            return replace(judged, kind="answered", status=result.status, answer=result.content)
        if (tool := plan.tool) is None:
            return replace(judged, kind="search")
        return replace(judged, tool=tool.id, digest=tool.digest, given=kept(plan.arguments), marks=tool.marks)

    def distinct_ids(self, ids: Sequence[object]) -> list[str]:
        """Call ids that no earlier call of the conversation has. An id that is new and not empty stays as it is."""
        distinct: list[str] = []
        for place, original in enumerate(ids):
            stem = clean(str(original or ""))
            unique, number = stem, len(self._journal)
            while not unique or unique in self._used_ids or unique in distinct:
                unique = f"{stem[:24] or 'call'}_{number}_{place}"
                number += 1
            distinct.append(unique)
        return distinct

    # -- what has happened ---------------------------------------------------------------------------------------

    def apply(self, event: Event) -> Event:
        """Records a fact and returns it as stored. Raises `StateError` if it is not valid now."""
        return self._record(self._sessions.compressed(cleaned(event)))

    def _record(self, event: Event) -> Event:
        match event:
            case RunBegan():
                require(not self._running, event, "a turn has begun already")
                self._running, self._ending, self._finished = True, None, None
                self._began = len(self._journal)
            case UserSaid():
                require(self._running, event, "no turn has begun")
                self._add_message(event)
            case ModelReplied():
                self._apply_reply(event)
            case ToolStarted() | ToolWaiting() | ToolApproved() | ToolDenied() | ToolReturned() | ToolsFound():
                self._apply_to_call(event)
            case Compacted():
                self._apply_compaction(event)
            case Ending():
                require(self._running, event, "no turn has begun")
                self._ending = self._ending or event
            case RunEnded():
                require(self._running, event, "no turn has begun")
                require(not self.open, event, f"the call {self.open[0].id!r} has no answer" if self.open else "")
                self._running = False
                if self._messages and is_asking_again(self._messages[-1][1]):  # the model was not asked again
                    self._messages.pop()
                self._finished = Finished(event.text, event.reason, event.value, self.id, self.turn.usage)
            case ToolsRevealed() if event.said:
                self._add_to_message(event)
            case ToolsUnloaded() if event.notices:
                self._add_message(Note(bounded("Tools have changed: " + "; ".join(event.notices), ANSWER_CHARACTERS)))
            case _:
                pass
        self._sessions.take(event, len(self._journal))
        self._journal.append(event)
        return event

    def _add_message(self, message: Message) -> None:
        """Adds a message. Nothing may come between a reply and its answers, so a message that comes meanwhile waits."""
        (self._postponed if self._batch else self._messages).append((len(self._journal), message))

    def _add_to_message(self, event: ToolsRevealed) -> None:
        """Adds what comes with the user's message to it, before the model reads it for the first time."""
        place, last = self._messages[-1] if self._messages and self._running else (0, None)
        if not isinstance(last, UserSaid):
            raise StateError("ToolsRevealed: its `said` belongs to the user's message, and that is not the last one")
        self._messages[-1] = place, replace(last, text=last.text + event.said, loaded=event.definitions)

    def _apply_reply(self, event: ModelReplied) -> None:
        require(self._running, event, "no turn has begun")
        require(not self._batch, event, "calls of the previous reply have no answer yet")
        last = self._last()
        goes_on = not isinstance(last, ModelReplied) or is_paused(self._journal, last)
        require(goes_on, event, "there is nothing to reply to: the last message is a reply")
        ids = [call.id for call in event.calls]
        twice = next((i for i in ids if not i or i in self._used_ids or ids.count(i) > 1), None)
        require(twice is None, event, f"the call id {twice!r} is used already; see `distinct_ids`")
        self._replied_at = len(self._journal)
        shown: Message = note_for(event) if asks_again(self._journal, event) else event
        self._messages.append((self._replied_at, shown))
        self._used_ids |= set(ids)
        self._batch = Batch(event.calls)

    def _apply_to_call(self, event: CallFact) -> None:
        if not self._batch.is_open(event.call_id):
            known = event.call_id in self._used_ids
            why = "has its answer already" if known else "was never made in this conversation"
            raise StateError(f"{type(event).__name__}: the call {event.call_id!r} {why}")
        self._batch.apply(event)
        if not self._batch.open:
            self._close_batch()

    def _close_batch(self) -> None:
        """Shows the answers, in the order of the calls, and then the messages that came meanwhile."""
        self._messages.append((self._replied_at, Answers(self._batch.results)))
        self._messages += self._postponed
        self._batch, self._postponed = Batch(), []

    def _apply_compaction(self, event: Compacted) -> None:
        most = self._replied_at if self._batch else len(self._journal)
        why = "calls of the reply there have no answer yet" if self._batch else "the journal is shorter"
        require(0 <= event.before <= most, event, f"it cannot cut at place {event.before}: {why}")
        require(all(place < event.before for place in event.kept), event, "`kept` has a place that is not cut")
        remaining = [each for each in self._messages if each[0] >= event.before or each[0] in event.kept]
        # Its place is before the cut, so that the next summary replaces this one.
        note = [(event.before - 1, Note(event.summary))] if event.summary else []
        self._messages = [*note, *remaining]

    # -- storing -------------------------------------------------------------------------------------------------

    def export(self) -> list[dict[str, object]]:
        """The journal as JSON-ready data, for `replay`. Keep it where the client cannot change it."""
        return [stored(event) for event in self._journal]

    @classmethod
    def replay(
        cls,
        search: ToolSearch,
        events: Iterable[Event | JsonObject],
        *,
        conversation_id: str | None = None,
        caller: Caller | None = None,
        wire: object = None,
    ) -> Conversation:
        """The conversation with this journal, which is facts or what `export` returned.

        `wire` is what its requests are made with: see `ToolSearch.session`. The journal is trusted: never take it from
        a client. Raises `StateError` if it is not a valid journal.
        """
        if conversation_id is not None and not isinstance(conversation_id, str):
            raise SetupError(f"conversation_id must be a text, not {conversation_id!r}")
        own_id = clean(conversation_id or "") or secrets.token_urlsafe(16)
        conversation = cls(Session(search.view, own_id, caller, wire))
        for place, event in enumerate(events):
            fact = read_event(event, place) if isinstance(event, Mapping) else event
            try:
                conversation._record(cleaned(fact))
            except (TypeError, AttributeError) as error:  # a field has a value of a wrong type
                kind = type(fact).__name__
                raise StateError(f"fact {place} of the journal, a {kind}, is not valid: {error}") from None
        if state := conversation._sessions.state:
            state = {**state, "id": conversation.id}
            conversation.session = Session.from_state(search.view, state, caller, conversation._called_since(), wire)
        if conversation._batch and conversation._sessions.place < conversation._replied_at:
            conversation.session.tools()  # as before the reply: its calls are to the tools shown then
        return conversation

    def _called_since(self) -> list[str]:
        """The ids of the tools that were called with success after the last fact that has the session."""
        later = self._journal[self._sessions.place + 1 :]
        done = [event.call_id for event in later if isinstance(event, ToolReturned) and event.status == "ok"]
        tools = {
            call.id: call.tool for event in self._journal if isinstance(event, ModelReplied) for call in event.calls
        }
        return [tool for call_id in done if (tool := tools[call_id])]

    def __repr__(self) -> str:
        state = "running" if self._running else "idle"
        return f"Conversation({self.id!r}, {state}, {len(self._journal)} facts, {len(self._messages)} messages)"


def _value_of(result: ToolReturned) -> object:
    """A result as a value for the program: its data, or else the JSON among its parts."""
    return next((part.value for part in result.parts if isinstance(part, JsonPart)), result.data)
