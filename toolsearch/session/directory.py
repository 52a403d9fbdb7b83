"""What there is: the tools that a caller may see, by server; all names of a small catalog, the servers of a larger one.

Only tools that can be searched for are named or counted: pinned ones are in every request anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from toolsearch.catalog.tools import Tool
from toolsearch.session.subjects import subjects_of
from toolsearch.session.visible_tools import VisibleTools
from toolsearch.tokens import ESTIMATE

__all__ = ["FEW", "names_by_server", "overview", "place_name", "servers_and_counts"]

NameOf = Callable[[Tool], str]

FEW = 20  # tools whose names an answer can hold
OVERVIEW_TOKENS = 100  # about what they cost, and what the servers of a larger catalog may cost in an answer


def overview(seen: VisibleTools, name_of: NameOf) -> tuple[str, Sequence[Tool]]:
    """What there is, for an answer that finds nothing: all names of few tools, else servers with their counts.

    `name_of` gives the name that the session uses for a tool. Also returns the tools that it names. Both are empty if
    there is nothing to search for.
    """
    if not seen.listed:
        return "", ()
    if len(seen.listed) <= FEW:
        names = names_by_server(seen.by_server, name_of)
        if ESTIMATE.count(names) <= OVERVIEW_TOKENS:
            return f"These are all tools:\n{names}", seen.listed
    places = servers_and_counts(seen.by_server, OVERVIEW_TOKENS)
    return f'What there is; the query "server:NAME" lists the names of one:\n{places}', ()


def names_by_server(tools: Mapping[str, Sequence[Tool]], name_of: NameOf) -> str:
    """A line per server with the names of its tools; names alone where no tool has a server."""
    lines = [(server, ", ".join(map(name_of, held))) for server, held in tools.items()]
    if len(lines) == 1 and not lines[0][0]:
        return lines[0][1]
    return "\n".join(f"{place_name(server) or 'without a server'}: {names}" for server, names in lines)


def servers_and_counts(tools: Mapping[str, Sequence[Tool]], tokens: int) -> str:
    """A line per server: its name, the number of its tools, what they are about; as many as fit, the largest first.

    Where no tool has a server, a line per category.
    """
    groups: Mapping[str, Sequence[Tool]] = tools
    one, kind = "a server", "servers"
    if list(groups) == [""]:
        groups, one, kind = _by_category(groups[""]), "a category", "categories"
    lines: list[str] = []
    largest = sorted(groups.items(), key=lambda each: (-len(each[1]), not each[0], each[0]))
    for name, held in largest:
        about = ", ".join(subjects_of(held, [name]))
        line = f"{place_name(name) or f'without {one}'} ({len(held)}){f': {about}' if about else ''}"
        if lines and ESTIMATE.count("\n".join((*lines, line))) > tokens:
            break
        lines.append(line)
    if left := largest[len(lines) :]:
        lines.append(f"and {len(left)} more {kind} with {sum(len(held) for _, held in left)} tools")
    return "\n".join(lines)


def _by_category(tools: Sequence[Tool]) -> dict[str, list[Tool]]:
    groups: dict[str, list[Tool]] = {}
    for tool in tools:
        groups.setdefault(tool.category or "", []).append(tool)
    return groups


def place_name(name: str) -> str:
    """The name of a server or a category as it stands in a line."""
    return " ".join(name.split())[:80]
