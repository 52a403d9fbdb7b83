"""What is recorded of a turn: the user's words, searches with what they found, calls with their outcome.

`TurnReader` makes it of facts, those of a journal or those that an observer gets. Values of arguments and results are
not in it, unless the arguments are asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from toolsearch.errors import StateError
from toolsearch.events.facts import (
    Event,
    JudgedCall,
    ModelCalled,
    ModelReplied,
    ReplyDiscarded,
    RunBegan,
    RunEnded,
    TextDelta,
    ToolReturned,
    ToolsFound,
    ToolsRevealed,
    ToolsUnloaded,
    Usage,
    UserSaid,
)
from toolsearch.support.json_types import JsonObject
from toolsearch.support.redaction import redacted_value

__all__ = ["RecordedCall", "RecordedSearch", "RecordedTurn", "TurnReader"]

FORMAT = 1
NO_USAGE = Usage()
_QUERY_KEYS = ("queries", "query", "names", "name", "q")  # the forms that a session reads
Text = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class RecordedSearch:
    """A search: its queries, and the ids of the tools that its answer loaded, had loaded already, and only named.

    `answer_tokens` are those of the text that the model read. `status` is that of the call, "ok" if it could run.
    `verdicts` are "found", "weak", "none" or "", one for each query, and `confidence` is by its id the probability that
    a tool fits; both are empty for an index that has none.
    """

    queries: tuple[str, ...]
    category: str = ""
    status: str = ""
    loaded: tuple[str, ...] = ()
    already: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    answer_tokens: int = 0
    verdicts: tuple[str, ...] = ()
    confidence: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def in_vain(self) -> bool:
        """Whether it ended in nothing: no tool was loaded, and none that fits was there already."""
        return not (self.loaded or self.already)

    @property
    def shown(self) -> tuple[str, ...]:
        """The tools of the answer in its order, each once."""
        return tuple(dict.fromkeys((*self.loaded, *self.already, *self.named)))


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call: the tool's id (empty if the call is of none), the name that the model wrote, and its status.

    `after` counts the searches of the turn that the model had seen answered. `by` is empty if the tool answered itself,
    as in `ToolReturned`. `arguments` are None unless they are kept.
    """

    tool: str
    name: str = ""
    status: str = ""
    after: int = 0
    by: str = ""
    arguments: object = None


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One turn. `conversation` is a digest of the conversation's id, `turn` counts from 1.

    `preselected` are tools that were loaded without a search. `mode` is how tools were delivered, where that is known.
    `ended` is the reason of the end, empty if the turn has not ended. `usage` is what the provider counted.
    """

    conversation: str
    turn: int
    said: str = ""
    searches: tuple[RecordedSearch, ...] = ()
    calls: tuple[RecordedCall, ...] = ()
    preselected: tuple[str, ...] = ()
    mode: str = ""
    ended: str = ""
    usage: Usage = NO_USAGE
    at: float = 0.0

    def rewritten(self, redact: Text) -> RecordedTurn:
        """The turn with every text that a person or the model wrote rewritten by a function. Ids of tools stay."""
        searches = [
            replace(each, queries=tuple(map(redact, each.queries)), category=redact(each.category))
            for each in self.searches
        ]
        calls = [
            replace(
                each,
                name=each.name if each.tool else redact(each.name),
                arguments=redacted_value(each.arguments, redact),
            )
            for each in self.calls
        ]
        return replace(self, said=redact(self.said), searches=tuple(searches), calls=tuple(calls))

    def as_json(self) -> dict[str, Any]:
        """JSON-ready data for `from_json`; what is empty is left out."""
        searches = [_filled(asdict(each)) for each in self.searches]
        calls = [{"tool": each.tool, **_filled(asdict(each))} for each in self.calls]
        data = {**asdict(self), "searches": searches, "calls": calls, "usage": _filled(asdict(self.usage))}
        return {"recorded": FORMAT, **_filled(data)}

    @classmethod
    def from_json(cls, data: JsonObject) -> RecordedTurn:
        """The turn from what `as_json` gave. Raises `StateError` for anything else."""
        if data.get("recorded") != FORMAT:
            raise StateError(f"this is not a recorded turn of the format {FORMAT}: record it anew")
        rest = {key: value for key, value in data.items() if key != "recorded"}
        try:
            searches = [RecordedSearch(**_tuples(each)) for each in rest.pop("searches", ())]
            calls = [RecordedCall(**each) for each in rest.pop("calls", ())]
            usage = Usage(**rest.pop("usage", {}))
            return cls(**_tuples(rest), searches=tuple(searches), calls=tuple(calls), usage=usage)
        except (TypeError, ValueError, AttributeError) as error:
            raise StateError(f"this recorded turn cannot be read: {error}") from None


def _filled(data: Mapping[str, Any]) -> dict[str, Any]:
    """What is not empty, its tuples as the lists that JSON has."""
    full = {key: value for key, value in data.items() if value not in (None, "", 0, (), [], {})}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in full.items()}


def _tuples(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


@dataclass(slots=True)
class _Search:
    """A search whose answer has not come yet."""

    queries: tuple[str, ...]
    category: str
    loaded: tuple[str, ...] = ()
    answer: ToolReturned | None = None


@dataclass(slots=True)
class _Call:
    judged: JudgedCall
    after: int
    answer: ToolReturned | None = None


@dataclass
class TurnReader:
    """Makes turns of a conversation's facts: `take` gives a turn when it has ended, `rest` one that has not.

    `count` gives the tokens of a text. `arguments` says whether the arguments of calls are kept.
    """

    conversation: str
    count: Callable[[str], int]
    arguments: bool = False
    _turn: int = 0
    _run: str | None = None
    _said: list[str] = field(default_factory=list)
    _searches: dict[str, _Search] = field(default_factory=dict)
    _calls: dict[str, _Call] = field(default_factory=dict)
    _preselected: list[str] = field(default_factory=list)
    _usage: Usage = field(default_factory=Usage)
    _mode: str = ""
    _at: float = 0.0

    def take(self, event: Event | TextDelta | ReplyDiscarded) -> list[RecordedTurn]:
        """The turns that this event ends."""
        match event:
            case RunBegan():
                ended = self.rest() if event.run != self._run else []
                self._run, self._at = event.run, event.at
                return ended
            case UserSaid():
                self._said.append(event.text)
            case ModelCalled():
                self._usage += event.usage
            case ModelReplied():
                self._take_calls(event.calls)
            case ToolsFound() | ToolsRevealed() | ToolsUnloaded():
                self._take_session(event)
            case ToolReturned():
                self._take_answer(event)
            case RunEnded():
                return [self._end(event.reason)]
            case _:  # nothing of it is recorded
                pass
        return []

    def rest(self) -> list[RecordedTurn]:
        """The turn that has begun and not ended, if there is one."""
        return [self._end("")] if self._said or self._calls or self._searches else []

    def _take_calls(self, calls: Iterable[JudgedCall]) -> None:
        seen = len(self._searches)
        for call in calls:
            if call.kind == "search":
                self._searches[call.id] = _Search(*_asked(call.arguments))
            else:
                self._calls[call.id] = _Call(call, seen)

    def _take_session(self, event: ToolsFound | ToolsRevealed | ToolsUnloaded) -> None:
        put = event.changes.get("+")
        states = (event.session, put if isinstance(put, Mapping) else {})
        self._mode = next((str(state["mode"]) for state in states if state.get("mode")), self._mode)
        if isinstance(event, ToolsRevealed):
            self._preselected += event.loaded
        elif isinstance(event, ToolsFound) and event.call_id in self._searches:
            self._searches[event.call_id].loaded = event.loaded

    def _take_answer(self, event: ToolReturned) -> None:
        if (call := self._searches.get(event.call_id) or self._calls.get(event.call_id)) is not None:
            call.answer = event

    def _end(self, reason: str) -> RecordedTurn:
        self._turn += 1
        turn = RecordedTurn(
            conversation=hashlib.sha256(self.conversation.encode("utf-8", "replace")).hexdigest()[:12],
            turn=self._turn,
            said="\n".join(self._said),
            searches=tuple(map(self._search, self._searches.values())),
            calls=tuple(map(self._call, self._calls.values())),
            preselected=tuple(self._preselected),
            mode=self._mode,
            ended=reason,
            usage=self._usage,
            at=self._at,
        )
        self._run, self._usage = None, Usage()
        for each in (self._said, self._searches, self._calls, self._preselected):
            each.clear()
        return turn

    def _search(self, of: _Search) -> RecordedSearch:
        if (answer := of.answer) is None:
            return RecordedSearch(of.queries, of.category, loaded=of.loaded)
        data = answer.data if isinstance(answer.data, Mapping) else {"loaded": of.loaded}
        loaded, already, named = (_ids(data.get(key)) for key in ("loaded", "already_loaded", "named"))
        verdicts = _ids(data.get("verdicts"))
        return RecordedSearch(
            of.queries,
            of.category,
            answer.status,
            loaded,
            already,
            named,
            answer_tokens=self.count(answer.content),
            verdicts=verdicts if any(verdicts) else (),
            confidence=_numbers(data.get("confidence")),
        )

    def _call(self, of: _Call) -> RecordedCall:
        given = of.judged.shown_arguments if self.arguments else None
        status, by = (of.answer.status, of.answer.by) if of.answer else ("", "")
        return RecordedCall(of.judged.tool, of.judged.name, status, of.after, by, given)


def _asked(arguments: object) -> tuple[tuple[str, ...], str]:
    """The queries and the category of a search as the model wrote them."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return (), ""
    if not isinstance(arguments, Mapping):
        return (), ""
    queries: list[str] = []
    for key in _QUERY_KEYS:
        value = arguments.get(key)
        queries += [text for text in (value if isinstance(value, list | tuple) else [value]) if isinstance(text, str)]
    category = arguments.get("category")
    return tuple(dict.fromkeys(queries)), category if isinstance(category, str) else ""


def _ids(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()


def _numbers(value: object) -> dict[str, float]:
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {str(key): number for key, number in pairs if isinstance(number, int | float)}
