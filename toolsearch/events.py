"""The facts a conversation is made of, and how they are stored.

A fact says what happened, never what to do. The journal, all facts in order, is the conversation: whatever is known of
it is computed from there, and what is not in it does not exist after a restart. Times are seconds since the epoch,
given by the driver; nothing here reads a clock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from toolsearch import options
from toolsearch.calls import Status, ToolCall, plain_json
from toolsearch.errors import StateError

__all__ = [
    "Answers",
    "Asked",
    "Compacted",
    "Ending",
    "Event",
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
    "cleaned",
    "read_event",
    "read_events",
    "stored",
]

FORMAT = 1  # of `stored`; an older one is migrated when it is read

# For each older format, what makes a stored fact of it one of the next.
MIGRATIONS: dict[int, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {}


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
class Asked:
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
    calls: tuple[Asked, ...] = ()
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
    """The one answer to a call. `by` names the layer that gave it instead of the tool."""

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
        options.text("the text of a Reply", self.text, none="for none")
        options.instance("the usage of a Reply", self.usage, Usage, "a Usage(…)")
        if not isinstance(calls, list | tuple) or not all(isinstance(call, ToolCall) for call in calls):
            raise options.wrong("the calls of a Reply", "a tuple of ToolCall(id, name, arguments)", calls)


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
# How facts are stored: the name of each, and the keys of its fields in the order of its class. A class or a field can
# be renamed; what stands here cannot, unless FORMAT grows and MIGRATIONS reads what there was.
_STORED: dict[str, tuple[type[Any], str]] = {
    "RunBegan": (RunBegan, "run at user tenant"),
    "UserSaid": (UserSaid, "text parts at"),
    "ModelReplied": (ModelReplied, "text calls reasoning raw wire model stop value at"),
    "ModelCalled": (ModelCalled, "purpose model usage actor error seconds at"),
    "ToolStarted": (ToolStarted, "call_id at"),
    "ToolsFound": (ToolsFound, "call_id loaded unloaded session"),
    "ToolsRevealed": (ToolsRevealed, "loaded session"),
    "ToolsUnloaded": (ToolsUnloaded, "unloaded told session"),
    "ToolReturned": (ToolReturned, "call_id status content data by seconds at"),
    "ToolWaiting": (ToolWaiting, "call_id kind question by expires_at data at"),
    "ToolApproved": (ToolApproved, "call_id arguments remember actor at answer"),
    "ToolDenied": (ToolDenied, "call_id reason actor expired at"),
    "Compacted": (Compacted, "before summary at kept"),
    "Noted": (Noted, "layer note at"),
    "Ending": (Ending, "reason text by"),
    "RunEnded": (RunEnded, "reason text value at"),
}
# The same for what stands inside a fact.
_STORED_INSIDE: dict[type[Any], str] = {
    Asked: "id name arguments kind tool digest given alone repeatable return_direct terminal status answer reveal "
    "action polling",
    Usage: "input_tokens cached_tokens output_tokens calls",
}
_KINDS = {name: kind for name, (kind, _) in _STORED.items()}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_KEYS: dict[type[Any], dict[str, str]] = {  # key -> field
    kind: dict(zip(keys.split(), [f.name for f in dataclasses.fields(kind)], strict=True))
    for kind, keys in [*_STORED.values(), *_STORED_INSIDE.items()]
}
_TUPLES = frozenset({"calls", "loaded", "unloaded", "told", "parts", "reveal", "kept"})  # by key
T = TypeVar("T")


def stored(event: Event) -> dict[str, Any]:
    """A fact as JSON-ready data: valid UTF-8, defaults left out, its name in `fact`, the format in `v`."""
    return {"v": FORMAT, "fact": _NAMES[type(event)], **_plain(event)}


def read_events(lines: Iterable[Mapping[str, Any]]) -> list[Event]:
    """The facts that `stored` gave, of this format or an older one. Raises `StateError` for what is none.

    A journal is trusted input: never take one from a client.
    """
    return [read_event(line, at) for at, line in enumerate(lines)]


def _plain(value: Any) -> dict[str, Any]:
    told = {}
    fields = {each.name: each for each in dataclasses.fields(value)}
    for key, name in _KEYS[type(value)].items():
        item, each = getattr(value, name), fields[name]
        default = each.default_factory() if each.default_factory is not dataclasses.MISSING else each.default
        if item is default or (type(item) is type(default) and item == default):
            continue
        if isinstance(item, Usage):
            item = _plain(item)
        elif key == "calls" and isinstance(item, tuple):
            item = [_plain(call) for call in item]
        told[key] = plain_json(item)
    return told


def read_event(line: Mapping[str, Any], at: int) -> Event:
    """The fact that stands at the place `at` of a journal; see `read_events`."""
    if not isinstance(line, Mapping):
        raise StateError(f"fact {at} of the journal must be a JSON object, not {line!r}")
    line = _migrated(line, at)
    kind = _KINDS.get(str(line.get("fact")))
    if kind is None:
        raise StateError(f"fact {at} of the journal is of the unknown kind {line.get('fact')!r}")
    told = {key: item for key, item in line.items() if key not in ("v", "fact")}
    try:
        if kind is ModelReplied and "calls" in told:
            told["calls"] = tuple(_made(Asked, call) for call in told["calls"])
        if kind is ModelCalled and "usage" in told:
            told["usage"] = _made(Usage, told["usage"])
        event: Event = _made(kind, told)
    except (TypeError, ValueError) as error:
        raise StateError(f"fact {at} of the journal, a {_NAMES[kind]}, cannot be read: {error}") from None
    return event


def _migrated(line: Mapping[str, Any], at: int) -> Mapping[str, Any]:
    """The stored fact in the present format."""
    version = line.get("v")
    while isinstance(version, int) and version < FORMAT and version in MIGRATIONS:
        line, version = MIGRATIONS[version](line), version + 1
    if version != FORMAT:
        told = f"fact {at} of the journal has the format {version!r}; this version reads {FORMAT}"
        raise StateError(f"{told}: use the one that wrote it")
    return line


def _made(kind: type[T], told: Mapping[str, Any]) -> T:
    """A fact from its data; lists become tuples where the fact has tuples."""
    if not isinstance(told, Mapping):
        raise ValueError(f"{told!r} is no {kind.__name__}")
    fields = _KEYS[kind]
    if unknown := set(told) - fields.keys():
        raise ValueError(f"it has the unknown field {min(unknown)!r}")
    tuples = _TUPLES if kind is not Usage else frozenset[str]()
    return kind(**{fields[key]: tuple(item) if key in tuples else item for key, item in told.items()})


def cleaned(event: T) -> T:
    """The fact as it will be read back from a store: every text valid UTF-8, every value plain JSON, nothing shared.

    Raises `StateError` for what is no fact, or holds what cannot be stored.
    """
    kind = type(event)
    if kind not in _NAMES:
        raise StateError(f"{event!r} is no fact; there are {', '.join(_KINDS)}")
    try:
        return _cleaned(event)
    except Exception as error:  # a circle, a value whose text cannot be had
        raise StateError(f"a {kind.__name__} cannot be stored: {type(error).__name__}: {error}") from None


def _cleaned(value: T) -> T:
    changed: dict[str, Any] = {}
    for key, name in _KEYS[type(value)].items():
        item = getattr(value, name)
        if isinstance(item, Usage):
            continue
        if key in _TUPLES:
            new: Any = tuple([_cleaned(each) if isinstance(each, Asked) else plain_json(each) for each in item])
        else:
            new = plain_json(item)
        if new is not item:
            changed[name] = new
    return dataclasses.replace(value, **changed) if changed else value  # type: ignore[type-var]
