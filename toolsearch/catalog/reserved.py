"""The names that are kept for built-in tools, in any spelling."""

from __future__ import annotations

from collections.abc import Iterable

from toolsearch.catalog.names import name_key, without_program
from toolsearch.catalog.tools import Tool
from toolsearch.errors import DefinitionError, SetupError

__all__ = ["Reserved"]


class Reserved:
    """Names of built-in tools. `Search-Tools` and `functions.search_tools` are spellings of `search_tools`.

    Calls are understood in any spelling too, so a tool with such a name would take those meant for the built-in one.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {name_key(name): name for name in names}

    def also(self, names: Iterable[str], tools: Iterable[Tool]) -> tuple[Reserved, list[tuple[Tool, DefinitionError]]]:
        """These names and more, and the tools that have one of them, with why.

        Raises `SetupError` if one of the tools has no server: the program can give its own another name.
        """
        reserved = Reserved((*self._names.values(), *names))
        taken = [(tool, problem) for tool in tools if (problem := reserved.problem_of(tool)) is not None]
        for tool, _ in taken:
            if tool.server is None:
                raise SetupError(
                    f"the tool {tool.id!r} of the catalog has the name of the built-in tool "
                    f"{reserved.name_like(tool)!r}: rename the built-in one with search_tool='…' or call_tool='…', or "
                    "leave the tool out"
                )
        return reserved, taken

    def name_like(self, tool: Tool) -> str | None:
        """The reserved name that a tool has, in some spelling."""
        return self._names.get(name_key(without_program(tool.name)))

    def problem_of(self, tool: Tool) -> DefinitionError | None:
        """Why a tool cannot be taken; None if its name is free."""
        name = self.name_like(tool)
        if name is None:
            return None
        like = "is" if tool.name == name else f"is spelled like {name!r},"
        return DefinitionError(
            f"{tool.name!r} {like} the name of a built-in tool; rename that one with search_tool='…' or call_tool='…'"
        )
