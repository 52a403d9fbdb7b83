"""A change of a catalog: as it is made, on a draft, and as it is announced."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolsearch.catalog.roster import Draft
from toolsearch.catalog.tools import Tool
from toolsearch.errors import DefinitionError

__all__ = ["Change", "Step"]


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
    replaced: bool = False  # a function by another: nothing to announce

    def put(self, new: Tool, *, keep_place: bool = True) -> None:
        """Puts a tool in, perhaps in the place of another; one that came in this step itself was never announced."""
        if (before := self.draft.tools.get(new.id)) is not None:
            self.draft.drop(before, keep_place=keep_place)
            if self.added.pop(new.id, None) is None:
                self.removed.append(before)
        self.draft.put(new)
        self.added[new.id] = new

    def drop(self, tool: Tool) -> None:
        self.draft.drop(tool)
        self.removed.append(tool)
