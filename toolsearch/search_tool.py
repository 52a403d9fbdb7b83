"""The one tool a model starts with: its definition, what it accepts, and the text a search answers with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolsearch.calls import clean
from toolsearch.catalog import Tool
from toolsearch.settings import Settings

if TYPE_CHECKING:
    from toolsearch.index import Hits

__all__ = ["Outcome", "Request", "bridge_tool", "read_request", "search_tool"]

_MOST_NAMED = 30  # servers or categories in the description


def search_tool(name: str, servers: Sequence[str], categories: Sequence[str], most_queries: int = 8) -> Tool:
    """The search tool as a model sees it. What lies behind it is named, up to 30 servers (or else categories)."""
    behind = ("servers", servers) if servers else ("categories", categories)
    listed = ", ".join(behind[1][:_MOST_NAMED])
    more = f" and {len(behind[1]) - _MOST_NAMED} more" if len(behind[1]) > _MOST_NAMED else ""
    places = f" Behind it are these {behind[0]}: {listed}{more}." if listed else ""
    properties: dict[str, Any] = {
        "queries": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": most_queries,
            "description": "One short query per capability: action and object, as in "
            '["create calendar event", "send message to channel"]. An exact tool name works too.',
        },
        "limit": {"type": "integer", "description": "Tools per query; the default is mostly right."},
    }
    if categories:
        few = {"enum": list(categories)} if len(categories) <= _MOST_NAMED else {}
        properties["category"] = {"type": "string", **few, "description": "Only tools of this category."}
    return Tool(
        id=name,
        name=name,
        title="Search tools",
        description="Finds tools that are not listed yet and loads them. Use it when no listed tool can do the job; "
        f"what it finds can be called by name from your next step on.{places}",
        input_schema={
            "type": "object",
            "properties": properties,
            "required": ["queries"],
            "additionalProperties": False,
        },
    )


def bridge_tool(name: str, search_name: str) -> Tool:
    """The fixed tool through which found tools are called in the mode "bridge"."""
    return Tool(
        id=name,
        name=name,
        title="Call a found tool",
        description=f"Calls a tool that {search_name} has found, with arguments that fit the schema shown there.",
        input_schema={
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The tool's exact name."},
                "arguments": {"type": "object", "description": "The tool's arguments."},
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        },
        kind="action",
        repeatable=False,
    )


@dataclass(frozen=True)
class Request:
    """What one search call asks for, made regular: queries in order, each once."""

    queries: tuple[str, ...]
    limit: int
    category: str | None = None
    left_out: int = 0  # queries beyond the most allowed

    @property
    def key(self) -> str:
        """Equal for searches that ask the same, whatever their case, spaces and order."""
        plain = sorted(" ".join(q.lower().split()) for q in self.queries)
        return json.dumps([plain, self.limit, self.category], ensure_ascii=False)


def read_request(arguments: Mapping[str, Any], settings: Settings) -> Request:
    """A search request from what a model wrote; forms models make up (`query`, `names`, `maxResults`) are understood.

    The limit is the model's, within `results_floor` and `results_ceiling`; anything else means `results`.
    """
    asked: list[str] = []
    for key in ("queries", "query", "names", "name", "q"):
        value = arguments.get(key)
        if isinstance(value, str) and value.lstrip().startswith("["):
            with suppress(ValueError, RecursionError):
                value = json.loads(value)
        items = value if isinstance(value, list | tuple) else [] if value is None else [value]
        prefix = "select:" if key in ("names", "name") else ""
        asked += [prefix + clean(str(item)) for item in items if str(item).strip()]
    queries = tuple(dict.fromkeys(asked))
    limit: int = settings.results
    for key in ("limit", "maxResults", "max_results", "k"):
        try:
            limit = int(arguments[key])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        limit = max(settings.results_floor, min(settings.results_ceiling, limit))
        break
    category = arguments.get("category", arguments.get("categoryFilter"))
    category = category.strip() if isinstance(category, str) and category.strip() else None
    return Request(queries[: settings.queries], limit, category, max(0, len(queries) - settings.queries))


@dataclass
class Outcome:
    """What a search did, and the text that says so. `names` maps tool ids to the names a model calls."""

    request: Request
    names: dict[str, str]
    answers: list[Hits] = field(default_factory=list)
    new: list[Tool] = field(default_factory=list)
    already: list[Tool] = field(default_factory=list)
    left_out: list[Tool] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    call_tool: str | None = None  # in "bridge", where schemas are shown because the model sees them nowhere else

    @property
    def empty(self) -> bool:
        return not self.new and not self.already

    @property
    def data(self) -> dict[str, Any]:
        """The same for a program: tool ids and names, no texts."""
        return {
            "loaded": [t.id for t in self.new],
            "already_loaded": [t.id for t in self.already],
            "unknown": [n for hits in self.answers for n in hits.unknown],
            "left_out": [t.id for t in self.left_out],
            "unloaded": list(self.evicted),
        }

    def line(self, tool: Tool, summary: int = 140) -> str:
        """One tool: its name, its server, its first sentence."""
        place = f" ({tool.server})" if tool.server else ""
        said = f": {tool.summary(summary)}" if summary else ""
        schema = f"\n  arguments: {json.dumps(tool.input_schema, ensure_ascii=False)}" if self.call_tool else ""
        return f"- {self.names.get(tool.id, tool.name)}{place}{said}{schema}"

    def text(self) -> str:
        """The answer, most useful first; every sentence says what happened and then what to do."""
        new = {t.id for t in self.new}
        parts = []
        if self.new:
            how = (
                f"call them through {self.call_tool}" if self.call_tool else "call them by name from your next step on"
            )
            parts.append(f"Loaded {len(self.new)} tool{'s' * (len(self.new) != 1)}; {how}.")
        shown: set[str] = set()
        for hits in self.answers:
            lines = [self.line(h.tool) for h in hits if h.tool.id in new and h.tool.id not in shown]
            shown |= {h.tool.id for h in hits}
            if lines:
                heading = [f"For {_quoted(hits.query)}:"] if len(self.answers) > 1 else []
                parts += [*heading, *lines]
            parts += self._shortfalls(hits)
        if self.already:
            names = ", ".join(self.names.get(t.id, t.name) for t in self.already)
            parts.append(f"Already loaded, call directly: {names}.")
        if self.left_out:
            parts.append(f"{len(self.left_out)} more fit but were left out to keep this short; ask more narrowly.")
        if self.request.left_out:
            parts.append(f"{self.request.left_out} queries were left out: {len(self.request.queries)} at a time.")
        if self.evicted:
            parts.append(f"Unloaded to stay within the limit: {', '.join(self.evicted)}. Search again to use them.")
        parts += [
            f"The server {s!r} cannot be reached now, so its tools are missing: {why}"
            for s, why in self.missing.items()
        ]
        return "\n".join(parts)

    def _shortfalls(self, hits: Hits) -> list[str]:
        said = []
        if hits.unknown:
            quoted = ", ".join(_quoted(name) for name in hits.unknown[:10])
            more = f" and {len(hits.unknown) - 10} more" if len(hits.unknown) > 10 else ""
            said.append(f"No tool is called {quoted}{more}; search by what it should do.")
        if hits.problem:
            said.append(hits.problem)
        elif not hits and not hits.unknown:
            near = ", ".join(self.names.get(t.id, t.name) for t in hits.near)
            place = f" in the category {self.request.category!r}" if self.request.category else ""
            said.append(
                f"Nothing fits {_quoted(hits.query)}{place}."
                + (f" Similar names: {near}." if near else "")
                + " Try other words: what is done, to what, in which product; one capability a query."
            )
        return said


def _quoted(text: str) -> str:
    return json.dumps(text if len(text) <= 80 else text[:79] + "…", ensure_ascii=False)
