"""What tool search saves over whole conversations, against the number of tools: the sweep, its rows, the break-even.

Samples are nested: a seed puts the tools in an order, and the catalog of size N holds what the conversation needs, then
the first of that order. So a larger catalog has all the tools of a smaller one, and the conversations stay the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from toolsearch import Catalog, Settings, SetupError, Tool, ToolSearch
from toolsearch.tokens import counter
from toolsearch_evals.backends import label, open_backend
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.savings.format_plugins import format_of
from toolsearch_evals.savings.formats import WireFormat
from toolsearch_evals.savings.rows import Arm, BreakEven, Prices, SavingsRow, break_even_of, savings_row
from toolsearch_evals.savings.scripted import RECOGNISED, PlayedConversation, answer, play
from toolsearch_evals.token_usage import TokenMeter, tokenizer

__all__ = ["SIZES", "SweepPlan", "SweepResult", "conversations_of", "sweep"]

SIZES = (5, 10, 20, 30, 50, 75, 100, 150, 200, 300)
Mode = Literal["append", "bridge"]
Tick = Callable[[str], None]


@dataclass(frozen=True)
class SweepPlan:
    """What is played. Without `sizes`, these are the ones in `SIZES` that the catalog allows, and all of its tools.

    A cached token costs `cached_weight` and a written one `output_weight` of an uncached one. `settings` are names and
    values of the `Settings` with which the tools are searched; a name that stands there several times is played with
    each value. `recognised` is how often the model takes a right tool that an answer only names.
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
    settings: tuple[tuple[str, str], ...] = ()
    recognised: float = RECOGNISED

    def ways(self) -> dict[str, dict[str, str]]:
        """The settings of each arm, all combinations of the values; its key says in words what sets it apart."""
        values: dict[str, dict[str, None]] = {}
        for name, value in self.settings:
            values.setdefault(name, {})[value] = None
        combined = [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]
        return {", ".join(f"{k}={v}" for k, v in way.items() if len(values[k]) > 1): way for way in combined}


@dataclass(frozen=True)
class SweepResult:
    """Rows, one for each size, wire and arm; break-evens, one for each wire and arm.

    `tokenizers` say by wire how its tokens were counted.
    """

    rows: list[SavingsRow]
    break_evens: list[BreakEven]
    refused: list[str]
    quarantined: list[str]
    tokenizers: dict[str, str]


@dataclass(frozen=True)
class _Searched:
    """An arm and the settings with which it is played; without settings, every tool is sent."""

    index: str
    settings: Settings | None = None
    in_words: str = ""

    @property
    def arm(self) -> Arm:
        return Arm("static" if self.settings is None else self.settings.mode, label(self.index), self.in_words)


_STATIC = _Searched("none")
_Cells = dict[tuple[int, str, Arm], list[tuple[int, PlayedConversation]]]  # by size, wire and arm: seeds and runs


def sweep(
    dataset: Dataset,
    cases: Sequence[Case],
    plan: SweepPlan,
    tick: Tick = lambda _: None,
    *,
    formats: Mapping[str, WireFormat] | None = None,
) -> SweepResult:
    """Plays the plan's conversations with these cases in catalogs of every size.

    `formats` are wires by name, besides ours and those of installed packages. `tick` is called after each conversation.
    Raises `SetupError` for a size the catalog or a conversation cannot have, and for a setting that does not exist.
    """
    catalog = dataset.catalog()
    tools = {tool.id: tool for tool in catalog}
    sizes = _sizes(plan, len(tools))
    forms = {wire: format_of(wire, formats) for wire in plan.wires}
    meter = TokenMeter(counter())
    searched = _searched(plan)
    cells: _Cells = {}
    for seed, talk in _conversations(cases, tools, plan, sizes[0]):
        for size in sizes:
            catalog_tools = [tools[i] for i in talk.tools[:size]]
            for each in (_STATIC, *searched):
                search = _search(catalog_tools, each)
                for wire, form in forms.items():
                    played = play(
                        search, talk.cases, form, meter, one_by_one=plan.one_by_one, recognised=plan.recognised
                    )
                    cells.setdefault((size, wire, each.arm), []).append((seed, played))
                    tick(f"{size} tools, {each.arm.mode} {each.arm.backend}")
    by_arm = [[_row(cells, size, wire, each.arm, plan) for size in sizes] for wire in plan.wires for each in searched]
    return SweepResult(
        [row for rows in by_arm for row in rows],
        [break_even_of(rows) for rows in by_arm],
        [call for runs in cells.values() for _, played in runs for call in played.refused],
        [f"{entry.name}: {entry.reason}" for entry in catalog.quarantined],
        {wire: tokenizer(meter.counter, is_public=form.tokenizer_is_public) for wire, form in forms.items()},
    )


