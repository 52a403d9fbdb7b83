"""How fast the indexes are, beside two published BM25 packages in the same run."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median, quantiles
from time import perf_counter
from typing import Any, Protocol

from toolsearch import Catalog, SetupError, Tool, find, open_index, tool
from toolsearch.schema import argument_texts
from toolsearch_evals.cases import Case, Dataset
from toolsearch_evals.report import Column, Report, Table

__all__ = ["derived", "speed"]

BLOCK = 20  # queries in a row
WARM_UP = "list the files of a folder"
LIMIT = 5
ADDED = 20  # tools added one by one, each followed by a search for it
MIXED = 0.3  # of the words of a derived tool come from another tool
Tick = Callable[[str], None]


class _Engine(Protocol):
    name: str

    def build(self, tools: Sequence[Tool]) -> None: ...
    def search(self, query: str) -> object: ...


class _Ours:
    """One of our indexes, through `find` as a session uses it: exact names, ties and limits included."""

    def __init__(self, name: str) -> None:
        self.name = name

    def build(self, tools: Sequence[Tool]) -> None:
        self.catalog = Catalog(tools)
        self.index = open_index(self.name)
        self.index.add(list(self.catalog))

    def search(self, query: str) -> object:
        return find(self.catalog, self.index, query, LIMIT)

    def add_and_search(self, added: Tool) -> None:
        self.catalog.add(added)
        self.index.add([added])
        self.search(added.name)


class _Bm25s:
    """bm25s (NumPy) with its own tokenizer and English stop words."""

    name = "bm25s"

    def build(self, tools: Sequence[Tool]) -> None:
        import bm25s

        self._package = bm25s
        self._index = bm25s.BM25()
        self._index.index(self._tokens([text_of(each) for each in tools]), show_progress=False)

    def search(self, query: str) -> object:
        return self._index.retrieve(self._tokens([query]), k=LIMIT, show_progress=False)

    def _tokens(self, texts: list[str]) -> Any:
        return self._package.tokenize(texts, stopwords="en", show_progress=False)


class _RankBm25:
    """rank-bm25 (Okapi) over words in lower case."""

    name = "rank-bm25"

    def build(self, tools: Sequence[Tool]) -> None:
        import rank_bm25

        self._tools = list(tools)
        self._index = rank_bm25.BM25Okapi([text_of(each).lower().split() for each in tools])

    def search(self, query: str) -> object:
        return self._index.get_top_n(query.lower().split(), self._tools, n=LIMIT)


def speed(
    datasets: Sequence[Dataset],
    indexes: Sequence[str],
    sizes: Sequence[int],
    *,
    queries: int = 200,
    seed: int = 0,
    tick: Tick = lambda _: None,
) -> Report:
    """The report: build, search, and add one and search, for each size; queries by the wording of the cases.

    Every block of queries goes to all peers and one of ours before the next, in a turning order, so that a slow moment
    hits all.
    """
    engines: list[_Engine] = [_Ours(name) for name in indexes]
    for peer in (_Bm25s(), _RankBm25()):
        try:
            peer.build([tool({"name": "probe", "description": "a probe"})])
            engines.append(peer)
        except ImportError:
            continue
    asked = _queries([c for d in datasets for c in d.cases], queries * len(indexes), 2 * len(indexes), seed)
    rows: list[dict[str, Any]] = []
    for size in sizes:
        tools, made_up = derived([t for d in datasets for t in d.catalog()], size, seed)
        built: dict[str, float] = {}
        for engine in engines:
            built[engine.name] = _milliseconds(engine.build, tools)
            tick(f"{size:,} tools: {engine.name} built")
        added = {e.name: _added(e, tools, seed) for e in engines if isinstance(e, _Ours)}
        for wording, texts in asked.items():
            times = _by_turns(engines, texts)
            tick(f"{size:,} tools: {wording} wording")
            base = median(times["bm25s"]) if "bm25s" in times else None
            for engine in engines:
                half = median(times[engine.name])
                rows.append(
                    {
                        "tools": size,
                        "derived": made_up,
                        "engine": engine.name,
                        "wording": wording,
                        "queries": len(times[engine.name]),
                        "build": built[engine.name],
                        "p50": half,
                        "p99": quantiles(times[engine.name], n=100)[98],
                        "of bm25s": None if base is None else half / base,
                        "add and search": added.get(engine.name),
                    }
                )
    return _report(rows, datasets, queries, seed, [e.name for e in engines])


def derived(tools: Sequence[Tool], size: int, seed: int) -> tuple[list[Tool], int]:
    """`size` tools: the given ones, and past those, tools derived from them; and how many are derived.

    A derived tool is one of the given on a server of another name, some of its words replaced by words of another tool.
    """
    if not tools:
        raise SetupError("there are no tools to measure on")
    if size < 1:
        raise SetupError(f"a catalog of {size} tools cannot be made; pass 1 or more")
    rng = random.Random(seed)
    taken = {each.id: each for each in tools}
    made = list(taken.values())[:size]
    given = len(made)
    while len(made) < size:
        made.append(_derived(made[len(made) % given], made[rng.randrange(given)], len(made), rng))
    return made, size - given


def _derived(like: Tool, other: Tool, number: int, rng: random.Random) -> Tool:
    foreign = re.findall(r"\w+", other.description) or [other.name]
    words = [rng.choice(foreign) if rng.random() < MIXED else word for word in like.description.split()]
    parts = re.split(r"[_./-]", other.name)
    server = f"{like.server or 'server'}{number}"
    name = f"{like.name}_{rng.choice(parts) or 'x'}"[:200]
    return replace(like, id=f"{server}/{name}", name=name, server=server, description=" ".join(words))


def _queries(cases: Sequence[Case], most: int, least: int, seed: int) -> dict[str, list[str]]:
    """At most so many queries of each wording; data sets that do not say a wording are one group."""
    rng = random.Random(seed)
    asked: dict[str, list[str]] = {}
    for wording in sorted({case.wording for case in cases}):
        texts = [case.query for case in cases if case.wording == wording]
        asked[wording or "not said"] = rng.sample(texts, min(most, len(texts)))
    if not asked or any(len(texts) < least for texts in asked.values()):
        raise SetupError(f"there are too few queries to measure with: {least} of each wording are the least")
    return asked


def _by_turns(engines: Sequence[_Engine], texts: Sequence[str]) -> dict[str, list[float]]:
    """Times of each engine. Ours take the blocks by turns: they share an analysis, and the second would profit."""
    ours = [engine for engine in engines if isinstance(engine, _Ours)]
    peers = [engine for engine in engines if not isinstance(engine, _Ours)]
    times: dict[str, list[float]] = {engine.name: [] for engine in engines}
    for at in range(0, len(texts), BLOCK):
        turn = at // BLOCK
        asked = [ours[turn % len(ours)], *peers]
        for step in range(len(asked)):
            engine = asked[(turn + step) % len(asked)]
            engine.search(WARM_UP)  # what ran before has pushed its data out of the processor's cache
            times[engine.name] += [_milliseconds(engine.search, text) for text in texts[at : at + BLOCK]]
    return times


def _added(engine: _Ours, tools: Sequence[Tool], seed: int) -> float:
    """Median time of adding one tool to the built index and finding it, in milliseconds."""
    rng = random.Random(seed + 1)
    fresh = [_derived(rng.choice(tools), rng.choice(tools), len(tools) + at, rng) for at in range(ADDED)]
    return median(_milliseconds(engine.add_and_search, each) for each in fresh)


def text_of(held: Tool) -> str:
    """The whole of a tool as one text, for engines without fields."""
    names, told = argument_texts(held.input_schema)
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_./-]+", " ", held.name)
    return " ".join([name, held.description, held.server or "", *names, *told])


def _milliseconds(work: Callable[[Any], object], given: Any) -> float:
    began = perf_counter()
    work(given)
    return 1_000 * (perf_counter() - began)


def _report(
    rows: list[dict[str, Any]], datasets: Sequence[Dataset], queries: int, seed: int, engines: list[str]
) -> Report:
    columns = (
        Column("tools", "tools", "count"),
        Column("engine", "engine"),
        Column("wording", "wording"),
        Column("p50", "p50, ms", "milliseconds"),
        Column("p99", "p99, ms", "milliseconds"),
        Column("of bm25s", "p50 : bm25s", "number"),
        Column("build", "build, ms", "milliseconds"),
        Column("add and search", "add one and search, ms", "milliseconds"),
    )
    absent = [name for name in ("bm25s", "rank-bm25") if name not in engines]
    most = max(rows, key=lambda row: row["tools"])["tools"]
    ours = [row for row in rows if row["tools"] == most and row["engine"] == rows[0]["engine"]]
    return Report(
        kind="speed",
        title="How fast the indexes are",
        headline=tuple(
            f"{row['engine']} at {most:,} tools, {row['wording']} wording: p50 {row['p50']:.3f} ms"
            + (f", {row['of bm25s']:.2f} times bm25s in the same run" if row["of bm25s"] else "")
            + (f"; adding a tool and searching takes {row['add and search']:.2f} ms." if row["add and search"] else ".")
            for row in ours
        ),
        parameters={"data sets": [d.key for d in datasets], "queries a wording": queries, "seed": seed},
        tables=(Table("Search times", columns, rows, "".join(f"{name} is not installed. " for name in absent)),),
        measured=(
            (
                f"Wall-clock time in one process. Each {BLOCK} queries go to the peers and, by turns, to one of our "
                f"indexes before the next, so all see the same machine; the best {LIMIT} tools are asked for. Ours is "
                "`toolsearch.find`, with exact names, ties and checks; the peers get name, description, server and "
                "argument texts as one text, and tokenise each query."
            ),
            *(
                f"Of {row['tools']:,} tools {row['derived']:,} are derived: other names, three in ten words mixed in."
                for row in {row["tools"]: row for row in rows if row["derived"]}.values()
            ),
        ),
        limits=(
            (
                "Derived tools share a vocabulary, so words are in more tools than in a real catalog of that size, "
                "which makes searches slower rather than faster."
            ),
            "p99 over a few hundred queries is two or three of them; other work on the machine shows there.",
        ),
    )
