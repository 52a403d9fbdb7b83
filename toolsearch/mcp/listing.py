"""All tools that a server has: every page of its list, as the JSON that it sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from mcp import ClientSession
from mcp_types import PaginatedRequestParams

from toolsearch.mcp.pages import PAGE_KEY

__all__ = ["Listing", "list_all"]

MOST_PAGES = 1_000
MOST_TOOLS = 100_000
MOST_CHARACTERS = 50_000_000  # of the JSON of all pages


@dataclass(frozen=True, slots=True)
class Listing:
    """The definitions of a server's tools, unread. `problem` says why the list may go on; empty for a whole one."""

    tools: list[object]
    problem: str = ""


async def list_all(session: ClientSession) -> Listing:
    """Reads page after page. A cursor that is missing, null or empty ends the list, and so does one that came before.

    Raises what the client raises: a listing that breaks off is none.
    """
    tools: list[object] = []
    seen: set[str] = set()
    cursor: str | None = None
    size = 0
    while True:
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        raw = (page.meta or {}).get(PAGE_KEY)
        given = raw.get("tools") if isinstance(raw, Mapping) else None
        tools += given if isinstance(given, list) else []
        cursor = page.next_cursor
        if not cursor:
            return Listing(tools)
        if cursor in seen:
            return Listing(tools, f"the cursor {cursor[:60]!r} came twice, so the list was ended there")
        size += sum(len(json.dumps(each, default=str)) for each in given) if isinstance(given, list) else 0
        if len(seen) + 1 >= MOST_PAGES or len(tools) > MOST_TOOLS or size > MOST_CHARACTERS:
            return Listing(tools, f"it has more than {len(seen) + 1:,} pages, and the rest was not read")
        seen.add(cursor)
