"""What a gateway over HTTP keeps for a client ends with it: also when it only says goodbye, or never had a session."""

import asyncio
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from mcp import Client

from tests.mcp.servers import entry, processes_with
from tests.torture.gateway import SERVE, started, text_of, until
from toolsearch.mcp.gateway.http import listen


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
def test_a_process_of_a_client_ends_when_the_client_leaves_or_after_a_call_without_a_session(tmp_path: Path) -> None:
    """A, C: a client that ends its session leaves nothing; one of the newer protocol has none, and leaves nothing."""
    marker = f"sessions{secrets.token_hex(4)}"
    options = {"session": "client"}
    server = {**entry("quick", name="shop", tools=2, marker=marker), "toolsearch": options}
    call = {"name": "shop__read_0", "arguments": {"key": "k"}}

    async def visit(url: str, mode: str, times: int) -> list[list[str]]:
        async with Client(url, mode=mode, cache=None) as client:
            return [text_of(await client.call_tool("call_tool", call)).split()[4:] for _ in range(times)]

    async def visits(url: str) -> None:
        first, second = await visit(url, "legacy", 2)
        assert (first[2], second[2]) == ("1", "2")
        assert first[0] == second[0]
        once, again = await visit(url, "auto", 2)
        assert once[2] == again[2] == "1"
        assert len({first[0], once[0], again[0]}) == 3
        at_rest = 1  # the connection by which the tools were listed
        assert await until(lambda: len(processes_with(marker)) <= at_rest, 20)

    with started(tmp_path, {"mcpServers": {"shop": server}}) as (_, url):
        asyncio.run(visits(url))
    assert asyncio.run(until(lambda: not processes_with(marker), 20))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
@pytest.mark.parametrize("http", [False, True], ids=["stdio", "http"])
def test_a_signal_ends_the_gateway_and_its_servers_in_peace(tmp_path: Path, http: bool, number: signal.Signals) -> None:
    """A: Ctrl-C ends it also while the SDK waits for stdin, and nothing is left for the watch to end."""
    marker = f"signals{secrets.token_hex(4)}"
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"shop": entry("quick", name="shop", marker=marker)}}), "utf-8")
    folders = {"XDG_CACHE_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(config), *(["--http", "--port", "0"] if http else [])],
        env={**os.environ, **folders}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as gateway:  # fmt: skip
        try:
            assert asyncio.run(until((tmp_path / "toolsearch").exists, 60)), "nothing was kept of its server"
            gateway.send_signal(number)
            assert gateway.wait(60) == 128 + number
            assert processes_with(marker) == []
        finally:
            gateway.kill()
        assert gateway.stderr is not None
        assert "Traceback" not in gateway.stderr.read().decode()


def test_answers_over_http_are_sent_at_once() -> None:
    """O: asyncio turns Nagle's algorithm off only for sockets that name their protocol; it cost 40 ms an answer."""
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP
