"""What definitions cost in a request: all of them, by server, by tool, and what is long about the dearest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from toolsearch import Catalog, ToolSearch
from toolsearch_evals.reports.report import Column, ReportTable, counted
from toolsearch_evals.savings.formats import WireFormat
from toolsearch_evals.savings.scripted import SYSTEM, answer
from toolsearch_evals.token_usage import TokenMeter

__all__ = ["CatalogTokens", "ToolTokens", "catalog_tokens", "dearest_table", "fixed_tokens", "static_search"]

DEAREST = 10  # tools that a table shows
_HALF = 0.5  # of the tokens: what has more of them is what is long


@dataclass(frozen=True, slots=True)
class ToolTokens:
    """Tokens of one definition as it is sent, of its description and of its schema; and what is long, in words."""

    id: str
    server: str
    tokens: int
    description: int
    schema: int
    long: str


@dataclass(frozen=True)
class CatalogTokens:
    """Tokens of all definitions in a request, and of each, the dearest first."""

    total: int
    tools: tuple[ToolTokens, ...]

    def by_server(self) -> list[dict[str, Any]]:
        """Rows of servers: tools, tokens and share of all tokens, the dearest first."""
        servers: dict[str, list[ToolTokens]] = {}
        for each in self.tools:
            servers.setdefault(each.server or "without a server", []).append(each)
        whole = sum(each.tokens for each in self.tools)
        rows = [
            {"server": name, "tools": len(of), "tokens": (sent := sum(t.tokens for t in of)), "share": sent / whole}
            for name, of in servers.items()
        ]
        return sorted(rows, key=lambda row: (-int(row["tokens"]), str(row["server"])))


def dearest_table(tokens: CatalogTokens) -> ReportTable:
    """The dearest tools, with what is long about each."""
    columns = (
        Column("id", "tool"),
        Column("server", "server"),
        Column("tokens", "tokens", "count"),
        Column("description", "description", "count"),
        Column("schema", "schema", "count"),
        Column("long", "what is long", is_result=True),
    )
    rows = [asdict(each) for each in tokens.tools[:DEAREST]]
    note = f"Tokens of the {len(rows)} dearest of {counted(len(tokens.tools), 'tool')}."
    return ReportTable("The dearest tools", columns, rows, note)


def static_search(catalog: Catalog) -> ToolSearch:
    """A search that shows every tool at once."""
    return ToolSearch(catalog, "keyword", run=answer, mode="static", max_tools=len(catalog) + 2)


def catalog_tokens(catalog: Catalog, form: WireFormat, meter: TokenMeter) -> CatalogTokens:
    """Counts the definitions as a wire sends them."""
    session = static_search(catalog).session()
    sent = form.wire.tools_for(session)
    total = meter.tokens(form.request(sent, SYSTEM, [])) - meter.tokens(form.request([], SYSTEM, []))
    told = []
    for shown, definition in zip(session.tools(), sent, strict=True):
        tool = shown.tool
        schema = meter.count(_compact(tool.input_schema))
        description = meter.count(tool.description)
        tokens = meter.count(_compact(definition))
        long = _long(tokens, description, schema, _properties(tool.input_schema, meter))
        told.append(ToolTokens(tool.id, tool.server or "", tokens, description, schema, long))
    return CatalogTokens(total, tuple(sorted(told, key=lambda each: (-each.tokens, each.id))))


def fixed_tokens(search: ToolSearch, form: WireFormat, meter: TokenMeter) -> int:
    """Tokens of the tools and the instructions in the first request of a real session."""
    session = search.session()
    system = "\n\n".join(filter(None, (SYSTEM, session.instructions())))
    return meter.tokens(form.request(form.wire.tools_for(session), system, [])) - meter.tokens(
        form.request([], SYSTEM, [])
    )


def _properties(schema: Mapping[str, Any], meter: TokenMeter) -> dict[str, int]:
    properties = schema.get("properties")
    named = properties.items() if isinstance(properties, Mapping) else ()
    return {str(name): meter.count(_compact({name: of})) for name, of in named}


def _long(tokens: int, description: int, schema: int, properties: Mapping[str, int]) -> str:
    """Where most of the tokens are: in the description, in one parameter, or in many."""
    if description > _HALF * tokens:
        return f"its description ({description:,} tokens)"
    if not properties:
        return f"its schema ({schema:,} tokens)"
    name, most = max(properties.items(), key=lambda each: each[1])
    if most > _HALF * schema:
        return f"its parameter {name!r} ({most:,} tokens)"
    return f"its {len(properties)} parameters ({schema:,} tokens)"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, Iterable) else str(value)
