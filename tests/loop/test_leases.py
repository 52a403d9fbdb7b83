"""One conversation, one worker: a lease keeps a second one off, and is free when the first has ended, anyhow."""

import asyncio
import contextlib
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Caller, StateError, ToolSearch, tool
from toolsearch.delegation import delegate
from toolsearch.events.facts import ToolReturned
from toolsearch.layers import approval
from toolsearch.loop.agent import Agent
from toolsearch.loop.leases import Lease
from toolsearch.stores import MemoryStore, SqliteStore
from toolsearch.support.processes import Process, this_process
from toolsearch.testing import ScriptedModel

PATIENCE = 20.0  # seconds until a test that waits for another thread or process fails
LONG = 600.0  # seconds that no test takes
ELSEWHERE = "another host/7"  # an owner of whom nothing is known
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only there it can be told whether a process has ended")


class Works:
    """A tool that runs until it may end, and counts how often it began."""

    def __init__(self, kind: Any = "action") -> None:
        self.began, self.free = threading.Event(), threading.Event()
        self.times = 0
        self.search = ToolSearch([tool(self.work, kind=kind)], mode="static")

    def work(self) -> str:
        """Works."""
        self.times += 1
        self.began.set()
        self.free.wait(PATIENCE)
        return "effect done"

    def agent(self, store: Any, *script: Any, **options: Any) -> Agent:
        return Agent(ScriptedModel(*script), self.search, store=store, **options)


