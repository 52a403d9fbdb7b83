"""A cache that is bounded by what its values weigh, not by their number."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["BoundedCache"]

T = TypeVar("T")


class BoundedCache(Generic[T]):
    """Values by key; those not used for the longest time leave when the weights exceed `most`. Safe for threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._held: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            held = self._held.get(key)
            if held is None:
                return None
            self._held.move_to_end(key)
            return held[0]

    def put(self, key: Hashable, value: T, weight: int) -> T:
        """Keeps a value, and returns it; one that is heavier than everything allowed is not kept."""
        with self._lock:
            if weight <= self._most and key not in self._held:
                self._held[key] = value, weight
                self._weight += weight
                while self._weight > self._most:
                    _, (_, gone) = self._held.popitem(last=False)
                    self._weight -= gone
        return value

    def __len__(self) -> int:
        return len(self._held)
