"""Single conversations of a sweep, played once more: where their tokens go, and how the worst turns went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from toolsearch_evals.reports.report import Detail, Details, counted
from toolsearch_evals.reports.waterfall import Step, Waterfall
from toolsearch_evals.savings.jobs import Job
from toolsearch_evals.savings.noted import PARTS, Notes, Spent
from toolsearch_evals.savings.plan import STATIC
from toolsearch_evals.savings.played import PlayedTurn
from toolsearch_evals.savings.stage import Stage
from toolsearch_evals.savings.sweep import PlayedJobs, SweepResult

__all__ = ["waterfalls", "worst_cases"]

CONVERSATIONS = 3  # whose tokens are looked at
WORST, INSTEAD = 6, 5  # turns that are shown, and tools of each that were found instead


def waterfalls(swept: SweepResult) -> tuple[Waterfall, ...]:
    """Where the tokens go with the most tools: of each wire all tools sent, then each way to search."""
    if swept.stage is None or not swept.played:
        return ()
    jobs = _alike(swept.played)
    talks = list(dict.fromkeys(job.talk for job in jobs))[:CONVERSATIONS]
    spent: dict[tuple[str, str], list[Spent]] = {}
    for talk in talks:
        for job, notes in swept.stage.note([job for job in jobs if job.talk == talk]).items():
            name = "All tools sent" if job.arm == STATIC else f"Searched ({job.arm.in_words})"
            spent.setdefault((job.wire, name), []).append(notes.spent(swept.stage.meter))
    played = f"{counted(len(talks), 'conversation')} of {counted(jobs[0].turns, 'turn')}"
    over = f"{counted(jobs[0].size, 'tool')}, mean of {played}"
    steps = {key: _steps(of) for key, of in spent.items()}
    reach = {wire: max(sum(s.total for s in of) for (at, _), of in steps.items() if at == wire) for wire, _ in steps}
    return tuple(
        Waterfall(
            f"{name}: where the tokens go ({over})",
            ("new", "cached"),
            of,
            choices=(("wire", wire),),
            reach=reach[wire],
        )
        for (wire, name), of in steps.items()
    )


def _alike(played: PlayedJobs) -> list[Job]:
    """The jobs with the most tools, and with the turns and the locality of the first."""
    first, most = next(iter(played)), max(job.size for job in played)
    return [job for job in played if (job.size, job.turns, job.locality) == (most, first.turns, first.locality)]


def _steps(spent: Sequence[Spent]) -> tuple[Step, ...]:
    """The mean of several conversations; a part that none of them has is left out."""
    means = {part: tuple(sum(each[part][at] for each in spent) / len(spent) for at in (0, 1)) for part in PARTS}
    return tuple(Step(part, values) for part, values in means.items() if any(values))


class _Turn(NamedTuple):
    """A turn, and where it is."""

    job: Job
    at: int
    turn: PlayedTurn

    @property
    def badness(self) -> tuple[bool, int, int]:
        return not self.turn.served, self.turn.searches, sum(each.usage.total for each in self.turn.requests)


def worst_cases(swept: SweepResult) -> tuple[Details, ...]:
    """The turns that went worst for the first way to search on the first wire, with the most tools: those that were not
    met, then those that took more than one search."""
    if swept.stage is None or not swept.played:
        return ()
    searched = [job for job in _alike(swept.played) if job.arm != STATIC]
    mine = [job for job in searched if (job.wire, job.arm) == (searched[0].wire, searched[0].arm)] if searched else []
    worst = _worst([_Turn(job, at, turn) for job in mine for at, turn in enumerate(swept.played[job].turns)])
    if not worst:
        return ()
    details = tuple(_detail(each, notes) for each, notes in _noted(swept.stage, worst))
    first = worst[0].job
    note = (
        f"With {counted(first.size, 'tool')}, {first.arm.in_words}, {first.wire}: the requests that were not met, and "
        "those that took more than one search, the worst first. Each with the conversation as it was played."
    )
    return (Details("Worst cases", details, note),)


def _worst(turns: Sequence[_Turn]) -> list[_Turn]:
    bad = [each for each in turns if each.turn.case.gold and (not each.turn.served or each.turn.searches > 1)]
    bad.sort(key=lambda each: each.badness, reverse=True)
    return list({each.turn.case.id: each for each in reversed(bad)}.values())[::-1][:WORST]


def _noted(stage: Stage, worst: Sequence[_Turn]) -> Iterator[tuple[_Turn, Notes]]:
    """Each turn with the notes of its conversation, which is played once."""
    known: dict[Job, Notes] = {}
    for each in worst:
        if each.job not in known:
            known |= stage.note([each.job])
        yield each, known[each.job]


def _detail(of: _Turn, notes: Notes) -> Detail:
    turn, case = of.turn, of.turn.case
    right = {i for group in case.gold for i in group}
    instead = [i for i in dict.fromkeys(notes.found[of.at]) if i not in right][:INSTEAD]
    tokens = sum(each.usage.total for each in turn.requests)
    outcome = "met" if turn.served else "not met"
    spent = f"{counted(turn.searches, 'search', 'searches')}, {counted(len(turn.requests), 'request')}"
    facts = {
        "outcome": f"{outcome}; {spent}, {tokens:,} tokens",
        "needed": "; ".join(" or ".join(group) for group in case.gold),
        "found instead": ", ".join(instead) or "nothing",
        "kind": ", ".join(filter(None, (case.kind, case.wording and f"{case.wording} wording", case.language))),
    }
    return Detail(f"{case.id}: {case.query}", tuple(facts.items()), tuple(notes.turns[of.at]))
