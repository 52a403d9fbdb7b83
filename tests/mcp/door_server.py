"""A server for the tests: its tools by name, over stdio, or over HTTP on a port of its own.

python door_server.py [--http PORT] [--legacy-list] …
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

OBJECT = {"type": "object", "properties": {}}
READS = types.ToolAnnotations(read_only_hint=True)
unlocked = False
cancelled: list[str] = []
bus = InMemorySubscriptionBus()


def tool(name: str, description: str, **more: object) -> types.Tool:
    return types.Tool(name=name, description=description, **{"input_schema": OBJECT, "annotations": READS, **more})


def tools() -> list[types.Tool]:
    found = [
        tool("echo", "Says a text again.", input_schema={"type": "object", "properties": {"text": {"type": "string"}}}),
        tool("unlock", "Unlocks the door to more tools.", annotations=None),
        tool("picture", "Draws a picture of a cat."),
        tool("fail", "Fails."),
        tool("slow", "Takes long, and tells how far it is."),
        tool("environment", "Tells the variables of its environment, its folder and its process."),
        tool("ask", "Asks the user for a name."),
        tool("roots", "Tells where it may work."),
        tool("die", "Ends the server.", annotations=types.ToolAnnotations(destructive_hint=True)),
        tool(
            "weigh", "Weighs a parcel.", annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=True),
            output_schema={"type": "object", "properties": {"grams": {"type": "integer"}}, "required": ["grams"]},
        ),
    ]  # fmt: skip
    return [*found, tool("secret", "Reads the secret treasure map.")] if unlocked else found


async def list_tools(ctx, params) -> types.ListToolsResult:
    every = tools()
    start = int(params.cursor) if params is not None and params.cursor else 0
    end = start + 4
    return types.ListToolsResult(tools=every[start:end], next_cursor=str(end) if end < len(every) else None)


def text(words: str, **more: object) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], **more)


async def call_tool(ctx, params):
    global unlocked
    match params.name:
        case "echo":
            return text(f"Echo: {params.arguments['text']}")
        case "unlock":
            unlocked = True
            if "--silent" not in sys.argv:
                await bus.publish(ToolsListChanged())
                await ctx.session.send_tool_list_changed()
            return text("Unlocked.")
        case "secret":
            return text("Under the oak.")
        case "picture":
            image = types.ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png")
            return types.CallToolResult(content=[types.TextContent(type="text", text="A cat:"), image])
        case "fail":
            return text("no such file", is_error=True)
        case "slow":
            return await slow(ctx, params)
        case "environment":
            told = {"environ": dict(os.environ), "cwd": str(Path.cwd()), "pid": os.getpid(), "cancelled": cancelled}
            return text(json.dumps(told))
        case "ask":
            return await ask(ctx, params)
        case "roots":
            listed = await ctx.session.list_roots()
            return text(" ".join(str(root.uri) for root in listed.roots))
        case "weigh":
            return text("wrong on purpose", structured_content={"grams": "heavy"})
        case "die":
            os._exit(3)
    return text(f"Unknown tool: {params.name}", is_error=True)


async def slow(ctx, params) -> types.CallToolResult:
    for step in range(1, 4):
        await ctx.session.report_progress(step, 3, f"step {step}")
    try:
        await asyncio.sleep(float((params.arguments or {}).get("seconds", 0)))
    except asyncio.CancelledError:
        cancelled.append("slow")
        raise
    return text("Done.")


async def ask(ctx, params):
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answers = params.input_responses
    if answers:
        answer = answers["name"]
        return text(f"{answer.action}: {answer.content}")
    if ctx.protocol_version >= "2026":
        wanted = types.ElicitRequest(
            params=types.ElicitRequestFormParams(message="Your name?", requested_schema=schema)
        )
        return types.InputRequiredResult(input_requests={"name": wanted})
    answer = await ctx.session.elicit_form("Your name?", schema)
    return text(f"{answer.action}: {answer.content}")


def server() -> Server:
    return Server(
        "door", instructions="Unlock first.", on_list_tools=list_tools, on_call_tool=call_tool,
        on_subscriptions_listen=None if "--silent" in sys.argv else ListenHandler(bus),
    )  # fmt: skip


async def main() -> None:
    print("door: started", file=sys.stderr, flush=True)
    made = server()
    async with stdio_server() as (read, write):
        await made.run(read, write, made.create_initialization_options(NotificationOptions(tools_changed=True)))


if __name__ == "__main__":
    asyncio.run(main())
