"""The tools of a catalog by id, in their order, and by every name that leads to them."""

from __future__ import annotations

from collections.abc import Container

from toolsearch.catalog.names import Names, provider_name
from toolsearch.catalog.tools import Tool

__all__ = ["Roster"]


class Roster:
    """Ids, names and tools, changed one tool at a time. Not safe for threads by itself: its catalog holds a lock."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self._namesakes: dict[str, set[str]] = {}  # plain name -> ids
        self._names = Names()

    def put(self, tool: Tool) -> None:
        """Adds a tool, or puts it in the place that `drop` has kept."""
        self.tools[tool.id] = tool
        self._namesakes.setdefault(tool.name, set()).add(tool.id)
        shared = provider_name(tool.name, tool.id, tool.server, shared=True)
        own = provider_name(tool.name, tool.id, tool.server, shared=False)
        self._names.add(tool.id, (tool.id, tool.name, tool.base_name, own, shared))

    def drop(self, tool: Tool, *, keep_place: bool = False) -> None:
        """Takes a tool out. With `keep_place` another tool of its id is put in at once, at the same place."""
        if not keep_place:
            del self.tools[tool.id]
        self._names.remove(tool.id)
        ids = self._namesakes[tool.name]
        ids.discard(tool.id)
        if not ids:
            del self._namesakes[tool.name]

    def named(self, name: str) -> list[Tool]:
        return [self.tools[tool_id] for tool_id in self._names.exact(name)]

    def near(self, name: str, limit: int, among: Container[str] | None) -> list[Tool]:
        return [self.tools[tool_id] for tool_id in self._names.near(name, limit, among)]

    def provider_name(self, tool: Tool, among: Container[str] | None) -> str:
        """The name a model sees; see `Catalog.provider_name`."""
        namesakes = [tool_id for tool_id in self._namesakes[tool.name] if among is None or tool_id in among]
        shared = len(namesakes) > 1 and tool.id != tool.name
        name = provider_name(tool.name, tool.id, tool.server, shared=shared)
        if name != tool.name and name in self._namesakes:  # another tool has this as its plain name
            name = provider_name(tool.name, tool.id, tool.server, shared=shared, digits=32)
        return name
