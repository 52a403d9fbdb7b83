"""What a search of a session did, and the text that the model reads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Literal

from toolsearch.catalog.tools import Tool
from toolsearch.search.index import Hits
from toolsearch.session.directory import place_name
from toolsearch.session.listing import Listing
from toolsearch.session.meta_tool import SearchRequest, schema_text, some_of
from toolsearch.support.text import counted

__all__ = ["SearchOutcome", "is_doubtful"]

_SHORT = 120  # characters of what stands in an answer that is kept short
_OTHER_WORDS = "Try other words: what is done, to what, in which product; one capability a query."
_SUMMARY, _LONGER = 140, 400  # characters of a tool's summary; of one that must tell it from another
NEAREST = (10, 3, 0)  # tools that are named for a query that nothing fits, by how short an answer is kept
SHORTEST = len(NEAREST) - 1
DOUBTFUL_BELOW = 0.4  # confidence of the best hit: of the first hits below it, about three in four are wrong


@dataclass
class SearchOutcome:
    """What a search did, and the text for the model.

    `names` maps tool ids to the names that the model calls; a tool of the answers that is not in it is not told.
    """

    request: SearchRequest
    names: dict[str, str]
    answers: list[Hits] = field(default_factory=list)
    listings: list[Listing] = field(default_factory=list)  # of the queries that ask for names
    pages: list[str] = field(default_factory=list)  # their texts
    overview: str = ""  # what there is, where nothing fits
    all_told: Sequence[Tool] = ()  # all tools, if that names them
    new: list[Tool] = field(default_factory=list)
    already: list[Tool] = field(default_factory=list)
    named: list[Tool] = field(default_factory=list)  # further ones that fit, in turn of the queries
    names_rest: bool = False  # whether `named` ends with tools that no query found, and no answer has named before
    left_out: list[Tool] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    kept_short: int = 0  # 0: all is said; 1: fewer of the nearest tools; 2: none, and queries without a tool together
    call_tool: str | None = None  # only in "bridge": the text then shows schemas, which the model sees nowhere else
    action_tool: str | None = None  # likewise; the one for actions, if there are two
    not_loaded: Literal["show", "run", "refuse"] = "show"  # what happens when a tool that is only named is called

    @property
    def is_empty(self) -> bool:
        return not self.new and not self.already

    @property
    def finds_nothing(self) -> bool:
        """Whether nothing fits: no tool that is loaded, and no name that the model could correct."""
        return self.is_empty and any(not (hits or hits.unknown or hits.problem) for hits in self.answers)

    @property
    def nearest(self) -> list[Tool]:
        """The tools that are named because nothing fits, and are not loaded."""
        told = {t.id for t in (*self.new, *self.already)}
        return [t for hits in self.answers for t in self._near(hits) if t.id not in told]

    def _near(self, hits: Hits) -> list[Tool]:
        near = () if hits else hits.near
        return [t for t in near if t.id in self.names][: NEAREST[self.kept_short]]

    @property
    def has_failed(self) -> bool:
        """Whether a query could not be run."""
        return any(hits.problem for hits in self.answers)

    @property
    def data(self) -> dict[str, object]:
        """The outcome for a program: tool ids and names, the verdict on each query, and how sure of each tool it is."""
        return {
            "loaded": [t.id for t in self.new],
            "already_loaded": [t.id for t in self.already],
            "named": list(dict.fromkeys(t.id for t in (*self.named, *self.nearest, *self.all_told))),
            "unknown": [n for hits in self.answers for n in hits.unknown],
            "left_out": [t.id for t in self.left_out],
            "unloaded": list(self.evicted),
            "degraded": list(dict.fromkeys(hits.degraded for hits in self.answers if hits.degraded)),
            "verdicts": [hits.verdict or "" for hits in self.answers],
            "confidence": self._confidences(),
        }

    def _confidences(self) -> dict[str, float]:
        """How sure the search is of each tool that it loaded or named, by id; nothing of an index that has no fit."""
        told = {t.id for t in (*self.new, *self.already, *self.named)}
        best: dict[str, float] = {}
        for hit in (hit for hits in self.answers for hit in hits if hit.tool.id in told):
            if hit.confidence is not None:
                best[hit.tool.id] = max(best.get(hit.tool.id, 0.0), round(hit.confidence, 3))
        return best

    def _line(self, tool: Tool, alike: Container[str]) -> str:
        """One tool: its name, its server, and its first sentence, or more if that is one of those `alike`."""
        place = f" ({place_name(tool.server)})" if tool.server else ""
        place += self._mark(tool)
        summary = tool.summary(_SUMMARY)
        if summary in alike:
            whole = " ".join(tool.description.split())
            summary = whole if len(whole) <= _LONGER else f"{whole[: _LONGER - 1]}…"
        schema = f"\n  arguments: {schema_text(tool)}" if self.call_tool else ""
        return f"- {self._name_of(tool)}{place}: {summary}{schema}"

    def _name_of(self, tool: Tool) -> str:
        return self.names.get(tool.id, tool.name)

    def _marked(self, tool: Tool) -> str:
        """The tool's name; marked, if it is called through the tool for actions."""
        return self._name_of(tool) + self._mark(tool)

    def _mark(self, tool: Tool) -> str:
        return " (action)" if self.action_tool and tool.kind == "action" else ""

    def _through(self, tools: Sequence[Tool]) -> str:
        """The tool, or the tools, through which these are called."""
        marked = sum(map(bool, map(self._mark, tools)))
        if not self.action_tool or not marked:
            return f"through {self.call_tool}"
        if marked == len(tools):
            return f"through {self.action_tool}"
        return f"through {self.call_tool}, or {self.action_tool} where it says (action)"

    def text(self) -> str:
        """The answer for the model, most useful first. Every sentence says what happened and then what to do."""
        new = {t.id for t in self.new}
        parts = []
        if self.new:
            many, them = counted(len(self.new), "tool"), "it" if len(self.new) == 1 else "them"
            how = self._through(self.new) if self.call_tool else "by name from your next step on"
            parts.append(f"Loaded {many}; call {them} {how}.")
        listed: set[str] = set()
        begins = Counter(tool.summary(_SUMMARY) for tool in self.new)
        alike = {summary for summary, count in begins.items() if count > 1}
        for hits in self.answers:
            tools = [h.tool for h in hits if h.tool.id in new]
            lines = [self._line(t, alike) for t in tools if t.id not in listed]
            heading = f"For {_quoted(hits.query)}:"
            if lines:
                parts += [*([heading] if len(self.answers) > 1 else []), *lines]
            elif tools and self.kept_short < SHORTEST:
                parts.append(f"{heading} {some_of([self._name_of(t) for t in tools], 2)}, listed above.")
            listed |= {t.id for t in tools}
            parts += self._shortfalls(hits) if self.kept_short < SHORTEST else []
        parts += self._shortfalls_together() if self.kept_short == SHORTEST else []
        if self.already:
            most = 20 if self.kept_short < SHORTEST else 5
            how = f"call them {self._through(self.already)}" if self.call_tool else "call directly"
            parts.append(f"Already loaded, {how}: {some_of([self._marked(t) for t in self.already], most)}.")
        if self.named:
            parts.append(f"Also: {', '.join(map(self._marked, self.named))} ({self._way_to_named()}).")
        if caution := self.caution():
            parts.append(caution)
        if self.left_out:
            parts.append(f"Also fitting, but left out to keep this short: {len(self.left_out)}. Ask more narrowly.")
        if self.request.left_out:
            most = len(self.request.queries)
            parts.append(f"Queries left out: {self.request.left_out}; {most} at a time. Ask them next.")
        if self.evicted:
            parts.append(f"Unloaded to stay within the limit: {some_of(self.evicted, 40)}. Search again to use them.")
        parts += [*self.pages, *filter(None, [self.overview])]
        parts += [
            f"The server {s[:80]!r} cannot be reached now, so its tools are missing or do not run: {why[:200]}. Try "
            "again later or continue without them."
            for s, why in list(self.missing.items())[:10]
            if self._concerns(s)
        ]
        return "\n".join(parts)

    def _way_to_named(self) -> str:
        """How a tool that is only named is used."""
        then = {
            "show": " to see its schema",
            "run": "; if its arguments do not fit, you see its schema",
            "refuse": " to load it",
        }
        return self._way_to_load(self.named) + then[self.not_loaded]

    def _way_to_load(self, tools: Sequence[Tool]) -> str:
        """What the model does with the name of one of these tools."""
        if self.not_loaded == "refuse":
            return "search for one by its name"
        return f"call one {self._through(tools) if self.call_tool else 'by its name'}"

    def caution(self) -> str:
        """A warning that names the queries whose hits are doubtful; empty if none is."""
        loaded = {t.id for t in (*self.new, *self.already)}
        answered = [hits for hits in self.answers if any(h.tool.id in loaded for h in hits)]
        doubtful = [_quoted(hits.query) for hits in answered if is_doubtful(hits)]
        if not doubtful:
            return ""
        which = "These" if len(doubtful) == len(answered) else f"Those for {some_of(doubtful, 8)}"
        return f"{which} may not fit: check before you call, or search in other words."

    def _concerns(self, server: str) -> bool:
        """Whether a missing server may explain why a search found too little, or is named in a query."""
        return any(not hits or hits.verdict == "weak" for hits in self.answers) or any(
            server.casefold() in query.casefold() for query in self.request.queries
        )

    def _shortfalls(self, hits: Hits) -> list[str]:
        lines = []
        tools = self._near(hits)
        way = f"{self._way_to_load(tools)} if it does fit"
        near = f" Nearest: {', '.join(map(self._marked, tools))} ({way})." if tools else ""
        if hits.unknown:
            quoted = ", ".join(_quoted(name) for name in hits.unknown[:10])
            more = f" and {len(hits.unknown) - 10} more" if len(hits.unknown) > 10 else ""
            lines.append(f"No tool is named {quoted}{more}; search by what it should do.{near}")
        if hits.hint:
            lines.append(hits.hint)
        if hits.problem:
            lines.append(hits.problem)
        elif not hits and not hits.unknown:
            lines.append(f"Nothing fits {_quoted(hits.query)}{self._place}.{near} {_OTHER_WORDS}")
        return lines

    def _shortfalls_together(self) -> list[str]:
        """As `_shortfalls` of all queries, in few words."""
        lines = []
        if unknown := list(dict.fromkeys(_quoted(name) for hits in self.answers for name in hits.unknown)):
            lines.append(f"No tool is named {some_of(unknown, 5, _SHORT)}; search by what it should do.")
        told = [text for hits in self.answers for text in (hits.hint, hits.problem) if text]
        lines += list(dict.fromkeys(told))[:1]
        if vain := [_quoted(hits.query) for hits in self.answers if not (hits or hits.unknown or hits.problem)]:
            lines.append(f"Nothing fits {some_of(vain, 5, _SHORT)}{self._place}. {_OTHER_WORDS}")
        return lines

    @property
    def _place(self) -> str:
        return f" in the category {self.request.category[:80]!r}" if self.request.category else ""


def is_doubtful(hits: Hits) -> bool:
    """Whether the best hit is more likely wrong than right. Most weak answers are right: see docs/confidence.md."""
    return hits.verdict == "weak" and max((hit.confidence or 0.0) for hit in hits) < DOUBTFUL_BELOW


def _quoted(text: str) -> str:
    return json.dumps(text if len(text) <= 80 else text[:79] + "…", ensure_ascii=False)
