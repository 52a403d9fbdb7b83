"""The tools one conversation has: pinned and found ones, their names, their order, and the caps on them.

The found set only grows, in the order of discovery, and keeps the bytes of what was shown. The oldest leave where a
cap forces it, and whatever is gone or changed at its source is settled at a compaction; both are told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolsearch.catalog.names import provider_name
from toolsearch.catalog.tools import Tool, definition_tokens

if TYPE_CHECKING:
    from toolsearch.calls import Caller

from toolsearch.session.view import View

__all__ = ["LoadedTools"]


class LoadedTools:
    """Not safe for threads by itself: its session holds a lock. `room` and `most_tokens` are what a request carries."""

    def __init__(self, view: View, caller: Caller | None) -> None:
        self.caller = caller
        self._view = view
        self.room = 0
        self.most_tokens: float = math.inf
        self.notices: list[str] = []
        self.found: dict[str, Tool] = {}  # as first shown, in the order of discovery
        self._names: dict[str, str] = {}  # tool id -> name, also of tools that have left: a history may hold them
        self._ids: dict[str, str] = {}  # name -> tool id
        self.pinned = [live for t in view.pinned if (live := self.live(t.id)) is not None]
        for tool in self.pinned:
            self._give_name(tool)

    def live(self, tool_id: str) -> Tool | None:
        """The tool as the catalog holds it now, if the caller may see it."""
        visible = self._view.visible_ids(self.caller)
        return self._view.catalog.get(tool_id) if visible is None or tool_id in visible else None

    def ids(self) -> frozenset[str]:
        """Ids of all tools here, pinned and found."""
        return frozenset([*(t.id for t in self.pinned), *self.found])

    def id_of(self, name: str) -> str | None:
        """The tool a name was given to in this conversation, even if it has left since."""
        return self._ids.get(name)

    def name_of(self, tool: Tool) -> str:
        """The name a model calls a tool by: the one given before, or the one it would be given."""
        if tool.id in self._names:
            return self._names[tool.id]
        try:
            name = self._view.catalog.provider_name(tool.id, self._view.visible_ids(self.caller))
        except KeyError:  # it has just left the catalog
            name = provider_name(tool.name, tool.id, tool.server, shared=False)
        if self._ids.get(name, tool.id) != tool.id:
            name = provider_name(tool.name, tool.id, tool.server, shared=True)
        return name

    def reveal(self, ids: Iterable[str], late: Sequence[str] = ()) -> list[str]:
        """Loads tools in the order given, as many as fit; returns the names of those that had to leave for them.

        Those in `late` are needed as well, and leave last.
        """
        held = self.ids()
        new = [i for i in dict.fromkeys(ids) if i not in held][: self.room]
        for tool_id in new:
            if (tool := self._view.catalog.get(tool_id)) is not None:
                self._give_name(tool)
                self.found[tool_id] = tool
        return self._evict(new, late) if new else []

    def reveal_all(self) -> int:
        """Loads all there is, as far as a request has room; returns how many tools it has no room for."""
        held = self.ids()
        new = [t.id for t in self._view.all_visible(self.caller) if t.id not in held]
        room = max(0, self.room - len(self.found))
        self.reveal(new[:room])
        return len(new[room:])

    def compact(self) -> list[str]:
        """Drops what is gone or hidden now, shows changed tools as they are now, and says so."""
        before = [*self.pinned, *self.found.values()]
        live = {t.id: now for t in before if (now := self.live(t.id)) is not None}
        told = []
        for shown in before:
            if shown.id not in live:
                told.append(f"{self._names[shown.id]} is no longer available")
            elif live[shown.id] != shown:
                told.append(f"{self._names[shown.id]} has changed")
        self.pinned = [live[t.id] for t in self.pinned if t.id in live]
        self.found = {i: live[i] for i in self.found if i in live}
        return told

    def export(self) -> dict[str, Any]:
        """Names and found tools as JSON-ready data."""
        return {"names": dict(self._names), "found": [[i, t.digest] for i, t in self.found.items()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes up what `export` gave; tools that are gone or have changed are told in `notices`."""
        self._names = dict(state["names"])
        self._ids = {name: tool_id for tool_id, name in self._names.items()}
        for tool in self.pinned:
            self._give_name(tool)
        for tool_id, digest in state["found"]:
            live = self.live(tool_id)
            if live is None:
                self.notices.append(f"{self._names[tool_id]} is no longer available and was unloaded")
                continue
            if live.digest != digest:
                self.notices.append(f"{self._names[tool_id]} has changed since it was loaded")
            self.found[tool_id] = live
        self._evict()

    def _give_name(self, tool: Tool) -> None:
        """Once a conversation; a name already given to another tool gets a suffix."""
        if tool.id not in self._names:
            name = self.name_of(tool)
            self._names[tool.id] = name
            self._ids[name] = tool.id

    def _evict(self, keep: Sequence[str] = (), late: Sequence[str] = ()) -> list[str]:
        """Unloads the oldest found tools until the caps hold; those just loaded stay."""
        gone = []
        order = {tool_id: place for place, tool_id in enumerate(self.found)}
        sizes = {i: definition_tokens(t) for i, t in self.found.items()} if self.most_tokens < math.inf else {}
        for tool_id in sorted(self.found.keys() - set(keep), key=lambda i: (i in late, order[i])):
            if len(self.found) <= self.room and sum(sizes.values()) <= self.most_tokens:
                break
            del self.found[tool_id]
            sizes.pop(tool_id, None)
            gone.append(self._names[tool_id])
        if gone:
            self.notices.append(f"unloaded to stay within the limit: {', '.join(gone)}")
        return gone
