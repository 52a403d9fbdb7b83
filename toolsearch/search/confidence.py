"""How sure a search is: a fitted model turns the signals of a hit into a probability, and these into a verdict.

`toolsearch eval calibrate` fits the model to labelled requests and writes it as JSON. An index may come with such a
file, see docs/confidence.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter, mul
from pathlib import Path
from typing import Any, Literal

from toolsearch.errors import SetupError
from toolsearch.settings import NOTHING_BELOW, SURE_FROM

__all__ = [
    "DEPTH",
    "FORMAT",
    "PROBE",
    "PROBED",
    "Fit",
    "Verdict",
    "evidence",
    "read_fits",
    "verdict",
]

Verdict = Literal["found", "weak", "none"]

DEPTH = 10  # hits that decide how sure a whole search is, whatever its limit
FORMAT = 1
LEAST = 1e-4  # no probability is closer to 0 or 1
PROBE = "Create a calendar event and invite the people who take part."
PROBED = 16  # numbers of its vector that a fit keeps
# The distance of two such beginnings, as a share of their length, up to which the model is the same; 8-bit weights make
# it .04. A model whose vectors are cut to half begins with the same numbers, but larger ones, as the length stays 1.
SAME = 0.14


@dataclass(frozen=True)
class Fit:
    """A fitted model. `bias` and `weights` turn signals into a probability; `offset` and `slope` judge a search."""

    bias: float
    weights: Mapping[str, float]
    offset: float
    slope: float

    def relevant(self, signals: Mapping[str, float]) -> float:
        """P(relevant) of a hit; a missing signal counts as 0."""
        try:
            values: Iterable[float] = self._values(signals)
        except KeyError:
            values = [signals.get(name, 0.0) for name in self.weights]
        return _logistic(self.bias + sum(map(mul, self.weights.values(), values)))

    @cached_property
    def _values(self) -> Callable[[Mapping[str, float]], Iterable[float]]:
        """The values of the signals with a weight, in their order. It raises `KeyError` if one is missing."""
        names = tuple(self.weights)
        return itemgetter(*names) if len(names) > 1 else lambda signals: [signals[name] for name in names]

    def answerable(self, relevant: Sequence[float]) -> float:
        """P(some tool can do it), from P(relevant) of the first `DEPTH` hits, as if every second request had no tool.

        How many requests a catalog cannot meet differs between catalogs, so neither case is assumed to be likelier.
        """
        return _logistic(self.offset + self.slope * evidence(relevant)) if relevant else 0.0

    @staticmethod
    @cache
    def load(file: Path | str, index: str, encoder: str = "", probe: tuple[float, ...] = ()) -> Fit | None:
        """The fit in a file for an index and for the encoder of that name, or None.

        One model has many names: that of a folder, of a hub, of an endpoint. `probe` finds the fit of the same model
        under another name: it is the first `PROBED` numbers of its vector, of length 1, for the query `PROBE`.

        Raises `SetupError` for a file that cannot be read.
        """
        entries = [entry for entry in read_fits(file) if entry["index"] == index]
        named = [entry for entry in entries if entry["encoder"] == encoder]
        for entry in named or [each for each in entries if encoder and _is_same(each.get("probe") or (), probe)]:
            return Fit(entry["bias"], entry["weights"], entry["offset"], entry["slope"])
        return None


def evidence(relevant: Sequence[float]) -> float:
    """The log-odds that any of the first `DEPTH` hits is relevant; no hits count as one sure miss."""
    some = 1 - math.prod(1 - p for p in relevant[:DEPTH])
    some = min(max(some, LEAST), 1 - LEAST)
    return math.log(some / (1 - some))


def verdict(
    confidences: Sequence[float | None],
    answerable: float | None,
    sure_from: float = SURE_FROM,
    nothing_below: float = NOTHING_BELOW,
) -> Verdict | None:
    """The verdict on a search, from P(relevant) of its hits and P(some tool can do it); None if these are not known.

    "found": some hit is relevant with at least the probability `sure_from`. "none": the probability that any tool can
    do it is below `nothing_below`, or there are no hits. "weak": neither.
    """
    if not confidences:
        return "none"
    known = [p for p in confidences if p is not None]
    if known and max(known) >= sure_from:
        return "found"
    if answerable is None and len(known) < len(confidences):
        return None
    if answerable is None:
        answerable = 1 - math.prod(1 - p for p in known)
    return "none" if answerable < nothing_below else "weak"


def read_fits(file: Path | str) -> list[dict[str, Any]]:
    """The entries of a file that `toolsearch eval calibrate` wrote, one for each index and encoder."""
    try:
        whole = json.loads(Path(file).read_text("utf-8"))
        if whole["format"] != FORMAT:
            raise SetupError(
                f"the fits in {str(file)!r} have the format {whole['format']!r}; this version reads {FORMAT}"
            )
        return [{**entry, "encoder": entry.get("encoder", "")} for entry in whole["fits"]]
    except OSError as error:
        raise SetupError(f"the fits in {str(file)!r} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SetupError(f"{str(file)!r} does not hold fits: {type(error).__name__}: {error}") from None


def _is_same(known: Sequence[float], probe: Sequence[float]) -> bool:
    return len(known) == len(probe) > 0 and math.dist(known, probe) < SAME * math.hypot(*known)


def _logistic(x: float) -> float:
    """Rounded, so that the order of a sum cannot show."""
    p = 1 / (1 + math.exp(-x)) if x > -700 else 0.0
    return LEAST if p < LEAST else 1 - LEAST if p > 1 - LEAST else round(p, 6)
