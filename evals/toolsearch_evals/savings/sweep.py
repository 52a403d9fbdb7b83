"""What tool search saves over whole conversations, against the number of tools: the sweep, its rows, the break-even."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.savings.formats import WireFormat
from toolsearch_evals.savings.jobs import Job, jobs_of, talks_of
from toolsearch_evals.savings.plan import SIZES, STATIC, Arm, SweepPlan
from toolsearch_evals.savings.rows import BreakEven, Prices, SavingsRow, break_even_of, savings_row
from toolsearch_evals.savings.scripted import PlayedConversation
from toolsearch_evals.savings.stage import Stage
from toolsearch_evals.savings.workers import play_in_processes

__all__ = ["SIZES", "PlayedJobs", "SweepPlan", "SweepResult", "conversations_of", "rows_of", "sweep"]

Tick = Callable[[str], None]
PlayedJobs = Mapping[Job, PlayedConversation]
Known = Callable[[str], PlayedConversation | None]
Keep = Callable[[Job, PlayedConversation], None]


@dataclass(frozen=True)
class SweepResult:
    """Rows, one for each size, wire and arm; break-evens, one for each wire and arm.

    `tokenizers` say by wire how its tokens were counted. `played` is what all of it was computed from, and `stage`
    plays single conversations once more; without it, a report shows none.
    """

    rows: list[SavingsRow]
    break_evens: list[BreakEven]
    refused: list[str]
    quarantined: list[str]
    tokenizers: dict[str, str]
    played: PlayedJobs = field(default_factory=dict, repr=False)
    stage: Stage | None = field(default=None, repr=False, compare=False)


def sweep(
    dataset: Dataset,
    cases: Sequence[Case],
    plan: SweepPlan,
    tick: Tick = lambda _: None,
    *,
    formats: Mapping[str, WireFormat] | None = None,
    known: Known = lambda _: None,
    keep: Keep = lambda _, __: None,
    processes: int = 1,
) -> SweepResult:
    """Plays the plan's conversations with these cases in catalogs of every size.

    `formats` are wires by name, besides ours and those of installed packages; with them it plays in one process. `tick`
    is called after each job. `known` gives what was played before for the key of a job; `keep` gets what is played now.
    Raises `SetupError` for a size the catalog or a conversation cannot have, and for a setting that does not exist.
    """
    stage = Stage(dataset, cases, plan, formats)
    jobs = jobs_of(plan, len(stage.tools))
    for seed, turns, locality in dict.fromkeys((job.seed, job.turns, job.locality) for job in jobs):
        stage.draw(seed, turns, locality)  # all of them now, so that what cannot be made is said at once
    played = {job: before for job in jobs if (before := known(job.key)) is not None}
    for job in played:
        tick(_told(job))
    talks = talks_of([job for job in jobs if job not in played])
    several = processes > 1 and formats is None and len(talks) > 1
    playing = play_in_processes(dataset, cases, plan, talks, processes) if several else _play_here(stage, talks)
    for job, conversation in playing:
        played[job] = conversation
        keep(job, conversation)
        tick(_told(job))
    in_order = {job: played[job] for job in jobs}
    rows, break_evens = rows_of(plan, in_order)
    refused = [call for each in in_order.values() for call in each.refused]
    return SweepResult(rows, break_evens, refused, stage.quarantined, stage.tokenizers, in_order, stage)


def conversations_of(plan: SweepPlan, tools: int) -> int:
    """How many conversations the plan plays on a data set of so many tools; a progress bar counts up to it."""
    return len(jobs_of(plan, tools))


def _play_here(stage: Stage, talks: Sequence[Sequence[Job]]) -> Iterator[tuple[Job, PlayedConversation]]:
    for jobs in talks:
        yield from stage.play(jobs)


def _told(job: Job) -> str:
    return f"{job.size} tools, {job.arm.mode} {job.arm.backend}"


def rows_of(plan: SweepPlan, played: PlayedJobs) -> tuple[list[SavingsRow], list[BreakEven]]:
    """The rows and break-evens of what was played; nothing is played again."""
    cells: dict[tuple[int, str, Arm], list[tuple[int, PlayedConversation]]] = {}
    for job, conversation in played.items():
        cells.setdefault((job.size, job.wire, job.arm), []).append((job.seed, conversation))
    sizes = sorted({job.size for job in played})
    prices = Prices(plan.cached_weight, plan.output_weight)
    by_arm = [
        [
            savings_row(
                wire, arm, size, static=cells[size, wire, STATIC], searched=cells[size, wire, arm], prices=prices
            )
            for size in sizes
        ]
        for wire in plan.wires
        for arm in dict.fromkeys(each.arm for each in plan.searched())
    ]
    return [row for rows in by_arm for row in rows], [break_even_of(rows) for rows in by_arm]
