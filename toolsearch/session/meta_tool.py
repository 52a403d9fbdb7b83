"""The one tool that a model starts with: its definition, and the input it accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from toolsearch.catalog.marks import Marks
from toolsearch.catalog.tools import Tool
from toolsearch.errors import NotExportable
from toolsearch.schemas.export import exported
from toolsearch.schemas.root_folding import argument_names
from toolsearch.search.index import QUERY_CHARACTERS
from toolsearch.session.delivery import IN_TEXT, Delivery
from toolsearch.settings import Settings
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import bounded, clean

__all__ = [
    "MORE",
    "MOST_NAMED",
    "SearchRequest",
    "bridge_tool",
    "built_in_tools",
    "read_request",
    "schema_text",
    "search_tool",
    "some_of",
]

MORE = 5  # tools that a search loads beyond the setting `results`, if it is asked again or for more
MOST_NAMED = 30  # tools that one answer names, if the setting `named` is not larger; servers in the description
_NAMED_CHARACTERS = 500  # for all of them: providers limit a description
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCHEMA_CHARACTERS = 6_000  # of a schema shown in an answer


def search_tool(
    name: str, servers: Sequence[str], categories: Sequence[str], most_queries: int = 8, *, call_tool: str = ""
) -> Tool:
    """The search tool as a model sees it. Its description names up to 30 servers, or categories if there are none.

    With `call_tool`, found tools are called through the tool of that name.
    """
    behind = ("servers", servers) if servers else ("categories", categories)
    listed = some_of(behind[1], MOST_NAMED, _NAMED_CHARACTERS)
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
        few = {"enum": list(categories)} if len(categories) <= MOST_NAMED else {}
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


def bridge_tool(name: str, search_name: str, only: str = "") -> Tool:
    """The fixed tool through which tools are called that no request carries; without `search_name`, by signature.

    `only` says which tools, where there are two such tools.
    """
    what = f"{search_name} has found, with arguments that fit the schema shown there"
    if not search_name:
        what = "the instructions list or a search has found, with arguments that fit its signature or schema"
    return Tool(
        id=name,
        name=name,
        title="Call a found tool",
        description=f"Calls a tool that {what}.{only and f' {only}'}",
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


def built_in_tools(
    settings: Settings, mode: Delivery, places: tuple[Sequence[str], Sequence[str]], *, searches: bool
) -> list[Tool]:
    """The session's own tools for a mode; `places` are the servers and categories that the search tool may name."""
    tools = []
    is_in_text = mode in IN_TEXT
    if searches and mode != "static":
        through = " or ".join(settings.doors) if is_in_text else ""
        tools.append(search_tool(settings.search_tool, *places, settings.queries, call_tool=through))
    if is_in_text:
        found_by = "" if mode == "compact" else settings.search_tool
        if (action := settings.action_tool) is None:
            return [*tools, bridge_tool(settings.call_tool, found_by)]
        reads = bridge_tool(settings.call_tool, found_by, f"Not for those marked (action): use {action} for them.")
        tools.append(replace(reads, marks=Marks(kind="read", repeatable=False)))
        tools.append(bridge_tool(action, found_by, "For those marked (action), which may change something."))
    return tools


@dataclass(frozen=True)
class SearchRequest:
    """What one search call asks for, in regular form: queries in order, each once."""

    queries: tuple[str, ...]
    limit: int
    category: str | None = None
    left_out: int = 0  # queries beyond the most allowed

    @property
    def key(self) -> str:
        """Equal for searches that ask the same, ignoring case, spaces and order, and for how many tools they ask."""
        plain = sorted(" ".join(q.lower().split()) for q in self.queries)
        return json.dumps([plain, self.category], ensure_ascii=False)


def read_request(arguments: JsonObject, settings: Settings) -> SearchRequest:
    """A search request from what a model wrote; forms models make up (`query`, `names`, `maxResults`) are accepted.

    The limit is the model's, but at least the setting `results`, as small models ask for 1, miss, and give up; and at
    most five more. Without a number it is `results`.
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
        limit = max(settings.results, min(settings.results + MORE, limit))
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


def schema_text(tool: Tool, *, in_brackets: bool = False) -> str:
    """A tool's schema as an answer shows it; a schema that is too long is cut, with a note.

    One that has arguments under other names, or is too long, is shown as a request would carry it. `in_brackets`, none
    of its texts has a bracket that could seem to be the last one: they are written as JSON escapes.
    """
    text = json.dumps(tool.input_schema, ensure_ascii=False)
    if len(text) > _SCHEMA_CHARACTERS or argument_names(tool.input_schema):
        with suppress(NotExportable):
            text = json.dumps(exported(tool.input_schema, "openai").schema, ensure_ascii=False)
    if in_brackets:
        text = _JSON_TEXT.sub(lambda found: found[0].replace("[", r"\u005b").replace("]", r"\u005d"), text)
    return bounded(text, _SCHEMA_CHARACTERS)


def some_of(names: Sequence[str], most: int, characters: int = 2_000) -> str:
    """The names as a text within bounds, with the number of those left out."""
    listed: list[str] = []
    for name in names[:most]:
        characters -= len(name) + 2
        if characters < 0:
            break
        listed.append(name)
    more = len(names) - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more else "")
