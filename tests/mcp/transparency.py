"""What each method of the protocol gives directly and through the gateway: `python -m tests.mcp.transparency`.

Compared is the JSON of the results, and what is told meanwhile: progress, logs, changes. Left aside is what differs of
need: the names of tools and prompts, which carry the server's, the tool `fetch_result`, and who says that it answered.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.mcp.gateways import GENERATIONS, opened
from tests.mcp.servers import over_http

SERVER = "every"
PREFIX = f"{SERVER}__"
LOG_META: Any = {"io.modelcontextprotocol/logLevel": "debug"}
Row = tuple[str, object, object]


class Probe:
    """A client that keeps what it is told unasked. `prefix` stands before the names of tools and prompts."""

    def __init__(self, server: Any, generation: str, prefix: str) -> None:
        self.prefix, self.generation = prefix, generation
        self.told: list[Any] = []
        self.client = Client(
            server,
            mode=generation,
            message_handler=self._hear,
            client_info=types.Implementation(name="probe", version="1"),
        )

    async def _hear(self, message: Any) -> None:
        if isinstance(message, types.LoggingMessageNotification | types.ResourceUpdatedNotification):
            self.told.append(plain(message))

    async def until(self, count: int) -> None:
        """Waits for so many messages, but not for ever."""
        for _ in range(200):
            if len(self.told) >= count:
                return
            await asyncio.sleep(0.01)

    async def call(self, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
        return plain(await self.client.call_tool(self.prefix + tool, arguments or {}, **options))


def plain(value: Any) -> Any:
    """A result as JSON, without the name of the server that answered."""
    dumped = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    for holder in (dumped, dumped.get("params", {})):
        meta = {key: each for key, each in (holder.get("_meta") or {}).items() if not key.startswith("io.")}
        holder.pop("_meta", None)
        if meta:
            holder["_meta"] = meta
    for key in ("ttlMs", "cacheScope"):
        dumped.pop(key, None)
    return dumped


def unprefixed(value: Any, prefix: str) -> Any:
    """The same with the names as the server has them."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.replace(f'"{prefix}', '"')) if prefix else json.loads(text)


async def _error(work: Awaitable[Any]) -> Any:
    try:
        return plain(await work)
    except MCPError as error:
        return {"code": error.error.code, "message": error.error.message, "data": error.error.data}


async def _instructions(probe: Probe) -> Any:
    return "Call echo first." in (probe.client.instructions or "")


async def _tools(probe: Probe) -> Any:
    listed = plain(await probe.client.list_tools())["tools"]
    return [tool for tool in listed if tool["name"] != "fetch_result"]


async def _progress(probe: Probe) -> Any:
    heard: list[Any] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append([progress, total, message])

    return [await probe.call("progress", {"count": 3}, progress_callback=hear), heard]


async def _log(probe: Probe) -> Any:
    probe.told.clear()
    result = await probe.call("log", {}, meta=LOG_META if probe.generation != "legacy" else None)
    await probe.until(3)
    return [result, probe.told[:]]


async def _cancelled(probe: Probe) -> Any:
    async def count() -> int:
        return int((await probe.call("cancelled"))["structuredContent"]["cancelled"])

    before = await count()
    with anyio.move_on_after(0.3):
        await probe.call("sleep", {"seconds": 30})
    for _ in range(200):
        if await count() > before:
            break
        await asyncio.sleep(0.02)
    return await count() - before


async def _subscribed(probe: Probe) -> Any:
    """The older protocol alone; the newer one has `subscriptions/listen`."""
    probe.told.clear()
    answer = plain(await probe.client.subscribe_resource("test://note"))
    await probe.until(1)
    return [answer, probe.told[:], plain(await probe.client.unsubscribe_resource("test://note"))]


async def _level(probe: Probe) -> Any:
    return plain(await probe.client.set_logging_level("debug"))


async def _completed(probe: Probe) -> Any:
    prompt = types.PromptReference(type="ref/prompt", name=f"{probe.prefix}weather")
    return plain(await probe.client.complete(prompt, {"name": "city", "value": "Ber"}))


async def _completed_template(probe: Probe) -> Any:
    template = types.ResourceTemplateReference(type="ref/resource", uri="test://row/{number}")
    return plain(await probe.client.complete(template, {"name": "number", "value": ""}))


