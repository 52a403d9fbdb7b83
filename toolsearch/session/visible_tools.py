"""What one caller may see of one state of the catalog."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from toolsearch.calls import Caller
from toolsearch.catalog.roster import Roster
from toolsearch.catalog.tools import Tool, definition_tokens
from toolsearch.protocols import Visibility

__all__ = ["VisibleTools", "may_see", "visible_tools"]

log = logging.getLogger("toolsearch")


def may_see(tool: Tool, caller: Caller | None, visible: Visibility | None) -> bool:
    """Whether a caller may see this very tool; a rule that raises hides it."""
    if tool.roles and (caller is None or not (tool.roles & caller.roles)):
        return False
    try:
        return visible is None or bool(visible(tool, caller))
    except Exception:
        log.exception("visible(%r, …) failed: the tool stays hidden", tool.id)
        return False


@dataclass(frozen=True, eq=False)
class VisibleTools:
    """The tools of a roster that a caller may see. All that is looked up here belongs to one state.

    `ids` is None for all tools of this roster; it never stands for tools that come later.
    """

    roster: Roster
    ids: frozenset[str] | None
    pinned: frozenset[str]  # ids of tools that are not searched

    def __len__(self) -> int:
        return len(self.roster) if self.ids is None else len(self.ids)

    def get(self, tool_id: str) -> Tool | None:
        """The tool with this id, if the caller may see it."""
        return self.roster.get(tool_id) if self.ids is None or tool_id in self.ids else None

    def exact(self, name: str) -> list[Tool]:
        """The tools whose name or provider name this is to the letter, by id; or the one whose id it is."""
        tool = self.get(name)
        return self._seen(self.roster.exact(name)) if tool is None else [tool]

    def folded(self, name: str) -> list[Tool]:
        """The tools whose name this is in any case and with any signs between its words, by id."""
        return self._seen(self.roster.folded(name))

    def near(self, name: str, limit: int = 3) -> list[Tool]:
        """The tools with the most similar names, best first."""
        return self.roster.near(name, limit, self.ids)

    def provider_name(self, tool: Tool) -> str:
        """The name a model sees; it does not depend on tools that the caller may not see."""
        return self.roster.provider_name(tool, self.ids)

    @cached_property
    def all(self) -> tuple[Tool, ...]:
        """Every tool, sorted by id, so that the order of registration does not matter."""
        return tuple(sorted(self._seen(self.roster), key=lambda t: t.id))

    @cached_property
    def places(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The servers and categories with a tool that can be searched for."""
        servers = {t.server for t in self._searchable if t.server}
        categories = {t.category for t in self._searchable if t.category}
        return tuple(sorted(servers)), tuple(sorted(categories))

    @cached_property
    def by_server(self) -> dict[str, tuple[Tool, ...]]:
        """The tools that can be searched for, by server in the order of the names; "" for those without, at the end."""
        servers = sorted({t.server or "" for t in self._searchable}, key=lambda server: (not server, server))
        tools: dict[str, list[Tool]] = {server: [] for server in servers}
        for tool in self._searchable:
            tools[tool.server or ""].append(tool)
        return {server: tuple(held) for server, held in tools.items()}

    @cached_property
    def listed(self) -> tuple[Tool, ...]:
        """The tools that can be searched for, in the order of `by_server`, which is that of every list of names."""
        return tuple(tool for held in self.by_server.values() for tool in held)

    @cached_property
    def size(self) -> tuple[int, int]:
        """The number and tokens of the tools that searching keeps out of a request: all but the pinned ones."""
        tools = self._searchable
        return len(tools), sum(map(definition_tokens, tools))

    @property
    def _searchable(self) -> list[Tool]:
        return [t for t in self.all if t.id not in self.pinned]

    def _seen(self, tools: Iterable[Tool]) -> list[Tool]:
        return list(tools) if self.ids is None else [t for t in tools if t.id in self.ids]


def visible_tools(
    roster: Roster,
    sees: Callable[[Tool, Caller | None], bool],
    pinned: frozenset[str],
    caller: Caller | None,
    category: str | None,
) -> VisibleTools:
    """What a caller may see of a roster, or of a category of it."""
    wanted = None if category is None else category.casefold()
    seen = [t.id for t in roster if sees(t, caller) and (wanted is None or (t.category or "").casefold() == wanted)]
    return VisibleTools(roster, None if len(seen) == len(roster) else frozenset(seen), pinned)
