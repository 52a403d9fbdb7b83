"""What each defect costs where it is planted into clean tools, and how much of it the doctor finds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from toolsearch import Catalog, Tool, ToolSearch, find
from toolsearch.catalog.exports import Provider
from toolsearch.schemas.validation import ArgumentsError, validate_arguments
from toolsearch_evals.backends import open_backend
from toolsearch_evals.data.argument_maker import smallest_arguments
from toolsearch_evals.data.cases import Case
from toolsearch_evals.doctor.definitions import all_findings
from toolsearch_evals.doctor.exports import MOST_TOOLS, definition, refusal, schema_findings
from toolsearch_evals.doctor.findings import Finding
from toolsearch_evals.doctor.planting import DEFECTS, Defect, Planted
from toolsearch_evals.doctor.searches import search_findings
from toolsearch_evals.doctor.texts import flagged, look_alikes, names_of_others
from toolsearch_evals.ranking.measures import bootstrap, interval

__all__ = ["Harm", "Searched", "Trial", "trials"]

GROUPS = 4  # the tools that are spoiled are spread over so many catalogs, so that most of each stays clean
FIRST = 5
NEIGHBOURS = 9  # definitions that stand with a spoiled one in a request
_SHADOWING = ("missed", "shadowed")  # what is called which depends on the others that are found
Tick = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Harm:
    """The mean loss over so many cases, between 0 and 1, with its 95 % interval."""

    cases: int
    lost: float
    low: float
    high: float

    @classmethod
    def of(cls, losses: Sequence[float]) -> Harm:
        middle = sum(losses) / len(losses) if losses else 0.0
        low, high = (interval if min(losses, default=0) >= 0 else bootstrap)(losses) if losses else (0.0, 0.0)
        return cls(len(losses), middle, low, high)


@dataclass(frozen=True)
class Trial:
    """What came of one defect: how many tools had it, how many of these the doctor named, and what was lost.

    Of searches, `harm` is what is lost among the first five, and `first` in the first place. Of requests, calls and
    texts it is the share that is refused, or reaches the model; `through`: the same where toolsearch sends the tools.
    """

    defect: Defect
    planted: int
    found: int
    harm: Harm
    first: Harm | None = None
    through: Harm | None = None


class Searched:
    """A catalog in an index, and what each case found there: whether one of some tools is among the first, or first."""

    def __init__(self, tools: Iterable[Tool], index: str) -> None:
        self.catalog, self.index = Catalog(tools), open_backend(index)
        self.index.add(list(self.catalog))
        self._found: dict[str, list[str]] = {}

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that is found in the definitions."""
        return tuple(all_findings(self.catalog, self.index))

    def found(self, case: Case, wanted: Sequence[str]) -> tuple[float, float]:
        """1 or 0 for the first five, and for the first place."""
        if case.id not in self._found:
            self._found[case.id] = [hit.tool.id for hit in find(self.catalog, self.index, case.query, FIRST)]
        ids = self._found[case.id]
        return float(bool({*wanted} & {*ids})), float(ids[:1] != [] and ids[0] in wanted)


def trials(
    clean: Searched, cases: Sequence[Case], index: str, *, most: int, seed: int = 0, tick: Tick = lambda _: None
) -> Iterator[Trial]:
    """Plants each defect into at most so many of the tools that the cases need, and measures.

    A tool that the doctor has a word against already is left as it is.
    """
    suspected = {each.where for each in clean.findings if each.check != "lost"}
    needed = {tool_id for case in cases for group in case.gold for tool_id in group}
    targets = [tool for tool in clean.catalog if tool.id in needed - suspected]
    for defect in DEFECTS:
        rng = random.Random(f"{seed} {defect.name}")
        chosen = rng.sample(targets, min(most, len(targets)))
        planted = [defect.plant(chosen[at::GROUPS], list(clean.catalog), rng) for at in range(GROUPS)]
        tick(defect.name)
        if defect.effect == "search":
            yield _searched(defect, planted, clean, cases, index)
        else:
            yield _MEASURES[defect.effect](defect, [tool for each in planted for tool in each.put], clean.catalog)
    yield from _crowded(clean.catalog, random.Random(seed), most)


# -- searches --------------------------------------------------------------------------------------------------------


def _searched(defect: Defect, planted: Sequence[Planted], clean: Searched, cases: Sequence[Case], index: str) -> Trial:
    losses: list[float] = []
    firsts: list[float] = []
    struck = named = 0
    for each in planted:
        tools = {tool.id: tool for tool in clean.catalog if tool.id not in each.unreadable}
        after = Searched((tools | {tool.id: tool for tool in each.put}).values(), index)
        for case in cases:
            for group in (group for group in case.gold if each.hurt.keys() & {*group}):
                (was, was_first), (now, now_first) = clean.found(case, group), after.found(case, group)
                losses.append(was - now)
                firsts.append(was_first - now_first)
        struck += len(each.hurt)
        named += len(each.unreadable) or _named(defect, after, each.hurt)
    return Trial(defect, struck, named, Harm.of(losses), Harm.of(firsts))


