"""What a store says of a conversation, and the checks that every store of ours makes of what it is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from toolsearch.errors import SetupError, StateError
from toolsearch.support import checks

__all__ = ["StoredConversation", "checked_id", "checked_page", "checked_time", "misplaced"]


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """One conversation of a store: how many facts it has, and when the last was written (seconds since the epoch)."""

    id: str
    facts: int
    written_at: float


def checked_id(conversation_id: Any) -> str:
    """The id; raises `SetupError` for what cannot be one."""
    if not isinstance(conversation_id, str) or not conversation_id:
        raise SetupError(f"the id of a conversation is a text, and not empty, not {conversation_id!r}")
    try:
        conversation_id.encode()
    except UnicodeEncodeError:
        raise SetupError(f"the id {conversation_id!r} of a conversation is no valid text") from None
    return conversation_id


def checked_time(before: object) -> None:
    """Raises `SetupError` for what is no time in seconds: a date would be compared as text, and all is before it."""
    if not isinstance(before, int | float) or isinstance(before, bool) or math.isnan(before):
        raise SetupError(f"a time is seconds since the epoch, as time.time() gives them, not {before!r}")


def checked_page(prefix: Any, after: Any, limit: Any) -> int:
    """The number of entries of a page, -1 for all."""
    for name, text in (("prefix", prefix), ("after", after)):
        if not isinstance(text, str):
            raise SetupError(f"{name} is the text of an id, or of its beginning, not {text!r}")
    checks.whole("limit", limit, none="for all")
    return -1 if limit is None else int(limit)


def misplaced(conversation_id: str, position: int, found: int) -> StateError:
    """The error for facts that do not continue the journal."""
    return StateError(
        f"the conversation {conversation_id!r} has {found} facts in the store, not {position}: somebody else wrote to "
        "it or deleted it meanwhile. Nothing was stored; load it and go on from there"
    )
