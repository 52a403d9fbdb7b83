"""Many clients at once of a gateway over many servers, whose processes are killed meanwhile and start again."""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import mcp_types as types
from mcp import Client

from tests.mcp.servers import entry, processes_with
from tests.mcp.servers.quick import topic_of
from tests.torture import Outcome

SERVE = "import typer; from toolsearch.mcp.commands.serve import serve; typer.run(serve)"
PRIVATE = "private"  # the server that has a process for each client that keeps a session
AWAY_SECONDS = 30  # a server that was killed so long ago is back, even on a busy machine
GROWTH_MB = 12  # of the memory of a gateway, from the first third of the time to the end


@dataclass
class Load:
    """What runs, what was done to it, and what came of it; all in one event loop."""

    servers: int
    tools: int
    marker: str
    rng: random.Random
    outcome: Outcome = field(default_factory=Outcome)
    killed: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    owners: dict[int, int] = field(default_factory=dict)  # of each private process, the client
    ended: set[int] = field(default_factory=set)  # the private processes that were killed
    call_ms: list[float] = field(default_factory=list)
    search_ms: list[float] = field(default_factory=list)
    visiting: int = 0  # clients that have made their first round
    stop: bool = False

    def wrong(self, text: str) -> None:
        self.outcome.violations.append(text)
        self.stop = len(self.outcome.violations) >= 20

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def name(self, number: int) -> str:
        return f"shop{number:02}"

    def config(self) -> dict[str, Any]:
        """Every fifth server is one of the SDK; one keeps a process for each client."""
        entries: dict[str, Any] = {}
        for number in range(self.servers - 1):
            name = self.name(number)
            kind = "plain" if number % 5 == 4 else "quick"
            entries[name] = entry(kind, name=name, tools=self.tools, marker=f"{self.marker}-{name}")
        private = entry("quick", name=PRIVATE, tools=self.tools, marker=f"{self.marker}-{PRIVATE}")
        options = {"session": "client", "connections": 200}
        return {"mcpServers": {**entries, PRIVATE: {**private, "toolsearch": options}}}

    def is_away(self, server: str) -> bool:
        return time.monotonic() - self.killed.get(server, float("-inf")) < AWAY_SECONDS


