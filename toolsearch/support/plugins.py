"""What installed packages offer by name: entry points. Ours come through the same door as everybody's."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from toolsearch.errors import SetupError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["plugin"]


@cache
def _installed(group: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # 20 ms, which a program that passes an index of its own need not spend

    return {point.name: point for point in entry_points(group=group)}


def plugin(kind: str, group: str, name: str) -> EntryPoint:
    """The entry point of a name, not yet imported. Raises `SetupError` listing the names, each a `kind`."""
    points = _installed(group)
    if name not in points:
        known = ", ".join(map(repr, sorted(points))) or "none: is toolsearch installed?"
        raise SetupError(f"there is no {kind} {name!r}; installed are: {known}. Or pass an object of your own.")
    return points[name]
