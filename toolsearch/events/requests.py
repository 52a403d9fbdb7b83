"""What a conversation asks for, what a layer receives at each of its four methods, and what a person can decide."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from toolsearch.calls import Caller, LoadedTool, Status, ToolResult
from toolsearch.catalog.tools import Shown, Tool, loaded_of, shown_of
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
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import text_of

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
    """Call the model. A conversation asks for this, and `around_model` receives it.

    `transcript` holds the messages for the model to read, `tools` the tools it may call, `system` the system text.
    `purpose` is "chat" for a reply to the user, otherwise the task of a helper (a summary, a repair), which has no
    tools; the call is billed under it. `schema` is a JSON Schema that the answer must follow. `takes_schema` says
    whether the provider enforces it; if not, a layer has to describe the schema in words. `options` are added to the
    provider's request as they are.

    `conversation_id` and `caller` say which conversation this is, and for whom. `turn` has the facts so far. `places`
    has, for each message, its place in the journal; a layer that removes messages removes their places too. `model` is
    the name of the model that will be called, if it has one. In the mode "native" `deferred` are all tools that can be
    found, for a wire that declares them.
    """

    transcript: tuple[Message, ...]
    tools: tuple[Shown, ...] = ()
    system: str = ""
    purpose: str = "chat"
    schema: JsonObject | None = None
    options: JsonObject = field(default_factory=dict)
    conversation_id: str = ""
    caller: Caller | None = None
    turn: TurnView = field(default_factory=TurnView)
    places: tuple[int, ...] = ()
    takes_schema: bool = False
    model: str = ""
    deferred: tuple[Shown, ...] = ()

    def helper(self, purpose: str, *more: Message) -> CallModel:
        """The request of a helper: the same messages and then `more`, without tools.

        Calls and results become text, because providers refuse them in a request that has no tools.
        """
        messages = (*map(_as_text, self.transcript), *more)
        return replace(self, transcript=messages, tools=(), deferred=(), purpose=purpose)

    def without(self, ids: Container[str]) -> CallModel:
        """The request without the definitions of these tools that its messages bring."""
        return self._bringing(lambda loaded: None if loaded.id in ids else loaded)

    def with_tools(self, change: Callable[[Shown], Shown | None]) -> CallModel:
        """The request with every definition changed, those that are deferred and those that messages bring too.

        `change` gets each tool and gives it as the model is to see it, or None to hide it; then no message brings it.
        """
        tools, deferred = ([(each, change(each)) for each in some] for some in (self.tools, self.deferred))
        hidden = {each.tool.id for each, made in (*tools, *deferred) if made is None}

        def changed(loaded: LoadedTool) -> LoadedTool | None:
            made = None if loaded.id in hidden else change(shown_of(loaded))
            return None if made is None else loaded_of(made)

        shown = [tuple(made for _, made in some if made is not None) for some in (tools, deferred)]
        return replace(self._bringing(changed), tools=shown[0], deferred=shown[1])

    def _bringing(self, change: Callable[[LoadedTool], LoadedTool | None]) -> CallModel:
        return replace(self, transcript=tuple(_bringing(message, change) for message in self.transcript))

    def listed(self) -> tuple[Shown, ...]:
        """The tools whose definition no message brings: those that a native wire lists. In other modes, all tools.

        A message that brought one may be gone, as after memory was cut; then the tool is listed.
        """
        brought = {loaded.name for message in self.transcript for loaded in _loaded_in(message)}
        return tuple(shown for shown in self.tools if not (shown.delivered and shown.name in brought))

    def placed(self) -> list[tuple[int, Message]]:
        """The messages, each with the place in the journal where it begins.

        Messages that a layer appended have no place yet: they get the place of the next fact.
        """
        behind = (len(self.turn.journal),) * (len(self.transcript) - len(self.places))
        return list(zip((*self.places, *behind), self.transcript, strict=False))

    def showing(self, placed: Iterable[tuple[int, Message]]) -> CallModel:
        """The request with these messages and their places, in this order."""
        chosen = list(placed)
        return replace(self, transcript=tuple(m for _, m in chosen), places=tuple(place for place, _ in chosen))


def _loaded_in(message: Message) -> Iterable[LoadedTool]:
    """The definitions that a message brings."""
    match message:
        case Answers():
            return (loaded for result in message.results for loaded in result.loaded)
        case UserSaid():
            return message.loaded
        case _:
            return ()


def _bringing(message: Message, change: Callable[[LoadedTool], LoadedTool | None]) -> Message:
    def changed(brought: Iterable[LoadedTool]) -> tuple[LoadedTool, ...]:
        return tuple(made for loaded in brought if (made := change(loaded)) is not None)

    match message:
        case Answers() if any(result.loaded for result in message.results):
            return Answers(tuple(replace(each, loaded=changed(each.loaded)) for each in message.results))
        case UserSaid() if message.loaded:
            return replace(message, loaded=changed(message.loaded))
        case _:
            return message


def _as_text(message: Message) -> Message:
    """The message with its calls and results written as text."""
    match message:
        case ModelReplied() if message.calls:
            calls = [f"(called {call.name}: {text_of(call.arguments or {})})" for call in message.calls]
            return ModelReplied("\n".join(filter(None, [message.text, *calls])))
        case UserSaid() if message.loaded:
            return replace(message, loaded=())
        case Answers():
            return Note("\n".join(f"Result ({each.status}): {each.content}" for each in message.results))
        case _:
            return message


def mark_shown(error: BaseException, was_shown: bool) -> None:
    """Notes on an error of a model call whether pieces of the reply were shown before it."""
    with suppress(AttributeError, TypeError):
        error.shown_before = was_shown  # type: ignore[attr-defined]


def was_shown(error: BaseException) -> bool:
    """Whether pieces of the reply were shown before the model call raised this error."""
    return getattr(error, "shown_before", False) is True


@dataclass(frozen=True, slots=True)
class CallTools:
    """Answer these calls: one at a time, in this order, if any call of the reply is `alone`, otherwise together.

    `started` has the ids of calls that an earlier process began and did not finish. `approved` and `denied` have the
    decisions, by call id; a denied call must not run, and only needs its answer. `delegated` has the decisions, by call
    id, about something that a call began; these calls have run and continue with that decision.
    """

    calls: tuple[JudgedCall, ...]
    started: frozenset[str] = frozenset()
    approved: Mapping[str, ToolApproved] = field(default_factory=dict)
    denied: Mapping[str, ToolDenied] = field(default_factory=dict)
    delegated: Mapping[str, ToolApproved | ToolDenied] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for a person: the `call`, and the `fact` that says what to ask."""

    call: JudgedCall
    fact: ToolWaiting

    @property
    def id(self) -> str:
        """The id of the call, under which a decision is passed."""
        return self.call.id

    @property
    def name(self) -> str:
        """The name of the tool, as the model called it."""
        return self.call.name

    @property
    def tool(self) -> str:
        """The id of the tool, "server/name" or the name: what rules and limits call it."""
        return self.call.tool

    @property
    def kind(self) -> str:
        """What kind of decision is needed: "approval", or another kind of `ToolWaiting`."""
        return self.fact.kind

    @property
    def question(self) -> str:
        """What to ask the person."""
        return self.fact.question

    @property
    def arguments(self) -> object:
        """The checked arguments of the call; as the model wrote them, if they were not checked."""
        return self.call.arguments if self.call.given is None else dict(self.call.given)


