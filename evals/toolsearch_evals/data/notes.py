"""What a reader of a report must know about the data: how few cases there are, drafts, and what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.data.derive import derived_notes
from toolsearch_evals.reports.report import counted

__all__ = ["FEW", "data_notes", "distinct_cases", "few_cases"]

FEW = 100  # cases; a share of fewer is known to ten points at best


def distinct_cases(cases: Iterable[Case]) -> str:
    """How many different requests these are: "6 distinct cases (3 in a user's words)"."""
    by_query = {case.query.strip().casefold(): case for case in cases}
    user = sum(case.wording == "user" for case in by_query.values())
    in_words = f" ({user:,} in a user's words)" if any(case.wording for case in by_query.values()) else ""
    return f"{counted(len(by_query), 'distinct case')}{in_words}"


def few_cases(name: str, cases: Sequence[Case]) -> tuple[str, ...]:
    """A sentence if there are so few cases that chance decides much of what is measured on them."""
    if len({case.query.strip().casefold() for case in cases}) >= FEW:
        return ()
    return (f"{name} has {distinct_cases(cases)}: so few that chance decides much of the figures.",)


def data_notes(datasets: Sequence[Dataset]) -> tuple[str, ...]:
    """Sentences for a report's limits."""
    drafts = [
        f"Of the {len(each.cases):,} cases of {each.name}, {count:,} are drafts that nobody has reviewed."
        for each in datasets
        if (count := sum(case.draft for case in each.cases))
    ]
    few = [sentence for each in datasets for sentence in few_cases(each.name, each.cases)]
    notes = [f"{each.name}: {note}" for each in datasets for note in each.notes]
    return (*derived_notes(datasets), *drafts, *few, *notes)
