"""What a search of a session did, and the text that the model reads."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal

from toolsearch.catalog.tools import Tool
from toolsearch.search.index import Hits
from toolsearch.session.listing import Listing
from toolsearch.session.meta_tool import SearchRequest, schema_text, some_of

__all__ = ["SearchOutcome"]

_SUMMARY, _LONGER = 140, 400  # characters of a tool's summary; of one that must tell it from another
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
    new: list[Tool] = field(default_factory=list)
    already: list[Tool] = field(default_factory=list)
    named: list[Tool] = field(default_factory=list)  # further ones that fit, in turn of the queries
    left_out: list[Tool] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    call_tool: str | None = None  # only in "bridge": the text then shows schemas, which the model sees nowhere else
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
        return [t for hits in self.answers if not hits for t in hits.near if t.id in self.names and t.id not in told]

    @property
    def has_failed(self) -> bool:
        """Whether a query could not be run."""
        return any(hits.problem for hits in self.answers)

    @property
    def data(self) -> dict[str, object]:
        """The outcome for a program: tool ids and names."""
        return {
            "loaded": [t.id for t in self.new],
            "already_loaded": [t.id for t in self.already],
            "named": list(dict.fromkeys(t.id for t in (*self.named, *self.nearest))),
            "unknown": [n for hits in self.answers for n in hits.unknown],
            "left_out": [t.id for t in self.left_out],
            "unloaded": list(self.evicted),
            "degraded": list(dict.fromkeys(hits.degraded for hits in self.answers if hits.degraded)),
        }

    def line(self, tool: Tool) -> str:
        """One tool: its name, its server, and its first sentence, or more where another tool begins with the same."""
        place = f" ({tool.server})" if tool.server else ""
        summary = tool.summary(_SUMMARY)
        if any(other.id != tool.id and other.summary(_SUMMARY) == summary for other in self.new):
            whole = " ".join(tool.description.split())
            summary = whole if len(whole) <= _LONGER else f"{whole[: _LONGER - 1]}…"
        schema = f"\n  arguments: {schema_text(tool)}" if self.call_tool else ""
        return f"- {self._name_of(tool)}{place}: {summary}{schema}"

    def _name_of(self, tool: Tool) -> str:
        return self.names.get(tool.id, tool.name)

    def text(self) -> str:
        """The answer for the model, most useful first. Every sentence says what happened and then what to do."""
        new = {t.id for t in self.new}
        parts = []
        if self.new:
            many, them = ("1 tool", "it") if len(self.new) == 1 else (f"{len(self.new)} tools", "them")
            how = f"through {self.call_tool}" if self.call_tool else "by name from your next step on"
            parts.append(f"Loaded {many}; call {them} {how}.")
        listed: set[str] = set()
        for hits in self.answers:
            tools = [h.tool for h in hits if h.tool.id in new]
            lines = [self.line(t) for t in tools if t.id not in listed]
            heading = f"For {_quoted(hits.query)}:"
            if lines:
                parts += [*([heading] if len(self.answers) > 1 else []), *lines]
            elif tools:
                parts.append(f"{heading} {some_of([self._name_of(t) for t in tools], 2)}, listed above.")
            listed |= {t.id for t in tools}
            parts += self._shortfalls(hits)
        if self.already:
            how = f"call them through {self.call_tool}" if self.call_tool else "call directly"
            parts.append(f"Already loaded, {how}: {some_of([self._name_of(t) for t in self.already], 20)}.")
        if self.named:
            parts.append(f"Also: {', '.join(map(self._name_of, self.named))} ({self._way_to_named()}).")
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
            f"The server {s[:80]!r} cannot be reached now, so its tools are missing: {why[:200]}. Try again later or "
            "continue without them."
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
        return self._way_to_load() + then[self.not_loaded]

    def _way_to_load(self) -> str:
        """What the model does with a name."""
        if self.not_loaded == "refuse":
            return "search for one by its name"
        return f"call one {f'through {self.call_tool}' if self.call_tool else 'by its name'}"

    def caution(self) -> str:
        """A warning that names the queries whose hits are doubtful; empty if none is."""
        loaded = {t.id for t in (*self.new, *self.already)}
        answered = [hits for hits in self.answers if any(h.tool.id in loaded for h in hits)]
        doubtful = [_quoted(hits.query) for hits in answered if _is_doubtful(hits)]
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
        nearest = [self.names[t.id] for t in hits.near if t.id in self.names and not hits]
        near = f" Nearest: {', '.join(nearest)} ({self._way_to_load()} if it does fit)." if nearest else ""
        if hits.unknown:
            quoted = ", ".join(_quoted(name) for name in hits.unknown[:10])
            more = f" and {len(hits.unknown) - 10} more" if len(hits.unknown) > 10 else ""
            lines.append(f"No tool is named {quoted}{more}; search by what it should do.{near}")
        if hits.hint:
            lines.append(hits.hint)
        if hits.problem:
            lines.append(hits.problem)
        elif not hits and not hits.unknown:
            place = f" in the category {self.request.category[:80]!r}" if self.request.category else ""
            lines.append(
                f"Nothing fits {_quoted(hits.query)}{place}.{near}"
                " Try other words: what is done, to what, in which product; one capability a query."
            )
        return lines


def _is_doubtful(hits: Hits) -> bool:
    """Whether the best hit is more likely wrong than right. Most weak answers are right: see docs/confidence.md."""
    return hits.verdict == "weak" and max((hit.confidence or 0.0) for hit in hits) < DOUBTFUL_BELOW


def _quoted(text: str) -> str:
    return json.dumps(text if len(text) <= 80 else text[:79] + "…", ensure_ascii=False)
