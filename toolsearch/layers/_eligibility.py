"""Eligibility: your predicate decides whether the calls of a reply run, or the reply is the answer as it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from toolsearch.events import synthetic
from toolsearch.events.facts import Ending
from toolsearch.events.requests import Round
from toolsearch.protocols import Do, Record, RoundSteps
from toolsearch.support import checks

__all__ = ["eligibility"]


def eligibility(predicate: Callable[[Round], Any], *, reason: str = "not eligible") -> Any:
    """A layer that asks `predicate` about each round of calls; False ends the turn with the reply's text as its answer.

    The calls of that reply are answered as not run, so the conversation is whole and can go on. `reason` is that of the
    `Finished`. The predicate (quick, or async) returns True or False; where it raises or gives anything else, nothing
    of the round runs and the turn goes on. The reply is `round.turn.replies[-1]`. Put it before `approval`.
    """
    checks.function("predicate", predicate, "from a Round to True or False")
    checks.text("reason", reason, empty=False)
    return _Eligibility(predicate, reason)


@dataclass(frozen=True)
class _Eligibility:
    predicate: Callable[[Round], Any]
    reason: str
    name: str = "eligibility"
    gate: bool = True

    def around_round(self, request: Round) -> RoundSteps:
        if request.approved:  # the round was judged before it waited for a person
            return (yield request)
        told = self.predicate(request)
        if inspect.isawaitable(told):
            told = yield Do(partial(_itself, told))
        if not isinstance(told, bool):
            raise TypeError(f"the predicate gave {told!r} where True or False is needed")
        if told:
            return (yield request)
        yield Record(Ending(self.reason, request.turn.replies[-1].text, self.name))
        return {call.id: synthetic.not_run(call) for call in request.calls}


def _itself(value: Any) -> Any:
    return value
