"""`toolsearch serve` as clients start it: over stdin and stdout, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import typer
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from typer.testing import CliRunner

from tests.mcp.gateways import GENERATIONS, Person, opened, text_of, through
from tests.mcp.servers import SECRET, entry, over_http, processes_with
from toolsearch import SetupError
from toolsearch.mcp.commands.serve import serve
from toolsearch.mcp.gateway.gateway import Gateway
from toolsearch.mcp.gateway.http import http_app, is_loopback, listen, serve_http
from toolsearch.mcp.gateway.saved_catalog import SavedCatalog
from toolsearch.mcp.gateway.settings import GatewaySettings
from toolsearch.support.private_files import cache_folder

every_generation = pytest.mark.parametrize("generation", GENERATIONS)
COMMAND = "import typer; from toolsearch.mcp.commands.serve import serve; typer.run(serve)"


@pytest.fixture(scope="module")
def everything() -> Iterator[dict[str, Any]]:
    with over_http("everything") as entry:
        yield entry


def written(folder: Path, servers: dict[str, Any], **options: Any) -> Path:
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers, "toolsearch": {"index": "keyword", **options}}), "utf-8")
    return file


def command(file: Path, *arguments: str) -> StdioServerParameters:
    kept = {"XDG_CACHE_HOME": str(file.parent / "cache"), "XDG_STATE_HOME": str(file.parent / "state")}
    return StdioServerParameters(
        command=sys.executable, args=["-c", COMMAND, str(file), *arguments], env={**os.environ, **kept}
    )


# -- stdin and stdout --------------------------------------------------------------------------------------------------


def test_a_second_start_answers_from_what_the_first_one_kept(tmp_path: Path) -> None:
    """Group O: the list and the search are there before a server is. A call waits for its server."""
    slow = entry("everything", slow_start=1, marker="slow-one")
    file = written(tmp_path, {"every": slow}, mode="bridge")

    async def play() -> tuple[str, str, str]:
        async with Client(command(file), mode="legacy") as client:
            listed = (await client.list_tools()).tools[0].description or ""
            found = text_of(await client.call_tool("search_tools", {"queries": ["temperature"]}))
            return listed, found, text_of(await through(client, "call_tool", "every__echo", text="hi"))

    first = asyncio.run(play())
    assert first[2] == "hi"
    second = asyncio.run(play())
    assert "every (19)" in second[0]
    assert "every__structured" in second[1]
    assert second[2] == "hi"
    assert processes_with("slow-one") == []


def test_nothing_but_the_protocol_stands_on_stdout(tmp_path: Path) -> None:
    """Also where a server writes noise, and where the gateway has something to say."""
    file = written(tmp_path, {"noisy": entry("raw"), "dead": {"command": "no-such-command"}})

    async def play() -> tuple[bytes, bytes]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", COMMAND, str(file), "--verbose", env=command(file).env,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        lines = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        ]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(json.dumps(each) + "\n" for each in lines).encode())
        await process.stdin.drain()
        out = b""
        while b'"id":2' not in out:
            out += await asyncio.wait_for(process.stdout.readline(), 30)
        process.stdin.close()
        rest, errors = await asyncio.wait_for(process.communicate(), 20)
        return out + rest, errors

    out, errors = asyncio.run(play())
    assert [json.loads(line)["jsonrpc"] for line in out.splitlines()] == ["2.0"] * len(out.splitlines())
    assert b"no-such-command" in errors


def test_what_cannot_be_served_is_said_on_stderr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D08: a server that is required, and is not there, ends the start; so does what cannot be read."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    app = typer.Typer()
    app.command()(serve)
    file = written(tmp_path, {"dead": {"command": "no-such-command", "toolsearch": {"required": True}}})
    listening = listen("127.0.0.1", 0)
    taken = listening.getsockname()[1]
    for arguments, told in (
        ([str(file)], "'dead': there is no command 'no-such-command'"),
        ([str(tmp_path / "missing.json")], "there is no file"),
        ([str(file), "--mode", "sideways"], "mode must be 'auto', 'bridge', 'live' or 'all', not 'sideways'"),
        ([str(file), "--http", "--token-file", str(tmp_path / "none")], "cannot be read"),
        ([str(file), "--http", "--host", "0.0.0.0"], "is reached from other machines"),
        ([str(file), "--http", "--port", "99999"], "--port must be a number from 0 to 65535, not 99999"),
        ([str(file), "--http", "--port", str(taken)], "; pass another one with --port"),
        ([str(file), "--port", "0"], "--port needs --http"),
        ([str(file), "--origin", "http://a.example"], "--origin needs --http"),
        ([str(file), "--result-tokens", "0"], "(--result-tokens) must be a whole number of at least 500, not 0"),
        ([str(file), "--log", str(tmp_path)], f"the log of --log {str(tmp_path)!r} cannot be written"),
    ):
        result = CliRunner().invoke(app, arguments)
        assert (result.exit_code, result.stdout) == (2, ""), arguments
        assert told in result.stderr
    listening.close()


def test_the_help_of_serve_names_the_defaults() -> None:
    app = typer.Typer()
    app.command()(serve)
    helps = {each.name: getattr(each, "help", "") for each in typer.main.get_command(app).params}
    settings = GatewaySettings()
    assert "auto, which chooses: the default" in helps["mode"]
    assert f"{settings.confirm} (the default)" in helps["confirm"]
    assert f"{settings.index} by default" in helps["index"]
    assert f"{settings.result_tokens} by default" in helps["result_tokens"]


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_what_is_kept_holds_no_secret_and_is_readable_for_its_owner_alone(tmp_path: Path) -> None:
    leaky = {**entry("plain", tools=1), "env": {"API_TOKEN": SECRET}}
    file = written(tmp_path, {"plain": entry("plain", tools=2), "leaky": leaky})

    async def play() -> None:
        async with Gateway(file, cache_folder=tmp_path / "cache") as gateway:
            await gateway.servers.ready(20)
            with anyio.fail_after(10):
                while len(SavedCatalog([file], tmp_path / "cache").of(gateway.servers.config)) < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            saved = SavedCatalog([file], tmp_path / "cache")
            tells = [{"name": "t", "description": f"the key is {SECRET}", "inputSchema": {"type": "object"}}]
            saved.put(gateway.servers.config, "leaky", tells, None)
            assert saved.of(gateway.servers.config).keys() == {"plain"}

    asyncio.run(play())
    (kept,) = (tmp_path / "cache" / "gateway").iterdir()
    assert SECRET not in kept.read_text("utf-8")
    if sys.platform != "win32":
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_the_configuration_is_read_again_and_never_written(everything: dict[str, Any], tmp_path: Path) -> None:
    """Group G: a server that is added is there without a restart; one that is taken out does not come back."""
    file = written(tmp_path, {"every": everything})

    async def play() -> None:
        async with opened(file, tmp_path, mode="all") as gateway, Client(gateway.server, mode="legacy") as client:

            async def names() -> set[str]:
                return {t.name.partition("__")[0] for t in (await client.list_tools(cache_mode="refresh")).tools}

            assert await names() == {"fetch_result", "every"}
            for servers, expected in (
                ({"every": everything, "again": everything}, {"fetch_result", "every", "again"}),
                ({"again": everything}, {"fetch_result", "again"}),
            ):
                text = written(tmp_path, servers).read_text("utf-8")
                for _ in range(150):
                    if await names() == expected:
                        break
                    await asyncio.sleep(0.1)
                assert await names() == expected
                assert file.read_text("utf-8") == text
            file.write_text("{ half of a file", "utf-8")
            await asyncio.sleep(1.3)
            assert await names() == {"fetch_result", "again"}

    asyncio.run(play())


# -- HTTP --------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def served(gateway: Gateway, token: str = "") -> AsyncGenerator[str]:
    with listen("127.0.0.1", 0) as listening:
        serving = asyncio.create_task(serve_http(http_app(gateway, token=token), listening))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            serving.cancel()
            await asyncio.wait([serving])


@every_generation
def test_clients_over_http_have_their_own_sessions(generation: str, everything: dict[str, Any], tmp_path: Path) -> None:
    """Group C: what one client was shown, and what is kept for it, is no other's."""

    async def play() -> None:
        own = {**entry("everything"), "toolsearch": {"session": "client"}}
        async with (
            opened({"own": own}, tmp_path, mode="bridge", confirm="never") as gateway,
            served(gateway) as url,
            Client(url, mode=generation) as one,
            Client(url, mode=generation) as two,
        ):
            big = text_of(await through(one, "call_tool", "own__big", count=60_000))
            key = re.findall(r'"key": "(\w+)"', big)[-1]
            page = await two.call_tool("fetch_result", {"key": key, "page": 2})
            assert page.is_error == (generation == "legacy")  # a client without sessions has its key alone
            if generation == "legacy":
                await through(one, "call_action", "own__remember", text="mine")
                assert text_of(await through(two, "call_tool", "own__recall")) == ""
                assert text_of(await through(one, "call_tool", "own__recall")) == "mine"

    asyncio.run(play())


