"""Queries that list names instead of searching: `list:*`, `server:github`, `category:files`, page by page.

A query is data. It lists only if it has exactly such a form and means a server or a category that the caller can see;
any other text is searched, whatever it looks like. A listing loads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from toolsearch.catalog.names import folded
from toolsearch.catalog.tools import Tool
from toolsearch.search.index import Hits
from toolsearch.session.directory import place_name
from toolsearch.session.meta_tool import some_of
from toolsearch.session.visible_tools import VisibleTools
from toolsearch.support.text import counted
from toolsearch.tokens import ESTIMATE

__all__ = ["Listing", "listing_of", "pages_of", "with_place"]

_FORM = re.compile(r"\s*(list|server|category)\s*:\s*(\S.*?)\s*", re.IGNORECASE | re.DOTALL)
_PAGE = re.compile(r"(.+?)\s+(?:page\s+)?([1-9][0-9]{0,5})", re.DOTALL)
_ALL = ("*", "all")
_MOST_NEAR = 5

NameOf = Callable[[Tool], str]


@dataclass(frozen=True, slots=True)
class Listing:
    """The names of some tools: `what` says of which, `query` is the form without the page."""

    query: str
    what: str
    tools: tuple[Tool, ...]
    page: int = 1

    def still(self, seen: VisibleTools) -> Listing:
        """What of it the caller may see now."""
        return replace(self, tools=tuple(tool for tool in self.tools if seen.get(tool.id) is not None))

    def text(self, name_of: NameOf, tokens: int) -> str:
        """One page of about so many tokens, and the query for the next one."""
        if not self.tools:
            return f"{self.what} has no tools any more. Search by what is to be done."
        pages = list(self._pages(name_of, tokens))
        if self.page > len(pages):
            return f"{self.what} has {len(pages)} pages of names. Ask for one of them, as in {self.asking(len(pages))}."
        of = f", page {self.page} of {len(pages)}" if len(pages) > 1 else ""
        more = f"\nNext: {self.asking(self.page + 1)}" if self.page < len(pages) else ""
        many = counted(len(self.tools), "tool")
        return f'{self.what}, {many}{of}; "select:NAME" loads one:\n{pages[self.page - 1]}{more}'

    def asking(self, page: int) -> str:
        """The query for a page, in quotes."""
        return f'"{self.query} {page}"' if page > 1 else f'"{self.query}"'

    def _pages(self, name_of: NameOf, tokens: int) -> Iterator[str]:
        """The names by server, cut where a page is full."""
        lines: list[str] = []
        size, server = 0, None
        is_mixed = len({tool.server for tool in self.tools}) > 1
        for tool in self.tools:
            name = name_of(tool)
            heading = f"{place_name(tool.server or '') or 'without a server'}: " if is_mixed else ""
            is_new = not lines or tool.server != server
            cost = ESTIMATE.count(name) + 1 + (ESTIMATE.count(heading) if is_new else 0)
            if lines and size + cost > tokens:
                yield "\n".join(lines)
                lines, size, is_new = [], 0, True
            lines = [*lines, heading + name] if is_new else [*lines[:-1], f"{lines[-1]}, {name}"]
            size, server = size + cost, tool.server
        yield "\n".join(lines)


def listing_of(query: str, seen: VisibleTools) -> Listing | None:
    """What a query lists, out of what the caller can see; None if it is to be searched."""
    form = _FORM.fullmatch(query)
    if form is None or seen.exact(query.strip()):
        return None
    kind, wanted = form[1].lower(), form[2]
    if found := _place(kind, wanted, seen):
        return found
    if (paged := _PAGE.fullmatch(wanted)) and (found := _place(kind, paged[1], seen)):
        return Listing(found.query, found.what, found.tools, int(paged[2]))
    return None


def pages_of(listings: Sequence[Listing], name_of: NameOf, tokens: int) -> list[str]:
    """The pages that were asked for, of about so many tokens in all; what does not fit is to be asked for again."""
    texts: list[str] = []
    later: list[str] = []
    for listing in listings:
        is_full = ESTIMATE.count("\n".join(texts)) >= tokens  # so that no page is made in vain: each takes long
        text = "" if is_full else listing.text(name_of, tokens)
        if texts and (is_full or ESTIMATE.count("\n".join((*texts, text))) > tokens):
            later.append(listing.asking(listing.page))
        else:
            texts.append(text)
    more = [f"Not listed, to keep this short: ask {some_of(later, 8, 2 * tokens)} alone."] if later else []
    return texts + more


def with_place(hits: Hits, seen: VisibleTools) -> Hits:
    """The answer to a query such as `server:githb`, which names no server: those like it, unless a tool fits well."""
    form = _FORM.fullmatch(hits.query)
    if form is None or form[1].lower() == "list" or re.search(r"\s", hits.query.strip()):
        return hits
    if hits and hits.verdict not in ("weak", "none"):
        return hits
    kind, wanted = form[1].lower(), form[2]
    names = {name.casefold(): name for name in seen.places[0 if kind == "server" else 1]}
    near = [names[key] for key in get_close_matches(wanted.casefold()[:80], names, _MOST_NEAR, 0.5)]
    like = f" Similar: {', '.join(map(place_name, near))}." if near else ""
    return Hits(hits.query, problem=f'No {kind} is named "{place_name(wanted)}".{like} "list:*" lists all names.')


def _place(kind: str, wanted: str, seen: VisibleTools) -> Listing | None:
    """All tools, or those of the one server or category that has this name, to the letter or else folded."""
    if kind == "list" and wanted.casefold() in _ALL:
        return _listing("list:*", "All tools", seen.listed)
    servers, categories = seen.places
    if kind != "category" and (server := _named(wanted, servers)):
        return _listing(f"server:{server}", f"Server {place_name(server)}", seen.by_server[server])
    if kind != "server" and (category := _named(wanted, categories)):
        tools = [tool for tool in seen.listed if tool.category == category]
        return _listing(f"category:{category}", f"Category {place_name(category)}", tools)
    return None


def _listing(query: str, what: str, tools: Sequence[Tool]) -> Listing | None:
    return Listing(query, what, tuple(tools)) if tools else None


def _named(wanted: str, names: Sequence[str]) -> str | None:
    if wanted in names:
        return wanted
    alike = [name for name in names if folded(name) == folded(wanted)]
    return alike[0] if len(alike) == 1 else None
