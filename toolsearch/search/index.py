"""Searching a catalog through an index: `find` does here, once, what every index would have to do otherwise.

An index only scores. Exact names, ties, limits, filters, duplicates and near names are decided here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import SupportsIndex, SupportsInt, overload

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.roster import Roster
from toolsearch.catalog.tools import Tool
from toolsearch.errors import QueryError, SetupError
from toolsearch.protocols import Matched, Ranking, Scored, ToolIndex
from toolsearch.search.confidence import Verdict, verdict
from toolsearch.search.diversity import chosen, crowding_server, is_crowded, is_one_capability, spread
from toolsearch.search.languages import language_hint
from toolsearch.settings import NOTHING_BELOW, SURE_FROM
from toolsearch.support.checks import shown
from toolsearch.support.plugins import plugin
from toolsearch.support.text import bounded, clean

__all__ = ["Hit", "Hits", "find", "open_index"]

QUERY_CHARACTERS = 2_000  # a longer query is cut before anything reads it
MOST_HITS = 100
NEAREST = 10  # tools that are named where nothing fits
HINTED_BELOW = 0.5  # confidence of the best hit: below it a query in another language is told so
CROWDED_FACTOR = 4  # times the limit: how many hits are asked for first where like tools crowd out the rest


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found. `exact`: the query named it. `confidence` is P(relevant), or None without a fit."""

    tool: Tool
    score: float
    confidence: float | None = None
    matched: tuple[Matched, ...] = ()
    exact: bool = False

    @property
    def shown_score(self) -> str:
        """The score as people read it: three decimals, or "exact"."""
        return "exact" if self.exact else f"{self.score:.3f}"

    @property
    def shown_confidence(self) -> str:
        """The probability that the tool fits as people read it: two decimals, empty where there is none."""
        return "" if self.confidence is None else f"{self.confidence:.2f}"


@dataclass(frozen=True)
class Hits(Sequence[Hit]):
    """The answer to one query: the hits, best first, and what to know where they fall short.

    `unknown` are names in the query that no visible tool has. `near` are up to ten tools where nothing fits: the
    nearest by the ranking of the index, or else those with similar names. `problem` says why the query could not be
    run, `degraded` which part of the index did not take part, and why, `hint` how to ask better where the hits say
    little. `verdict` sums up the confidences: "found", "weak" (the hits may not fit), "none" (there are no hits), or
    None for an index without confidences. See `search.confidence`.
    """

    query: str
    hits: tuple[Hit, ...] = ()
    unknown: tuple[str, ...] = ()
    near: tuple[Tool, ...] = ()
    problem: str | None = None
    index_name: str = field(default="", compare=False)
    degraded: str | None = None
    verdict: Verdict | None = None
    hint: str | None = None

    @overload
    def __getitem__(self, at: int) -> Hit: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, at: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[at]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __repr__(self) -> str:
        wide = min(max([32, *(len(h.tool.id) for h in self.hits)]), 48)
        lines = [
            f"{h.shown_score:>8}  {h.shown_confidence:>4}  {h.tool.id:{wide}}  {h.tool.summary(70)}" for h in self.hits
        ]
        return "\n".join(
            [
                f"Hits({self.query!r}: {len(self)} by {self.index_name}{f', {self.verdict}' if self.verdict else ''})",
                *lines,
                *filter(None, (self.problem, self.hint, self.degraded)),
            ]
        )

    def _repr_html_(self) -> str:
        from toolsearch.support.html import table

        rows = [
            (
                h.tool.id,
                h.shown_confidence,
                h.shown_score,
                h.tool.summary(),
                bounded(", ".join(f"{m.word} ({'/'.join(m.fields)})" for m in h.matched), 300),
            )
            for h in self.hits
        ]
        near = ", ".join(t.id for t in self.near)
        nothing = "" if rows else f"Nothing fits; nearest: {near}." if near else "Nothing fits."
        note = " ".join(filter(None, (self.problem or nothing, self.hint, self.degraded)))
        heads = ("id", "confidence", "score", "summary", "matched")
        verdict = f", {self.verdict}" if self.verdict else ""
        return table(f"{bounded(self.query, 200)!r} by {self.index_name}{verdict}", heads, rows, note=note)


