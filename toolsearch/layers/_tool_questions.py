"""Tool questions: a tool that asks the user something while it runs waits for the answer, and runs again with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from toolsearch.calls import ToolResult
from toolsearch.events.facts import ToolApproved, ToolDenied, ToolStarted, ToolWaiting
from toolsearch.events.requests import Call
from toolsearch.protocols import Layer, ToolSteps
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.tool_questions import HANDOVER, GivenAnswer, Handover, ToolAsks

__all__ = ["tool_questions"]


def tool_questions(*, ttl_seconds: float | None = None) -> Layer:
    """A layer for tools that ask the user something while they run, as servers of MCP do.

    The call waits, with the kind "delegated", the tool's words as its question, and the JSON Schema of the answer in
    `waiting.fact.data["schema"]`; the run returns `Paused`. Decide with `Answer`, whose `data` is the answer as a
    mapping (or whose `content` is its JSON, or the value of the only field), with `Approve` for a plain yes, or with
    `Deny`, within `ttl_seconds` after the call began. The tool is then called again, and gets the answer when it asks.
    """
    checks.number("ttl_seconds", ttl_seconds, "a number of seconds", finite=True, none="for no end")
    return _ToolQuestions(ttl_seconds)


@dataclass(frozen=True)
class _ToolQuestions:
    ttl: float | None
    name: str = "tool_questions"

    def around_tool(self, call: Call) -> ToolSteps:
        judged = call.judged
        if judged.kind != "tool":
            return (yield call)
        asked = [e for e in call.turn.facts if isinstance(e, ToolWaiting) and e.call_id == judged.id]
        given = None
        if asked and asked[-1].by == self.name and call.delegated is not None:
            given = GivenAnswer(_answer(call.delegated, _part(asked[-1], "schema")), _part(asked[-1], "state"))
        HANDOVER.set(Handover(given))
        try:
            result = yield call
        finally:
            HANDOVER.set(None)
        if not (isinstance(result, ToolResult) and isinstance(result.data, ToolAsks)):
            return result
        asks = result.data
        begun = [e.at for e in call.turn.facts if isinstance(e, ToolStarted) and e.call_id == judged.id]
        expires = None if self.ttl is None or not begun else begun[-1] + self.ttl
        data = {"waiting": [], "schema": asks.schema, "state": asks.state}
        return ToolWaiting(judged.id, "delegated", asks.question, self.name, expires, data)


def _part(asked: ToolWaiting, key: str) -> JsonObject:
    part = asked.data.get(key) if isinstance(asked.data, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def _answer(decided: ToolApproved | ToolDenied, schema: JsonObject) -> Mapping[str, object] | None:
    """The answer as a mapping that the schema is for; None for a refusal."""
    if isinstance(decided, ToolDenied):
        return None
    if decided.answer is None:
        return {}
    data, content = decided.answer.get("data"), decided.answer.get("content")
    if isinstance(data, Mapping):
        return data
    try:
        value: object = json.loads(str(content))
    except ValueError:
        value = content
    if isinstance(value, Mapping):
        return value
    properties = schema.get("properties")
    fields = list(properties) if isinstance(properties, Mapping) else []
    return {fields[0]: value} if len(fields) == 1 else {}