@pytest.fixture(params=["memory", "sqlite"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """What gives each worker its store: the same one in memory, or one file."""
    if request.param == "memory":
        memory = MemoryStore()
        yield lambda: memory
        return
    with contextlib.ExitStack() as opened:
        yield lambda: opened.enter_context(SqliteStore(tmp_path / "x.db"))


def answers(store: Any, conversation_id: str = "s") -> list[tuple[str, str]]:
    return [(f["status"], f["content"]) for f in store.load(conversation_id) if f["fact"] == "ToolReturned"]


# -- two workers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["action", "read"])
@pytest.mark.parametrize("second", [{}, {"said": "and now?"}, {"decisions": {"c1": True}}])
def test_D6_a_second_worker_is_refused_before_anything_runs(
    stores: Callable[[], Any], kind: str, second: dict[str, Any], drive: Any
) -> None:
    """D6: while a tool runs, another worker resumes, says something or decides."""
    works, model = Works(kind), ScriptedModel("B goes on.")
    wait = drive.beside(works.agent(stores(), [("c1", "work", {})], "Done."), "Go", conversation_id="s")
    assert works.began.wait(PATIENCE)
    before = stores().load("s")
    with pytest.raises(StateError, match=rf"'s' is being worked on by another worker \(process {os.getpid()} on "):
        drive(Agent(model, works.search, store=stores()), conversation_id="s", **second)
    assert stores().load("s") == before
    works.free.set()
    assert wait().text == "Done."
    assert (works.times, model.requests) == (1, [])
    assert answers(stores()) == [("ok", "effect done")]
    assert drive(works.agent(stores(), "Hello."), "hello", conversation_id="s").text == "Hello."


def test_a_stream_that_is_read_slowly_keeps_its_lease(stores: Callable[[], Any], drive: Any) -> None:
    works = Works()
    works.free.set()
    stream = works.agent(stores(), [("c1", "work", {})], "Done.").stream("Go", conversation_id="s")
    next(iter(stream))
    with pytest.raises(StateError, match="is being worked on by another worker"):
        drive(works.agent(stores(), "B."), "B", conversation_id="s")
    assert [*stream][-1].text == "Done."  # type: ignore[union-attr]
    assert drive(works.agent(stores(), "B."), "B", conversation_id="s").text == "B."


def test_conversations_are_leased_one_by_one(stores: Callable[[], Any], drive: Any) -> None:
    works = Works()
    wait = drive.beside(works.agent(stores(), [("c1", "work", {})], "Done."), "Go", conversation_id="s")
    assert works.began.wait(PATIENCE)
    assert drive(works.agent(stores(), "B."), "B", conversation_id="other").text == "B."
    works.free.set()
    wait()


# -- when it is free again ---------------------------------------------------------------------------------------------


def is_free(store: Any, conversation_id: str = "s") -> bool:
    free: bool = store.lease(conversation_id, ELSEWHERE, LONG) == ELSEWHERE
    store.release(conversation_id, ELSEWHERE)
    return free


def test_a_turn_that_pauses_gives_its_conversation_free(stores: Callable[[], Any], drive: Any) -> None:
    works = Works()
    works.free.set()
    gated = works.agent(stores(), [("c1", "work", {})], "Done.", layers=[approval()])
    paused = drive(gated, "Go", conversation_id="s")
    assert [each.id for each in paused.waiting] == ["c1"]
    assert is_free(stores())
    other = works.agent(stores(), "Done there.", layers=[approval()])
    assert drive(other, conversation_id="s", decisions={"c1": True}).text == "Done there."


def test_so_does_one_that_fails_or_is_refused_or_has_nothing_to_do(stores: Callable[[], Any], drive: Any) -> None:
    works = Works()
    with pytest.raises(ValueError, match="no"):
        drive(works.agent(stores(), ValueError("no")), "Go", conversation_id="s", caller=Caller("ana"))
    assert is_free(stores())
    with pytest.raises(StateError, match="belongs to another caller"):
        drive(works.agent(stores(), "B."), "Go", conversation_id="s", caller=Caller("ben"))
    assert is_free(stores())
    with pytest.raises(StateError, match="no turn to continue"):
        drive(works.agent(stores(), "B."), conversation_id="s", caller=Caller("ana"))
    assert is_free(stores())


def test_so_does_one_that_is_cancelled(stores: Callable[[], Any], drive: Any) -> None:
    works = Works()
    agent = works.agent(stores(), [("c1", "work", {})])
    wait = drive.beside(agent, "Go", conversation_id="s")
    assert works.began.wait(PATIENCE)
    assert not is_free(stores())
    agent.cancel("s")
    assert wait().reason == "cancelled"
    assert is_free(stores())
    works.free.set()


@pytest.mark.parametrize("steps", range(12))
def test_so_does_one_whose_task_is_cancelled_wherever_it_is(stores: Callable[[], Any], steps: int) -> None:
    works = Works()
    works.free.set()

    async def main() -> None:
        task = asyncio.create_task(works.agent(stores(), [("c1", "work", {})], "Done.").arun("Go", conversation_id="s"))
        for _ in range(steps):
            await asyncio.sleep(0.001)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert is_free(stores())


def test_a_worker_of_whom_nothing_is_known_has_it_for_its_time(stores: Callable[[], Any], drive: Any) -> None:
    """D6: a worker that crashed on another machine; the time is the one it took the lease for."""
    works, store = Works(), stores()
    store.lease("s", ELSEWHERE, LONG)
    with pytest.raises(StateError, match="is being worked on by another worker: wait"):
        drive(works.agent(stores(), "B."), "B", conversation_id="s")
    store.lease("s", ELSEWHERE, 0.05)
    for _ in range(1000):
        with contextlib.suppress(StateError):
            result = drive(works.agent(stores(), "B."), "B", conversation_id="s")
            break
        threading.Event().wait(0.01)
    assert result.text == "B."


def test_a_clock_that_is_set_anew_neither_ends_nor_prolongs_a_lease(drive: Any, tmp_path: Path) -> None:
    now = [1e9]
    for store in (MemoryStore(clock=lambda: now[0]), SqliteStore(tmp_path / "x.db", clock=lambda: now[0])):
        for step in (-1e6, 2e6):
            store.lease("s", ELSEWHERE, LONG)
            now[0] += step
            assert store.lease("s", "two", LONG) == ELSEWHERE
            store.release("s", ELSEWHERE)
            assert store.lease("s", "two", LONG) == "two"
            store.release("s", "two")


# -- processes ---------------------------------------------------------------------------------------------------------

WORKER = """
    import sys, time
    from toolsearch import Agent, ToolSearch, tool
    from toolsearch.stores import SqliteStore
    from toolsearch.testing import ScriptedModel

    @tool(kind="action")
    def work() -> str:
        "Works."
        print("began", flush=True)
        time.sleep(60)
        return "effect done"

    model = ScriptedModel([("c1", "work", {})], "Done.")
    Agent(model, ToolSearch([work], mode="static"), store=SqliteStore(sys.argv[1])).run("Go", conversation_id="s")
"""


@on_linux
@pytest.mark.parametrize("is_reaped", [True, False])
def test_D6_of_a_process_that_was_killed_it_is_free_at_once(tmp_path: Path, drive: Any, is_reaped: bool) -> None:
    """D6: before the kill another process is refused, after it the turn goes on there, and the action ran once.

    Nobody may have looked after the dead process yet, as where its parent waits for something else.
    """
    file, works = tmp_path / "x.db", Works()
    command = [sys.executable, "-c", textwrap.dedent(WORKER), str(file)]
    with SqliteStore(file) as store, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "began\n"
        with pytest.raises(StateError, match=rf"is being worked on by another worker \(process {process.pid} on "):
            drive(works.agent(store, "B."), conversation_id="s")
        process.kill()
        if is_reaped:
            process.wait()
        else:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert drive(works.agent(store, "B goes on."), conversation_id="s").text == "B goes on."
        assert [status for status, _ in answers(store)] == ["interrupted"]
        assert works.times == 0


@on_linux
def test_only_of_a_process_that_surely_has_ended_it_is_said() -> None:
    here = this_process()
    assert Process.read(str(here)) == here
    assert not here.has_ended()
    assert Process.read(ELSEWHERE) is None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        stat = Path(f"/proc/{child.pid}/stat").read_text("utf-8")
        running = replace(here, pid=child.pid, start=stat.rpartition(")")[2].split()[19])
        assert not running.has_ended()
        assert replace(running, start="7").has_ended()  # another process has got its number
        child.kill()
        child.wait()
    assert running.has_ended()
    for unknown in ({"boot": "other"}, {"namespace": "other"}, {"boot": ""}, {"namespace": ""}, {"start": ""}):
        assert not replace(running, **unknown).has_ended()


@on_linux
def test_a_forked_child_is_another_worker(tmp_path: Path) -> None:
    file, works = tmp_path / "x.db", Works()
    with SqliteStore(file) as store:
        lease = Lease(store, "s", LONG)
        lease.take()
        context = multiprocessing.get_context("fork")
        said: Any = context.Queue()
        child = context.Process(target=_try_it, args=(works, store, said))
        child.start()
        assert "is being worked on by another worker" in said.get(timeout=PATIENCE)
        child.join()
        lease.release()
        assert is_free(store)


def _try_it(works: Works, store: Any, said: Any) -> None:
    try:
        said.put(works.agent(store, "B.").run("B", conversation_id="s").text)
    except StateError as error:
        said.put(str(error))


# -- while a turn takes long -------------------------------------------------------------------------------------------


class Counting(MemoryStore):
    """Counts what is asked of its leases; `renewed` is set at the third time."""

    def __init__(self) -> None:
        super().__init__()
        self.owners: list[str] = []
        self.renewed = threading.Event()
        self.problem: Exception | None = None

    def lease(self, conversation_id: str, owner: str, seconds: float, *, instead_of: str = "") -> str:
        if self.problem is not None:
            raise self.problem
        self.owners.append(owner)
        if len(self.owners) == 4:
            self.renewed.set()
        return super().lease(conversation_id, owner, seconds, instead_of=instead_of)

    def release(self, conversation_id: str, owner: str) -> None:
        if self.problem is not None:
            raise self.problem
        super().release(conversation_id, owner)


def test_D6_it_is_renewed_while_a_tool_or_the_model_takes_long(drive: Any) -> None:
    for slow in ("tool", "model"):
        works, store = Works(), Counting()

        def wait_for_renewals(*_: object, store: Counting = store) -> str:
            assert store.renewed.wait(PATIENCE)
            return "Done."

        definition = {"name": "work", "description": "", "input_schema": {"type": "object"}}
        works.search = ToolSearch([tool(definition, run=wait_for_renewals)], mode="static")
        script = [[("c1", "work", {})], "Done."] if slow == "tool" else [wait_for_renewals]
        assert drive(works.agent(store, *script, lease_seconds=0.1), "Go", conversation_id="s").text == "Done."
        assert len({*store.owners}) == 1
        assert is_free(store)


def test_D6_a_worker_that_lost_it_stops_and_writes_nothing_more(drive: Any) -> None:
    """As where its machine slept for longer than its lease: another worker goes on with the turn."""
    works, store = Works(), Counting()
    wait = drive.beside(works.agent(store, [("c1", "work", {})], "Done.", lease_seconds=0.1), "Go", conversation_id="s")
    assert works.began.wait(PATIENCE)
    assert store.lease("s", ELSEWHERE, LONG, instead_of=store.owners[0]) == ELSEWHERE
    before = store.load("s")
    with pytest.raises(StateError, match="was taken over by another worker, because this one did not renew"):
        wait()
    works.free.set()
    assert store.load("s") == before
    assert store.lease("s", "third", LONG) == ELSEWHERE, "the lease of the other worker was released"


def test_a_store_whose_leases_fail_meanwhile_does_not_end_a_turn(drive: Any, caplog: pytest.LogCaptureFixture) -> None:
    works, store = Works(), Counting()
    works.free.set()

    def break_it(_: object) -> str:
        store.problem = StateError("busy")
        return "Done."

    assert drive(works.agent(store, break_it), "Go", conversation_id="s").text == "Done."
    assert "the lease of conversation 's' could not be released" in caplog.text
    store.problem = None
    assert drive(works.agent(store, "B."), "B", conversation_id="s").text == "B.", (
        "its turn is over, as this process knows"
    )


def test_a_store_that_cannot_lease_refuses_before_anything_runs(drive: Any) -> None:
    works, store = Works(), Counting()
    store.problem = StateError("busy")
    with pytest.raises(StateError, match="busy"):
        drive(works.agent(store, [("c1", "work", {})]), "Go", conversation_id="s")
    store.problem = None
    assert (works.times, store.load("s")) == (0, [])


# -- without -----------------------------------------------------------------------------------------------------------


class Without:
    """A store that has no leases: as it was before there were any."""

    def __init__(self) -> None:
        self.inner = MemoryStore()
        self.append, self.load = self.inner.append, self.inner.load
        self.delete, self.list = self.inner.delete, self.inner.list


@pytest.mark.parametrize("options", [{}, {"lease_seconds": None}])
def test_without_leases_a_second_worker_takes_the_turn_over(drive: Any, options: dict[str, Any]) -> None:
    """What the documentation says of such a store: the first one fails at its next fact, and no action runs twice."""
    works = Works()
    store: Any = MemoryStore() if options else Without()
    wait = drive.beside(works.agent(store, [("c1", "work", {})], "Done.", **options), "Go", conversation_id="s")
    assert works.began.wait(PATIENCE)
    assert drive(works.agent(store, "B goes on.", **options), conversation_id="s").text == "B goes on."
    works.free.set()
    with pytest.raises(StateError, match="somebody else wrote"):
        wait()
    assert [status for status, _ in answers(store)] == ["interrupted"]
    assert works.times == 1


@pytest.mark.parametrize("seconds", [0, -1, "30", True, float("nan"), float("inf")])
def test_a_lease_of_an_impossible_time_is_refused(seconds: Any) -> None:
    from toolsearch import SetupError

    with pytest.raises(SetupError, match="lease_seconds must be a number of seconds above 0, or None for no lease"):
        Agent(ScriptedModel(), ToolSearch([]), lease_seconds=seconds)
    for store in (MemoryStore(),):
        with pytest.raises(SetupError, match="seconds must be a number of seconds above 0"):
            store.lease("s", "one", seconds)


def test_the_conversation_of_a_child_has_a_lease_of_its_own(stores: Callable[[], Any], drive: Any) -> None:
    works = Works()
    child = works.agent(stores(), [("c1", "work", {})], "Done.")
    helper = delegate(child, "helper", "Helps.")
    parent = Agent(
        ScriptedModel([("h", "helper", {"task": "Work."})], "It is done."), ToolSearch([helper], mode="static"),
        store=stores(),
    )  # fmt: skip
    wait = drive.beside(parent, "Go", conversation_id="s")
    assert works.began.wait(PATIENCE)
    for conversation_id in ("s", "s/h"):
        with pytest.raises(StateError, match="is being worked on by another worker"):
            drive(works.agent(stores(), "B."), "B", conversation_id=conversation_id)
    works.free.set()
    assert wait().text == "It is done."
    assert is_free(stores(), "s")
    assert is_free(stores(), "s/h")
    assert [fact.status for fact in parent.conversation("s").journal if isinstance(fact, ToolReturned)] == ["ok"]
