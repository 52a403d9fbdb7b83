"""Stores: every fact is kept at its place, one writer a conversation, and a killed process loses nothing."""

import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from toolsearch import ToolSearch, tool
from toolsearch.errors import SetupError, StateError
from toolsearch.events import journal as journals
from toolsearch.events.facts import ToolReturned, UserSaid
from toolsearch.events.journal import read_events
from toolsearch.layers import memory
from toolsearch.loop.agent import Agent
from toolsearch.stores import MemoryStore, SqliteStore, StoredConversation
from toolsearch.testing import ScriptedModel

PATIENCE = 30.0  # seconds a test waits for another process before it fails


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[MemoryStore | SqliteStore]:
    if request.param == "memory":
        yield MemoryStore(clock=clock)
    else:
        with SqliteStore(tmp_path / "journals.db", clock=clock) as made:
            yield made


def fact(number: int) -> dict[str, Any]:
    return {"v": 1, "fact": "Noted", "layer": "test", "note": f"number {number} — ünïcode"}


def facts(*numbers: int) -> list[dict[str, Any]]:
    return [fact(number) for number in numbers]


# -- what every store does ---------------------------------------------------------------------------------------


def test_facts_come_back_in_order_and_an_unknown_conversation_has_none(store: Any) -> None:
    store.append("a", 0, facts(0, 1))
    store.append("b", 0, facts(7))
    store.append("a", 2, facts(2))
    assert store.load("a") == facts(0, 1, 2)
    assert store.load("b") == facts(7)
    assert store.load("nobody") == []


def test_of_two_writers_at_the_same_place_the_second_fails_and_stores_nothing(store: Any) -> None:
    store.append("a", 0, facts(0))
    store.append("a", 1, facts(1))
    for position in (0, 1, 3):
        with pytest.raises(StateError, match=r"'a' has 2 facts in the store, not \d.*load it and go on"):
            store.append("a", position, facts(8, 9))
    with pytest.raises(StateError, match="'new' has 0 facts"):
        store.append("new", 5, facts(8))
    assert store.load("a") == facts(0, 1)
    assert store.list() == ["a"]


def test_what_is_loaded_is_a_copy(store: Any) -> None:
    mine = fact(0)
    store.append("a", 0, [mine])
    mine["note"] = "changed"
    store.load("a")[0]["note"] = "changed too"
    assert store.load("a") == facts(0)


def test_an_append_of_nothing_makes_no_conversation(store: Any) -> None:
    store.append("a", 0, [])
    assert store.list() == []


def test_deleting_says_whether_there_was_anything_and_a_live_writer_notices(store: Any) -> None:
    store.append("a", 0, facts(0, 1))
    assert store.delete("a") is True
    assert store.delete("a") is False
    assert store.load("a") == []
    with pytest.raises(StateError, match="deleted it meanwhile"):
        store.append("a", 2, facts(2))
    store.append("a", 0, facts(5))
    assert store.load("a") == facts(5)


def test_conversations_are_listed_by_id_with_when_they_were_written_and_how_long_they_are(
    store: Any, clock: Clock
) -> None:
    for number, name in enumerate(["user-2/b", "user-1/a", "user-2/a", "other"]):
        clock.now = 1_000.0 + number
        store.append(name, 0, facts(*range(number + 1)))
    assert store.list() == ["other", "user-1/a", "user-2/a", "user-2/b"]
    assert store.entries("user-2/") == [
        StoredConversation("user-2/a", 3, 1_002.0),
        StoredConversation("user-2/b", 1, 1_000.0),
    ]
    assert store.list("user-%") == []
    clock.now = 2_000.0
    store.append("user-2/a", 3, facts(3))
    assert store.entries("user-2/a") == [StoredConversation("user-2/a", 4, 2_000.0)]


def test_a_long_list_comes_in_pages(store: Any) -> None:
    for number in range(7):
        store.append(f"c{number}", 0, facts(0))
    pages, after = [], ""
    while page := store.list("c", after=after, limit=3):
        pages.append(page)
        after = page[-1]
    assert pages == [["c0", "c1", "c2"], ["c3", "c4", "c5"], ["c6"]]


def test_what_was_last_written_before_a_time_expires(store: Any, clock: Clock) -> None:
    for name, at in (("old", 100.0), ("touched", 100.0), ("new", 200.0)):
        clock.now = at
        store.append(name, 0, facts(0))
    store.append("touched", 1, facts(1))
    assert store.expire(before=200.0) == 1
    assert store.list() == ["new", "touched"]
    assert store.load("old") == []


