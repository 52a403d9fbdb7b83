"""What tool search saves over whole conversations, against the number of tools: the sweep, its rows, the break-even.

Samples are nested: a seed puts the tools in an order, and the catalog of size N holds what the conversation needs, then
the first of that order. So a larger catalog has all the tools of a smaller one, and the conversations stay the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, Literal

from toolsearch import Catalog, Settings, SetupError, Tool, ToolSearch
from toolsearch.tokens import TokenCounter, counter
from toolsearch_evals.backends import label, open_backend
from toolsearch_evals.cases import Case, Dataset
from toolsearch_evals.measures import mean
from toolsearch_evals.replies import format_of
from toolsearch_evals.scripted import Played, answer, play
from toolsearch_evals.usage import Meter, Usage

__all__ = ["SIZES", "BreakEven", "Plan", "Swept", "break_even", "conversations_of", "sweep"]

SIZES = (5, 10, 20, 30, 50, 75, 100, 150, 200, 300)
Mode = Literal["append", "bridge"]
Tick = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What is played. Without `sizes`, those of `SIZES` that the catalog allows, and all of it.

    A cached token costs `cached_weight` and a written one `output_weight` of an uncached one.
    """

    indexes: tuple[str, ...] = ("keyword", "regex")
    modes: tuple[Mode, ...] = ("append",)
    wires: tuple[str, ...] = ("openai_chat", "anthropic")
    sizes: tuple[int, ...] = ()
    seeds: int = 3
    conversations: int = 10
    turns: int = 3
    one_by_one: bool = False
    cached_weight: float = 0.1
    output_weight: float = 5.0


@dataclass(frozen=True, slots=True)
class BreakEven:
    """From how many tools on an arm is cheaper than sending all of them; None if it never is."""

    index: str
    mode: str
    wire: str
    tokens: float | None
    cost: float | None


@dataclass(frozen=True)
class Swept:
    """Rows, one for each size, wire and arm; break-evens, one for each wire and arm."""

    rows: list[dict[str, Any]]
    break_evens: list[BreakEven]
    refused: list[str]
    quarantined: list[str]
    counter: TokenCounter


@dataclass(frozen=True, slots=True)
class _Arm:
    index: str
    mode: str


_STATIC = _Arm("none", "static")
_Cell = tuple[int, str, _Arm]  # size, wire, arm


def sweep(dataset: Dataset, cases: Sequence[Case], plan: Plan, tick: Tick = lambda _: None) -> Swept:
    """Plays the plan's conversations with these cases in catalogs of every size.

    `tick` is called after each conversation. Raises `SetupError` for a size the catalog or a conversation cannot have.
    """
    catalog = dataset.catalog()
    tools = {tool.id: tool for tool in catalog}
    sizes = _sizes(plan, len(tools))
    formats = {wire: format_of(wire) for wire in plan.wires}
    meter = Meter(counter())
    arms = [_STATIC, *(_Arm(index, mode) for index in plan.indexes for mode in plan.modes)]
    cells: dict[_Cell, list[tuple[int, Played]]] = {}
    for seed, talk in _conversations(cases, tools, plan, sizes[0]):
        for size in sizes:
            held = [tools[i] for i in talk.tools[:size]]
            for arm in arms:
                search = _search(held, arm)
                for wire, form in formats.items():
                    played = play(search, talk.cases, form, meter, one_by_one=plan.one_by_one)
                    cells.setdefault((size, wire, arm), []).append((seed, played))
                    tick(f"{size} tools, {arm.mode} {label(arm.index)}")
    rows = [
        _row((size, wire, arm), cells[size, wire, _STATIC], cells[size, wire, arm], plan)
        for wire in plan.wires
        for arm in arms[1:]
        for size in sizes
    ]
    return Swept(
        rows,
        [_break_even(rows, arm, wire) for wire in plan.wires for arm in arms[1:]],
        [told for runs in cells.values() for _, played in runs for told in played.refused],
        [f"{entry.name}: {entry.reason}" for entry in catalog.quarantined],
        meter.counter,
    )


def conversations_of(plan: Plan, tools: int) -> int:
    """How many conversations the plan plays, for a data set of so many tools: what a progress bar counts to."""
    arms = 1 + len(plan.indexes) * len(plan.modes)
    return plan.seeds * plan.conversations * len(_sizes(plan, tools)) * arms * len(plan.wires)


def _sizes(plan: Plan, most: int) -> list[int]:
    for size in plan.sizes:
        if not 1 <= size <= most:
            raise SetupError(f"a catalog of {size} tools cannot be made: the data set has {most}. Pass 1 to {most}.")
    return sorted({*plan.sizes} or {*(size for size in SIZES if size < most), most})


@dataclass(frozen=True, slots=True)
class _Conversation:
    """Its cases, and all tools in the order in which catalogs take them."""

    cases: tuple[Case, ...]
    tools: tuple[str, ...]


