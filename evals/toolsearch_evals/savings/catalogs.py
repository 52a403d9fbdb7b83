"""The catalog of one conversation as it grows from size to size, with the indexes over it.

All arms of a conversation search the same catalog, and those with the same index the same index: it is built once, and
grows with the catalog.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolsearch import Catalog, Settings, Tool, ToolIndex, ToolSearch
from toolsearch_evals.backends import open_backend
from toolsearch_evals.savings.plan import SearchedArm
from toolsearch_evals.savings.scripted import answer

__all__ = ["GrowingCatalog"]


class GrowingCatalog:
    """The first of some tools, in order, and more of them after each `grow`; `arms` are those it is searched by."""

    def __init__(self, tools: Sequence[Tool], arms: Iterable[SearchedArm] = ()) -> None:
        self._tools = tools
        self._size = 0
        self._catalog = Catalog()
        for _, _, settings in arms:  # now, so that the names of the tools do not depend on which arm comes first
            self._catalog.reserve([settings.search_tool, settings.call_tool])
        # By index and by the kinds of example queries that it holds. A `ToolSearch` brings each change into its index.
        self._built: dict[tuple[str, tuple[str, ...]], ToolSearch] = {}

    def grow(self, size: int) -> None:
        """Adds the tools up to this number."""
        if size > self._size:
            self._catalog.extend(self._tools[self._size : size])
            self._size = size

    def static(self) -> ToolSearch:
        """Every tool in each request; nothing is searched."""
        return self.unsearched(Settings.of(mode="static", max_tools=self._size + 2))

    def unsearched(self, settings: Settings) -> ToolSearch:
        """The tools with these settings, and with an index that finds nothing."""
        return ToolSearch(self._catalog, _NoIndex(), run=answer, settings=settings)

    def searched(self, by: SearchedArm) -> ToolSearch:
        """The tools as they are searched in an arm."""
        index = _Built(self._index(by.notation, by.settings))
        return ToolSearch(self._catalog, index, run=answer, settings=by.settings)

    def _index(self, notation: str, settings: Settings) -> ToolIndex:
        key = (notation, tuple(sorted(settings.examples)))
        if key not in self._built:
            engine = open_backend(notation)
            self._built[key] = ToolSearch(self._catalog, engine, settings=Settings.of(examples=settings.examples))
        return self._built[key].index


class _NoIndex:
    """The index of a conversation without search: it is never asked."""

    name = "none"

    def add(self, tools: Sequence[Tool]) -> None: ...
    def remove(self, ids: Sequence[str]) -> None: ...
    def search(self, query: str, limit: int, among: Any = None) -> list[Any]:
        return []


class _Built:
    """An index that another `ToolSearch` over the same catalog keeps in step; all that it offers besides is passed."""

    def __init__(self, engine: ToolIndex) -> None:
        self._engine = engine
        self.name = engine.name

    def add(self, tools: Sequence[Tool]) -> None: ...
    def remove(self, ids: Sequence[str]) -> None: ...
    def search(self, query: str, limit: int, among: Any = None) -> Any:
        return self._engine.search(query, limit, among)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)
