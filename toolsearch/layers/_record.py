"""An observer that records turns, a line each: what was asked, searched, found and called, without what is private.

Lines go to a file or a function. `toolsearch eval record` makes labelled cases of them, `toolsearch eval replay` says
what another index would have found, and `toolsearch eval journals` what is never found and never called.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from toolsearch.calls import ToolCall, ToolResult
from toolsearch.catalog.tools import Tool
from toolsearch.events.facts import (
    Event,
    JudgedCall,
    ModelReplied,
    ReplyDiscarded,
    RunBegan,
    RunEnded,
    TextDelta,
    ToolReturned,
    ToolsRevealed,
    UserSaid,
)
from toolsearch.events.journal import read_event
from toolsearch.layers._recorded import RecordedTurn, TurnReader
from toolsearch.support import checks
from toolsearch.support.context import scope
from toolsearch.support.json_types import JsonObject
from toolsearch.support.redaction import redacted

__all__ = ["RecordedTurn", "Watched", "private", "record"]

CONVERSATIONS = 1_000  # that one object follows at once
log = logging.getLogger("toolsearch")

_MAIL = re.compile(r"[\w.%+'-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"(?<!\d)\+?\d(?:[ ./()-]{0,2}\d){5,}")
_SHORTEST = 6  # digits of a number that is taken for somebody's: of an account, a card, a telephone


def private(text: str) -> str:
    """The text without e-mail addresses, numbers of six digits or more, and what looks like a secret.

    Dates written as 2026-01-31 stay. Names of people and places are not recognised.
    """
    return _NUMBER.sub(_without_number, _MAIL.sub("[e-mail]", redacted(text)))


def _without_number(match: re.Match[str]) -> str:
    if not _DATE.search(match[0]):
        return "[number]"
    pieces, dates = _DATE.split(match[0]), [*_DATE.findall(match[0]), ""]
    hidden = ("[number]" if sum(map(str.isdigit, piece)) >= _SHORTEST else piece for piece in pieces)
    return "".join(piece + date for piece, date in zip(hidden, dates, strict=True))


class PlannedCall(Protocol):
    """What is decided about a call; a `CallPlan` is one."""

    @property
    def tool(self) -> Tool | None: ...
    @property
    def search(self) -> object: ...
    @property
    def arguments(self) -> JsonObject | None: ...


class AnswersCalls(Protocol):
    """What a loop of one's own needs of a `Session`."""

    @property
    def id(self) -> str: ...
    @property
    def mode(self) -> str: ...
    def decide(self, call: ToolCall) -> PlannedCall: ...
    def inner_calls(self, call: ToolCall) -> list[ToolCall]: ...
    def handle_all(
        self, calls: Iterable[ToolCall], *, cancelled: threading.Event | None = None
    ) -> list[ToolResult]: ...
    async def ahandle_all(
        self, calls: Iterable[ToolCall], *, cancelled: threading.Event | None = None
    ) -> list[ToolResult]: ...


Sink: TypeAlias = "str | os.PathLike[str] | Callable[[dict[str, object]], object]"


class record:  # noqa: N801  # called like a function, as the layers are
    """An observer that records each turn when it ends: `Agent(…, observe=record("turns.jsonl"))`.

    `to` is a file, to which a line of JSON is added for each turn, or a function that gets it as a dict. Recorded are
    the user's words, the searches with the ids of the tools they found, and the calls with their status; each text goes
    through `redact` first. Values of arguments are recorded only with `arguments=True`, results never. Ids of
    conversations are recorded as digests; users and tenants are not. `count` gives the tokens of a text, by default as
    `toolsearch.tokens.counter` does. For a loop of your own, see `watch`.
    """

    def __init__(
        self,
        to: Sink,
        *,
        redact: Callable[[str], str] = private,
        arguments: bool = False,
        count: Callable[[str], int] | None = None,
    ) -> None:
        if not isinstance(to, str | os.PathLike):
            checks.function("to", to, "that gets a turn as a dict, or the path of a file")
        checks.function("redact", redact, "from a text to what may be kept of it")
        checks.flag("arguments", arguments)
        self._to, self._redact, self._arguments = to, redact, arguments
        self._count = count or _counter()
        self._readers: OrderedDict[str, TurnReader] = OrderedDict()
        self._lock = threading.RLock()

    @staticmethod
    def of(
        journal: Iterable[Event | JsonObject],
        *,
        conversation: str = "",
        redact: Callable[[str], str] = private,
        arguments: bool = False,
        count: Callable[[str], int] | None = None,
    ) -> list[RecordedTurn]:
        """The turns of a journal: facts, or what a store has of them. Raises `StateError` for anything else."""
        reader = TurnReader(conversation, count or _counter(), arguments)
        turns: list[RecordedTurn] = []
        for at, fact in enumerate(journal):
            turns += reader.take(read_event(fact, at) if isinstance(fact, Mapping) else fact)
        return [turn.rewritten(redact) for turn in [*turns, *reader.rest()]]

    def __call__(self, event: Event | TextDelta | ReplyDiscarded) -> None:
        self._observe(scope().conversation, [event])

    def watch(self, session: AnswersCalls) -> Watched:
        """For a loop of your own: an object that answers calls as the session does, and records them."""
        return Watched(session, self._observe)

    def _observe(self, conversation: str, events: Iterable[Event | TextDelta | ReplyDiscarded]) -> None:
        with self._lock:
            reader = self._readers.setdefault(conversation, TurnReader(conversation, self._count, self._arguments))
            self._readers.move_to_end(conversation)
            for event in events:
                for turn in reader.take(event):
                    self._write(turn)
            while len(self._readers) > CONVERSATIONS:
                _, left = self._readers.popitem(last=False)
                for turn in left.rest():
                    self._write(turn)

    def _write(self, turn: RecordedTurn) -> None:
        data = turn.rewritten(self._redact).as_json()
        if isinstance(self._to, str | os.PathLike):
            with Path(self._to).open("a", encoding="utf-8", errors="replace", newline="\n") as file:
                file.write(json.dumps(data, ensure_ascii=False, default=str) + "\n")
        else:
            self._to(data)


