"""Playing in several processes: each plays whole conversations of the same stage."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.savings.jobs import Job
from toolsearch_evals.savings.plan import SweepPlan
from toolsearch_evals.savings.scripted import PlayedConversation
from toolsearch_evals.savings.stage import Stage

__all__ = ["most_processes", "play_in_processes"]

Played = list[tuple[Job, PlayedConversation]]
_stage: list[Stage] = []  # the one of this process, if it is a worker


def most_processes(jobs: int) -> int:
    """As many processes as are worth their start for so many jobs: one for a few of them, else one a processor."""
    return (
        1 if jobs < 300 else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )


def play_in_processes(
    dataset: Dataset, cases: Sequence[Case], plan: SweepPlan, talks: Sequence[Sequence[Job]], processes: int
) -> Iterator[tuple[Job, PlayedConversation]]:
    """Plays jobs by conversation, in no order; the jobs of a conversation come together."""
    # Spawned, not forked: threads of a library may hold locks.
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), initializer=_prepare, initargs=(dataset, cases, plan)
    )
    try:
        for done in as_completed([pool.submit(_play, jobs) for jobs in talks]):
            yield from done.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _prepare(dataset: Dataset, cases: Sequence[Case], plan: SweepPlan) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others
    _stage.append(Stage(dataset, cases, plan))


def _play(jobs: Sequence[Job]) -> Played:
    return list(_stage[0].play(jobs))
