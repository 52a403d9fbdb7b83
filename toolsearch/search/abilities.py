"""What an index may offer beyond `ToolIndex`, and others use where it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["BackgroundIndex", "BatchIndex", "TieredIndex"]


class BackgroundIndex(Protocol):
    """An index that goes on with the tools after `add` has returned.

    `wait` waits until it has done what it can, at most `seconds`, and says whether every tool is searched in full.
    """

    def wait(self, seconds: float | None = None) -> bool: ...


class BatchIndex(Protocol):
    """An index that is quicker if it knows queries together: `prepare` is called before they are searched for."""

    def prepare(self, queries: Sequence[str]) -> None: ...


class TieredIndex(Protocol):
    """An index that says in a line, `tier`, what it understands and what a better one would bring."""

    @property
    def tier(self) -> str: ...
