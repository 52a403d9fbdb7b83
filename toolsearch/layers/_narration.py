"""What the events of a conversation tell a person, line by line: redacted, cut, and with control characters shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolsearch.events.facts import (
    Compacted,
    JudgedCall,
    ModelCalled,
    ModelReplied,
    Noted,
    ReplyDiscarded,
    RunBegan,
    RunEnded,
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
from toolsearch.support.text import text_of

__all__ = ["Line", "Story"]

Tools = ToolsFound | ToolsRevealed | ToolsUnloaded
Decided = ToolWaiting | ToolApproved | ToolDenied


@dataclass(frozen=True, slots=True)
class Line:
    """A word for what happened, what there is to say of it, and whether it went wrong. The text may have ends of line.

    The words are turn, user, thinks, model, usage, call, search, loaded, unloaded, changed, result, waits, decided,
    note, discarded, end and value.
    """

    word: str
    text: str
    wrong: bool = False


@dataclass(slots=True)
class Story:
    """One conversation, event by event. It keeps what the next line needs: the calls by name, and counts of the turn.

    Arguments, results and reasoning are cut to so many `characters`; what was said is not.
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
    _said: str = ""  # the last words of the model

    def tell(self, event: Any) -> list[Line]:
        """What this event tells. What a reply cost is told after it."""
        held = [] if isinstance(event, ModelReplied | ModelCalled | ReplyDiscarded) else list(self._cost())
        return held + list(self._told(event))

    def whole(self, text: str) -> str:
        """A text as people may see it, not cut."""
        return visible(self.redact(text))

    def _cut(self, text: str) -> str:
        return excerpt(text, self.characters, self.redact)

    def _told(self, event: Any) -> Iterator[Line]:
        match event:
            case RunBegan():
                yield self._begin(event)
            case UserSaid():
                more = f"\n(and {len(event.parts)} more: an image, a file or the like)" if event.parts else ""
                yield Line("user", self.whole(event.text) + more)
            case ModelCalled():
                self._usage += event.usage
                self._costs.append(event)
            case ModelReplied():
                yield from self._reply(event)
            case ReplyDiscarded():
                told = f"what was shown of this reply counts for nothing: {self._cut(event.reason)}"
                yield Line("discarded", told, wrong=True)
            case ToolsFound() | ToolsRevealed() | ToolsUnloaded():
                yield from self._tools(event)
            case ToolReturned():
                by = f"by the {self._cut(event.by)}" if event.by else _seconds(event.seconds)
                told = f"{self._name(event.call_id)} {event.status}, {by}: {self._cut(event.content)}"
                yield Line("result", told, event.status != "ok")
            case ToolWaiting() | ToolApproved() | ToolDenied():
                yield self._decision(event)
            case Compacted():
                summary = f": {self._cut(event.summary)}" if event.summary else ""
                yield Line("note", f"earlier messages are shown no more{summary}")
            case Noted(note=Mapping() as note) if "outcome" in note:
                about = f" ({self._name(note['call'])})" if "call" in note else ""
                yield Line("note", self._cut(f"{event.layer}: {note['outcome']}{about}"))
            case RunEnded():
                yield from self._end(event)
            case _:
                pass

    def _begin(self, event: RunBegan) -> Line:
        self._began, self._rounds, self._calls, self._usage, self._said = event.at, 0, 0, Usage(), ""
        whom = f"for {event.user}" if event.user else ""
        return Line("turn", self.whole(" ".join(filter(None, (self.id, whom)))))

    def _cost(self) -> Iterator[Line]:
        for fact in self._costs:
            purpose = "" if fact.purpose == "chat" else f"{fact.purpose}: "
            used = f"{fact.usage.input_tokens:,} tokens in, {fact.usage.output_tokens:,} out"
            cached = f" ({fact.usage.cached_tokens:,} cached)" if fact.usage.cached_tokens else ""
            failed = f", failed: {self._cut(fact.error)}" if fact.error else ""
            told = f"{purpose}{fact.model or 'model'}, {used}{cached}, {_seconds(fact.seconds)}{failed}"
            yield Line("usage", visible(told), bool(fact.error))
        self._costs.clear()

    def _reply(self, event: ModelReplied) -> Iterator[Line]:
        self._said = event.text or self._said
        if event.reasoning:
            yield Line("thinks", self._cut(event.reasoning))
        if event.text:
            yield Line("model", self.whole(event.text))
        yield from self._cost()
        self._rounds += bool(event.calls)
        for call in event.calls:
            self._calls += 1
            self._names[call.id] = call.name
            told = f"{self._cut(call.name)} {self._arguments(call)}"
            yield Line("search" if call.kind == "search" else "call", told)

    def _arguments(self, call: JudgedCall) -> str:
        given = call.arguments if call.given is None else call.given
        return self._cut(text_of({} if given is None else given))

    def _tools(self, event: Tools) -> Iterator[Line]:
        loaded = () if isinstance(event, ToolsUnloaded) else event.loaded
        unloaded = () if isinstance(event, ToolsRevealed) else event.unloaded
        told = event.notices if isinstance(event, ToolsUnloaded) else ()
        if loaded or isinstance(event, ToolsFound):
            yield Line("loaded", self._cut(", ".join(loaded) or "nothing new"))
        if unloaded:
            yield Line("unloaded", self._cut(", ".join(unloaded)))
        if told:
            yield Line("changed", self._cut("; ".join(told)))

    def _decision(self, event: Decided) -> Line:
        name = self._name(event.call_id)
        if isinstance(event, ToolWaiting):
            return Line("waits", f"{name} ({self._cut(event.kind)}): {self._cut(event.question)}")
        who = f" by {self._cut(event.actor)}" if event.actor else ""
        if isinstance(event, ToolDenied):
            why = f": {self._cut(event.reason)}" if event.reason else ""
            return Line("decided", f"{name} declined{'' if event.expired else who}{why}", wrong=True)
        lasts = f", for the {self._cut(event.remember)}" if event.remember else ""
        changed = "" if event.arguments is None else f", with {self._cut(text_of(dict(event.arguments)))}"
        return Line("decided", f"{name} approved{who}{lasts}{changed}")

    def _end(self, event: RunEnded) -> Iterator[Line]:
        count = f"{_number(self._rounds, 'round')}, {_number(self._calls, 'call')}"
        used = f"{self._usage.input_tokens:,} tokens in, {self._usage.output_tokens:,} out"
        took = f", {_seconds(event.at - self._began)}" if 0 < self._began <= event.at else ""
        text = "\n" + self.whole(event.text) if event.text and event.text != self._said else ""
        yield Line("end", f"{self._cut(event.reason)}; {count}; {used}{took}{text}", event.reason == "failed")
        if event.value is not None:
            yield Line("value", self._cut(text_of(event.value)))
        self._names.clear()

    def _name(self, call_id: Any) -> str:
        return self._cut(self._names.get(str(call_id), str(call_id)))


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
