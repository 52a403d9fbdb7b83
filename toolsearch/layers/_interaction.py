"""Interaction: tools whose answer a person gives, a few per round; the model is asked to repeat the others later.

A tool of this kind needs no function: its arguments are the question, and what the person says is its result.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from toolsearch.calls import ToolResult
from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.facts import JudgedCall, Noted, ToolWaiting
from toolsearch.events.requests import Answer, Deny, Round, Waiting
from toolsearch.events.turn_view import TurnView, is_one_of
from toolsearch.layers._shared import ask_person, dialogs_before
from toolsearch.protocols import Do, Layer, Record, RoundSteps, ToolAnswer
from toolsearch.support import checks
from toolsearch.support.text import text_of

__all__ = ["interaction"]

log = logging.getLogger("toolsearch")

AnswersOfPerson: TypeAlias = Mapping[str, Answer | str | Deny | None]
Ask: TypeAlias = Callable[[Sequence[Waiting]], AnswersOfPerson | Awaitable[AnswersOfPerson]]


def interaction(
    tools: Mapping[str, str] | Iterable[str],
    ask: Ask | None = None,
    *,
    a_round: int = 1,
    seconds: float = 180.0,
    ttl_seconds: float | None = None,
) -> Layer:
    """A layer for tools that wait for a person: ids or names, or a mapping from these to what they want.

    What a tool wants ("question", "file", "image"; by default "question") is the `kind` of the `Waiting`. `ask`
    receives the waiting calls of a round and returns by call id an `Answer`, a text, or `Deny`. None, no entry, and no
    answer within `seconds`, or in most of the time that the turn has left, mean that nothing was provided; then the
    tool opens no further dialog in this turn. `ask` may be async. Without `ask` the call waits, the other calls of the
    round run, and the run returns `Paused`; answer it with an `Answer` in `decisions`, within `ttl_seconds`. An
    answer's `said` is a message of the user that the model reads after the round. At most `a_round` dialogs open in one
    round, including those of other layers.
    """
    checks.function("ask", ask, "that takes a list of waiting calls", none="to pause")
    checks.whole("a_round", a_round)
    checks.number("seconds", seconds, "a number of seconds")
    checks.number("ttl_seconds", ttl_seconds, "a number of seconds", finite=True, none="for no end")
    return _Interaction(_kinds(tools), ask, a_round, seconds, ttl_seconds)


def _kinds(tools: Mapping[str, str] | Iterable[str]) -> dict[str, str]:
    """What each tool wants, by id or name."""
    names = checks.names("tools", tools)
    if not isinstance(tools, Mapping):
        return dict.fromkeys(names, "question")
    kinds = checks.table("tools", tools, "what they want")
    for name, kind in kinds.items():
        if not kind or not isinstance(kind, str) or kind == "approval":
            raise SetupError(f"the tool {name!r} cannot want {kind!r}: pass 'question', 'file', 'image' or the like")
    return kinds


@dataclass(frozen=True)
class _Interaction:
    tools: Mapping[str, str]
    ask: Ask | None
    a_round: int
    seconds: float
    ttl: float | None
    name: str = "interaction"
    gate: bool = True

    def around_round(self, request: Round) -> RoundSteps:
        mine = {
            call.id: kind for call in request.calls if (kind := self._kind(call)) and call.id not in request.approved
        }
        if not mine:
            return (yield request)
        room = self.a_round - dialogs_before(request)
        refused = _refused_tools(request.turn)
        answers: dict[str, ToolAnswer] = {}
        waiting: list[Waiting] = []
        for call in request.calls:
            if call.id not in mine:
                continue
            if (call.tool or call.name) in refused:
                yield Record(Noted(self.name, {"outcome": "declined-repeat", "call": call.id}))
                answers[call.id] = synthetic.not_asked_again(call, mine[call.id])
            elif len(waiting) < room:
                waiting.append(self._question(request, call, mine[call.id]))
            else:
                yield Record(Noted(self.name, {"outcome": "interaction-budget", "call": call.id}))
                answers[call.id] = synthetic.deferred(call, self.a_round)
        for each in waiting:
            yield Record(each.fact)
        if waiting and self.ask is not None:
            answers |= yield from self._ask(self.ask, waiting)
        else:
            answers |= {each.id: each.fact for each in waiting}
        rest = request.without(answers)
        if rest.calls:
            answers |= yield replace(rest, dialogs=request.dialogs + len(waiting))
        return answers

    def _kind(self, call: JudgedCall) -> str:
        if call.kind != "tool":
            return ""
        return next((kind for name, kind in self.tools.items() if is_one_of(call, (name,))), "")

    def _question(self, request: Round, call: JudgedCall, kind: str) -> Waiting:
        arguments = call.given or {}
        texts = (arguments.get(key) for key in ("question", "prompt", "message"))
        question = next((text for text in texts if isinstance(text, str)), "")
        text = request.questions.get(call.id) or question or f"{call.name}: {text_of(dict(arguments))[:400]}"
        expires = None if self.ttl is None else request.now + self.ttl
        return Waiting(call, ToolWaiting(call.id, kind, text, self.name, expires))

    def _ask(self, ask: Ask, waiting: list[Waiting]) -> Generator[Do | Record, object, dict[str, ToolAnswer]]:
        """The answers to the waiting calls, whatever `ask` does."""
        seconds = self.seconds if self.ttl is None else min(self.seconds, self.ttl)
        provided = yield from ask_person(ask, waiting, seconds, "answers")
        if isinstance(provided, TimeoutError):
            return {each.id: synthetic.expired(each.call, each.kind) for each in waiting}
        if isinstance(provided, Exception):
            log.error("asking the user failed: nothing was provided", exc_info=provided)
            return {each.id: synthetic.not_provided(each.call, "asking failed", each.kind) for each in waiting}
        answers: dict[str, ToolAnswer] = {}
        for each in waiting:
            call, answer = each.call, provided.get(each.id)
            if isinstance(answer, str):
                answer = Answer(answer)
            if isinstance(answer, Answer):
                if answer.said is not None:
                    yield Record(answer.said)
                answers[call.id] = ToolResult(call.id, call.name, "ok", answer.content, answer.data)
            else:
                reason = answer.reason if isinstance(answer, Deny) else ""
                answers[call.id] = synthetic.not_provided(call, reason, each.kind)
        return answers


def _refused_tools(turn: TurnView) -> frozenset[str]:
    """The tools whose question got no answer in this turn: a person cancelled it, or nobody answered in time."""
    asked = {e.call_id for e in turn.facts if isinstance(e, ToolWaiting) and e.kind not in ("approval", "delegated")}
    if not asked:
        return frozenset()
    results = turn.results
    refused = {i for i in asked if (result := results.get(i)) is not None and result.status in ("denied", "expired")}
    return frozenset(call.tool or call.name for call in turn.calls if call.id in refused)