@pytest.mark.parametrize("name", ["", None, 7, "lone \ud800 surrogate"])
def test_what_is_no_id_is_refused(store: Any, name: Any) -> None:
    """There is no shared default conversation."""
    for use in (lambda: store.append(name, 0, facts(0)), lambda: store.load(name), lambda: store.delete(name)):
        with pytest.raises(SetupError, match="of a conversation is"):
            use()


@pytest.mark.parametrize("name", ["'; DROP TABLE facts; --", "%_\\", "天气🙂", "a\u0000b", "x" * 5_000])
def test_an_id_is_data_whatever_it_holds(store: Any, name: str) -> None:
    store.append(name, 0, facts(0))
    assert store.load(name) == facts(0)
    assert store.list(name) == [name]
    assert store.delete(name)


@pytest.mark.parametrize("value", [object(), b"bytes", {1, 2}])
def test_a_fact_that_is_no_json_is_refused_and_stores_nothing(store: Any, value: Any) -> None:
    with pytest.raises(StateError, match="not valid JSON"):
        store.append("a", 0, [fact(0), {"note": value}])
    assert store.load("a") == []


@pytest.mark.parametrize(
    ("options", "what"), [({"limit": 0}, "limit"), ({"prefix": 3}, "prefix"), ({"after": None}, "after")]
)
def test_a_page_that_cannot_be_is_refused(store: Any, options: Any, what: str) -> None:
    with pytest.raises(SetupError, match=what):
        store.list(**options)


def test_many_threads_may_write_and_read_at_once(store: Any) -> None:
    """Of all writers of one conversation exactly one has each place."""
    won: list[tuple[int, int]] = []
    refused: list[StateError] = []

    def work(worker: int) -> None:
        for position in range(20):
            try:
                store.append("shared", position, [{"by": worker}])
                won.append((position, worker))
            except StateError as error:
                refused.append(error)
            store.load("shared")
            store.append(f"own-{worker}", position, facts(position))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert [fact["by"] for fact in store.load("shared")] == [worker for _, worker in sorted(won)]
    assert len(won) + len(refused) == 8 * 20
    assert all(store.load(f"own-{n}") == facts(*range(20)) for n in range(8))


# -- an agent and its store --------------------------------------------------------------------------------------


def look(what: str) -> str:
    """Look something up."""
    return f"found {what}"


def agent(store: Any, *script: Any) -> Agent:
    return Agent(ScriptedModel(*script), ToolSearch([tool(look)], mode="static"), store=store)


def test_an_agent_goes_on_in_another_process_with_what_the_store_kept(store: Any, drive: Any) -> None:
    first = agent(store, [("look", {"what": "a"})], "It is a.")
    assert drive(first, "What is it?", conversation_id="s").text == "It is a."
    second = agent(store, "I said a.")
    assert drive(second, "What did you say?", conversation_id="s").text == "I said a."
    assert [type(m).__name__ for m in second.conversation("s").transcript] == [
        "UserSaid", "ModelReplied", "Answers", "ModelReplied", "UserSaid", "ModelReplied",
    ]  # fmt: skip
    assert second.conversation("s").journal == tuple(read_events(store.load("s")))


def test_an_agent_whose_conversation_somebody_else_writes_stops_before_it_does_anything(store: Any, drive: Any) -> None:
    ran: list[str] = []

    def act(what: str) -> str:
        """Do something."""
        ran.append(what)
        return "done"

    def reply(request: Any) -> list[Any]:
        store.append("s", len(store.load("s")), facts(0))  # another process
        return [("act", {"what": "it"})]

    mine = Agent(ScriptedModel(reply), ToolSearch([tool(act)], mode="static"), store=store)
    with pytest.raises(StateError, match="somebody else wrote"):
        drive(mine, "Do it", conversation_id="s")
    assert ran == []


def test_the_memory_layer_gives_the_agent_its_store(store: Any, drive: Any) -> None:
    made = Agent(ScriptedModel("Hello."), ToolSearch([tool(look)], mode="static"), layers=[memory(store)])
    assert made.store is store
    drive(made, "Hi", conversation_id="s")
    assert store.list() == ["s"]


# -- the store in memory -----------------------------------------------------------------------------------------