@dataclass(frozen=True, slots=True)
class Paused:
    """The turn is paused: every open call waits for a person. Continue with decisions, in this process or another.

    `waiting` has the calls and what to ask. `usage` counts the tokens of the turn so far.
    """

    waiting: tuple[Waiting, ...]
    conversation_id: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Finished:
    """The turn is over.

    `text` is the answer, `value` the answer as an object if there is one. `reason` says why the turn ended, "answered"
    if the model answered; a reply that was cut off, refused, empty, … has a reason of its own, see `events.stops`.
    `usage` counts the tokens of all model calls of the turn.
    """

    text: str
    reason: str = "answered"
    value: Any = None
    conversation_id: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Run:
    """What `around_run` receives: one turn, or the rest of a turn that is continued.

    `said` is the user's message, None if a turn is continued. `turn` has the facts so far.
    """

    conversation_id: str
    caller: Caller | None
    said: UserSaid | None
    turn: TurnView


@dataclass(frozen=True, slots=True)
class Round:
    """What `around_round` receives: the open calls of a reply, in the model's order.

    A layer answers some of them, yields the round with the others, and returns all answers by call id. An answer is a
    `ToolResult`, or a `ToolWaiting` if a person is asked first.

    `approved` has the approvals of calls, `delegated` the decisions about something that a call began, and `tools` the
    current definitions, each by call id. `now` is the driver's time in seconds since the epoch. A layer that knows
    better what to ask a person puts that into `questions`, by call id. `dialogs` counts what the layers outside ask a
    person in this round, because all layers share one budget.
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
    dialogs: int = 0

    def call(self, judged: JudgedCall) -> Call:
        """One of the calls, as `around_tool` will receive it."""
        decision = self.delegated.get(judged.id)
        return Call(judged, self.turn, self.conversation_id, self.caller, self.approved.get(judged.id), decision)

    def without(self, call_ids: Iterable[str]) -> Round:
        """The round without the calls with these ids, which have an answer."""
        gone = frozenset(call_ids)
        return replace(self, calls=tuple(call for call in self.calls if call.id not in gone)) if gone else self


@dataclass(frozen=True, slots=True)
class Call:
    """What `around_tool` receives: one call that is about to run. Its answer is a `ToolResult`.

    The answer may also be a `ToolWaiting`: the tool ran, and a person has to decide something before it can continue.

    `judged` is the call with what was decided about it when it arrived. `approved` is the approval of a person, if the
    call needed one. `delegated` is the decision about something the call began, if it waited for that.
    """

    judged: JudgedCall
    turn: TurnView
    conversation_id: str = ""
    caller: Caller | None = None
    approved: ToolApproved | None = None
    delegated: ToolApproved | ToolDenied | None = None

    @property
    def arguments(self) -> JsonObject:
        """The arguments the tool gets: those a person approved, otherwise the checked ones."""
        if self.approved is not None and self.approved.arguments is not None:
            return self.approved.arguments
        return self.judged.given or {}

    def answer(self, status: Status, content: str, data: object = None) -> ToolResult:
        """An answer to this call, in place of the tool's."""
        return ToolResult(self.judged.id, self.judged.name, status, content, data)


