"""The tools that every request declares, deferred, for a wire that refers to found ones by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from toolsearch.catalog.tools import Shown, Tool

__all__ = ["DeclaredTools"]


@dataclass(slots=True)
class DeclaredTools:
    """What one conversation has declared. It keeps its bytes and order: tools that come later stand at the end.

    A tool that leaves the catalog, or changes at its source, stays as it was declared; one that the caller may no
    longer see leaves at once.
    """

    _shown: dict[str, Shown] = field(default_factory=dict)
    _seen: Sequence[Tool] = ()  # what was taken last

    def name_of(self, tool_id: str) -> str | None:
        """The name that a tool was declared by."""
        shown = self._shown.get(tool_id)
        return None if shown is None else shown.name

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
            self._shown = {i: shown for i, shown in self._shown.items() if i in staying}
            for tool in tools:
                if tool.id not in self._shown and (most is None or len(self._shown) < most):
                    self._shown[tool.id] = Shown(name_of(tool), tool, delivered=True)
            self._seen = tools
        return list(self._shown.values())
