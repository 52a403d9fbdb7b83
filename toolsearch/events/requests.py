"""What a conversation asks for, what a layer is given at each of the four seams, and what a person decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from toolsearch.calls import Caller, Status, ToolResult
from toolsearch.errors import SetupError
from toolsearch.events.facts import (
    Answers,
    JudgedCall,
    Message,
    ModelReplied,
    Note,
    ToolApproved,
    ToolDenied,
    ToolWaiting,
    Usage,
    UserSaid,
)
from toolsearch.events.turn_view import TurnView
from toolsearch.support.text import text_of

if TYPE_CHECKING:
    from toolsearch.catalog.tools import Shown, Tool

__all__ = [
    "Answer",
    "Approve",
    "Call",
    "CallModel",
    "CallTools",
    "Decision",
    "Deny",
    "Finished",
    "Paused",
    "Round",
    "Run",
    "Waiting",
    "mark_shown",
    "was_shown",
]


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask the model: what it is to read, and the tools it may call. Also what `around_model` is given.

    `schema` is a JSON Schema the answer must follow, where the provider can see to that itself; `options` go into the
    request as they are. `purpose` is what the call is billed as; a helper's call (a summary, a repair) has no tools.
    `places` are those of the messages in the journal; a layer that takes messages away takes their places too.
    `takes_schema` says that the model sees to `schema` itself; another one has to be told in words. `model` is the name
    of the model that will be asked, where it has one.
    """

    transcript: tuple[Message, ...]
    tools: tuple[Shown, ...] = ()
    system: str = ""
    purpose: str = "chat"
    schema: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    conversation_id: str = ""
    caller: Caller | None = None
    turn: TurnView = field(default_factory=TurnView)
    places: tuple[int, ...] = ()
    takes_schema: bool = False
    model: str = ""

    def helper(self, purpose: str, *more: Message) -> CallModel:
        """The request of a helper: the same, with `more` to read, and no tools.

        Calls and results become text: providers refuse them in a request that has no tools.
        """
        told = (*map(_as_text, self.transcript), *more)
        return replace(self, transcript=told, tools=(), purpose=purpose)

    def placed(self) -> list[tuple[int, Message]]:
        """The messages, each with the place in the journal where it begins.

        What a layer put behind them has no place yet: it counts as what comes next.
        """
        behind = (len(self.turn.journal),) * (len(self.transcript) - len(self.places))
        return list(zip((*self.places, *behind), self.transcript, strict=False))

    def showing(self, placed: Iterable[tuple[int, Message]]) -> CallModel:
        """The request with these messages, in this order."""
        chosen = list(placed)
        return replace(self, transcript=tuple(m for _, m in chosen), places=tuple(place for place, _ in chosen))


def _as_text(message: Message) -> Message:
    """A message without calls or results."""
    match message:
        case ModelReplied() if message.calls:
            calls = [f"(called {call.name}: {text_of(call.arguments)})" for call in message.calls]
            return ModelReplied("\n".join(filter(None, [message.text, *calls])))
        case Answers():
            return Note("\n".join(f"Result ({each.status}): {each.content}" for each in message.results))
        case _:
            return message


def mark_shown(error: BaseException, shown: bool) -> None:
    """Says of what a model call raised whether pieces of its reply were shown."""
    with suppress(AttributeError, TypeError):
        error.shown_before = shown  # type: ignore[attr-defined]


def was_shown(error: BaseException) -> bool:
    """Whether pieces of the reply were shown before the model call raised this."""
    return getattr(error, "shown_before", False) is True


