"""Servers that others have published, from PyPI and npm: each is listed, found and called as the official client does.

`make mcp-servers` makes the environment that these tests need, and runs them in it.
"""

import asyncio
import http.server
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.servers.published import DEAD, HAS_NODE, IS_HERE, READS, WHY, published, read_of

if not IS_HERE:
    pytest.skip(WHY, allow_module_level=True)

import mcp_types as types
from mcp import Client, StdioServerParameters

from toolsearch import ToolCall, ToolSearch
from toolsearch.mcp import Servers
from toolsearch.mcp.gateway import Gateway

MARK = "TOOLSEARCH_TEST_OF_PUBLISHED_SERVERS"
SERVERS = [name for name in READS if HAS_NODE or name not in ("everything", "filesystem", "memory", "thinking")]


def marked_processes(mark: str) -> list[int]:
    """The processes that were started with the mark in their environment, zombies not counted."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            environment, state = (each / "environ").read_bytes(), (each / "stat").read_text("utf-8")
        except OSError:
            continue
        if f"{MARK}={mark}".encode() in environment and state.rpartition(")")[2].split()[0] != "Z":
            found.append(int(each.name))
    return found


def marked(entries: dict[str, dict[str, Any]], mark: str) -> dict[str, dict[str, Any]]:
    return {name: {**entry, "env": {**entry.get("env", {}), MARK: mark}} for name, entry in entries.items()}


def all_gone(mark: str, seconds: float = 30) -> bool:
    """Whether the processes of a mark end; that takes a moment."""
    end = time.monotonic() + seconds
    while marked_processes(mark) and time.monotonic() < end:
        time.sleep(0.05)
    return not marked_processes(mark)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("published")


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[Servers]:
    entries = marked(published(folder), str(folder))
    with Servers({"mcpServers": entries}, connect_seconds=60) as started:
        yield started
    assert all_gone(str(folder))


def plain(result: types.CallToolResult) -> dict[str, Any]:
    return result.model_dump(by_alias=True, exclude_none=True, mode="json")


async def directly(entry: dict[str, Any], tool: str, arguments: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The definitions and the result as the official client gets them."""
    async with asyncio.timeout(60), Client(StdioServerParameters(**entry)) as client:
        listed = await client.list_tools()
        assert listed.next_cursor is None
        definitions = [each.model_dump(by_alias=True, exclude_unset=True, mode="json") for each in listed.tools]
        return definitions, plain(await client.call_tool(tool, arguments))


def test_all_are_ready_but_the_dead_one_which_is_named(servers: Servers) -> None:
    health = servers.health()
    states = {name: each.state for name, each in health.items()}
    dead = states.pop(DEAD)
    assert dead != "ready"
    assert "list_resources" in health[DEAD].reason  # the last words of its stderr
    assert set(states.values()) == {"ready"}, health
    assert not servers.catalog.quarantined
    assert len(servers.catalog) == sum(each.tools for each in health.values())


def test_a_search_finds_their_tools_and_says_what_is_missing(servers: Servers) -> None:
    search = ToolSearch(servers.catalog, run=servers.run)
    for query, wanted in (
        ("what time is it in another timezone", "time/get_current_time"),
        ("show the history of commits", "git/git_log"),
        ("download a web page as markdown", "fetch/fetch"),
        ("evaluate an arithmetic expression", "calculator/calculate"),
    ):
        assert wanted in [hit.tool.id for hit in search.find(query, 3)], query
    found = search.session().handle(ToolCall("1", "search_tools", {"queries": ["run a query on sqlite"]})).content
    assert f"'{DEAD}'" in found or f"{DEAD} " in found, found


@pytest.mark.parametrize("server", SERVERS)
def test_definitions_and_results_are_what_the_official_client_gets(servers: Servers, folder: Path, server: str) -> None:
    tool, arguments, found = read_of(server, folder)
    definitions, direct = asyncio.run(directly(published(folder)[server], tool, arguments))
    ours = [dict(servers.definition(each)) for each in servers.catalog if each.server == server]
    assert {each["name"]: each for each in ours} == {each["name"]: each for each in definitions}
    result = asyncio.run(servers.call(server, tool, arguments))
    assert plain(result) == direct
    assert found in json.dumps(direct)
    ran = ToolSearch(servers.catalog, run=servers.run, not_loaded="run").session()
    answer = ran.handle(ToolCall("1", f"{server}__{tool}", arguments))
    assert (answer.status, found in answer.content) == ("ok", True)


