"""Approval: calls that change something wait until a person has decided; whatever goes wrong, they do not run.

All such calls of a round are one question. The question and the decisions are facts, so nobody is asked twice after a
restart, and a declined tool stays declined for the turn.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from toolsearch.calls import ToolResult, actor_of
from toolsearch.events import synthetic
from toolsearch.events.facts import (
    Ending,
    Event,
    JudgedCall,
    ModelReplied,
    Noted,
    ToolApproved,
    ToolDenied,
    ToolWaiting,
)
from toolsearch.events.requests import Answer, Approve, Call, Decision, Deny, Round, Waiting
from toolsearch.events.turn_view import TurnView, is_one_of
from toolsearch.layers._shared import ask_person, awaited, dialogs_before
from toolsearch.protocols import Do, Layer, Record, RoundSteps, ToolAnswer
from toolsearch.support import checks
from toolsearch.support.redaction import excerpt, visible

__all__ = ["Policy", "approval"]

log = logging.getLogger("toolsearch")

SHOWN_CHARACTERS = 400  # of a call's arguments in a question
NAME_CHARACTERS = 120  # of each name in it
SECONDS = "a number of seconds"

Decisions: TypeAlias = Mapping[str, Decision | bool]
Ask: TypeAlias = Callable[[Sequence[Waiting]], Decisions | Awaitable[Decisions]]


@dataclass(frozen=True, slots=True)
class Policy:
    """What one call needs: whether a person has to approve it, which one, and within how many seconds of the question.

    With `remember` false an earlier approval never applies to it.
    """

    required: bool = True
    approver: str = ""
    seconds: float | None = None
    remember: bool = True

    def __post_init__(self) -> None:
        checks.flag("required", self.required)
        checks.text("approver", self.approver)
        checks.number("seconds", self.seconds, SECONDS, finite=True, none="for no end")
        checks.flag("remember", self.remember)


When: TypeAlias = Callable[[Call], bool | Policy | Awaitable[bool | Policy]]
_GATED, _FREE = Policy(), Policy(required=False)


def approval(
    ask: Ask | None = None,
    *,
    when: When | Iterable[str] | None = None,
    seconds: float = 120.0,
    ttl_seconds: float | None = None,
    independent: bool = False,
    remember: bool = True,
    a_round: int = 1,
) -> Layer:
    """A layer that lets gated calls run only when a person has approved them.

    `ask` receives all gated calls of a round, in the model's order, and returns decisions by call id: `Approve` or
    True, `Deny`, or `Answer` for a result in the tool's place. Anything else, and no answer within `seconds`, is a
    refusal. It may be async. Without `ask` the gated calls wait, the other calls of the round run, and the run returns
    `Paused`.

    `when`: ids or names of the gated tools, or a function from a `Call` to True, False or a `Policy` (quick, or async);
    without it, all tools of the kind "action". `ttl_seconds`: how long a waiting call can be approved, unless its
    policy says otherwise. With `independent` each gated call is a proposal and is decided separately: once all are
    decided and the approved ones have run, the turn ends, and the model is not asked again. With `remember` false no
    approval applies to a later call. All gated calls of a round are one dialog. If other layers have opened `a_round`
    dialogs in the round already, the gated calls do not run, and the model is told to make them again in the next step.
    """
    checks.function("ask", ask, "that takes a list of waiting calls", none="to pause")
    checks.number("seconds", seconds, SECONDS)
    checks.number("ttl_seconds", ttl_seconds, SECONDS, finite=True, none="for no end")
    checks.flag("independent", independent)
    checks.flag("remember", remember)
    checks.whole("a_round", a_round)
    chosen = when if when is None or callable(when) else frozenset(checks.names("when", when, more=", or a function"))
    return _Approval(ask, chosen, seconds, ttl_seconds, independent, remember, a_round)


@dataclass(frozen=True)
class _Approval:
    ask: Ask | None
    when: When | frozenset[str] | None
    seconds: float
    ttl: float | None
    independent: bool
    remember: bool
    a_round: int = 1
    name: str = "approval"
    gate: bool = True

    def around_round(self, request: Round) -> RoundSteps:
        declined = _declined_tools(request.turn)
        answers: dict[str, ToolAnswer] = {}
        waiting: list[Waiting] = []
        for call in request.calls:
            if call.kind != "tool" or call.id in request.approved:
                continue
            if (call.tool or call.name) in declined:
                yield Record(Noted(self.name, {"outcome": "declined-repeat", "call": call.id}))
                answers[call.id] = synthetic.declined_before(call)
                continue
            policy = yield from self._policy(request.call(call))
            if policy.required and not self._is_remembered(call, policy, request.turn):
                waiting.append(self._question(request, call, policy))
        approved: dict[str, ToolApproved] = {}
        if waiting and dialogs_before(request, joins=self.name) >= self.a_round:
            answers |= yield from self._defer(waiting)
        elif waiting:
            request = replace(request, dialogs=request.dialogs + 1)
            if self.independent:
                yield Record(Ending("proposed", by=self.name))
            for each in waiting:
                yield Record(each.fact)
            if self.ask is None:
                answers |= {each.id: each.fact for each in waiting}
            else:
                decisions = yield from self._decisions(self.ask, waiting, request)
                approved, refused = yield from self._write_down(decisions, request)
                answers |= refused
        rest = request.without(answers)
        if approved:
            rest = replace(rest, approved={**request.approved, **approved})
        if rest.calls:
            answers |= yield rest
        return answers

    def _defer(self, waiting: Sequence[Waiting]) -> Generator[Record, object, dict[str, ToolAnswer]]:
        """The answers to gated calls, if the person has enough dialogs in this round."""
        for each in waiting:
            yield Record(Noted(self.name, {"outcome": "interaction-budget", "call": each.id}))
        return {each.id: synthetic.deferred(each.call, self.a_round) for each in waiting}

    # -- what is gated -------------------------------------------------------------------------------------------

    def _policy(self, call: Call) -> Generator[Do, object, Policy]:
        """What the call needs. A policy that raises fails this gate, and no call of the round runs."""
        if self.when is None:
            return _GATED if call.judged.marks.is_action else _FREE
        if isinstance(self.when, frozenset):
            return _GATED if is_one_of(call.judged, self.when) else _FREE
        policy = yield from awaited(self.when(call))
        if isinstance(policy, bool):
            return Policy(policy)
        if not isinstance(policy, Policy):
            name = call.judged.name
            raise TypeError(f"the policy of {name!r} returned {policy!r} where True, False or a Policy is needed")
        return policy

    def _is_remembered(self, call: JudgedCall, policy: Policy, turn: TurnView) -> bool:
        """Whether an earlier approval applies to the call: never one of another definition, or of another server."""
        if not (self.remember and policy.remember):
            return False
        calls = {c.id: c for e in turn.journal if isinstance(e, ModelReplied) for c in e.calls}
        before = [c.digest for c in calls.values() if c.tool == call.tool and c.id != call.id]
        changed = bool(before) and before[-1] != call.digest
        for fact in turn.journal:
            if isinstance(fact, ToolApproved) and (earlier := calls.get(fact.call_id)) is not None:
                same = (earlier.tool, earlier.digest) == (call.tool, call.digest)
                if (fact.remember == "tool" and same) or (fact.remember == "session" and (same or not changed)):
                    return True
        return False

    def _question(self, request: Round, call: JudgedCall, policy: Policy) -> Waiting:
        ttl = self.ttl if policy.seconds is None else policy.seconds
        what = _what_acts(request, call)
        asked = request.questions.get(call.id)
        text = f"{asked} ({what}; " if asked else f"Run {what}? {_arguments_of(call)} ("
        text += f"{_on_whose_behalf(request)})"
        data = {"approver": policy.approver} if policy.approver else None
        expires = None if ttl is None else request.now + ttl
        return Waiting(call, ToolWaiting(call.id, "approval", text, self.name, expires, data))

    # -- asking in this process ----------------------------------------------------------------------------------

    def _decisions(
        self, ask: Ask, waiting: Sequence[Waiting], request: Round
    ) -> Generator[Do | Record, object, list[_Decided]]:
        """Asks, and returns one decision for each waiting call, whatever `ask` does."""
        ends = (each.fact.expires_at for each in waiting if each.fact.expires_at is not None)
        seconds = min([self.seconds, *(end - request.now for end in ends)])
        decisions = yield from ask_person(ask, waiting, seconds, "decisions")
        if isinstance(decisions, TimeoutError):
            return [_Decided(each.call, "expired") for each in waiting]
        if isinstance(decisions, Exception):
            log.error("asking for approvals failed: they are declined", exc_info=decisions)
            ids = [each.id for each in waiting]
            yield Record(Noted(self.name, {"outcome": "ask-failed", "calls": ids, "error": type(decisions).__name__}))
            return [_Decided(each.call, "ask failed") for each in waiting]
        return [_Decided(each.call, "decided", decisions.get(each.id)) for each in waiting]

    def _write_down(
        self, decisions: Sequence[_Decided], request: Round
    ) -> Generator[Record, object, tuple[dict[str, ToolApproved], dict[str, ToolAnswer]]]:
        """Records what was decided: the approvals, and the answers of the calls that do not run."""
        approved: dict[str, ToolApproved] = {}
        refused: dict[str, ToolAnswer] = {}
        for each in decisions:
            fact, answer = each.outcome()
            if isinstance(fact, ToolApproved | ToolDenied):
                fact = replace(fact, actor=actor_of(request.caller))
            if fact is not None:
                yield Record(fact)
            if isinstance(fact, ToolApproved):
                approved[each.call.id] = fact
            if answer is not None:
                refused[each.call.id] = answer
        return approved, refused


@dataclass(frozen=True, slots=True)
class _Decided:
    """What came of the question about one call. Anything but an approval is a refusal."""

    call: JudgedCall
    how: Literal["decided", "expired", "ask failed"]
    decision: object = None

    def outcome(self) -> tuple[Event | None, ToolResult | None]:
        """The fact that the decision makes, and the answer where the call does not run."""
        call = self.call
        if self.how == "expired":
            return ToolDenied(call.id, "nobody decided in time", expired=True), synthetic.expired(call)
        if self.how == "ask failed":
            return ToolDenied(call.id, "asking failed"), synthetic.ask_failed(call)
        match self.decision:
            case True:
                return ToolApproved(call.id), None
            case Approve(arguments=arguments, remember=remember):
                return ToolApproved(call.id, arguments, remember), None
            case Answer(content=content, data=data, said=said):
                return said, ToolResult(call.id, call.name, "ok", content, data)
            case Deny(reason=reason):
                return ToolDenied(call.id, reason), synthetic.declined(call, reason)
            case _:
                return ToolDenied(call.id), synthetic.declined(call)


def _declined_tools(turn: TurnView) -> frozenset[str]:
    """The tools of which a person declined a call in this turn, when an approval was asked for."""
    denied = {e.call_id for e in turn.facts if isinstance(e, ToolDenied)}
    if not denied:
        return frozenset()
    denied &= {e.call_id for e in turn.facts if isinstance(e, ToolWaiting) and e.kind == "approval"}
    return frozenset(call.tool or call.name for call in turn.calls if call.id in denied)


def _what_acts(request: Round, call: JudgedCall) -> str:
    """The tool and, where it has one, its server: `delete_record of airtable`."""
    tool = request.tools.get(call.id)
    server = tool.server if tool is not None else call.tool.rpartition("/")[0]
    name = excerpt(call.name, NAME_CHARACTERS)
    return f"{name} of {excerpt(server, NAME_CHARACTERS)}" if server else name


def _on_whose_behalf(request: Round) -> str:
    """The conversation, and whom it acts for."""
    caller = request.caller
    known = [excerpt(each, NAME_CHARACTERS) for each in (caller.user, caller.tenant) if each] if caller else []
    return f"conversation {excerpt(request.conversation_id, NAME_CHARACTERS)!r}" + (
        f", for {' of '.join(known)}" if known else ""
    )


def _arguments_of(call: JudgedCall) -> str:
    """The arguments as a person reads them, cut."""
    arguments = call.shown_arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    text = visible(text)  # nothing that reverses or hides a part of it
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
