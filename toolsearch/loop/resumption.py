"""Continues a conversation: checks whose it is, and settles calls that were decided, or were begun and never ended.

Nothing is done here. For each call there is a `Resolution`, and the loop records them one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from toolsearch.calls import Caller, ToolResult
from toolsearch.errors import SetupError, StateError
from toolsearch.events import synthetic
from toolsearch.events.facts import Event, JudgedCall, RunBegan, ToolApproved, ToolDenied, UserSaid
from toolsearch.events.requests import Answer, Approve, CallTools, Decision, Deny, Waiting
from toolsearch.loop.conversation import Conversation
from toolsearch.tool_search import ToolSearch

__all__ = ["Resolution", "Resumption", "RunRequest", "answer_left_over", "stop_open_calls", "take_up"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request to an agent: to work on a message of the user (`said`), or to continue with decisions."""

    conversation_id: str
    caller: Caller | None = None
    said: UserSaid | None = None
    decisions: Mapping[str, Decision | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resolution:
    """What becomes of a call: facts, and its answer if it gets one, stored together. `by` says who answered."""

    call: JudgedCall
    facts: tuple[Event, ...] = ()
    result: ToolResult | None = None
    by: str = ""


# -- whether there is something to continue ----------------------------------------------------------------------


def take_up(search: ToolSearch, facts: Iterable[Event], request: RunRequest, wire: object = None) -> Conversation:
    """The conversation of a journal, if the request fits it; `wire` is what it goes on with.

    Raises `StateError` if it belongs to another caller, a decision is stale, or there is no turn to continue.
    """
    conversation = Conversation.replay(
        search, facts, conversation_id=request.conversation_id, caller=request.caller, wire=wire
    )
    began = next((e for e in reversed(conversation.journal) if isinstance(e, RunBegan)), RunBegan(""))
    whose, who = (began.user, began.tenant), (request.caller or Caller())
    if whose not in ((None, None), (who.user, who.tenant)):
        raise StateError(f"conversation {request.conversation_id!r} belongs to another caller")
    _check_decisions(conversation, request)
    if request.said is None and not conversation.running:
        raise StateError(f"conversation {request.conversation_id!r} has no turn to continue: pass a user message")
    return conversation


def _check_decisions(conversation: Conversation, request: RunRequest) -> None:
    """Refuses invalid or stale decisions, before anything is done."""
    if not isinstance(request.decisions, Mapping):
        raise SetupError(f"decisions must be given by call id, as in {{'call_1': True}}, not as {request.decisions!r}")
    if request.said is not None and request.decisions:
        raise SetupError("pass a user message or decisions, not both: a new message declines the waiting calls")
    waiting = [each.id for each in conversation.waiting]
    for call_id, decision in request.decisions.items():
        if call_id not in waiting:
            known = ", ".join(map(repr, waiting)) or "none"
            raise StateError(f"call {call_id!r} is not waiting for a decision; waiting calls: {known}")
        if not isinstance(decision, Approve | Deny | Answer | bool):
            raise SetupError(f"a decision must be Approve, Deny, Answer, True or False, not {decision!r}")


# -- calls that waited -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Resumption:
    """Settles the calls that wait for a person. `actor` is the user who decides; `clock` returns the time."""

    conversation: Conversation
    actor: str
    clock: Callable[[], float]

    def apply_decisions(self, decisions: Mapping[str, Decision | bool]) -> Iterator[Resolution]:
        """Applies decisions, by call id, and expires the calls whose time is over."""
        for each in self.conversation.waiting:
            chosen = decisions.get(each.id)
            expired = each.fact.expires_at is not None and each.fact.expires_at <= self.clock()
            if each.kind == "delegated":
                yield from self._hand_on(each, Deny("nobody decided in time") if expired else chosen, expired)
            elif expired:
                yield self._deny(each, Deny("nobody decided in time"), expired=True)
            elif chosen is True or isinstance(chosen, Approve):
                approval = chosen if isinstance(chosen, Approve) else Approve()
                fact = ToolApproved(each.id, approval.arguments, approval.remember, self.actor, self.clock())
                yield Resolution(each.call, (fact,))
            elif chosen is False or isinstance(chosen, Deny):
                yield self._deny(each, chosen if isinstance(chosen, Deny) else Deny())
            elif isinstance(chosen, Answer):
                if chosen.said is not None:
                    yield Resolution(each.call, (replace(chosen.said, at=self.clock()),))
                result = ToolResult(each.id, each.name, "ok", chosen.content, chosen.data)
                yield Resolution(each.call, result=result, by="person")

    def decline_waiting(self) -> Iterator[Resolution]:
        """Declines the waiting calls, because the user said something else."""
        for each in self.conversation.waiting:
            yield self._deny(each, Deny("the user said something else instead"))

    def _hand_on(self, waiting: Waiting, chosen: Decision | bool | None, expired: bool) -> Iterator[Resolution]:
        """Passes on a decision about something that a call began; the call continues with it."""
        call_id, actor, now = waiting.id, self.actor, self.clock()
        fact: ToolApproved | ToolDenied
        match chosen:
            case True:
                fact = ToolApproved(call_id, None, "", actor, now)
            case Approve():
                fact = ToolApproved(call_id, chosen.arguments, chosen.remember, actor, now)
            case Answer():
                message = chosen.said and {"text": chosen.said.text, "parts": chosen.said.parts}
                answer = {"content": chosen.content, "data": chosen.data, "said": message}
                fact = ToolApproved(call_id, None, "", actor, now, answer)
            case False | Deny():
                reason = chosen.reason if isinstance(chosen, Deny) else ""
                fact = ToolDenied(call_id, reason, actor, expired, now)
            case None:  # not decided yet
                return
        yield Resolution(waiting.call, (fact,))

    def _deny(self, waiting: Waiting, decision: Deny, *, expired: bool = False) -> Resolution:
        call = waiting.call
        denied = ToolDenied(call.id, decision.reason, self.actor, expired, self.clock())
        return Resolution(call, (denied,), _declined_answer(call, denied, waiting.kind), by="person")


def _declined_answer(call: JudgedCall, denied: ToolDenied, kind: str = "approval") -> ToolResult:
    if denied.expired:
        return synthetic.expired(call, kind)
    if kind != "approval":
        return synthetic.not_provided(call, denied.reason, kind)
    return synthetic.declined(call, denied.reason)


# -- calls without an answer -------------------------------------------------------------------------------------


def answer_left_over(command: CallTools) -> Iterator[Resolution]:
    """Answers the calls of a round that must not run: denied ones, and begun ones that may not run twice."""
    for call in command.calls:
        if call.id in command.denied:
            yield Resolution(call, result=_declined_answer(call, command.denied[call.id]), by="person")
        elif call.id in command.started and not call.marks.repeatable:
            yield Resolution(call, result=synthetic.interrupted(call), by="loop")


def stop_open_calls(
    conversation: Conversation, started: Collection[str], performed: Collection[str], *, cancelled: bool
) -> Iterator[Resolution]:
    """Answers the open calls of a turn that ends.

    `started` has the calls that this process was the first to begin, and `performed` those of them that may have run.
    """
    begun = conversation.begun
    for call in conversation.open:
        if call.id in begun and call.id not in started:  # by a process that did not finish it
            yield Resolution(call, result=synthetic.interrupted(call), by="loop")
        else:
            result = synthetic.stopped(call, cancelled=cancelled, begun=call.id in begun and call.id in performed)
            yield Resolution(call, result=result, by="loop")
