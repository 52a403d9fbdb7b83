"""Tools that several servers have alike, such as `create_issue`: three may lead, further ones stand behind the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from toolsearch.catalog.tools import Tool

__all__ = ["is_crowded", "spread"]

ALIKE = 3  # servers whose like tools may stand before others
SHARED = 0.5  # share of common words from which two summaries say the same
FITTING = 0.1  # share of a like tool's score: a tool that fits less does not come before it

_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|\d+")


class _Scored(Protocol):
    @property
    def tool(self) -> Tool: ...
    @property
    def score(self) -> float: ...


T = TypeVar("T", bound=_Scored)


def is_crowded(hits: Sequence[_Scored], query: str) -> bool:
    """Whether more than three of these are the same tool, from different servers."""
    return len(hits) > ALIKE and bool(_beyond(hits, query))


def spread(hits: Sequence[T], query: str) -> list[T]:
    """The hits, best first, with the like tools of a fourth and further server behind all that fit a tenth as well.

    The tools of a server that the query names keep their places. No hit is lost.
    """
    beyond = _beyond(hits, query)
    behind = [hit for at, hit in enumerate(hits) if at in beyond]
    if not behind:
        return list(hits)
    others = [hit for at, hit in enumerate(hits) if at not in beyond]
    least = FITTING * behind[-1].score
    return [*(h for h in others if h.score >= least), *behind, *(h for h in others if h.score < least)]


def _beyond(hits: Sequence[_Scored], query: str) -> set[int]:
    """The places of the like tools beyond the third server."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for at, hit in enumerate(hits):
        if hit.tool.server:
            groups.setdefault(tuple(sorted(_words(hit.tool.base_name))), []).append(at)
    wanted: set[str] | None = None
    beyond: set[int] = set()
    for places in groups.values():
        if len(places) <= ALIKE:
            continue
        wanted = _words(query) if wanted is None else wanted
        alike: list[tuple[set[str], set[str]]] = []  # of each kind: what it says, and the servers that have it
        for at in places:
            tool = hits[at].tool
            server = str(tool.server)
            says = _words(tool.summary()) - _words(server)
            kind = next((each for each in alike if _same(says, each[0])), None)
            if kind is None:
                alike.append((says, {server}))
            elif server not in kind[1]:
                if len(kind[1]) >= ALIKE and wanted.isdisjoint(_words(server)):
                    beyond.add(at)
                kind[1].add(server)
    return beyond


def _same(one: set[str], other: set[str]) -> bool:
    return len(one & other) >= SHARED * len(one | other)


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}
