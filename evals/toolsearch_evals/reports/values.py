"""How a report writes its values: shares, counts, times, and lists of names and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

__all__ = ["Unit", "counted", "described", "plain", "shown"]

Unit = Literal["text", "count", "share", "percent", "score", "number", "milliseconds", "dollars", "money"]


def shown(value: Any, unit: Unit) -> str:
    """A value as people read it; an unknown value is a dash, never 0."""
    if value is None or value == "":
        return "–"
    if unit == "text":
        return str(value)
    if unit == "count":
        return f"{value:,.0f}"
    if unit == "share":
        return f"{100 * value:.1f} %".replace("-", "−")
    if unit == "percent":  # a share in whole percents
        return f"{100 * value:.0f} %".replace("-", "−")
    if unit == "milliseconds":
        return f"{value:,.1f}" if value >= 100 else f"{value:.3f}"
    if unit == "score":
        return f"{'−' if value < 0 else ''}{f'{abs(value):.3f}'.removeprefix('0')}"
    if unit == "dollars":
        return f"{'−' if value < 0 else ''}${abs(value):,.2f}"
    if unit == "money":  # dollars, with more places where it is less than ten cents
        return shown(value, "dollars") if not 0 < abs(value) < 0.1 else f"{'−' if value < 0 else ''}${abs(value):.4f}"
    return f"{value:.2f}".replace("-", "−")


def plain(value: float) -> str:
    """A number with as many places as it needs: "1,000", "0.5"."""
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"


def counted(number: int, what: str, several: str = "") -> str:
    """A number of things in a sentence: "1 case", "2 cases"; `several` is the plural if it takes more than an s."""
    return f"{number:,} {what if number == 1 else several or f'{what}s'}"


def described(values: Mapping[str, Any]) -> str:
    """Names and values in a line, nested ones unfolded, unknown ones left out."""
    flat = {
        k: v
        for key, value in values.items()
        for k, v in (value.items() if isinstance(value, Mapping) else [(key, value)])
    }
    texts = {
        k: ", ".join(map(str, v)) if isinstance(v, list | tuple) else str(v) for k, v in flat.items() if v is not None
    }
    return "; ".join(f"{key} {text}" for key, text in texts.items() if text)
