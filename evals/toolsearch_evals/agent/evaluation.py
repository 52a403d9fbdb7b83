"""An evaluation of a model: tasks × sizes × arms, played one by one within a budget, gone on with where it stopped."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Protocol

from toolsearch import Settings, SetupError
from toolsearch.events import ModelCalled
from toolsearch.layers import cost
from toolsearch.support.json_types import JsonObject
from toolsearch_evals.agent.catalogs import definitions_for
from toolsearch_evals.agent.play import Arm, Asked, PlayedTask, Remaining, play_task
from toolsearch_evals.agent.tasks import Task, tasks

__all__ = ["AgentPlan", "Budget", "Keeper", "Outcome", "Unit", "Unkept", "evaluate", "read_budget", "units_of"]

ERRORS_IN_A_ROW = 5  # tasks that fail by an error of the endpoint, after which it is left alone
Tick = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that an evaluation may cost, in dollars or tokens; None for no such bound."""

    dollars: float | None = None
    tokens: int | None = None

    def __str__(self) -> str:
        return f"${self.dollars:g}" if self.dollars is not None else f"{self.tokens:,} tokens" if self.tokens else ""


@dataclass(frozen=True)
class AgentPlan:
    """What is played: `tasks` of these ids, all without any; catalogs of these `sizes`; each `arm`, `repeats` times."""

    arms: tuple[Arm, ...] = (Arm("static"), Arm("append"))
    sizes: tuple[int, ...] = (20, 100)
    tasks: tuple[str, ...] = ()
    repeats: int = 1
    seed: int = 0
    budget: Budget = Budget()
    concurrency: int = 1

    def chosen(self) -> list[Task]:
        """The tasks. Raises `SetupError` for an id that does not exist."""
        known = {task.id: task for task in tasks()}
        for task_id in self.tasks:
            if task_id not in known:
                raise SetupError(f"there is no task {task_id!r}; there are: {', '.join(known)}")
        return [known[i] for i in self.tasks or known]


@dataclass(frozen=True)
class Unit:
    """One task to play once; `key` is a short unique text."""

    task: Task
    size: int
    arm: Arm
    repeat: int

    @property
    def key(self) -> str:
        return f"{self.size} {self.arm.label} {self.task.id} {self.repeat}"


class Keeper(Protocol):
    """Where finished units are kept; a `Run` is one."""

    def known(self, unit: str) -> JsonObject | None: ...
    def record(self, unit: str, *, events: Any = (), scores: Any = (), result: JsonObject | None = None) -> None: ...


class Unkept:
    """Keeps units in memory only."""

    def __init__(self) -> None:
        self._results: dict[str, JsonObject] = {}

    def known(self, unit: str) -> JsonObject | None:
        return self._results.get(unit)

    def record(self, unit: str, *, events: Any = (), scores: Any = (), result: JsonObject | None = None) -> None:
        del events, scores
        self._results[unit] = result or {}


@dataclass
class Outcome:
    """Scores in the order of the units; `missing` are the units without one, and `stopped` says why there are some."""

    scores: list[JsonObject] = field(default_factory=list)
    missing: list[Unit] = field(default_factory=list)
    stopped: str = ""


def units_of(plan: AgentPlan) -> list[Unit]:
    """What is to be played, task by task, so that all arms have played the same tasks when a budget ends it.

    Raises `SetupError` for a task, a size or a setting that there cannot be.
    """
    chosen = plan.chosen()
    for size, task in product(plan.sizes, chosen):
        definitions_for(task, size)
    for arm in plan.arms:
        Settings.from_mapping({**arm.settings, "mode": arm.mode})
    return [
        Unit(task, size, arm, repeat)
        for repeat, task, size, arm in product(range(plan.repeats), chosen, plan.sizes, plan.arms)
    ]


def evaluate(plan: AgentPlan, asked: Asked, keeper: Keeper, tick: Tick = lambda _: None) -> Outcome:
    """Plays what the keeper does not know yet. An interruption loses only the task that is being played."""
    if plan.budget.dollars is not None and cost(ModelCalled(model=asked.endpoint.model), asked.prices) is None:
        raise SetupError(
            f"the price of the model {asked.endpoint.model!r} is not known: pass --price, or a budget in tokens"
        )
    units = units_of(plan)
    playing = _Playing(plan, asked, keeper, tick)
    todo = (unit for unit in units if keeper.known(unit.key) is None)
    playing.spend_what_was_spent(units)
    if plan.concurrency == 1:
        for unit in todo:
            playing.play(unit)
    else:
        with ThreadPoolExecutor(plan.concurrency) as pool:
            list(pool.map(playing.play, todo))
    playing.flush()
    known = [(unit, keeper.known(unit.key)) for unit in units]
    scores = [score for _, score in known if score is not None]
    return Outcome(scores, [unit for unit, score in known if score is None], playing.stopped)


