"""The servers that the tests use do what they say, with the official client and without toolsearch."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.shared.exceptions import MCPError

from tests.mcp.servers import FOLDER, SECRET, entry, over_http

Test = Callable[[Client], Awaitable[None]]


def with_client(target: Any, test: Test, mode: str = "auto", **options: Any) -> None:
    """Runs `test` with the official client of one server, at most 30 seconds."""

    async def run() -> None:
        async with asyncio.timeout(30), Client(target, mode=mode, **options) as client:
            await test(client)

    asyncio.run(run())


def stdio(name: str, **options: object) -> StdioServerParameters:
    return StdioServerParameters(**entry(name, **options))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_everything_has_each_part_of_the_protocol_over_stdio(mode: str) -> None:
    async def test(client: Client) -> None:
        names = [each.name for each in (await client.list_tools()).tools]
        assert "media" in names
        kinds = [part.type for part in (await client.call_tool("media", {})).content]
        assert kinds == ["text", "image", "audio", "resource", "resource", "resource_link"]
        steps: list[float] = []

        async def told(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)

        await client.call_tool("progress", {"count": 4}, progress_callback=told)
        assert steps == [1, 2, 3, 4]
        assert len((await client.call_tool("big", {"count": 100_000})).content[0].text) == 100_000
        assert [each.name for each in (await client.list_prompts()).prompts] == ["weather"]
        assert (await client.list_resources()).next_cursor == "second"
        with pytest.raises(MCPError, match="refuses"):
            await client.call_tool("refuse", {})

    with_client(stdio("everything"), test, mode)


@pytest.mark.parametrize("sse", [False, True], ids=["streamable", "sse"])
def test_a_server_over_http_tells_connections_apart(sse: bool) -> None:
    with over_http("plain", sse=sse, tools=2) as served:
        target: Any = sse_client(served["url"]) if sse else served["url"]

        async def test(client: Client) -> None:
            said = (await client.call_tool("read_1", {"key": "k"})).structured_content
            assert said is not None
            assert (said["key"], said["in_connection"]) == ("k", 1)

        with_client(target, test, "legacy" if sse else "auto")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_changing_tells_of_its_changes(mode: str) -> None:
    heard = asyncio.Event()

    async def told(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            heard.set()

    async def test(client: Client) -> None:
        await client.call_tool("add", {"name": "secret"})
        if mode == "legacy":
            await heard.wait()
        names = [each.name for each in (await client.list_tools(cache_mode="refresh")).tools]
        assert "secret" in names

    with_client(stdio("changing"), test, mode, message_handler=told)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_asking_runs_only_what_was_accepted(mode: str) -> None:
    answers = [
        types.ElicitResult(action="decline"),
        types.ElicitResult(action="accept", content={"confirm": True}),
    ]

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        return answers.pop(0)

    async def test(client: Client) -> None:
        await client.call_tool("delete", {"name": "first"})
        await client.call_tool("delete", {"name": "second"})
        assert (await client.call_tool("deleted", {})).content[0].text == "second"

    with_client(stdio("asking"), test, mode, elicitation_callback=elicit)


def test_a_bad_start_says_the_secret_that_nobody_else_may_repeat() -> None:
    started = entry("dying", secret=SECRET)
    done = subprocess.run(
        [started["command"], *started["args"]], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, SECRET in done.stderr) == (3, True)


def test_an_entry_is_one_of_a_server_that_exists() -> None:
    with pytest.raises(ValueError, match="no server is called 'none'"):
        entry("none")
    assert entry("stuck", at="list", keep_alive=True, sse=False, http=None) == {
        "command": sys.executable,
        "args": [str(FOLDER), "stuck", "--at", "list", "--keep-alive"],
    }
