"""A question that a tool asks of the user while it runs, and the answer with which it runs again."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from toolsearch.support.json_types import JsonObject

__all__ = ["HANDOVER", "GivenAnswer", "Handover", "ToolAsks"]


@dataclass(frozen=True, slots=True)
class ToolAsks:
    """As the `data` of a tool's result: it asks this, and gives `state`, plain JSON, to its next run.

    `schema` is the JSON Schema of the answer.
    """

    question: str
    schema: JsonObject = field(default_factory=dict)
    state: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What a person decided: the answer, or None for a refusal. `state` is what the run gave that asked."""

    answer: Mapping[str, object] | None
    state: JsonObject


@dataclass(frozen=True, slots=True)
class Handover:
    """That a call may wait for a person's answer; and the answer, in a run that follows one."""

    given: GivenAnswer | None = None


HANDOVER: ContextVar[Handover | None] = ContextVar("toolsearch_tool_questions", default=None)