def find(
    catalog: Catalog | Roster,
    index: ToolIndex,
    query: object,
    limit: object = 5,
    among: AbstractSet[str] | None = None,
    *,
    sure_from: float = SURE_FROM,
    nothing_below: float = NOTHING_BELOW,
) -> Hits:
    """Searches a catalog through an index. Nothing that a model or user writes makes it raise.

    Order: first all tools that the query names exactly (by id or name, to the letter; or else by base name, or in any
    case and punctuation), even beyond `limit`; then those of the index by score, equal scores by id, except that like
    tools do not crowd out the rest; see `search.diversity`. `limit` is clamped to 1…100, and is 5 if it is not a
    number. `among` are the ids the caller may see; nothing else is returned or suggested, though an index may weigh
    words by all the tools it holds. From the probability `sure_from` on the verdict is "found"; below `nothing_below`
    it is "none" and nothing is returned.
    """
    text = clean(query if isinstance(query, str) else "" if query is None else str(query))[:QUERY_CHARACTERS].strip()
    if not text:
        return Hits(
            "", problem="The query is empty: say in a few words what the tool should do.", index_name=index.name
        )
    most = clamped(limit)
    tools = catalog.roster if isinstance(catalog, Catalog) else catalog  # one state, whatever changes meanwhile
    names = _names_in(tools, text, among)
    hits = [Hit(tool, math.inf, 1.0, (Matched(tool.name, ("name",)),), exact=True) for tool in names.tools][:MOST_HITS]
    near: tuple[Tool, ...] = ()
    outcome: Verdict | None = "found" if hits else None
    problem = degraded = hint = None
    if not names.only and len(hits) < most:
        try:
            others, scored = _search(tools, index, text, most, among=among, named={h.tool.id for h in hits})
            whole = scored if isinstance(scored, Ranking) else Ranking()
            degraded, hint = whole.degraded, whole.hint
            outcome = outcome or verdict([h.confidence for h in others], whole.answerable, sure_from, nothing_below)
            if outcome == "none":
                ids = whole.near or [each.id for each in scored]
                near, others = _visible(tools, ids, among)[:NEAREST], []
            hits += others[: most - len(hits)]
        except QueryError as error:
            problem = str(error)
    near = near if hits or near else _similar(tools, names.unknown or (text,), among)
    problem = None if hits else problem
    if not hint and not (hits and (hits[0].exact or (hits[0].confidence or 0.0) >= HINTED_BELOW)):
        hint = language_hint(text, tools, among)
    return Hits(text, tuple(hits), names.unknown, near, problem, index.name, degraded, outcome, hint)


def _search(
    tools: Roster,
    index: ToolIndex,
    text: str,
    limit: int,
    *,
    among: AbstractSet[str] | None,
    named: AbstractSet[str],
) -> tuple[list[Hit], Sequence[Scored]]:
    """What an index finds in addition to the tools that were named, up to `limit`, and its answer as it was.

    If like tools crowd out the rest, the index is asked once more for what lies behind them.
    """
    scored = index.search(text, min(limit + len(named), MOST_HITS), among)
    hits = _hits_in(tools, scored, among, set(named))
    crowding = crowding_server(hits, text)
    crowded = crowding is not None or is_crowded(hits, text)
    if crowded or is_one_capability(hits, text):
        for depth in (CROWDED_FACTOR * limit, MOST_HITS):
            hits = _hits_in(tools, index.search(text, min(depth, MOST_HITS), among), among, set(named))
            if not (all(hit.tool.server == crowding for hit in hits) if crowded else is_one_capability(hits, text)):
                break
        else:
            if crowding is not None:
                others = frozenset(t.id for t in tools if t.server != crowding and (among is None or t.id in among))
                hits += _behind(hits, _hits_in(tools, index.search(text, limit, others), others, set(named)))
        hits = chosen(spread(hits, text) if crowded else hits, limit)
    return hits[:limit], scored


def _behind(hits: Sequence[Hit], others: Sequence[Hit]) -> list[Hit]:
    """Hits of another search with scores that put them behind the first, as those of two searches do not compare."""
    best = others[0].score if others else 1.0
    return [replace(hit, score=hits[-1].score * min(1.0, hit.score / best)) for hit in others]


def clamped(limit: object, least: int = 1, most: int = MOST_HITS, default: int = 5) -> int:
    """A limit as a usable number, whatever was passed."""
    if type(limit) is int:
        return max(least, min(most, limit))
    if not isinstance(limit, str | SupportsInt | SupportsIndex):
        return default
    try:
        number = int(limit)
    except (TypeError, ValueError, OverflowError):
        return default
    return max(least, min(most, number))


def _visible(roster: Roster, ids: Iterable[str], among: AbstractSet[str] | None) -> tuple[Tool, ...]:
    """The tools of these ids that there are and that the caller may see, each once."""
    tools = {i: roster.get(i) for i in ids if among is None or i in among}
    return tuple(tool for tool in tools.values() if tool is not None)


