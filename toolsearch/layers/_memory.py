"""What earlier turns show, and where a conversation is kept.

The journal keeps every fact whatever is shown, and nothing is ever shown twice. What was found stays loaded: the
session knows it, no message has to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from toolsearch.events.facts import Answers, Event, Message, ModelReplied, Note, RunBegan, RunEnded
from toolsearch.events.requests import CallModel
from toolsearch.protocols import ModelSteps
from toolsearch.support import checks

if TYPE_CHECKING:
    from toolsearch.protocols import JournalStore

__all__ = ["memory"]

Placed = list[tuple[int, Message]]
_UNSAID = ("cancelled", "failed", "superseded")  # the text of such an end is for the program, if there is any


def memory(store: JournalStore | None = None, *, keep: Literal["everything", "answers"] = "everything") -> Any:
    """A layer that says what the model is shown of earlier turns, and gives the agent its `store`, if there is one.

    `keep` "everything": every message, with calls and results. "answers": what the user said and what was answered in
    the end. The turn that is going on is always shown whole. A `history` after it in the list counts what this leaves.
    """
    checks.choice("keep", keep, "everything", "answers")
    checks.having("store", store, *checks.STORE, none=True)
    return _Memory(store, keep)


class _Memory:
    name = "memory"

    def __init__(self, store: JournalStore | None, keep: str) -> None:
        self.store = store
        self.keep = keep

    def around_model(self, request: CallModel) -> ModelSteps:
        if self.keep == "answers":
            request = _without_work(request)
        return (yield request)

    def __repr__(self) -> str:
        return f"memory({self.store!r}, keep={self.keep!r})"


def _without_work(request: CallModel) -> CallModel:
    """The request with what was said and answered in earlier turns, and the whole turn that is going on."""
    turn = request.turn
    began = [place for place, fact in enumerate(turn.journal) if isinstance(fact, RunBegan)]
    placed = request.placed()
    earlier = [each for each in placed if each[0] < turn.began]
    answers = _answers(turn.journal)
    shown: Placed = []
    for number, group in groupby(earlier, key=lambda each: bisect_right(began, each[0])):
        shown += _said(list(group), answers.get(number, ""))
    shown += [each for each in placed if each[0] >= turn.began]
    return request.showing(shown)


def _said(turn: Placed, answer: str) -> Placed:
    """What was said in an earlier turn; where the model did not say the answer itself, it is put there."""
    kept = [each for each in turn if not isinstance(each[1], Answers) and not getattr(each[1], "calls", ())]
    whole = all(isinstance(message, Note) for _, message in turn)  # its own messages are cut off
    if answer and not whole and not any(isinstance(message, ModelReplied) for _, message in kept):
        kept.append((turn[-1][0], ModelReplied(answer)))
    return kept


def _answers(journal: Sequence[Event]) -> dict[int, str]:
    """How each turn ended, by its number from 1."""
    found: dict[int, str] = {}
    number = 0
    for fact in journal:
        if isinstance(fact, RunBegan):
            number += 1
        elif isinstance(fact, RunEnded) and fact.reason not in _UNSAID:
            found[number] = fact.text
    return found
