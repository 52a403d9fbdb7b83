"""The search seam: what an index must do, and `find`, which does for every index what none should do twice.

An index only scores. Exact names, ties, limits, filters, duplicates and near names are settled here, once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, overload

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.names import squashed
from toolsearch.catalog.tools import Tool
from toolsearch.errors import QueryError, SetupError
from toolsearch.protocols import Matched, Ranking, Scored, ToolIndex
from toolsearch.search.confidence import NOTHING_BELOW, SURE_FROM, Verdict, verdict
from toolsearch.search.diversity import crowded, spread
from toolsearch.support.checks import shown
from toolsearch.support.plugins import plugin
from toolsearch.support.text import clean

__all__ = ["Hit", "Hits", "find", "open_index"]

QUERY_CHARACTERS = 2_000  # a longer query is cut before anything reads it
MOST_HITS = 100
DEEPER = 4  # times the limit


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found. `exact`: the query named it. `confidence` is P(relevant), None where none was fitted."""

    tool: Tool
    score: float
    confidence: float | None = None
    matched: tuple[Matched, ...] = ()
    exact: bool = False

    @property
    def shown_score(self) -> str:
        """The score as people read it: three decimals, or "exact"."""
        return "exact" if self.exact else f"{self.score:.3f}"


@dataclass(frozen=True)
class Hits(Sequence[Hit]):
    """The answer to one query: hits, best first, and what there is to say where they fall short.

    `unknown` are names the query asked for that no visible tool has; `near` are the nearest tools, given when nothing
    fits: of what was searched for, or else of similar names; `problem` says why the query could not be run; `degraded`
    says which part of the index did not take part, and why. `verdict` is what the confidences come to: "found", "weak"
    (they may not fit), "none" (no hits then), or None where the index has no confidence. See `search.confidence`.
    """

    query: str
    hits: tuple[Hit, ...] = ()
    unknown: tuple[str, ...] = ()
    near: tuple[Tool, ...] = ()
    problem: str | None = None
    index_name: str = field(default="", compare=False)
    degraded: str | None = None
    verdict: Verdict | None = None

    @overload
    def __getitem__(self, at: int) -> Hit: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, at: Any) -> Any:
        return self.hits[at]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __repr__(self) -> str:
        wide = min(max([32, *(len(h.tool.id) for h in self.hits)]), 48)
        lines = [f"{h.shown_score:>8}  {h.tool.id:{wide}}  {h.tool.summary(70)}" for h in self.hits]
        return "\n".join(
            [
                f"Hits({self.query!r}: {len(self)} by {self.index_name}{f', {self.verdict}' if self.verdict else ''})",
                *lines,
                *filter(None, (self.problem, self.degraded)),
            ]
        )

    def _repr_html_(self) -> str:
        from toolsearch.support.html import table

        rows = [
            (
                h.tool.id,
                h.shown_score,
                h.tool.summary(),
                ", ".join(f"{m.word} ({'/'.join(m.fields)})" for m in h.matched),
            )
            for h in self.hits
        ]
        near = ", ".join(t.id for t in self.near)
        nothing = "" if rows else f"Nothing fits; nearest: {near}." if near else "Nothing fits."
        doubt = "These may not fit." if self.verdict == "weak" else ""
        note = " ".join(filter(None, (self.problem or nothing, doubt, self.degraded)))
        return table(f"{self.query!r} by {self.index_name}", ("id", "score", "summary", "matched"), rows, note=note)


def find(
    catalog: Catalog,
    index: ToolIndex,
    query: Any,
    limit: Any = 5,
    among: AbstractSet[str] | None = None,
    *,
    sure_from: float = SURE_FROM,
    nothing_below: float = NOTHING_BELOW,
) -> Hits:
    """Searches a catalog through an index. Nothing a model or user types raises.

    Order: tools the query names exactly (by id, name or base name, in any case and punctuation), all of them, even
    beyond `limit`; then the index's by score, equal scores by id, and like tools of more than three servers behind the
    others. `limit` is clamped to 1…100, and is 5 where it is no number. `among` are the ids the caller may see; nothing
    else is returned or suggested, though an index may weigh words by all it holds. `sure_from` is the probability from
    which the verdict is "found", `nothing_below` the one below which it is "none" and nothing is returned.
    """
    text = clean(query if isinstance(query, str) else "" if query is None else str(query))[:QUERY_CHARACTERS].strip()
    if not text:
        return Hits(
            "", problem="The query is empty: say in a few words what the tool should do.", index_name=index.name
        )
    limit = clamped(limit)
    named, unknown, only_names = _named(catalog, text, among)
    hits = [Hit(tool, math.inf, 1.0, (Matched(tool.name, ("name",)),), exact=True) for tool in named][:MOST_HITS]
    near: tuple[Tool, ...] = ()
    said: Verdict | None = "found" if hits else None
    problem = degraded = None
    if not only_names and len(hits) < limit:
        try:
            others, scored = _searched(catalog, index, text, limit, among=among, named={h.tool.id for h in hits})
            whole = scored if isinstance(scored, Ranking) else Ranking()
            degraded = whole.degraded
            said = said or verdict([h.confidence for h in others], whole.answerable, sure_from, nothing_below)
            if said == "none":
                others, near = [], tuple(hit.tool for hit in others[:3])
            hits += others[: limit - len(hits)]
        except QueryError as error:
            problem = str(error)
    near = near if hits or near else tuple(_near(catalog, unknown or (text,), among))
    return Hits(text, tuple(hits), unknown, near, None if hits else problem, index.name, degraded, said)


