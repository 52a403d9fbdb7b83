"""What becomes of a reply that is no answer: the model is asked again, or goes on, or the turn ends with the reason.

Everything here is read from the journal, so the bounds hold after a restart too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from toolsearch.events.facts import Event, ModelReplied, Note, Reply, ToolReturned, UserSaid
from toolsearch.events.stops import no_answer

__all__ = ["answer_of", "asks_again", "is_asking_again", "is_paused", "note_for"]

# What the model is told where its reply is left out and it is asked again, by the reason.
_AGAIN = {
    "empty": "Your last reply was empty. Say what came of the user's request: answer, or make the next call.",
    "broken off": "Your last reply broke off before its end. Give the whole reply again.",
}
_NOTES = frozenset(map(Note, _AGAIN.values()))
MOST_AGAIN = 1  # replies in a row that are left out
MOST_PAUSES = 10  # in a row


def _latest(journal: Sequence[Event]) -> list[ModelReplied]:
    """The replies since the user or a tool said something, the last one first."""
    replies = []
    for event in reversed(journal):
        if isinstance(event, UserSaid | ToolReturned):
            break
        if isinstance(event, ModelReplied):
            replies.append(event)
    return replies


def asks_again(journal: Sequence[Event], reply: ModelReplied | Reply) -> bool:
    """Whether the model is asked again after this reply and is not shown it: there is nothing in it to go on from."""
    if reply.calls or no_answer(reply) not in _AGAIN:
        return False
    before = takewhile(lambda each: no_answer(each) in _AGAIN, _latest(journal))
    return len(list(before)) < MOST_AGAIN


def note_for(reply: ModelReplied) -> Note:
    """What the model is told in the place of such a reply."""
    return Note(_AGAIN[no_answer(reply)])


def is_asking_again(message: object) -> bool:
    """Whether a message is what `note_for` gives."""
    return isinstance(message, Note) and message in _NOTES


def is_paused(journal: Sequence[Event], last: ModelReplied) -> bool:
    """Whether the model continues its last reply if it is asked again."""
    if no_answer(last) != "paused":
        return False
    pauses = takewhile(lambda each: no_answer(each) == "paused", _latest(journal))
    return len(list(pauses)) <= MOST_PAUSES


def answer_of(journal: Sequence[Event]) -> str:
    """The text of the last reply, and of those that it continues."""
    replies = _latest(journal)
    continued = takewhile(lambda each: no_answer(each) == "paused", replies[1:])
    return "".join(reply.text for reply in reversed([*replies[:1], *continued]))