class Watched:
    """A session whose calls are recorded, for a loop of your own: see `record.watch`.

    Tell it what the user `said` and when the turn has come to its `end`. A failure of the recording is logged, and the
    call is answered all the same.
    """

    def __init__(self, session: AnswersCalls, observe: Callable[[str, Iterable[Event]], None]) -> None:
        self.session = session
        self._observe = observe
        self._turns = self._calls = 0

    def said(self, text: str) -> None:
        """A turn begins with the user's message."""
        self._turns += 1
        facts: list[Event] = [RunBegan(str(self._turns), time.time()), UserSaid(text)]
        self._note([*facts, ToolsRevealed((), {"mode": self.session.mode})])

    def end(self, reason: str = "answered") -> None:
        """The turn is over, and is written."""
        self._note([RunEnded(reason)])

    def handle(self, call: ToolCall, *, cancelled: threading.Event | None = None) -> ToolResult:
        """As `Session.handle`."""
        return self.handle_all([call], cancelled=cancelled)[0]

    async def ahandle(self, call: ToolCall, *, cancelled: threading.Event | None = None) -> ToolResult:
        """As `Session.ahandle`."""
        return (await self.ahandle_all([call], cancelled=cancelled))[0]

    def handle_all(self, calls: Iterable[ToolCall], *, cancelled: threading.Event | None = None) -> list[ToolResult]:
        """As `Session.handle_all`."""
        asked = list(calls)
        judged = self._judged(asked)
        results = self.session.handle_all(asked, cancelled=cancelled)
        self._note_results(judged, results)
        return results

    async def ahandle_all(
        self, calls: Iterable[ToolCall], *, cancelled: threading.Event | None = None
    ) -> list[ToolResult]:
        """As `Session.ahandle_all`."""
        asked = list(calls)
        judged = self._judged(asked)
        results = await self.session.ahandle_all(asked, cancelled=cancelled)
        self._note_results(judged, results)
        return results

    def _judged(self, calls: Sequence[ToolCall]) -> list[list[JudgedCall]]:
        """The calls as the loop would record them; those inside a call that holds several, one by one."""
        try:
            return [[self._judge(inner) for inner in self.session.inner_calls(call) or [call]] for call in calls]
        except Exception:
            log.exception("calls of the session %r could not be recorded", self.session.id)
            return []

    def _judge(self, call: ToolCall) -> JudgedCall:
        plan = self.session.decide(call)
        self._calls += 1
        judged = JudgedCall(str(self._calls), call.name, call.arguments, kind="answered")
        if plan.search is not None:
            return JudgedCall(judged.id, call.name, call.arguments, kind="search")
        if (tool := plan.tool) is not None:
            return JudgedCall(judged.id, call.name, call.arguments, tool=tool.id, given=plan.arguments)
        return judged

    def _note_results(self, judged: Sequence[Sequence[JudgedCall]], results: Sequence[ToolResult]) -> None:
        facts: list[Event] = [ModelReplied(calls=tuple(call for calls in judged for call in calls))]
        for calls, result in zip(judged, results, strict=False):
            is_joined = len(calls) > 1 and isinstance(result.data, list) and len(result.data) == len(calls)
            datas = result.data if is_joined and isinstance(result.data, list) else [result.data] * len(calls)
            facts += [
                ToolReturned(call.id, result.status, "" if place else result.content, data)
                for place, (call, data) in enumerate(zip(calls, datas, strict=True))
            ]
        self._note(facts)

    def _note(self, facts: Sequence[Event]) -> None:
        try:
            self._observe(self.session.id, facts)
        except Exception:
            log.exception("a turn of the session %r could not be recorded", self.session.id)


def _counter() -> Callable[[str], int]:
    from toolsearch.tokens import counter

    return counter().count
