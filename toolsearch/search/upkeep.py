"""Keeps an index in step with a catalog, whatever tools the index refuses."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.changes import Change
from toolsearch.catalog.tools import Tool
from toolsearch.errors import SetupError
from toolsearch.protocols import PersistentIndex, ToolIndex
from toolsearch.support.checks import offers

__all__ = ["IndexUpkeep"]

log = logging.getLogger("toolsearch")


class IndexUpkeep:
    """Puts a catalog into an index, and every later change of it, for as long as this object lives.

    Tools that `pinned()` gives stay out of the index; it is asked again after each change. `examples` are the kinds of
    example queries that are searched ("author", "enriched"). `on_change` is called with each change, before the index
    is.
    """

    def __init__(
        self,
        catalog: Catalog,
        index: ToolIndex,
        *,
        pinned: Callable[[], Iterable[Tool]],
        examples: Collection[str],
        on_change: Callable[[Change], None],
    ) -> None:
        self._catalog, self._index = catalog, index
        self._find_pinned = pinned
        self._pinned = frozenset(t.id for t in pinned())
        self._examples = examples
        self._on_change = on_change
        self._dropped_strangers = False
        me = weakref.ref(self)

        def apply(change: Change) -> None:
            upkeep = me()
            if upkeep is None:
                end()
            else:
                upkeep.apply(change)

        end = catalog.subscribe(apply)
        try:
            self._drop_strangers()
            self._add([t for t in catalog if t.id not in self._pinned])
        except BaseException:
            end()
            raise

    def apply(self, change: Change) -> None:
        """Brings one change of the catalog into the index. What the index cannot take is logged."""
        self._on_change(change)
        try:
            before, self._pinned = self._pinned, frozenset(t.id for t in self._find_pinned())
            freed = before - self._pinned  # another tool has their place
            changed = {t.id: t for t in [*filter(None, map(self._catalog.get, sorted(freed))), *change.added]}
            added = [t for i, t in changed.items() if i not in self._pinned]
            stays = {t.id for t in added}  # `add` replaces them, so that they are never missing from a search
            gone = [*(t.id for t in change.removed), *sorted(self._pinned - before)]
            self._index.remove([i for i in dict.fromkeys(gone) if i not in stays])
            self._drop_strangers()
            self._add(added)
        except SetupError:
            log.exception("index %r could not apply a catalog change", self._index.name)

    def _drop_strangers(self) -> None:
        """Once: removes what an index kept of tools that have left. A catalog still empty does not tell which."""
        if self._dropped_strangers:
            return
        if ids := [t.id for t in self._catalog if t.id not in self._pinned]:
            if offers(self._index, PersistentIndex):
                self._index.keep_only(ids)
            self._dropped_strangers = True

    def _add(self, tools: Sequence[Tool]) -> None:
        """Indexes tools; if the index refuses a batch, one by one, so that a bad one costs only itself.

        A `SetupError` is not the fault of a tool: it is raised.
        """
        try:
            self._index.add([self._as_searched(each) for each in tools])
        except SetupError:
            raise
        except Exception:
            if len(tools) == 1:
                log.exception("index %r cannot take %r: it is found by its name only", self._index.name, tools[0].id)
                self._index.remove([tools[0].id])  # an earlier version of it
            for each in tools if len(tools) > 1 else ():
                self._add([each])

    def _as_searched(self, tool: Tool) -> Tool:
        """The tool as it is indexed: with the chosen kinds of example queries."""
        if tool.examples and "author" not in self._examples:
            tool = replace(tool, examples=())
        return replace(tool, enriched=()) if tool.enriched and "enriched" not in self._examples else tool