def test_through_the_gateway_definitions_and_results_are_the_same(servers: Servers, folder: Path) -> None:
    """E: of all servers at once, by the name that the gateway lists, and through the door of its kind."""

    async def compare() -> None:
        entries = marked(published(folder), str(folder))
        async with Gateway({"mcpServers": entries}, mode="all", confirm="never") as gateway:
            await gateway.servers.ready(60)
            # The older protocol: the newer one has no place for `execution`, which some definitions have.
            async with asyncio.timeout(120), Client(gateway.server, mode="legacy", cache=None) as client:
                await same_definitions(client, servers)
                for server in set(SERVERS) - {"thinking"}:  # it counts its calls: no two answers are the same
                    await same_result(client, servers, server, read_of(server, folder))

    asyncio.run(compare())


async def same_result(client: Client, servers: Servers, server: str, read: tuple[str, dict[str, Any], str]) -> None:
    """By name and through a door, a call gives what the server gives."""
    tool, arguments, _ = read
    direct = plain(await servers.call(server, tool, arguments))
    name = f"{server}__{tool}"
    is_read = servers.catalog.get(f"{server}/{tool}").kind == "read"
    by_name = plain(await client.call_tool(name, arguments))
    door = "call_tool" if is_read else "call_action"
    through = plain(await client.call_tool(door, {"name": name, "arguments": arguments}))
    for key in ("content", "structuredContent", "isError"):
        assert by_name.get(key) == through.get(key) == direct.get(key), (server, key)


async def same_definitions(client: Client, servers: Servers) -> None:
    """A gateway that lists everything lists what the servers sent, but for the names."""
    listed = [
        each.model_dump(by_alias=True, exclude_unset=True, mode="json") for each in (await client.list_tools()).tools
    ]
    by_name = {each["name"]: each for each in listed}
    for tool in servers.catalog:
        sent = dict(servers.definition(tool))
        assert by_name[f"{tool.server}__{sent['name']}"] == {**sent, "name": f"{tool.server}__{sent['name']}"}


def test_fetch_reads_a_page_of_this_machine(servers: Servers, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<html><body><h1>Heading</h1><p>Some text.</p></body></html>", "utf-8")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, *args: Any) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as web:
        threading.Thread(target=web.serve_forever).start()
        url = f"http://127.0.0.1:{web.server_port}/page.html"
        result = asyncio.run(servers.call("fetch", "fetch", {"url": url}))
        web.shutdown()
    assert "Some text." in json.dumps(plain(result))


@pytest.mark.skipif(not HAS_NODE, reason="needs npm: see `make mcp-servers`")
def test_media_of_a_published_server_stay_what_they_are(servers: Servers) -> None:
    search = ToolSearch(servers.catalog, run=servers.run, not_loaded="run")
    image = search.session().handle(ToolCall("1", "get-tiny-image", {}))
    assert [type(part).__name__ for part in image.parts] == ["TextPart", "ImagePart", "TextPart"]
    failed = search.session().handle(ToolCall("1", "filesystem__read_text_file", {"path": "/etc/passwd"}))
    assert failed.status == "failed"
    assert "denied" in failed.content


PARENT = """
import json, sys, time
from toolsearch.mcp import Servers
from toolsearch.mcp.gateway import Gateway
servers = Servers(json.load(open(sys.argv[1])), connect_seconds=60).start()
print(sum(each.is_ready for each in servers.health().values()), flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
def test_kill_9_of_the_parent_leaves_none_of_them(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": marked(published(folder), str(tmp_path))}), "utf-8")
    with subprocess.Popen([sys.executable, "-c", PARENT, config], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert int(parent.stdout.readline()) == len(SERVERS) + 1
        assert len(marked_processes(str(tmp_path))) > len(SERVERS)
        os.kill(parent.pid, 9)
    assert all_gone(str(tmp_path))


def test_the_example_of_a_gateway_shows_what_it_is_about(tmp_path: Path) -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "gateway.py"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    at = 0
    for protocol, mode in (("2025-11-25", "legacy"), ("2026-07-28", "auto")):
        for text in (
            f"protocol {protocol}\n",
            "listed: search_tools, fetch_result\n",
            "found: Loaded",
            "told that the list has changed: search_tools, fetch_result, time__convert_time, git__git_create_branch",
            'read: { "source": { "timezone": "UTC"',
            "says decline\n",
            "'git__git_create_branch' did not run: the user declined.",
            "says accept\n",
            f"answer: Created branch 'second-{mode}' from 'main'\n",
        ):
            at = done.stdout.find(text, at)
            assert at >= 0, f"{text!r} is not shown, or not in its place:\n{done.stdout}"
    assert done.stdout.endswith("branches: main second-auto second-legacy\n")
    assert list(tmp_path.iterdir()) == []
