"""The one tool that a model starts with: its definition, the input it accepts, and the text of its answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from toolsearch.catalog.marks import Marks
from toolsearch.catalog.tools import Tool
from toolsearch.search.index import QUERY_CHARACTERS, Hits
from toolsearch.session.listing import Listing
from toolsearch.settings import Settings
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import bounded, clean

__all__ = ["SearchOutcome", "SearchRequest", "bridge_tool", "read_request", "schema_text", "search_tool"]

_MOST_NAMED = 30  # servers or categories in the description
_NAMED_CHARACTERS = 500  # for all of them: providers limit a description
_SCHEMA_CHARACTERS = 6_000  # of a schema shown in an answer


def search_tool(
    name: str, servers: Sequence[str], categories: Sequence[str], most_queries: int = 8, *, call_tool: str = ""
) -> Tool:
    """The search tool as a model sees it. Its description names up to 30 servers, or categories if there are none.

    With `call_tool`, found tools are called through the tool of that name.
    """
    behind = ("servers", servers) if servers else ("categories", categories)
    listed = _some(behind[1], _MOST_NAMED, _NAMED_CHARACTERS)
    places = f" Behind it are these {behind[0]}: {listed}." if listed else ""
    properties: dict[str, object] = {
        "queries": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": most_queries,
            "description": "One short query per capability: action and object, as in "
            '["create calendar event", "send message to channel"]. An exact tool name works too.',
        },
        "limit": {"type": "integer", "description": "Tools per query; the default is usually right."},
    }
    if categories:
        few = {"enum": list(categories)} if len(categories) <= _MOST_NAMED else {}
        properties["category"] = {"type": "string", **few, "description": "Only tools of this category."}
    return Tool(
        id=name,
        name=name,
        title="Search tools",
        description="Finds tools that are not listed yet and loads them. Use it when no listed tool can do the job; "
        f"what it finds can be called {f'through {call_tool}' if call_tool else 'by name'} from your next step on."
        f"{places}",
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
        marks=Marks(kind="action", repeatable=False),
    )


@dataclass(frozen=True)
class SearchRequest:
    """What one search call asks for, in regular form: queries in order, each once."""

    queries: tuple[str, ...]
    limit: int
    category: str | None = None
    left_out: int = 0  # queries beyond the most allowed

    @property
    def key(self) -> str:
        """Equal for searches that ask the same, ignoring case, spaces and order."""
        plain = sorted(" ".join(q.lower().split()) for q in self.queries)
        return json.dumps([plain, self.limit, self.category], ensure_ascii=False)


def read_request(arguments: JsonObject, settings: Settings) -> SearchRequest:
    """A search request from what a model wrote; forms models make up (`query`, `names`, `maxResults`) are accepted.

    The limit is the model's, kept between `results_floor` and `results_ceiling`; without a number it is `results`.
    """
    queries: list[str] = []
    for key in ("queries", "query", "names", "name", "q"):
        value = arguments.get(key)
        if isinstance(value, str) and value.lstrip().startswith("["):
            with suppress(ValueError, RecursionError):
                value = json.loads(value)
        items = value if isinstance(value, list | tuple) else [] if value is None else [value]
        texts = [text for item in items if (text := _query(item)).strip()]
        queries += texts if key not in ("names", "name") else _selections(texts)
    unique = tuple(dict.fromkeys(queries))
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
    return SearchRequest(unique[: settings.queries], limit, category, max(0, len(unique) - settings.queries))


def _query(item: object) -> str:
    """One query as a text, bounded; empty if the item is not a query."""
    try:
        return "" if item is None or isinstance(item, list | tuple) else clean(str(item)[:QUERY_CHARACTERS])
    except (ValueError, RecursionError):  # an integer of thousands of digits
        return ""


def _selections(names: Sequence[str]) -> list[str]:
    """The names to load, as few queries, so that one call can load many."""
    queries: list[str] = []
    for name in names:
        if queries and len(queries[-1]) + len(name) < QUERY_CHARACTERS:
            queries[-1] += f",{name}"
        else:
            queries.append(f"select:{name}"[:QUERY_CHARACTERS])
    return queries


def schema_text(tool: Tool) -> str:
    """A tool's schema as an answer shows it; a schema that is too long is cut, with a note."""
    return bounded(json.dumps(tool.input_schema, ensure_ascii=False), _SCHEMA_CHARACTERS)


