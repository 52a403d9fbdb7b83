"""The facts a conversation is made of.

A fact says what happened, never what to do. The journal is the list of all facts, in order. It is the conversation:
everything that is known about a conversation is computed from its journal, and what is not in the journal is lost at a
restart. Times are seconds since the epoch. The driver provides them; nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolsearch.calls import LoadedTool, Part, Status, ToolCall
from toolsearch.catalog.marks import DEFAULT_MARKS, Marks
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject

__all__ = [
    "Answers", "Compacted", "Ending", "Event", "JudgedCall", "Message", "ModelCalled", "ModelReplied", "Note",
    "Noted", "Reply", "ReplyDiscarded", "RunBegan", "RunEnded", "TextDelta", "ToolApproved", "ToolDenied",
    "ToolReturned", "ToolStarted", "ToolWaiting", "ToolsFound", "ToolsRevealed", "ToolsUnloaded", "Usage",
    "UserSaid", "is_reply",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of some model calls. `cached_tokens` are the input tokens that came from the provider's cache."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            self.calls + other.calls,
        )

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A call of a reply, and what was decided about it when it arrived, so that a replay needs no catalog.

    `kind` is "tool", "search", or "answered" where the call cannot run and `answer` and `status` say why. `arguments`
    are as the model wrote them; `given` are the checked ones. `tool` is the id in the catalog, `digest` that of the
    definition, and `marks` are those of the tool.
    """

    id: str
    name: str
    arguments: Any = None
    kind: Literal["tool", "search", "answered"] = "tool"
    tool: str = ""
    digest: str = ""
    given: Mapping[str, Any] | None = None
    marks: Marks = DEFAULT_MARKS
    status: Status = "ok"
    answer: str = ""
    reveal: tuple[str, ...] = ()

    @property
    def shown_arguments(self) -> object:
        """The checked arguments; as the model wrote them, if they were not checked."""
        return self.arguments if self.given is None else self.given


