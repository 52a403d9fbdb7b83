"""A ranking as a run: its cases are kept as they are searched, and can be scored again without searching."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from toolsearch.support.json_types import JsonObject
from toolsearch.tokens import counter
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.ranking.measure_plugins import further_measures
from toolsearch_evals.ranking.measures import JudgedCase, Measure
from toolsearch_evals.ranking.rank import RankedSet, RankingFacts, Tick, facts_of, ranking, report_on
from toolsearch_evals.reports.report import Report
from toolsearch_evals.runs.folder import Run
from toolsearch_evals.runs.manifest import Manifest, hashes_of
from toolsearch_evals.runs.reading import StoredRun

__all__ = ["judged_cases", "play_ranking", "ranking_manifest", "score_ranking"]

KIND = "ranking"


def ranking_manifest(command: str, datasets: Sequence[Dataset], indexes: Sequence[str], split: str) -> Manifest:
    """What such a ranking is of."""
    catalogs = [each.catalog() for each in datasets]
    facts = facts_of(datasets, catalogs, indexes, split)
    return Manifest(
        KIND,
        command,
        **hashes_of(datasets, catalogs, indexes),
        tokenizer={"answers": counter().name},
        settings=dict(facts.parameters),
        facts={
            "names": {each.key: each.name for each in datasets},
            "tools": {each.key: len(catalog) for each, catalog in zip(datasets, catalogs, strict=True)},
            "quarantined": list(facts.quarantined),
            "notes": list(facts.notes),
        },
    )


def play_ranking(
    run: Run,
    datasets: Sequence[Dataset],
    indexes: Sequence[str],
    split: str = "all",
    tick: Tick = lambda _: None,
    *,
    measures: Sequence[Measure] = (),
) -> Report:
    """The report of `ranking`, from a run that keeps each search; what it has kept is not searched again."""
    earlier = {line["unit"]: line for line in run.stored().scores()}

    def kept(dataset: str, index: str, case: Case, search: Callable[[], JudgedCase]) -> JudgedCase:
        unit = f"{dataset} {index} {case.id}"
        if run.known(unit) is not None:
            return _judged(earlier[unit])
        judged = search()
        run.record(unit, scores=[{"dataset": dataset, "index": index, **_line(judged)}])
        return judged

    return ranking(datasets, indexes, split, tick, measures=measures, kept=kept)


def score_ranking(stored: StoredRun, measures: Sequence[Measure] = ()) -> Report:
    """The report on what the searches of a run returned, with the measures that there are now."""
    further = further_measures(measures)
    manifest = stored.manifest
    facts = RankingFacts(manifest.settings, tuple(manifest.facts["quarantined"]), tuple(manifest.facts["notes"]))
    names, tools = manifest.facts["names"], manifest.facts["tools"]
    sets: dict[tuple[str, str], list[JudgedCase]] = {}
    for dataset, index, judged in judged_cases(stored.scores()):
        sets.setdefault((dataset, index), []).append(judged)
    ranked = [RankedSet(names[key], index, tools[key], tuple(judged)) for (key, index), judged in sets.items()]
    return report_on(ranked, facts, further)


def judged_cases(lines: Iterable[JsonObject]) -> Iterator[tuple[str, str, JudgedCase]]:
    """Data set, index and answer of each line of `scores.jsonl`."""
    return ((line["dataset"], line["index"], _judged(line)) for line in lines)


def _line(judged: JudgedCase) -> dict[str, Any]:
    case = judged.case
    asked: dict[str, Any] = {"case": case.id, "query": case.query, "kind": case.kind, "wording": case.wording}
    asked |= {"split": case.split, "language": case.language, "steps": case.steps, "gold": case.gold}
    return asked | {key: value for key, value in asdict(judged).items() if key != "case"}


def _judged(line: Mapping[str, Any]) -> JudgedCase:
    asked = {key: line[key] for key in ("query", "kind", "wording", "split", "language")}
    case = Case(line["case"], steps=tuple(line["steps"]), gold=tuple(map(tuple, line["gold"])), **asked)
    steps = line["by_steps"]
    return JudgedCase(
        case,
        retrieved=tuple(line["retrieved"]),
        error=line["error"],
        seconds=line["seconds"],
        by_steps=None if steps is None else tuple(steps),
        shown=tuple(line["shown"]),
        tokens=line["tokens"],
    )
