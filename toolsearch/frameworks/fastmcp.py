"""FastMCP: a transform that puts two tools, to search and to call, in the place of the tools of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydantic import PrivateAttr

from toolsearch import Catalog, MissingExtra, Settings, Shown, Tool, ToolCall, ToolContext, ToolIndex, ToolSearch
from toolsearch.frameworks.running import definition

try:
    from fastmcp.server.dependencies import get_context
    from fastmcp.server.transforms import GetToolNext
    from fastmcp.server.transforms.catalog import CatalogTransform
    from fastmcp.tools.base import Tool as ServerTool
    from fastmcp.tools.base import ToolResult
    from fastmcp.utilities.versions import VersionSpec
except ImportError as error:
    raise MissingExtra("toolsearch.frameworks.fastmcp", "fastmcp", "fastmcp") from error

__all__ = ["SearchTransform"]


class SearchTransform(CatalogTransform):
    """For `server.add_transform(SearchTransform("hybrid", pinned=["ask_user"]))`: clients list the two, and `pinned`.

    A search finds what the client of the request may see, and its answer holds the schemas. A call goes through the
    server's own middleware, under the tool's own name. MCP does not say which conversation a request belongs to, and
    one connection may serve many, so nothing is remembered from one request to the next. `index` is a name, or a
    function that makes an index; `settings` are those of a `ToolSearch`, with the modes "bridge" and not_loaded="run".
    """

    def __init__(
        self,
        index: str | Callable[[], ToolIndex] | None = None,
        *,
        pinned: Iterable[str] = (),
        settings: Settings | None = None,
    ) -> None:
        super().__init__()
        self._index, self._pinned = index, frozenset(pinned)
        self._settings = (settings or Settings()).model_copy(update={"mode": "bridge", "not_loaded": "run"})
        self._kept: list[tuple[list[object], ToolSearch]] = []
        session = self._made([], "keyword").session()
        self._built_in = {shown.name: _BuiltIn.of(shown, self) for shown in session.tools()}

    async def transform_tools(self, tools: Sequence[ServerTool]) -> Sequence[ServerTool]:
        return [*(each for each in tools if each.name in self._pinned), *self._built_in.values()]

    async def get_tool(
        self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None
    ) -> ServerTool | None:
        return self._built_in.get(name) or await call_next(name, version=version)

    async def answer(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """The answer to a call of one of the two tools: what a tool returned, as it returned it, or a text."""
        tools = await self.get_tool_catalog(get_context())
        search = await asyncio.to_thread(self._over, tools)
        session = search.session()
        result = await session.ahandle(ToolCall("", name, arguments))
        search.end_session(session.id)
        if isinstance(result.data, ToolResult):
            return result.data
        return ToolResult(result.content, is_error=not result.ok)

    def _over(self, tools: Sequence[ServerTool]) -> ToolSearch:
        """A search over exactly these tools, made again only if they changed."""
        key = [(each.name, each.version, each.title, each.description, each.parameters, each.meta) for each in tools]
        found = next((each for each in self._kept if each[0] == key), None)
        if found is None:
            found = (list[object](key), self._made([each.to_mcp_tool() for each in tools], self._index))
            self._kept = [found, *self._kept[:7]]  # users of different rights see different tools
        return found[1]

    def _made(self, tools: Sequence[object], index: str | Callable[[], ToolIndex] | None) -> ToolSearch:
        catalog, engine = Catalog(tools), index() if callable(index) else index
        pinned = [each.name for each in catalog if each.name in self._pinned]
        return ToolSearch(catalog, engine, pinned=pinned, run=_run, settings=self._settings)


async def _run(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    return await get_context().fastmcp.call_tool(tool.name, arguments)


class _BuiltIn(ServerTool):
    _transform: SearchTransform = PrivateAttr()

    @classmethod
    def of(cls, shown: Shown, transform: SearchTransform) -> _BuiltIn:
        name, description, schema = definition(shown)
        tool = cls(name=name, description=description, parameters=schema)
        tool._transform = transform
        return tool

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        return await self._transform.answer(self.name, arguments)
