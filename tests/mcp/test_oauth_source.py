"""A server that asks for a login: named, without a browser, and back once somebody has logged in (group B)."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.mcp.gateways import GENERATIONS, opened, text_of
from tests.mcp.oauth_servers import Protected, protected_server
from tests.mcp.servers import entry
from toolsearch import ToolCall, ToolResult, ToolSearch
from toolsearch.mcp import Servers
from toolsearch.mcp.gateway.http import http_app, listen, serve_http
from toolsearch.mcp.oauth.login import log_in
from toolsearch.mcp.oauth.store import LoginStore, login_key


@pytest.fixture(scope="module")
def running() -> Iterator[Protected]:
    with protected_server() as protected:
        yield protected


@pytest.fixture
def store(running: Protected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoginStore:
    """Where the servers look for logins. A browser that opens fails the test."""
    monkeypatch.setenv("TOOLSEARCH_LOGINS", "file")
    monkeypatch.setenv("TOOLSEARCH_STATE", str(tmp_path))
    monkeypatch.setattr("webbrowser.open", lambda *_: pytest.fail("a browser was opened unasked"))
    running.authorization.fails = None
    running.authorization.counts.clear()
    return LoginStore()


def config(running: Protected, **options: object) -> dict[str, object]:
    return {"mcpServers": {"notes": {"url": running.url, **options}}}


async def log_in_to(running: Protected, store: LoginStore) -> None:
    await log_in("notes", running.url, lambda url, _: running.approve(url), store=store)


async def until(servers: Servers, state: str) -> None:
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()
    end = servers.on_change(lambda *_: loop.call_soon_threadsafe(changed.set))
    async with asyncio.timeout(30):
        while servers.health()["notes"].state != state:
            await changed.wait()
            changed.clear()
    end()


def let_it_end(running: Protected, store: LoginStore) -> None:
    key = login_key("notes", running.url)
    login = store.load(key)
    assert login is not None
    shown = login.shown.model_copy(update={"expires_at": time.time() - 1})
    store.save(key, login.model_copy(update={"shown": shown}))
    running.authorization.end_access()


Call = Callable[[], Awaitable[ToolResult]]


def calls_of(servers: Servers) -> Call:
    search = ToolSearch(servers.catalog, run=servers.run, index="keyword", not_loaded="run")

    async def call() -> ToolResult:
        return await search.session().ahandle(ToolCall("1", "notes__read_note", {}))

    return call


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
def test_a_server_without_a_login_is_named_and_comes_once_somebody_has_logged_in(
    running: Protected, store: LoginStore, protocol: str
) -> None:
    """metamcp#142, mcphub#863: expired or missing logins are silent elsewhere."""

    async def check() -> None:
        other = {"mcpServers": {"plain": entry("plain")}}
        asked = config(running, toolsearch={"protocol": protocol})
        async with Servers(asked, other, connect_seconds=20) as servers:
            health = servers.health()
            assert (health["notes"].state, health["plain"].state) == ("needs login", "ready")
            assert "run toolsearch login notes" in health["notes"].reason
            search = ToolSearch(servers.catalog, run=servers.run, index="keyword")
            answer = await search.session().ahandle(ToolCall("1", "search_tools", {"queries": ["read my notes"]}))
            assert "toolsearch login notes" in answer.content
            await log_in_to(running, store)
            await until(servers, "ready")
            assert (await calls_of(servers)()).content == "a note"

    asyncio.run(check())


def test_trouble_of_the_authorization_server_costs_a_call_and_not_the_connection(
    running: Protected, store: LoginStore
) -> None:
    """bifrost#2557: a network blip locks out for good elsewhere."""

    async def check() -> None:
        await log_in_to(running, store)
        async with Servers(config(running), connect_seconds=20) as servers:
            call = calls_of(servers)
            assert (await call()).status == "ok"
            let_it_end(running, store)
            running.authorization.fails = 503
            failed = await call()
            assert (failed.status, "could not be renewed now" in failed.content) == ("failed", True)
            running.authorization.fails = None
            again = await call()
            assert (again.status, again.content) == ("ok", "a note")
            assert servers.health()["notes"].state == "ready"

    asyncio.run(check())


def test_a_login_that_ends_while_it_is_used_is_named_and_a_new_one_is_taken(
    running: Protected, store: LoginStore
) -> None:
    """metamcp#102, local-operator#185: tools that are gone in the morning, and no browser at start or exit."""

    async def check() -> None:
        await log_in_to(running, store)
        async with Servers(config(running), connect_seconds=20) as servers:
            call = calls_of(servers)
            assert (await call()).status == "ok"
            let_it_end(running, store)
            running.authorization.refresh.clear()
            failed = await call()
            assert (failed.status, "run toolsearch login notes" in failed.content) == ("failed", True)
            await until(servers, "needs login")
            assert "toolsearch login notes" in (await call()).content
            assert running.authorization.counts["refresh_token"] == 1
            await log_in_to(running, store)
            await until(servers, "ready")
            assert (await call()).content == "a note"

    asyncio.run(check())


def test_a_server_that_minds_calls_only_keeps_its_connection(running: Protected, store: LoginStore) -> None:
    """onyx#11278: the list of tools needs no login, a call does."""

    async def check() -> None:
        with protected_server(open_to_hello=True) as minding:
            async with Servers(config(minding), connect_seconds=20) as servers:
                call = calls_of(servers)
                since = servers.health()["notes"].since
                for _ in range(2):
                    assert "run toolsearch login notes" in (await call()).content
                await log_in_to(minding, store)
                assert (await call()).content == "a note"
                assert (servers.health()["notes"].state, servers.health()["notes"].since) == ("ready", since)

    asyncio.run(check())


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_client_of_the_gateway_never_sees_the_401_of_a_server(
    running: Protected, store: LoginStore, tmp_path: Path, generation: str
) -> None:
    """toolhive#4721: a client that gets a 401 begins a login of its own, at the wrong place."""
    statuses: list[int] = []

    async def note(response: httpx2.Response) -> None:
        statuses.append(response.status_code)

    async def ask(client: Client) -> tuple[str, str]:
        searched = await client.call_tool("search_tools", {"queries": ["read my notes"]})
        called = await client.call_tool("call_tool", {"name": "notes__read_note", "arguments": {}})
        return text_of(searched), text_of(called)

    async def check() -> None:
        async with opened(config(running)["mcpServers"], tmp_path, mode="bridge") as gateway:
            with listen("127.0.0.1", 0) as listening:
                url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
                serving = asyncio.create_task(serve_http(http_app(gateway, host="127.0.0.1"), listening))
                async with httpx2.AsyncClient(event_hooks={"response": [note]}) as http:
                    transport = streamable_http_client(url, http_client=http)
                    async with Client(transport, mode=generation) as client:
                        assert all("toolsearch login notes" in text for text in await ask(client))
                        await log_in_to(running, store)
                        await until(gateway.servers, "ready")
                        assert (await ask(client))[1] == "a note"
                        let_it_end(running, store)
                        running.authorization.refresh.clear()
                        assert "toolsearch login notes" in (await ask(client))[1]
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(check())
    assert 401 not in statuses


def test_a_token_of_the_entry_that_is_refused_is_no_question_of_a_login(running: Protected, store: LoginStore) -> None:
    async def check() -> None:
        with_token = config(running, headers={"Authorization": "Bearer made-up-token-1"})
        async with Servers(with_token, connect_seconds=20) as servers:
            health = servers.health()["notes"]
            assert (health.state, "refuses the token in its entry" in health.reason) == ("failed", True)
            assert "made-up-token-1" not in health.reason

    asyncio.run(check())
