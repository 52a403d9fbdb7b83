"""The choice of a delivery by price: fitted on played conversations, and judged on others by its regret.

A cell is one situation: a wire, so many turns, a cold or a warm cache, a catalog of one size. Each way to deliver tools
has a price there: what a met request costs. A policy chooses a way for each cell by what is known when a conversation
begins. Its regret is how much more its choice costs than the cheapest way of that cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from toolsearch import Settings
from toolsearch.catalog import definition_tokens
from toolsearch_evals.savings.jobs import Job
from toolsearch_evals.savings.plan import DELIVERIES, HELPED, STATIC
from toolsearch_evals.savings.played import PlayedConversation
from toolsearch_evals.savings.runs import Pricing, Runs
from toolsearch_evals.savings.stage import Stage

__all__ = [
    "CACHED",
    "Cell",
    "Extra",
    "Regret",
    "Situation",
    "cells_of",
    "extra_of",
    "regrets",
    "requests_a_turn",
    "turning_point",
]

CACHED = 0.1  # the price of a cached token
Played = Mapping[Job, PlayedConversation]


class Situation(NamedTuple):
    """What is known when a conversation begins."""

    wire: str
    turns: int
    cache: str
    tools: int


@dataclass(frozen=True)
class Cell:
    """One situation, with the price of a met request by delivery, and by delivery the requests that were met.

    `definitions` are the tokens of all definitions as a session estimates them, `sent` as the wire sends them. `costs`
    are prices of a conversation, of which `met` requests were met. `job` is one of its conversations.
    """

    situation: Situation
    job: Job
    definitions: float
    sent: float
    costs: Mapping[str, float]
    met: Mapping[str, float]

    def price(self, way: str) -> float:
        """What a met request costs."""
        return self.costs[way] / self.met[way] if self.met.get(way) else float("inf")

    @property
    def cheapest(self) -> float:
        """The least price of all ways, without signatures, and without showing more tools than a request carries."""
        is_small = self.situation.tools <= Settings().max_tools
        return min(self.price(way) for way in self.costs if way != "compact" and (is_small or way != STATIC.mode))


def cells_of(played: Played, stage: Stage, pricings: Iterable[Pricing], wanted: Callable[[Job], bool]) -> list[Cell]:
    """The cells of the conversations that are wanted."""
    groups: dict[tuple[str, int, int], dict[str, list[Job]]] = {}
    for job in filter(wanted, played):
        of = groups.setdefault((job.wire, job.turns, job.size), {})
        of.setdefault(job.arm.mode, []).append(job)
    cells = []
    for (wire, turns, size), ways in groups.items():
        runs = {way: Runs([(job.seed, played[job]) for job in jobs]) for way, jobs in ways.items()}
        sent = ways[STATIC.mode]
        estimated = sum(_estimated(job, stage) for job in sent) / len(sent)
        met = {way: of.met.total / len(of) for way, of in runs.items()}
        for pricing in pricings:
            costs = {way: of.cost(pricing).total / len(of) for way, of in runs.items()}
            situation = Situation(wire, turns, pricing.cache, size)
            cells.append(Cell(situation, sent[0], estimated, runs[STATIC.mode].definitions, costs, met))
    return cells


def _estimated(job: Job, stage: Stage) -> float:
    """The tokens of the definitions of a job's catalog, as a session estimates them."""
    talk = stage.draw(job.seed, job.turns, job.locality)[job.number]
    return sum(definition_tokens(stage.tools[i]) for i in talk.tools[: job.size])


# -- the fit -----------------------------------------------------------------------------------------------------------


def requests_a_turn(played: Played) -> float:
    """Requests of a turn if every tool is sent."""
    static = [each for job, each in played.items() if job.arm == STATIC]
    return sum(len(each.requests) for each in static) / sum(len(each.turns) for each in static)


@dataclass(frozen=True, slots=True)
class Extra:
    """What searching costs more than showing all, besides the definitions, as `delivery.json` of the library has it."""

    fixed: float
    turn: float
    turn_squared: float

    def cheaper_below(self, situation: Situation, requests: float) -> float:
        """The tokens of definitions below which showing all costs less."""
        first, turns = first_price(situation), situation.turns
        more = self.fixed * first + self.turn * turns + self.turn_squared * turns**2
        return more / _paid(situation, requests)


def first_price(situation: Situation) -> float:
    """The price of a token of the first request."""
    return CACHED if situation.cache == "warm" else 1.0


def _paid(situation: Situation, requests: float) -> float:
    """What a token of the definitions costs in all requests of a conversation in which every tool is sent."""
    return first_price(situation) + CACHED * (requests * situation.turns - 1)


