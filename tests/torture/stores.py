"""Stores that raise at random, and files of stores with random damage: a conversation goes on, or says why not."""

from __future__ import annotations

import asyncio
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.torture import Outcome
from tests.torture.damage import scrambled
from toolsearch import Agent, SetupError, StateError, ToolCall, ToolContext, ToolSearch, tool
from toolsearch.events import CallModel, Reply
from toolsearch.stores import MemoryStore, SqliteStore
from toolsearch.support.json_types import JsonObject

ROUNDS, CALLS, ATTEMPTS = 3, 5, 80


class Flaky(MemoryStore):
    """Raises at random, before a write or after it."""

    def __init__(self, rng: random.Random, share: float) -> None:
        super().__init__(most=None)
        self._rng, self._share = rng, share

    def _before_or_after(self, write: Callable[[], Any], share: float) -> Any:
        fails, first = self._rng.random() < share, self._rng.random() < 0.5
        if fails and first:
            raise OSError("before")
        result = write()
        if fails:
            raise OSError("after")
        return result

    def append(self, conversation_id: str, position: int, facts: Sequence[JsonObject]) -> None:
        self._before_or_after(lambda: super(Flaky, self).append(conversation_id, position, facts), self._share)

    def load(self, conversation_id: str) -> list[dict[str, Any]]:
        loaded = self._before_or_after(lambda: super(Flaky, self).load(conversation_id), self._share / 2)
        return list(loaded)

    def lease(self, conversation_id: str, owner: str, seconds: float, *, instead_of: str = "") -> str:
        def take() -> str:
            return super(Flaky, self).lease(conversation_id, owner, seconds, instead_of=instead_of)

        return str(self._before_or_after(take, self._share))

    def release(self, conversation_id: str, owner: str) -> None:
        self._before_or_after(lambda: super(Flaky, self).release(conversation_id, owner), self._share)

    def whole(self, conversation_id: str) -> list[dict[str, Any]]:
        """The facts, without an accident."""
        return super().load(conversation_id)


def failing_stores(count: int = 90, seed: int = 5) -> Outcome:
    """Talks over a store that raises at random, in both drivers, until each turn has ended; no action runs twice."""
    outcome, ran = Outcome(), Counter[tuple[str, str]]()
    threads = threading.active_count()
    store = Flaky(random.Random(seed), 0.04)

    def work(x: int, context: ToolContext) -> str:
        ran[context.conversation_id, context.call_id] += 1
        return str(x)

    def model(request: CallModel) -> Reply:
        place = request.turn.rounds
        calls = tuple(ToolCall(f"r{place}c{n}", f"work_{n}", {"x": place}) for n in range(CALLS))
        return Reply("", calls) if place < ROUNDS else Reply("Done.")

    made: list[Any] = [
        tool(work, name=f"work_{n}", description="Work", kind="action", alone=False) for n in range(CALLS)
    ]
    agent = Agent(model, ToolSearch(made, mode="static"), store=store, actions="run")
    failures: Counter[str] = Counter()
    for n in range(count):
        if not _until_it_ends(agent, store, f"s{n}", is_async=n % 3 == 0, failures=failures):
            outcome.violations.append(f"s{n}: its turn does not end")
    twice = [key for key, times in ran.items() if times > 1]
    outcome.violations += [f"{conversation}: the action {call} ran twice" for conversation, call in twice]
    until = time.monotonic() + 5
    while (left := threading.active_count() - threads) > 0 and time.monotonic() < until:
        time.sleep(0.01)
    if left > 0:
        outcome.violations.append(f"{left} threads are left")
    outcome.figures = {"conversations": count, "actions": len(ran), "ran twice": len(twice), **failures}
    return outcome


def _until_it_ends(agent: Agent, store: Flaky, name: str, *, is_async: bool, failures: Counter[str]) -> bool:
    for _ in range(ATTEMPTS):
        said = None if store.whole(name) else "go"
        try:
            asyncio.run(agent.arun(said, conversation_id=name)) if is_async else agent.run(said, conversation_id=name)
        except (OSError, StateError) as error:
            failures[f"{type(error).__name__} raised"] += 1
        facts = store.whole(name)
        if facts and facts[-1]["fact"] == "RunEnded":
            return True
    return False


def damaged_files(count: int = 120, seed: int = 3) -> Outcome:
    """Changes or cuts the file of a store at random, and uses it: it works, or an error of ours says why not."""
    rng, outcome, answers = random.Random(seed), Outcome(), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with SqliteStore(folder / "whole.db") as store:
            agent = Agent(lambda request: Reply("Hello. " * 30), ToolSearch([]), store=store)
            for n in range(8):
                agent.run("go " * 50, conversation_id=f"c{n}")
        whole = (folder / "whole.db").read_bytes()
        for n in range(count):
            file = folder / f"{n}.db"
            file.write_bytes(scrambled(whole, n, rng))
            try:
                answers[_use(file)] += 1
            except Exception as error:
                outcome.violations.append(f"file {n} of seed {seed} raises {type(error).__name__}: {str(error)[:200]}")
            for each in folder.glob(f"{n}.db*"):
                each.unlink()
    outcome.figures = {"files": count, **answers}
    return outcome


def _use(file: Path) -> str:
    try:
        with SqliteStore(file) as store:
            agent = Agent(lambda request: Reply("Hello."), ToolSearch([]), store=store)
            for conversation in store.list():
                agent.run("go", conversation_id=conversation)
            store.expire(0.0)
    except (SetupError, StateError) as error:
        return f"{type(error).__name__} raised"
    return "fine"
