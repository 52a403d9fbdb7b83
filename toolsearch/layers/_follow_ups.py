"""Follow-up questions: after the final answer, one extra call asks for a few that the user might ask next."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from toolsearch.events.facts import Event, ModelReplied, Noted, Reply, UserSaid, is_reply
from toolsearch.events.requests import CallModel
from toolsearch.events.stops import no_answer
from toolsearch.events.turn_view import TurnView
from toolsearch.protocols import Layer, ModelSteps, Record, Within
from toolsearch.support import checks

__all__ = ["follow_ups", "follow_ups_of"]

log = logging.getLogger("toolsearch")

PURPOSE = "follow_ups"
PROMPT = (
    "Write up to {n} short questions that the user might ask next, one a line, in the language of the user and in the "
    "user's words, each of which you could answer here. Write nothing else. If nothing suggests itself, write nothing."
)
LONGEST = 200  # characters of a question

_MARK = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,2}[.):])\s*")
_QUESTION = re.compile(r"[?？؟;]$")


def follow_ups(n: int = 3, *, seconds: float = 20.0, prompt: str = PROMPT) -> Layer:
    """A layer that notes up to `n` questions a user might ask next; `follow_ups_of(journal)` returns them.

    They cost one call per turn, which is made without tools after the final answer and billed as "follow_ups". If it
    fails, or takes more than `seconds`, there are no questions, and the answer stays as it is. Put it before
    `structured` and `processors` in the list. `{n}` in `prompt` is replaced by the number.
    """
    checks.whole("n", n)
    checks.number("seconds", seconds, "a number of seconds")
    checks.text("prompt", prompt, empty=False)
    return _FollowUps(n, seconds, prompt.replace("{n}", str(n)))


def follow_ups_of(journal: Iterable[Event]) -> list[str]:
    """The questions noted in the last turn of a journal, the likeliest first."""
    notes = TurnView.of(tuple(journal)).notes(PURPOSE)
    return list(notes[-1]["questions"]) if notes else []


@dataclass(frozen=True)
class _FollowUps:
    n: int
    seconds: float
    prompt: str
    name: str = PURPOSE

    def around_model(self, request: CallModel) -> ModelSteps:
        reply = yield request
        final = is_reply(reply) and not reply.calls and reply.stop != "ended" and not no_answer(reply)
        if request.purpose != "chat" or not final:
            return reply
        helper = request.helper(PURPOSE, ModelReplied(reply.text), UserSaid(self.prompt))
        try:
            suggestions = yield Within(self.seconds, helper)
        except Exception as error:
            log.warning("no follow-up questions: %s", type(error).__name__)
            return reply
        if questions := _questions(suggestions, self.n):
            yield Record(Noted(self.name, {"questions": questions}))
        return reply


def _questions(reply: object, most: int) -> list[str]:
    """The questions in a reply: its lines, or the texts of a JSON list, that end as a question does."""
    if not isinstance(reply, Reply) or reply.calls:
        return []
    lines: Sequence[object] = reply.text.splitlines()
    with suppress(ValueError, RecursionError):
        lines = listed if isinstance(listed := json.loads(reply.text), list) else lines
    texts = [_MARK.sub("", line).strip(" \"'*") for line in lines if isinstance(line, str)]
    questions = [text for text in texts if _QUESTION.search(text) and len(text) <= LONGEST]
    return list(dict.fromkeys(questions))[:most]
