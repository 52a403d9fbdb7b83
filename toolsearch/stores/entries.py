"""What a store reports about a conversation, and what both stores of this package check and refuse."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from toolsearch.errors import SetupError, StateError
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.large_values import in_pieces

__all__ = [
    "Leased",
    "StoredConversation",
    "check_id",
    "check_lease",
    "check_page",
    "check_time",
    "json_lines",
    "wrong_position",
]


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """One conversation in a store: the number of its facts, and when the last was written (seconds since the epoch)."""

    id: str
    facts: int
    written_at: float


@dataclass(frozen=True, slots=True)
class Leased:
    """A lease: whose it is, when it was taken or renewed (see `time.monotonic`), and for how long."""

    owner: str
    taken_at: float
    seconds: float

    def holds(self, now: float) -> bool:
        """Whether its time is not over. If it was taken later than now, the system was restarted since."""
        return self.taken_at <= now < self.taken_at + self.seconds


def check_lease(owner: object, seconds: object) -> None:
    """Raises `SetupError` for an owner or a time that cannot be."""
    checks.text("owner", owner, empty=False)
    checks.number("seconds", seconds, "a number of seconds", finite=True)


def check_id(conversation_id: object) -> str:
    """Returns the id; raises `SetupError` if it is not a valid id."""
    if not isinstance(conversation_id, str) or not conversation_id:
        raise SetupError(f"the id of a conversation is a str that is not empty, not {conversation_id!r}")
    try:
        conversation_id.encode()
    except UnicodeEncodeError:
        raise SetupError(f"the id {conversation_id!r} of a conversation is not valid UTF-8") from None
    return conversation_id


def check_time(before: object) -> None:
    """Raises `SetupError` unless it is a number. SQLite would compare a date as text, and find everything before it."""
    if not isinstance(before, int | float) or isinstance(before, bool) or math.isnan(before):
        raise SetupError(f"a time is seconds since the epoch, as time.time() gives them, not {before!r}")


def check_page(prefix: object, after: object, limit: int | None) -> int:
    """Returns the number of entries of a page, -1 for all; raises `SetupError` for a value that cannot be used."""
    for name, text in (("prefix", prefix), ("after", after)):
        if not isinstance(text, str):
            raise SetupError(f"{name} is an id or the beginning of one, as a str, not {text!r}")
    checks.whole("limit", limit, none="for all")
    return -1 if limit is None else limit


def wrong_position(conversation_id: str, position: int, found: int) -> StateError:
    """The error for facts that do not continue the journal."""
    return StateError(
        f"the conversation {conversation_id!r} has {found} facts in the store, not {position}: somebody else wrote to "
        "it or deleted it meanwhile. Nothing was stored; load it and go on from there"
    )


def json_lines(conversation_id: str, facts: Iterable[JsonObject]) -> list[str]:
    """The facts as JSON, a line each; raises `StateError` if one of them is not valid JSON in UTF-8."""
    try:
        lines = [in_pieces(fact, partial(json.dumps, ensure_ascii=False)) for fact in facts]
        for line in lines:
            line.encode()  # lone surrogates cannot be stored
    except (TypeError, ValueError) as error:
        raise StateError(f"a fact of the conversation {conversation_id!r} is not valid JSON: {error}") from None
    return lines
