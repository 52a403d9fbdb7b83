"""A gateway between real servers and real clients, in both generations of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.gateways import GENERATIONS, Person, client_of, opened, text_of, through
from tests.mcp.servers import over_http

every_generation = pytest.mark.parametrize("generation", GENERATIONS)
Servers = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """Servers over HTTP, so that each gateway only connects to them."""
    with over_http("everything") as every, over_http("asking") as ask, over_http("plain", tools=30) as plain:
        yield {"every": every, "ask": ask, "plain": plain, "dead": {"command": "no-such-command"}}


@every_generation
def test_a_model_searches_and_calls_through_two_doors(generation: str, servers: Servers, tmp_path: Path) -> None:
    """Groups D, F and J of the complaints: names in the description, a dead server named, doors with right hints."""

    async def play() -> None:
        async with opened(servers, tmp_path) as gateway, client_of(gateway, generation) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools) == ["search_tools", "call_tool", "call_action", "fetch_result"]
            told = tools["search_tools"].description or ""
            assert "every (19), ask (2), plain (30)" in told
            assert "Cannot be used now: dead (failed)." in told
            reads, acts = tools["call_tool"].annotations, tools["call_action"].annotations
            assert reads is not None
            assert acts is not None
            assert (reads.read_only_hint, reads.destructive_hint) == (True, False)
            assert (acts.read_only_hint, acts.destructive_hint) == (False, True)
            assert (tools["search_tools"].meta or {})["anthropic/alwaysLoad"] is True

            found = text_of(await client.call_tool("search_tools", {"queries": ["temperature", "delete a file"]}))
            assert "- every__structured (every): Gives the temperature" in found
            assert "- ask__delete (ask) (action): Deletes a file" in found
            assert "call_tool, or call_action where it says (action)" in found
            result = await through(client, "call_tool", "every__structured")
            deep = {"list": [1, 2, {"ü": True}]}
            assert result.structured_content == {"celsius": 17.5, "nothing": None, "deep": deep}
            missed = text_of(await client.call_tool("search_tools", {"queries": ["rows of the dead database"]}))
            assert "'dead' cannot be reached now" in missed

    asyncio.run(play())


@every_generation
def test_an_action_needs_its_door_and_the_word_of_a_person(generation: str, servers: Servers, tmp_path: Path) -> None:
    """PG-17: what is not accepted is denied, and the text stops the model from trying again."""

    async def play() -> None:
        person = Person(["decline", "cancel", "accept"], content={"confirm": True})
        async with opened(servers, tmp_path) as gateway, client_of(gateway, generation, person) as client:
            wrong = await through(client, "call_tool", "ask__delete", name="a")
            assert wrong.is_error
            assert "Call it through call_action" in text_of(wrong)
            assert "through call_action" in text_of(await client.call_tool("ask__delete", {"name": "a"}))
            declined = await through(client, "call_action", "ask__delete", name="a")
            assert declined.is_error
            assert "the user declined. Do not call it again unless the user asks for it" in text_of(declined)
            assert "the user gave no answer" in text_of(await through(client, "call_action", "ask__delete", name="a"))
            name = f"file of {generation}"
            assert "a" not in text_of(await through(client, "call_tool", "ask__deleted")).split()
            done = await through(client, "call_action", "ask__delete", name=name)
            assert text_of(done) == f"deleted {name}"
            # The gateway asks, with the arguments; then the server asks on its own.
            own = f"The server 'ask' asks, while ask/delete runs: Delete {name}?"
            assert person.asked[2:] == [f'Run ask/delete with {{"name": "{name}"}}?', own]

    asyncio.run(play())


@every_generation
def test_a_client_that_cannot_ask_has_its_own_permissions_or_none(
    generation: str, servers: Servers, tmp_path: Path
) -> None:
    """PG-17: no capability is a denial, unless the person who runs the gateway leaves actions to the client."""

    async def play() -> None:
        for settings, allowed in (({}, False), ({"confirm": "auto"}, True), ({"confirm": "never"}, True)):
            async with opened(servers, tmp_path, **settings) as gateway, client_of(gateway, generation) as client:
                kept = await through(client, "call_action", "every__remember", text="x")
                assert (not kept.is_error) == allowed
                if not allowed:
                    assert "this client cannot ask. Do not call it again" in text_of(kept)
                    assert "--confirm auto" in text_of(kept)
                    assert 'beside mcpServers: "toolsearch": {"allow": ["every/remember"]}' in text_of(kept)
        asks = {**servers, "every": {**servers["every"], "toolsearch": {"ask": ["echo"], "deny": ["big*"]}}}
        async with opened(asks, tmp_path) as gateway, client_of(gateway, generation) as client:
            kept = await through(client, "call_tool", "every__echo", text="x")
            assert "a person has to agree" in text_of(kept)
            assert "take the pattern 'echo' in 'ask' of the server 'every' out of the gateway's" in text_of(kept)
            denied = text_of(await through(client, "call_tool", "every__big"))
            assert denied.endswith("the configuration of this gateway denies it. Do not try it again.")
            found = text_of(await client.call_tool("search_tools", {"queries": ["gives so many characters"]}))
            assert "every__big" not in found

    asyncio.run(play())


@every_generation
def test_a_listed_name_can_be_called_by_exactly_that_name(generation: str, servers: Servers, tmp_path: Path) -> None:
    """D14; and D15: a client with the list of another mode is told so."""

    async def play() -> None:
        named = {"my server": servers["every"], "plain": servers["plain"]}
        async with opened(named, tmp_path, mode="all") as gateway, client_of(gateway, generation) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert len(names) == 50
            echo = next(name for name in names if "__echo_" in name)
            assert text_of(await client.call_tool(echo, {"text": "hi"})) == "hi"
            for name in names:
                if any(f"__{each}" in name for each in ("media", "fail", "recall", "cancelled")):
                    assert "there is no such tool" not in text_of(await client.call_tool(name, {}))
            off = await client.call_tool("search_tools", {"queries": ["echo"]})
            assert off.is_error
            assert "'search_tools' is off: every tool is listed already. Refresh the list" in text_of(off)

    asyncio.run(play())


@every_generation
def test_the_instructions_are_true_though_the_mode_is_chosen_later(
    generation: str, servers: Servers, tmp_path: Path
) -> None:
    """In `auto` the first client is told of both ways; in `all`, no door for actions is listed, and none is named."""

    async def play() -> None:
        for name, first in (("ask", "The name of each tool begins"), ("plain", "More tools exist than are listed")):
            async with opened({name: servers[name]}, tmp_path, mode="auto") as gateway:
                async with client_of(gateway, generation) as client:
                    assert (client.instructions or "").startswith("If search_tools is listed, more tools exist")
                    listed = [tool.name for tool in (await client.list_tools()).tools]
                    assert ("search_tools" in listed) == (name == "plain")
                    if name == "ask":
                        wrong = text_of(await through(client, "call_tool", "ask__delete", name="a"))
                        assert "Call it by its own name, ask__delete, with the same arguments" in wrong
                async with client_of(gateway, generation) as client:
                    assert (client.instructions or "").startswith(first)

    asyncio.run(play())


@every_generation
def test_found_tools_join_the_list_in_the_mode_live(generation: str, servers: Servers, tmp_path: Path) -> None:
    async def play() -> None:
        told = asyncio.Event()

        async def hear(message: object) -> None:
            if "ToolListChanged" in type(message).__name__:
                told.set()

        async with (
            opened(servers, tmp_path, mode="live") as gateway,
            client_of(gateway, generation, message_handler=hear) as client,
        ):
            assert [t.name for t in (await client.list_tools()).tools] == ["search_tools", "fetch_result"]
            if generation == "legacy":
                await client.call_tool("search_tools", {"queries": ["temperature"]})
                await asyncio.wait_for(told.wait(), 5)
            else:
                async with client.listen(tools_list_changed=True) as events:
                    await client.call_tool("search_tools", {"queries": ["temperature"]})
                    await anext(aiter(events))
            listed = (await client.list_tools(cache_mode="refresh")).tools
            assert [t.name for t in listed] == ["search_tools", "fetch_result", "every__structured"]
            assert listed[2].output_schema == {"type": "object", "title": "Weather"}
            assert (await client.call_tool("every__structured")).structured_content is not None
            late = await client.call_tool("ask__delete", {"name": "x"})
            assert "It is listed now" in text_of(late)

    asyncio.run(play())