def _named(defect: Defect, searched: Searched, hurt: Mapping[str, str]) -> int:
    """How many of the defects the doctor names. Of two tools that hide each other, either may be the one it names."""
    catalog = searched.catalog
    about = [tool for tool in catalog if tool.id in {*hurt, *hurt.values()}]
    if defect.check in ("silent", *_SHADOWING):
        found = list(search_findings(catalog, searched.index, about))
    else:
        found = [*flagged(about), *look_alikes(catalog), *names_of_others(catalog)]
    checks = _SHADOWING if defect.check in _SHADOWING else (defect.check,)
    named = {each.where for each in found if each.check in checks}
    either = defect.check in ("shadowed", "look-alike")
    return sum(spoiled in named or (either and victim in named) for victim, spoiled in hurt.items())


# -- requests, calls and texts -----------------------------------------------------------------------------------------


def _requested(defect: Defect, spoiled: Sequence[Tool], clean: Catalog) -> Trial:
    """Requests with a spoiled definition among clean ones, as they are and as toolsearch sends them."""
    provider = defect.provider or "openai"
    taken = [definition(tool) for tool in clean if not refusal(provider, [definition(tool)])][:NEIGHBOURS]
    raw = [float(bool(refusal(provider, [*taken, definition(tool)]))) for tool in spoiled]
    through = [float(bool(refusal(provider, [_sent(tool, provider)]))) for tool in spoiled]
    return Trial(defect, len(spoiled), _in_schemas(defect, spoiled), Harm.of(raw), through=Harm.of(through))


def _crowded(clean: Catalog, rng: random.Random, most: int) -> Iterator[Trial]:
    """Requests with one definition more than OpenAI takes."""
    allowed = MOST_TOOLS["openai"]
    tools = [tool for tool in clean if not refusal("openai", [definition(tool)])]
    if len(tools) > allowed:
        drawn = [rng.sample(tools, allowed + 1) for _ in range(min(most, 20))]
        refused = [float(bool(refusal("openai", [definition(tool) for tool in each]))) for each in drawn]
        defect = Defect(f"{allowed + 1} tools", "too-many", "request", lambda *_: Planted((), {}), "openai")
        searched = [float(len(ToolSearch(Catalog(each), "keyword").session().tools()) > allowed) for each in drawn]
        through = Harm.of(searched)
        yield Trial(defect, len(drawn), sum(len(each) > allowed for each in drawn), Harm.of(refused), through=through)


def _sent(tool: Tool, provider: Provider) -> dict[str, object]:
    """The definition as toolsearch sends it."""
    made = tool.exported(provider)
    text = f"{tool.description} {made.note}".strip()[:1_024]
    return {"name": Catalog([tool]).provider_name(tool.id), "description": text, "parameters": made.schema}


def _called(defect: Defect, spoiled: Sequence[Tool], clean: Catalog) -> Trial:
    """Calls that keep to the schema as it should be, checked against the one with the defect."""
    refused = [_is_refused(tool, clean[tool.id]) for tool in spoiled]
    return Trial(defect, len(spoiled), _in_schemas(defect, spoiled), Harm.of(refused))


def _is_refused(spoiled: Tool, own: Tool) -> float:
    asked = spoiled.input_schema.get("required") or []
    named = [name for name in asked if name in own.input_schema["properties"]]
    try:
        validate_arguments(spoiled.input_schema, smallest_arguments({**own.input_schema, "required": named}))
    except ArgumentsError:
        return 1.0
    return 0.0


def _in_schemas(defect: Defect, spoiled: Sequence[Tool]) -> int:
    found = schema_findings(Catalog(spoiled), [defect.provider or "openai"])
    return len({each.where for each in found if each.check == defect.check})


def _read(defect: Defect, spoiled: Sequence[Tool], clean: Catalog) -> Trial:
    """Whether the text reaches the model: always as it is, and with toolsearch where it is flagged but not removed."""
    del clean
    found = {each.where for each in flagged(spoiled) if each.check == defect.check}
    is_kept = float(defect.check == "instructions")
    reached = Harm.of([1.0] * len(spoiled))
    return Trial(defect, len(spoiled), len(found), reached, through=Harm.of([is_kept] * len(spoiled)))


_MEASURES: Mapping[str, Callable[[Defect, Sequence[Tool], Catalog], Trial]] = {
    "request": _requested,
    "call": _called,
    "text": _read,
}
