"""What the played tasks come to: a row for each size and arm, and each search arm against sending all tools.

Every share has Wilson's interval, and every mean one by bootstrap over the tasks. A task that ended with an error of
the endpoint is a task that was not met: it stays in every denominator, and is counted apart too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from toolsearch.support.json_types import JsonObject
from toolsearch_evals.ranking.measures import bootstrap, bootstrap_of_ratio, mean, wilson

__all__ = ["against_static", "by_arm", "rows_of", "token_check"]

Scores = Sequence[JsonObject]
Row = dict[str, Any]
STATIC = "static"


def by_arm(scores: Scores) -> dict[tuple[int, str], list[JsonObject]]:
    """The scores by number of tools and arm, the smallest catalog first, arms as they come."""
    groups: dict[tuple[int, str], list[JsonObject]] = {}
    for score in sorted(scores, key=lambda each: each["tools"]):
        groups.setdefault((score["tools"], score["arm"]), []).append(score)
    return groups


def rows_of(scores: Scores) -> list[Row]:
    """A row for each number of tools and arm."""
    return [_row(tools, arm, group) for (tools, arm), group in by_arm(scores).items()]


def _row(tools: int, arm: str, scores: Scores) -> Row:
    billed = [each for each in scores if each["new"] is not None]
    inputs = [float(each["new"] + each["cached"]) for each in billed]
    paid = [(each["dollars"], int(each["success"])) for each in scores if each["dollars"] is not None]
    all_paid = paid if len(paid) == len(scores) else []
    row: Row = {
        "tools": tools,
        "arm": arm,
        "n": len(scores),
        "distinct tasks": len({each["case"] for each in scores}),
        "errors": sum(each["error"] is not None for each in scores),
        **_share("success", [each["success"] for each in scores]),
        **_share("right tools", [each["right tools"] for each in scores]),
        "wrong calls": mean([each["wrong calls"] for each in scores]),
        "searches": mean([each["searches"] for each in scores]),
        "rounds": mean([each["rounds"] for each in scores]),
        "failed requests": sum(each["failed requests"] for each in scores),
        **_mean("input", inputs),
        "cached share": _ratio(sum(each["cached"] for each in billed), sum(inputs)),
        "written": mean([each["written"] for each in billed]),
        "counted": mean([each["counted"] for each in scores]),
        **_mean("seconds", [each["seconds"] for each in scores]),
        "first seconds": mean([each["first seconds"] for each in scores if each["first seconds"] is not None]),
        "dollars": sum(cost for cost, _ in all_paid) if all_paid else None,
        "dollars a 1,000": 1_000 * sum(cost for cost, _ in all_paid) / len(all_paid) if all_paid else None,
        **_cost_of_met(all_paid),
    }
    return row


def _share(name: str, met: Sequence[bool]) -> Row:
    low, high = wilson(sum(met), len(met))
    return {name: mean(met), f"{name} low": low, f"{name} high": high}


def _mean(name: str, values: Sequence[float]) -> Row:
    low, high = bootstrap(values) if len(values) > 1 else (None, None)
    spread = None if low is None or high is None else (high - low) / 2
    return {name: mean(values), f"{name} low": low, f"{name} high": high, f"{name} ±": spread}


def _cost_of_met(paid: Sequence[tuple[float, int]]) -> Row:
    """The dollars of all tasks over the number that was met, for a thousand met ones; None if none was."""
    name = "dollars a 1,000 met"
    met = sum(done for _, done in paid)
    if not met:
        return dict.fromkeys((name, f"{name} low", f"{name} high"))
    low, high = bootstrap_of_ratio(paid) if len(paid) > 1 else (math.nan, math.inf)
    ends = (1_000 * low, 1_000 * high) if not math.isinf(high) else (None, None)
    return {name: 1_000 * sum(cost for cost, _ in paid) / met, f"{name} low": ends[0], f"{name} high": ends[1]}


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


# -- pairs ---------------------------------------------------------------------------------------------------------


def against_static(scores: Scores) -> list[Row]:
    """Each search arm against sending all tools, over the tasks that both have played; empty without a static arm."""
    groups = by_arm(scores)
    rows = []
    for (tools, arm), searched in groups.items():
        static = groups.get((tools, STATIC), [])
        if arm != STATIC and (pairs := _pairs(static, searched)):
            rows.append(_difference(tools, arm, pairs))
    return rows


def _pairs(static: Scores, searched: Scores) -> list[tuple[JsonObject, JsonObject]]:
    before = {(each["case"], each["repeat"]): each for each in static}
    return [(before[key], each) for each in searched if (key := (each["case"], each["repeat"])) in before]


def _difference(tools: int, arm: str, pairs: Sequence[tuple[JsonObject, JsonObject]]) -> Row:
    gains = [float(after["success"]) - float(before["success"]) for before, after in pairs]
    low, high = _interval_of(gains)
    row: Row = {"tools": tools, "arm": arm, "n": len(pairs)}
    row |= {"more met": mean(gains), "more met low": low, "more met high": high}
    row |= {"met by search alone": gains.count(1.0), "met by all sent alone": gains.count(-1.0)}
    return {**row, **_saved("input saved", pairs, _input), **_saved("dollars saved", pairs, lambda s: s["dollars"])}


def _interval_of(gains: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a mean difference of shares; if all pairs agree, resampling would show no doubt at all."""
    if len(set(gains)) > 1:
        return bootstrap(gains)
    doubt = wilson(0, len(gains))[1]
    return max(-1.0, gains[0] - doubt), min(1.0, gains[0] + doubt)


def _input(score: JsonObject) -> float | None:
    return None if score["new"] is None else score["new"] + score["cached"]


def _saved(name: str, pairs: Iterable[tuple[JsonObject, JsonObject]], value: Any) -> Row:
    """The share that search saves of a sum, over the pairs in which both sides say it."""
    known = [(value(after), value(before)) for before, after in pairs]
    both = [(a, b) for a, b in known if a is not None and b is not None]
    if not sum(b for _, b in both):
        return dict.fromkeys((name, f"{name} low", f"{name} high"))
    low, high = bootstrap_of_ratio(both) if len(both) > 1 else (math.nan, math.inf)
    share = 1 - sum(a for a, _ in both) / sum(b for _, b in both)
    ends = (None, None) if math.isinf(high) else (1 - high, 1 - low)
    return {name: share, f"{name} low": ends[0], f"{name} high": ends[1]}


def token_check(scores: Scores) -> list[Row]:
    """By size and arm, the tokens of the prompts as the provider billed them, and as they were counted."""
    rows = []
    for (tools, arm), group in by_arm(scores).items():
        said = [each for each in group if each["new"] is not None]
        billed, counted = (
            sum(each["new"] + each["cached"] for each in said),
            sum(s["counted where billed"] for s in said),
        )
        row: Row = {"tools": tools, "arm": arm, "requests": sum(each["requests"] for each in group)}
        row |= {"billed requests": sum(each["billed requests"] for each in group)}
        row |= {"billed": billed if said else None, "counted": counted if said else None}
        rows.append({**row, "difference": (billed - counted) / counted if counted else None})
    return rows