def test_memory_keeps_the_conversations_written_last(clock: Clock) -> None:
    store = MemoryStore(most=2, clock=clock)
    for name in ("a", "b"):
        store.append(name, 0, facts(0))
    store.append("a", 1, facts(1))
    store.append("c", 0, facts(0))
    assert store.list() == ["a", "c"]


def test_memory_forgets_what_was_not_written_to_for_too_long(clock: Clock) -> None:
    store = MemoryStore(seconds=60, clock=clock)
    store.append("a", 0, facts(0))
    clock.now += 59
    store.append("b", 0, facts(0))
    assert store.list() == ["a", "b"]
    clock.now += 1
    assert store.list() == ["b"]
    assert store.load("a") == []
    with pytest.raises(StateError, match="0 facts"):
        store.append("a", 1, facts(1))


@pytest.mark.parametrize("options", [{"most": 0}, {"most": -1}, {"seconds": 0}])
def test_memory_with_an_impossible_bound_is_refused(options: Any) -> None:
    with pytest.raises(SetupError, match=r"must be a .*number .*, or None for no bound"):
        MemoryStore(**options)


# -- the store in a file -----------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_opened_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    for path in (tmp_path / "no such folder" / "x.db", tmp_path):
        with pytest.raises(SetupError, match=r"cannot be opened.*folder must be there"):
            SqliteStore(path)
    for name in ("", ":memory:", b"bytes.db"):
        with pytest.raises(SetupError, match=r"MemoryStore\(\)"):
            SqliteStore(name)  # type: ignore[arg-type]


def test_a_damaged_file_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "broken.db"
    path.write_bytes(b"this was never a database, whatever its name says" * 100)
    with pytest.raises(StateError, match=r"broken\.db.*damaged.*restore it from a copy"):
        SqliteStore(path)


def test_a_file_damaged_in_the_middle_is_a_clear_error_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with SqliteStore(path) as store:
        for number in range(200):
            store.append("a", number, [{"note": "x" * 500}])
    data = bytearray(path.read_bytes())
    data[4096 * 3 :] = b"\xff" * (len(data) - 4096 * 3)
    path.write_bytes(data)
    with pytest.raises(StateError, match="restore"), SqliteStore(path) as store:
        store.load("a")


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("UPDATE facts SET fact = 'no json' WHERE position = 1", "fact 1 .* cannot be read"),
        ("UPDATE facts SET fact = '[1]' WHERE position = 1", "fact 1 .* cannot be read"),
        ("DELETE FROM facts WHERE position = 1", "fact 1 .* is missing"),
    ],
)
def test_a_fact_that_is_lost_or_broken_is_named(tmp_path: Path, sql: str, what: str) -> None:
    path = tmp_path / "x.db"
    with SqliteStore(path) as store:
        store.append("a", 0, facts(0, 1, 2))
    run_sql(path, sql)
    with SqliteStore(path) as store, pytest.raises(StateError, match=what):
        store.load("a")


