"""The facts of the turn so far, for layers to look at and count."""

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
    """A text for the tool and the arguments of a call; arguments that mean the same give the same text."""
    arguments = call.shown_arguments
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = json.loads(arguments)
    return (
        f"{call.tool or call.name}|{json.dumps(clean_json(arguments), sort_keys=True, ensure_ascii=False, default=str)}"
    )


def is_one_of(call: JudgedCall, tools: Collection[str]) -> bool:
    """Whether a call is to one of these tools, which are given by id, by name, or by the name the model uses."""
    return call.tool in tools or call.name in tools or call.tool.rpartition("/")[2] in tools


@dataclass(frozen=True)
class TurnView:
    """The facts since the user's last message, and the whole journal for what is remembered longer.

    `journal` holds all facts of the conversation; `began` is the place in it where this turn begins.
    """

    journal: Sequence[Event] = ()
    began: int = 0

    @classmethod
    def of(cls, journal: Sequence[Event]) -> TurnView:
        """The current turn of a journal, or its last one."""
        began = next((at for at in range(len(journal) - 1, -1, -1) if isinstance(journal[at], RunBegan)), 0)
        return cls(tuple(journal), began)

    @cached_property
    def facts(self) -> tuple[Event, ...]:
        """All facts of this turn, in order."""
        return tuple(self.journal[self.began :])

    @cached_property
    def said(self) -> str:
        """The user's last message in this turn."""
        return next((e.text for e in reversed(self.facts) if isinstance(e, UserSaid)), "")

    @cached_property
    def replies(self) -> tuple[ModelReplied, ...]:
        """The replies of the model so far, in order."""
        return tuple(e for e in self.facts if isinstance(e, ModelReplied))

    @property
    def rounds(self) -> int:
        """The number of replies with calls so far, including the current one."""
        return sum(1 for reply in self.replies if reply.calls)

    @cached_property
    def calls(self) -> tuple[JudgedCall, ...]:
        """All calls so far, in order, including those of the current round."""
        return tuple(call for reply in self.replies for call in reply.calls)

    @cached_property
    def results(self) -> dict[str, ToolReturned]:
        """The answers so far, by call id."""
        return {e.call_id: e for e in self.facts if isinstance(e, ToolReturned)}

    @cached_property
    def denied(self) -> frozenset[str]:
        """The ids of the tools that a person declined in this turn; the name where a call has no tool."""
        declined = {e.call_id for e in self.facts if isinstance(e, ToolDenied)}
        return frozenset(call.tool or call.name for call in self.calls if call.id in declined)

    @cached_property
    def usage(self) -> Usage:
        """The usage of all model calls of the turn."""
        return sum((e.usage for e in self.facts if isinstance(e, ModelCalled)), Usage())

    def notes(self, layer: str, *, whole: bool = False) -> list[Any]:
        """What a layer noted in this turn, or in the whole conversation, in order."""
        return [e.note for e in (self.journal if whole else self.facts) if isinstance(e, Noted) and e.layer == layer]
