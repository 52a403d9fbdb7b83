"""Taking a conversation up where it stands: whose it is, what was decided meanwhile, and what was begun and not ended.

Nothing is done here. What becomes of each call is a `Resolution`, which the loop writes down one after the other.
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
    """What is asked of an agent: to work on what the user said, or to go on with decisions."""

    conversation_id: str
    caller: Caller | None = None
    said: UserSaid | None = None
    decisions: Mapping[str, Decision | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resolution:
    """What becomes of a call: facts, and its answer if it has one, which are stored together; `by` whom."""

    call: JudgedCall
    facts: tuple[Event, ...] = ()
    result: ToolResult | None = None
    by: str = ""


# -- whether there is something to take up -----------------------------------------------------------------------


def take_up(search: ToolSearch, facts: Iterable[Event], request: RunRequest) -> Conversation:
    """The conversation of a journal, for a request that fits it.

    Raises `StateError` where it belongs to another caller, a decision is stale, or nothing is to be done.
    """
    found = Conversation.replay(search, facts, conversation_id=request.conversation_id, caller=request.caller)
    began = next((e for e in reversed(found.journal) if isinstance(e, RunBegan)), RunBegan(""))
    whose, who = (began.user, began.tenant), (request.caller or Caller())
    if whose not in ((None, None), (who.user, who.tenant)):
        raise StateError(f"the conversation {request.conversation_id!r} belongs to another caller")
    _check_decisions(found, request)
    if request.said is None and not found.running:
        raise StateError(f"the conversation {request.conversation_id!r} has nothing to do: pass what the user said")
    return found


def _check_decisions(found: Conversation, request: RunRequest) -> None:
    """Refuses decisions that are none, or stale, before anything is done."""
    if not isinstance(request.decisions, Mapping):
        raise SetupError(f"decisions are given by call id, as in {{'call_1': True}}, not as {request.decisions!r}")
    if request.said is not None and request.decisions:
        raise SetupError("pass either what the user said or decisions: a new message declines what was waiting")
    waiting = [each.id for each in found.waiting]
    for call_id, decision in request.decisions.items():
        if call_id not in waiting:
            known = ", ".join(map(repr, waiting)) or "none"
            raise StateError(f"the call {call_id!r} waits for no decision; waiting are: {known}")
        if not isinstance(decision, Approve | Deny | Answer | bool):
            raise SetupError(f"a decision is Approve, Deny, Answer, True or False, not {decision!r}")


# -- what waited -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Resumption:
    """What becomes of the calls of a conversation that wait for a person. `actor` decides; `clock` gives the time."""

    conversation: Conversation
    actor: str
    clock: Callable[[], float]

    def apply_decisions(self, decisions: Mapping[str, Decision | bool]) -> Iterator[Resolution]:
        """What the decisions, by call id, mean; and what has expired."""
        for each in self.conversation.waiting:
            chosen = decisions.get(each.id)
            expired = each.fact.expires_at is not None and each.fact.expires_at <= self.clock()
            if each.kind == "delegated":
                yield from self._hand_on(each, Deny("nobody decided in time") if expired else chosen, expired)
            elif expired:
                yield self._deny(each, Deny("nobody decided in time"), expired=True)
            elif chosen is True or isinstance(chosen, Approve):
                given = chosen if isinstance(chosen, Approve) else Approve()
                approved = ToolApproved(each.id, given.arguments, given.remember, self.actor, self.clock())
                yield Resolution(each.call, (approved,))
            elif chosen is False or isinstance(chosen, Deny):
                yield self._deny(each, chosen if isinstance(chosen, Deny) else Deny())
            elif isinstance(chosen, Answer):
                if chosen.said is not None:
                    yield Resolution(each.call, (replace(chosen.said, at=self.clock()),))
                result = ToolResult(each.id, each.name, "ok", chosen.content, chosen.data)
                yield Resolution(each.call, result=result, by="person")

    def decline_waiting(self) -> Iterator[Resolution]:
        """What waits is declined: the user said something else."""
        for each in self.conversation.waiting:
            yield self._deny(each, Deny("the user said something else instead"))

    def _hand_on(self, waiting: Waiting, chosen: Decision | bool | None, expired: bool) -> Iterator[Resolution]:
        """What was decided about something that a call began; the call goes on with it."""
        call_id, actor, now = waiting.id, self.actor, self.clock()
        fact: ToolApproved | ToolDenied
        match chosen:
            case True:
                fact = ToolApproved(call_id, None, "", actor, now)
            case Approve():
                fact = ToolApproved(call_id, chosen.arguments, chosen.remember, actor, now)
            case Answer():
                said = chosen.said and {"text": chosen.said.text, "parts": chosen.said.parts}
                answer = {"content": chosen.content, "data": chosen.data, "said": said}
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
        return Resolution(call, (denied,), _declined(call, denied, waiting.kind), by="person")


def _declined(call: JudgedCall, denied: ToolDenied, kind: str = "approval") -> ToolResult:
    return synthetic.expired(call, kind) if denied.expired else synthetic.declined(call, denied.reason)


# -- what was begun, and what was judged -------------------------------------------------------------------------


def answer_left_over(command: CallTools) -> Iterator[Resolution]:
    """The calls of a round that only lack their answer: those denied, and those begun that may not run twice."""
    for call in command.calls:
        if call.id in command.denied:
            yield Resolution(call, result=_declined(call, command.denied[call.id]), by="person")
        elif call.id in command.started and not call.repeatable:
            yield Resolution(call, result=synthetic.interrupted(call), by="loop")


def stop_open_calls(conversation: Conversation, started: Collection[str], *, cancelled: bool) -> Iterator[Resolution]:
    """What the open calls of a turn that ends are answered with; `started` are those begun in this process."""
    begun = conversation.begun
    for call in conversation.open:
        if call.id in begun and call.id not in started:  # by a process that did not finish it
            yield Resolution(call, result=synthetic.interrupted(call), by="loop")
        else:
            yield Resolution(
                call, result=synthetic.stopped(call, cancelled=cancelled, begun=call.id in begun), by="loop"
            )
