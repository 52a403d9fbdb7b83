"""What `speed` measured, as a report: search times, then what building, changing and memory cost, then vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolsearch_evals.engines import LIMIT, RIVALS
from toolsearch_evals.report import Column, Report, Table

__all__ = ["pace_report"]

BASE = "bm25s"  # every search time is also told as a multiple of its
MEGABYTE = 1_000_000
Row = dict[str, Any]

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


def pace_report(
    rows: Sequence[Row], missing: Mapping[str, str], parameters: Mapping[str, Any], derived: tuple[str, ...] = ()
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
        Table("Search times", _SEARCHED, searched, " ".join((*unfinished, *left_out))),
        Table("Building, changing, memory", _HELD, once),
    ]
    if vectors:
        tables.append(Table("Vectors at hand, beside NumPy's matrix product", _MULTIPLIED, vectors))
    return Report(
        kind="speed",
        title="How fast the indexes are",
        headline=_headline(whole, vectors, unfinished),
        parameters=parameters,
        tables=tuple(tables),
        measured=_MEASURED + _made_up(rows),
        limits=_LIMITS + derived,
        data={"vectors": vectors, "left out": dict(missing)},
    )


def _with_ratios(row: Row, rows: Sequence[Row]) -> Row:
    """A row with all its keys, as multiples and in the units that are shown."""
    same = {each["engine"]: each["p50"] for each in rows if all(each[k] == row[k] for k in ("tools", "wording"))}
    itself = next((name for name, (_, ours) in RIVALS.items() if ours and ours == row["engine"]), None)
    keys = ("processor", "start", "first", "add", "remove", "unfinished", "beside numpy")
    return {
        **{key: value for key, value in row.items() if key not in ("build", "memory", "packages")},
        **{key: row.get(key) for key in keys},
        f"of {BASE}": _ratio(row["p50"], same.get(BASE)),
        "of its own": _ratio(row["p50"], same.get(itself) if itself else None),
        "build seconds": None if row.get("build") is None else row["build"] / 1_000,
        "memory MB": None if row.get("memory") is None else row["memory"] / MEGABYTE,
        "packages MB": None if row.get("packages") is None else row["packages"] / MEGABYTE,
    }


def _ratio(time: float | None, base: float | None) -> float | None:
    return time / base if time and base else None


def _headline(rows: Sequence[Row], vectors: Sequence[Row], unfinished: Sequence[str]) -> tuple[str, ...]:
    most = max(row["tools"] for row in rows)
    told = []
    for name in dict.fromkeys(row["engine"] for row in rows if not row["rival"]):
        mine = [row for row in rows if row["engine"] == name and row["tools"] == most and row["p50"]]
        if mine:
            times = ", ".join(f"{row['p50']:.3f} ms ({row['wording']})" for row in mine)
            ratios = " and ".join(f"{ratio:.2f}" for row in mine if (ratio := row[f"of {BASE}"]))
            beside = f", {ratios} times {BASE} in the same run" if ratios else ""
            told.append(f"{name} at {most:,} tools: p50 {times}{beside}.")
    told += [
        f"{row['engine']} ({row['kind']}) at {most:,} tools, vectors at hand: {row['ratio']:.2f} times NumPy's product."
        for row in vectors
        if row["tools"] == most and row["ratio"]
    ]
    if unfinished:
        told.append(f"Not finished: {len(unfinished)}, named below the first table.")
    return tuple(told)


def _made_up(rows: Sequence[Row]) -> tuple[str, ...]:
    sizes = {row["tools"]: row["derived"] for row in rows if row["derived"]}
    return tuple(
        f"Of {size:,} tools {derived:,} are derived, as by `toolsearch eval derive`." for size, derived in sizes.items()
    )


_MEASURED = (
    (
        "Wall-clock time. Each engine has a process of its own at each size and runs on one thread. Blocks of queries "
        f"go to all engines before the next, in a turning order; the best {LIMIT} tools are asked for."
    ),
    "CPU: mean processor time of a query, which other work on the machine changes little.",
    (
        "Ours is `toolsearch.find`, with exact names, ties and checks. The published engines get name, description, "
        "server and argument texts as one text, and rank by their own BM25; `itself` is the package an index of ours "
        "is built on, used as its manual shows."
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
        "Vectors at hand: searches whose query is already a vector, beside `numpy.matmul` on float32 of "
        "the same shape, both on one thread and in processor time."
    ),
)
_LIMITS = (
    (
        "Derived tools share a vocabulary, so words are in more tools than in a real catalog of that size, which makes "
        "searches slower rather than faster."
    ),
    "p99 over a few hundred queries is two or three of them; other work on the machine shows there.",
    (
        "Resident memory holds what the allocator keeps after building, and differs by some megabytes from one process "
        "to the next; at 100 tools it is packages only."
    ),
)