@dataclass(frozen=True, slots=True)
class CallTools:
    """Answer these calls, in this order where one of the reply's is `alone`, else together.

    `started` are ids of calls that were begun before, by a process that did not finish them. Those `denied` must not
    run: their answer is that, and is all they lack. Those `delegated` have run, and go on with what was decided about
    what they began.
    """

    calls: tuple[JudgedCall, ...]
    started: frozenset[str] = frozenset()
    approved: Mapping[str, ToolApproved] = field(default_factory=dict)
    denied: Mapping[str, ToolDenied] = field(default_factory=dict)
    delegated: Mapping[str, ToolApproved | ToolDenied] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for a person, and what to ask."""

    call: JudgedCall
    fact: ToolWaiting

    @property
    def id(self) -> str:
        return self.call.id

    @property
    def name(self) -> str:
        return self.call.name

    @property
    def kind(self) -> str:
        return self.fact.kind

    @property
    def question(self) -> str:
        return self.fact.question

    @property
    def arguments(self) -> Any:
        return self.call.arguments if self.call.given is None else dict(self.call.given)


@dataclass(frozen=True, slots=True)
class Paused:
    """Every open call waits for a person. Go on with the decisions, in this process or another."""

    waiting: tuple[Waiting, ...]
    conversation_id: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Finished:
    """The turn is over: the last text, the answer as an object where there is one, and why it ended."""

    text: str
    reason: str = "answered"
    value: Any = None
    conversation_id: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Run:
    """What `around_run` is given: one turn, or what is left of it."""

    conversation_id: str
    caller: Caller | None
    said: UserSaid | None
    turn: TurnView


@dataclass(frozen=True, slots=True)
class Round:
    """What `around_round` is given: the open calls of a reply, in the model's order.

    A layer answers some of them, yields the round with the others, and returns all answers by call id: a `ToolResult`,
    or a `ToolWaiting` where a person is asked first. `tools` are the live definitions by call id, `now` is the driver's
    time in seconds since the epoch. `questions` by call id are for a layer that knows better what to ask a person.
    """

    calls: tuple[JudgedCall, ...]
    turn: TurnView
    conversation_id: str = ""
    caller: Caller | None = None
    approved: Mapping[str, ToolApproved] = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    now: float = 0.0
    questions: Mapping[str, str] = field(default_factory=dict)
    delegated: Mapping[str, ToolApproved | ToolDenied] = field(default_factory=dict)

    def call(self, asked: JudgedCall) -> Call:
        """One of the calls as `around_tool` will be given it."""
        decided = self.delegated.get(asked.id)
        return Call(asked, self.turn, self.conversation_id, self.caller, self.approved.get(asked.id), decided)

    def without(self, answered: Iterable[str]) -> Round:
        """The round with the calls that have no answer yet."""
        gone = frozenset(answered)
        return replace(self, calls=tuple(call for call in self.calls if call.id not in gone)) if gone else self


@dataclass(frozen=True, slots=True)
class Call:
    """What `around_tool` is given: one call that is about to run. Its answer is a `ToolResult`.

    It may also be a `ToolWaiting`: the tool ran, and something is to be decided before it can go on. Where that was
    "delegated", `delegated` is what was decided.
    """

    judged: JudgedCall
    turn: TurnView
    conversation_id: str = ""
    caller: Caller | None = None
    approved: ToolApproved | None = None
    delegated: ToolApproved | ToolDenied | None = None

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What the tool gets."""
        if self.approved is not None and self.approved.arguments is not None:
            return self.approved.arguments
        return self.judged.given or {}

    def answer(self, status: Status, content: str, data: Any = None) -> ToolResult:
        """An answer in the place of the tool's."""
        return ToolResult(self.judged.id, self.judged.name, status, content, data)


# -- decisions of a person ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Approve:
    """The call may run, with other arguments if some are given. `remember`: "tool" or "session"; see `approval`."""

    arguments: Mapping[str, Any] | None = None
    remember: str = ""

    def __post_init__(self) -> None:
        if self.remember not in ("", "tool", "session"):
            raise SetupError(f"an approval is remembered for the 'tool' or the 'session', not for {self.remember!r}")
        given: object = self.arguments
        if given is not None and not isinstance(given, Mapping):
            raise SetupError(f"the arguments of an approval are an object, or None to leave them, not {given!r}")


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not run."""

    reason: str = ""

    def __post_init__(self) -> None:
        reason: object = self.reason
        if not isinstance(reason, str):
            raise SetupError(f"the reason of a refusal is text, not {reason!r}")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person answered to a call that asked something; it is the call's result.

    `said` is a message of the user that the model reads after the round: an image, for one, which no result can hold.
    """

    content: str
    data: Any = None
    said: UserSaid | None = None

    def __post_init__(self) -> None:
        content: object = self.content
        said: object = self.said
        if not isinstance(content, str):
            raise SetupError(f"an answer is text, not {content!r}; `data` may hold an object beside it")
        if said is not None and not isinstance(said, UserSaid):
            raise SetupError(f"what the user said beside an answer is a UserSaid, not {said!r}")


Decision = Approve | Deny | Answer