@every_generation
def test_a_person_is_asked_over_http_too(generation: str, tmp_path: Path) -> None:
    """The newer protocol has no session: the answer comes with another request, and finds the call that waits."""

    async def play() -> None:
        person = Person(["accept"], content={"confirm": True})
        with over_http("asking") as ask:
            async with (
                opened({"ask": ask}, tmp_path, mode="bridge") as gateway,
                served(gateway) as url,
                Client(url, mode=generation, elicitation_callback=person) as client,
            ):
                done = await through(client, "call_action", "ask__delete", name="it")
                assert text_of(done) == "deleted it"
                own = "The server 'ask' asks, while ask/delete runs: Delete it?"
                assert person.asked == ['Run ask/delete with {"name": "it"}?', own]

    asyncio.run(play())


def test_requests_of_pages_elsewhere_and_without_the_token_are_refused(
    everything: dict[str, Any], tmp_path: Path
) -> None:
    """Group B: our 401 says whose it is, and sends nobody to an authorization server."""

    async def play() -> None:
        async with opened({"every": everything}, tmp_path) as gateway, served(gateway, token="right") as url:
            async with httpx2.AsyncClient() as http:
                head = {"Accept": "application/json, text/event-stream", "Authorization": "Bearer right"}
                ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
                for wrong in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic right"}):
                    answer = await http.post(url, json=ping, headers=wrong)
                    assert answer.status_code == 401
                    assert "resource_metadata" not in answer.headers["WWW-Authenticate"]
                    assert "its own token" in answer.text
                assert (
                    await http.post(url, json=ping, headers={**head, "Origin": "http://evil.example"})
                ).status_code == 403
                assert (await http.post(url, json=ping, headers={**head, "Host": "evil.example"})).status_code == 421
            async with (
                httpx2.AsyncClient(headers={"Authorization": "Bearer right"}) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                assert (await client.list_tools()).tools

    asyncio.run(play())


def test_an_address_beyond_loopback_needs_a_token(everything: dict[str, Any], tmp_path: Path) -> None:
    gateway = Gateway({"mcpServers": {"every": everything}}, cache_folder=tmp_path)
    assert [is_loopback(each) for each in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.com")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    with pytest.raises(SetupError, match="reached from other machines"):
        http_app(gateway, host="0.0.0.0")


def test_a_relative_cache_folder_of_the_environment_is_ignored_as_the_standard_says(tmp_path: Path) -> None:
    """Else what is kept would lie in whatever folder the client starts the gateway in."""
    for given in ("", "here", "./here"):
        found = cache_folder({"XDG_CACHE_HOME": given}, tmp_path, "linux")
        assert found == tmp_path / ".cache" / "toolsearch"
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path)}, None, "linux") == tmp_path / "toolsearch"
