"""The servers of an `mcp.json` as a catalog, and a function that runs their tools."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolsearch import ToolCall, ToolSearch
from toolsearch.mcp import Servers

SERVER = str(Path(__file__).parent / "door_server.py")


def entry(*arguments: str, **options: object) -> dict[str, object]:
    return {"command": sys.executable, "args": [SERVER, *arguments], "toolsearch": options}


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    config = {"door": entry(), "old": entry(protocol="legacy"), "dead": {"command": "no-such-command"}}
    with Servers({"mcpServers": config}, connect_seconds=20) as started:
        yield started


async def result_of(servers: Servers, name: str, **arguments: object):
    search = ToolSearch(servers.catalog, run=servers.run, index="keyword", not_loaded="run")
    return await search.session().ahandle(ToolCall("1", name, arguments))


def test_a_dead_server_costs_only_its_own_tools_and_is_named(servers: Servers) -> None:
    """D08."""
    health = servers.health()
    assert {name: each.state for name, each in health.items()} == {"door": "ready", "old": "ready", "dead": "failed"}
    assert "no-such-command" in health["dead"].reason
    assert "no-such-command" in servers.catalog.missing["dead"]
    assert health["door"].tools == 10


@pytest.mark.parametrize("server", ["door", "old"])
def test_every_page_is_read_in_both_generations(servers: Servers, server: str) -> None:
    """D01: the server gives four tools a page."""
    assert {"echo", "weigh"} <= {tool.name for tool in servers.catalog if tool.server == server}


@pytest.mark.parametrize("server", ["door", "old"])
def test_a_result_keeps_its_parts_and_its_error(servers: Servers, server: str) -> None:
    """J23, K16."""
    picture = asyncio.run(result_of(servers, f"{server}/picture"))
    assert (picture.status, [type(part).__name__ for part in picture.parts]) == ("ok", ["TextPart", "ImagePart"])
    assert asyncio.run(result_of(servers, f"{server}/fail")).status == "failed"


def test_a_sync_program_waits_for_the_result(servers: Servers) -> None:
    search = ToolSearch(servers.catalog, run=servers.run, index="keyword", not_loaded="run")
    assert search.session().handle(ToolCall("1", "door/echo", {"text": "hi"})).content == "Echo: hi"
