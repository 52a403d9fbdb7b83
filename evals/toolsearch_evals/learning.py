"""A month of use, simulated: what learning from calls does to the searches that follow, day by day.

Tenants have needs, some often and most of them seldom (Zipf). A user words a need as before, with a slip, or in other
words; a scripted model searches, calls a tool that fits if it is among the first five, tries once more if none is, and
now and then calls a wrong one. The same requests are searched with and without what use has taught.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch import Caller, Catalog, Hit, SetupError, ToolCall, ToolSearch
from toolsearch.search import Learned
from toolsearch_evals.arguments import smallest
from toolsearch_evals.backends import label, open_backend
from toolsearch_evals.cases import Dataset
from toolsearch_evals.measures import mean
from toolsearch_evals.ranking import in_split
from toolsearch_evals.report import Column, Report, Table
from toolsearch_evals.scripted import answer, content_words

__all__ = ["Habits", "Request", "learning", "month"]

FIRST = 5  # hits that a model looks at
DAYS = 28
WEEK = 7
SECONDS_A_DAY = 86_400
KNOWN = ("repeated", "with a slip", "other words", "new")


@dataclass(frozen=True)
class Habits:
    """How the simulated people work; shares are 0 … 1. `mistaken`: of the requests that find no fitting tool, and
    where one is found, how often the model calls the first tool it is shown that does not fit, and is content with it.
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
class Request:
    """What a user asks on a day. `fitting` are the tools that serve; `known` is one of `KNOWN`."""

    day: int
    tenant: str
    user: str
    query: str
    fitting: frozenset[str]
    known: str
    other_words: str  # in which the model tries again


def month(needs: Sequence[Need], hopeless: Sequence[str], habits: Habits, seed: int) -> list[Request]:
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


