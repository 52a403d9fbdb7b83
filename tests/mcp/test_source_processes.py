"""The processes of servers: whole trees end, also after a kill of the program; what was lost is connected again."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from tests.mcp.servers import entry, over_http
from toolsearch import SetupError, ToolCall, ToolSearch
from toolsearch.mcp import ServerEntry, Servers
from toolsearch.mcp.processes import parameters_of

posix = pytest.mark.skipif(sys.platform == "win32", reason="process groups are those of POSIX")
ROOT = Path(__file__).resolve().parents[2]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not fetched yet does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def until(condition: Callable[[], bool], seconds: float = 15) -> bool:
    """Whether it becomes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def pids_of(servers: Servers, *names: str) -> list[int]:
    found = [asyncio.run(servers.call(name, "pids")).structured_content for name in names]
    return [pid for each in found for pid in each.values() if pid is not None]


@posix
def test_after_close_nothing_is_left_of_servers_that_cling() -> None:
    """A: one leaves a child that ignores SIGTERM, one goes on after the end of its input and ignores SIGTERM."""
    threads, files = threading.active_count(), open_files()
    servers = Servers(
        {
            "child": entry("clinging", child=True),
            "clings": entry("clinging", ignore_eof=True, ignore_sigterm=True),
        }
    ).start()
    pids = pids_of(servers, "child", "clings")
    assert len(pids) == 3
    servers.close()
    servers.close()
    assert [pid for pid in pids if is_alive(pid)] == []
    assert until(lambda: threading.active_count() == threads)
    assert open_files() == files


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


PROGRAM = """
import asyncio, json, sys, time
from toolsearch.mcp import Servers
servers = Servers(json.loads(sys.argv[1])).start()
found = [asyncio.run(servers.call(name, "pids")).structured_content for name in servers.names]
print(json.dumps([pid for each in found for pid in each.values() if pid]), flush=True)
time.sleep(60)
"""


@posix
def test_a_program_that_is_killed_leaves_no_server_behind() -> None:
    """A: kill -9, with servers that ignore the end of their input, and a child that ignores SIGTERM."""
    import json

    config = {"child": entry("clinging", child=True), "clings": entry("clinging", ignore_eof=True)}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps(config)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert program.stdout is not None
    pids = json.loads(program.stdout.readline())
    program.kill()
    program.wait()
    program.stdout.close()
    assert len(pids) == 3
    assert until(lambda: not any(map(is_alive, pids)))


@posix
def test_a_relative_command_is_that_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "server"
    script.write_text("#!/bin/sh\n", "utf-8")
    script.chmod(0o755)
    started = parameters_of(ServerEntry("one", command="bin/server", args=("-v",), cwd=str(tmp_path)))
    assert started.args[-2:] == [str(script), "-v"]
    with pytest.raises(SetupError, match=r"there is no command '\./server': install it"):
        parameters_of(ServerEntry("one", command="./server", cwd=str(tmp_path)))
    with pytest.raises(SetupError, match="there is no folder"):
        parameters_of(ServerEntry("one", command="sh", cwd=str(tmp_path / "none")))


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    config = {
        "new": entry("everything"),
        "old": {**entry("everything"), "toolsearch": {"protocol": "legacy"}},
        "alone": {**entry("plain"), "toolsearch": {"session": "client", "connections": 2}},
    }
    with Servers(config) as started:
        yield started


@pytest.mark.parametrize("server", ["new", "old"])
def test_a_server_that_ends_in_a_call_is_connected_again(servers: Servers, server: str) -> None:
    """The call is not repeated, because it may have run; its tools stay, and the next call waits for the server."""
    search = ToolSearch(servers.catalog, run=servers.run, index="keyword", not_loaded="run")

    async def run() -> None:
        session = search.session()
        lost = await session.ahandle(ToolCall("1", f"{server}/die", {}))
        assert lost.status == "failed"
        assert "was lost meanwhile" in lost.content
        assert "Check before you run it again" in lost.content
        assert f"{server}/echo" in servers.catalog
        again = await session.ahandle(ToolCall("2", f"{server}/echo", {"text": "hi"}))
        assert again.content == "hi"

    asyncio.run(run())
    assert servers.health()[server].state == "ready"
    assert server not in servers.catalog.missing


def test_a_read_is_sent_again_when_the_server_is_killed_under_it(servers: Servers) -> None:
    async def run() -> str:
        told = (await servers.call("new", "recall")).structured_content
        waiting = asyncio.create_task(servers.call("new", "sleep", {"seconds": 0.5}, repeatable=True))
        await asyncio.sleep(0.2)
        os.kill(told["pid"], signal.SIGKILL)
        return (await waiting).content[0].text

    assert asyncio.run(run()) == "slept"


def test_a_session_has_a_process_of_its_own_where_the_entry_says_so(servers: Servers) -> None:
    """C: with a bound, and the one that was idle longest makes room."""

    async def run() -> None:
        async def pid(session: str | None) -> int:
            return (await servers.call("alone", "read_0", {"key": "x"}, session=session)).structured_content["pid"]

        shared, ana, bo = await pid(None), await pid("ana"), await pid("bo")
        assert len({shared, ana, bo}) == 3
        assert await pid("ana") == ana
        assert await pid("cy") not in (shared, ana, bo)
        assert until(lambda: not is_alive(bo))
        await servers.end_session("ana")
        assert not is_alive(ana)

    asyncio.run(run())


def test_a_server_over_http_that_is_restarted_is_found_again() -> None:
    with over_http("everything") as first:
        port = int(first["url"].split(":")[2].partition("/")[0])
        servers = Servers({"new": first, "old": {**first, "toolsearch": {"protocol": "legacy"}}}).start()
    try:
        with over_http("everything", port=port):
            for name in ("new", "old"):
                result = asyncio.run(servers.call(name, "echo", {"text": "hi"}, repeatable=True))
                assert result.content[0].text == "hi"
    finally:
        servers.close()


def test_the_first_connection_is_tried_again_until_it_succeeds(tmp_path: Path) -> None:
    """D: a server that ends at its first start."""
    flaky = entry("dying", at="start", times=1, count=str(tmp_path / "starts"))
    with Servers({"flaky": flaky}, connect_seconds=20) as servers:
        assert until(lambda: servers.health()["flaky"].state == "ready")
        assert asyncio.run(servers.call("flaky", "fetch")).content[0].text.startswith("alive in")
