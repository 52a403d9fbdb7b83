"""A FastMCP server without and with our search: what an agent sends its model that has the server's tools.

python examples/with_fastmcp.py
"""

import asyncio
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.tools.base import Tool, ToolResult
from framework_tools import ALL_TOOLS, DEFINITIONS, SEARCH, TASK, Sent, run_tool

from toolsearch.frameworks.fastmcp import SearchTransform


class MyTool(Tool):
    """A tool of FastMCP. Yours are functions, with `@server.tool`."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(run_tool(self.name, arguments))


def without() -> FastMCP:
    server = FastMCP("office")
    for definition in DEFINITIONS:
        server.add_tool(MyTool(**definition))
    return server


def with_search() -> FastMCP:
    server = without()
    server.add_transform(SearchTransform("keyword"))
    return server


async def answer(server: FastMCP, steps: list[Any], sent: Sent) -> str:
    """The loop of an agent, with a model whose replies are written down."""
    messages: list[Any] = [TASK]
    async with Client(server) as client:
        for step in steps:
            tools = [(each.name, each.description, each.input_schema) for each in await client.list_tools()]
            sent.add(tools, messages)
            if isinstance(step, str):
                return step
            for name, given in step:
                through = name not in {each[0] for each in tools}
                call = ("call_tool", {"name": name, "arguments": given}) if through else (name, given)
                result = await client.call_tool(*call)
                messages += [call, [block.text for block in result.content]]
    raise AssertionError("a script ends with a text")


for build, steps in ((without, ALL_TOOLS), (with_search, SEARCH)):
    print(f"{build.__name__}: {len(DEFINITIONS)} tools")
    sent = Sent()
    print(f"  {asyncio.run(answer(build(), steps, sent))}\n  {sent}\n")
