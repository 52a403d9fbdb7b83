"""Which tools are pinned: listed in every request, and never searched."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from toolsearch.catalog.tools import Tool

__all__ = ["PinnedTools"]

log = logging.getLogger("toolsearch")


@dataclass(frozen=True)
class PinnedTools:
    """The tools that a program named, and all that fit: those of `servers`, and those whose id fits one of `patterns`.

    Tools that come later are among them, as long as there are no more than `most`.
    """

    named: tuple[Tool, ...] = ()
    patterns: tuple[str, ...] = ()
    servers: frozenset[str] = frozenset()
    most: int = 0

    def of(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """The pinned tools of a catalog: those that were named, then the others in the order in which they came."""
        if not self.patterns and not self.servers:
            return self.named
        names = {tool.id for tool in self.named}
        fitting = [tool for tool in tools if tool.id not in names and self._fits(tool)]
        room = max(0, self.most - len(self.named))
        if len(fitting) > room:
            first = fitting[room].id
            log.warning("%d tools fit what is pinned; %r and those after it are searched instead", len(fitting), first)
        return (*self.named, *fitting[:room])

    def _fits(self, tool: Tool) -> bool:
        return tool.server in self.servers or any(fnmatchcase(tool.id, pattern) for pattern in self.patterns)
