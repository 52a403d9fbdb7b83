"""The exported session after each fact that changes it: whole in the first of them, and then only what has changed.

So a journal grows with what happens in a conversation, and not with its square. Facts of older journals have the whole
session each; they stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from toolsearch.errors import StateError
from toolsearch.events.facts import Event, ToolsFound, ToolsRevealed, ToolsUnloaded
from toolsearch.support.json_changes import changed, difference
from toolsearch.support.json_types import JsonObject

__all__ = ["SessionStates"]


_AFTER = "after"  # the key of the changes that has the place of the fact they follow


@dataclass(slots=True)
class SessionStates:
    """The last state of the session in a journal, and the place of the fact that has it; -1 if there is none."""

    state: JsonObject = field(default_factory=dict)
    place: int = -1

    def compressed(self, event: Event) -> Event:
        """The fact with what has changed in its session, if an earlier fact has the session."""
        if not isinstance(event, ToolsFound | ToolsRevealed | ToolsUnloaded) or not self.state:
            return event
        session: object = event.session
        if not isinstance(session, Mapping) or not session:
            return event
        return replace(event, session={}, changes={_AFTER: self.place, **difference(self.state, session)})

    def take(self, event: Event, place: int) -> None:
        """Takes over the session of a fact at a place. Raises `StateError` if its changes follow another fact."""
        if not isinstance(event, ToolsFound | ToolsRevealed | ToolsUnloaded):
            return
        if event.session:
            if not isinstance(event.session, Mapping):
                raise StateError(f"fact {place} of the journal must have an exported session, not {event.session!r}")
            self.state, self.place = event.session, place
        elif event.changes:
            self.state, self.place = self._changed(event.changes, place), place

    def _changed(self, changes: object, place: int) -> JsonObject:
        if not isinstance(changes, Mapping) or changes.get(_AFTER) != self.place:
            raise StateError(
                f"fact {place} of the journal changes the session of another fact than {self.place}, which is the last "
                "one here: a fact between them is missing"
            )
        try:
            return changed(self.state, changes)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise StateError(
                f"fact {place} of the journal has changes that do not fit its session: {problem}"
            ) from None
