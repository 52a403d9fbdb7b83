"""The gateway's own tools, as clients are shown them: what a model reads, and the hints that permissions go by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolsearch.mcp.gateway.settings import Serving
from toolsearch.mcp.guards import FETCH_RESULT
from toolsearch.mcp.health import ServerHealth

__all__ = ["ACTION", "CALL", "FETCH", "OWN", "SEARCH", "instructions", "own_tools"]

SEARCH, CALL, ACTION, FETCH = "search_tools", "call_tool", "call_action", str(FETCH_RESULT["name"])
OWN = (SEARCH, CALL, ACTION, FETCH)

NAMED_SERVERS = 40
INSTRUCTIONS_OF_ONE, INSTRUCTIONS_OF_ALL = 2_000, 12_000  # characters
# Clients that defer tools keep those that say so; taken from public code of clients, see docs/gateway.md.
_ALWAYS: Mapping[str, object] = {"anthropic/alwaysLoad": True}
_READS: Mapping[str, object] = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True}


def own_tools(mode: Serving, counts: Mapping[str, int], health: Mapping[str, ServerHealth]) -> list[dict[str, Any]]:
    """The definitions of the tools that a mode lists besides those of servers; `counts` are tools by server."""
    fetch = dict(FETCH_RESULT)
    if mode == "all":
        return [fetch]
    if mode == "live":
        return [_search(counts, health, "called by name from your next step on"), fetch]
    return [_search(counts, health, f"called through {CALL} or {ACTION}"), _call(), _action(), fetch]


def _search(counts: Mapping[str, int], health: Mapping[str, ServerHealth], how: str) -> dict[str, Any]:
    return {
        "name": SEARCH,
        "title": "Search tools",
        "description": f"Finds tools that are not listed. Use it whenever no listed tool can do the job; what it finds "
        f"can be {how}.{_places(counts, health)}",
        "inputSchema": {
            "type": "object",
            "properties": {
                "queries": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": 8,
                    "description": "One short query per capability: action and object, as in "
                    '["create calendar event", "send message to channel"]. A tool\'s name works too.',
                },
                "limit": {"type": "integer", "description": "Tools per query; the default is usually right."},
            },
            "required": ["queries"],
        },
        "annotations": {**_READS, "openWorldHint": False},
        "_meta": dict(_ALWAYS),
    }


def _call() -> dict[str, Any]:
    return {
        "name": CALL,
        "title": "Call a tool that reads",
        "description": f"Calls a tool by its name, with arguments that fit its schema: one that {SEARCH} has found, or "
        f"whose name you know. Not for tools marked (action): use {ACTION} for them.",
        "inputSchema": _of_call(),
        "annotations": {**_READS, "idempotentHint": False, "openWorldHint": True},
        "_meta": dict(_ALWAYS),
    }


def _action() -> dict[str, Any]:
    return {
        "name": ACTION,
        "title": "Call a tool that may change something",
        "description": f"Calls a tool marked (action), which may change something, as {CALL} calls the others.",
        "inputSchema": _of_call(),
        "annotations": {
            "readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True,
        },
        "_meta": dict(_ALWAYS),
    }  # fmt: skip


def _of_call() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The tool's exact name."},
            "arguments": {"type": "object", "description": "The tool's arguments."},
        },
        "required": ["name"],
    }


def _places(counts: Mapping[str, int], health: Mapping[str, ServerHealth]) -> str:
    """What is behind the search: every server by name, and those that are not there."""
    there = [f"{name} ({count})" for name, count in counts.items() if count]
    late = [name for name, each in health.items() if each.state == "connecting" and not counts.get(name)]
    away = [f"{name} ({each.state})" for name, each in health.items() if each.state in ("failed", "needs login")]
    parts = [
        f" Behind it are {sum(counts.values())} tools of these servers: {_some(there)}." if there else "",
        f" Still connecting: {_some(late)}." if late else "",
        f" Cannot be used now: {_some(away)}." if away else "",
    ]
    return "".join(parts)


def _some(names: list[str]) -> str:
    more = len(names) - NAMED_SERVERS
    return ", ".join(names[:NAMED_SERVERS]) + (f" and {more} more" if more > 0 else "")


def instructions(mode: Serving | None, of_servers: Iterable[tuple[str, str]]) -> str:
    """What a client may put before its model: how to find tools, and what each server says of itself.

    Where the mode is None, it is chosen later: what is said then is true in each.
    """
    first = {
        None: f"If {SEARCH} is listed, more tools exist than are listed: find them with it, then call them through "
        f"{CALL}, or {ACTION} where it says (action). If it is not listed, every tool is.",
        "all": "The name of each tool begins with that of its server.",
        "live": f"More tools exist than are listed: find them with {SEARCH}, then call them by name.",
        "bridge": f"More tools exist than are listed: find them with {SEARCH}, then call them through {CALL}, or "
        f"{ACTION} where it says (action). If nothing fits, search once more in other words.",
    }[mode]
    text, left = [first], INSTRUCTIONS_OF_ALL
    for server, said in of_servers:
        told = said.strip()[:INSTRUCTIONS_OF_ONE]
        if told and len(told) <= left:
            left -= len(told)
            text.append(f"\nThe server {server!r} says:\n{told}")
    return "\n".join(text)