# -- facts -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunBegan:
    """A turn begins: all the work on one message of the user.

    `run` is an id for the turn. `user` and `tenant` say whom the turn is for; no other caller may continue it.
    """

    run: str
    at: float = 0.0
    user: str | None = None
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class UserSaid:
    """A message of the user. `parts` are further contents (an image, a file) in the format of the model's provider.

    `loaded` are the definitions that come with it, in the mode "native".
    """

    text: str
    parts: tuple[JsonObject, ...] = ()
    at: float = 0.0
    loaded: tuple[LoadedTool, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """A reply of the model, after all layers.

    `raw` is the provider's own message, which is sent back verbatim to the same `wire`. `stop` is the provider's word
    for why the reply ended; `events.stops` says which words make a reply no answer. `value` is the answer as an object,
    if a layer made one.
    """

    text: str = ""
    calls: tuple[JudgedCall, ...] = ()
    reasoning: str = ""
    raw: object = None
    wire: str = ""
    model: str = ""
    stop: str = ""
    value: object = None
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """One call of a model, successful or not, and what it cost.

    `purpose` says what the call was for: "chat" for a reply to the user, otherwise a helper's task such as "summary".
    `actor` is the user it is billed to. `error` is empty if the call succeeded.
    """

    purpose: str = "chat"
    model: str = ""
    usage: Usage = Usage()
    actor: str = ""
    error: str = ""
    seconds: float = 0.0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is about to run. This is stored before the tool runs, so that nothing runs twice after a crash."""

    call_id: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolsFound:
    """A search was answered: the ids of the tools it loaded and unloaded, and the exported session after it.

    A conversation stores the whole `session` once. In later facts of this kind, and of the next two kinds, it stores
    what has changed since instead, in `changes`: see `toolsearch.support.json_changes`.
    """

    call_id: str
    loaded: tuple[str, ...] = ()
    unloaded: tuple[str, ...] = ()
    session: JsonObject = field(default_factory=dict)
    changes: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolsRevealed:
    """Tools were loaded although the model did not search. `session` is the exported session afterwards.

    `said` is what the user's message gets about them, if they come with it, and `definitions` those that come with it
    in the mode "native": see `Session.preselect`.
    """

    loaded: tuple[str, ...]
    session: JsonObject = field(default_factory=dict)
    changes: JsonObject = field(default_factory=dict)
    said: str = ""
    definitions: tuple[LoadedTool, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolsUnloaded:
    """Tools were unloaded, or changed at their source. The model reads the `notices` about it."""

    unloaded: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    session: JsonObject = field(default_factory=dict)
    changes: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """The one answer to a call. `content` is for the model, `data` for the program.

    `parts` are those of the result; none if the content says it all. `data` holds nothing that the parts hold. `loaded`
    are the definitions that come with the answer, in the mode "native".

    `by` is empty if the tool itself answered. It is "session" for a call that cannot run (unknown, not loaded, wrong
    arguments), "person" for a decision, "loop" for a call that was stopped or interrupted or whose tool has changed,
    and otherwise the name of the layer that answered.
    """

    call_id: str
    status: Status
    content: str
    data: object = None
    by: str = ""
    seconds: float = 0.0
    at: float = 0.0
    parts: tuple[Part, ...] = ()
    loaded: tuple[LoadedTool, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolWaiting:
    """A call waits for a person.

    The `kind` "approval" asks whether the call may run. With "delegated" the call has run, and something that it began
    is waiting; the decision is passed on to that. Any other kind asks for the call's answer. `question` is what to ask,
    `by` the layer that asks. After `expires_at` nobody can decide any more. `data` is for the program.
    """

    call_id: str
    kind: str = "approval"
    question: str = ""
    by: str = ""
    expires_at: float | None = None
    data: Any = None
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolApproved:
    """A waiting call may run. `arguments` replace those of the call; None leaves them.

    `remember` extends the approval to later calls ("tool" or "session"). `actor` is the user who decided. `answer` is a
    person's answer to a question that a "delegated" call passed on: its `content`, `data` and `said`.
    """

    call_id: str
    arguments: JsonObject | None = None
    remember: str = ""
    actor: str = ""
    at: float = 0.0
    answer: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ToolDenied:
    """A waiting call may not run: a person (`actor`) declined it, or with `expired` nobody decided in time."""

    call_id: str
    reason: str = ""
    actor: str = ""
    expired: bool = False
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Compacted:
    """The model is no longer shown the facts before the place `before` of the journal; `summary` replaces them.

    The messages whose place is in `kept` stay all the same, such as the user's message of a turn that is cut itself.
    """

    before: int
    summary: str = ""
    at: float = 0.0
    kept: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Noted:
    """Something a layer has to remember. `note` is any JSON value."""

    layer: str
    note: Any
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Ending:
    """The turn is to end as soon as every open call has its answer.

    `reason` and `text` are those of the `Finished` that follows; without a `text` it has the model's last words, or if
    there are none, a sentence for the user about the limit that was reached. `by` names the layer that ends the turn.
    """

    reason: str
    text: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The turn is over. `reason` is "answered", "cancelled", "failed", "cut off", …, or the reason a layer gave.

    `text` is the answer, or the error of a turn that failed. `value` is the answer as an object, if there is one.
    """

    reason: str
    text: str = ""
    value: object = None
    at: float = 0.0


# -- further messages of a transcript, besides UserSaid and ModelReplied ---------------------------------------------


@dataclass(frozen=True, slots=True)
class Answers:
    """The results of one reply's calls, in the order of the calls."""

    results: tuple[ToolReturned, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Something the program tells the model between messages: a summary of cut messages, or that tools changed."""

    text: str


Message = UserSaid | ModelReplied | Answers | Note


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model returns: text, and calls in the model's order. The other fields are those of `ModelReplied`.

    `value` is the answer as an object, if a layer made one. `stop` is "ended" for a reply that a layer gave in the
    model's place when it ended the turn; other layers leave such a reply alone.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    reasoning: str = ""
    raw: object = None
    wire: str = ""
    model: str = ""
    stop: str = ""
    value: object = None

    def __post_init__(self) -> None:
        calls: object = self.calls
        checks.text("the text of a Reply", self.text, none=True)
        checks.instance("the usage of a Reply", self.usage, Usage, "a Usage(…)")
        if not isinstance(calls, list | tuple) or not all(isinstance(call, ToolCall) for call in calls):
            raise checks.wrong("the calls of a Reply", "a tuple of ToolCall(id, name, arguments)", calls)


def is_reply(value: object) -> bool:
    """Whether an inner layer, which may be anybody's, gave a `Reply`. The loop refuses everything else."""
    return isinstance(value, Reply)


# -- observed, never stored --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of a reply while it comes in; `kind` is "text" or "reasoning"."""

    text: str
    kind: Literal["text", "reasoning"] = "text"


@dataclass(frozen=True, slots=True)
class ReplyDiscarded:
    """Discard the deltas shown since the last reply: the reply they belong to failed, or a layer refused it."""

    reason: str = ""


Event = (
    RunBegan
    | UserSaid
    | ModelReplied
    | ModelCalled
    | ToolStarted
    | ToolsFound
    | ToolsRevealed
    | ToolsUnloaded
    | ToolReturned
    | ToolWaiting
    | ToolApproved
    | ToolDenied
    | Compacted
    | Noted
    | Ending
    | RunEnded
)
