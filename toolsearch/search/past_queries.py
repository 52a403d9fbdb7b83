"""Past queries as `Learned` keeps them: by tenant, found again by pieces of their words."""

from __future__ import annotations

import re
import unicodedata
from collections import OrderedDict
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache

__all__ = ["Bucket", "PastQuery", "key_of", "pieces_of"]

_WORD = re.compile(r"[^\W_]+")
_IDLE = frozenset(
    "a about all am an and any are as at be by can could do does for from get give has have how i if in into is it its "
    "just let like make me my need of on or our please show so tell that the their them then there these this those to "
    "up us want was we were what when where which who will with would you your".split()
)


@dataclass
class PastQuery:
    """A past query: its pieces, who taught it first, and how often and when last it helped, by tool and user."""

    query: str
    pieces: frozenset[str]
    teacher: str
    tools: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # tool -> user -> [times, seconds]


@dataclass
class Bucket:
    """One tenant's past queries by their key, the most recent at the end."""

    past: OrderedDict[str, PastQuery] = field(default_factory=OrderedDict)
    holders: dict[str, set[str]] = field(default_factory=dict)  # piece -> keys

    def drop(self, key: str) -> None:
        for piece in self.past.pop(key).pieces:
            self.holders[piece].discard(key)
            if not self.holders[piece]:
                del self.holders[piece]

    def undo(
        self, key: str, tools: AbstractSet[str] | None, user: str | None = None, since: float | None = None
    ) -> int:
        """Forgets what this user, or any, taught of a past query for these tools, or any; returns how many lessons.

        With `since`, only what was taught or confirmed from then on.
        """
        past, gone = self.past[key], 0
        for tool_id, users in list(past.tools.items()):
            if tools is not None and tool_id not in tools:
                continue
            leaving = [
                who for who, (_, last) in users.items() if user in (None, who) and (since is None or last >= since)
            ]
            for who in leaving:
                del users[who]
            if not users:
                del past.tools[tool_id]
            gone += bool(leaving)
        if not past.tools:
            self.drop(key)
        return gone

    def put(self, key: str, past: PastQuery) -> None:
        self.past[key] = past
        for piece in past.pieces:
            self.holders.setdefault(piece, set()).add(key)


def _words(query: str) -> list[str]:
    """The words of a query as they are compared, without idle ones unless there are no others."""
    words = _WORD.findall(unicodedata.normalize("NFKC", query).casefold())
    return [word for word in words if word not in _IDLE] or words


def key_of(query: str) -> str:
    """The words of a query in their order by letters: queries with the same words are one past query."""
    return " ".join(sorted(set(_words(query))))


def pieces_of(query: str) -> frozenset[str]:
    """The trigrams of all words, ends marked: they catch inflections, typos and scripts without spaces alike."""
    return frozenset(piece for word in key_of(query).split()[:64] for piece in _thirds(word[:40]))


@lru_cache(maxsize=4096)
def _thirds(word: str) -> tuple[str, ...]:
    marked = f" {word} "
    return tuple(marked[at : at + 3] for at in range(max(1, len(marked) - 2)))