def conversations_of(plan: SweepPlan, tools: int) -> int:
    """How many conversations the plan plays on a data set of so many tools; a progress bar counts up to it."""
    arms = 1 + len(plan.indexes) * len(plan.modes) * len(plan.ways())
    return plan.seeds * plan.conversations * len(_sizes(plan, tools)) * arms * len(plan.wires)


def _sizes(plan: SweepPlan, most: int) -> list[int]:
    for size in plan.sizes:
        if not 1 <= size <= most:
            raise SetupError(f"a catalog of {size} tools cannot be made: the data set has {most}. Pass 1 to {most}.")
    return sorted({*plan.sizes} or {*(size for size in SIZES if size < most), most})


@dataclass(frozen=True, slots=True)
class _Conversation:
    """Its cases, and all tools in the order in which catalogs get them."""

    cases: tuple[Case, ...]
    tools: tuple[str, ...]


def _conversations(
    cases: Sequence[Case], tools: dict[str, Tool], plan: SweepPlan, smallest_catalog: int
) -> Iterator[tuple[int, _Conversation]]:
    """The conversations of each seed. A case whose tools would not fit into the smallest catalog has to wait."""
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
                    f"{plan.turns} turns cannot be made: of the {len(usable)} cases, only {len(chosen)} fit into a "
                    f"catalog of {smallest_catalog} tools together. Ask for fewer turns or a larger smallest size."
                )
            yield seed, _Conversation(tuple(chosen), tuple(dict.fromkeys([*needed, *order])))


class _NoIndex:
    """The index of a conversation without search: it is never asked."""

    name = "none"

    def add(self, tools: Sequence[Tool]) -> None: ...
    def remove(self, ids: Sequence[str]) -> None: ...
    def search(self, query: str, limit: int, among: Any = None) -> list[Any]:
        return []


def _searched(plan: SweepPlan) -> list[_Searched]:
    for name in ("mode", "index"):
        if any(name == each for each, _ in plan.settings):
            raise SetupError(f"the setting {name!r} is an arm of its own: pass --{name} instead of --set {name}=…")
    return [
        _Searched(index, Settings.from_mapping({"mode": mode, **settings}), in_words)
        for index in plan.indexes
        for mode in plan.modes
        for in_words, settings in plan.ways().items()
    ]


def _search(tools: list[Tool], searched: _Searched) -> ToolSearch:
    if searched.settings is None:
        return ToolSearch(Catalog(tools), _NoIndex(), run=answer, mode="static", max_tools=len(tools) + 2)
    return ToolSearch(Catalog(tools), open_backend(searched.index), run=answer, settings=searched.settings)


def _row(cells: _Cells, size: int, wire: str, arm: Arm, plan: SweepPlan) -> SavingsRow:
    static, searched = cells[size, wire, _STATIC.arm], cells[size, wire, arm]
    prices = Prices(plan.cached_weight, plan.output_weight)
    return savings_row(wire, arm, size, static=static, searched=searched, prices=prices)
