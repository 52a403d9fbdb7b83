"""The conversations of a sweep: which cases follow one another, and the order in which catalogs get their tools.

Samples are nested: a seed puts the tools in an order, and the catalog of size N holds what the conversation needs, then
the first of that order. So a larger catalog has all the tools of a smaller one, and the conversations stay the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolsearch import SetupError, Tool
from toolsearch_evals.data.cases import Case

__all__ = ["Conversation", "conversations"]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Its cases, and all tools in the order in which catalogs get them."""

    cases: tuple[Case, ...]
    tools: tuple[str, ...]


def conversations(
    cases: Sequence[Case],
    tools: Mapping[str, Tool],
    *,
    seed: int,
    many: int,
    turns: int,
    locality: float,
    smallest_catalog: int,
) -> Iterator[Conversation]:
    """So many conversations of a seed. A case whose tools would not fit into the smallest catalog has to wait.

    With the chance `locality`, a turn stays with the servers of the turns before: it is the next case that needs tools
    of these servers only, or the next that no tool can meet, in their natural share. Else it is the next case of all.
    """
    usable = [case for case in cases if all(any(i in tools for i in group) for group in case.gold)]
    hopeless = sum(not case.gold for case in usable) / max(1, len(usable))
    rng = random.Random(seed)
    order = sorted(tools)
    rng.shuffle(order)
    coin = random.Random(f"{seed} {locality}")  # of its own, so that cases are shuffled alike
    waiting: list[Case] = []
    for _ in range(many):
        if len(waiting) < len(usable):
            waiting += rng.sample(usable, len(usable))
        talk = _Drawing(tools, turns, smallest_catalog)
        while len(talk.chosen) < turns:
            case = talk.next_of(waiting)
            if talk.servers and coin.random() < locality:
                suits = _is_hopeless if coin.random() < hopeless else talk.is_local
                case = talk.next_of(waiting, suits) or case
            if case is None:
                raise SetupError(
                    f"{turns} turns cannot be made: of the {len(usable)} cases, only {len(talk.chosen)} fit into a "
                    f"catalog of {smallest_catalog} tools together. Ask for fewer turns or a larger smallest size."
                )
            waiting.remove(case)
            talk.take(case)
        yield Conversation(tuple(talk.chosen), tuple(dict.fromkeys([*talk.needed, *order])))


def _is_hopeless(case: Case) -> bool:
    return not case.gold


class _Drawing:
    """A conversation while its cases are chosen."""

    def __init__(self, tools: Mapping[str, Tool], turns: int, smallest_catalog: int) -> None:
        self.chosen: list[Case] = []
        self.needed: dict[str, None] = {}
        self.servers: set[str] = set()
        self._tools, self._turns, self._most = tools, turns, smallest_catalog

    def next_of(self, waiting: Iterable[Case], suits: Callable[[Case], bool] = lambda _: True) -> Case | None:
        """The next case that suits and fits into the smallest catalog."""
        for case in waiting:
            fits = case not in self.chosen and len({*self.needed, *self._needs(case)}) <= self._most
            if fits and suits(case):
                return case
        return None

    def is_local(self, case: Case) -> bool:
        """Whether it needs tools, and only of servers that the conversation has used."""
        needs = self._needs(case)
        return bool(needs) and all((self._tools[i].server or "") in self.servers for i in needs)

    def take(self, case: Case) -> None:
        needs = self._needs(case)
        self.chosen.append(case)
        self.needed |= dict.fromkeys(needs)
        self.servers |= {self._tools[i].server or "" for i in needs}

    def _needs(self, case: Case) -> list[str]:
        return [next(i for i in group if i in self._tools) for group in case.gold]
