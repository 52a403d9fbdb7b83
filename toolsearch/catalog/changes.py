"""A change of a catalog: as it is made, on a draft, and as it is announced."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from toolsearch.catalog.roster import Draft, Roster
from toolsearch.catalog.tools import Tool
from toolsearch.errors import DefinitionError

__all__ = ["Change", "Step"]

log = logging.getLogger("toolsearch")


@dataclass(frozen=True)
class Change:
    """One change of a catalog. A tool that was replaced is in `removed`, the new one in `added`."""

    added: tuple[Tool, ...] = ()
    removed: tuple[Tool, ...] = ()


@dataclass
class Step:
    """A change as it is made, on a draft that nobody else sees: one tool after the other, until all is put in place."""

    draft: Draft
    added: dict[str, Tool] = field(default_factory=dict)
    removed: list[Tool] = field(default_factory=list)
    refused: list[tuple[object, DefinitionError]] = field(default_factory=list)
    folds: set[str] = field(default_factory=set)  # folded names of the tools that came and left
    replaced: bool = False  # a function by another: nothing to announce

    def put(self, new: Tool, *, keep_place: bool = True) -> None:
        """Puts a tool in, perhaps in the place of another; one that came in this step itself was never announced."""
        if (before := self.draft.tools.get(new.id)) is not None:
            self.folds |= self.draft.names.folds_of(before.id)
            self.draft.drop(before, keep_place=keep_place)
            if self.added.pop(new.id, None) is None:
                self.removed.append(before)
        self.draft.put(new)
        self.folds |= self.draft.names.folds_of(new.id)
        self.added[new.id] = new

    def drop(self, tool: Tool) -> None:
        self.folds |= self.draft.names.folds_of(tool.id)
        self.draft.drop(tool)
        self.removed.append(tool)

    def finish(self, version: int) -> tuple[Roster, Change]:
        """The next state of the catalog, and what is announced of it."""
        if anew := self.draft.flag_look_alikes(self.folds):
            log.warning(
                "%d tools have a name like a tool of another server, but for case and signs: %s",
                len(anew), ", ".join(map(repr, anew[:4])),
            )  # fmt: skip
        added = tuple(self.draft.tools[tool_id] for tool_id in self.added)
        changed = bool(added or self.removed)
        return self.draft.roster(version + changed), Change(added, tuple(self.removed))
