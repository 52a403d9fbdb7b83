"""What can be compared of each kind of run: the samples of its measures, and what became of each case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from toolsearch_evals.ranking.measure_plugins import further_measures
from toolsearch_evals.ranking.measures import MEASURES, recall, score_of
from toolsearch_evals.ranking.rank import SHOWN, TOKENS
from toolsearch_evals.reports.report import Unit
from toolsearch_evals.runs.paired import Sample
from toolsearch_evals.runs.ranking_run import judged_cases
from toolsearch_evals.runs.reading import StoredRun

__all__ = ["AGENT", "RANKING", "Outcome", "RunKind"]

FIRST = 3  # tools of an answer shown
FALSE_ANSWERS = "false answers"


class Outcome(NamedTuple):
    """What became of a case: a number, of which more is better, and what to show of it."""

    group: str
    case: str
    value: float
    shown: str


@dataclass(frozen=True)
class RunKind:
    """How runs of a kind are compared: the measures of its samples and their units, and what became of each case.

    Of the measures, the `headline` is told first. Of the `lower` ones, less is better; they can have no bar.
    """

    name: str
    headline: str
    measures: Callable[[], Mapping[str, Unit]]
    samples: Callable[[StoredRun], Iterable[Sample]]
    outcomes: Callable[[StoredRun], Iterable[Outcome]]
    lower: tuple[str, ...] = ()

    def with_bars(self) -> list[str]:
        """The measures that may have a bar."""
        return [name for name in self.measures() if name not in self.lower]


def _ranking_measures() -> dict[str, Unit]:
    names = [*(each.name for each in (*MEASURES, *further_measures())), SHOWN]
    return {**dict.fromkeys(names, "score"), FALSE_ANSWERS: "share", TOKENS: "count"}


def _ranking_samples(stored: StoredRun) -> Iterator[Sample]:
    measures = (*MEASURES, *further_measures())
    for dataset, index, judged in judged_cases(stored.scores()):
        unit, case = f"{dataset} {judged.case.id}", judged.case
        if case.gold:
            for measure in measures:
                yield Sample(index, measure.name, unit, score_of(judged, measure))
            yield Sample(index, SHOWN, unit, recall(judged.shown, case.gold, len(judged.shown)))
        else:
            yield Sample(index, FALSE_ANSWERS, unit, float(bool(judged.retrieved) or judged.error is not None))
        if judged.tokens is not None:
            yield Sample(index, TOKENS, unit, judged.tokens)


def _ranking_outcomes(stored: StoredRun) -> Iterator[Outcome]:
    hits = next(each for each in MEASURES if each.name == "NDCG@10")
    for dataset, index, judged in judged_cases(stored.scores()):
        if judged.case.gold:
            shown = judged.error or ", ".join(judged.retrieved[:FIRST]) or "nothing"
            yield Outcome(index, f"{dataset} {judged.case.id}", score_of(judged, hits), shown)


RANKING = RunKind("ranking", "R@5", _ranking_measures, _ranking_samples, _ranking_outcomes, (FALSE_ANSWERS, TOKENS))

_AGENT_MEASURES: dict[str, Unit] = {"success": "share", "tokens": "count", "dollars": "number", "seconds": "number"}


def _agent_samples(stored: StoredRun) -> Iterator[Sample]:
    for line in stored.scores():
        group, unit = f"{line['tools']} tools, {line['arm']}", f"{line['case']} {line.get('repeat', 0)}"
        yield Sample(group, "success", unit, float(bool(line.get("success"))))
        billed = [line.get(key) for key in ("new", "cached", "written")]
        if None not in billed:
            yield Sample(group, "tokens", unit, sum(filter(None, billed)))
        for name in ("dollars", "seconds"):
            if line.get(name) is not None:
                yield Sample(group, name, unit, line[name])


def _agent_outcomes(stored: StoredRun) -> Iterator[Outcome]:
    for line in stored.scores():
        case = f"{line['case']} {repeat}" if (repeat := line.get("repeat")) else str(line["case"])
        told = str(line.get("error") or ("met" if line.get("success") else "not met"))
        yield Outcome(f"{line['tools']} tools, {line['arm']}", case, float(bool(line.get("success"))), told)


AGENT = RunKind(
    "agent", "success", lambda: _AGENT_MEASURES, _agent_samples, _agent_outcomes, ("tokens", "dollars", "seconds")
)
