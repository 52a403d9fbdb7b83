"""Public test doubles: an index whose answers are written down, and a model whose replies are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from toolsearch import Tool
from toolsearch.calls import ToolCall
from toolsearch.events.facts import Reply, TextDelta, Usage
from toolsearch.events.requests import CallModel
from toolsearch.protocols import Scored
from toolsearch.support.json_types import JsonObject

__all__ = ["FixedIndex", "ScriptedModel", "ScriptedStep"]

Arguments: TypeAlias = str | JsonObject | None
ScriptedCall: TypeAlias = tuple[str, Arguments] | tuple[str, str, Arguments]
ScriptedReply: TypeAlias = str | Sequence[ScriptedCall] | Reply | BaseException | type[BaseException]
ScriptedStep: TypeAlias = ScriptedReply | Callable[[CallModel], ScriptedReply]


class FixedIndex:
    """An index whose answers are written down: query -> tool ids, best first. For tests of what is around an index."""

    name = "fixed"

    def __init__(self, answers: Mapping[str, Sequence[str]]) -> None:
        self.answers = dict(answers)
        self.ids: set[str] = set()

    def add(self, tools: Sequence[Tool]) -> None:
        self.ids |= {tool.id for tool in tools}

    def remove(self, ids: Sequence[str]) -> None:
        self.ids -= set(ids)

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        """The written ids that are indexed and allowed, scored by place."""
        ids = [i for i in self.answers.get(query, ()) if i in self.ids and (among is None or i in among)]
        return [Scored(i, 1 / (place + 1)) for place, i in enumerate(ids[:limit])]


class ScriptedModel:
    """A model whose replies are written down, for tests of what is around a model.

    Each step of the script is a text (the answer), a list of calls (`("name", {arguments})`, or with an id
    `("id", "name", {…})`), a `Reply`, an exception to raise, or a function from the `CallModel` to one of these. After
    the last one the model says "Done.". With `pieces`, texts come in as deltas of so many characters. `requests` are
    the `CallModel`s it was asked with. `usage` is what each call costs.
    """

    name = "scripted"

    def __init__(self, *script: ScriptedStep, pieces: int = 0, usage: Usage = Usage(100, 0, 10)) -> None:  # noqa: B008
        self._script = list(script)
        self._pieces = pieces
        self._usage = usage
        self._lock = threading.Lock()
        self.requests: list[CallModel] = []

    def __call__(self, request: CallModel) -> Reply | Iterator[TextDelta | Reply]:
        with self._lock:
            step = self._script[len(self.requests)] if len(self.requests) < len(self._script) else "Done."
            number = len(self.requests)
            self.requests.append(request)
        written = step(request) if callable(step) and not isinstance(step, type) else step
        reply = self._reply(written, number)
        return self._streamed(reply) if self._pieces else reply

    def _reply(self, step: ScriptedReply, number: int) -> Reply:
        if isinstance(step, type):
            step = step()
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, Reply):
            return step
        if isinstance(step, str):
            return Reply(step, usage=self._usage, model=self.name, stop="stop")
        calls = []
        for place, call in enumerate(step):
            call_id, name, arguments = call if len(call) == 3 else (f"c{number}_{place}", *call)
            calls.append(ToolCall(call_id, name, arguments))
        return Reply(calls=tuple(calls), usage=self._usage, model=self.name, stop="tool_calls")

    def _streamed(self, reply: Reply) -> Iterator[TextDelta | Reply]:
        for start in range(0, len(reply.text), self._pieces):
            yield TextDelta(reply.text[start : start + self._pieces])
        yield reply
