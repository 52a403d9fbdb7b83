"""Processors: what goes into a model call, what comes out of it, and what is kept, rewritten, redacted or refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from toolsearch.errors import SetupError, ToolSearchError
from toolsearch.events.facts import (
    Answers,
    Compacted,
    Ending,
    Message,
    ModelCalled,
    ModelReplied,
    Note,
    Reply,
    RunEnded,
    TextDelta,
    ToolReturned,
    ToolWaiting,
    UserSaid,
    is_reply,
)
from toolsearch.events.requests import CallModel
from toolsearch.protocols import Do, ModelSteps, Record
from toolsearch.support import checks
from toolsearch.support.text import plain_json

__all__ = ["Refuse", "Rewrite", "processors", "redact"]

Text = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Refuse:
    """The turn ends with this reason; `text` is what the user reads."""

    reason: str = "refused"
    text: str = "I cannot answer this."

    def __post_init__(self) -> None:
        checks.text("reason", self.reason)
        checks.text("text", self.text)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A function from a text to a text, quick and without side effects.

    With `look_back` a reply can be shown while it comes in, so many characters behind: what the function changes is
    never longer. Without it a reply is shown when it is whole.
    """

    function: Text
    look_back: int | None = None

    def __post_init__(self) -> None:
        checks.function("function", self.function, "from a text to a text")
        checks.whole("look_back", self.look_back, 0, none="to show a reply when it is whole")


def redact(*patterns: str | re.Pattern[str], by: str = "[redacted]", look_back: int | None = 64) -> Rewrite:
    """A `Rewrite` that puts `by` where one of the patterns, regular expressions, matches.

    `look_back` is how many characters a match has at most, for replies that are shown as they come in.
    """
    if not patterns:
        raise SetupError(r"redact() needs a pattern, as in redact(r'\b\d{16}\b')")
    checks.text("by", by)
    compiled = [_compiled(pattern) for pattern in patterns]

    def function(text: str) -> str:
        for pattern in compiled:
            text = pattern.sub(lambda _: by, text)
        return text

    return Rewrite(function, look_back)


def _compiled(pattern: Any) -> re.Pattern[str]:
    try:
        compiled: re.Pattern[Any] = re.compile(pattern)
    except (re.error, TypeError, RecursionError, OverflowError) as error:
        raise SetupError(f"redact() needs regular expressions, not {checks.shown(pattern)}: {error}") from None
    if not isinstance(compiled.pattern, str):
        raise SetupError(f"redact() needs regular expressions of text, not of bytes: {checks.shown(pattern)}")
    return compiled


def processors(
    into: Iterable[Rewrite | Callable[[CallModel], Any]] = (),
    out: Iterable[Rewrite | Callable[[Reply], Any]] = (),
    stored: Iterable[Rewrite | Text] = (),
) -> Any:
    """A layer that works on what goes into each model call, what comes out of it, and what is kept.

    `into`: functions from a `CallModel` to a changed one, None, or `Refuse`; a `Rewrite` changes the texts of what is
    shown: what the user said, results, notes, earlier replies. The journal stays as it is. `out`: functions from a
    `Reply` to another, None, or `Refuse`; a `Rewrite` changes its text and reasoning. Both may be async, and are asked
    for helpers' calls too. `stored`: a `Rewrite` or a function of a text, for the texts of facts before they are stored
    or shown: what the user said, replies, results with their data, summaries, questions, errors; not the arguments of
    calls, which tools need. Each list is gone through in order.

    Nothing of a reply is shown before it is whole, unless all of `out` are `Rewrite`s with a `look_back`. A reply whose
    text changes is sent back without the provider's own message. What raises ends the turn.
    """
    given: dict[str, tuple[Any, ...]] = {}
    for name, each in (("into", into), ("out", out), ("stored", stored)):
        if not isinstance(each, Iterable):
            raise SetupError(
                f"{name} must be a list of processors, as in [{checks.shown(each)}], not {checks.shown(each)}"
            )
        given[name] = tuple(each)
        for one in given[name]:
            if not isinstance(one, Rewrite):
                checks.function(f"each processor in {name}", one, "or a Rewrite")
    kept = tuple(one.function if isinstance(one, Rewrite) else one for one in given["stored"])
    return _Processors(given["into"], given["out"], kept)


@dataclass(frozen=True)
class _Processors:
    into: tuple[Any, ...]
    out: tuple[Any, ...]
    stored: tuple[Text, ...]
    name: str = "processors"

    @property
    def buffers(self) -> bool:
        return any(not isinstance(one, Rewrite) or one.look_back is None for one in self.out)

    def pieces(self) -> _Pieces:
        return _Pieces(self.out)

    def around_model(self, request: CallModel) -> ModelSteps:
        told = yield from _through(self.into, request, _rewritten_request)
        if isinstance(told, Refuse):
            return (yield from self._refused(request, told))
        reply = yield told
        if not is_reply(reply) or reply.stop == "ended":
            return reply
        told = yield from _through(self.out, reply, _rewritten_reply)
        return (yield from self._refused(request, told)) if isinstance(told, Refuse) else told

    def _refused(self, request: CallModel, told: Refuse) -> Generator[Record, Any, Reply]:
        if request.purpose != "chat":  # whoever asked goes on without
            raise ToolSearchError(f"a processor refused the call for {request.purpose!r}: {told.reason}")
        yield Record(Ending(told.reason, told.text, self.name))
        return Reply(told.text, stop="ended")

    def as_stored(self, fact: Any) -> Any:
        for function in self.stored:
            fact = _redacted(fact, function)
        return fact