def memory_mb(pid: int) -> float:
    """The resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))


# -- a client ---------------------------------------------------------------------------------------------------------


class Visitor:
    """One client: searches, calls what it found, and its private server; checks every answer."""

    def __init__(self, load: Load, number: int, client: Client) -> None:
        self.load, self.number, self.client = load, number, client
        self.rng = random.Random(load.rng.random())
        self.keeps_session = client.protocol_version < "2026"
        self.listed: list[str] = []
        self.process = self.private_calls = 0  # the process that had the last private call, and how many it has had

    async def visit(self) -> None:
        self.listed = await self._names()
        rounds = 0
        while not self.load.stop:
            rounds += 1
            await self._round(rounds)
            self.load.visiting += rounds == 1
            await asyncio.sleep(self.rng.random() * 0.1)

    async def _round(self, rounds: int) -> None:
        server, number = self.load.name(self.rng.randrange(self.load.servers - 1)), self.rng.randrange(self.load.tools)
        if rounds % 3 == 1:
            await self._search(server, number)
        await self._call(server, number)
        if rounds % (4 if self.keeps_session else 20) == 1:
            await self._call_private()
        if rounds % 20 == 0 and (names := await self._names()) != self.listed:
            self.load.wrong(f"client {self.number} was shown {self.listed}, and later {names}")

    async def _names(self) -> list[str]:
        return [each.name for each in (await self.client.list_tools(cache_mode="refresh")).tools]

    async def _search(self, server: str, number: int) -> None:
        wanted = f"{server}__read_{number}"
        query = self.rng.choice([wanted, f"read the {topic_of(number)} number {number} of {server}"])
        began = time.perf_counter()
        found = text_of(await self.client.call_tool("search_tools", {"queries": [query]}))
        self.load.search_ms.append((time.perf_counter() - began) * 1_000)
        self.load.count("searches")
        if wanted not in found and not (self.load.is_away(server) and server in found):
            self.load.wrong(f"{query!r} did not find {wanted}: {found[:300]!r}")

    async def _called(self, name: str) -> tuple[str, types.CallToolResult]:
        key = secrets.token_hex(8)
        began = time.perf_counter()
        result = await self.client.call_tool("call_tool", {"name": name, "arguments": {"key": key}})
        self.load.call_ms.append((time.perf_counter() - began) * 1_000)
        self.load.count("calls")
        return key, result

    async def _call(self, server: str, number: int) -> None:
        key, result = await self._called(f"{server}__read_{number}")
        if text_of(result).split()[:3] == [server, f"read_{number}", key] and not result.is_error:
            return
        if not (result.is_error and self.load.is_away(server) and server in text_of(result)):
            self.load.wrong(f"client {self.number} called {server}/read_{number}: {text_of(result)[:300]!r}")
        self.load.count("calls told that the server is away")

    async def _call_private(self) -> None:
        """Each private call is had by one process, which no other client reaches, and which has had all others.

        A client of the newer protocol keeps no session, so each of its calls is had by a process that has had none.
        """
        key, result = await self._called(f"{PRIVATE}__read_0")
        words, was_killed = text_of(result).split(), self.process in self.load.ended
        if not self.keeps_session:
            self.process = self.private_calls = 0
            was_killed = self.load.is_away(PRIVATE)
        if result.is_error or words[:3] != [PRIVATE, "read_0", key]:
            if not (result.is_error and was_killed and PRIVATE in words):
                self.load.wrong(f"client {self.number} called {PRIVATE}: {text_of(result)[:300]!r}")
            self.load.count("calls told that the server is away")
            return
        process, calls = int(words[4]), int(words[6])
        if self.load.owners.setdefault(process, self.number) != self.number or (calls > 1 and not self.process):
            self.load.wrong(
                f"client {self.number} reached a process that had calls of client {self.load.owners[process]}"
            )
        if self.process and process != self.process and not was_killed:
            self.load.wrong(f"client {self.number} lost its process, which nobody had killed")
        if process == self.process and calls != self.private_calls + 1:
            self.load.wrong(f"client {self.number} made call {self.private_calls + 1}, and its process had {calls}")
        self.process, self.private_calls = process, calls
        self.load.count("calls with a process of one's own")


async def visits(load: Load, number: int, url: str) -> None:
    """A client from its first request to its last; every second one speaks the older protocol, and keeps a session."""
    try:
        async with Client(url, mode="legacy" if number % 2 else "auto", cache=None) as client:
            visitor = Visitor(load, number, client)
            await visitor.visit()
    except Exception as error:
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        load.wrong(f"client {number} ended with {error!r}")


# -- what is done to the servers, and what is seen of the gateway ------------------------------------------------------


async def kills(load: Load, every: float) -> None:
    """Kills one process of a server after another; now and then a private one."""
    while not load.stop:
        await asyncio.sleep(every)
        server = PRIVATE if load.rng.random() < 0.2 else load.name(load.rng.randrange(load.servers - 1))
        processes = processes_with(f"{load.marker}-{server}")
        if not processes:
            continue
        process = load.rng.choice(processes)
        load.killed[server] = time.monotonic()
        load.ended.add(process)
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        load.count("servers killed")


@dataclass
class Watched:
    """The gateway over time: its memory in MB, its open files and all processes."""

    pid: int
    marker: str
    seen: list[tuple[float, int, int]] = field(default_factory=list)

    def look(self) -> None:
        self.seen.append((memory_mb(self.pid), open_files(self.pid), len(processes_with(self.marker))))

    def judge(self, load: Load) -> None:
        then, now = self.seen[len(self.seen) // 3], self.seen[-1]
        if now[0] - then[0] > GROWTH_MB:
            load.wrong(f"the gateway grew from {then[0]:.0f} to {now[0]:.0f} MB")
        if now[1] > then[1] * 1.2 + 10:
            load.wrong(f"the gateway had {then[1]} open files, and {now[1]} at the end")


@contextmanager
def started(folder: Path, mcp_json: dict[str, Any]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A gateway over HTTP in a process of its own, and its address; it is told to end, and killed if it does not."""
    config = folder / "mcp.json"
    config.write_text(json.dumps(mcp_json), "utf-8")
    command = [sys.executable, "-c", SERVE, str(config), "--http", "--port", "0", "--mode", "bridge"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    drain = threading.Thread(target=process.stderr.read, daemon=True)  # a pipe that nobody reads would stop it
    try:
        url = next((line.split()[1] for line in process.stderr if line.startswith("Serving http")), "")
        if not url:
            raise RuntimeError("the gateway did not start")
        drain.start()
        yield process, url
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    finally:
        process.kill()
        process.wait()
        if drain.ident is not None:
            drain.join()
        process.stderr.close()


async def until(reached: Callable[[], bool], seconds: float) -> bool:
    """Whether something becomes true in time."""
    end = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.05)
    return True


