"""The tools of a catalog at one moment, in their order: by id, and by every name that leads to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from toolsearch.catalog.names import Names, folded, provider_name, qualified_name, spellings_of
from toolsearch.catalog.sanitising import LOOK_ALIKE
from toolsearch.catalog.tools import Tool

__all__ = ["Draft", "Roster"]


class Roster:
    """One state of a catalog. A roster that was taken from its catalog never changes.

    To see one state, take one roster and look everything up in it.
    """

    def __init__(
        self,
        version: int = 0,
        tools: dict[str, Tool] | None = None,
        namesakes: dict[str, tuple[str, ...]] | None = None,
        names: Names | None = None,
        *,
        qualified: bool = False,
    ) -> None:
        self.version = version
        self._qualified = qualified
        self._tools = {} if tools is None else tools
        self.tools: Mapping[str, Tool] = MappingProxyType(self._tools)
        self._namesakes = {} if namesakes is None else namesakes  # plain name -> ids
        self._names = Names() if names is None else names

    @cached_property
    def places(self) -> tuple[frozenset[str], frozenset[str]]:
        """The servers and the categories of all tools."""
        servers = frozenset(t.server for t in self if t.server)
        return servers, frozenset(t.category for t in self if t.category)

    def draft(self, *, copy: bool) -> Draft:
        """What becomes the next state. Without `copy` it takes this roster's contents over: nobody may have it then."""
        if not copy:
            return Draft(self._tools, self._namesakes, self._names, self._qualified)
        return Draft(dict(self._tools), dict(self._namesakes), self._names.copy(), self._qualified)

    def get(self, tool_id: str) -> Tool | None:
        return self.tools.get(tool_id)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools.values())

    def __len__(self) -> int:
        return len(self.tools)

    def exact(self, name: str) -> list[Tool]:
        """The tools whose id, name or provider name this is to the letter, by id."""
        return [self.tools[tool_id] for tool_id in self._names.exact(name)]

    def folded(self, name: str) -> list[Tool]:
        """The tools whose name this is in any case and with any signs between its words, by id."""
        return [self.tools[tool_id] for tool_id in self._names.folded(name)]

    def named(self, name: str, among: Collection[str] | None = None) -> list[Tool]:
        """The tools that a name leads to, by id: to the letter, or else folded, or else by letters and digits."""
        ids = self._names.alike(name)
        if among is not None:
            ids = [tool_id for tool_id in ids if tool_id in among]
        if not ids:
            return []
        exact = self._names.exact(name)
        for level in (exact, self._names.folded(name)):
            if found := [tool_id for tool_id in ids if tool_id in level]:
                return [self.tools[tool_id] for tool_id in found]
        return [self.tools[tool_id] for tool_id in ids]

    def near(self, name: str, limit: int = 3, among: Collection[str] | None = None) -> list[Tool]:
        """The tools with the most similar names, best first."""
        return [self.tools[tool_id] for tool_id in self._names.near(name, limit, among)]

    def provider_name(self, tool: Tool, among: Collection[str] | None = None) -> str:
        """The name a model sees; see `Catalog.provider_name`."""
        if self._qualified and tool.server:
            name = qualified_name(tool.name, tool.id, tool.server)
            taken = name != tool.name and name in self._namesakes
            return qualified_name(tool.name, tool.id, tool.server, digits=32) if taken else name
        namesakes = [i for i in self._namesakes.get(tool.name, ()) if among is None or i in among]
        shared = len(namesakes) > 1 and tool.id != tool.name
        name = provider_name(tool.name, tool.id, tool.server, shared=shared)
        if name != tool.name and name in self._namesakes:  # another tool has this as its plain name
            name = provider_name(tool.name, tool.id, tool.server, shared=shared, digits=32)
        return name


@dataclass
class Draft:
    """The next state of a catalog, changed one tool at a time. Nobody else sees it."""

    tools: dict[str, Tool]
    namesakes: dict[str, tuple[str, ...]]
    names: Names
    qualified: bool = False

    def put(self, tool: Tool) -> None:
        """Adds a tool, or puts it in the place that `drop` has kept."""
        self.tools[tool.id] = tool
        self.namesakes[tool.name] = (*self.namesakes.get(tool.name, ()), tool.id)
        self.names.add(tool.id, spellings_of(tool.name, tool.id, tool.server), (tool.base_name,))

    def drop(self, tool: Tool, *, keep_place: bool = False) -> None:
        """Takes a tool out. With `keep_place` another tool of its id is put in next, at the same place."""
        if not keep_place:
            del self.tools[tool.id]
        self.names.remove(tool.id)
        if rest := tuple(i for i in self.namesakes[tool.name] if i != tool.id):
            self.namesakes[tool.name] = rest
        else:
            del self.namesakes[tool.name]

    def flag_look_alikes(self, folds: Iterable[str]) -> list[str]:
        """Flags the tools that have a name like one of another server's tool, and takes the flag off others.

        `folds` are the folded names of the tools that came and left. Returns the ids of those that are flagged anew.
        """
        alike: dict[str, frozenset[str]] = {}
        anew = []
        for tool_id in sorted({i for fold in folds for i in self.names.with_fold(fold)}):
            for fold in self.names.folds_of(tool_id) - alike.keys():
                alike[fold] = _look_alikes([self.tools[i] for i in self.names.with_fold(fold)], fold)
            tool = self.tools[tool_id]
            is_alike = any(tool_id in alike[fold] for fold in self.names.folds_of(tool_id))
            if is_alike != (LOOK_ALIKE in tool.flags):
                others = tuple(flag for flag in tool.flags if flag != LOOK_ALIKE)
                self.tools[tool_id] = replace(tool, flags=(*others, LOOK_ALIKE) if is_alike else others)
                anew += [tool_id] if is_alike else []
        return anew

    def roster(self, version: int) -> Roster:
        """The finished state."""
        return Roster(version, self.tools, self.namesakes, self.names, qualified=self.qualified)


def _look_alikes(tools: Sequence[Tool], fold: str) -> frozenset[str]:
    """The ids of the tools that share a folded name with a tool of another server.

    Tools of one name to the letter are no look-alikes: each server may have its `search`, and a model is shown distinct
    names. Counted, not compared in pairs: a server may list thousands of spellings.
    """
    by_name = {tool.id: tool.name for tool in tools if folded(tool.name) == fold}
    servers = Counter(tool.server for tool in tools)
    names = Counter(by_name.values())
    both = Counter((tool.server, by_name[tool.id]) for tool in tools if tool.id in by_name)
    found = set()
    for tool in tools:
        others = len(tools) - servers[tool.server]
        if (name := by_name.get(tool.id)) is not None:
            others -= names[name] - both[tool.server, name]
        if others > 0:
            found.add(tool.id)
    return frozenset(found)
