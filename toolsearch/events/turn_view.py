"""What a layer may look back on: the facts of the turn so far, counted."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toolsearch.events.facts import (
    Event,
    JudgedCall,
    ModelCalled,
    ModelReplied,
    Noted,
    RunBegan,
    ToolDenied,
    ToolReturned,
    Usage,
    UserSaid,
)
from toolsearch.support.text import clean_json

__all__ = ["TurnView", "fingerprint", "is_one_of"]


def fingerprint(call: JudgedCall) -> str:
    """What is called with what, the same for arguments that mean the same: neither order nor spelling counts."""
    given = call.arguments if call.given is None else call.given
    if isinstance(given, str):
        with suppress(ValueError):
            given = json.loads(given)
    return f"{call.tool or call.name}|{json.dumps(clean_json(given), sort_keys=True, ensure_ascii=False, default=str)}"


def is_one_of(call: JudgedCall, tools: Collection[str]) -> bool:
    """Whether a call is of one of these tools, given by id, by name, or by the name the model calls them by."""
    return call.tool in tools or call.name in tools or call.tool.rpartition("/")[2] in tools


@dataclass(frozen=True)
class TurnView:
    """The facts since the user's last message, and the whole journal for what is remembered longer.

    `journal` holds all facts of the conversation, `began` is the place where this turn begins.
    """

    journal: Sequence[Event] = ()
    began: int = 0

    @classmethod
    def of(cls, journal: Sequence[Event]) -> TurnView:
        """The turn that is going on, or the last one."""
        began = next((at for at in range(len(journal) - 1, -1, -1) if isinstance(journal[at], RunBegan)), 0)
        return cls(tuple(journal), began)

    @cached_property
    def facts(self) -> tuple[Event, ...]:
        return tuple(self.journal[self.began :])

    @cached_property
    def said(self) -> str:
        """What the user said last in this turn."""
        return next((e.text for e in reversed(self.facts) if isinstance(e, UserSaid)), "")

    @cached_property
    def replies(self) -> tuple[ModelReplied, ...]:
        return tuple(e for e in self.facts if isinstance(e, ModelReplied))

    @property
    def rounds(self) -> int:
        """Replies with calls so far, the one being worked on counted."""
        return sum(1 for reply in self.replies if reply.calls)

    @cached_property
    def calls(self) -> tuple[JudgedCall, ...]:
        """All calls so far, in order, those of the round that is going on counted."""
        return tuple(call for reply in self.replies for call in reply.calls)

    @cached_property
    def results(self) -> dict[str, ToolReturned]:
        """The answers so far, by call id."""
        return {e.call_id: e for e in self.facts if isinstance(e, ToolReturned)}

    @cached_property
    def denied(self) -> frozenset[str]:
        """The tools (ids; names where there is none) that a person declined in this turn."""
        declined = {e.call_id for e in self.facts if isinstance(e, ToolDenied)}
        return frozenset(call.tool or call.name for call in self.calls if call.id in declined)

    @cached_property
    def usage(self) -> Usage:
        """Of all model calls of the turn."""
        return sum((e.usage for e in self.facts if isinstance(e, ModelCalled)), Usage())

    def notes(self, layer: str, *, whole: bool = False) -> list[Any]:
        """What a layer noted in this turn, or in the whole conversation, in order."""
        return [e.note for e in (self.journal if whole else self.facts) if isinstance(e, Noted) and e.layer == layer]
