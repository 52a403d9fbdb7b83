"""What tool search saves over whole conversations, against the number of tools: the sweep, its rows, the break-even."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.savings.break_even import BreakEven, break_even_of
from toolsearch_evals.savings.formats import WireFormat
from toolsearch_evals.savings.jobs import Job, jobs_of, talks_of
from toolsearch_evals.savings.plan import SIZES, SweepPlan
from toolsearch_evals.savings.rows import SavingsRow, Setting, cells_of, savings_row
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
    """Rows, one for each size, setting and pricing; break-evens, one for each setting and pricing.

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

    def first(self) -> SweepResult:
        """Only what is told first: the first of the turns, localities, prices, caches and shares of static success."""
        rows = [row for row in self.rows if _assumed(row) == _assumed(self.rows[0])]
        told = _assumed(self.rows[0])
        evens = [
            even
            for even in self.break_evens
            if (even.turns, even.locality, even.cache, even.profile, even.static_success) == told
        ]
        return replace(self, rows=rows, break_evens=evens)


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
    plan.pricings()  # what cannot be priced is said before anything is played
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


def _assumed(row: SavingsRow) -> tuple[int, float, str, str, float]:
    return row["turns"], row["locality"], row["cache"], row["profile"], row["static success"]


def _told(job: Job) -> str:
    return f"{job.turns} turns, {job.size} tools, {job.arm.mode} {job.arm.backend}"


def rows_of(plan: SweepPlan, played: PlayedJobs) -> tuple[list[SavingsRow], list[BreakEven]]:
    """The rows and break-evens of what was played; nothing is played again.

    Rows are by setting, pricing and size; of several `static_success`, they have the first. Break-evens have each.
    """
    cells, pricings = cells_of(played), plan.pricings()
    first = plan.static_success[0]
    settings = [
        Setting(turns, locality, wire, each.arm)
        for turns in dict.fromkeys(plan.turns)
        for locality in dict.fromkeys(plan.localities)
        for wire in dict.fromkeys(plan.wires)
        for each in plan.searched()
    ]
    settings = [setting for setting in dict.fromkeys(settings) if setting in cells]
    rows = [
        savings_row(cell, pricing)
        for pricing in pricings
        if pricing.static_success == first
        for setting in settings
        for cell in cells[setting]
    ]
    evens = [break_even_of(cells[setting], pricing) for pricing in pricings for setting in settings]
    return rows, evens
