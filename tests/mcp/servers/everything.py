"""One tool for each thing that a result or a conversation can have; resources, prompts and completion as well."""

import asyncio
import base64
import os
import sys
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from tests.mcp.servers.serving import options, serve

# One transparent pixel, and a tenth of a second of silence without its header.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SILENCE = base64.b64encode(bytes(800)).decode()
META = {"example.com/kept": {"deep": [1, None, "ü"]}}
NUMBER = {"type": "object", "properties": {"count": {"type": "integer"}}}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
SECONDS = {"type": "object", "properties": {"seconds": {"type": "number"}}}
NONE: dict[str, Any] = {"type": "object", "properties": {}}

state: dict[str, Any] = {"cancelled": 0, "remembered": "", "level": None}
Tool = Callable[[Any, dict[str, Any]], Awaitable[types.CallToolResult]]


def text(value: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=value)], **more)


async def echo(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    return text(str(given.get("text", "")), meta=META)


async def structured(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    value = {"celsius": 17.5, "nothing": None, "deep": {"list": [1, 2, {"ü": True}]}}
    return text("17.5 degrees", structured_content=value)


async def media(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    """Text, an image, a sound, an embedded text, embedded bytes, a link: with annotations and `_meta`."""
    marks = types.Annotations(audience=["user"], priority=0.5)
    document = types.TextResourceContents(uri="test://note", mime_type="text/plain", text="a note")
    data = types.BlobResourceContents(uri="test://data", mime_type="application/octet-stream", blob=PIXEL)
    return types.CallToolResult(
        content=[
            types.TextContent(type="text", text="all of it", annotations=marks, meta=META),
            types.ImageContent(type="image", data=PIXEL, mime_type="image/png", annotations=marks),
            types.AudioContent(type="audio", data=SILENCE, mime_type="audio/wav"),
            types.EmbeddedResource(type="resource", resource=document, meta=META),
            types.EmbeddedResource(type="resource", resource=data),
            types.ResourceLink(type="resource_link", uri="test://note", name="note", title="A note", size=6),
        ],
    )


async def fail(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    return text("the disk is full", is_error=True)


async def refuse(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    raise MCPError(code=-32050, message="the server refuses", data={"why": "on purpose"})


async def big(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    """So many characters of numbered lines, 10 million by default."""
    size = int(given.get("count") or 10_000_000)
    lines, at, number = [], 0, 0
    while at < size:
        lines.append(f"line {number}: {'x' * 80}\n")
        at, number = at + len(lines[-1]), number + 1
    return text("".join(lines)[:size])


async def big_structured(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    rows = [{"row": number, "text": "y" * 80} for number in range(int(given.get("count") or 10_000))]
    return text("see the rows", structured_content={"rows": rows})


async def sleep(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    try:
        await asyncio.sleep(float(given.get("seconds", 60)))
    except asyncio.CancelledError:
        state["cancelled"] += 1
        raise
    return text("slept")


async def cancelled(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    """How many calls of `sleep` were cancelled."""
    return text(str(state["cancelled"]), structured_content={"cancelled": state["cancelled"]})


async def progress(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    count = int(given.get("count") or 3)
    for step in range(count):
        await ctx.session.report_progress(step + 1, count, f"step {step + 1}")
    return text(f"{count} steps")


async def log(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for level in ("debug", "warning", "error"):
            await ctx.session.send_log_message(level, {"said": level}, "everything", related_request_id=ctx.request_id)
    return text("logged")


async def stderr(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    """So many lines on stderr."""
    for number in range(int(given.get("count") or 10)):
        print(f"line {number} of stderr", file=sys.stderr)
    sys.stderr.flush()
    return text("written")


async def remember(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    """Keeps a text for all who share this process."""
    state["remembered"] = str(given.get("text", ""))
    return text("kept")


async def recall(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    return text(str(state["remembered"]), structured_content={"text": state["remembered"], "pid": os.getpid()})


async def environment(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    """The variables and the folder that this process was started with."""
    said = {"variables": dict(os.environ), "folder": str(Path.cwd())}
    return text(" ".join(sorted(os.environ)), structured_content=said)


async def headers(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    """The headers of the request, over HTTP; {} over stdio."""
    found = dict(ctx.request.headers) if ctx.request is not None else {}
    return text(" ".join(sorted(found)), structured_content=found)


async def client(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    """What the client says of itself, the protocol, and the `_meta` of this request."""
    able, who = ctx.session.client_capabilities, ctx.session.client_params
    said = {
        "protocol": ctx.protocol_version,
        "name": who.client_info.name if who else None,
        "able": able.model_dump(by_alias=True, exclude_none=True, mode="json") if able else None,
        "meta": {key: value for key, value in (ctx.meta or {}).items() if not key.startswith("io.")},
    }
    return text(str(said["name"]), structured_content=said)


async def roots(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    """The folders that the client offers (the older protocol only)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = await ctx.session.list_roots()
    return text("\n".join(str(each.uri) for each in found.roots))


async def die(ctx: Any, given: dict[str, Any]) -> types.CallToolResult:
    os._exit(7)


TOOLS: dict[Tool, tuple[str, dict[str, Any]]] = {
    echo: ("Gives a text back.", TEXT),
    structured: ("Gives the temperature as structured content.", NONE),
    media: ("Gives a text, an image, a sound, resources and a link.", NONE),
    fail: ("Fails.", NONE),
    refuse: ("Answers with an error of the protocol.", NONE),
    big: ("Gives so many characters.", NUMBER),
    big_structured: ("Gives so many rows.", NUMBER),
    sleep: ("Waits so many seconds.", SECONDS),
    cancelled: ("Counts the waits that were cancelled.", NONE),
    progress: ("Reports its progress in so many steps.", NUMBER),
    log: ("Writes to the log of the client.", NONE),
    stderr: ("Writes so many lines of stderr.", NUMBER),
    remember: ("Keeps a text.", TEXT),
    recall: ("Gives the text that was kept.", NONE),
    environment: ("Gives the variables of the environment.", NONE),
    headers: ("Gives the headers of the request.", NONE),
    client: ("Says what is known about the client.", NONE),
    roots: ("Lists the folders of the client.", NONE),
    die: ("Ends the process in the middle of the call.", NONE),
}
WRITES = {"remember", "die"}


def definitions() -> list[types.Tool]:
    return [
        types.Tool(
            name=function.__name__,
            title=function.__name__.replace("_", " ").title(),
            description=description,
            input_schema=schema,
            output_schema={"type": "object", "title": "Weather"} if function is structured else None,
            annotations=types.ToolAnnotations(
                read_only_hint=function.__name__ not in WRITES,
                destructive_hint=function.__name__ == "die",
                idempotent_hint=True,
                open_world_hint=False,
            ),
            icons=[types.Icon(src="data:image/png;base64," + PIXEL, mime_type="image/png")],
            meta=META,
        )
        for function, (description, schema) in TOOLS.items()
    ]


async def on_call_tool(ctx: Any, params: Any) -> types.CallToolResult:
    for function in TOOLS:
        if function.__name__ == params.name:
            return await function(ctx, params.arguments or {})
    return text(f"Unknown tool: {params.name}", is_error=True)


def main() -> None:
    from tests.mcp.servers.beside_tools import BESIDE

    parser = options(__doc__ or "")
    chosen = parser.parse_args()
    listed = definitions()

    async def on_list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed, meta=META)

    server = Server(
        chosen.name,
        version="1.2.3",
        title="Everything",
        instructions="Call echo first.",
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
        **BESIDE,
    )
    serve(server, chosen)