def extra_of(cells: Sequence[Cell], way: str, requests: float) -> Extra:
    """What a way to deliver costs more than showing all, besides the definitions.

    By least squares over the wires, turns and caches: where they turn, what is paid for definitions is what searching
    costs more. Errors count as shares, so that long conversations do not decide alone. `fixed` is not below 0: in
    conversations that are shorter than those that were played, searching is not cheaper than nothing.
    """
    rows, wanted = list[list[float]](), list[float]()
    groups: dict[tuple[str, int, str], list[Cell]] = {}
    for cell in cells:
        if way in cell.costs:
            groups.setdefault((cell.situation.wire, cell.situation.turns, cell.situation.cache), []).append(cell)
    for (_, turns, _), of in groups.items():
        situation = of[0].situation
        paid = turning_point(of, way, lambda cell: cell.definitions) * _paid(situation, requests)
        rows.append([each / paid for each in (first_price(situation), turns, turns**2)])
        wanted.append(1.0)
    found = _least_squares(rows, wanted)
    if found[0] < 0:
        found = [0.0, *_least_squares([row[1:] for row in rows], wanted)]
    return Extra(*(round(each, 1) for each in found))


def turning_point(cells: Sequence[Cell], way: str, size_of: Callable[[Cell], float]) -> float:
    """The size from which on a way costs less than showing all, in cells of one length and cache.

    Interpolated; beyond the sizes that were played, as the line through the two nearest goes on. At least 1.
    """
    ordered = sorted(cells, key=size_of)
    saved = [cell.price(STATIC.mode) - cell.price(way) for cell in ordered]
    sizes = [size_of(cell) for cell in ordered]
    last = max((at for at, each in enumerate(saved) if each <= 0), default=0)
    at = min(last, len(saved) - 2)
    rise = saved[at + 1] - saved[at]
    return max(1.0, sizes[at] - saved[at] * (sizes[at + 1] - sizes[at]) / rise) if rise else sizes[at]


def _least_squares(rows: Sequence[Sequence[float]], wanted: Sequence[float]) -> list[float]:
    import numpy

    solved, *_ = numpy.linalg.lstsq(numpy.array(rows), numpy.array(wanted), rcond=None)
    return [float(each) for each in solved]


# -- the regret --------------------------------------------------------------------------------------------------------

Choice = Callable[[Cell], str]
HERE = "auto, turns and cache known"


def policies(stage: Stage, **settings: object) -> dict[str, Choice]:
    """Ways to choose, by name: those of real sessions, with these further settings, and always the same."""

    def told(mode: str, *, turns: bool = True, cache: bool = True, **more: object) -> Choice:
        """A session of a program that says how long its conversations are, and whether the cache is warm."""

        def choice(cell: Cell) -> str:
            known: dict[str, object] = {"expected_turns": cell.situation.turns} if turns else {}
            known |= {"cache": cell.situation.cache} if cache else {}
            delivery = stage.delivery(cell.job, Settings.from_mapping({"mode": mode, **known, **settings, **more}))
            return f"{delivery} helped" if mode == "auto" and delivery != STATIC.mode else delivery

        return choice

    return {
        HERE: told("auto"),
        "auto, turns known": told("auto", cache=False),
        "auto, cache known": told("auto", turns=False),
        "auto, nothing known": told("auto", turns=False, cache=False),
        "auto, bridge without native": told("auto", without_native="bridge"),
        "auto, append without native": told("auto", without_native="append"),
        "auto, from 10 tools and 2,500 tokens on": told("auto", auto_tools=10, auto_tokens=2_500),
        "search, turns known": told("search"),
        "search, nothing known": told("search", turns=False),
        **{f"always {way}": lambda _, way=way: way for way in (*DELIVERIES, *HELPED)},  # type: ignore[misc]
    }


def by_fit(extra: Mapping[str, Extra], requests: float, choice: Choice) -> Choice:
    """Static below what was fitted for the delivery that a policy would search by."""

    def fitted(cell: Cell) -> str:
        way = choice(cell)
        below = extra[way.removesuffix(" helped")].cheaper_below(cell.situation, requests)
        is_small = cell.definitions < below and cell.situation.tools <= Settings().max_tools
        return STATIC.mode if is_small else way

    return fitted


class Regret(NamedTuple):
    """How much more the choices of a policy cost than the cheapest ways, over some cells; shares of the cheapest."""

    policy: str
    cells: int
    mean: float
    p90: float
    worst: float


def regrets(cells: Sequence[Cell], choices: Mapping[str, Choice]) -> list[Regret]:
    """The regret of each policy; those that choose what was not played are left out."""
    found = []
    for policy, choice in choices.items():
        ways = [(cell, choice(cell)) for cell in cells]
        if ways and all(way in cell.costs for cell, way in ways):
            each = sorted(cell.price(way) / cell.cheapest - 1 for cell, way in ways)
            found.append(Regret(policy, len(each), sum(each) / len(each), each[int(0.9 * (len(each) - 1))], each[-1]))
    return found
