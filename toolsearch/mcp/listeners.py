"""Functions that hear of news, until they are taken away. One that fails is logged, and the others hear it as well."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from toolsearch.support import checks

__all__ = ["Listeners"]

log = logging.getLogger("toolsearch.mcp")

News = TypeVar("News")


class Listeners(Generic[News]):
    """Those who hear of what happens at a server. Safe for threads."""

    def __init__(self) -> None:
        self._all: tuple[Callable[[str, News], object], ...] = ()

    def add(self, listener: Callable[[str, News], object]) -> Callable[[], None]:
        """Calls `listener` with a server and the news, until the returned function is called."""
        checks.function("listener", listener, "that takes a server and what happened there")
        self._all = (*self._all, listener)

        def end() -> None:
            self._all = tuple(each for each in self._all if each is not listener)

        return end

    def tell(self, server: str, news: News) -> None:
        for listener in self._all:
            try:
                listener(server, news)
            except Exception:
                log.exception("a listener of the servers failed")
