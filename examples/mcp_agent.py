"""An agent over the servers of an mcp.json: it searches their tools, calls what it found, and asks you what they ask.

Three servers are configured. This file is one of them, with the SDK of MCP; it runs twice, and the third one cannot be
started. The model is scripted, so that this runs offline: put one of `toolsearch.wires` in its place.

Run it with `python examples/mcp_agent.py`. It needs `pip install 'toolsearch-kit[mcp]'`.
"""

import asyncio
import sys
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel

READS = ToolAnnotations(read_only_hint=True)


class Sure(BaseModel):
    sure: bool


def serve(name: str) -> None:
    """One of the servers: parcels of a depot."""
    server = MCPServer(name, log_level="CRITICAL")

    @server.tool(annotations=READS)
    def find_parcel(number: str) -> dict[str, str]:
        """Find a parcel by its number: where it is, and in which state."""
        return {"number": number, "depot": name, "state": "waiting"}

    @server.tool(annotations=READS)
    async def count_parcels(ctx: Context) -> int:
        """Count all parcels of the depot."""
        for step in range(1, 4):
            await ctx.report_progress(step, 3, f"hall {step}")
        return 3_141

    @server.tool()
    async def return_parcel(number: str, ctx: Context) -> str:
        """Send a parcel back to its sender."""
        answer = await ctx.elicit(f"Really send {number} back?", Sure)
        return f"{number} goes back" if answer.action == "accept" and answer.data.sure else f"{number} stays"

    server.run("stdio")


# -- the agent ---------------------------------------------------------------------------------------------------------

CONFIG = {
    "mcpServers": {
        "north": {"command": sys.executable, "args": [__file__, "north"]},
        # With the protocol of 2025, in which a server can ask in the middle of a call.
        "south": {"command": sys.executable, "args": [__file__, "south"], "toolsearch": {"protocol": "legacy"}},
        "archive": {"command": "a-server-that-is-not-installed"},
    }
}
SCRIPT = (
    [("search_tools", {"queries": ["where is a parcel", "send a parcel back", "count all parcels"]})],
    [("north__find_parcel", {"number": "P-7"}), ("south__count_parcels", {})],
    [("south__return_parcel", {"number": "P-7"})],
    "P-7 waits in the north, and goes back to its sender.",
)


def ask(question: Any) -> dict[str, object]:
    """A program of yours would show a form here."""
    print(f"{question.server} asks: {question.message} {list(question.schema['properties'])} -> yes")
    return {"sure": True}


async def main() -> None:
    from toolsearch import Agent, Finished, ToolSearch  # not above: the servers do not need it
    from toolsearch.events import ToolReturned
    from toolsearch.mcp import Servers
    from toolsearch.testing import ScriptedModel

    def progress(tool: object, context: object, done: float, total: float | None, message: str | None) -> None:
        print(f"progress: {done:g} of {total:g}, {message}")

    async with Servers(CONFIG, connect_seconds=30, ask=ask, progress=progress) as servers:
        for name, health in servers.health().items():
            print(f"{name}: {health.state}, {health.tools} tools{f' ({health.reason})' if health.reason else ''}")
        agent = Agent(ScriptedModel(*SCRIPT), ToolSearch(servers.catalog, run=servers.run))
        async for event in agent.astream("Where is P-7? Send it back."):
            if isinstance(event, ToolReturned):
                print(f"{event.status}: {' '.join(event.content.split())[:100]}")
            elif isinstance(event, Finished):
                print(event.text)


if __name__ == "__main__":
    serve(sys.argv[1]) if len(sys.argv) > 1 else asyncio.run(main())
