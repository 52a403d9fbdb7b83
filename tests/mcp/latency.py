"""What the gateway adds to a call: paired medians of the same call direct and through it, and the time of a search.

    python -m tests.mcp.latency                 300 pairs over stdio and over HTTP, 500 tools on 20 servers
    python -m tests.mcp.latency --pairs 50

Each pair is one call straight to a server and one through the gateway to another process of the same server, in turn,
so that a busy machine slows both. The official client makes all of them.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from mcp import Client, StdioServerParameters

from tests.mcp.servers import entry, over_http
from tests.mcp.servers.quick import topic_of
from tests.torture.gateway import SERVE, started

MEASURED = "measured"


def config(servers: int, tools: int, measured: dict[str, Any]) -> dict[str, Any]:
    others = {f"shop{n:02}": entry("quick", name=f"shop{n:02}", tools=tools) for n in range(servers - 1)}
    return {"mcpServers": {MEASURED: measured, **others}}


@asynccontextmanager
async def direct(transport: str) -> AsyncIterator[tuple[Client, dict[str, Any]]]:
    """A client of the measured server, and the entry by which the gateway reaches it."""
    if transport == "stdio":
        measured = entry("plain", name=MEASURED, tools=25)
        async with Client(StdioServerParameters(**measured), cache=None) as client:
            yield client, measured
        return
    with over_http("plain", name=MEASURED, tools=25) as served:
        async with Client(served["url"], cache=None) as client:
            yield client, served


@asynccontextmanager
async def gateway(transport: str, folder: Path, mcp_json: dict[str, Any]) -> AsyncIterator[Client]:
    """A client of the gateway over those servers."""
    file = folder / "mcp.json"
    file.write_text(json.dumps(mcp_json), "utf-8")
    if transport == "stdio":
        command = StdioServerParameters(
            command=sys.executable,
            args=["-c", SERVE, str(file), "--mode", "bridge"],
            env={"XDG_CACHE_HOME": str(folder)},
        )
        async with Client(command, cache=None) as client:
            yield client
        return
    with started(folder, mcp_json) as (_, url):
        async with Client(url, cache=None) as client:
            yield client


async def timed(client: Client, name: str, arguments: dict[str, Any]) -> float:
    began = time.perf_counter()
    result = await client.call_tool(name, arguments)
    seconds = time.perf_counter() - began
    if result.is_error:
        raise RuntimeError(f"{name} failed: {result.content}")
    return seconds * 1_000


async def measure(transport: str, pairs: int, servers: int, tools: int, seed: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        async with (
            direct(transport) as (straight, measured),
            gateway(transport, Path(folder), config(servers, tools, measured)) as through,
        ):
            await _all_listed(through, servers)
            plain, passed, searched = [], [], []
            for number in range(pairs + 10):  # the first ten warm up
                name, arguments = f"read_{rng.randrange(25)}", {"key": str(number)}
                inner = {"name": f"{MEASURED}__{name}", "arguments": arguments}
                plain.append(await timed(straight, name, arguments))
                passed.append(await timed(through, "call_tool", inner))
                wanted = rng.randrange(tools)
                query = f"read the {topic_of(wanted)} number {wanted} of shop{rng.randrange(servers - 1):02}"
                searched.append(await timed(through, "search_tools", {"queries": [query]}))
    added = [after - before for before, after in zip(plain[10:], passed[10:], strict=True)]
    tenths = quantiles(added, n=10)
    print(f"{transport}: {pairs} pairs, {servers * tools} tools on {servers} servers")
    print(f"  a call: direct {median(plain[10:]):.1f} ms, through the gateway {median(passed[10:]):.1f} ms")
    print(f"  added: {median(added):.1f} ms (median; eight in ten between {tenths[0]:.1f} and {tenths[-1]:.1f})")
    print(f"  a search through the gateway: {median(searched[10:]):.1f} ms")


async def _all_listed(client: Client, servers: int) -> None:
    """Waits until the last server answers a call through the gateway."""
    for name in (f"{MEASURED}__read_0", *(f"shop{number:02}__read_0" for number in range(servers - 1))):
        for _ in range(300):
            result = await client.call_tool("call_tool", {"name": name, "arguments": {"key": "ready"}})
            if not result.is_error:
                break
            await asyncio.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mcp.latency", description="What the gateway adds to a call.")
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--tools", type=int, default=25, help="of each server")
    parser.add_argument("--transport", choices=["stdio", "http"], action="append")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    for transport in chosen.transport or ["stdio", "http"]:
        asyncio.run(measure(transport, chosen.pairs, chosen.servers, chosen.tools, chosen.seed))


if __name__ == "__main__":
    main()
