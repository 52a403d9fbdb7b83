"""Eligibility: your predicate decides whether the calls of a reply run, or its text is already the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from toolsearch.events import synthetic
from toolsearch.events.facts import Ending
from toolsearch.events.requests import Round
from toolsearch.layers._shared import awaited
from toolsearch.protocols import Layer, Record, RoundSteps
from toolsearch.support import checks

__all__ = ["eligibility"]

Predicate: TypeAlias = Callable[[Round], bool | Awaitable[bool]]


def eligibility(predicate: Predicate, *, reason: str = "not eligible") -> Layer:
    """A layer that asks `predicate` about each round of calls; False ends the turn with the reply's text as its answer.

    The calls of that reply are answered as not run, so the conversation is whole and can go on. `reason` is the reason
    of the `Finished`. The predicate (quick, or async) returns True or False; if it raises or returns anything else, no
    call of the round runs, and the turn goes on. The reply is `round.turn.replies[-1]`. Put it before `approval`.
    """
    checks.function("predicate", predicate, "from a Round to True or False")
    checks.text("reason", reason, empty=False)
    return _Eligibility(predicate, reason)


@dataclass(frozen=True)
class _Eligibility:
    predicate: Predicate
    reason: str
    name: str = "eligibility"
    gate: bool = True

    def around_round(self, request: Round) -> RoundSteps:
        if request.approved:  # the round was judged before it waited for a person
            return (yield request)
        eligible = yield from awaited(self.predicate(request))
        if not isinstance(eligible, bool):
            raise TypeError(f"the predicate returned {eligible!r} where True or False is needed")
        if eligible:
            return (yield request)
        yield Record(Ending(self.reason, request.turn.replies[-1].text, self.name))
        return {call.id: synthetic.not_run(call) for call in request.calls}
