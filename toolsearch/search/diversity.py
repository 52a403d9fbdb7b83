"""Like tools that would crowd out the rest: of several servers, of one server, or for one of two capabilities.

- Of tools that several servers have alike, such as `create_issue`, three may lead; further ones stand behind the rest.
- Of one server's tools that say the same, three may lead; further ones stand behind other servers' tools that match
  the same words of the query. So no server takes all places with paraphrases.
- Where all places would go to one server's tools that say the same, tools that match further words of the query take
  the last of them. So a query for two capabilities finds both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import islice
from typing import Protocol, TypeVar

from toolsearch.catalog.names import base_name
from toolsearch.catalog.tools import Tool, first_sentence
from toolsearch.protocols import Matched

__all__ = ["chosen", "crowding_server", "is_crowded", "is_one_capability", "spread"]

ALIKE = 3  # like tools, of as many servers or of one, that may stand before others
SHARED = 0.5  # share of common words from which two summaries say the same
FITTING = 0.1  # share of a like tool's score: a tool that fits less does not come before it
AS_GOOD = 0.7  # the same for a tool that takes the place of a paraphrase, or of a tool for a capability found already

LOOKED_AT = 10  # hits that may take a place among the first

_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|\d+")
_NO_WORDS = (("meaning",), ("learned",))  # fields of a match that is not of words


class _Scored(Protocol):
    @property
    def tool(self) -> Tool: ...
    @property
    def score(self) -> float: ...
    @property
    def matched(self) -> tuple[Matched, ...]: ...


T = TypeVar("T", bound=_Scored)


def is_crowded(hits: Sequence[_Scored], query: str) -> bool:
    """Whether more than three of these are the same tool, from different servers."""
    return len(hits) > ALIKE and bool(_beyond(hits, query))


def crowding_server(hits: Sequence[_Scored], query: str) -> str | None:
    """The server that all of these are from, if more than three of them say the same."""
    if len(hits) <= ALIKE or not (server := hits[0].tool.server):
        return None
    return server if all(hit.tool.server == server for hit in hits) and _paraphrases(hits, query) else None


def is_one_capability(hits: Sequence[_Scored], query: str) -> bool:
    """Whether all of several hits are tools like the first, while there are words of the query that none matches."""
    if len(hits) < 2 or not all(_is_like(hit, hits[0]) for hit in hits[1:]):
        return False
    return not _words(query) <= {word.casefold() for word in _said(hits[0])}


def spread(hits: Sequence[T], query: str) -> list[T]:
    """The hits, best first, with those behind others that would crowd them out. No hit is lost.

    The like tools of a fourth and further server stand behind all that fit a tenth as well; a server's paraphrases
    beyond the third stand behind the tools of other servers that fit as well. The tools of a server that the query
    names keep their places.
    """
    beyond = _beyond(hits, query)
    behind = [hit for at, hit in enumerate(hits) if at in beyond]
    if behind:
        others = [hit for at, hit in enumerate(hits) if at not in beyond]
        least = FITTING * behind[-1].score
        hits = [*(h for h in others if h.score >= least), *behind, *(h for h in others if h.score < least)]
    paraphrases = _paraphrases(hits, query)
    if not paraphrases:
        return list(hits)
    first = min(paraphrases)
    places = range(first, len(hits))
    ahead = [at for at in places if at not in paraphrases and _is_as_good(hits[at], hits[first])]
    return [hits[at] for at in (*range(first), *ahead, *sorted(set(places).difference(ahead)))]


def chosen(hits: Sequence[T], limit: int) -> list[T]:
    """The first hits, up to the limit. Tools like one before them give way to tools that match further words.

    Of those behind, the next few are looked at that are not like one of the first.
    """
    top = list(hits[:limit])
    said = {word for hit in top for word in _said(hit)}
    behind = (hit for hit in hits[limit:] if not any(_is_like(hit, each) for each in top))
    for hit in islice(behind, max(limit, LOOKED_AT - limit)):
        if said >= (words := _said(hit)) or hit.score < AS_GOOD * top[-1].score:
            continue
        gives_way = (at for at in range(len(top) - 1, 0, -1) if any(_is_like(top[at], each) for each in top[:at]))
        if (place := next(gives_way, None)) is None:
            break
        top = [*top[:place], *top[place + 1 :], hit]
        said |= words
    return top


def _is_like(hit: _Scored, other: _Scored) -> bool:
    """Whether a hit is a tool of the same server that says the same, and matches no further words."""
    alike = hit.tool.server == other.tool.server and _said(hit) <= _said(other)
    return alike and _same(_says(hit.tool), _says(other.tool))


def _is_as_good(hit: _Scored, paraphrase: _Scored) -> bool:
    """Whether the tool of another server matches the same words of the query, and fits nearly as well."""
    return (
        hit.tool.server != paraphrase.tool.server
        and hit.score >= AS_GOOD * paraphrase.score
        and _said(hit) >= _said(paraphrase)
    )


def _paraphrases(hits: Sequence[_Scored], query: str) -> set[int]:
    """The places of a server's tools beyond its third that match the same words of the query, or say the same."""
    of_server: dict[str, list[int]] = {}
    for at, hit in enumerate(hits):
        if hit.tool.server:
            of_server.setdefault(hit.tool.server, []).append(at)
    kinds: dict[str, list[list[int]]] = {}
    for server, places in of_server.items():
        if len(places) > ALIKE:
            kinds[server] = _kinds(hits, places)
    beyond = {at: server for server, of in kinds.items() for kind in of for at in kind[ALIKE:]}
    named = _words(query) if beyond else set()
    return {at for at, server in beyond.items() if named.isdisjoint(_words(server))}


def _kinds(hits: Sequence[_Scored], places: Sequence[int]) -> list[list[int]]:
    """The places of one server's hits, together where two match the same words of the query, or say the same."""
    kinds: list[list[int]] = []
    for at in places:
        said = _said(hits[at])
        for kind in kinds:
            first = hits[kind[0]]
            if (said and said == _said(first)) or _same(_says(hits[at].tool), _says(first.tool)):
                kind.append(at)
                break
        else:
            kinds.append([at])
    return kinds


def _said(hit: _Scored) -> frozenset[str]:
    """The words of the query that a hit matches."""
    return frozenset(match.word for match in hit.matched if match.fields not in _NO_WORDS)


def _says(tool: Tool) -> frozenset[str]:
    return _words_said(tool.name, tool.description or tool.fallback_description, tool.server or "")


@lru_cache(maxsize=4096)
def _words_said(name: str, description: str, server: str) -> frozenset[str]:
    """The words of a tool's name and first sentence, without its server's and numbers."""
    words = (_words(base_name(name, server)) | _words(first_sentence(description))) - _words(server)
    return frozenset(word for word in words if len(word) > 1 and not word.isdigit())


def _beyond(hits: Sequence[_Scored], query: str) -> set[int]:
    """The places of the like tools beyond the third server."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for at, hit in enumerate(hits):
        if hit.tool.server:
            groups.setdefault(_name_words(hit.tool.name, hit.tool.server), []).append(at)
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


@lru_cache(maxsize=4096)
def _name_words(name: str, server: str | None) -> tuple[str, ...]:
    return tuple(sorted(_words(base_name(name, server))))


def _same(one: AbstractSet[str], other: AbstractSet[str]) -> bool:
    return len(one & other) >= SHARED * len(one | other)


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}
