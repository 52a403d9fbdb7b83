"""Attacks with many rounds, too long for the test suite: kills, cancels, fuzzed input, storms, foreign tenants.

`make torture` runs all of them (`__main__.py` has the list). Each is a function that takes a size and a seed and
returns an `Outcome`: what was done, in figures, and every promise that did not hold, in sentences.
"""

from dataclasses import dataclass, field


@dataclass
class Outcome:
    """What an attack did, and what it broke. An attack that broke nothing has no violations."""

    figures: dict[str, int | float] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