def _conversations(
    cases: Sequence[Case], tools: dict[str, Tool], plan: Plan, smallest_catalog: int
) -> Iterator[tuple[int, _Conversation]]:
    """The conversations of each seed. A case whose tools would not fit the smallest catalog is put off."""
    usable = [case for case in cases if all(any(i in tools for i in group) for group in case.gold)]
    for seed in range(plan.seeds):
        rng = random.Random(seed)
        order = sorted(tools)
        rng.shuffle(order)
        waiting: list[Case] = []
        for _ in range(plan.conversations):
            if len(waiting) < len(usable):
                waiting += rng.sample(usable, len(usable))
            chosen: list[Case] = []
            needed: dict[str, None] = {}
            for case in list(waiting):
                more = [next(i for i in group if i in tools) for group in case.gold]
                if case not in chosen and len({*needed, *more}) <= smallest_catalog:
                    needed |= dict.fromkeys(more)
                    chosen.append(case)
                    waiting.remove(case)
                if len(chosen) == plan.turns:
                    break
            if len(chosen) < plan.turns:
                raise SetupError(
                    f"{plan.turns} turns cannot be made: of the {len(usable)} cases, only {len(chosen)} fit a "
                    f"catalog of {smallest_catalog} tools together. Ask for fewer turns or a larger least size."
                )
            yield seed, _Conversation(tuple(chosen), tuple(dict.fromkeys([*needed, *order])))


class _NoIndex:
    """What a conversation without search needs of an index."""

    name = "none"

    def add(self, tools: Sequence[Tool]) -> None: ...
    def remove(self, ids: Sequence[str]) -> None: ...
    def search(self, query: str, limit: int, among: Any = None) -> list[Any]:
        return []


def _search(held: list[Tool], arm: _Arm) -> ToolSearch:
    if arm == _STATIC:
        return ToolSearch(Catalog(held), _NoIndex(), run=answer, mode="static", max_tools=len(held) + 2)
    settings = Settings.from_mapping({"mode": arm.mode})
    return ToolSearch(Catalog(held), open_backend(arm.index), run=answer, settings=settings)


def _row(cell: _Cell, static: list[tuple[int, Played]], runs: list[tuple[int, Played]], plan: Plan) -> dict[str, Any]:
    size, wire, arm = cell
    played = [each for _, each in runs]
    before, after = _per_conversation([each for _, each in static]), _per_conversation(played)
    by_seed = [
        _saving(_total(_of_seed(static, seed)), _total(_of_seed(runs, seed))) for seed in sorted({s for s, _ in runs})
    ]
    costs = [_cost(usage, plan) for usage in (before, after)]
    turns = [turn for each in played for turn in each.turns]
    answerable = [turn for turn in turns if turn.case.gold]
    row: dict[str, Any] = {
        "wire": wire,
        "index": label(arm.index),
        "mode": arm.mode,
        "tools": size,
        "conversations": len(played),
        "static tokens": sum(before.values()),
        "tokens": sum(after.values()),
        "saving": _saving(sum(before.values()), sum(after.values())),
        "saving, worst seed": min(by_seed),
        "saving, best seed": max(by_seed),
        "static cost": costs[0],
        "cost": costs[1],
        "cost saving": _saving(*costs),
        "success": mean([float(turn.served) for turn in answerable]),
    }
    for wording in ("user", "agent"):
        row[f"success, {wording} wording"] = mean(
            [float(turn.served) for turn in answerable if turn.case.wording == wording]
        )
    return row | {
        "searches a turn": mean([turn.searches for turn in turns]),
        "requests": mean([each.requests for each in played]),
        "static requests": mean([each.requests for _, each in static]),
        **{f"static {kind}": tokens for kind, tokens in before.items()},
        **after,
    }


def _per_conversation(played: Sequence[Played]) -> dict[str, float]:
    usage: Usage = reduce(add, (each.usage for each in played), Usage())
    return {
        "uncached": usage.uncached / len(played),
        "cached": usage.cached / len(played),
        "output": usage.output / len(played),
    }


def _cost(tokens: dict[str, float], plan: Plan) -> float:
    return tokens["uncached"] + plan.cached_weight * tokens["cached"] + plan.output_weight * tokens["output"]


def _of_seed(runs: list[tuple[int, Played]], seed: int) -> list[Played]:
    return [played for of, played in runs if of == seed]


def _total(played: Sequence[Played]) -> int:
    return sum(each.usage.total for each in played)


def _saving(before: float, after: float) -> float:
    return (before - after) / before


def _break_even(rows: Sequence[dict[str, Any]], arm: _Arm, wire: str) -> BreakEven:
    mine = [row for row in rows if (row["index"], row["mode"], row["wire"]) == (label(arm.index), arm.mode, wire)]
    plain, cost = (break_even([(row["tools"], row[key]) for row in mine]) for key in ("saving", "cost saving"))
    return BreakEven(label(arm.index), arm.mode, wire, plain, cost)


def break_even(savings: Sequence[tuple[float, float]]) -> float | None:
    """The number of tools from which on the saving stays above 0, interpolated between two sizes of the sweep.

    `savings` are (tools, saving) by number of tools. The smallest number, if all of them save (it is then a bound);
    None, if the largest does not.
    """
    if not savings or savings[-1][1] <= 0:
        return None
    for (few, loss), (many, gain) in reversed(list(pairwise(savings))):
        if loss <= 0:
            return few + (many - few) * -loss / (gain - loss)
    return savings[0][0]
