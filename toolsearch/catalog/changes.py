"""A change of a catalog: as it is made, as it is put in place, and as it is announced."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from toolsearch.catalog.roster import Draft, Roster
from toolsearch.catalog.tools import Tool
from toolsearch.errors import DefinitionError

__all__ = ["Change", "CurrentRoster", "Step"]

SMALL = 64  # tools: a change of so few is made while look-ups wait


@dataclass(frozen=True)
class Change:
    """One change of a catalog. A tool that was replaced is in `removed`, the new one in `added`."""

    added: tuple[Tool, ...] = ()
    removed: tuple[Tool, ...] = ()


@dataclass
class Step:
    """A change as it is made: the tool that each id is to have. Nobody sees it before it is put in place."""

    before: Roster
    refused: list[tuple[object, DefinitionError]] = field(default_factory=list)
    look_alikes: list[str] = field(default_factory=list)  # ids of the tools that are flagged anew
    _tools: dict[str, Tool | None] = field(default_factory=dict)  # by id; None: there is to be none

    def __len__(self) -> int:
        return len(self._tools)

    def get(self, tool_id: str) -> Tool | None:
        """The tool of this id, as it is to be."""
        return self._tools[tool_id] if tool_id in self._tools else self.before.get(tool_id)

    def put(self, new: Tool) -> None:
        """Puts a tool in, in the place of the one with its id if there is one."""
        self._tools[new.id] = new

    def drop(self, tool: Tool) -> None:
        self._tools[tool.id] = None

    def finish(self, draft: Draft) -> tuple[Roster, Change]:
        """The next state of the catalog, made of a draft of the present one, and what is announced of it."""
        added: list[str] = []
        removed: list[Tool] = []
        folds: set[str] = set()  # folded names of the tools that came and left
        for tool_id, new in self._tools.items():
            before = draft.tools.get(tool_id)
            if before is not None:
                folds |= draft.names.folds_of(tool_id)
                draft.drop(before, keep_place=new is not None)
            if new is not None:
                draft.put(new)
                folds |= draft.names.folds_of(tool_id)
            if before is None or new is None or before != new or before.enriched != new.enriched:
                removed += [] if before is None else [before]
                added += [] if new is None else [tool_id]
            # Otherwise it is the same for model and index, and only what runs may be new: nothing to announce.
        self.look_alikes = draft.flag_look_alikes(folds)
        change = Change(tuple(draft.tools[tool_id] for tool_id in added), tuple(removed))
        return draft.roster(self.before.version + bool(added or removed)), change


class CurrentRoster:
    """The roster of the moment, and how the next one takes its place.

    A change copies the roster if somebody has taken it. If nobody has, a small change is made in the roster itself,
    while look-ups wait: so tools that are added one by one do not copy all those before them.
    """

    def __init__(self, *, qualified: bool = False) -> None:
        self._roster = Roster(qualified=qualified)
        self._is_taken = False
        # Held for moments only, and never while code of others runs.
        self._lock = threading.Lock()

    @property
    def version(self) -> int:
        return self._roster.version

    def __len__(self) -> int:
        with self._lock:
            return len(self._roster)

    def get(self, tool_id: str) -> Tool | None:
        with self._lock:
            return self._roster.get(tool_id)

    def take(self) -> Roster:
        """The roster, which never changes from now on."""
        with self._lock:
            self._is_taken = True
            return self._roster

    def begin(self) -> Step:
        """A change to be made. The next one may begin when this one was put in place."""
        return Step(self._roster)

    def put_in_place(self, step: Step) -> Change:
        if not len(step):
            return Change()
        with self._lock:
            if not self._is_taken and len(step) <= SMALL:
                self._roster, change = step.finish(self._roster.draft(copy=False))
                return change
        after, change = step.finish(self._roster.draft(copy=True))
        with self._lock:
            self._roster, self._is_taken = after, False
        return change
