"""How much harm each check stands for, how much of it it finds, and how often it cries wolf: measured, and shipped.

`rates.json` is made by `toolsearch eval doctor-checks --out`; nothing in it is written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

from toolsearch_evals.doctor.alarms import Alarms
from toolsearch_evals.doctor.findings import CHECKS
from toolsearch_evals.doctor.trials import Harm, Trial

__all__ = ["FILE", "FORMAT", "Rate", "as_json", "as_rates", "rates"]

FILE, FORMAT = "rates.json", 1
_IN_FIRST_PLACE = ("shadowed", "look-alike", "names-another")


@dataclass(frozen=True)
class Rate:
    """What was measured of a check. `harm` is None if it was not; `through` is what of it is left with toolsearch.

    `shipped` and `published` say how often it names tools that nobody spoiled.
    """

    harm: Harm | None = None
    through: float | None = None
    found: int = 0
    planted: int = 0
    shipped: Alarms | None = None
    published: Alarms | None = None

    @property
    def is_harmful(self) -> bool:
        """Whether the harm that was measured is more than chance."""
        return self.harm is not None and self.harm.low > 0

    @property
    def is_left(self) -> bool:
        """Whether harm is left where toolsearch sends the tools."""
        return self.is_harmful and self.through != 0

    @property
    def warranted(self) -> float:
        """The share of the tools that it named with need, of those where that is known; 1 if it never named one."""
        of = [each for each in (self.shipped, self.published) if each is not None]
        judged = sum(each.named - each.unjudged for each in of)
        return 1 - sum(each.false for each in of) / judged if judged else 1.0

    @property
    def rank(self) -> float:
        """The harm to expect where it strikes; 0 if none was measured, or what was measured may be chance."""
        return self.harm.lost * self.warranted if self.harm is not None and self.is_harmful else 0.0


def as_rates(
    trials: Iterable[Trial],
    shipped: Sequence[Mapping[str, Alarms]],
    published: Sequence[Mapping[str, Alarms]],
) -> dict[str, Rate]:
    """The rate of every check, over all its defects and all data sets."""
    by_check: dict[str, list[Trial]] = {check: [] for check in CHECKS}
    for trial in trials:
        by_check[trial.defect.check].append(trial)
    return {
        check: Rate(
            _together(check, of),
            _through(of),
            sum(trial.found for trial in of),
            sum(trial.planted for trial in of),
            _sum(check, shipped),
            _sum(check, published),
        )
        for check, of in by_check.items()
    }


def _together(check: str, trials: Sequence[Trial]) -> Harm | None:
    """The harm of several defects: the means of the means and of the ends of the intervals, weighed by their cases."""
    harms = [trial.first if check in _IN_FIRST_PLACE and trial.first else trial.harm for trial in trials]
    cases = sum(each.cases for each in harms)
    if not cases:
        return None
    lost, low, high = (
        sum(getattr(each, key) * each.cases for each in harms) / cases for key in ("lost", "low", "high")
    )
    return Harm(cases, lost, low, high)


def _through(trials: Sequence[Trial]) -> float | None:
    known = [trial.through for trial in trials if trial.through is not None]
    cases = sum(each.cases for each in known)
    return sum(each.lost * each.cases for each in known) / cases if cases else None


def _sum(check: str, sets: Sequence[Mapping[str, Alarms]]) -> Alarms | None:
    known = [each[check] for each in sets if check in each]
    return sum(known, Alarms(0, 0, 0)) if known else None


@cache
def rates() -> Mapping[str, Rate]:
    """What was measured, as it ships; a check that is not in the file has no rate yet."""
    text = resources.files("toolsearch_evals.doctor").joinpath(FILE).read_text("utf-8")
    checks: Mapping[str, Any] = json.loads(text)["checks"]
    return {check: _rate(checks.get(check, {})) for check in CHECKS}


def _rate(of: Mapping[str, Any]) -> Rate:
    harm, shipped, published = of.get("harm"), of.get("shipped"), of.get("published")
    return Rate(
        Harm(**harm) if harm else None,
        of.get("through"),
        of.get("found", 0),
        of.get("planted", 0),
        Alarms(**shipped) if shipped else None,
        Alarms(**published) if published else None,
    )


def as_json(of: Mapping[str, Rate], made: Mapping[str, Any]) -> str:
    """The text of the file."""
    checks = {check: asdict(rate) for check, rate in of.items()}
    return json.dumps({"format": FORMAT, "made": made, "checks": checks}, indent=1) + "\n"
