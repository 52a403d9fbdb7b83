"""What a sweep plays: sizes, turns, ways to search, and how the result is priced."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, NamedTuple

from toolsearch import Settings, SetupError
from toolsearch_evals.backends import label
from toolsearch_evals.savings.prices import PLAIN, profile_of
from toolsearch_evals.savings.runs import Pricing
from toolsearch_evals.savings.scripted import RECOGNISED

__all__ = [
    "CACHES",
    "DELIVERIES",
    "HELPED",
    "MODES",
    "NATIVE",
    "ROOM",
    "SIZES",
    "STATIC",
    "Arm",
    "SearchedArm",
    "SweepPlan",
    "sizes_of",
]

SIZES = (5, 10, 20, 30, 50, 100, 200, 300)
ROOM = 1.5  # tools of the smallest catalog for each turn, so that few cases are put off because they do not fit
CACHES = ("cold", "warm")

# How found tools reach the model, by the name that is measured: the settings of the sessions that do it so.
MODES: dict[str, dict[str, str]] = {
    name: {"mode": name} for name in ("append", "bridge", "auto", "native", "compact", "search")
}
# What "auto" brings with each delivery by search: the directory, and tools that come with a message.
_AUTO = Settings.of(mode="auto")
HELPED: dict[str, dict[str, str]] = {
    f"{name} helped": {
        "mode": name,
        "preselect": f"{_AUTO.most_preselected}",
        "directory": f"{_AUTO.most_in_directory}",
    }
    for name in ("append", "bridge", "native")
}
DELIVERIES = ("static", "append", "bridge", "native", "compact")
NATIVE = ("native", "native helped")  # played on wires that can


class Arm(NamedTuple):
    """One way to search: how found tools are delivered, by which index, and with which settings, in words."""

    mode: str
    backend: str
    settings: str = ""

    @property
    def in_words(self) -> str:
        """Its parts, with commas between them."""
        return ", ".join(filter(None, self))


STATIC = Arm("static", "none")  # every tool is sent, nothing is searched


class SearchedArm(NamedTuple):
    """An arm, the index by its notation, and the settings with which it is played."""

    arm: Arm
    notation: str
    settings: Settings


@dataclass(frozen=True)
class SweepPlan:
    """What is played, and how it is priced afterwards. Of each tuple, everything is combined with everything.

    Without `sizes`, these are the ones in `SIZES` that the catalog allows, and all of its tools. `turns` are cases in a
    conversation. `localities`: the chance that a turn stays with the servers of its conversation. `settings` are names
    and values of the `Settings` with which the tools are searched; a name that stands there several times is played
    with each value. `recognised` is how often the model takes a right tool that an answer only names. `tokens` says
    what is counted: the "json" that is sent, or what the provider makes of it, as far as that is known ("rendered").

    `caches`: whether the cache is "cold" at the first request, or "warm" with its tools and system message. `prices`
    are names of profiles (see `profile_of`); with the one called "plain", a cached token costs `cached_weight` and a
    written one `output_weight` of an uncached one. `static_success`: how often a request is met if every tool is sent.
    """

    indexes: tuple[str, ...] = ("keyword",)
    modes: tuple[str, ...] = ("append",)
    wires: tuple[str, ...] = ("openai_chat",)
    sizes: tuple[int, ...] = ()
    seeds: int = 3
    conversations: int = 10
    turns: tuple[int, ...] = (3,)
    localities: tuple[float, ...] = (0.0,)
    one_by_one: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    recognised: float = RECOGNISED
    tokens: Literal["json", "rendered"] = "json"
    caches: tuple[str, ...] = ("cold",)
    prices: tuple[str, ...] = ("plain",)
    cached_weight: float = 0.1
    output_weight: float = 5.0
    static_success: tuple[float, ...] = (1.0,)

    def pricings(self) -> list[Pricing]:
        """All combinations of what is assumed after playing; `SetupError` for one that there is not."""
        plain = replace(PLAIN, cached=self.cached_weight, output=self.output_weight)
        for cache in self.caches:
            if cache not in CACHES:
                raise SetupError(f"a cache cannot be {cache!r} at first; it is 'cold' or 'warm'")
        for share in self.static_success:
            if not 0 < share <= 1:
                raise SetupError(
                    f"with every tool sent, {share!r} of the requests cannot be met; it is above 0, up to 1"
                )
        profiles = [profile_of(name, plain) for name in dict.fromkeys(self.prices)]
        return [
            Pricing(profile, cache, share)
            for profile in profiles
            for cache in dict.fromkeys(self.caches)
            for share in dict.fromkeys(self.static_success)
        ]

    def ways(self) -> dict[str, dict[str, str]]:
        """The settings of each arm, all combinations of the values; its key says in words what sets it apart."""
        values: dict[str, dict[str, None]] = {}
        for name, value in self.settings:
            values.setdefault(name, {})[value] = None
        combined = [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]
        return {", ".join(f"{k}={v}" for k, v in way.items() if len(values[k]) > 1): way for way in combined}

    def searched(self) -> list[SearchedArm]:
        """The arms that search, in order. Raises `SetupError` for a mode or a setting that cannot be played."""
        for name in ("mode", "index"):
            if any(name == each for each, _ in self.settings):
                raise SetupError(f"the setting {name!r} is an arm of its own: pass --{name} instead of --set {name}=…")
        known_modes = {**MODES, **HELPED}
        # With several lengths, each conversation says its own; see `Stage`.
        turns = {"expected_turns": f"{self.turns[0]}"} if len({*self.turns}) == 1 else {}
        for mode in self.modes:
            if mode not in known_modes:
                known = ", ".join(map(repr, MODES))
                raise SetupError(f"there is no delivery {mode!r} to measure; there are: {known}")
        return [
            SearchedArm(
                Arm(mode, label(index), told), index, Settings.from_mapping({**turns, **settings, **known_modes[mode]})
            )
            for index in self.indexes
            for mode in self.modes
            for told, settings in self.ways().items()
        ]


def sizes_of(plan: SweepPlan, tools: int, turns: int) -> list[int]:
    """The sizes that are played of a data set with so many tools, in conversations of so many turns; in order.

    Those in which a conversation has too little room are left out, unless they are asked for, for this length alone.
    Raises `SetupError` for a size that the data set cannot have, and if none is left.
    """
    for size in plan.sizes:
        if not 1 <= size <= tools:
            raise SetupError(f"a catalog of {size} tools cannot be made: the data set has {tools}. Pass 1 to {tools}.")
    if plan.sizes and len({*plan.turns}) == 1:
        return sorted({*plan.sizes})
    offered = {*plan.sizes} or {*(size for size in SIZES if size < tools), tools}
    sizes = sorted(size for size in offered if size >= ROOM * turns)
    if not sizes and plan.sizes:
        raise SetupError(f"{turns} turns need a catalog of {math.ceil(ROOM * turns)} tools: pass a larger size as well")
    return sizes or [tools]
