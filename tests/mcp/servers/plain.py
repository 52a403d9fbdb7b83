"""Any number of tools; each says which process, connection and call answered, so that a test sees what was shared."""

import asyncio
import itertools
import os
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import mcp_types as types
from mcp.server.lowlevel import Server

from tests.mcp.servers.quick import topic_of
from tests.mcp.servers.serving import options, serve


def definition(name: str, server: str, number: int) -> types.Tool:
    topic = topic_of(number)
    return types.Tool(
        name=name,
        description=f"Reads {topic} number {number} of {server}.",
        input_schema={
            "type": "object",
            "properties": {"key": {"type": "string", "description": f"Key of the {topic}."}},
            "required": ["key"],
        },
        output_schema={"type": "object", "properties": {"key": {"type": "string"}, "pid": {"type": "integer"}}},
        annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )


class Facts:
    """Who answers: the process, the connection (1, 2 …), and how many calls each has had."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.connections: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()
        self.calls = 0

    def of(self, ctx: Any) -> dict[str, int]:
        connection = self.connections.setdefault(ctx.session._connection, [0, 0])
        connection[0] = connection[0] or next(self.numbers)
        connection[1] += 1
        self.calls += 1
        return {"pid": os.getpid(), "connection": connection[0], "in_connection": connection[1], "calls": self.calls}


def server_of(name: str, tools: int, prefix: str, seconds: float) -> Server[Any]:
    listed = [definition(f"{prefix}{number}", name, number) for number in range(tools)]
    names, facts = {each.name for each in listed}, Facts()

    async def on_list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def on_call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        if params.name not in names:
            text = types.TextContent(type="text", text=f"Unknown tool: {params.name}")
            return types.CallToolResult(content=[text], is_error=True)
        await asyncio.sleep(seconds)
        key = (params.arguments or {}).get("key")
        said = {"server": name, "tool": params.name, "key": key, **facts.of(ctx)}
        text = types.TextContent(type="text", text=f"{name} {params.name} {key}")
        return types.CallToolResult(content=[text], structured_content=said)

    schemas: dict[str, Any] = {each.name: each.input_schema for each in listed}
    schema: Callable[[str], Any] = schemas.get
    return Server(
        name, version="1", on_list_tools=on_list_tools, on_call_tool=on_call_tool, get_tool_input_schema=schema
    )


def main() -> None:
    parser = options(__doc__ or "")
    parser.add_argument("--tools", type=int, default=3)
    parser.add_argument("--prefix", default="read_", help="of the names of the tools")
    parser.add_argument("--seconds", type=float, default=0, help="that each call takes")
    chosen = parser.parse_args()
    serve(server_of(chosen.name, chosen.tools, chosen.prefix, chosen.seconds), chosen)
