"""The facts a conversation is made of, and how they are stored.

A fact says what happened, never what to do. The journal, all facts in order, is the conversation: whatever is known of
it is computed from there, and what is not in it does not exist after a restart. Times are seconds since the epoch,
given by the driver; nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolsearch.calls import Status, ToolCall
from toolsearch.support import checks

__all__ = [
    "Answers",
    "Compacted",
    "Ending",
    "Event",
    "JudgedCall",
    "Message",
    "ModelCalled",
    "ModelReplied",
    "Note",
    "Noted",
    "Reply",
    "ReplyDiscarded",
    "RunBegan",
    "RunEnded",
    "TextDelta",
    "ToolApproved",
    "ToolDenied",
    "ToolReturned",
    "ToolStarted",
    "ToolWaiting",
    "ToolsFound",
    "ToolsRevealed",
    "ToolsUnloaded",
    "Usage",
    "UserSaid",
    "is_reply",
]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of model calls: what went in, how many of those came from the provider's cache, and what came out."""

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
    """A call of a reply, and what was settled about it when it came, so that a replay needs no catalog.

    `kind` is "tool", "search", or "answered" where the call cannot run and `answer` and `status` say why. `arguments`
    are as the model wrote them; `given` are the checked ones. `tool` is the id in the catalog, `digest` that of the
    definition; the marks are those of the tool, `action` its kind.
    """

    id: str
    name: str
    arguments: Any = None
    kind: Literal["tool", "search", "answered"] = "tool"
    tool: str = ""
    digest: str = ""
    given: Mapping[str, Any] | None = None
    alone: bool = False
    repeatable: bool = True
    return_direct: bool = False
    terminal: bool = False
    status: Status = "ok"
    answer: str = ""
    reveal: tuple[str, ...] = ()
    action: bool = False
    polling: bool = False


# -- facts -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunBegan:
    """Work on what the user said begins: a turn. `user` and `tenant` are whom it is for; nobody else may go on."""

    run: str
    at: float = 0.0
    user: str | None = None
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class UserSaid:
    """A message of the user. `parts` are further contents (an image, a file) in the form of the model's provider."""

    text: str
    parts: tuple[Mapping[str, Any], ...] = ()
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """A reply that passed all layers. `raw` is the provider's own message, sent back verbatim to the same `wire`."""

    text: str = ""
    calls: tuple[JudgedCall, ...] = ()
    reasoning: str = ""
    raw: Any = None
    wire: str = ""
    model: str = ""
    stop: str = ""
    value: Any = None
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """One call of a model, whatever came of it: what it cost, for whom, and what for ("chat", "summary", …)."""

    purpose: str = "chat"
    model: str = ""
    usage: Usage = Usage()
    actor: str = ""
    error: str = ""
    seconds: float = 0.0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is about to run. Stored before it does, so that nothing is run twice after a crash."""

    call_id: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolsFound:
    """A search was answered: what it loaded, what had to leave, and the session as it is now."""

    call_id: str
    loaded: tuple[str, ...] = ()
    unloaded: tuple[str, ...] = ()
    session: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolsRevealed:
    """Tools were loaded without a search of the model."""

    loaded: tuple[str, ...]
    session: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolsUnloaded:
    """Tools were unloaded, or changed at their source; `told` says so."""

    unloaded: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    session: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """The one answer to a call. `by` says who gave it where that was not the tool.

    It is "session" for a call that cannot run (unknown, not loaded, wrong arguments), "person" for a decision, "loop"
    for a call that was stopped, interrupted or has changed, and otherwise the name of the layer that answered.
    """

    call_id: str
    status: Status
    content: str
    data: Any = None
    by: str = ""
    seconds: float = 0.0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolWaiting:
    """A call waits for a person: `kind` "approval" asks whether it may run, any other kind asks for its answer.

    With "delegated" the call has run, and what it began waits: whatever is decided is handed on to that.
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
    """A waiting call may run, perhaps with other arguments; `remember` says for how much else ("tool", "session").

    `answer` is what a person answered to a question of what a "delegated" call began: its `content`, `data`, `said`.
    """

    call_id: str
    arguments: Mapping[str, Any] | None = None
    remember: str = ""
    actor: str = ""
    at: float = 0.0
    answer: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolDenied:
    """A waiting call may not run."""

    call_id: str
    reason: str = ""
    actor: str = ""
    expired: bool = False
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Compacted:
    """Facts before the place `before` of the journal are shown no more; `summary` stands for them.

    The messages with a place in `kept` stay all the same: what the user said in a turn that is cut itself.
    """

    before: int
    summary: str = ""
    at: float = 0.0
    kept: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Noted:
    """What a layer has to remember."""

    layer: str
    note: Any
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Ending:
    """The run is to end as soon as every open call has its answer."""

    reason: str
    text: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The turn is over. `reason` is "answered", "cancelled", "failed", or what a layer gave."""

    reason: str
    text: str = ""
    value: Any = None
    at: float = 0.0


# -- what a transcript holds, beside UserSaid and ModelReplied -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answers:
    """The results of one reply's calls, in the order of the calls."""

    results: tuple[ToolReturned, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """What the program tells the model between messages: a summary of what is shown no more, tools that changed."""

    text: str


Message = UserSaid | ModelReplied | Answers | Note


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model gave: text and calls, in the model's order; the rest as in `ModelReplied`.

    `value` is the answer as an object, where a layer made one. `stop` is "ended" for one that a layer gave in the
    model's place when it ended the turn; nobody works on such a reply.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    reasoning: str = ""
    raw: Any = None
    wire: str = ""
    model: str = ""
    stop: str = ""
    value: Any = None

    def __post_init__(self) -> None:
        calls: object = self.calls
        checks.text("the text of a Reply", self.text, none="for none")
        checks.instance("the usage of a Reply", self.usage, Usage, "a Usage(…)")
        if not isinstance(calls, list | tuple) or not all(isinstance(call, ToolCall) for call in calls):
            raise checks.wrong("the calls of a Reply", "a tuple of ToolCall(id, name, arguments)", calls)


def is_reply(given: object) -> bool:
    """Whether an inner layer, which may be anybody's, gave a reply at all; what else it gave is judged by the loop."""
    return isinstance(given, Reply)


# -- observed, never stored --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of a reply as it comes in; `kind` is "text" or "reasoning"."""

    text: str
    kind: Literal["text", "reasoning"] = "text"


@dataclass(frozen=True, slots=True)
class ReplyDiscarded:
    """The deltas shown since the last reply count for nothing: the reply failed, or was refused."""

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