def learning(
    dataset: Dataset,
    backends: Sequence[str],
    split: str,
    habits: Habits,
    *,
    seeds: int = 3,
    make: Callable[[Callable[[], float]], Learned] = lambda clock: Learned(clock=clock),
    tick: Callable[[str], None] = lambda _: None,
) -> Report:
    """The report on one data set. Its example queries, if it has some, are not searched: they are further wordings."""
    cases = in_split(dataset.cases, split)
    phrasings = {i: entry.queries for i, entry in dataset.examples().entries.items()}
    needs = _needs(cases, phrasings)
    if not needs:
        raise SetupError(f"{dataset.key!r} has no case that one tool answers; learning cannot be measured on it")
    hopeless = [case.query for case in cases if not case.gold]
    rows: list[dict[str, Any]] = []
    totals: list[dict[str, Any]] = []
    for backend in backends:
        judged = []
        for seed in range(seeds):
            asked = month(needs, hopeless, habits, seed)
            judged += _lived(dataset.catalog(), backend, asked, habits=habits, make=make, seed=seed)
            tick(f"{dataset.name}, {backend}, month {seed + 1}")
        name = label(backend)
        for week in range(DAYS // WEEK):
            of_week = [each for each in judged if each.request.day // WEEK == week]
            rows += [{"index": name, "week": str(week + 1)} | row for row in _by_known(of_week)]
        totals += [{"index": name, "week": "all"} | row for row in _by_known(judged)]
    parameters = {
        "data set": dataset.key,
        "split": split,
        "seeds": seeds,
        "needs in the set": len(needs),
        **vars(habits),
    }
    return _report(totals, rows, parameters, has_phrasings=bool(phrasings))


@dataclass(frozen=True)
class Need:
    """Something people want: the tools of which any one serves, and the ways to say it."""

    fitting: frozenset[str]
    wordings: tuple[str, ...]


@dataclass
class _Tenant:
    name: str
    needs: list[Need]
    said: dict[int, list[str]]  # by need, what was asked


@dataclass(frozen=True, slots=True)
class _Judged:
    """The place of the first fitting tool among the hits, without and with what was learned; 0 where there is none."""

    request: Request
    without: int
    learned: int


def _needs(cases: Iterable[Any], phrasings: Mapping[str, Sequence[str]]) -> list[Need]:
    """Cases that one tool answers, those with the same gold as one need."""
    wordings: dict[frozenset[str], list[str]] = {}
    for case in cases:
        if len(case.gold) == 1:
            wordings.setdefault(frozenset(case.gold[0]), []).append(case.query)
    return [
        Need(fitting, tuple(dict.fromkeys([*queries, *(q for i in sorted(fitting) for q in phrasings.get(i, ()))])))
        for fitting, queries in sorted(wordings.items(), key=lambda each: sorted(each[0]))
    ]


def _request(tenant: _Tenant, day: int, hopeless: Sequence[str], habits: Habits, rng: random.Random) -> Request:
    user = f"user {rng.randrange(habits.users) + 1}"
    if hopeless and rng.random() < habits.unanswerable:
        query = rng.choice(hopeless)
        return Request(day, tenant.name, user, query, frozenset(), "unanswerable", content_words(query))
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
    return Request(day, tenant.name, user, query, need.fitting, known, other)


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


def _lived(
    catalog: Catalog,
    backend: str,
    asked: Sequence[Request],
    *,
    habits: Habits,
    make: Callable[[Callable[[], float]], Learned],
    seed: int,
) -> list[_Judged]:
    """The requests one after the other, searched with and without learning."""
    now = [0.0]
    rng = random.Random(seed + 1_000)
    learned = make(lambda: now[0])
    search = ToolSearch(catalog, open_backend(backend), learned=learned, run=answer, mode="append")
    plain: dict[tuple[str, frozenset[str]], int] = {}
    judged = []
    for number, request in enumerate(asked):
        now[0] = request.day * SECONDS_A_DAY + number
        caller = Caller(request.user, tenant=request.tenant)
        if not request.fitting:
            _use(search, request, caller, habits, rng)
            continue
        key = request.query, request.fitting
        if key not in plain:
            plain[key] = _place(search.find(request.query, FIRST), request)  # nobody's: without a tenant none is taught
        judged.append(_Judged(request, plain[key], _place(search.find(request.query, FIRST, caller=caller), request)))
        _use(search, request, caller, habits, rng)
    return judged


def _place(hits: Iterable[Hit], request: Request) -> int:
    return next((place for place, hit in enumerate(hits, 1) if hit.tool.id in request.fitting), 0)


def _use(search: ToolSearch, request: Request, caller: Caller, habits: Habits, rng: random.Random) -> None:
    """A conversation: at most two searches, and at most one call, mostly of a tool that fits."""
    session = search.session(f"{request.tenant}, {request.user}, {rng.random()}", caller=caller)
    shown: list[str] = []
    for query, limit in ((request.query, FIRST), (request.other_words, search.settings.results_ceiling)):
        asked = ToolCall("search", search.settings.search_tool, {"queries": [query], "limit": limit})
        shown = list((session.handle(asked).data or {}).get("loaded", ()))
        if not request.fitting.isdisjoint(shown):
            break
    fitting = [tool_id for tool_id in shown if tool_id in request.fitting]
    wrong = [tool_id for tool_id in shown if tool_id not in request.fitting]
    if wrong and rng.random() < (habits.mistaken if fitting else habits.mistaken_in_vain):
        fitting = wrong
    if fitting:
        tool = search.catalog[fitting[0]]
        session.tools()
        session.handle(ToolCall("use", search.catalog.provider_name(tool.id), smallest(tool.input_schema)))
    search.end_session(session.id)


def _by_known(judged: Sequence[_Judged]) -> list[dict[str, Any]]:
    """A row for all these requests, and one for each way they were known."""
    groups = {"all": judged} | {known: [each for each in judged if each.request.known == known] for known in KNOWN}
    return [
        {
            "requests": name,
            "n": len(group),
            "without": mean([float(each.without > 0) for each in group]),
            "with": mean([float(each.learned > 0) for each in group]),
            "first without": mean([float(each.without == 1) for each in group]),
            "first with": mean([float(each.learned == 1) for each in group]),
            "helped": sum(bool(each.learned) and not each.without for each in group),
            "harmed": sum(bool(each.without) and not each.learned for each in group),
        }
        for name, group in groups.items()
    ]


def _report(
    totals: list[dict[str, Any]], rows: list[dict[str, Any]], parameters: dict[str, Any], *, has_phrasings: bool
) -> Report:
    columns = (
        Column("index", "index"),
        Column("week", "week"),
        Column("requests", "requests"),
        Column("n", "n", "count"),
        Column("without", f"hit@{FIRST} without", "score"),
        Column("with", f"hit@{FIRST} with", "score"),
        Column("first without", "hit@1 without", "score"),
        Column("first with", "hit@1 with", "score"),
        Column("helped", "helped", "count"),
        Column("harmed", "harmed", "count"),
    )
    whole = [row for row in totals if row["requests"] == "all" and row["n"]]
    return Report(
        kind="learning",
        title="What use teaches",
        headline=tuple(
            f"{row['index']}: a fitting tool is among the first {FIRST} for {row['without']:.3f} of the requests "
            f"without learning and for {row['with']:.3f} with it; {row['helped']} were helped, {row['harmed']} harmed."
            for row in whole
        ),
        parameters=parameters,
        tables=(
            Table("Whole months", tuple(each for each in columns if each.key != "week"), totals),
            Table("Week by week", columns, rows),
        ),
        measured=(
            "The same requests are searched without and with what the tenant's calls have taught until then.",
            (
                "Repeated: in words the tenant has used before. With a slip: those words with two letters exchanged or "
                "turned round. Other words: a need it had before, said otherwise. New: a need it has not had; only "
                "lessons from other needs can touch it."
            ),
            (
                f"A model calls a fitting tool if one is among {FIRST} hits; else it searches once more, in other "
                "words for the same need where the data set has some, with up to 20 hits. In "
                f"{parameters['mistaken']:.0%} of the requests that find one, and {parameters['mistaken_in_vain']:.0%} "
                "of those that do not, it calls a wrong tool and is content: that is learned as well."
            ),
            "Helped: only with learning is a fitting tool among the first; harmed: only without.",
        ),
        limits=(
            (
                "It is a simulation: how often people repeat themselves, and how, is assumed, and the gain follows "
                "from that. Measure your own use before you rely on a number."
            ),
            (
                "Rephrasings are other cases with the same gold, "
                + ("example queries of the tool, " if has_phrasings else "")
                + "exchanged letters, and turned word order; people have more ways."
            ),
            "A wrong call that succeeds is random here; people who share a mistake would teach it more firmly.",
            "A data set with few cases for a tool has few ways to say one need, which flatters repetition.",
        ),
    )
