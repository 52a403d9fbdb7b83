"""What the doctor says of tools that nobody spoiled, and how much of it is a false alarm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch.schemas.validation import ArgumentsError, validate_arguments
from toolsearch_evals.data.argument_maker import smallest_arguments
from toolsearch_evals.data.cases import Case
from toolsearch_evals.doctor.findings import CHECKS
from toolsearch_evals.doctor.trials import Harm, Searched

__all__ = ["Alarms", "alarms", "judged_by_labels"]

HOSTILE_ON_PURPOSE = "community_scripts"  # a server of commons: see the data set's card
_BY_LABELS = ("silent", "missed", "shadowed")
_BY_RULE = ("unreadable", "left-out", "refused", "lost", "too-many")  # the provider's rule itself is what was asked


@dataclass(frozen=True, slots=True)
class Alarms:
    """How many tools were looked at, how many were named, and how many of these without need.

    `unjudged` are those of which nothing tells whether there was need. What cannot be measured counts as false.
    """

    tools: int
    named: int
    false: int
    unjudged: int = 0

    def __add__(self, other: Alarms) -> Alarms:
        return Alarms(
            self.tools + other.tools,
            self.named + other.named,
            self.false + other.false,
            self.unjudged + other.unjudged,
        )


def alarms(searched: Searched, cases: Sequence[Case]) -> dict[str, Alarms]:
    """By check. What is true of a rule of a provider is true; a contradiction is tried; what searches miss is compared
    with the labels, if there are some; and a hostile text in a tool that was not written as one is a false alarm.
    """
    catalog = searched.catalog
    named: dict[str, set[str]] = {
        check: set() for check, of in CHECKS.items() if of.kind in ("schema", "search", "text")
    }
    for each in searched.findings:
        named[each.check].add(each.where)
    lost = _losses(searched, cases)
    made = {}
    for check, where in named.items():
        if check in _BY_RULE:
            false, unjudged = 0, 0
        elif check in _BY_LABELS:
            place = check == "shadowed"
            false = sum(not any(one[place] for one in lost[tool_id]) for tool_id in where if tool_id in lost)
            unjudged = len(where - lost.keys())
        elif check == "contradiction":
            false, unjudged = sum(_is_callable(catalog[tool_id].input_schema) for tool_id in where), 0
        else:
            false, unjudged = sum(not tool_id.startswith(f"{HOSTILE_ON_PURPOSE}/") for tool_id in where), 0
        made[check] = Alarms(len(catalog), len(where), false, unjudged)
    return made


def _losses(searched: Searched, cases: Sequence[Case]) -> dict[str, list[tuple[float, float]]]:
    """What the cases of each tool lose: among the first five, and in the first place."""
    lost: dict[str, list[tuple[float, float]]] = {}
    for case in cases:
        for group in case.gold:
            is_found, is_first = searched.found(case, group)
            for tool_id in group:
                lost.setdefault(tool_id, []).append((1 - is_found, 1 - is_first))
    return lost


def _is_callable(schema: Mapping[str, Any]) -> bool:
    """Whether a call with every argument is taken."""
    properties = schema.get("properties")
    try:
        validate_arguments(schema, smallest_arguments({**schema, "required": [*(properties or ())]}))
    except ArgumentsError:
        return False
    return True


def judged_by_labels(searched: Searched, cases: Sequence[Case]) -> dict[str, tuple[Harm, Harm]]:
    """For each check of searches: what the cases of the tools that it names lose, and those of tools that none names.

    Of "shadowed" it is what they lose in the first place, of the others among the first five.
    """
    found = [each for each in searched.findings if each.check in _BY_LABELS]
    named = {each.where for each in found}
    lost = _losses(searched, cases)
    judged = {}
    for check in _BY_LABELS:
        place = int(check == "shadowed")
        of = {each.where for each in found if each.check == check}
        own = [one[place] for tool_id, losses in lost.items() if tool_id in of for one in losses]
        others = [one[place] for tool_id, losses in lost.items() if tool_id not in named for one in losses]
        judged[check] = Harm.of(own), Harm.of(others)
    return judged
