"""A sweep as a run: its conversations are kept as they are played, and can be priced again without playing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, NamedTuple

from toolsearch import SetupError
from toolsearch.support.json_types import JsonObject
from toolsearch.tokens import counter
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.ranking.rank import in_split
from toolsearch_evals.reports.report import Report, Unit
from toolsearch_evals.runs.folder import Run
from toolsearch_evals.runs.kinds import Outcome, RunKind
from toolsearch_evals.runs.manifest import Manifest, case_hash, catalog_hash, hashes_of
from toolsearch_evals.runs.paired import Sample
from toolsearch_evals.runs.reading import StoredRun
from toolsearch_evals.savings.jobs import Job, jobs_of
from toolsearch_evals.savings.plan import STATIC, SweepPlan
from toolsearch_evals.savings.played import PlayedConversation
from toolsearch_evals.savings.report import savings_report
from toolsearch_evals.savings.sweep import sweep

__all__ = ["FORGETFUL", "SAVINGS_RUNS", "Memory", "memory_of", "plan_of", "savings_manifest", "score_savings"]

KIND = "savings"
# What is assumed after playing, so that a run can be scored again with something else.
AFTERWARDS = ("caches", "prices", "cached_weight", "output_weight", "static_success")


def savings_manifest(command: str, dataset: Dataset, plan: SweepPlan, split: str) -> Manifest:
    """What such a run is of: what is played in its settings, and what is assumed afterwards in its facts."""
    catalog = dataset.catalog()
    whole = asdict(plan)
    assumed = {name: whole.pop(name) for name in AFTERWARDS if name in whole}
    return Manifest(
        KIND,
        command,
        **hashes_of([dataset], [catalog], list(dict.fromkeys(plan.indexes))),
        seed=0,
        tokenizer=dict.fromkeys(plan.wires, counter().name),
        profile="; ".join(f"{name} {_in_words(value)}" for name, value in assumed.items()),
        settings={**whole, "split": split},
        facts={"tools": len(catalog), "plan": assumed},
    )


def _in_words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def plan_of(manifest: Manifest) -> SweepPlan:
    """The plan of a run."""
    known = {each.name for each in fields(SweepPlan)}
    kept = {**manifest.settings, **manifest.facts["plan"]}
    return SweepPlan(**{name: _tuples(value) for name, value in kept.items() if name in known})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


class Memory(NamedTuple):
    """What a sweep asks before it plays a job, and what it does with what it played."""

    known: Callable[[str], PlayedConversation | None]
    keep: Callable[[Job, PlayedConversation], None]


FORGETFUL = Memory(lambda _: None, lambda _job, _played: None)


def memory_of(run: Run, cases: Sequence[Case]) -> Memory:
    """The memory of a sweep that is kept in a run."""
    by_id = {case.id: case for case in cases}

    def known(key: str) -> PlayedConversation | None:
        kept = run.known(key)
        return None if kept is None else PlayedConversation.from_json(kept, by_id)

    def keep(job: Job, played: PlayedConversation) -> None:
        run.record(job.key, events=_events(played), scores=_scores(played), result=played.as_json())

    return Memory(known, keep)


def _events(played: PlayedConversation) -> Iterator[JsonObject]:
    for at, turn in enumerate(played.turns):
        for request in turn.requests:
            new = request.input - request.shared
            yield {"turn": at, "new": new, "cached": request.shared, "written": request.output, "billed": None}


def _scores(played: PlayedConversation) -> Iterator[JsonObject]:
    for at, turn in enumerate(played.turns):
        success = turn.served if turn.case.gold else None
        yield {"turn": at, "case": turn.case.id, "success": success, "searches": turn.searches}


def score_savings(stored: StoredRun, dataset: Dataset, assumed: Mapping[str, Any]) -> Report:
    """The report on what a run has played, with something else `assumed` afterwards, by the name of the plan's field.

    `dataset` must be the one that was played. Raises `SetupError` for another one, and for a run that is not finished.
    """
    manifest = stored.manifest
    if (manifest.data.get(dataset.key), manifest.catalog.get(dataset.key)) != (
        case_hash(dataset.cases),
        catalog_hash(dataset.catalog()),
    ):
        played = ", ".join(map(repr, manifest.data))
        raise SetupError(
            f"the run {str(stored.folder)!r} is one of {played} as it was; {dataset.key!r} is another data set or has "
            "changed: name the one that was played with --data or --dataset"
        )
    plan = plan_of(manifest)
    missing = [job for job in jobs_of(plan, manifest.facts["tools"]) if job.key not in stored.units]
    if missing:
        raise SetupError(
            f"the run {str(stored.folder)!r} is not finished: {len(missing)} of its conversations are missing. Go on "
            f"with its command and --resume: {manifest.command}"
        )
    split, by_id = manifest.settings["split"], {case.id: case for case in dataset.cases}
    plan = replace(plan, **assumed)
    swept = sweep(
        dataset,
        in_split(dataset.cases, split),
        plan,
        known=lambda key: PlayedConversation.from_json(stored.units[key], by_id),
    )
    return replace(savings_report(swept, plan, dataset, split), when=manifest.when)


_MEASURES: dict[str, Unit] = {
    "success": "share",
    "saving": "share",
    "cost saving": "share",
    "cost a met request": "count",
    "tokens": "count",
}


def _samples(stored: StoredRun) -> Iterator[Sample]:
    """Of each conversation in the largest catalog that was played: with a plain price and a cache that is cold."""
    plan = plan_of(stored.manifest)
    weights = (plan.cached_weight, plan.output_weight)
    met_of = _met(stored)
    for job in _largest(stored, plan):
        static = stored.units.get(replace(job, arm=STATIC).key)
        kept = stored.units[job.key]
        if static is None:
            continue
        before, after = (PlayedConversation.from_json(each, _Anything()).usage for each in (static, kept))
        group, unit = _group(job), f"s{job.seed} c{job.number}"
        cost_before, cost_after = before.cost(*weights), after.cost(*weights)
        yield Sample(group, "saving", unit, before.total - after.total, before.total)
        yield Sample(group, "cost saving", unit, cost_before - cost_after, cost_before)
        yield Sample(group, "tokens", unit, after.total)
        met, asked = met_of[job.key]
        yield Sample(group, "success", unit, met, asked)
        yield Sample(group, "cost a met request", unit, cost_after, met)


def _outcomes(stored: StoredRun) -> Iterator[Outcome]:
    jobs = {job.key: job for job in _largest(stored, plan_of(stored.manifest))}
    for line in stored.scores():
        job = jobs.get(line["unit"])
        if job is not None and line["success"] is not None:
            case = f"{line['case']}, s{job.seed} c{job.number}"
            yield Outcome(_group(job), case, float(line["success"]), "met" if line["success"] else "not met")


def _largest(stored: StoredRun, plan: SweepPlan) -> list[Job]:
    """The jobs that search in the largest catalog and that were played."""
    jobs = jobs_of(plan, stored.manifest.facts["tools"])
    most = max(job.size for job in jobs)
    return [job for job in jobs if job.size == most and job.arm != STATIC and job.key in stored.units]


def _group(job: Job) -> str:
    return f"{job.arm.in_words}, {job.wire}, {job.turns} turns, locality {job.locality:g}"


class _Anything(dict[str, Case]):
    """Cases by id where only their ids matter."""

    def __missing__(self, key: str) -> Case:
        return Case(key, key)


def _met(stored: StoredRun) -> dict[str, tuple[int, int]]:
    """By unit, how many requests were met, of how many that can be."""
    found: dict[str, tuple[int, int]] = {}
    for line in stored.scores():
        met, asked = found.get(line["unit"], (0, 0))
        can_be = line["success"] is not None
        found[line["unit"]] = (met + bool(line["success"]), asked + can_be)
    return found


SAVINGS_RUNS = RunKind(KIND, "saving", lambda: _MEASURES, _samples, _outcomes, lower=("cost a met request", "tokens"))
