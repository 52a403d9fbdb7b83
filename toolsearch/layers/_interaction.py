"""Interaction: tools whose answer a person gives, a few a round; the others are told to come again.

A tool of this kind needs no function: the question is its arguments, and what the person says is its result.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from toolsearch.calls import ToolResult
from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.facts import JudgedCall, Noted, ToolWaiting
from toolsearch.events.requests import Answer, Deny, Round, Waiting
from toolsearch.events.turn_view import is_one_of
from toolsearch.protocols import Do, Record, RoundSteps
from toolsearch.support import checks
from toolsearch.support.text import text_of

__all__ = ["interaction"]

log = logging.getLogger("toolsearch")


def interaction(
    tools: Mapping[str, str] | Iterable[str],
    ask: Callable[[Sequence[Waiting]], Any] | None = None,
    *,
    a_round: int = 1,
    seconds: float = 180.0,
    ttl_seconds: float | None = None,
) -> Any:
    """A layer for tools that wait for a person: ids or names, or a mapping from these to what they want.

    What they want ("question", "file", "image"; "question" where nothing is said) is the `kind` of the `Waiting`.
    `ask` is given those of a round and returns by call id an `Answer`, text, or `Deny`; None, nothing, and no answer
    within `seconds` mean that nothing was provided. It may be async. Without `ask` the call waits, the others of the
    round run, and the run returns `Paused`; answer it with an `Answer` in `decisions`, within `ttl_seconds`.
    An answer's `said` is a message of the user that the model reads after the round. At most `a_round` of these calls
    wait in one round.
    """
    checks.function("ask", ask, "that takes a list of waiting calls", none="to pause")
    checks.whole("a_round", a_round)
    checks.number("seconds", seconds, "a number of seconds")
    checks.number("ttl_seconds", ttl_seconds, "a number of seconds", finite=True, none="for no end")
    kinds: dict[str, Any] = dict.fromkeys(checks.names("tools", tools), "question")
    if isinstance(tools, Mapping):
        kinds = checks.table("tools", tools, "what they want")
    for name, kind in kinds.items():
        if not kind or not isinstance(kind, str) or kind == "approval":
            raise SetupError(f"the tool {name!r} cannot want {kind!r}: say 'question', 'file', 'image' or the like")
    return _Interaction(kinds, ask, a_round, seconds, ttl_seconds)


@dataclass(frozen=True)
class _Interaction:
    tools: Mapping[str, str]
    ask: Callable[[Sequence[Waiting]], Any] | None
    a_round: int
    seconds: float
    ttl: float | None
    name: str = "interaction"
    gate: bool = True

    def around_round(self, request: Round) -> RoundSteps:
        mine = {
            call.id: kind for call in request.calls if (kind := self._kind(call)) and call.id not in request.approved
        }
        room = self.a_round - self._asked_before(request)
        answers: dict[str, ToolResult | ToolWaiting] = {}
        waiting: list[Waiting] = []
        for call in request.calls:
            if call.id not in mine:
                continue
            if len(waiting) < room:
                waiting.append(self._question(request, call, mine[call.id]))
            else:
                yield Record(Noted(self.name, {"outcome": "interaction-budget", "call": call.id}))
                answers[call.id] = synthetic.deferred(call, self.a_round)
        for each in waiting:
            yield Record(each.fact)
        if waiting and self.ask is not None:
            answers |= yield from self._asked(waiting)
        else:
            answers |= {each.id: each.fact for each in waiting}
        rest = request.without(answers)
        if rest.calls:
            answers |= yield rest
        return answers

    def _kind(self, call: JudgedCall) -> str:
        if call.kind != "tool":
            return ""
        return next((kind for name, kind in self.tools.items() if is_one_of(call, (name,))), "")

    def _asked_before(self, request: Round) -> int:
        """How many of the reply's calls wait or were answered already, in the process that began the round."""
        replies = request.turn.replies
        ids = {call.id for call in replies[-1].calls} if replies else set()
        facts = (e for e in request.turn.facts if isinstance(e, ToolWaiting) and e.by == self.name)
        return sum(1 for fact in facts if fact.call_id in ids)

    def _question(self, request: Round, call: JudgedCall, kind: str) -> Waiting:
        given = call.given or {}
        said = next((given[key] for key in ("question", "prompt", "message") if isinstance(given.get(key), str)), "")
        text = request.questions.get(call.id) or said or f"{call.name}: {text_of(dict(given))[:400]}"
        expires = None if self.ttl is None else request.now + self.ttl
        return Waiting(call, ToolWaiting(call.id, kind, text, self.name, expires))

    def _asked(self, waiting: list[Waiting]) -> Generator[Do | Record, Any, dict[str, ToolResult | ToolWaiting]]:
        assert self.ask is not None
        told: Any = {}
        failed: Callable[[JudgedCall], ToolResult] | None = None
        try:
            told = yield Do(partial(self.ask, tuple(waiting)), self.seconds)
            if not isinstance(told, Mapping):
                raise TypeError(f"it gave {type(told).__name__} where answers by call id are needed")
        except SetupError:
            raise
        except TimeoutError:
            failed = partial(synthetic.expired, kind=waiting[0].kind)
        except Exception as error:
            log.error("asking the user failed: nothing was provided", exc_info=error)
            failed = partial(synthetic.not_provided, reason="asking failed")
        answers: dict[str, ToolResult | ToolWaiting] = {}
        for each in waiting:
            call, answer = each.call, None if failed else told.get(each.id)
            if failed is not None:
                answers[call.id] = failed(call)
            elif isinstance(answer, Answer | str):
                given = Answer(answer) if isinstance(answer, str) else answer
                if given.said is not None:
                    yield Record(given.said)
                answers[call.id] = ToolResult(call.id, call.name, "ok", given.content, given.data)
            else:
                reason = answer.reason if isinstance(answer, Deny) else ""
                answers[call.id] = synthetic.not_provided(call, reason)
        return answers