def _searched(
    catalog: Catalog,
    index: ToolIndex,
    text: str,
    limit: int,
    *,
    among: AbstractSet[str] | None,
    named: AbstractSet[str],
) -> tuple[list[Hit], Sequence[Scored]]:
    """What an index finds beside the tools that were named, up to `limit`, and its answer as it was.

    Where like tools crowd out the rest, the index is asked once more for what lies behind them.
    """
    scored = index.search(text, min(limit + len(named), MOST_HITS), among)
    hits = _checked(catalog, scored, among, set(named))
    if crowded(hits, text):
        more = index.search(text, min(DEEPER * limit, MOST_HITS), among)
        hits = spread(_checked(catalog, more, among, set(named)), text)
    return hits[:limit], scored


def clamped(limit: Any, least: int = 1, most: int = MOST_HITS, default: int = 5) -> int:
    """A limit as a usable number, whatever was passed."""
    try:
        number = int(limit)
    except (TypeError, ValueError, OverflowError):
        return default
    return max(least, min(most, number))


def _near(catalog: Catalog, names: Sequence[str], among: AbstractSet[str] | None) -> list[Tool]:
    """The tools called most like these names, three in all, the best for each name first."""
    lists = [catalog.near(name, 3, among) for name in names[:3]]
    taken = {t.id: t for place in zip_longest(*lists) for t in place if t is not None}
    return list(taken.values())[:3]


def _checked(catalog: Catalog, scored: Iterable[Scored], among: AbstractSet[str] | None, seen: set[str]) -> list[Hit]:
    """Hits from an index's answer, without what it should not have said: strangers, repeats, scores that are none."""
    hits = []
    for found in scored:
        if not isinstance(found, Scored):
            raise SetupError(f"the index gave {shown(found)} where a Scored(id, score) is due")
        tool = catalog.get(found.id)
        if tool is None or found.id in seen or (among is not None and found.id not in among):
            continue
        if not (math.isfinite(found.score) and found.score > 0):
            continue
        seen.add(found.id)
        hits.append(Hit(tool, float(found.score), found.confidence, found.matched))
    hits.sort(key=lambda hit: (-hit.score, hit.tool.id))
    return hits


_SELECT = re.compile(r"\s*select\s*:", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s,;]+")
_LIST = re.compile(r"[^\s,;]+(?:\s*[,;]\s*[^\s,;]+)+[\s,;]*")  # single words between commas
_HUMP = re.compile(r"[a-z0-9][A-Z]|[^\W_][_./:-]+[^\W_]|[A-Za-z][0-9]")


def _named(catalog: Catalog, query: str, among: AbstractSet[str] | None) -> tuple[list[Tool], tuple[str, ...], bool]:
    """Tools a query names, names it gives that no tool has, and whether it holds nothing but names.

    `select:a,b` is a list of names; so is `a, b` where each is a tool's or at least written like a name. Elsewhere a
    word counts as a name if it is written like one (`create_issue`, `getWeather`, `files.read`), or if the whole
    query, spaces aside, is one.
    """

    def visible(name: str) -> list[Tool]:
        return [t for t in catalog.named(name) if among is None or t.id in among]

    if select := _SELECT.match(query):
        asked = [n for n in _SEPARATORS.split(query[select.end() :]) if squashed(n)][:MOST_HITS]
        found = {name: visible(name) for name in dict.fromkeys(asked)}
        tools = {t.id: t for tools in found.values() for t in tools}
        return list(tools.values()), tuple(name for name, tools in found.items() if not tools), bool(asked)
    if whole := visible(query):
        return whole, (), False
    words = dict.fromkeys(w for w in (w.strip("\"'`()[]{}<>.:!?") for w in _SEPARATORS.split(query)) if w)
    likely = {w: visible(w) for w in words if _HUMP.search(w)}
    if _LIST.fullmatch(query):
        every = {w: likely[w] if w in likely else visible(w) for w in words}
        if any(every.values()) and all(tools or w in likely for w, tools in every.items()):
            unknown = tuple(w for w, tools in every.items() if not tools)
            return list({t.id: t for tools in every.values() for t in tools}.values()), unknown, not unknown
    return list({t.id: t for tools in likely.values() for t in tools}.values()), (), False


def open_index(name: str) -> ToolIndex:
    """A new index by the name of its entry point (group `toolsearch.indexes`), or `SetupError` listing the names.

    "auto" is the best that the installed packages allow; its `name` says which that is.
    """
    made: ToolIndex = plugin("index", "toolsearch.indexes", name).load()()
    return made
