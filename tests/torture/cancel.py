"""Turns are cancelled at random moments, in both drivers, and streams are closed early: every conversation goes on."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import Any

from tests.torture import Outcome
from toolsearch import Agent, Finished, ToolCall, ToolContext, ToolSearch, tool
from toolsearch.events import CallModel, Reply, ToolReturned

PATIENCE = 20.0  # seconds until a run that does not end is a violation
ROUNDS, CALLS = 3, 4


class Workshop:
    """Four tools, two of them actions, which note every call that ran; and a model that calls all of them."""

    def __init__(self) -> None:
        self.ran: set[tuple[str, str]] = set()
        tools = [self._made(number) for number in range(CALLS)]
        self.agent = Agent(self._model, ToolSearch(tools, mode="static"), actions="run")

    def _made(self, number: int) -> Any:
        def work(at: int, context: ToolContext) -> str:
            self.ran.add((context.conversation_id, context.call_id))
            context.cancelled.wait(0.02)
            return f"{number} at {at}"

        kind = "action" if number % 2 else "read"
        return tool(work, name=f"work_{number}", description="Work", kind=kind, alone=False)

    def _model(self, request: CallModel) -> Reply:
        time.sleep(0.003)
        place = request.turn.rounds
        if place >= ROUNDS:
            return Reply("Done.")
        return Reply("", tuple(ToolCall(f"r{place}c{n}", f"work_{n}", {"at": n}) for n in range(CALLS)))

    def broken(self, name: str) -> list[str]:
        """What is wrong with a conversation after it was cancelled and went on."""
        conversation = self.agent.conversation(name)
        wrong = [f"{name}: {len(conversation.open)} calls are open"] if conversation.open else []
        answers = Counter(fact.call_id for fact in conversation.journal if isinstance(fact, ToolReturned))
        wrong += [f"{name}: {call} was answered {times} times" for call, times in answers.items() if times > 1]
        for fact in conversation.journal:
            if isinstance(fact, ToolReturned) and fact.status == "cancelled" and (name, fact.call_id) in self.ran:
                wrong.append(f"{name}: {fact.call_id} is said not to have run, and ran")
        return wrong


def cancels(count: int = 150, seed: int = 9) -> Outcome:
    """Cancels `count` turns: a third from another thread, a third in asyncio, and a third by closing the stream."""
    rng, outcome, shop = random.Random(seed), Outcome(), Workshop()
    threads = threading.active_count()
    ended: Counter[str] = Counter()
    names = [f"{way}{n}" for n in range(count // 3) for way in ("thread", "task", "stream")]
    for name in (each for each in names if each.startswith("thread")):
        ended[_in_thread(shop, name, rng, outcome)] += 1
        _go_on(shop, name, outcome)
    ended += asyncio.run(_in_tasks(shop, [each for each in names if each.startswith("task")], rng, outcome))
    for name in (each for each in names if each.startswith("stream")):
        _closed_early(shop, name, rng)
        _go_on(shop, name, outcome)
    outcome.violations += [wrong for name in names for wrong in shop.broken(name)]
    left = _threads_left(threads)
    if left > 0:
        outcome.violations.append(f"{left} threads are left")
    outcome.figures = {"turns": len(names), "calls that ran": len(shop.ran), "threads left": left, **ended}
    return outcome


def _in_thread(shop: Workshop, name: str, rng: random.Random, outcome: Outcome) -> str:
    results: list[str] = []

    def go() -> None:
        try:
            results.append(_reason(shop.agent.run("Go", conversation_id=name)))
        except BaseException as error:
            outcome.violations.append(f"{name}: {error!r}")

    thread = threading.Thread(target=go)
    thread.start()
    time.sleep(rng.uniform(0, 0.12))
    shop.agent.cancel(name)
    thread.join(PATIENCE)
    if thread.is_alive():
        outcome.violations.append(f"{name}: does not end")
    return results[0] if results else "raised"


async def _in_tasks(shop: Workshop, names: list[str], rng: random.Random, outcome: Outcome) -> Counter[str]:
    """Half of them by `cancel`, half by cancelling the task."""
    ended: Counter[str] = Counter()
    for name in names:
        task = asyncio.create_task(shop.agent.arun("Go", conversation_id=name))
        await asyncio.sleep(rng.uniform(0, 0.12))
        if rng.random() < 0.5:
            task.cancel()
        else:
            shop.agent.cancel(name)
        try:
            ended[_reason(await asyncio.wait_for(task, PATIENCE))] += 1
        except asyncio.CancelledError:
            ended["task cancelled"] += 1
        except BaseException as error:
            outcome.violations.append(f"{name}: {error!r}")
        try:
            if (reason := _reason(await shop.agent.arun("More", conversation_id=name))) != "answered":
                outcome.violations.append(f"{name}: the next turn ended as {reason!r}")
        except Exception as error:
            outcome.violations.append(f"{name}: does not go on: {error!r}")
    await asyncio.sleep(0.2)
    if (tasks := len(asyncio.all_tasks()) - 1) > 0:
        outcome.violations.append(f"{tasks} tasks are left")
    return ended


def _closed_early(shop: Workshop, name: str, rng: random.Random) -> None:
    stream: Any = shop.agent.stream("Go", conversation_id=name)
    with suppress(StopIteration):
        for _ in range(rng.randrange(1, 30)):
            next(stream)
    stream.close()


def _go_on(shop: Workshop, name: str, outcome: Outcome) -> None:
    try:
        if (reason := _reason(shop.agent.run("More", conversation_id=name))) != "answered":
            outcome.violations.append(f"{name}: the next turn ended as {reason!r}")
    except Exception as error:
        outcome.violations.append(f"{name}: does not go on: {error!r}")


def _reason(result: object) -> str:
    return result.reason if isinstance(result, Finished) else type(result).__name__


def _threads_left(before: int) -> int:
    """How many threads are left once those that only finish have finished."""
    until = time.monotonic() + 5.0
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.02)
    return threading.active_count() - before
