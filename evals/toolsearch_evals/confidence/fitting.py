"""Fits confidence: makes a `toolsearch.search.Fit` of searches with labels, and writes fits into a file.

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
from toolsearch_evals.data.cases import Case

__all__ = ["LabelledSearch", "fit", "write_fits"]

FIRST = 0.6  # of a request's weight goes to its first hit, which mostly decides the verdict; the others share the rest
PENALTY = 3.0  # of squared weights, in requests; signals have variance 1
LEFT_OUT = 0.25  # of the weight of unanswerable requests goes to those made so by taking tools out of the catalog
DIGITS = 4


@dataclass(frozen=True)
class LabelledSearch:
    """One request, and the signals of its hits. `named`: the query names a tool, so no model decides.

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


def fit(found: Sequence[LabelledSearch]) -> Fit:
    """The model of these searches, by two weighted logistic regressions: of the hits, then of the searches.

    For P(relevant), each request has the same weight, whatever the number of its hits; but the unanswerable requests
    share their weight with those that were made unanswerable. For P(some tool can do it), requests that were made
    unanswerable do not count, because they are harder than what people ask; the other unanswerable ones together weigh
    as much as the answerable ones. A query that names a tool counts for neither.
    """
    counted_searches = [each for each in found if each.signals and not each.named]
    made = _of_hits(counted_searches)
    asked = [each for each in counted_searches if not each.left_out]
    met = [each.answerable for each in asked]
    unmet = len(met) - sum(met)
    even = [1.0 if each or not unmet else sum(met) / unmet for each in met]
    some = [[evidence([made.relevant(signals) for signals in each.signals])] for each in asked]
    offset, slope = _regression(some, met, even)
    return Fit(made.bias, made.weights, offset, slope)


def _of_hits(counted_searches: Sequence[LabelledSearch]) -> Fit:
    """The part of the model that turns the signals of a hit into P(relevant)."""
    rows: list[tuple[dict[str, float], bool, float]] = []
    for each, weight in zip(counted_searches, _weights(counted_searches), strict=True):
        others = len(each.signals) - 1
        for at, (signals, relevant) in enumerate(zip(each.signals, each.relevant, strict=True)):
            share = 1.0 if not others else FIRST if at == 0 else (1 - FIRST) / others
            rows.append((signals, relevant, weight * share))
    names = sorted({name for signals, _, _ in rows for name in signals})
    columns = [[signals.get(name, 0.0) for name in names] for signals, _, _ in rows]
    bias, *slopes = _regression(columns, [relevant for _, relevant, _ in rows], [weight for _, _, weight in rows])
    return Fit(bias, dict(zip(names, slopes, strict=True)), 0.0, 0.0)


def _weights(counted_searches: Sequence[LabelledSearch]) -> list[float]:
    """The weight of each search: 1, but requests made unanswerable share the weight of the unanswerable ones."""
    unmet = sum(not each.case.gold for each in counted_searches)
    left_out = sum(each.left_out for each in counted_searches)
    share = LEFT_OUT if left_out and unmet else 0.0
    return [
        1.0 if each.answerable else share * unmet / left_out if each.left_out else 1 - share
        for each in counted_searches
    ]


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
    """Writes entries into a file, replacing those for the same index and encoder; the others stay.

    An entry that equals the one before keeps its date, so that fitting again changes nothing.
    """
    kept = {(entry["index"], entry["encoder"]): entry for entry in (read_fits(file) if file.exists() else [])}
    for entry in entries:
        key = entry["index"], entry["encoder"]
        if key not in kept or {**entry, "date": ""} != {**kept[key], "date": ""}:
            kept[key] = entry
    whole = {"format": FORMAT, "fits": [kept[key] for key in sorted(kept)]}
    try:
        file.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", "utf-8", newline="\n")
    except OSError as error:
        raise SetupError(f"the file {str(file)!r} cannot be written: {error.strerror}") from None
