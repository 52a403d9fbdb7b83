"""Resources and prompts of several servers behind one gateway, also where client and server speak other generations."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.mcp.gateways import GENERATIONS, client_of, opened, text_of
from tests.mcp.servers import entry, over_http
from toolsearch import ToolSearchError

Entry = dict[str, Any]
DEAD: Entry = {"command": "no-such-command"}


@pytest.fixture(scope="module")
def everything() -> Iterator[Entry]:
    with over_http("everything") as entry:
        yield entry


def speaking(entry: Entry, protocol: str) -> Entry:
    return {**entry, "toolsearch": {"protocol": protocol}}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_servers_with_the_same_resources_and_prompts_stay_apart(
    generation: str, everything: Entry, tmp_path: Path
) -> None:
    """D07 for all else that has a name; and a dead server costs only its own."""

    async def play() -> None:
        servers = {"one": everything, "dead": DEAD, "two": everything}
        async with opened(servers, tmp_path) as gateway, client_of(gateway, generation) as client:
            listed = [resource.uri for resource in (await client.list_resources()).resources]
            assert listed == ["test://note", "test://data", "mcp+two:test://note", "mcp+two:test://data"]
            templates = (await client.list_resource_templates()).resource_templates
            assert [t.uri_template for t in templates] == ["test://row/{number}", "mcp+two:test://row/{number}"]
            for address in ("mcp+two:test://note", "mcp+two:test://row/7", "test://row/7"):
                (content,) = (await client.read_resource(address)).contents
                assert content.uri == address.removeprefix("mcp+two:")
            prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
            assert prompts == ["one__weather", "two__weather"]
            for name in prompts:
                asked = await client.get_prompt(name, {"city": "Oslo"})
                assert "Oslo" in str(asked.messages[0].content)
                reference = types.PromptReference(type="ref/prompt", name=name)
                completed = await client.complete(reference, {"name": "city", "value": "Ber"})
                assert completed.completion.values == ["Berlin", "Bern", "Bergen"]
            with pytest.raises(MCPError, match="Unknown prompt: weather"):
                await client.get_prompt("weather", {"city": "Oslo"})  # it may be either
            with pytest.raises(MCPError, match="Resource not found"):
                await client.read_resource("test://nothing")

    asyncio.run(play())


@pytest.mark.parametrize("upstream", GENERATIONS)
@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_client_hears_of_a_resource_that_it_watches(
    generation: str, upstream: str, everything: Entry, tmp_path: Path
) -> None:
    async def play() -> None:
        told: asyncio.Queue[str] = asyncio.Queue()

        async def hear(message: object) -> None:
            if isinstance(message, types.ResourceUpdatedNotification):
                told.put_nowait(str(message.params.uri))

        async with (
            opened({"one": speaking(everything, upstream)}, tmp_path) as gateway,
            client_of(gateway, generation, message_handler=hear) as client,
        ):
            await client.list_resources()

            async def touched() -> None:
                for _ in range(50):  # the stream to the server may not be open yet
                    await client.read_resource("test://touch", cache_mode="bypass")
                    await asyncio.sleep(0.1)

            touching = asyncio.create_task(touched())
            if generation == "legacy":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    await client.subscribe_resource("test://note")
                assert await asyncio.wait_for(told.get(), 10) == "test://note"
            else:
                async with client.listen(resource_subscriptions=["test://note"]) as events:
                    event: Any = await asyncio.wait_for(anext(aiter(events)), 10)
                    assert event.uri == "test://note"
            touching.cancel()

    asyncio.run(play())


def test_a_server_that_hangs_delays_no_list_and_no_unknown_name_for_long(everything: Entry, tmp_path: Path) -> None:
    """Group D: 15 minutes, or 30 seconds, for one server that never answers. Here only a bounded wait, once."""

    async def play() -> None:
        servers = {"one": everything, "stuck": entry("stuck", at="initialize")}
        settings = {"mode": "bridge", "search_seconds": 0.2}
        async with (
            opened(servers, tmp_path, wait=False, **settings) as gateway,
            client_of(gateway, "legacy") as client,
        ):
            await gateway.servers.ready(20, ["one"])
            with anyio.fail_after(5):
                assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["one__weather"]
                assert len((await client.list_resources()).resources) == 2
                unknown = await client.call_tool("call_tool", {"name": "stuck__thing", "arguments": {}})
                assert "'stuck' (it is still connecting)" in text_of(unknown)
                found = await client.call_tool("search_tools", {"queries": ["select:stuck__thing"]})
                assert "'stuck'" in text_of(found)

    asyncio.run(play())


def test_clients_hear_of_what_a_server_has_that_comes_late(tmp_path: Path) -> None:
    async def play() -> None:
        told: set[str] = set()
        heard = asyncio.Event()

        async def hear(message: object) -> None:
            told.add(type(message).__name__)
            if {"PromptListChangedNotification", "ResourceListChangedNotification"} <= told:
                heard.set()

        servers = {"late": entry("everything", slow_start=1)}
        async with (
            opened(servers, tmp_path, wait=False, search_seconds=0.0) as gateway,
            client_of(gateway, "legacy", message_handler=hear) as client,
        ):
            assert (await client.list_prompts()).prompts == []
            await asyncio.wait_for(heard.wait(), 20)
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["late__weather"]

    asyncio.run(play())


def test_a_request_that_waits_for_its_server_ends_with_the_gateway(tmp_path: Path) -> None:
    """Group A: a wait for what will never come again must not keep a process, or a processor, busy."""

    async def play() -> None:
        servers = {"stuck": entry("stuck", at="initialize")}
        async with opened(servers, tmp_path, wait=False) as gateway:
            waiting = asyncio.create_task(gateway.servers.call("stuck", "thing"))
            await asyncio.sleep(0.3)
        with anyio.fail_after(10), pytest.raises((ToolSearchError, asyncio.CancelledError)):
            await waiting

    asyncio.run(play())
