"""Layers from plain functions, for those who never want to see a generator."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, cast

from toolsearch.errors import SetupError
from toolsearch.protocols import Do, Layer

__all__ = ["after", "before"]

SEAMS = ("around_run", "around_round", "around_model", "around_tool")


class _Plain:
    """A layer from plain functions."""

    def __init__(self, seam: str, first: Callable[[Any], Any] | None, last: Callable[[Any], Any] | None) -> None:
        if not callable(first or last):
            raise SetupError(f"before() and after() take a function, not {first or last!r}")
        self.name = getattr(first or last, "__name__", "plain")
        self.buffers = seam == "around_model" and last is not None  # what it may change is not shown before

        def around(given: Any) -> Generator[Any, Any, Any]:
            if first is not None:
                changed = yield Do(partial(first, given))
                given = given if changed is None else changed
            result = yield given
            if last is not None:
                changed = yield Do(partial(last, result))
                result = result if changed is None else changed
            return result

        setattr(self, seam, around)


def before(seam: str, function: Callable[[Any], Any]) -> Layer:
    """A layer that calls `function` with what a step is given ("run", "round", "model", "tool"); it may change it.

    What the function returns takes the place of what was given; None leaves it.
    """
    return cast("Layer", _Plain(_seam(seam), function, None))


def after(seam: str, function: Callable[[Any], Any]) -> Layer:
    """A layer that calls `function` with what came of a step; it may change it, as in `before`."""
    return cast("Layer", _Plain(_seam(seam), None, function))


def _seam(seam: str) -> str:
    if f"around_{seam}" not in SEAMS:
        raise SetupError(f"there is no seam {seam!r}; there are 'run', 'round', 'model' and 'tool'")
    return f"around_{seam}"
