"""What a model is told of the answers of an MCP server: text, an image, an error, structured output.

The server runs in this process, behind the client of the official SDK (`pip install mcp`). For one of your own, write
`Client(StdioServerParameters(command=…, args=[…]))` or `Client("https://…")` in its place.

Run it with `python examples/mcp_results.py`.
"""

import asyncio
import base64
from typing import Any

from mcp import Client
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

from toolsearch import Catalog, ImagePart, Tool, ToolCall, ToolContext, ToolSearch
from toolsearch.wires import anthropic, openai_chat

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
)  # a red one

server = MCPServer("notes", log_level="CRITICAL")


class Summary(BaseModel):
    notes: int
    words: int


@server.tool()
def add_note(text: str) -> str:
    """Write a note."""
    return f"noted: {text}"


@server.tool(structured_output=False)
def draw_note(text: str) -> list[Any]:
    """Draw a note as a picture."""
    return [f"the note {text!r} as a picture:", Image(data=PIXEL, format="png")]


@server.tool()
def read_note(name: str) -> str:
    """Read a note."""
    raise ToolError(f"there is no note {name!r}")


@server.tool()
def count_notes() -> Summary:
    """Count the notes and their words."""
    return Summary(notes=2, words=7)


async def main() -> None:
    async with Client(server) as client:
        catalog = Catalog()
        catalog.extend(await client.list_tools(), server="notes")

        async def run(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> object:
            return await client.call_tool(tool.name, arguments)  # as it is: errors, images and all

        session = ToolSearch(catalog, run=run, mode="static").session()
        print(f"{len(catalog)} tools: {', '.join(tool.id for tool in catalog)}\n")
        session.tools()
        calls = [
            ToolCall("call_1", "add_note", {"text": "buy milk"}),
            ToolCall("call_2", "draw_note", {"text": "buy milk"}),
            ToolCall("call_3", "read_note", {"name": "yesterday"}),
            ToolCall("call_4", "count_notes", {}),
        ]
        results = await session.ahandle_all(calls)
        for call, result in zip(calls, results, strict=True):
            print(f"{call.name}: {result.status}\n{result.content}")
            print(f"({', '.join(type(part).__name__ for part in result.parts)})\n")

    image = next(part for part in results[1].parts if isinstance(part, ImagePart))
    print(f"The image has {image.size} bytes.")
    pairs = list(zip(calls, results, strict=True))
    block = anthropic.results_for(pairs)[0]["content"][1]
    print("Anthropic is sent:", ", ".join(part["type"] for part in block["content"]))
    print("OpenAI is sent:", repr(openai_chat.results_for(pairs)[1]["content"]))


asyncio.run(main())
