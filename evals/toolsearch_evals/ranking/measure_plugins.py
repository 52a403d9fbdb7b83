"""The measures of a report: ours, those of installed packages, and those a program passes."""

from __future__ import annotations

from collections.abc import Sequence

from toolsearch import SetupError
from toolsearch_evals.installed import installed_points, load_point, named
from toolsearch_evals.ranking.measures import MEASURES, Measure

__all__ = ["GROUP", "further_measures", "names_of", "our_names"]

GROUP = "toolsearch.measures"
# Keys that a row of a ranking has besides its measures.
_TAKEN = ("dataset", "index", "tools", "cases", "n", "n_scored", "errors", "n_unanswerable", "unanswerable answered")


def further_measures(passed: Sequence[Measure] = ()) -> tuple[Measure, ...]:
    """The measures of installed packages by name, then those that are passed.

    Raises `SetupError`, which names it, for an object that is not a measure, and for a name that is taken.
    """
    offered = [(named("measure", point), load_point("measure", point)) for point in installed_points(GROUP)]
    offered += [(f"the measure {getattr(each, 'name', each)!r}", each) for each in passed]
    taken = our_names()
    further: list[Measure] = []
    for described, each in offered:
        if not isinstance(each, Measure):
            raise SetupError(
                f"{described} must be a toolsearch_evals.ranking.measures.Measure, not {type(each).__name__}"
            )
        if not each.name.strip() or names_of(each) & taken:
            raise SetupError(f"{described} cannot be shown as {each.name!r}: the name is empty or taken; rename it")
        taken |= names_of(each)
        further.append(each)
    return tuple(further)


def our_names() -> set[str]:
    """The keys of a row that ours take, and no other measure may have."""
    return {*_TAKEN, "milliseconds"}.union(*map(names_of, MEASURES))


def names_of(measure: Measure) -> set[str]:
    """The keys that a measure has in a row: its own, and those of its interval."""
    return {measure.name, *(f"{measure.name} {end}" for end in ("low", "high", "±"))}
