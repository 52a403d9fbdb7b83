"""Processors: rewrite, redact or refuse what goes into a model call, what comes out of it, and what is stored."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

from toolsearch.calls import JsonPart, Part, ResourcePart, TextPart
from toolsearch.errors import SetupError, ToolSearchError
from toolsearch.events.facts import (
    Answers,
    Compacted,
    Ending,
    Event,
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
from toolsearch.layers._shared import result_of
from toolsearch.protocols import Do, Layer, ModelSteps, Record
from toolsearch.support import checks
from toolsearch.support.text import plain_json

__all__ = ["Refuse", "Rewrite", "processors", "redact"]

Text: TypeAlias = Callable[[str], str]
T = TypeVar("T")
R = TypeVar("R", Reply, ModelReplied)


@dataclass(frozen=True, slots=True)
class Refuse:
    """Ends the turn with this reason; `text` is what the user reads."""

    reason: str = "refused"
    text: str = "I cannot answer this."

    def __post_init__(self) -> None:
        checks.text("reason", self.reason)
        checks.text("text", self.text)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A function from a text to a text, quick and without side effects.

    `look_back` is the length, in characters, of the longest piece that the function changes: with it a reply can be
    shown while it comes in, that many characters behind. Without it a reply is shown when it is whole.
    """

    function: Text
    look_back: int | None = None

    def __post_init__(self) -> None:
        checks.function("function", self.function, "from a text to a text")
        checks.whole("look_back", self.look_back, 0, none="to show a reply when it is whole")


def redact(*patterns: str | re.Pattern[str], by: str = "[redacted]", look_back: int | None = 64) -> Rewrite:
    """A `Rewrite` that puts `by` in place of each match of one of the patterns, which are regular expressions.

    `look_back` is the most characters a match has, for replies that are shown as they come in.
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


def _compiled(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError, RecursionError, OverflowError) as error:
        raise SetupError(f"redact() needs regular expressions, not {checks.shown(pattern)}: {error}") from None
    if not isinstance(compiled.pattern, str):
        raise SetupError(f"redact() needs regular expressions of text, not of bytes: {checks.shown(pattern)}")
    return compiled


Processor: TypeAlias = Rewrite | Callable[[T], T | Refuse | Awaitable[T | Refuse | None] | None]


def processors(
    into: Iterable[Processor[CallModel]] = (),
    out: Iterable[Processor[Reply]] = (),
    stored: Iterable[Rewrite | Text] = (),
) -> Layer:
    """A layer that works on what goes into each model call, what comes out of it, and what is stored.

    `into`: functions from a `CallModel` to a changed one, None, or `Refuse`; a `Rewrite` changes the texts that the
    model reads: what the user said, results, notes, earlier replies. The journal stays as it is. `out`: functions from
    a `Reply` to another one, None, or `Refuse`; a `Rewrite` changes its text and reasoning. Both may be async, and
    apply to helpers' calls too. `stored`: `Rewrite`s or functions of a text, for the texts of facts before they are
    stored or shown: what the user said, replies, results with their data, summaries, questions, errors; but not the
    arguments of calls, which tools need. The processors of a list are applied in its order.

    Nothing of a reply is shown before it is whole, unless all of `out` are `Rewrite`s with a `look_back`. A reply whose
    text changes is sent back without the provider's own message. A processor that raises ends the turn.
    """
    texts = _checked("stored", stored)
    functions = tuple(each.function if isinstance(each, Rewrite) else each for each in texts)
    return _Processors(_checked("into", into), _checked("out", out), functions)


def _checked(option: str, processors: Iterable[T]) -> tuple[T, ...]:
    """The processors of one option; raises `SetupError` for what is not one."""
    given: object = processors
    if not isinstance(given, Iterable):
        raise SetupError(
            f"{option} must be a list of processors, as in [{checks.shown(given)}], not {checks.shown(given)}"
        )
    chosen = tuple(processors)
    for each in chosen:
        if not isinstance(each, Rewrite):
            checks.function(f"each processor in {option}", each, "or a Rewrite")
    return chosen


@dataclass(frozen=True)
class _Processors:
    into: tuple[Processor[CallModel], ...]
    out: tuple[Processor[Reply], ...]
    stored: tuple[Text, ...]
    name: str = "processors"

    @property
    def buffers(self) -> bool:
        return any(not isinstance(each, Rewrite) or each.look_back is None for each in self.out)

    def pieces(self) -> _Pieces:
        """Only asked for if nothing buffers, so all of `out` are rewrites then."""
        return _Pieces([each for each in self.out if isinstance(each, Rewrite)])

    def around_model(self, request: CallModel) -> ModelSteps:
        processed = yield from _process(self.into, request, _rewritten_request)
        if isinstance(processed, Refuse):
            return (yield from self._refuse(request, processed))
        reply = yield processed
        if not is_reply(reply) or reply.stop == "ended":
            return reply
        answer = yield from _process(self.out, reply, _rewritten_reply)
        return (yield from self._refuse(request, answer)) if isinstance(answer, Refuse) else answer

    def _refuse(self, request: CallModel, refusal: Refuse) -> Generator[Record, object, Reply]:
        """Ends the turn; a helper that asked goes on without a reply."""
        if request.purpose != "chat":
            raise ToolSearchError(f"a processor refused the call for {request.purpose!r}: {refusal.reason}")
        yield Record(Ending(refusal.reason, refusal.text, self.name))
        return Reply(refusal.text, stop="ended")

    def as_stored(self, fact: Event) -> Event:
        for function in self.stored:
            fact = _redacted(fact, function)
        return fact


def _process(
    chosen: tuple[Processor[T], ...], value: T, rewritten: Callable[[T, Text], T]
) -> Generator[Do, object, T | Refuse]:
    """The value after all processors, or the first refusal."""
    kind = type(value)
    for each in chosen:
        if isinstance(each, Rewrite):
            value = rewritten(value, each.function)
            continue
        changed = yield from result_of(partial(each, value))
        if isinstance(changed, Refuse):
            return changed
        if isinstance(changed, kind):
            value = changed
        elif changed is not None:
            wanted = f"a {kind.__name__}, None or Refuse is needed"
            raise SetupError(f"the processor {each!r} returned {changed!r} where {wanted}")
    return value


# -- texts -------------------------------------------------------------------------------------------------------


def _rewritten_request(request: CallModel, function: Text) -> CallModel:
    return replace(request, transcript=tuple(_rewritten(message, function) for message in request.transcript))


def _rewritten(message: Message, function: Text) -> Message:
    match message:
        case UserSaid():
            return _rewritten_said(message, function)
        case Note():
            return Note(function(message.text))
        case Answers():
            return Answers(tuple(_rewritten_result(each, function) for each in message.results))
        case ModelReplied():
            return _rewritten_reply(message, function)


def _rewritten_said(said: UserSaid, function: Text) -> UserSaid:
    parts = tuple(_deep(part, function) if part.get("type") == "text" else part for part in said.parts)
    return replace(said, text=function(said.text), parts=parts)


def _rewritten_reply(reply: R, function: Text) -> R:
    """A reply with other texts; the provider's own message has the old ones."""
    text, reasoning = function(reply.text), function(reply.reasoning)
    if (text, reasoning) == (reply.text, reply.reasoning):
        return reply
    return replace(reply, text=text, reasoning=reasoning, raw=None)