def _through(chosen: tuple[Any, ...], value: Any, rewritten: Callable[[Any, Text], Any]) -> Generator[Do, Any, Any]:
    """The value after all processors, or what the first refusal says."""
    kind = type(value)
    for one in chosen:
        if isinstance(one, Rewrite):
            value = rewritten(value, one.function)
            continue
        told = yield Do(partial(one, value))
        if isinstance(told, Refuse):
            return told
        if told is not None and not isinstance(told, kind):
            raise SetupError(f"the processor {one!r} gave {told!r} where a {kind.__name__}, None or Refuse is needed")
        value = value if told is None else told
    return value


# -- texts -------------------------------------------------------------------------------------------------------


def _rewritten_request(request: CallModel, function: Text) -> CallModel:
    return replace(request, transcript=tuple(_rewritten(message, function) for message in request.transcript))


def _rewritten(message: Message, function: Text) -> Message:
    match message:
        case UserSaid():
            parts = tuple(_deep(part, function) if part.get("type") == "text" else part for part in message.parts)
            return replace(message, text=function(message.text), parts=parts)
        case Note():
            return Note(function(message.text))
        case Answers():
            return Answers(tuple(_rewritten_result(each, function) for each in message.results))
        case ModelReplied():
            replied: ModelReplied = _rewritten_reply(message, function)
            return replied


def _rewritten_reply(reply: Any, function: Text) -> Any:
    """A reply with other texts; the provider's own message has the old ones."""
    text, reasoning = function(reply.text), function(reply.reasoning)
    if (text, reasoning) == (reply.text, reply.reasoning):
        return reply
    return replace(reply, text=text, reasoning=reasoning, raw=None)


def _rewritten_result(result: ToolReturned, function: Text) -> ToolReturned:
    return replace(result, content=function(result.content), data=_deep(result.data, function))


def _redacted(fact: Any, function: Text) -> Any:
    """A fact without what must not be kept."""
    match fact:
        case UserSaid():
            return _rewritten(fact, function)
        case ModelReplied():
            return replace(_rewritten_reply(fact, function), value=_deep(fact.value, function))
        case ToolReturned():
            return _rewritten_result(fact, function)
        case RunEnded():
            return replace(fact, text=function(fact.text), value=_deep(fact.value, function))
        case Ending():
            return fact if fact.text is None else replace(fact, text=function(fact.text))
        case Compacted():
            return replace(fact, summary=function(fact.summary))
        case ToolWaiting():
            return replace(fact, question=function(fact.question), data=_deep(fact.data, function))
        case ModelCalled():
            return replace(fact, error=function(fact.error))
        case _:
            return fact


def _deep(value: Any, function: Text) -> Any:
    """A value with every text in it rewritten; names in objects stay."""
    if isinstance(value, str):
        return function(value)
    if isinstance(value, Mapping):
        return {key: _deep(item, function) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_deep(item, function) for item in value]
    if value is None or isinstance(value, int | float):
        return value
    return _deep(plain_json(value), function)


# -- pieces ------------------------------------------------------------------------------------------------------


class _Pieces:
    """A reply that is rewritten while it comes in. Text and reasoning come apart, each with what is held back of it."""

    def __init__(self, rewrites: Iterable[Rewrite]) -> None:
        self._rewrites = tuple(rewrites)
        self._held: dict[str, list[_Held]] = {}

    def take(self, delta: Any) -> list[Any]:
        if not isinstance(delta, TextDelta) or not self._rewrites:
            return [delta]
        text = delta.text
        for held in self._held.setdefault(delta.kind, [_Held(one) for one in self._rewrites]):
            text = held.take(text)
        return [replace(delta, text=text)] if text else []

    def rest(self) -> list[Any]:
        left = []
        for kind, chain in self._held.items():
            text = ""
            for held in chain:
                text = held.take(text) + held.rest()
            if text:
                left.append(TextDelta(text, "reasoning" if kind == "reasoning" else "text"))
        return left


class _Held:
    """The end of a text, which a match may go on in."""

    def __init__(self, rewrite: Rewrite) -> None:
        self._function, self._look_back = rewrite.function, rewrite.look_back or 0
        self._text = ""

    def take(self, text: str) -> str:
        """What can be shown now, rewritten: up to a place that no match spans."""
        self._text += text
        place = len(self._text) - self._look_back
        if place <= 0:
            return ""
        before, after = self._text[:place], self._text[place:]
        shown = self._function(before)
        if shown + self._function(after) != self._function(self._text):
            return ""
        self._text = after
        return shown

    def rest(self) -> str:
        text, self._text = self._text, ""
        return self._function(text)
