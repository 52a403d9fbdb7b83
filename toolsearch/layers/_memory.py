"""What the model is shown of earlier turns, and where a conversation is stored.

The journal keeps every fact, whatever is shown, and nothing is ever shown twice. Tools that were found stay loaded: the
session knows them, so no message has to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby
from typing import Literal, TypeAlias

from toolsearch.events.facts import Answers, Event, Message, ModelReplied, Note, RunBegan, RunEnded
from toolsearch.events.requests import CallModel
from toolsearch.protocols import JournalStore, Layer, ModelSteps
from toolsearch.support import checks

__all__ = ["memory"]

Placed: TypeAlias = list[tuple[int, Message]]
Keep: TypeAlias = Literal["everything", "answers"]
_UNSAID = ("cancelled", "failed", "superseded")  # the text of such an end, if there is one, is for the program


def memory(store: JournalStore | None = None, *, keep: Keep = "everything") -> Layer:
    """A layer that decides what the model is shown of earlier turns, and gives the agent its `store`, if there is one.

    `keep`: "everything" shows every message, with calls and results; "answers" shows what the user said and the final
    answers. The current turn is always shown whole. A `history` after it in the list counts what this layer leaves.
    """
    checks.choice("keep", keep, "everything", "answers")
    checks.having("store", store, *checks.STORE, none=True)
    return _Memory(store, keep)


class _Memory:
    name = "memory"

    def __init__(self, store: JournalStore | None, keep: Keep) -> None:
        self.store = store
        self.keep = keep

    def around_model(self, request: CallModel) -> ModelSteps:
        if self.keep == "answers":
            request = _without_work(request)
        return (yield request)

    def __repr__(self) -> str:
        return f"memory({self.store!r}, keep={self.keep!r})"


def _without_work(request: CallModel) -> CallModel:
    """The request with what was said and answered in earlier turns, and the whole current turn."""
    turn = request.turn
    began = [place for place, fact in enumerate(turn.journal) if isinstance(fact, RunBegan)]
    placed = request.placed()
    earlier = [each for each in placed if each[0] < turn.began]
    answers = _answers(turn.journal)
    shown: Placed = []
    for number, group in groupby(earlier, key=lambda each: bisect_right(began, each[0])):
        shown += _without_calls(list(group), answers.get(number, ""))
    shown += [each for each in placed if each[0] >= turn.began]
    return request.showing(shown)


def _without_calls(turn: Placed, answer: str) -> Placed:
    """What was said in an earlier turn. If the model did not say the answer itself, it is added."""
    texts = [each for each in turn if not isinstance(each[1], Answers) and not getattr(each[1], "calls", ())]
    is_cut_off = all(isinstance(message, Note) for _, message in turn)  # no message of the turn itself is shown
    if answer and not is_cut_off and not any(isinstance(message, ModelReplied) for _, message in texts):
        texts.append((turn[-1][0], ModelReplied(answer)))
    return texts


def _answers(journal: Sequence[Event]) -> dict[int, str]:
    """How each turn ended, by its number from 1."""
    answers: dict[int, str] = {}
    number = 0
    for fact in journal:
        if isinstance(fact, RunBegan):
            number += 1
        elif isinstance(fact, RunEnded) and fact.reason not in _UNSAID:
            answers[number] = fact.text
    return answers
