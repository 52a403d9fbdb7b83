"""Approval: calls that change something wait until a person has decided; whatever goes wrong, they do not run.

All such calls of a round are one question. What was asked and decided are facts, so a question that was asked is not
asked again after a restart, and what is declined stays declined for the turn.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from toolsearch.calls import ToolResult
from toolsearch.errors import SetupError
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
from toolsearch.events.requests import Answer, Approve, Call, Deny, Round, Waiting
from toolsearch.events.turn_view import TurnView, is_one_of
from toolsearch.protocols import Do, Record, RoundSteps
from toolsearch.support import checks

__all__ = ["Policy", "approval"]

log = logging.getLogger("toolsearch")

SHOWN_CHARACTERS = 400  # of a call's arguments in a question
SECONDS = "a number of seconds"

Answers = dict[str, ToolResult | ToolWaiting]


@dataclass(frozen=True, slots=True)
class Policy:
    """What one call needs: whether somebody has to approve it, who, within how many seconds from being asked.

    With `remember` false an earlier approval never stands for it.
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


_GATED, _FREE = Policy(), Policy(required=False)


def approval(
    ask: Callable[[Sequence[Waiting]], Any] | None = None,
    *,
    when: Callable[[Call], Any] | Iterable[str] | None = None,
    seconds: float = 120.0,
    ttl_seconds: float | None = None,
    independent: bool = False,
    remember: bool = True,
) -> Any:
    """A layer that lets gated calls run only when a person has approved them.

    `ask` is given all gated calls of a round, in the model's order, and returns decisions by call id: `Approve` or
    True, `Deny`, or `Answer` for a result in the tool's place; anything else, and no answer within `seconds`, is no.
    It may be async. Without `ask` the calls wait, the others of the round run, and the run returns `Paused`.

    `when`: ids or names of the gated tools, or a function from a `Call` to True, False or a `Policy` (quick, or async);
    without it, all tools of the kind "action". `ttl_seconds`: how long a waiting call can be approved; a policy's
    own goes before it. With `independent` each gated call is a proposal that is decided by itself: once all are
    decided and those approved have run, the turn ends, and the model is not asked again. With `remember` false no
    approval stands for a later call.
    """
    checks.function("ask", ask, "that takes a list of waiting calls", none="to pause")
    checks.number("seconds", seconds, SECONDS)
    checks.number("ttl_seconds", ttl_seconds, SECONDS, finite=True, none="for no end")
    checks.flag("independent", independent)
    checks.flag("remember", remember)
    chosen = when if when is None or callable(when) else frozenset(checks.names("when", when, more=", or a function"))
    return _Approval(ask, chosen, seconds, ttl_seconds, independent, remember)