async def all_answer(load: Load, url: str) -> None:
    """After all kills every server answers again."""
    async with Client(url, cache=None) as client:
        for number in range(load.servers - 1):
            name, end = f"{load.name(number)}__read_0", time.monotonic() + AWAY_SECONDS
            while True:
                result = await client.call_tool("call_tool", {"name": name, "arguments": {"key": "end"}})
                if not result.is_error:
                    break
                if time.monotonic() > end:
                    load.wrong(f"{load.name(number)} does not come back: {text_of(result)[:300]!r}")
                    break
                await asyncio.sleep(0.2)


async def run(load: Load, url: str, gateway: Watched, clients: int, seconds: float) -> None:
    """The whole: clients, kills and looks for so many seconds; then the end of all clients."""
    at_rest = load.servers - 1  # a private process is started only when somebody wants one
    if not await until(lambda: len(processes_with(load.marker)) >= at_rest, 60):
        load.wrong(f"after a minute {len(processes_with(load.marker))} of {at_rest} servers run")
    await all_answer(load, url)
    tasks = [asyncio.create_task(visits(load, number, url)) for number in range(clients)]
    if not await until(lambda: load.visiting == clients or load.stop, 120):
        load.wrong(f"after two minutes {load.visiting} of {clients} clients have been answered")
    tasks.append(asyncio.create_task(kills(load, max(seconds / 60, 0.4))))
    began = time.monotonic()
    while time.monotonic() < began + seconds and not load.stop:
        await asyncio.sleep(0.5)
        gateway.look()
    load.stop = True
    await asyncio.gather(*tasks)
    await all_answer(load, url)
    # The shared connection of the private server may be there as well, besides those of clients that have gone.
    if not await until(lambda: len(processes_with(load.marker)) <= load.servers, 20):
        load.wrong(f"{len(processes_with(load.marker))} processes are left of {load.servers} servers without clients")


def gateway(seconds: int = 60, clients: int = 50, servers: int = 20, tools: int = 25, seed: int = 1) -> Outcome:
    """So many clients for so many seconds, over so many servers with so many tools each."""
    load = Load(servers, tools, f"soak{secrets.token_hex(4)}", random.Random(seed))
    with tempfile.TemporaryDirectory() as folder:
        with started(Path(folder), load.config()) as (process, url):
            watched = Watched(process.pid, load.marker)
            asyncio.run(run(load, url, watched, clients, seconds))
        if not asyncio.run(until(lambda: not processes_with(load.marker), 15)):
            load.wrong(f"{len(processes_with(load.marker))} processes are left after the gateway has ended")
    watched.judge(load)
    memory, files, processes = zip(*watched.seen, strict=True)
    load.outcome.figures = {
        "clients": clients, "servers": servers, "tools": servers * tools, **load.counts,
        "MB at the beginning": round(memory[len(memory) // 3]), "MB at the end": round(memory[-1]),
        "open files then": files[len(files) // 3], "open files at the end": files[-1],
        "processes at most": max(processes),
        "ms a call (median)": round(median(load.call_ms or [0]), 1),
        "ms a search (median)": round(median(load.search_ms or [0]), 1),
    }  # fmt: skip
    return load.outcome
