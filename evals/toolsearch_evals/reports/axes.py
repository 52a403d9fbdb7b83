"""Maps the values of a chart to places on the sheet, evenly or by their logarithm, and says where the ticks are."""

from __future__ import annotations

import math
from typing import Literal

from toolsearch_evals.reports.values import Unit

__all__ = ["Axis", "Scale", "tick_text"]

Scale = Literal["log", "linear"]
TICKS = 5  # about so many on an even axis


class Axis:
    """From `low` to `high` on a line from `begin` to `end`; `is_rounded` widens it to whole ticks."""

    def __init__(
        self, scale: Scale, low: float, high: float, begin: float, end: float, *, is_rounded: bool = False
    ) -> None:
        self._is_log = scale == "log"
        if is_rounded and self._is_log:
            low, high = max(t for t in _steps(low) if t <= low), min(t for t in _steps(high) if t >= high)
        elif is_rounded:
            step = _even_step(high - low)
            low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        self.low, self.high = low, high if high > low else (low * 2 if low > 0 else low + 1)
        self._begin, self._end = begin, end

    def __call__(self, value: float) -> float:
        """The place of a value; what lies outside is put at the edge."""
        value = min(max(value, self.low), self.high)
        share = (
            math.log(value / self.low) / math.log(self.high / self.low)
            if self._is_log
            else (value - self.low) / (self.high - self.low)
        )
        return round(self._begin + share * (self._end - self._begin), 1)

    def ticks(self) -> list[float]:
        if not self._is_log:
            step = _even_step(self.high - self.low)
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            return [round(step * at, 9) for at in range(first, last + 1)]
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        return [m * 10.0**d for d in decades for m in (1, 2, 5) if self.low <= m * 10.0**d <= self.high]


def _steps(near: float) -> list[float]:
    decade = 10.0 ** math.floor(math.log10(near))
    return [m * decade for m in (1, 2, 5, 10)]


def _even_step(span: float) -> float:
    rough = (span or 1) / TICKS
    return min((step for step in _steps(rough) if step >= rough * 0.9), default=rough)


def tick_text(value: float, unit: Unit) -> str:
    """A short form of a value, as a tick has it."""
    if unit == "share":
        return f"{100 * value:.0f} %".replace("-", "−")
    sign, size = "−" if value < 0 else "", abs(value)
    short = f"{size / 1e6:g}M" if size >= 1e6 else f"{size / 1_000:g}k" if size >= 1_000 else f"{size:g}"
    return f"{sign}{'$' if unit == 'dollars' else ''}{short}"