@dataclass(frozen=True)
class _Approval:
    ask: Callable[[Sequence[Waiting]], Any] | None
    when: Callable[[Call], Any] | frozenset[str] | None
    seconds: float
    ttl: float | None
    independent: bool
    remember: bool
    name: str = "approval"
    gate: bool = True

    def around_round(self, request: Round) -> RoundSteps:
        declined = _declined(request.turn)
        answers: Answers = {}
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
        if waiting:
            if self.independent:
                yield Record(Ending("proposed", by=self.name))
            for each in waiting:
                yield Record(each.fact)
            if self.ask is None:
                answers |= {each.id: each.fact for each in waiting}
            else:
                approved = yield from self._ask_person(waiting, request, answers)
        rest = request.without(answers)
        if approved:
            rest = replace(rest, approved={**request.approved, **approved})
        if rest.calls:
            answers |= yield rest
        return answers

    # -- what is gated -------------------------------------------------------------------------------------------

    def _policy(self, call: Call) -> Generator[Do, Any, Policy]:
        """What the call needs. A policy that raises fails this gate, and nothing of the round runs."""
        if self.when is None:
            return _GATED if call.judged.marks.is_action else _FREE
        if isinstance(self.when, frozenset):
            return _GATED if is_one_of(call.judged, self.when) else _FREE
        told = self.when(call)
        if inspect.isawaitable(told):
            told = yield Do(partial(_itself, told))
        if not isinstance(told, bool | Policy):
            raise TypeError(f"the policy of {call.judged.name!r} gave {told!r} where True, False or a Policy is needed")
        return Policy(told) if isinstance(told, bool) else told

    def _is_remembered(self, call: JudgedCall, policy: Policy, turn: TurnView) -> bool:
        """Whether an earlier approval stands for the call: never one of another definition, or another server's."""
        if not (self.remember and policy.remember):
            return False
        calls = {c.id: c for e in turn.journal if isinstance(e, ModelReplied) for c in e.calls}
        before = [c.digest for c in calls.values() if c.tool == call.tool and c.id != call.id]
        changed = bool(before) and before[-1] != call.digest
        for fact in turn.journal:
            if isinstance(fact, ToolApproved) and (of := calls.get(fact.call_id)) is not None:
                same = (of.tool, of.digest) == (call.tool, call.digest)
                if (fact.remember == "tool" and same) or (fact.remember == "session" and (same or not changed)):
                    return True
        return False

    def _question(self, request: Round, call: JudgedCall, policy: Policy) -> Waiting:
        ttl = self.ttl if policy.seconds is None else policy.seconds
        text = request.questions.get(call.id) or f"Run {call.name}? {_shown(call)}"
        data = {"approver": policy.approver} if policy.approver else None
        expires = None if ttl is None else request.now + ttl
        return Waiting(call, ToolWaiting(call.id, "approval", text, self.name, expires, data))

    # -- asking in this process ----------------------------------------------------------------------------------

    def _ask_person(
        self, waiting: list[Waiting], request: Round, answers: Answers
    ) -> Generator[Do | Record, Any, dict[str, ToolApproved]]:
        """Asks, writes down what was decided, and adds the answers of calls that may not run; returns the others."""
        assert self.ask is not None
        ends = (each.fact.expires_at for each in waiting if each.fact.expires_at is not None)
        seconds = min([self.seconds, *(end - request.now for end in ends)])
        actor = (request.caller.user if request.caller else None) or ""
        decisions: Any = {}
        failed = ""
        try:
            decisions = yield Do(partial(self.ask, tuple(waiting)), seconds)
            if not isinstance(decisions, Mapping):
                raise TypeError(f"it gave {type(decisions).__name__} where decisions by call id are needed")
        except SetupError:
            raise
        except TimeoutError:
            failed = "nobody decided in time"
        except Exception as error:
            log.error("asking for approvals failed: they are declined", exc_info=error)
            failed, ids = "asking failed", [each.id for each in waiting]
            yield Record(Noted(self.name, {"outcome": "ask-failed", "calls": ids, "error": type(error).__name__}))
        approved: dict[str, ToolApproved] = {}
        for each in waiting:
            facts, answer = _settled(each, None if failed else decisions.get(each.id), failed)
            for fact in facts:
                made = replace(fact, actor=actor) if isinstance(fact, ToolApproved | ToolDenied) else fact
                yield Record(made)
                if isinstance(made, ToolApproved):
                    approved[each.id] = made
            if answer is not None:
                answers[each.id] = answer
        return approved


def _settled(waiting: Waiting, decision: Any, failed: str) -> tuple[list[Event], ToolResult | None]:
    """The facts that a decision makes, and the answer where the call does not run. What is no approval is a refusal."""
    call = waiting.call
    if failed == "nobody decided in time":
        return [ToolDenied(call.id, failed, expired=True)], synthetic.expired(call)
    if failed:
        return [ToolDenied(call.id, failed)], synthetic.ask_failed(call)
    match decision:
        case True:
            return [ToolApproved(call.id)], None
        case Approve():
            return [ToolApproved(call.id, decision.arguments, decision.remember)], None
        case Answer():
            said: list[Event] = [] if decision.said is None else [decision.said]
            return said, ToolResult(call.id, call.name, "ok", decision.content, decision.data)
        case Deny():
            return [ToolDenied(call.id, decision.reason)], synthetic.declined(call, decision.reason)
        case _:
            return [ToolDenied(call.id)], synthetic.declined(call)


def _itself(value: Any) -> Any:
    return value


def _declined(turn: TurnView) -> frozenset[str]:
    """The tools that were declined when an approval was asked for, in this turn."""
    denied = {e.call_id for e in turn.facts if isinstance(e, ToolDenied)}
    if not denied:
        return frozenset()
    denied &= {e.call_id for e in turn.facts if isinstance(e, ToolWaiting) and e.kind == "approval"}
    return frozenset(call.tool or call.name for call in turn.calls if call.id in denied)


def _shown(call: JudgedCall) -> str:
    """The arguments as a person reads them, cut."""
    given = call.arguments if call.given is None else call.given
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
