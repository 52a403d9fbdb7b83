"""Definitions that cannot be used, set aside with the reason; and what was left out of those that can."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from toolsearch.catalog.tools import Tool
from toolsearch.errors import DefinitionError
from toolsearch.support.text import clean, reason_of

__all__ = ["Notices", "Quarantine", "Quarantined", "log_look_alikes", "log_unchecked"]

log = logging.getLogger("toolsearch")

NAME_CHARACTERS, REASON_CHARACTERS = 80, 1_000
MOST_NOTICES = 1_000


@dataclass(frozen=True)
class Quarantined:
    """A definition that was set aside: the name it gave, why it cannot be used, and the definition itself."""

    name: str
    reason: str
    source: object = field(repr=False, compare=False)


class Quarantine:
    """The definitions of a catalog that were set aside, in order, each once."""

    def __init__(self) -> None:
        self._entries: dict[Quarantined, None] = {}  # in order

    @property
    def entries(self) -> tuple[Quarantined, ...]:
        return tuple(self._entries)

    def add(self, source: object, error: Exception) -> None:
        """Sets a definition aside because of an error, and logs it. A source that is read again adds nothing."""
        known = isinstance(error, DefinitionError)
        reason = str(error) if known else f"reading the definition failed: {reason_of(error)}"
        entry = Quarantined(clean(_name_of(source)[:NAME_CHARACTERS]), clean(reason[:REASON_CHARACTERS]), source)
        if entry not in self._entries:
            self._entries[entry] = None
            log.warning("quarantined %r: %s", entry.name, entry.reason)

    def __len__(self) -> int:
        return len(self._entries)


class Notices:
    """Sentences on what was left out of the sources of a catalog though its tools could be used, each once."""

    def __init__(self) -> None:
        self._left_out: dict[str, None] = {}
        self._going_on: dict[str, str] = {}  # by server: its last page named another one

    @property
    def texts(self) -> tuple[str, ...]:
        return (*self._left_out, *self._going_on.values())

    def left_out(self, texts: Iterable[str]) -> None:
        for text in (clean(each[:REASON_CHARACTERS]) for each in texts):
            if text not in self._left_out and len(self._left_out) < MOST_NOTICES:
                self._left_out[text] = None
                log.warning("%s", text)

    def page(self, server: str, goes_on: str) -> None:
        """Takes note of a list of tools: whether the server has more, which the next list may bring."""
        if goes_on:
            self._going_on[server] = clean(goes_on)
        else:
            self._going_on.pop(server, None)

    def tell_of_pages(self) -> None:
        for text in self._going_on.values():
            log.warning("%s", text)


def _name_of(source: object) -> str:
    """The name in a definition, or its `repr`; what is wrong with a definition may be that either raises."""
    try:
        name = source.get("name") if isinstance(source, Mapping) else getattr(source, "__name__", None)
        return name if isinstance(name, str) else repr(source)
    except Exception:
        return f"<{type(source).__name__}>"


def log_unchecked(added: Sequence[Tool], removed: Sequence[Tool]) -> None:
    """Says once, when a tool comes or changes, what in its schema no call is checked against."""
    for new in added:
        if new.unchecked and new not in removed:
            log.warning("calls of %r are not checked against all of its schema: %s", new.id, "; ".join(new.unchecked))


def log_look_alikes(ids: Sequence[str]) -> None:
    """Names the first of the tools that have a name like another server's, if there are any."""
    if ids:
        names = ", ".join(map(repr, ids[:4]))
        log.warning("%d tools have a name like a tool of another server, but for case and signs: %s", len(ids), names)
