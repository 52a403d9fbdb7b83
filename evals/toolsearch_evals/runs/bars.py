"""Bars: how good a report must be at least, such as `success=.8,saving=.5`, so that a check can fail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from toolsearch import SetupError
from toolsearch.support.json_types import JsonObject
from toolsearch_evals.ranking.rank import EVERY
from toolsearch_evals.reports.report import Report

__all__ = ["Bar", "Places", "agent_places", "missed", "ranking_places", "read_bars", "savings_places"]

_AXES = ("turns", "locality", "static success")  # numbers that tell rows of savings apart
Places = Mapping[str, Mapping[str, float | None]]


class Bar(NamedTuple):
    """The least value of a measure."""

    measure: str
    least: float


def read_bars(text: str, known: Iterable[str]) -> tuple[Bar, ...]:
    """The bars of a text such as "success=.8,saving=.5".

    Upper case, spaces, "-" and "_" in a name do not matter. Raises `SetupError` for a name that is not `known`, and for
    a value that is no number.
    """
    names = {_plain(name): name for name in known}
    bars = []
    for part in filter(str.strip, text.split(",")):
        asked, _, value = part.rpartition("=")
        if _plain(asked) not in names:
            problem = f"there is no measure {asked.strip()!r} to set a bar for" if asked else f"{part!r} is no bar"
            raise SetupError(f"{problem}; write NAME=VALUE with one of: {', '.join(names.values())}")
        try:
            least = float(value)
        except ValueError:
            least = float("nan")
        if not isfinite(least):
            raise SetupError(f"the bar of {asked.strip()!r} is no number: {value.strip()!r}")
        bars.append(Bar(names[_plain(asked)], least))
    if text and not bars:
        raise SetupError(f"{text!r} sets no bar; write NAME=VALUE with one of: {', '.join(names.values())}")
    return tuple(bars)


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().lower()


def missed(bars: Sequence[Bar], places: Places) -> list[str]:
    """A sentence for each place that misses a bar. A value that is not known misses it, and so does having no place."""
    if bars and not places:
        return ["There is nothing that a bar could be held against."]
    return [
        f"{where}: {bar.measure} is {'not known' if value is None else f'{value:.4g}'}, and the bar is {bar.least:g}"
        for bar in bars
        for where, values in places.items()
        if (value := values.get(bar.measure)) is None or value < bar.least
    ]


def ranking_places(report: Report) -> Places:
    """By index, the means over all cases of a ranking: the micro means."""
    rows = [row for row in report.tables[0].rows if row["mean"] == "micro" and row["cases"] in ("all", EVERY)]
    whole = [row for row in rows if row["cases"] == EVERY] or rows
    return {f"{row['dataset']}, {row['index']}": _numbers(row) for row in whole}


def savings_places(report: Report) -> Places:
    """By arm and by what is assumed, what is saved in the largest catalog that was played."""
    rows = [*report.tables[0].rows, *report.tables[0].further]
    most = max(row["tools"] for row in rows)
    ways = [key for key, value in rows[0].items() if isinstance(value, str) or key in _AXES]
    different = [key for key in ways if len({row[key] for row in rows}) > 1]
    return {
        ", ".join([f"{most} tools", *(_way(key, row[key]) for key in different if row[key] != "")]): _numbers(row)
        for row in rows
        if row["tools"] == most
    }


def agent_places(report: Report) -> Places:
    """By way to search, what a real model came to with the most tools; all tools sent only where nothing else was."""
    rows = report.tables[0].rows
    most = max(row["tools"] for row in rows)
    largest = [row for row in rows if row["tools"] == most]
    searched = [row for row in largest if not row["arm"].startswith("static")]
    return {f"{most} tools, {row['arm']}": _numbers(row) for row in searched or largest}


def _way(key: str, value: object) -> str:
    return value if isinstance(value, str) else f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"


def _numbers(row: JsonObject) -> dict[str, float | None]:
    return {key: value for key, value in row.items() if value is None or isinstance(value, int | float)}
