"""Fitting confidence: from searches with labels to a `toolsearch.search.Fit`, and the file that fits are kept in.

Needs numpy.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolsearch import SetupError
from toolsearch.search import Fit
from toolsearch.search.confidence import FORMAT, evidence, read_fits
from toolsearch_evals.cases import Case

__all__ = ["Search", "fit", "write_fits"]

FIRST = 0.6  # of a request's weight is its first hit's, which a verdict mostly hangs on; the others share the rest
PENALTY = 3.0  # of squared weights, in requests; signals have variance 1
LEFT_OUT = 0.25  # of the weight of unanswerable requests: of those made so by taking tools out of the catalog
DIGITS = 4


@dataclass(frozen=True)
class Search:
    """One request and what an index knows of its hits. `named`: the query names a tool, so no model decides.

    `left_out`: the tools it needs were not in the catalog, so it could not be met.
    """

    case: Case
    signals: tuple[dict[str, float], ...]
    relevant: tuple[bool, ...]
    named: bool = False
    left_out: bool = False

    @property
    def answerable(self) -> bool:
        return bool(self.case.gold) and not self.left_out


def fit(found: Sequence[Search]) -> Fit:
    """The model of these searches: by weighted logistic regression, first of the hits, then of the searches.

    For P(relevant) each request counts alike, whatever its hits; but unanswerable ones share their weight with those
    made so. For P(some tool can do it) those made so do not count, they are harder than what people ask, and the others
    together weigh as much as the answerable ones. A query that names a tool counts for neither.
    """
    told = [each for each in found if each.signals and not each.named]
    made = _of_hits(told)
    asked = [each for each in told if not each.left_out]
    met = [each.answerable for each in asked]
    unmet = len(met) - sum(met)
    even = [1.0 if each or not unmet else sum(met) / unmet for each in met]
    some = [[evidence([made.relevant(signals) for signals in each.signals])] for each in asked]
    offset, slope = _regression(some, met, even)
    return Fit(made.bias, made.weights, offset, slope)


def _of_hits(told: Sequence[Search]) -> Fit:
    """What makes the signals of a hit P(relevant)."""
    rows: list[tuple[dict[str, float], bool, float]] = []
    for each, weight in zip(told, _weights(told), strict=True):
        others = len(each.signals) - 1
        for at, (signals, relevant) in enumerate(zip(each.signals, each.relevant, strict=True)):
            share = 1.0 if not others else FIRST if at == 0 else (1 - FIRST) / others
            rows.append((signals, relevant, weight * share))
    names = sorted({name for signals, _, _ in rows for name in signals})
    columns = [[signals.get(name, 0.0) for name in names] for signals, _, _ in rows]
    bias, *slopes = _regression(columns, [relevant for _, relevant, _ in rows], [weight for _, _, weight in rows])
    return Fit(bias, dict(zip(names, slopes, strict=True)), 0.0, 0.0)


def _weights(told: Sequence[Search]) -> list[float]:
    """What each search counts: 1, but unanswerable ones and those made so share what the former have."""
    unmet = sum(not each.case.gold for each in told)
    left_out = sum(each.left_out for each in told)
    share = LEFT_OUT if left_out and unmet else 0.0
    return [1.0 if each.answerable else share * unmet / left_out if each.left_out else 1 - share for each in told]


def _regression(rows: Sequence[Sequence[float]], y: Sequence[bool], weights: Sequence[float]) -> list[float]:
    """Bias and slopes of a logistic regression with an L2 penalty on standardised columns, by Newton's method.

    Rounded, so that the same searches give the same file on every machine.
    """
    import numpy as np

    x = np.array(rows, float)
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    deviation[deviation < 1e-9] = 1.0
    columns = np.column_stack([np.ones(len(x)), (x - mean) / deviation])
    target, weight = np.array(y, float), np.array(weights)
    penalty = np.full(columns.shape[1], PENALTY)
    penalty[0] = 1e-9
    slopes = np.zeros(columns.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-columns @ slopes))
        gradient = columns.T @ (weight * (p - target)) + penalty * slopes
        hessian = (columns * (weight * p * (1 - p))[:, None]).T @ columns + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        slopes -= step
        if np.abs(step).max() < 1e-10:
            break
    plain = slopes[1:] / deviation
    return [round(float(each), DIGITS) for each in (slopes[0] - plain @ mean, *plain)]


def write_fits(entries: Sequence[dict[str, Any]], file: Path) -> None:
    """Puts entries into a file in the place of those for the same index and encoder; the others stay.

    An entry that says what the one before did keeps its date, so that fitting again changes nothing.
    """
    held = {(entry["index"], entry["encoder"]): entry for entry in (read_fits(file) if file.exists() else [])}
    for entry in entries:
        key = entry["index"], entry["encoder"]
        if key not in held or {**entry, "date": ""} != {**held[key], "date": ""}:
            held[key] = entry
    whole = {"format": FORMAT, "fits": [held[key] for key in sorted(held)]}
    try:
        file.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", "utf-8", newline="\n")
    except OSError as error:
        raise SetupError(f"the file {str(file)!r} cannot be written: {error.strerror}") from None
