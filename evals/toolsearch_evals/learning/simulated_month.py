"""A month of requests, simulated: tenants have needs, and word each one as before, with a slip, or in other words.

Some needs are frequent and most of them rare (Zipf).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolsearch_evals.data.cases import Case
from toolsearch_evals.savings.scripted import content_words

__all__ = ["DAYS", "KNOWN", "Habits", "Need", "UserRequest", "needs_of", "simulate_month"]

DAYS = 28
KNOWN = ("repeated", "with a slip", "other words", "new")


@dataclass(frozen=True)
class Habits:
    """How the simulated people work; shares are 0 … 1.

    `mistaken`: how often, although a fitting tool is found, the model calls the first tool shown that does not fit and
    is content with it. `mistaken_in_vain`: the same if no fitting tool is found.
    """

    tenants: int = 4
    users: int = 5  # of a tenant
    needs: int = 60  # of a tenant, the first ones the most frequent
    requests: int = 20  # of a tenant, a day
    same_words: float = 0.4
    slip: float = 0.2  # the words as before with a typo or in another order; the rest are other words
    unanswerable: float = 0.05
    mistaken: float = 0.05
    mistaken_in_vain: float = 0.2


@dataclass(frozen=True, slots=True)
class UserRequest:
    """What a user asks on a day. `fitting` are the tools that serve; `known` is one of `KNOWN`."""

    day: int
    tenant: str
    user: str
    query: str
    fitting: frozenset[str]
    known: str
    other_words: str  # with which the model tries again


@dataclass(frozen=True)
class Need:
    """Something people want: the tools that serve it, each alone, and the ways to say it."""

    fitting: frozenset[str]
    wordings: tuple[str, ...]


@dataclass
class _Tenant:
    name: str
    needs: list[Need]
    said: dict[int, list[str]]  # by need, what was asked


def simulate_month(needs: Sequence[Need], hopeless: Sequence[str], habits: Habits, seed: int) -> list[UserRequest]:
    """The requests of all tenants in the order of the days; the same seed gives the same ones."""
    rng = random.Random(seed)
    tenants = []
    for at in range(habits.tenants):
        own = rng.sample(range(len(needs)), min(habits.needs, len(needs)))
        tenants.append(_Tenant(f"tenant {at + 1}", [needs[i] for i in own], {}))
    made = []
    for day in range(DAYS):
        today = [tenant for tenant in tenants for _ in range(habits.requests)]
        rng.shuffle(today)
        made += [_request(tenant, day, hopeless, habits, rng) for tenant in today]
    return made


def needs_of(cases: Iterable[Case], phrasings: Mapping[str, Sequence[str]]) -> list[Need]:
    """Cases that one tool answers; those with the same gold are one need."""
    wordings: dict[frozenset[str], list[str]] = {}
    for case in cases:
        if len(case.gold) == 1:
            wordings.setdefault(frozenset(case.gold[0]), []).append(case.query)
    return [
        Need(fitting, tuple(dict.fromkeys([*queries, *(q for i in sorted(fitting) for q in phrasings.get(i, ()))])))
        for fitting, queries in sorted(wordings.items(), key=lambda each: sorted(each[0]))
    ]


def _request(tenant: _Tenant, day: int, hopeless: Sequence[str], habits: Habits, rng: random.Random) -> UserRequest:
    user = f"user {rng.randrange(habits.users) + 1}"
    if hopeless and rng.random() < habits.unanswerable:
        query = rng.choice(hopeless)
        return UserRequest(day, tenant.name, user, query, frozenset(), "unanswerable", content_words(query))
    at = rng.choices(range(len(tenant.needs)), [1 / (rank + 1) for rank in range(len(tenant.needs))])[0]
    need, said = tenant.needs[at], tenant.said.setdefault(at, [])
    way = rng.random()
    if not said:
        query, known = rng.choice(need.wordings), "new"
    elif way < habits.same_words:
        query, known = rng.choice(said), "repeated"
    else:
        others = [wording for wording in need.wordings if wording not in said]
        slips = way < habits.same_words + habits.slip or not others
        query, known = (
            (_slipped(rng.choice(said), rng), "with a slip") if slips else (rng.choice(others), "other words")
        )
    if query in said:
        known = "repeated"
    else:
        said.append(query)
    other = rng.choice([wording for wording in need.wordings if wording != query] or [content_words(query)])
    return UserRequest(day, tenant.name, user, query, need.fitting, known, other)


def _slipped(query: str, rng: random.Random) -> str:
    """The query with two letters of a word exchanged, or with its parts in another order."""
    words = query.split()
    long = [at for at, word in enumerate(words) if len(word) > 4 and word.isalpha()]
    if long and rng.random() < 0.5:
        at = rng.choice(long)
        place = rng.randrange(1, len(words[at]) - 2)
        word = words[at]
        words[at] = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
        return " ".join(words)
    turn = rng.randrange(1, len(words)) if len(words) > 1 else 0
    return re.sub(r"[.?!]+ ", " ", " ".join([*words[turn:], *words[:turn]]))