async def _all_resources(probe: Probe) -> Any:
    """All pages: the gateway gives them as one."""
    pages, cursor = [], None
    while True:
        page = plain(await probe.client.list_resources(cursor=cursor))
        pages += page["resources"]
        if not (cursor := page.get("nextCursor")):
            return pages


async def _meta_at_server(probe: Probe) -> Any:
    said = await probe.call("client", {}, meta={"example.com/trace": "abc"})
    return said["structuredContent"]["meta"].get("example.com/trace")


METHODS: dict[str, Callable[[Probe], Awaitable[Any]]] = {
    "initialize, server/discover: instructions": _instructions,
    "tools/list": _tools,
    "tools/call: text and _meta": lambda p: p.call("echo", {"text": "hi"}),
    "tools/call: structured content": lambda p: p.call("structured"),
    "tools/call: images, sound, resources": lambda p: p.call("media"),
    "tools/call: a tool that fails": lambda p: p.call("fail"),
    "tools/call: an error of the protocol": lambda p: _error(p.client.call_tool(f"{p.prefix}refuse", {})),
    "tools/call: _meta of the request": _meta_at_server,
    "notifications/progress": _progress,
    "notifications/message": _log,
    "notifications/cancelled": _cancelled,
    "resources/list": _all_resources,
    "resources/templates/list": lambda p: _plain(p.client.list_resource_templates()),
    "resources/read: text": lambda p: _plain(p.client.read_resource("test://note")),
    "resources/read: bytes": lambda p: _plain(p.client.read_resource("test://data")),
    "resources/read: by a template": lambda p: _plain(p.client.read_resource("test://row/7")),
    "resources/read: an error": lambda p: _error(p.client.read_resource("test://nothing")),
    "resources/subscribe, updated, unsubscribe": _subscribed,
    "prompts/list": lambda p: _plain(p.client.list_prompts()),
    "prompts/get": lambda p: _plain(p.client.get_prompt(f"{p.prefix}weather", {"city": "Oslo"})),
    "prompts/get: an error": lambda p: _error(p.client.get_prompt("nothing")),
    "completion/complete: a prompt": _completed,
    "completion/complete: a template": _completed_template,
    "logging/setLevel": _level,
    "ping": lambda p: _plain(p.client.send_ping()),
}
ONLY_OLDER = ("resources/subscribe", "logging/setLevel", "ping")


async def _plain(work: Awaitable[Any]) -> Any:
    return plain(await work)


async def compared(generation: str, entry: dict[str, Any], folder: Path) -> list[Row]:
    """Each method of one generation: its name, what it gives directly, and what it gives through the gateway."""
    rows: list[Row] = []
    protocol = {"toolsearch": {"protocol": generation}}
    async with opened({SERVER: {**entry, **protocol}}, folder, mode="all", confirm="never") as gateway:
        direct, through = Probe(entry["url"], generation, ""), Probe(gateway.server, generation, PREFIX)
        async with direct.client, through.client:
            for name, method in METHODS.items():
                if generation != "legacy" and name.startswith(ONLY_OLDER):
                    continue
                given = []
                for probe in (direct, through):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # of the SDK, on what the newer protocol has no longer
                        try:
                            given.append(unprefixed(await method(probe), probe.prefix))
                        except Exception as error:
                            given.append(f"{type(error).__name__}: {error}")
                rows.append((name, *given))  # type: ignore[arg-type]
    return rows


def main() -> int:
    """Prints the table; 1 if anything differs."""
    tables: dict[str, dict[str, bool]] = {}
    with over_http("everything") as entry, tempfile.TemporaryDirectory() as folder:
        for generation in GENERATIONS:
            for name, direct, through in asyncio.run(compared(generation, entry, Path(folder))):
                tables.setdefault(name, {})[generation] = direct == through
                if direct != through:
                    print(f"{generation}, {name}:\n  direct  {direct}\n  through {through}", file=sys.stderr)
    print("| method | 2025-11-25 | 2026-07-28 |\n|---|---|---|")
    for name, same in tables.items():
        print(f"| {name} | " + " | ".join(_word(same.get(each)) for each in GENERATIONS) + " |")
    return int(not all(same for row in tables.values() for same in row.values()))


def _word(same: bool | None) -> str:
    return "not in this protocol" if same is None else "direct = through" if same else "**differs**"


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