class _Playing:
    """What has been spent, and the errors in a row that are not kept yet: an endpoint that is away is no result."""

    def __init__(self, plan: AgentPlan, asked: Asked, keeper: Keeper, tick: Tick) -> None:
        self.plan, self.asked, self.keeper, self.tick = plan, asked, keeper, tick
        self.stopped = ""
        self._dollars, self._tokens, self._cuts = 0.0, 0, 0
        self._errors: list[tuple[Unit, PlayedTask]] = []
        self._lock = threading.Lock()

    def spend_what_was_spent(self, units: list[Unit]) -> None:
        """Counts what a run that goes on has cost already, tasks that a budget cut among it."""
        for unit in units:
            self._spend(self.keeper.known(unit.key))
        while (cut := self.keeper.known(_cut_key(self._cuts))) is not None:
            self._spend(cut)
            self._cuts += 1

    def _spend(self, score: JsonObject | None) -> None:
        if score:
            self._dollars += score["dollars"] or 0.0
            billed = (score["new"], score["cached"], score["written"])
            self._tokens += sum(each or 0 for each in billed) or score["counted"]

    def play(self, unit: Unit) -> None:
        with self._lock:
            remaining = self._remaining()
        if self.stopped:
            return
        played = play_task(unit.task, unit.size, unit.arm, self.asked, seed=self.plan.seed, remaining=remaining)
        with self._lock:
            self._spend(played.score)
            self._take(unit, played)
        self.tick(f"{unit.size} tools, {unit.arm.label}, {unit.task.id}")

    def _remaining(self) -> Remaining:
        budget = self.plan.budget
        tokens = None if budget.tokens is None else budget.tokens - self._tokens
        dollars = None if budget.dollars is None else budget.dollars - self._dollars
        if (tokens is not None and tokens <= 0) or (dollars is not None and dollars <= 0):
            self.stopped = self.stopped or f"the budget of {budget} is used up"
        return Remaining(tokens, dollars)

    def _take(self, unit: Unit, played: PlayedTask) -> None:
        if played.cut:
            self.stopped = self.stopped or f"the budget of {self.plan.budget} is used up"
            cut = {key: played.score[key] for key in ("dollars", "new", "cached", "written", "counted")}
            self.keeper.record(_cut_key(self._cuts), events=played.requests, result=cut)
            self._cuts += 1
        elif played.score["error"] is not None:
            self._errors.append((unit, played))
            if len(self._errors) >= ERRORS_IN_A_ROW:
                last = played.score["error"]
                self.stopped = self.stopped or f"the endpoint failed {len(self._errors)} times in a row ({last})"
                self._errors.clear()
        else:
            self._flush()
            self._keep(unit, played)

    def flush(self) -> None:
        """Keeps the errors that were not followed by more."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        for unit, played in self._errors:
            self._keep(unit, played)
        self._errors.clear()

    def _keep(self, unit: Unit, played: PlayedTask) -> None:
        where: JsonObject = {"tools": unit.size, "arm": unit.arm.label, "mode": unit.arm.mode, "repeat": unit.repeat}
        score = {**where, **played.score}
        self.keeper.record(unit.key, events=played.requests, scores=[score], result=score)


def _cut_key(number: int) -> str:
    return f"cut by the budget {number}"


def read_budget(text: str) -> Budget:
    """A budget from a text such as "$2", "2.50 usd" or "300000 tokens"; raises `SetupError` for any other."""
    plain = text.strip().lower().replace(",", "")
    match = re.fullmatch(r"(\$?)\s*(\d+(?:\.\d+)?)\s*(usd|dollars?|tokens?|)", plain)
    if match is None or bool(match[1]) == bool(match[3]) or float(match[2]) <= 0:
        raise SetupError(f"the budget {text!r} says no amount with its unit; write '$2.50' or '300000 tokens'")
    amount, in_tokens = float(match[2]), match[3].startswith("token")
    return Budget(tokens=int(amount)) if in_tokens else Budget(dollars=amount)