def run_sql(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    run_sql(path, "CREATE TABLE facts (mine TEXT)")
    with pytest.raises(SetupError, match=r"theirs\.db.*another program's database.*a file of its own"):
        SqliteStore(path)
    run_sql(path, "INSERT INTO facts VALUES ('still here')")


# The layout 1 had no table of conversations. It is written out here, so that it stays what it was.
LAYOUT_1 = (
    """CREATE TABLE facts (conversation TEXT NOT NULL, position INTEGER NOT NULL, fact TEXT NOT NULL,
        PRIMARY KEY (conversation, position)) WITHOUT ROWID""",
    "PRAGMA user_version = 1",
    "PRAGMA application_id = 1953460076",
)


def test_a_file_of_an_older_layout_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    old = [{"v": 1, "fact": "RunBegan", "run": "r", "at": 50.0}, {"v": 1, "fact": "Noted", "layer": "x", "note": 1}]
    rows = [("a", n, json.dumps(each)) for n, each in enumerate(old)] + [("b", 0, "no json")]
    run_sql(path, *LAYOUT_1)
    connection = sqlite3.connect(path)
    connection.executemany("INSERT INTO facts VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()
    for _ in range(2):  # the second time there is nothing to do
        with SqliteStore(path) as store:
            assert store.entries() == [StoredConversation("a", 2, 50.0), StoredConversation("b", 1, 0.0)]
            assert store.load("a") == old
    with SqliteStore(path) as store:
        store.append("a", 2, facts(2))
        assert store.entries("a")[0].facts == 3


def test_a_file_of_a_newer_layout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    SqliteStore(path).close()
    run_sql(path, "PRAGMA user_version = 99")
    with pytest.raises(StateError, match=r"layout 99.*use the newer version"):
        SqliteStore(path)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    store.append("a", 0, facts(0))
    store.close()
    store.close()
    for use in (lambda: store.load("a"), lambda: store.append("a", 1, facts(1))):
        with pytest.raises(StateError, match="is closed"):
            use()


def test_readers_do_not_wait_for_a_writer_and_another_writer_says_why_it_gave_up(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with SqliteStore(path, busy_seconds=0.05) as store:
        store.append("a", 0, facts(0))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO facts VALUES ('a', 1, '{}')")
        assert store.load("a") == facts(0)
        assert store.list() == ["a"]
        with pytest.raises(StateError, match=r"busy for more than 0\.05 s.*raise busy_seconds"):
            store.append("a", 1, facts(1))
        other.execute("ROLLBACK")
        other.close()
        store.append("a", 1, facts(1))
        assert store.load("a") == facts(0, 1)


def _write_own_and_shared(path: str, worker: int, begin: Any) -> None:
    begin.wait(PATIENCE)
    with SqliteStore(path) as store:
        for position in range(15):
            store.append(f"own-{worker}", position, facts(position))
            with suppress(StateError):
                store.append("shared", position, [{"by": worker}])


def test_many_processes_may_open_a_new_file_and_write_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "x.db")
    context = multiprocessing.get_context("spawn")
    begin = context.Event()
    workers = [context.Process(target=_write_own_and_shared, args=(path, n, begin)) for n in range(3)]
    for worker in workers:
        worker.start()
    begin.set()
    for worker in workers:
        worker.join(PATIENCE)
    assert [worker.exitcode for worker in workers] == [0] * 3
    with SqliteStore(path) as store:
        assert all(store.load(f"own-{n}") == facts(*range(15)) for n in range(3))
        assert len(store.load("shared")) == store.entries("shared")[0].facts <= 15


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_uses_connections_of_its_own(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "x.db") as store:
        store.append("a", 0, facts(0))
        assert store.load("a") == facts(0)
        # In a process of its own: this one has threads, which a fork must not have.
        script = f"""
            import os
            from toolsearch.stores import SqliteStore
            store = SqliteStore({str(tmp_path / "x.db")!r})
            inherited = store._writer, store.load("a"), store._reader
            if (child := os.fork()) == 0:
                store.append("a", 1, [{{"by": "child"}}])
                own = store._writer is not inherited[0] and store.load("a")[1:] == [{{"by": "child"}}]
                os._exit(0 if own else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            store.append("a", 2, [{{"by": "parent"}}])
            store.close()
        """
        subprocess.run([sys.executable, "-W", "error", "-c", textwrap.dedent(script)], check=True, timeout=PATIENCE)
        assert store.load("a") == [fact(0), {"by": "child"}, {"by": "parent"}]


# -- kill -9 -----------------------------------------------------------------------------------------------------

WRITER = """
    import sys
    from toolsearch.stores import SqliteStore
    store = SqliteStore(sys.argv[1])
    for position in range(100_000):
        store.append("a", position * 3, [{"n": position * 3 + k, "text": "x" * 300} for k in range(3)])
        print(position * 3 + 3, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
@pytest.mark.parametrize("after", [1, 20])
def test_what_append_returned_for_is_there_after_a_kill(tmp_path: Path, after: int) -> None:
    path = tmp_path / "x.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    told = [writer.stdout.readline() for _ in range(after)]
    writer.kill()
    told += writer.stdout.read().split()  # what it still said before it died
    writer.stdout.close()
    writer.wait(PATIENCE)
    with SqliteStore(path) as store:
        kept = store.load("a")
        assert [each["n"] for each in kept] == list(range(len(kept)))
        assert len(kept) >= int(told[-1])
        assert len(kept) % 3 == 0, "a part of an append was stored"
        store.append("a", len(kept), facts(0))


# An agent whose tools write down that they ran. In the first life two of them never end.
PROGRAM = """
    import sys, time
    from toolsearch import ToolSearch, tool
    from toolsearch.loop.agent import Agent
    from toolsearch.stores import SqliteStore
    from toolsearch.testing import ScriptedModel

    path, log, life, alone = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "alone"

    def ran(name):
        with open(log, "a") as file:
            file.write(name + "\\n")

    def quick():
        "Ends at once."
        ran("quick")
        return f"quick in life {life}"

    def read():
        "Reads; may run again."
        ran("read")
        while life == "1" and not alone:
            time.sleep(0.05)
        return f"read in life {life}"

    def pay():
        "Pays; must not run twice."
        ran("pay")
        while life == "1":
            time.sleep(0.05)
        return f"paid in life {life}"

    def later():
        "Comes last."
        ran("later")
        while life == "1" and not alone:
            time.sleep(0.05)
        return f"later in life {life}"

    tools = [
        tool(quick, kind="action", alone=alone),
        tool(read, kind="read", alone=alone),
        tool(pay, kind="action", alone=alone),
        tool(later, kind="action", alone=alone),
    ]
    calls = [("c1", "quick", {}), ("c2", "read", {}), ("c3", "pay", {}), ("c4", "later", {})]
    model = ScriptedModel(calls if life == "1" else "All is well.")
    agent = Agent(model, ToolSearch(tools, mode="static"), store=SqliteStore(path))
    result = agent.run("Go" if life == "1" else None, conversation_id="s")
    print(result.reason, result.text)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
@pytest.mark.parametrize("mode", ["together", "alone"])
def test_a_process_killed_in_the_middle_of_a_batch_loses_nothing_and_runs_nothing_twice(
    tmp_path: Path, mode: str
) -> None:
    """NA-6, kill -9: what ended keeps its result, what may be repeated runs again, what may not is interrupted."""
    path, log = tmp_path / "x.db", tmp_path / "ran.txt"
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(path), str(log)]
    first = subprocess.Popen([*command, "1", mode])
    ended = {"c1"} if mode == "together" else {"c1", "c2"}
    begun = ["later", "pay", "quick", "read"] if mode == "together" else ["pay", "quick", "read"]
    try:
        wait_until(lambda: log.exists() and sorted(log.read_text().split()) == begun, first)
        with SqliteStore(path) as store:  # reads while the other writes
            wait_until(lambda: {e.call_id for e in returned(store)} == ended, first)
    finally:
        first.kill()
        first.wait(PATIENCE)
    assert first.returncode == -signal.SIGKILL

    second = subprocess.run([*command, "2", mode], check=True, capture_output=True, text=True, timeout=PATIENCE)
    assert second.stdout.strip() == "answered All is well."
    with SqliteStore(path) as store:
        results = {e.call_id: (e.status, e.content) for e in returned(store)}
    assert len(results) == 4
    assert results["c1"] == ("ok", "quick in life 1")
    assert results["c3"][0] == "interrupted"
    assert "not known" in results["c3"][1]
    runs = sorted(log.read_text().split())
    if mode == "together":
        assert results["c2"] == ("ok", "read in life 2")
        assert results["c4"][0] == "interrupted"
        assert runs == ["later", "pay", "quick", "read", "read"]
    else:
        assert results["c2"] == ("ok", "read in life 1")
        assert results["c4"] == ("ok", "later in life 2")
        assert runs == ["later", "pay", "quick", "read"]


def returned(store: SqliteStore) -> list[ToolReturned]:
    return [e for e in read_events(store.load("s")) if isinstance(e, ToolReturned)]


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[Any]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert process.poll() is None, "the process has ended by itself"
        assert time.monotonic() < until, "it never comes to that"
        time.sleep(0.02)


# -- facts of an older format ------------------------------------------------------------------------------------


def test_a_fact_of_an_older_format_is_migrated_when_it_is_read(monkeypatch: pytest.MonkeyPatch, store: Any) -> None:
    """The planted format 0 named the text of a `UserSaid` "message", the format -1 "words"."""

    def renamed(old: str, new: str) -> Callable[[Any], dict[str, Any]]:
        return lambda line: {new if key == old else key: item for key, item in line.items()}

    monkeypatch.setitem(journals.MIGRATIONS, -1, renamed("words", "message"))
    monkeypatch.setitem(journals.MIGRATIONS, 0, renamed("message", "text"))
    old = [
        {"v": -1, "fact": "UserSaid", "words": "Hello"},
        {"v": 0, "fact": "UserSaid", "message": "Hello again"},
        journals.stored(UserSaid("And now")),
    ]
    store.append("a", 0, old)
    assert read_events(store.load("a")) == [UserSaid("Hello"), UserSaid("Hello again"), UserSaid("And now")]
    for version in (-2, 2, "1", None):
        with pytest.raises(StateError, match=r"fact 0 .* format .*: use the version that wrote it"):
            read_events([{"v": version, "fact": "UserSaid", "text": "Hello"}])
