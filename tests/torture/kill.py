"""Workers over one `SqliteStore` are killed at random moments, and others go on: nothing is lost or done twice.

This module is also the worker: `python -m tests.torture.kill FILE CONVERSATION LOG MODE` lives one life. Its tools
leave a line in the log when they begin and when they end, which are on the disk before the tool goes on.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.torture import Outcome
from toolsearch import Agent, StateError, ToolCall, ToolContext, ToolSearch, tool
from toolsearch.events import CallModel, Reply
from toolsearch.stores import SqliteStore

ROUNDS, CALLS = 3, 5
MODES = ("repeatable", "alone", "together")  # the tools: reads; actions, one by one; actions at the same time
LIVES = 60  # processes until a conversation that has not ended is a violation


# -- one life ----------------------------------------------------------------------------------------------------------


def live(file: str, conversation: str, log: str, mode: str) -> None:
    """Begins or continues a conversation; says what came of it."""

    def note(what: str, context: ToolContext) -> None:
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{what} {context.call_id} {conversation} {os.getpid()}\n".encode())
        os.fsync(descriptor)
        os.close(descriptor)

    def work(x: int, context: ToolContext) -> str:
        note("began", context)
        time.sleep(0.004)
        note("ended", context)
        return f"done {x}"

    def model(request: CallModel) -> Reply:
        place = request.turn.rounds
        time.sleep(0.003)
        if place >= ROUNDS:
            return Reply("all done")
        return Reply("", tuple(ToolCall(f"r{place}c{n}", f"work_{n}", {"x": place}) for n in range(CALLS)))

    kind: Any = "read" if mode == "repeatable" else "action"
    tools = [tool(work, name=f"work_{n}", description="Work", kind=kind, alone=mode == "alone") for n in range(CALLS)]
    store = SqliteStore(file)
    agent = Agent(model, ToolSearch(tools, mode="static"), store=store, actions="run")
    facts = len(store.load(conversation))
    print("ready", facts, flush=True)
    try:
        result: Any = agent.run(None if facts else "go", conversation_id=conversation)
        print("ended", result.reason, flush=True)
    except StateError as error:
        print("refused", error, flush=True)


@dataclass
class Workshop:
    """The files of an attack, and the workers on them."""

    folder: Path
    file: Path = field(init=False)
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        self.file, self.log = self.folder / "conversations.db", self.folder / "log"

    def worker(self, conversation: str, mode: str) -> subprocess.Popen[str]:
        """A process that is ready to work; it has said how many facts it found."""
        command = [sys.executable, "-m", "tests.torture.kill", str(self.file), conversation, str(self.log), mode]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def lines(self, what: str) -> Iterator[tuple[str, str]]:
        """The call and the conversation of each line of the log."""
        for line in self.log.read_text("utf-8").splitlines() if self.log.exists() else ():
            kind, call, conversation, _ = line.split()
            if kind == what:
                yield call, conversation

    def judge(self, modes: dict[str, str], outcome: Outcome) -> None:
        """Compares the log with the journals."""
        began, ended = Counter(self.lines("began")), Counter(self.lines("ended"))
        statuses: Counter[str] = Counter()
        again = 0
        for (call, conversation), times in began.items():
            again += times > 1 and modes[conversation] == "repeatable"
            if times > 1 and modes[conversation] != "repeatable":
                outcome.violations.append(f"{conversation}: the action {call} was begun {times} times")
        with SqliteStore(self.file) as store:
            for conversation in modes:
                facts = store.load(conversation)
                if not facts or facts[-1]["fact"] != "RunEnded":
                    outcome.violations.append(f"{conversation}: its turn has no end")
                for fact in (each for each in facts if each["fact"] == "ToolReturned"):
                    statuses[fact["status"]] += 1
                    if fact["status"] == "ok" and not ended[fact["call_id"], conversation]:
                        outcome.violations.append(f"{conversation}: {fact['call_id']} is ok, and never ended")
        connection = sqlite3.connect(self.file)
        if (found := connection.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
            outcome.violations.append(f"the file is not whole: {found}")
        connection.close()
        outcome.figures |= {"calls": sum(statuses.values()), "begun again (may be)": again}
        outcome.figures |= {f"answered {status}": count for status, count in sorted(statuses.items())}


# -- the attacks -------------------------------------------------------------------------------------------------------


def kills(rounds: int = 30, seed: int = 1, *, seconds: float = 60.0) -> Outcome:
    """Kills `rounds` workers, each at a random moment of its life, or as many as fit into `seconds`."""
    rng, outcome, modes = random.Random(seed), Outcome(), dict[str, str]()
    until = time.monotonic() + seconds
    done = 0
    with tempfile.TemporaryDirectory() as folder:
        shop = Workshop(Path(folder))
        while done < rounds and time.monotonic() < until:
            conversation = f"s{len(modes)}"
            mode = modes[conversation] = MODES[len(modes) % len(MODES)]
            done += _whole_life(shop, conversation, mode, rng, outcome)
        outcome.figures = {"kills": done, "conversations": len(modes)}
        shop.judge(modes, outcome)
    return outcome


def _whole_life(shop: Workshop, conversation: str, mode: str, rng: random.Random, outcome: Outcome) -> int:
    """Kills workers on a conversation until one has ended it; returns how many were killed."""
    killed = facts = 0
    for lives in range(LIVES):
        process = shop.worker(conversation, mode)
        assert process.stdout is not None
        first = process.stdout.readline().split()
        found = int(first[1]) if first else -1
        if found < facts:
            outcome.violations.append(f"{conversation}: its journal had {facts} facts, and now {found}")
        facts = found
        if lives < 6:
            time.sleep(rng.uniform(0, 0.16))
            if process.poll() is None:
                process.kill()
                killed += 1
        said, problem = process.communicate()
        if said.startswith("ended") or "no turn to continue" in said:
            return killed
        if said.startswith("refused") or problem.strip():  # the worker before it is dead, so nobody works on it
            outcome.violations.append(f"{conversation}: {said.strip()[:200]} {problem.strip()[-200:]}")
    outcome.violations.append(f"{conversation}: it does not end")
    return killed


def takeovers(count: int = 4, seed: int = 1, *, seconds: float = 60.0) -> Outcome:
    """After a kill, three workers take a conversation up at once: one of them gets it, and nothing is begun twice."""
    rng, outcome, modes = random.Random(seed), Outcome(), dict[str, str]()
    until = time.monotonic() + seconds
    answers: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        shop = Workshop(Path(folder))
        while len(modes) < count and time.monotonic() < until:
            conversation = f"s{len(modes)}"
            mode = modes[conversation] = MODES[len(modes) % len(MODES)]
            first = shop.worker(conversation, mode)
            assert first.stdout is not None
            first.stdout.readline()
            time.sleep(rng.uniform(0.01, 0.05))
            first.kill()
            first.communicate()
            for process in [shop.worker(conversation, mode) for _ in range(3)]:
                said, problem = process.communicate()
                answers[said.splitlines()[-1].split()[0] if said.strip() else "failed"] += 1
                if problem.strip():
                    outcome.violations.append(f"{conversation}: {problem.strip()[-200:]}")
            shop.worker(conversation, mode).communicate()
        outcome.figures = {"conversations": len(modes), **{f"workers: {key}": n for key, n in answers.items()}}
        shop.judge(modes, outcome)
        for (call, conversation), times in Counter(shop.lines("began")).items():
            if times > 2:  # once before the kill, and once after it
                outcome.violations.append(f"{conversation}: {call} was begun {times} times after one kill")
    return outcome


if __name__ == "__main__":
    live(*sys.argv[1:])
