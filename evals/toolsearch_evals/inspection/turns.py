"""The facts of a conversation, turn by turn: the steps of each, as people read them, redacted and cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolsearch.events.facts import (
    Compacted,
    Event,
    JudgedCall,
    ModelCalled,
    ModelReplied,
    Noted,
    RunBegan,
    RunEnded,
    ToolApproved,
    ToolDenied,
    ToolReturned,
    ToolsFound,
    ToolsRevealed,
    ToolsUnloaded,
    ToolWaiting,
    UserSaid,
)
from toolsearch.layers import RecordedTurn, record
from toolsearch_evals.inspection.rounds import CacheReader
from toolsearch_evals.inspection.steps import Step, Turn, Words, filled, search_step, turn_of
from toolsearch_evals.recording.files import Damaged
from toolsearch_evals.recording.needs import needs_of

__all__ = ["turns_of_facts"]

_BESIDE_TOOLS = ("bridge", "native")  # ways of delivery that leave the list of tools as it is
_WRONG = (TypeError, ValueError, AttributeError, KeyError, IndexError)  # what a value of the wrong type leads to


def turns_of_facts(
    conversation: str, facts: Sequence[Event], words: Words, damaged: Damaged
) -> Iterator[tuple[Turn, RecordedTurn | None]]:
    """The turns of a journal in order, each with what `record` keeps of it; None if that is nothing.

    A fact whose values are of the wrong type is told, and
    left out.
    """
    cache = CacheReader()
    mode = ""
    for number, part in enumerate(_parts(facts), 1):
        where = f"the conversation {conversation!r}, turn {number}"
        recorded = _recorded(part, conversation, words, where, damaged)
        if recorded is not None:
            mode = recorded.mode or mode
            recorded = replace(recorded, turn=number, mode=mode)
        reader = _TurnReader(words, cache, recorded)
        for event in part:
            try:
                reader.take(event)
            except _WRONG as error:
                damaged(f"{where}: a {type(event).__name__} is not as it should be: {type(error).__name__}")
        yield turn_of(number, reader.steps, mode), recorded


def _recorded(
    part: Sequence[Event], conversation: str, words: Words, where: str, damaged: Damaged
) -> RecordedTurn | None:
    try:
        return next(iter(record.of(part, conversation=conversation, redact=words.redact)), None)
    except _WRONG as error:
        damaged(f"{where} is in no table, as a fact is not as it should be: {type(error).__name__}")
        return None


def _parts(facts: Iterable[Event]) -> Iterator[list[Event]]:
    """The facts of each turn. What comes after the end of one and before the next belongs to it."""
    part: list[Event] = []
    run = ""
    for event in facts:
        if isinstance(event, RunBegan) and event.run != run:
            if part:
                yield part
            part, run = [], event.run
        part.append(event)
    if part:
        yield part


@dataclass
class _TurnReader:
    """Makes steps of the facts of one turn. A call is a step where it was made; its answer is put into that step."""

    words: Words
    cache: CacheReader
    recorded: RecordedTurn | None
    steps: list[Step] = field(default_factory=list)
    _calls: dict[str, Step] = field(default_factory=dict)
    _rounds: list[Step] = field(default_factory=list)  # calls of a model whose reply has not come
    _searches: int = 0
    _answered: str = ""

    def take(self, event: Event) -> None:
        cut = self.words.cut
        match event:
            case RunBegan():
                who = cut(event.user) if event.user and self.words.names_people else ""
                self._add("began", at=event.at, user=who)
            case UserSaid():
                self._add("user", at=event.at, text=cut(event.text), more=len(event.parts))
            case ModelCalled():
                step = {"kind": "round", **self.cache.round_of(event), "error": cut(event.error)}
                self.steps.append(filled(step))
                self._rounds.append(self.steps[-1])
            case ModelReplied():
                self._reply(event)
            case ToolsFound() | ToolsRevealed() | ToolsUnloaded():
                self._tools(event)
            case ToolReturned():
                self._answer(event)
            case ToolWaiting() | ToolApproved() | ToolDenied():
                self._decision(event)
            case Compacted():
                self.cache.lost_by("earlier messages were left out")
                self._add(
                    "note", at=event.at, text=f"Earlier messages are no longer shown. {cut(event.summary)}".strip()
                )
            case Noted(note=Mapping() as note) if "outcome" in note:
                self._add("note", at=event.at, text=cut(f"{event.layer}: {note['outcome']}"))
            case RunEnded():
                text = "" if event.text == self._answered else cut(event.text)
                self._add("end", at=event.at, reason=cut(event.reason), text=text)
            case _:
                pass

    def _add(self, kind: str, **values: Any) -> Step:
        step = filled({"kind": kind, **values})
        self.steps.append(step)
        return step

    def _reply(self, event: ModelReplied) -> None:
        said = {"text": self.words.cut(event.text), "reasoning": self.words.cut(event.reasoning)}
        self._answered = event.text or self._answered
        last = next((each for each in reversed(self._rounds) if each.get("purpose", "chat") == "chat"), None)
        if last is None:
            last = self._add("round", at=event.at, model=event.model)
        last.update(filled({**said, "stop": event.stop if event.stop not in ("stop", "tool_calls") else ""}))
        self._rounds.clear()
        for call in event.calls:
            self._calls[call.id] = self._search() if call.kind == "search" else self._call(call)

    def _search(self) -> Step:
        """The search is in the record already, in the order of the searches."""
        at, self._searches = self._searches, self._searches + 1
        recorded = self.recorded
        if recorded is None or at >= len(recorded.searches):
            return self._add("search")
        self.steps.append(search_step(recorded.searches[at], self.words, needs_of(recorded)[at]))
        return self.steps[-1]

    def _call(self, call: JudgedCall) -> Step:
        return self._add(
            "call",
            tool=call.tool,
            name=self.words.cut(call.name),
            arguments=self.words.arguments(call.shown_arguments),
            action=call.marks.is_action,
        )

    def _answer(self, event: ToolReturned) -> None:
        step = self._calls.get(event.call_id)
        if step is None:
            step = self._add("call", name=self.words.cut(event.call_id))
        answer = {"status": event.status, "by": event.by, "seconds": event.seconds, "answered": event.at}
        tokens = {} if step["kind"] == "search" else {"tokens": self.words.tokens(event.content)}  # counted already
        step.update(filled({**answer, **tokens, "answer": self.words.cut(event.content)}))

    def _tools(self, event: ToolsFound | ToolsRevealed | ToolsUnloaded) -> None:
        loaded = () if isinstance(event, ToolsUnloaded) else event.loaded
        unloaded = () if isinstance(event, ToolsRevealed) else event.unloaded
        notices = [self.words.cut(each) for each in event.notices] if isinstance(event, ToolsUnloaded) else []
        is_in_requests = self.recorded is None or self.recorded.mode not in _BESIDE_TOOLS
        if (loaded or unloaded) and is_in_requests:
            self.cache.lost_by("tools were loaded" if loaded else "tools were unloaded")
        if isinstance(event, ToolsFound):
            loaded = ()  # they stand with the search
        if loaded or unloaded or notices:
            self._add("tools", loaded=list(loaded), unloaded=list(unloaded), notices=notices)

    def _decision(self, event: ToolWaiting | ToolApproved | ToolDenied) -> None:
        cut = self.words.cut
        call = self._calls.get(event.call_id, {})
        if isinstance(event, ToolWaiting):
            asks, question, by = event.kind, cut(event.question), cut(event.by)
            self._add("approval", at=event.at, of=_name(call), asks=asks, question=question, by=by, decision="waits")
            return
        waiting = next(
            (s for s in reversed(self.steps) if s["kind"] == "approval" and s.get("of") == _name(call)), None
        )
        is_open = waiting is not None and waiting["decision"] == "waits"
        step = waiting if is_open and waiting is not None else self._add("approval", of=_name(call), at=event.at)
        who = cut(event.actor) if self.words.names_people else ""
        if isinstance(event, ToolDenied):
            decided = {"decision": "expired" if event.expired else "declined", "why": cut(event.reason)}
        else:
            changed = "" if event.arguments is None else self.words.arguments(event.arguments)
            decided = {"decision": "approved", "changed": changed, "remember": event.remember}
        step.update(filled({**decided, "actor": who, "decided": event.at}))


def _name(call: Mapping[str, Any]) -> str:
    return str(call.get("tool") or call.get("name") or "")
