"""A store whose file is damaged, or whose clock is wrong, says what to do, and no raw error of SQLite escapes."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.torture.damage import scrambled
from toolsearch import Agent, SetupError, StateError, ToolSearch, tool
from toolsearch.layers import approval
from toolsearch.stores import MemoryStore, SqliteStore
from toolsearch.testing import ScriptedModel

NEXT_STEPS = ("restore", "delete the conversation", "a file of its own", "newer version", "load it and go on")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a store with a few conversations."""
    file = tmp_path_factory.mktemp("store") / "x.db"
    with SqliteStore(file) as store:
        for n in range(6):
            agent = Agent(ScriptedModel("Hello, " * 40), ToolSearch([]), store=store)
            agent.run("go " * 50, conversation_id=f"c{n}")
    return file.read_bytes()


def use(file: Path) -> set[str]:
    """Everything that a store does, each once; returns the errors' messages. Any other error is raised."""
    said = set()
    try:
        store = SqliteStore(file)
    except (SetupError, StateError) as error:
        return {str(error)}
    agent = Agent(ScriptedModel("Hello."), ToolSearch([]), store=store)
    uses: list[Callable[[], Any]] = [
        store.list, store.entries, lambda: store.load("c1"), lambda: store.append("c2", 5, [{"v": 1, "fact": "Noted"}]),
        lambda: store.expire(0.0), lambda: store.delete("c3"), lambda: agent.run("go", conversation_id="c4"),
        lambda: asyncio.run(agent.arun("go", conversation_id="c5")), lambda: store.lease("c0", "one", 1.0),
        lambda: store.release("c0", "one"),
    ]  # fmt: skip
    with store:
        for each in uses:
            try:
                each()
            except StateError as error:
                said.add(str(error))
    return said


@pytest.mark.parametrize("seed", range(6))
def test_D13_randomly_damaged_files_are_read_or_named(tmp_path: Path, whole: bytes, seed: int) -> None:
    """D13: 14 of 300 raised UnicodeDecodeError."""
    rng, refused = random.Random(seed), 0
    for n in range(50):
        file = tmp_path / f"{n}.db"
        file.write_bytes(scrambled(whole, n, rng))
        said = use(file)
        refused += bool(said)
        for message in said:
            assert any(step in message for step in NEXT_STEPS) or message.startswith("fact "), message
    assert refused


def test_D13_where_the_names_of_the_tables_are_damaged(tmp_path: Path) -> None:
    """D13: SQLite's message quotes the damaged bytes, which are no UTF-8."""
    file = tmp_path / "x.db"
    with SqliteStore(file) as store:
        store.append("c", 0, [{"v": 1, "fact": "UserSaid", "text": "hi"}])
    content = file.read_bytes()
    at = content.index(b"tablefactsfacts")
    file.write_bytes(content[: at + 5] + b"\xc7" + content[at + 6 :])
    said = use(file)
    assert said
    for message in said:
        assert "is damaged or not an SQLite file" in message
        assert "restore it from a copy" in message


def test_D13_what_a_row_may_not_hold_is_named(tmp_path: Path) -> None:
    import sqlite3

    for damage in ("UPDATE conversations SET facts = 'many'", "UPDATE conversations SET facts = x'00'"):
        file = tmp_path / f"{len(damage)}.db"
        with SqliteStore(file) as store:
            store.append("c", 0, [{"v": 1, "fact": "UserSaid", "text": "hi"}])
        connection = sqlite3.connect(file, isolation_level=None)
        connection.execute(damage)
        connection.close()
        with SqliteStore(file) as store:
            for act in (store.list, lambda: store.append("c", 1, [{"v": 1}])):
                with pytest.raises(StateError, match=r"is damaged .*restore it from a copy"):
                    act()


def test_D13_a_fact_nested_too_deep_to_read_is_named(tmp_path: Path) -> None:
    import sqlite3

    file = tmp_path / "x.db"
    with SqliteStore(file) as store:
        store.append("c", 0, [{"v": 1, "fact": "UserSaid", "text": "hi"}])
        connection = sqlite3.connect(file, isolation_level=None)
        connection.execute("UPDATE facts SET fact = ?", ('{"a":' + "[" * 200_000,))
        connection.close()
        with pytest.raises(StateError, match="fact 0 of the conversation 'c' cannot be read"):
            store.load("c")


# -- clocks ------------------------------------------------------------------------------------------------------------

NO_TIMES = [float("nan"), float("inf"), -float("inf"), "x", None, True]


@pytest.mark.parametrize("value", NO_TIMES)
def test_D16_a_clock_that_gives_no_time_is_a_clear_error(drive: Any, value: Any) -> None:
    """D16: NaN and infinity were stored as text, and a later comparison raised TypeError."""
    did = []

    @tool(kind="action")
    def act() -> str:
        """Acts."""
        did.append(1)
        return "done"

    store = MemoryStore()
    agent = Agent(
        ScriptedModel([("c1", "act", {})], "Done."), ToolSearch([act], mode="static"), store=store, clock=lambda: value,
        layers=[approval(ttl_seconds=60)],
    )  # fmt: skip
    with pytest.raises(SetupError, match=r"clock must give seconds since the epoch, as time.time\(\) does, not"):
        drive(agent, "Go", conversation_id="s")
    assert (did, store.load("s")) == ([], [])


@pytest.mark.parametrize("value", NO_TIMES)
def test_D16_so_it_is_in_a_store(tmp_path: Path, value: Any) -> None:
    with SqliteStore(tmp_path / "x.db", clock=lambda: value) as file:
        for store in (file, MemoryStore(clock=lambda: value)):
            with pytest.raises(SetupError, match="clock must give seconds since the epoch"):
                store.append("c", 0, [{"v": 1}])
            assert store.load("c") == []
            assert store.list() == []
