"""The servers of an `mcp.json` as a catalog, and a function that runs their tools."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from tests.mcp.servers import SECRET, entry, over_http
from toolsearch import Caller, SetupError, StateError, ToolCall, ToolResult, ToolSearch, tool
from toolsearch.mcp import Servers

BOTH = pytest.mark.parametrize("server", ["new", "old", "web", "events"])


def with_options(server: dict[str, object], **options: object) -> dict[str, object]:
    return {**server, "toolsearch": options}


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """The same server over both transports and in both generations, one that cannot start, and one that hangs."""
    with over_http("everything") as web, over_http("everything", sse=True) as events:
        config = {
            "new": entry("everything"),
            "old": with_options(entry("everything"), protocol="legacy"),
            "web": web,
            "events": events,
            "dead": {"command": "no-such-command"},
            "ends": {**entry("dying"), "env": {"API_KEY": SECRET}},
            "hangs": with_options(entry("stuck", at="initialize", keep_alive=True), connect_seconds=3),
            "off": {"command": "no-such-command", "disabled": True},
        }
        with Servers({"mcpServers": config}, connect_seconds=20, root="/") as started:
            yield started


def search_over(servers: Servers) -> ToolSearch:
    return ToolSearch(servers.catalog, run=servers.run, index="keyword", not_loaded="run")


def result_of(servers: Servers, name: str, **arguments: object) -> ToolResult:
    async def call() -> ToolResult:
        return await search_over(servers).session().ahandle(ToolCall("1", name, arguments))

    return asyncio.run(call())


def test_a_server_that_fails_costs_only_its_own_tools_and_is_named(servers: Servers) -> None:
    """D08, D13: one has no command, one ends at once, one sends keep-alives and never an answer."""
    health = servers.health()
    assert {name: each.state for name, each in health.items()} == {
        **dict.fromkeys(["new", "old", "web", "events"], "ready"),
        **dict.fromkeys(["dead", "ends", "hangs"], "failed"),
        "off": "disabled",
    }
    assert "there is no command 'no-such-command'" in health["dead"].reason
    assert health["hangs"].reason == "no answer in time"
    assert servers.catalog.missing.keys() == {"dead", "ends", "hangs"}
    assert health["new"].tools == health["events"].tools == sum(tool.server == "new" for tool in servers.catalog)


def test_no_secret_of_the_configuration_is_told(servers: Servers, caplog: pytest.LogCaptureFixture) -> None:
    reason = servers.health()["ends"].reason
    assert "fatal: cannot log in with the key [redacted]" in reason
    assert SECRET not in repr(servers.health()) + repr(servers.config) + repr(servers.catalog.missing)


@BOTH
def test_a_result_keeps_its_parts_and_its_error(servers: Servers, server: str) -> None:
    """J23, K16."""
    media = result_of(servers, f"{server}/media")
    kinds = [type(part).__name__ for part in media.parts]
    assert kinds == ["TextPart", "ImagePart", "AudioPart", "ResourcePart", "ResourcePart", "ResourcePart"]
    assert media.data.content[0].meta == {"example.com/kept": {"deep": [1, None, "ü"]}}
    failed = result_of(servers, f"{server}/fail")
    assert (failed.status, failed.content) == ("failed", "the disk is full")
    refused = result_of(servers, f"{server}/refuse")
    assert (refused.status, refused.content) == (
        "failed",
        f"'refuse' failed: the server '{server}' answered: the server refuses.",
    )


@BOTH
def test_an_output_schema_and_hints_are_kept_and_count_in_the_digest(servers: Servers, server: str) -> None:
    tool = servers.catalog[f"{server}/structured"]
    assert tool.output_schema == {"type": "object", "title": "Weather"}
    assert tool.annotations["readOnlyHint"] is True
    assert tool.kind == "read"
    assert servers.catalog[f"{server}/die"].kind == "action"
    assert servers.definition(tool)["title"] == "Structured"


@BOTH
def test_progress_and_cancellation_pass(servers: Servers, server: str) -> None:
    steps: list[float] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async def run() -> int:
        await servers.call(server, "progress", {"count": 4}, progress=told)
        before = (await servers.call(server, "cancelled")).structured_content["cancelled"]
        waiting = asyncio.create_task(servers.call(server, "sleep", {"seconds": 60}))
        await asyncio.sleep(0.3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        for _ in range(50):
            count = (await servers.call(server, "cancelled")).structured_content["cancelled"]
            if count > before:
                break
            await asyncio.sleep(0.05)
        return count - before

    assert asyncio.run(run()) == 1
    assert steps == [1, 2, 3, 4]


def test_a_call_has_a_time_limit_in_all(servers: Servers) -> None:
    """D13."""
    with pytest.raises(Exception, match=r"the server 'new' gave no answer within 0\.3 s, and was told to stop"):
        asyncio.run(servers.call("new", "sleep", {"seconds": 60}, seconds=0.3))


def test_a_child_process_gets_a_minimal_environment(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    told = asyncio.run(servers.call("new", "environment")).structured_content
    assert {"PATH", "HOME"} <= told["variables"].keys()
    assert not {"PYTHONPATH", "OMP_NUM_THREADS", "PYTEST_CURRENT_TEST"} & told["variables"].keys()
    assert told["folder"] == "/"


def test_a_server_is_told_the_root_where_the_program_gives_one(servers: Servers) -> None:
    assert result_of(servers, "old/roots").content == "file:///"


def test_a_sync_program_waits_for_the_result(servers: Servers) -> None:
    assert search_over(servers).session().handle(ToolCall("1", "new/echo", {"text": "hi"})).content == "hi"


def test_the_same_name_at_several_servers_is_told_apart(servers: Servers) -> None:
    """D07, J46: a bare name that several servers have is refused, and names the choices."""
    session = search_over(servers).session()
    refused = session.handle(ToolCall("1", "echo", {"text": "hi"}))
    assert refused.status == "unknown"
    names = {servers.catalog.provider_name(f"{server}/echo") for server in ("new", "old", "web", "events")}
    assert len(names) == 4
    for name in names:
        assert session.handle(ToolCall("1", name, {"text": "hi"})).content == "hi"


def test_a_search_says_which_servers_are_away_also_where_hits_are_weak(servers: Servers) -> None:
    """K18."""
    session = search_over(servers).session()
    found = session.handle(ToolCall("1", "search_tools", {"queries": ["order a pizza with ham"]})).content
    assert "The server 'hangs' cannot be reached now" in found
    assert "no answer in time" in found


def test_each_caller_has_headers_and_connections_of_its_own(servers: Servers) -> None:
    seen: dict[str, str] = {}

    async def run() -> None:
        for user in ("ana", "bo"):
            result = await other.call("web", "headers", caller=Caller(user))
            seen[user] = result.structured_content["x-user"]

    def headers(caller: Caller | None, server: str) -> dict[str, str]:
        return {"X-User": caller.user or ""} if caller is not None else {}

    with Servers({"web": servers.config.servers["web"].raw}, headers=headers) as other:
        asyncio.run(run())
    assert seen == {"ana": "ana", "bo": "bo"}


def test_a_required_server_that_is_not_ready_stops_the_start() -> None:
    config = {"dead": with_options({"command": "no-such-command"}, required=True)}
    with pytest.raises(SetupError, match="servers that are required are not ready: 'dead': there is no command"):
        Servers(config).start()


def test_servers_that_are_not_running_say_so() -> None:
    with pytest.raises(StateError, match="are not running: use `async with"):
        asyncio.run(Servers({"one": entry("plain")}).call("one", "read_0", {}))


def test_a_changed_configuration_starts_and_ends_only_what_changed() -> None:
    """G."""

    async def run() -> None:
        config = {"stays": entry("plain", tools=2), "goes": entry("plain", tools=2, prefix="old_")}
        async with Servers(config) as servers:
            told: list[tuple[str, str]] = []
            servers.on_change(lambda server, kind: told.append((server, kind)))
            pid = (await servers.call("stays", "read_0", {"key": "x"})).structured_content["pid"]
            new = {"stays": config["stays"], "comes": entry("plain", tools=3, prefix="new_")}
            assert await servers.reload(new) == ("goes", "comes")
            assert (await servers.ready(30))["comes"].state == "ready"
            assert {tool.id for tool in servers.catalog} == {
                "stays/read_0", "stays/read_1", "comes/new_0", "comes/new_1", "comes/new_2"
            }  # fmt: skip
            assert (await servers.call("stays", "read_0", {"key": "x"})).structured_content["pid"] == pid
            assert ("comes", "tools") in told
            with pytest.raises(SetupError, match="there is no file"):
                await servers.reload("no-such-file.json")
            assert servers.names == ("stays", "comes")

    asyncio.run(run())


def test_a_start_that_is_cancelled_leaves_nothing_running() -> None:
    before = threading.active_count()

    async def run() -> None:
        servers = Servers({"stuck": entry("stuck", at="initialize")}, connect_seconds=60)
        starting = asyncio.create_task(servers.__aenter__())
        await asyncio.sleep(0.5)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        with pytest.raises(StateError):
            await servers.ready()

    asyncio.run(run())
    for _ in range(100):
        if threading.active_count() == before:
            break
        time.sleep(0.05)
    assert threading.active_count() == before


@pytest.mark.parametrize("how", ["in the entry", "for all", "by default"])
def test_a_tool_that_the_configuration_denies_is_in_no_catalog_and_does_not_run(how: str) -> None:
    own = {"in the entry": {"deny": "echo"}, "by default": {"default": "deny", "allow": ["media"]}}.get(how, {})
    top = {"deny": ["every/echo"]} if how == "for all" else {}
    config = {"toolsearch": top, "mcpServers": {"every": with_options(entry("everything"), **own)}}
    echo = tool({"name": "echo", "inputSchema": {"type": "object"}}, server="every")
    with Servers(config) as servers:
        assert "every/media" in servers.catalog
        assert "every/echo" not in servers.catalog
        servers.catalog.add(echo)  # as a stored session may have it
        refused = result_of(servers, "every/echo", text="x")
    assert (refused.status, "the configuration denies it" in refused.content) == ("denied", True)
