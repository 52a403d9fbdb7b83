"""How fast the indexes are, compared with published engines in the same run: building, searching, changing, memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from toolsearch import SetupError
from toolsearch_evals.backends import check_notation, installed_indexes, label
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.data.derive import derive_tools, derived_notes
from toolsearch_evals.reports.report import Report
from toolsearch_evals.speed.engine_process import EngineMissing, EngineProcess, EngineUnfinished, write_tools
from toolsearch_evals.speed.engines import PUBLISHED_ENGINES
from toolsearch_evals.speed.report import EngineCosts, EngineRow, SearchTimes, speed_report

__all__ = ["speed"]

BLOCK = 20  # queries in a row
ADDED = 20  # tools added and removed one by one, each followed by a search for it
AT_HAND = 100  # queries whose vectors are known, compared with NumPy's product
START_SECONDS = 300  # at most, for a process to start and read the tools; counts for no engine
Tick = Callable[[str], None]


def speed(
    datasets: Sequence[Dataset],
    indexes: Sequence[str],
    sizes: Sequence[int],
    *,
    queries: int = 200,
    seed: int = 0,
    budget_seconds: float = 120,
    tick: Tick = lambda _: None,
) -> Report:
    """The report on these indexes (if none is named, all) and on the published engines, as far as they are installed.

    Each engine has a process of its own for each size. At one size, an engine has `budget_seconds` to build, as many to
    search and as many to change; the report names what did not finish in time.
    """
    ours = list(indexes or installed_indexes())
    for notation in ours:
        check_notation(notation)
    asked = _queries([case for dataset in datasets for case in dataset.cases], queries, seed)
    tools = [tool for dataset in datasets for tool in dataset.catalog()]
    rows: list[EngineRow] = []
    missing: dict[str, str] = {}
    for size in sizes:
        made, made_up = derive_tools(tools, size, seed)
        run = _SizeRun(
            [name for name in (*ours, *PUBLISHED_ENGINES) if label(name) not in missing], asked, budget_seconds
        )
        with TemporaryDirectory() as folder:
            file = Path(folder) / "tools"
            write_tools(file, made, derive_tools(tools, size + ADDED, seed)[0][size:])
            rows += run.rows(file, tick, tools=size, derived=made_up)
        missing |= run.missing
    parameters = {
        "data sets": [dataset.key for dataset in datasets],
        "indexes": [label(name) for name in ours],
        "queries a wording": queries,
        "seed": seed,
        "budget, seconds": budget_seconds,
    }
    return speed_report(rows, missing, parameters, derived_notes(datasets))


class _SizeRun:
    """All engines at one size: each is built alone, then all are queried in turn, then each is changed alone."""

    def __init__(self, names: Sequence[str], asked: Mapping[str, Sequence[str]], seconds: float) -> None:
        self._names, self._asked, self._seconds = names, asked, seconds
        self.missing: dict[str, str] = {}
        self._costs: dict[str, EngineCosts] = {}
        self._alive: dict[str, EngineProcess] = {}
        self._times: dict[tuple[str, str], list[float]] = {}
        self._processor: dict[tuple[str, str], float] = {}

    def rows(self, file: Path, tick: Tick, *, tools: int, derived: int) -> list[EngineRow]:
        """A row for each engine and wording, on the tools of this file."""
        with ExitStack() as stack:
            for name in self._names:
                tick(f"building {label(name)}")
                self._build(name, stack.enter_context(EngineProcess(name, file)))
            for wording, texts in self._asked.items():
                tick(f"searching, {wording} wording")
                self._ask_by_turns(wording, texts)
            for name in list(self._alive):
                tick(f"changing {label(name)}")
                self._change(name)
        return [
            {
                "tools": tools,
                "derived": derived,
                "engine": label(name),
                "rival": name in PUBLISHED_ENGINES,
                **costs,
                **self._search_times(name, wording),
            }
            for name, costs in self._costs.items()
            for wording in self._asked
        ]

    def _search_times(self, name: str, wording: str) -> SearchTimes:
        times = self._times.get((name, wording), [])
        return {
            "wording": wording,
            "queries": len(times),
            "p50": median(times) if times else None,
            "p99": quantiles(times, n=100)[98] if len(times) > 1 else None,
            "processor": self._processor[name, wording] / len(times) if times else None,
        }

    def _build(self, name: str, process: EngineProcess) -> None:
        costs: EngineCosts = {}
        try:
            process.ask("ready", None, START_SECONDS)
            costs |= process.ask("build", None, self._seconds)
            self._alive[name] = process
        except EngineMissing as error:
            self.missing[label(name)] = str(error)
            return
        except EngineUnfinished as error:
            costs["unfinished"] = f"building: {error}"
        self._costs[name] = costs

    def _ask_by_turns(self, wording: str, texts: Sequence[str]) -> None:
        """Each block of queries goes to every engine before the next block, in a rotating order: noise hits all alike.

        An engine that has used up its time gets no further block, so it has fewer queries.
        """
        spent = dict.fromkeys(self._alive, 0.0)
        for at in range(0, len(texts), BLOCK):
            names = [name for name in self._alive if spent[name] < self._seconds]
            turn = at // BLOCK % max(1, len(names))
            for name in names[turn:] + names[:turn]:
                try:
                    took = self._alive[name].ask("search", texts[at : at + BLOCK], 2 * self._seconds)
                except EngineUnfinished as error:
                    self._costs[name]["unfinished"] = f"searching: {error}"
                    del self._alive[name]
                    continue
                self._times.setdefault((name, wording), []).extend(took["times"])
                self._processor[name, wording] = self._processor.get((name, wording), 0.0) + took["processor"]
                spent[name] += sum(took["times"]) / 1_000

    def _change(self, name: str) -> None:
        texts = [text for of in self._asked.values() for text in of][:AT_HAND]
        try:
            changed: EngineCosts | None = self._alive[name].ask("change", self._seconds, 2 * self._seconds)
            self._costs[name] |= changed or EngineCosts()
            self._costs[name]["beside numpy"] = self._alive[name].ask("beside_numpy", texts, 2 * self._seconds)
        except EngineUnfinished as error:
            self._costs[name]["unfinished"] = f"changing: {error}"


def _queries(cases: Sequence[Case], most: int, seed: int) -> dict[str, list[str]]:
    """At most so many queries of each wording; cases without a wording are one group."""
    rng = random.Random(seed)
    asked: dict[str, list[str]] = {}
    for wording in sorted({case.wording for case in cases}):
        texts = list(dict.fromkeys(case.query for case in cases if case.wording == wording))
        asked[wording or "not said"] = rng.sample(texts, min(most, len(texts)))
    if not asked or any(len(texts) < 2 for texts in asked.values()):
        raise SetupError("there are too few queries to measure with: each wording needs at least two")
    return asked
