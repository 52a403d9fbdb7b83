"""How fast the indexes are, beside published engines in the same run: building, searching, changing, memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

from toolsearch import SetupError
from toolsearch_evals.backends import check_notation, installed, label
from toolsearch_evals.cases import Case, Dataset
from toolsearch_evals.derive import derived, told_of
from toolsearch_evals.engines import RIVALS
from toolsearch_evals.pace import pace_report
from toolsearch_evals.report import Report
from toolsearch_evals.worker import Missing, Unfinished, Worker, tools_file

__all__ = ["speed"]

BLOCK = 20  # queries in a row
ADDED = 20  # tools added and removed one by one, each followed by a search for it
AT_HAND = 100  # queries whose vectors are known, held against NumPy's product
START_SECONDS = 300  # most for a process to start and read the tools; counts for no engine
Tick = Callable[[str], None]
Row = dict[str, Any]


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
    """The report on these indexes (none: all there are) and all published engines that are installed.

    Each engine has a process of its own for each size. An engine has `budget_seconds` to build, as many to search and
    as many to change at one size; what does not come to an end is said, not left out in silence.
    """
    ours = list(indexes or installed())
    for notation in ours:
        check_notation(notation)
    asked = _queries([case for dataset in datasets for case in dataset.cases], queries, seed)
    tools = [tool for dataset in datasets for tool in dataset.catalog()]
    rows: list[Row] = []
    missing: dict[str, str] = {}
    for size in sizes:
        made, made_up = derived(tools, size, seed)
        run = _Size([name for name in (*ours, *RIVALS) if label(name) not in missing], asked, budget_seconds)
        with TemporaryDirectory() as folder:
            file = Path(folder) / "tools"
            tools_file(file, made, derived(tools, size + ADDED, seed)[0][size:])
            rows += [{"tools": size, "derived": made_up} | row for row in run.rows(file, tick)]
        missing |= run.missing
    parameters = {
        "data sets": [dataset.key for dataset in datasets],
        "indexes": [label(name) for name in ours],
        "queries a wording": queries,
        "seed": seed,
        "budget, seconds": budget_seconds,
    }
    return pace_report(rows, missing, parameters, told_of(datasets))


class _Size:
    """All engines at one size: each is built alone, then all are asked by turns, then each is changed alone."""

    def __init__(self, names: Sequence[str], asked: Mapping[str, Sequence[str]], seconds: float) -> None:
        self._names, self._asked, self._seconds = names, asked, seconds
        self.missing: dict[str, str] = {}
        self._rows: dict[str, Row] = {}
        self._alive: dict[str, Worker] = {}
        self._times: dict[tuple[str, str], list[float]] = {}
        self._processor: dict[tuple[str, str], float] = {}

    def rows(self, file: Path, tick: Tick) -> list[Row]:
        """A row for each engine and wording, on the tools of this file."""
        with ExitStack() as stack:
            for name in self._names:
                tick(f"building {label(name)}")
                self._build(name, stack.enter_context(Worker(name, file)))
            for wording, texts in self._asked.items():
                tick(f"searching, {wording} wording")
                self._by_turns(wording, texts)
            for name in list(self._alive):
                tick(f"changing {label(name)}")
                self._change(name)
        return [row | self._searched(name, wording) for name, row in self._rows.items() for wording in self._asked]

    def _searched(self, name: str, wording: str) -> Row:
        times = self._times.get((name, wording), [])
        return {
            "wording": wording,
            "queries": len(times),
            "p50": median(times) if times else None,
            "p99": quantiles(times, n=100)[98] if len(times) > 1 else None,
            "processor": self._processor[name, wording] / len(times) if times else None,
        }

    def _build(self, name: str, worker: Worker) -> None:
        row: Row = {"engine": label(name), "rival": name in RIVALS}
        try:
            worker.ask("ready", None, START_SECONDS)
            row |= worker.ask("build", None, self._seconds)
            self._alive[name] = worker
        except Missing as error:
            self.missing[label(name)] = str(error)
            return
        except Unfinished as error:
            row["unfinished"] = f"building: {error}"
        self._rows[name] = row

    def _by_turns(self, wording: str, texts: Sequence[str]) -> None:
        """Each block of queries goes to every engine before the next block, in a turning order: noise hits all alike.

        An engine that has used up its time gets no further block, so it has fewer queries.
        """
        spent = dict.fromkeys(self._alive, 0.0)
        for at in range(0, len(texts), BLOCK):
            names = [name for name in self._alive if spent[name] < self._seconds]
            turn = at // BLOCK % max(1, len(names))
            for name in names[turn:] + names[:turn]:
                try:
                    took = self._alive[name].ask("search", texts[at : at + BLOCK], 2 * self._seconds)
                except Unfinished as error:
                    self._rows[name]["unfinished"] = f"searching: {error}"
                    del self._alive[name]
                    continue
                self._times.setdefault((name, wording), []).extend(took["times"])
                self._processor[name, wording] = self._processor.get((name, wording), 0.0) + took["processor"]
                spent[name] += sum(took["times"]) / 1_000

    def _change(self, name: str) -> None:
        texts = [text for of in self._asked.values() for text in of][:AT_HAND]
        try:
            self._rows[name] |= self._alive[name].ask("change", self._seconds, 2 * self._seconds) or {}
            self._rows[name]["beside numpy"] = self._alive[name].ask("beside_numpy", texts, 2 * self._seconds)
        except Unfinished as error:
            self._rows[name]["unfinished"] = f"changing: {error}"


def _queries(cases: Sequence[Case], most: int, seed: int) -> dict[str, list[str]]:
    """At most so many queries of each wording; data sets that do not say a wording are one group."""
    rng = random.Random(seed)
    asked: dict[str, list[str]] = {}
    for wording in sorted({case.wording for case in cases}):
        texts = list(dict.fromkeys(case.query for case in cases if case.wording == wording))
        asked[wording or "not said"] = rng.sample(texts, min(most, len(texts)))
    if not asked or any(len(texts) < 2 for texts in asked.values()):
        raise SetupError("there are too few queries to measure with: two of each wording are the least")
    return asked
