"""The jobs of a sweep: one conversation, in a catalog of one size, on one wire, searched in one way or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from toolsearch_evals.savings.format_plugins import is_native
from toolsearch_evals.savings.plan import NATIVE, STATIC, Arm, SweepPlan, sizes_of

__all__ = ["Job", "jobs_of", "talks_of"]


@dataclass(frozen=True, slots=True)
class Job:
    """One conversation to play: the `number`-th of a seed, so long, so local, in a catalog of `size` tools."""

    seed: int
    number: int
    turns: int
    locality: float
    size: int
    wire: str
    arm: Arm

    @property
    def key(self) -> str:
        """A short text that no other job of a sweep has: "s0 c3 t10 l0.5 n100 openai_chat append, hybrid"."""
        where = f"s{self.seed} c{self.number} t{self.turns} l{self.locality:g} n{self.size}"
        return f"{where} {self.wire} {self.arm.in_words}"

    @property
    def talk(self) -> tuple[int, int, int, float]:
        """Which conversation it is, whatever the catalog and the way to search."""
        return self.seed, self.number, self.turns, self.locality


def jobs_of(plan: SweepPlan, tools: int) -> list[Job]:
    """All jobs of the plan on a data set of so many tools: those of a conversation together, from small to large.

    Native delivery is played on the wires that can.
    """
    arms = [STATIC, *(each.arm for each in plan.searched())]
    return [
        Job(seed, number, turns, locality, size, wire, arm)
        for turns in dict.fromkeys(plan.turns)
        for locality in dict.fromkeys(plan.localities)
        for seed in range(plan.seeds)
        for number in range(plan.conversations)
        for size in sizes_of(plan, tools, turns)
        for arm in dict.fromkeys(arms)
        for wire in dict.fromkeys(plan.wires)
        if arm.mode not in NATIVE or is_native(wire)
    ]


def talks_of(jobs: Sequence[Job]) -> list[list[Job]]:
    """The jobs by conversation; they share its catalogs and its indexes."""
    return [list(of) for _, of in groupby(jobs, lambda job: job.talk)]