@dataclass
class SearchOutcome:
    """What a search did, and the text for the model. `names` maps tool ids to the names that the model calls."""

    request: SearchRequest
    names: dict[str, str]
    answers: list[Hits] = field(default_factory=list)
    listings: list[Listing] = field(default_factory=list)  # of the queries that ask for names
    listed: list[str] = field(default_factory=list)  # their texts
    new: list[Tool] = field(default_factory=list)
    already: list[Tool] = field(default_factory=list)
    left_out: list[Tool] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    call_tool: str | None = None  # only in "bridge": the text then shows schemas, which the model sees nowhere else
    refuses: bool = False  # whether calls of tools that are not loaded are refused

    @property
    def is_empty(self) -> bool:
        return not self.new and not self.already

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
            "unknown": [n for hits in self.answers for n in hits.unknown],
            "left_out": [t.id for t in self.left_out],
            "unloaded": list(self.evicted),
            "degraded": list(dict.fromkeys(hits.degraded for hits in self.answers if hits.degraded)),
        }

    def line(self, tool: Tool, summary: int = 140) -> str:
        """One tool: its name, its server, its first sentence."""
        place = f" ({tool.server})" if tool.server else ""
        sentence = f": {tool.summary(summary)}" if summary else ""
        schema = f"\n  arguments: {schema_text(tool)}" if self.call_tool else ""
        return f"- {self._name_of(tool)}{place}{sentence}{schema}"

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
                parts.append(f"{heading} {_some([self._name_of(t) for t in tools], 2)}, listed above.")
            listed |= {t.id for t in tools}
            parts += self._shortfalls(hits)
        if self.already:
            how = f"call them through {self.call_tool}" if self.call_tool else "call directly"
            parts.append(f"Already loaded, {how}: {_some([self._name_of(t) for t in self.already], 20)}.")
        if caution := self.caution():
            parts.append(caution)
        if self.left_out:
            parts.append(f"Also fitting, but left out to keep this short: {len(self.left_out)}. Ask more narrowly.")
        if self.request.left_out:
            most = len(self.request.queries)
            parts.append(f"Queries left out: {self.request.left_out}; {most} at a time. Ask them next.")
        if self.evicted:
            parts.append(f"Unloaded to stay within the limit: {_some(self.evicted, 40)}. Search again to use them.")
        parts += self.listed
        parts += [
            f"The server {s[:80]!r} cannot be reached now, so its tools are missing: {why[:200]}. Try again later or "
            "continue without them."
            for s, why in list(self.missing.items())[:10]
            if self._concerns(s)
        ]
        return "\n".join(parts)

    def caution(self) -> str:
        """A warning that names the queries whose hits may not fit; empty if none is doubtful."""
        loaded = {t.id for t in (*self.new, *self.already)}
        answered = [hits for hits in self.answers if any(h.tool.id in loaded for h in hits)]
        weak = [_quoted(hits.query) for hits in answered if hits.verdict == "weak"]
        if not weak:
            return ""
        which = "These" if len(weak) == len(answered) else f"Those for {_some(weak, 8)}"
        return f"{which} may not fit: check before you call, or search in other words."

    def _concerns(self, server: str) -> bool:
        """Whether a missing server may explain why a search found too little, or is named in a query."""
        return any(not hits or hits.verdict == "weak" for hits in self.answers) or any(
            server.casefold() in query.casefold() for query in self.request.queries
        )

    def _shortfalls(self, hits: Hits) -> list[str]:
        lines = []
        if hits.unknown:
            quoted = ", ".join(_quoted(name) for name in hits.unknown[:10])
            more = f" and {len(hits.unknown) - 10} more" if len(hits.unknown) > 10 else ""
            lines.append(f"No tool is named {quoted}{more}; search by what it should do.")
        if hits.hint:
            lines.append(hits.hint)
        if hits.problem:
            lines.append(hits.problem)
        elif not hits and not hits.unknown:
            near = ", ".join(map(self._name_of, hits.near))
            way = "search for one by its name" if self.refuses else "call one by its name if it does fit"
            if self.call_tool and not self.refuses:
                way = f"call one through {self.call_tool} if it does fit"
            take = f" ({way})" if hits.verdict == "none" else ""
            place = f" in the category {self.request.category[:80]!r}" if self.request.category else ""
            lines.append(
                f"Nothing fits {_quoted(hits.query)}{place}."
                + (f" Nearest: {near}{take}." if near else "")
                + " Try other words: what is done, to what, in which product; one capability a query."
            )
        return lines


def _quoted(text: str) -> str:
    return json.dumps(text if len(text) <= 80 else text[:79] + "…", ensure_ascii=False)


def _some(names: Sequence[str], most: int, characters: int = 2_000) -> str:
    """The names as a text within bounds, with the number of those left out."""
    listed: list[str] = []
    for name in names[:most]:
        characters -= len(name) + 2
        if characters < 0:
            break
        listed.append(name)
    more = len(names) - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more else "")