def _similar(roster: Roster, names: Sequence[str], among: AbstractSet[str] | None) -> tuple[Tool, ...]:
    """The tools with the names most like these, three in all, the best for each name first."""
    lists = [roster.near(name, 3, among) for name in names[:3]]
    tools = {t.id: t for place in zip_longest(*lists) for t in place if t is not None}
    return tuple(tools.values())[:3]


def _hits_in(tools: Roster, scored: Iterable[Scored], among: AbstractSet[str] | None, seen: set[str]) -> list[Hit]:
    """Hits from an index's answer, without what it should have left out: unknown tools, repeats, impossible scores."""
    hits = []
    for each in scored:
        if not isinstance(each, Scored):
            raise SetupError(f"the index gave {shown(each)} where a Scored(id, score) is needed")
        tool = tools.get(each.id)
        if tool is None or each.id in seen or (among is not None and each.id not in among):
            continue
        if not (math.isfinite(each.score) and each.score > 0):
            continue
        seen.add(each.id)
        hits.append(Hit(tool, float(each.score), each.confidence, each.matched))
    hits.sort(key=lambda hit: (-hit.score, hit.tool.id))
    return hits


_SELECT = re.compile(r"\s*select\s*:", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s,;]+")
_LIST = re.compile(r"[^\s,;]+(?:\s*[,;]\s*[^\s,;]+)+[\s,;]*")  # single words between commas
_HUMP = re.compile(r"[a-z0-9][A-Z]|[^\W_][_./:-]+[^\W_]|[A-Za-z][0-9]")
# In a sentence `GitHub`, `v1` and `auto-complete` are words. No word is `create_issue`, `getUser` or `GetUserById`.
_NO_WORD = re.compile(r"[^\W_]_+[^\W_]|\A(?:[a-z]{2,}\d*(?:[A-Z]+[a-z]+\d*)+|(?:[A-Z][a-z]+\d*){3,})\Z")
_SIGNED = re.compile(r"[^\W_][./:]+[^\W_]|-.+-")  # `files.read`, `find-flaky-tests`: names if a tool has the same signs


@dataclass(frozen=True, slots=True)
class _Names:
    """What a query names: tools, names that no tool has, and whether it holds `only` names."""

    tools: tuple[Tool, ...] = ()
    unknown: tuple[str, ...] = ()
    only: bool = False


def _names_in(roster: Roster, query: str, among: AbstractSet[str] | None) -> _Names:
    """The names in a query.

    `select:a,b` is a list of names; so is `a, b` if each is a tool's or at least written like a name. Otherwise the
    whole query, spaces aside, may be a name; in a sentence only a word is that nobody writes for anything else. A tool
    called `GitHub` or `auto-complete` is found by its words there, as any other.
    """

    def visible(name: str) -> list[Tool]:
        return roster.named(name, among)

    if select := _SELECT.match(query):
        names = [n for n in _SEPARATORS.split(query[select.end() :]) if n][:MOST_HITS]
        selected = {name: visible(name) for name in names}
        return _Names(_distinct(selected), tuple(n for n, tools in selected.items() if not tools), only=bool(names))
    if whole := visible(query):
        return _Names(tuple(whole))
    is_list = _LIST.fullmatch(query)
    if not is_list and not _HUMP.search(query):  # as in most queries
        return _Names()
    words = dict.fromkeys(w for w in (w.strip("\"'`()[]{}<>.:!?") for w in _SEPARATORS.split(query)) if w)
    likely = [w for w in words if _HUMP.search(w)]
    if is_list:
        every = {w: visible(w) for w in words}
        if any(every.values()) and all(tools or w in likely for w, tools in every.items()):
            unknown = tuple(w for w, tools in every.items() if not tools)
            return _Names(_distinct(every), unknown, only=not unknown)
    signed = [w for w in likely if _NO_WORD.search(w) or _SIGNED.search(w)]
    return _Names(_distinct({w: [t for t in visible(w) if _names_only(w, t)] for w in signed}))


def _names_only(word: str, tool: Tool) -> bool:
    """Whether a word of a sentence that is a tool's name can hardly be anything else."""
    if _NO_WORD.search(word):
        return True
    return bool(_SIGNED.search(word)) and word.casefold() in (tool.id.casefold(), tool.name.casefold())


def _distinct(by_name: Mapping[str, Iterable[Tool]]) -> tuple[Tool, ...]:
    return tuple({t.id: t for tools in by_name.values() for t in tools}.values())


def open_index(name: str) -> ToolIndex:
    """A new index by the name of its entry point (group `toolsearch.indexes`), or `SetupError` listing the names.

    "auto" is the best that the installed packages allow; its `name` says which that is.
    """
    index: ToolIndex = plugin("index", "toolsearch.indexes", name).load()()
    return index