# -- decisions of a person ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Approve:
    """The call may run.

    `arguments` replace those of the call; None leaves them. `remember` is "tool" or "session" to approve later calls as
    well; see the layer `approval`.
    """

    arguments: JsonObject | None = None
    remember: str = ""

    def __post_init__(self) -> None:
        if self.remember not in ("", "tool", "session"):
            raise SetupError(f"remember must be 'tool', 'session' or '', not {self.remember!r}")
        arguments: object = self.arguments
        if arguments is not None and not isinstance(arguments, Mapping):
            raise SetupError(
                f"the arguments of Approve must be a mapping, or None to leave them as they are, not {arguments!r}"
            )


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not run. The model reads the `reason`, if there is one."""

    reason: str = ""

    def __post_init__(self) -> None:
        reason: object = self.reason
        if not isinstance(reason, str):
            raise SetupError(f"the reason of Deny must be a text, not {reason!r}")


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to a call that asked something; it becomes the call's result.

    `content` is for the model, `data` for the program. `said` is a message of the user that the model reads after the
    round, for example with an image.
    """

    content: str
    data: object = None
    said: UserSaid | None = None

    def __post_init__(self) -> None:
        content: object = self.content
        said: object = self.said
        if not isinstance(content, str):
            raise SetupError(f"the content of Answer must be a text, not {content!r}; pass an object as `data`")
        if said is not None and not isinstance(said, UserSaid):
            raise SetupError(f"said of Answer must be a UserSaid or None, not {said!r}")


Decision = Approve | Deny | Answer
