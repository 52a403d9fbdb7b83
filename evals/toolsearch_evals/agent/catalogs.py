"""The catalog of a task: the tools it needs, filled up with tools of the set `commons` that cannot do it.

Servers of `commons` that could do what the world's tools do (calendars, issue trackers, file stores …) are left out: a
model that chose one of their tools would be right, and no check could say so. If all tools of the world fit, every task
has the same catalog, as in a program; in a smaller one, a task has the servers that it needs, whole.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

from toolsearch import SetupError
from toolsearch_evals.agent.tasks import Task
from toolsearch_evals.agent.world import world_definitions
from toolsearch_evals.data.cases import load

__all__ = ["RIVALS", "all_definitions", "definitions_for", "least_tools", "most_tools"]

# Servers of commons whose tools do what tools of the world do.
RIVALS = frozenset(
    "google_calendar outlook zoom shopify github gitlab bitbucket jira linear asana sentry filesystem google_drive "
    "aws_s3 notion quickbooks".split()
)

Definition = dict[str, Any]


@cache
def _others() -> tuple[Definition, ...]:
    return tuple(each for each in load("commons")[0].definitions if each["server"] not in RIVALS)


def most_tools() -> int:
    """How many tools a catalog can have."""
    return len(world_definitions()) + len(_others())


def least_tools(tasks: Sequence[Task]) -> int:
    """How many tools a catalog needs to have for these tasks: all those of the servers of one of them."""
    return max(len(_own(task)) for task in tasks)


def definitions_for(task: Task, size: int, seed: int = 0) -> list[Definition]:
    """The definitions of a catalog of this size for a task, by server and name.

    Raises `SetupError` for a size that cannot be.
    """
    least, most = least_tools([task]), most_tools()
    if not least <= size <= most:
        raise SetupError(
            f"a catalog of {size} tools cannot be made: the task {task.id!r} needs {least}, and there are {most}"
        )
    world = world_definitions()
    own = world if size >= len(world) else _own(task)
    order = all_definitions()
    random.Random(seed).shuffle(order)
    chosen = [*own, *[each for each in order if each not in own][: size - len(own)]]
    return sorted(chosen, key=lambda each: (each["server"], each["name"]))


def _own(task: Task) -> list[Definition]:
    return [each for each in world_definitions() if each["server"] in task.servers]


def all_definitions() -> list[Definition]:
    """The definitions that catalogs are made of."""
    return [*world_definitions(), *_others()]
