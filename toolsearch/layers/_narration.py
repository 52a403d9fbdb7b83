"""The events of a conversation in lines for a person to read: redacted, cut, and with control characters visible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from toolsearch.events.facts import (
    Compacted,
    Event,
    JudgedCall,
    ModelCalled,
    ModelReplied,
    Noted,
    ReplyDiscarded,
    RunBegan,
    RunEnded,
    TextDelta,
    ToolApproved,
    ToolDenied,
    ToolReturned,
    ToolsFound,
    ToolsRevealed,
    ToolsUnloaded,
    ToolWaiting,
    Usage,
    UserSaid,
)
from toolsearch.support.redaction import excerpt, redacted, visible
from toolsearch.support.text import counted, text_of

__all__ = ["Narration", "TraceLine"]

Observed: TypeAlias = Event | TextDelta | ReplyDiscarded
Tools: TypeAlias = ToolsFound | ToolsRevealed | ToolsUnloaded
Decided: TypeAlias = ToolWaiting | ToolApproved | ToolDenied


@dataclass(frozen=True, slots=True)
class TraceLine:
    """A word for what happened, a text about it, which may have several lines, and whether it went wrong.

    The words are turn, user, thinks, model, usage, call, search, loaded, unloaded, changed, result, waits, decided,
    note, discarded, end and value.
    """

    word: str
    text: str
    wrong: bool = False


@dataclass(slots=True)
class Narration:
    """One conversation, event by event. It keeps what the next lines need: the names of calls, and counts of the turn.

    Arguments, results and reasoning are cut to that many `characters`; what was said is not.
    """

    id: str = ""
    characters: int = 400
    redact: Callable[[str], str] = redacted
    _names: dict[str, str] = field(default_factory=dict)
    _began: float = 0.0
    _rounds: int = 0
    _calls: int = 0
    _usage: Usage = field(default_factory=Usage)
    _costs: list[ModelCalled] = field(default_factory=list)  # of the reply that is to come
    _last_text: str = ""  # of the model

    def lines_of(self, event: Observed) -> list[TraceLine]:
        """The lines for an event. The cost of a reply comes after the reply."""
        costs = [] if isinstance(event, ModelReplied | ModelCalled | ReplyDiscarded) else list(self._cost_lines())
        return costs + list(self._lines(event))

    def uncut(self, text: str) -> str:
        """A text as people may see it, not cut."""
        return visible(self.redact(text))

    def _cut(self, text: str) -> str:
        return excerpt(text, self.characters, self.redact)

    def _lines(self, event: Observed) -> Iterator[TraceLine]:
        match event:
            case RunBegan():
                yield self._begin(event)
            case UserSaid():
                more = f"\n(and {len(event.parts)} more: an image, a file or the like)" if event.parts else ""
                yield TraceLine("user", self.uncut(event.text) + more)
            case ModelCalled():
                self._usage += event.usage
                self._costs.append(event)
            case ModelReplied():
                yield from self._reply(event)
            case ReplyDiscarded():
                text = f"what was shown of this reply counts for nothing: {self._cut(event.reason)}"
                yield TraceLine("discarded", text, wrong=True)
            case ToolsFound() | ToolsRevealed() | ToolsUnloaded():
                yield from self._tools(event)
            case ToolReturned():
                by = f"by the {self._cut(event.by)}" if event.by else _seconds(event.seconds)
                text = f"{self._name(event.call_id)} {event.status}, {by}: {self._cut(event.content)}"
                yield TraceLine("result", text, event.status != "ok")
            case ToolWaiting() | ToolApproved() | ToolDenied():
                yield self._decision(event)
            case Compacted():
                summary = f": {self._cut(event.summary)}" if event.summary else ""
                yield TraceLine("note", f"earlier messages are no longer shown{summary}")
            case Noted(note=Mapping() as note) if "outcome" in note:
                about = f" ({self._name(note['call'])})" if "call" in note else ""
                yield TraceLine("note", self._cut(f"{event.layer}: {note['outcome']}{about}"))
            case RunEnded():
                yield from self._end(event)
            case _:
                pass

    def _begin(self, event: RunBegan) -> TraceLine:
        self._began, self._rounds, self._calls, self._usage, self._last_text = event.at, 0, 0, Usage(), ""
        whom = f"for {event.user}" if event.user else ""
        return TraceLine("turn", self.uncut(" ".join(filter(None, (self.id, whom)))))

    def _cost_lines(self) -> Iterator[TraceLine]:
        for fact in self._costs:
            purpose = "" if fact.purpose == "chat" else f"{fact.purpose}: "
            used = f"{fact.usage.input_tokens:,} tokens in, {fact.usage.output_tokens:,} out"
            cached = f" ({fact.usage.cached_tokens:,} cached)" if fact.usage.cached_tokens else ""
            failed = f", failed: {self._cut(fact.error)}" if fact.error else ""
            text = f"{purpose}{fact.model or 'model'}, {used}{cached}, {_seconds(fact.seconds)}{failed}"
            yield TraceLine("usage", visible(text), bool(fact.error))
        self._costs.clear()

    def _reply(self, event: ModelReplied) -> Iterator[TraceLine]:
        self._last_text = event.text or self._last_text
        if event.reasoning:
            yield TraceLine("thinks", self._cut(event.reasoning))
        if event.text:
            yield TraceLine("model", self.uncut(event.text))
        yield from self._cost_lines()
        self._rounds += bool(event.calls)
        for call in event.calls:
            self._calls += 1
            self._names[call.id] = call.name
            text = f"{self._cut(call.name)} {self._arguments(call)}"
            yield TraceLine("search" if call.kind == "search" else "call", text)

    def _arguments(self, call: JudgedCall) -> str:
        arguments = call.shown_arguments
        return self._cut(text_of({} if arguments is None else arguments))

    def _tools(self, event: Tools) -> Iterator[TraceLine]:
        loaded = () if isinstance(event, ToolsUnloaded) else event.loaded
        unloaded = () if isinstance(event, ToolsRevealed) else event.unloaded
        changed = event.notices if isinstance(event, ToolsUnloaded) else ()
        if loaded or isinstance(event, ToolsFound):
            yield TraceLine("loaded", self._cut(", ".join(loaded) or "nothing new"))
        if unloaded:
            yield TraceLine("unloaded", self._cut(", ".join(unloaded)))
        if changed:
            yield TraceLine("changed", self._cut("; ".join(changed)))

    def _decision(self, event: Decided) -> TraceLine:
        name = self._name(event.call_id)
        if isinstance(event, ToolWaiting):
            return TraceLine("waits", f"{name} ({self._cut(event.kind)}): {self._cut(event.question)}")
        who = f" by {self._cut(event.actor)}" if event.actor else ""
        if isinstance(event, ToolDenied):
            why = f": {self._cut(event.reason)}" if event.reason else ""
            return TraceLine("decided", f"{name} declined{'' if event.expired else who}{why}", wrong=True)
        lasts = f", for the {self._cut(event.remember)}" if event.remember else ""
        changed = "" if event.arguments is None else f", with {self._cut(text_of(dict(event.arguments)))}"
        return TraceLine("decided", f"{name} approved{who}{lasts}{changed}")

    def _end(self, event: RunEnded) -> Iterator[TraceLine]:
        count = f"{counted(self._rounds, 'round')}, {counted(self._calls, 'call')}"
        used = f"{self._usage.input_tokens:,} tokens in, {self._usage.output_tokens:,} out"
        took = f", {_seconds(event.at - self._began)}" if 0 < self._began <= event.at else ""
        text = "\n" + self.uncut(event.text) if event.text and event.text != self._last_text else ""
        yield TraceLine("end", f"{self._cut(event.reason)}; {count}; {used}{took}{text}", event.reason == "failed")
        if event.value is not None:
            yield TraceLine("value", self._cut(text_of(event.value)))
        self._names.clear()

    def _name(self, call_id: object) -> str:
        return self._cut(self._names.get(str(call_id), str(call_id)))


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
