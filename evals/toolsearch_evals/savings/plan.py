"""What a sweep plays: sizes, turns, ways to search, and how the result is priced."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from toolsearch import Settings, SetupError
from toolsearch_evals.backends import label
from toolsearch_evals.savings.scripted import RECOGNISED

__all__ = ["MODES", "SIZES", "STATIC", "Arm", "SearchedArm", "SweepPlan", "sizes_of"]

SIZES = (5, 10, 20, 30, 50, 75, 100, 150, 200, 300)

# How found tools reach the model, by the name that is measured: the settings of the sessions that do it so.
MODES: dict[str, dict[str, str]] = {
    "append": {"mode": "append"},
    "bridge": {"mode": "bridge"},
    "auto": {"mode": "auto"},
}


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
    """What is played. Without `sizes`, these are the ones in `SIZES` that the catalog allows, and all of its tools.

    Of each of `turns`, so many cases are a conversation. `settings` are names and values of the `Settings` with which
    the tools are searched; a name that stands there several times is played with each value. `recognised` is how often
    the model takes a right tool that an answer only names. A cached token costs `cached_weight` and a written one
    `output_weight` of an uncached one.
    """

    indexes: tuple[str, ...] = ("keyword", "regex")
    modes: tuple[str, ...] = ("append",)
    wires: tuple[str, ...] = ("openai_chat", "anthropic")
    sizes: tuple[int, ...] = ()
    seeds: int = 3
    conversations: int = 10
    turns: tuple[int, ...] = (3,)
    localities: tuple[float, ...] = (0.0,)
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

    def searched(self) -> list[SearchedArm]:
        """The arms that search, in order. Raises `SetupError` for a mode or a setting that cannot be played."""
        for name in ("mode", "index"):
            if any(name == each for each, _ in self.settings):
                raise SetupError(f"the setting {name!r} is an arm of its own: pass --{name} instead of --set {name}=…")
        for mode in self.modes:
            if mode not in MODES:
                known = ", ".join(map(repr, MODES))
                raise SetupError(f"there is no delivery {mode!r} to measure; there are: {known}")
        return [
            SearchedArm(Arm(mode, label(index), told), index, Settings.from_mapping({**MODES[mode], **settings}))
            for index in self.indexes
            for mode in self.modes
            for told, settings in self.ways().items()
        ]


def sizes_of(plan: SweepPlan, tools: int) -> list[int]:
    """The sizes that are played of a data set with so many tools, in order; `SetupError` for one it cannot have."""
    for size in plan.sizes:
        if not 1 <= size <= tools:
            raise SetupError(f"a catalog of {size} tools cannot be made: the data set has {tools}. Pass 1 to {tools}.")
    return sorted({*plan.sizes} or {*(size for size in SIZES if size < tools), tools})
