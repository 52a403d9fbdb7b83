"""What `speed` measured, as a report: search times; building, changing and memory; vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from toolsearch_evals.reports.report import Column, Report, ReportTable
from toolsearch_evals.speed.engines import LIMIT, PUBLISHED_ENGINES

__all__ = ["EngineCosts", "EngineRow", "SearchTimes", "speed_report"]

BASE = "bm25s"  # every search time is also given as a multiple of its time
MEGABYTE = 1_000_000
Row = dict[str, Any]

# What an engine costs at one size. Times are milliseconds, memory is bytes; a key is missing if the engine did not get
# that far.
EngineCosts = TypedDict(
    "EngineCosts",
    {
        "start": float,
        "build": float,
        "first": float,
        "packages": int | None,
        "memory": int | None,
        "add": float,
        "remove": float,
        "beside numpy": dict[str, Any] | None,
        "unfinished": str,
    },
    total=False,
)


class SearchTimes(TypedDict):
    """Milliseconds of the searches in one wording; None if there were none."""

    wording: str
    queries: int
    p50: float | None
    p99: float | None
    processor: float | None


class EngineRow(EngineCosts, SearchTimes):
    """One engine at one size in one wording. `rival`: it is a published engine, not an index of ours."""

    tools: int
    derived: int
    engine: str
    rival: bool


_SEARCHED = (
    Column("tools", "tools", "count"),
    Column("engine", "engine"),
    Column("wording", "wording"),
    Column("queries", "queries", "count"),
    Column("p50", "p50, ms", "milliseconds"),
    Column("p99", "p99, ms", "milliseconds"),
    Column("processor", "CPU, ms", "milliseconds"),
    Column(f"of {BASE}", f"p50 : {BASE}", "number"),
    Column("of its own", "p50 : itself", "number"),
)
_HELD = (
    Column("tools", "tools", "count"),
    Column("engine", "engine"),
    Column("build seconds", "build, s", "number"),
    Column("add", "add and search, ms", "milliseconds"),
    Column("remove", "remove and search, ms", "milliseconds"),
    Column("memory MB", "memory, MB", "number"),
    Column("packages MB", "packages, MB", "number"),
    Column("start", "import, ms", "milliseconds"),
    Column("first", "first query, ms", "milliseconds"),
)
_MULTIPLIED = (
    Column("tools", "tools", "count"),
    Column("engine", "engine"),
    Column("kind", "kind"),
    Column("width", "width", "count"),
    Column("search", "search, ms", "milliseconds"),
    Column("product", "numpy, ms", "milliseconds"),
    Column("ratio", "ratio", "number"),
)


def speed_report(
    rows: Sequence[EngineRow], missing: Mapping[str, str], parameters: Mapping[str, Any], derived: tuple[str, ...] = ()
) -> Report:
    """The report on rows of one engine, size and wording each."""
    whole = [_with_ratios(row, rows) for row in rows]
    once = list({(row["tools"], row["engine"]): row for row in whole}.values())
    vectors = [
        {"tools": row["tools"], "engine": row["engine"]} | found | {"ratio": _ratio(found["search"], found["product"])}
        for row in once
        if (found := row["beside numpy"])
    ]
    searched = [{key: value for key, value in row.items() if key != "beside numpy"} for row in whole]
    left_out = [f"{name} is left out: {reason}" for name, reason in missing.items()]
    unfinished = [
        f"{row['engine']} at {row['tools']:,} tools, {row['unfinished']}." for row in once if row["unfinished"]
    ]
    tables = [
        ReportTable("Search times", _SEARCHED, searched, " ".join((*unfinished, *left_out))),
        ReportTable("Building, changing, memory", _HELD, once),
    ]
    if vectors:
        tables.append(ReportTable("Vectors at hand, beside NumPy's matrix product", _MULTIPLIED, vectors))
    return Report(
        kind="speed",
        title="How fast the indexes are",
        headline=_headline(whole, vectors, unfinished),
        parameters=parameters,
        tables=tuple(tables),
        measured=_MEASURED + _derived_notes(rows),
        limits=_LIMITS + derived,
        data={"vectors": vectors, "left out": dict(missing)},
    )


def _with_ratios(row: EngineRow, rows: Sequence[EngineRow]) -> Row:
    """A row with all its keys, as multiples and in the units that are shown."""
    place = row["tools"], row["wording"]
    same = {each["engine"]: each["p50"] for each in rows if (each["tools"], each["wording"]) == place}
    itself = next((name for name, (_, ours) in PUBLISHED_ENGINES.items() if ours and ours == row["engine"]), None)
    keys = ("processor", "start", "first", "add", "remove", "unfinished", "beside numpy")
    return {
        **{key: value for key, value in row.items() if key not in ("build", "memory", "packages")},
        **{key: row.get(key) for key in keys},
        f"of {BASE}": _ratio(row["p50"], same.get(BASE)),
        "of its own": _ratio(row["p50"], same.get(itself) if itself else None),
        "build seconds": _divided(row.get("build"), 1_000),
        "memory MB": _divided(row.get("memory"), MEGABYTE),
        "packages MB": _divided(row.get("packages"), MEGABYTE),
    }


def _divided(value: float | None, by: int) -> float | None:
    return None if value is None else value / by


def _ratio(time: float | None, base: float | None) -> float | None:
    return time / base if time and base else None


def _headline(rows: Sequence[Row], vectors: Sequence[Row], unfinished: Sequence[str]) -> tuple[str, ...]:
    most = max(row["tools"] for row in rows)
    sentences = []
    for name in dict.fromkeys(row["engine"] for row in rows if not row["rival"]):
        mine = [row for row in rows if row["engine"] == name and row["tools"] == most and row["p50"]]
        if mine:
            times = ", ".join(f"{row['p50']:.3f} ms ({row['wording']})" for row in mine)
            ratios = " and ".join(f"{ratio:.2f}" for row in mine if (ratio := row[f"of {BASE}"]))
            compared = f", {ratios} times {BASE} in the same run" if ratios else ""
            sentences.append(f"{name} at {most:,} tools: p50 {times}{compared}.")
    sentences += [
        f"{row['engine']} ({row['kind']}) at {most:,} tools, vectors at hand: {row['ratio']:.2f} times NumPy's product."
        for row in vectors
        if row["tools"] == most and row["ratio"]
    ]
    if unfinished:
        sentences.append(f"Not finished: {len(unfinished)}, named below the first table.")
    return tuple(sentences)


def _derived_notes(rows: Sequence[EngineRow]) -> tuple[str, ...]:
    sizes = {row["tools"]: row["derived"] for row in rows if row["derived"]}
    return tuple(
        f"Of {size:,} tools {derived:,} are derived, as by `toolsearch eval derive`." for size, derived in sizes.items()
    )


_MEASURED = (
    (
        "Wall-clock time. Each engine has a process of its own at each size and runs on one thread. Blocks of queries "
        f"go to all engines before the next, in a rotating order; the best {LIMIT} tools are asked for."
    ),
    "CPU: mean processor time of a query, which other work on the machine hardly changes.",
    (
        "Our indexes are searched by `toolsearch.find`, with exact names, ties and checks. The published engines get "
        "name, description, server and argument texts as one text, and rank by their own BM25; `itself` is the package "
        "that an index of ours is built on, used as its manual shows."
    ),
    (
        "Import: importing what the engine needs, its model included, and building it on one tool. First query: the "
        "first one in that process after building. Add, remove: medians over single tools, each with a search for it."
    ),
    (
        "Memory: growth of the process's resident memory from before that import to after the first query, without "
        "tools and catalog; packages: the part that is there once the engine holds one tool."
    ),
    (
        "Vectors at hand: searches whose query is already a vector, compared with `numpy.matmul` on float32 of "
        "the same shape, both on one thread and in processor time."
    ),
)
_LIMITS = (
    (
        "Derived tools share a vocabulary, so a word is in more tools than in a real catalog of that size. That makes "
        "searches slower rather than faster."
    ),
    "p99 over a few hundred queries is two or three of them, so other work on the machine shows in it.",
    (
        "Resident memory holds what the allocator keeps after building, and differs by some megabytes from one process "
        "to the next; at 100 tools it is packages only."
    ),
)
