"""The tools that every request declares, deferred, for a wire that refers to found ones by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from toolsearch.catalog.tools import Shown, Tool

__all__ = ["DeclaredTools"]


@dataclass(slots=True)
class DeclaredTools:
    """What one conversation has declared. It keeps its bytes and order: tools that come later stand at the end.

    A tool that leaves the catalog, or changes at its source, stays as it was declared. Of one that the caller may no
    longer see, nothing stays but the name, and that only if an answer referred to it: a provider refuses a history that
    refers to what is not declared. So `referred`, the names of those that answers referred to, by id, only grows: the
    program may keep any part of the history.
    """

    referred: dict[str, str] = field(default_factory=dict)
    _shown: dict[str, Shown] = field(default_factory=dict)
    _seen: Sequence[Tool] = ()  # what was taken last

    def anew(self) -> DeclaredTools:
        """The same conversation after a compaction: tools are declared as they are then."""
        return DeclaredTools(self.referred)

    def name_of(self, tool_id: str) -> str | None:
        """The name that a tool was declared by."""
        shown = self._shown.get(tool_id)
        return None if shown is None else shown.name

    def id_of(self, name: str) -> str | None:
        """The id of the tool that was declared by this name."""
        return next((i for i, shown in self._shown.items() if shown.name == name), None)

    def taking(
        self,
        tools: Sequence[Tool],
        stay: Callable[[Iterable[Tool]], list[Tool]],
        name_of: Callable[[Tool], str],
        most: int | None,
    ) -> list[Shown]:
        """What is declared now that there are these tools, at most `most`.

        `stay` leaves those that the caller may see, of tools that were declared before.
        """
        if self._seen != tools:
            staying = {tool.id for tool in stay(shown.tool for shown in self._shown.values())}
            self._shown = {
                i: shown if i in staying else _withdrawn(i, shown.name)
                for i, shown in self._shown.items()
                if i in staying or i in self.referred
            }
            for tool in tools:
                if tool.id not in self._shown and (most is None or len(self._shown) < most):
                    self._shown[tool.id] = Shown(name_of(tool), tool, delivered=True)
            for tool_id, name in self.referred.items():  # those that were gone before
                self._shown.setdefault(tool_id, _withdrawn(tool_id, name))
            self._seen = tools
        return list(self._shown.values())


def _withdrawn(tool_id: str, name: str) -> Shown:
    """What is declared in the place of a tool that is gone: its name."""
    return Shown(name, Tool(tool_id, name, "No longer available."), delivered=True)
