"""Tasks whose end can be checked: what the tables must be in the end, what was called with what, what was answered.

The end state of a task is what its `solution` leaves. Every record that was added, changed or removed must be as there,
field by field, and no other may have changed: so a wrong room, a quantity of 700 in place of 5, or an issue that nobody
asked for all fail. Only what a model words itself is open: the fields in `free`, and those in `has`, which must hold
given words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from toolsearch_evals.agent.world import DATA, Record, Tables, World, effects

__all__ = ["SYSTEM", "MadeCall", "Step", "Task", "difference", "problems_of", "same", "tasks", "unchosen"]

SYSTEM = (
    "You are the assistant of Ana Ruiz, who works in the office in Hamburg. Today is Tuesday, 2026-03-03. Do what she "
    "asks with the tools; look up what you do not know, such as ids, and do not ask her back. When it is done, say in "
    "one or two sentences what you did, or what the answer is."
)


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a solution; `query` is what one would search its tool with."""

    tool: str
    arguments: Mapping[str, Any]
    query: str


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that a model made: the tool's id ("" if there is none), the arguments, and how it was answered."""

    tool: str
    arguments: Mapping[str, Any]
    status: str
    kind: str = "tool"  # or "search", or "answered" for a call that could not run


@dataclass(frozen=True, slots=True)
class Task:
    """What a user asks for, in a user's words.

    `needs` has groups of tool ids: of each group one tool has to be called. `answer` has groups of texts: one of each
    must stand in the final answer. `calls` must be made with exactly these arguments. `said` is the solution's answer.
    """

    id: str
    text: str
    needs: tuple[tuple[str, ...], ...]
    solution: tuple[Step, ...]
    answer: tuple[tuple[str, ...], ...] = ()
    calls: tuple[MadeCall, ...] = ()
    free: frozenset[str] = frozenset()
    has: Mapping[str, Sequence[str]] = field(default_factory=dict)
    said: str = ""

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers of the world that the solution uses."""
        return tuple(dict.fromkeys(step.tool.partition("/")[0] for step in self.solution))


@cache
def tasks() -> tuple[Task, ...]:
    """The tasks that ship, in the order of the file."""
    return tuple(_task(json.loads(line)) for line in (DATA / "tasks.jsonl").read_text("utf-8").splitlines())


def _task(line: Mapping[str, Any]) -> Task:
    return Task(
        id=line["id"],
        text=line["text"],
        needs=tuple(map(tuple, line["needs"])),
        solution=tuple(Step(**step) for step in line["solution"]),
        answer=tuple(map(tuple, line.get("answer", ()))),
        calls=tuple(MadeCall(each["tool"], each["arguments"], "ok") for each in line.get("calls", ())),
        free=frozenset(line.get("free", ())),
        has=line.get("has", {}),
        said=line["said"] or "It is done.",
    )


# -- the check ---------------------------------------------------------------------------------------------------


def problems_of(task: Task, end: Tables, calls: Sequence[MadeCall], answer: str) -> list[str]:
    """What is wrong with the end of a task, a sentence for each; nothing if it is met."""
    found = _wrong_changes(task, end)
    ran = [call for call in calls if call.status == "ok"]
    found += [
        f"{wanted.tool} was not called with exactly {json.dumps(wanted.arguments, ensure_ascii=False)}"
        for wanted in task.calls
        if not any(call.tool == wanted.tool and same(wanted.arguments, call.arguments) for call in ran)
    ]
    found += [f"the answer does not say {texts[0]!r}" for texts in task.answer if not _says(answer, texts)]
    return found


def unchosen(task: Task, calls: Sequence[MadeCall]) -> list[str]:
    """The first tool of each group that the task needs and of which none was called and ran."""
    ran = {call.tool for call in calls if call.status == "ok"}
    return [group[0] for group in task.needs if ran.isdisjoint(group)]


def _wrong_changes(task: Task, end: Tables) -> list[str]:
    """Expected changes that are missing, and changes that nobody asked for."""
    begin = World().tables
    wanted, made = difference(begin, _solved(task)), difference(begin, end)
    problems = []
    for (table, record_id), record in wanted.items():
        if record_id in begin[table]:
            got = made.pop((table, record_id), begin[table][record_id])
            problems += _wrong_record(f"{record_id} of {table}", record, got, task)
            continue
        added = [key for key in made if key[0] == table and key[1] not in begin[table]]
        fitting = [key for key in added if not _wrong_record("", record, made[key], task)]
        if not added:
            problems.append(f"nothing was added to {table}")
            continue
        chosen = (fitting or added)[0]
        problems += _wrong_record(f"what was added to {table}", record, made.pop(chosen), task)
    return problems + [f"{record_id} of {table} was changed, which nobody asked for" for table, record_id in made]


def difference(before: Tables, after: Tables) -> dict[tuple[str, str], Record | None]:
    """The records that differ, by table and id, as they are afterwards; None for those that were removed."""
    keys = [(table, i) for table in before for i in dict.fromkeys([*before[table], *after[table]])]
    return {(t, i): after[t].get(i) for t, i in keys if not same(before[t].get(i), after[t].get(i))}


def _solved(task: Task) -> Tables:
    world = World()
    for step in task.solution:
        world.apply(effects()[step.tool], step.arguments)
    return world.tables


def _wrong_record(what: str, wanted: Record | None, got: Record | None, task: Task) -> list[str]:
    if wanted is None or got is None:
        return [] if wanted is got else [f"{what} was {'kept' if wanted is None else 'removed'}"]
    problems = []
    for name in dict.fromkeys([*wanted, *got]):
        if name in task.free:
            continue
        if words := task.has.get(name):
            text = json.dumps(got.get(name), ensure_ascii=False).lower()
            problems += [f"{name} of {what} does not say {word!r}" for word in words if word.lower() not in text]
        elif not same(wanted.get(name), got.get(name)):
            problems.append(f"{name} of {what} is {got.get(name)!r} and not {wanted.get(name)!r}")
    return problems


def same(wanted: object, got: object) -> bool:
    """Whether two values are the same: scalars too, 5 and 5.0 are, 5 and 700 or "5" are not.

    Texts are compared without regard to case, spaces and a full stop at the end; lists without regard to order.
    """
    if isinstance(wanted, Mapping) and isinstance(got, Mapping):
        return wanted.keys() == got.keys() and all(same(wanted[key], got[key]) for key in wanted)
    if isinstance(wanted, list | tuple) and isinstance(got, list | tuple):
        rest = list(got)
        for each in wanted:
            at = next((place for place, other in enumerate(rest) if same(each, other)), None)
            if at is None:
                return False
            del rest[at]
        return not rest
    if isinstance(wanted, str) and isinstance(got, str):
        return _plain(wanted) == _plain(got)
    if isinstance(wanted, bool) or isinstance(got, bool):
        return wanted is got
    return wanted == got


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(". ").casefold()


def _says(answer: str, texts: Iterable[str]) -> bool:
    return any(re.search(rf"(?<![\w.]){re.escape(text)}(?!\w|\.\d)", answer, re.IGNORECASE) for text in texts)
