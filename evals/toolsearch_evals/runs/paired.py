"""Two runs on the same units: by how much they differ, and whether chance alone would explain it.

Every figure is a ratio of sums over units: of what was saved over what everything cost, of requests met over requests
that can be met. So the two numbers of a unit stay together, whatever is drawn again. Needs numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from toolsearch_evals.ranking.measures import RESAMPLES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["EXACT", "SWAPS", "PairedDifference", "Sample", "paired_difference"]

EXACT = 12  # differing units, up to which all swaps are tried
SWAPS = 10_000  # drawn, beyond that
ROUNDING = 1e-12


class Sample(NamedTuple):
    """What one unit adds to a measure of a group: to the sum above the line, and to the one below."""

    group: str
    measure: str
    unit: str
    above: float
    below: float = 1.0


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The second run minus the first, over `n` units that both have.

    `low` and `high` are the ends of the 95 % interval by a seeded bootstrap over the units (Efron 1979), None of one
    unit alone, and if a resample can have nothing below the line. `p` is that of a two-sided permutation test: how
    often a difference at least this large comes about if each unit's two values are swapped at random. It tries all
    swaps of at most `EXACT` units that differ (`is_exact`), else it draws `SWAPS` seeded ones. `rises` and `falls`
    count the units that differ.
    """

    n: int
    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float
    is_exact: bool
    rises: int
    falls: int


def paired_difference(first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]]) -> PairedDifference:
    """Compares the units, each as (above, below), at the same places of both lists."""
    import numpy as np

    one, other = (np.array(values, dtype=np.float64).reshape(-1, 2) for values in (first, second))
    before, after = _ratio(one.sum(axis=0)), _ratio(other.sum(axis=0))
    of_units = [_ratio(row) for row in one], [_ratio(row) for row in other]
    changes = [b - a for a, b in zip(*of_units, strict=True) if a is not None and b is not None]
    low, high = _interval(one, other)
    p, is_exact = _permutation(one, other)
    return PairedDifference(
        n=len(one),
        first=before,
        second=after,
        difference=None if before is None or after is None else after - before,
        low=low,
        high=high,
        p=p,
        is_exact=is_exact,
        rises=sum(change > ROUNDING for change in changes),
        falls=sum(change < -ROUNDING for change in changes),
    )


def _ratio(sums: Floats) -> float | None:
    return float(sums[0] / sums[1]) if sums[1] else None


def _interval(one: Floats, other: Floats) -> tuple[float | None, float | None]:
    import numpy as np

    if len(one) < 2:
        return None, None  # of one unit, each resample is the same
    rng, n = np.random.default_rng(0), len(one)
    drawn = rng.integers(0, n, (RESAMPLES, n))
    before, after = (values[drawn].sum(axis=1) for values in (one, other))
    if not before[:, 1].all() or not after[:, 1].all():
        return None, None
    differences = np.sort(after[:, 0] / after[:, 1] - before[:, 0] / before[:, 1])
    return float(differences[round(0.025 * RESAMPLES)]), float(differences[round(0.975 * RESAMPLES) - 1])


def _permutation(one: Floats, other: Floats) -> tuple[float, bool]:
    """The probability, and whether all swaps were tried."""
    import numpy as np

    differing = (other - one)[(other != one).any(axis=1)]
    many = len(differing)
    if not many:
        return 1.0, True
    is_exact = many <= EXACT
    if is_exact:
        swapped = (np.arange(2**many)[:, None] >> np.arange(many)) & 1
    else:
        swapped = np.random.default_rng(0).integers(0, 2, (SWAPS, many), dtype=np.int8)
    moved = swapped @ differing
    observed = _distance(one.sum(axis=0)[None], other.sum(axis=0)[None])[0]
    as_large = int((_distance(one.sum(axis=0) + moved, other.sum(axis=0) - moved) >= observed - ROUNDING).sum())
    return (as_large / len(swapped), True) if is_exact else ((as_large + 1) / (SWAPS + 1), False)


def _distance(before: Floats, after: Floats) -> Floats:
    """How far the two ratios are apart; 0 where one is of nothing."""
    import numpy as np

    is_known = (before[:, 1] != 0) & (after[:, 1] != 0)
    below = [np.where(is_known, sums[:, 1], 1.0) for sums in (before, after)]
    distance: Floats = np.where(is_known, np.abs(after[:, 0] / below[1] - before[:, 0] / below[0]), 0.0)
    return distance
