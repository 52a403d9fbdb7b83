"""What learning from calls does to the searches that follow, over a simulated month of use.

A scripted model searches, calls a tool that fits if it is among the first five, tries once more if none is, and
now and then calls a wrong one. The same requests are searched with and without what use has taught.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

from toolsearch import Caller, Catalog, Hit, SetupError, ToolCall, ToolSearch
from toolsearch.search import Learned
from toolsearch_evals.backends import label, open_backend
from toolsearch_evals.data.argument_maker import smallest_arguments
from toolsearch_evals.data.cases import Dataset
from toolsearch_evals.learning.report import FIRST, JudgedRequest, LearningRow, learning_report, learning_rows
from toolsearch_evals.learning.simulated_month import DAYS, Habits, UserRequest, needs_of, simulate_month
from toolsearch_evals.ranking.rank import in_split
from toolsearch_evals.reports.report import Report
from toolsearch_evals.savings.scripted import answer

__all__ = ["learning"]

WEEK = 7
SECONDS_A_DAY = 86_400


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
    """The report on one data set. Its example queries, if any, are not searched: they serve as further wordings."""
    cases = in_split(dataset.cases, split)
    phrasings = {i: entry.queries for i, entry in dataset.examples().entries.items()}
    needs = needs_of(cases, phrasings)
    if not needs:
        raise SetupError(f"{dataset.key!r} has no case that one tool answers, so learning cannot be measured on it")
    hopeless = [case.query for case in cases if not case.gold]
    rows: list[LearningRow] = []
    totals: list[LearningRow] = []
    for backend in backends:
        judged = []
        for seed in range(seeds):
            asked = simulate_month(needs, hopeless, habits, seed)
            judged += _live_month(dataset.catalog(), backend, asked, habits=habits, make=make, seed=seed)
            tick(f"{dataset.name}, {backend}, month {seed + 1}")
        name = label(backend)
        for week in range(DAYS // WEEK):
            of_week = [each for each in judged if each.request.day // WEEK == week]
            rows += learning_rows(name, str(week + 1), of_week)
        totals += learning_rows(name, "all", judged)
    parameters = {
        "data set": dataset.key,
        "split": split,
        "seeds": seeds,
        "needs in the set": len(needs),
        **vars(habits),
    }
    return learning_report(totals, rows, parameters, has_phrasings=bool(phrasings))


def _live_month(
    catalog: Catalog,
    backend: str,
    asked: Sequence[UserRequest],
    *,
    habits: Habits,
    make: Callable[[Callable[[], float]], Learned],
    seed: int,
) -> list[JudgedRequest]:
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
            plain[key] = _place(
                search.find(request.query, FIRST), request
            )  # without a tenant, so nothing that was taught counts
        judged.append(
            JudgedRequest(request, plain[key], _place(search.find(request.query, FIRST, caller=caller), request))
        )
        _use(search, request, caller, habits, rng)
    return judged


def _place(hits: Iterable[Hit], request: UserRequest) -> int:
    return next((place for place, hit in enumerate(hits, 1) if hit.tool.id in request.fitting), 0)


def _use(search: ToolSearch, request: UserRequest, caller: Caller, habits: Habits, rng: random.Random) -> None:
    """A conversation: at most two searches and one call, mostly of a tool that fits."""
    session = search.session(f"{request.tenant}, {request.user}, {rng.random()}", caller=caller)
    shown: list[str] = []
    for query, limit in ((request.query, FIRST), (request.other_words, 2 * FIRST)):
        asked = ToolCall("search", search.settings.search_tool, {"queries": [query], "limit": limit})
        told = session.handle(asked).data or {}
        shown = [*told.get("loaded", ()), *told.get("named", ())]
        if not request.fitting.isdisjoint(shown):
            break
    fitting = [tool_id for tool_id in shown if tool_id in request.fitting]
    wrong = [tool_id for tool_id in shown if tool_id not in request.fitting]
    if wrong and rng.random() < (habits.mistaken if fitting else habits.mistaken_in_vain):
        fitting = wrong
    if fitting:
        tool = search.catalog[fitting[0]]
        call = ToolCall("use", search.catalog.provider_name(tool.id), smallest_arguments(tool.input_schema))
        for _ in range(2):  # a tool that was only named is loaded by the first call, and runs at the second
            session.tools()
            if session.handle(call).ok:
                break
    search.end_session(session.id)