def _rewritten_result(result: ToolReturned, function: Text) -> ToolReturned:
    parts = tuple([_rewritten_part(part, function) for part in result.parts])
    return replace(result, content=function(result.content), data=_deep(result.data, function), parts=parts)


def _rewritten_part(part: Part, function: Text) -> Part:
    """A part with other texts; images and other data stay."""
    match part:
        case TextPart():
            return TextPart(function(part.text))
        case JsonPart():
            return JsonPart(_deep(part.value, function))
        case ResourcePart():
            texts = {name: function(getattr(part, name)) for name in ("uri", "name", "description")}
            return replace(part, text=None if part.text is None else function(part.text), **texts)
        case _:
            return part


def _redacted(fact: Event, function: Text) -> Event:
    """A fact without what must not be stored."""
    match fact:
        case UserSaid():
            return _rewritten_said(fact, function)
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


def _deep(value: object, function: Text) -> Any:
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
    """Rewrites a reply while it comes in. Text and reasoning are separate, each with what is held back of it."""

    def __init__(self, rewrites: Iterable[Rewrite]) -> None:
        self._rewrites = tuple(rewrites)
        self._ends: dict[Literal["text", "reasoning"], list[_HeldBack]] = {}

    def take(self, delta: TextDelta) -> list[TextDelta]:
        if not _is_delta(delta) or not self._rewrites:
            return [delta]
        text = delta.text
        for end in self._ends.setdefault(delta.kind, [_HeldBack(each) for each in self._rewrites]):
            text = end.take(text)
        return [replace(delta, text=text)] if text else []

    def rest(self) -> list[TextDelta]:
        left: list[TextDelta] = []
        for kind, ends in self._ends.items():
            text = ""
            for end in ends:
                text = end.take(text) + end.rest()
            if text:
                left.append(TextDelta(text, kind))
        return left


def _is_delta(piece: object) -> bool:
    """Whether a model, which may be anybody's, gave a delta at all."""
    return isinstance(piece, TextDelta)


class _HeldBack:
    """The end of a text, in which a match may go on.

    A match can go on for as long as the reply does. So after an attempt that showed nothing, the next one waits until
    a quarter more has come: the work grows with the length of the reply, and not with its square.
    """

    def __init__(self, rewrite: Rewrite) -> None:
        self._function, self._look_back = rewrite.function, rewrite.look_back or 0
        self._pieces: list[str] = []
        self._length = 0
        self._next = 0  # the length at which the next attempt is worth its work

    def take(self, text: str) -> str:
        """The text that can be shown now, rewritten: up to a place that no match spans."""
        self._pieces.append(text)
        self._length += len(text)
        if self._length <= max(self._look_back, self._next):
            return ""
        whole = "".join(self._pieces)
        place = len(whole) - self._look_back
        before, after = whole[:place], whole[place:]
        shown = self._function(before)
        if shown + self._function(after) != self._function(whole):
            self._pieces, self._next = [whole], len(whole) * 5 // 4
            return ""
        self._pieces, self._length, self._next = [after], len(after), 0
        return shown

    def rest(self) -> str:
        text, self._pieces, self._length, self._next = "".join(self._pieces), [], 0, 0
        return self._function(text)
