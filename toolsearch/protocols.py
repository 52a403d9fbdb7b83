"""Every plug on one page: what an object needs to take a place in toolsearch, and what else it may have.

    to add             write             give it to                         prove it with
    an index           ToolIndex         ToolSearch(…, index=)              testing.check_index
    an encoder         Encoder           an index that takes one            -
    a layer            Layer             Agent(…, layers=[…])               testing.check_layer
    a model            Model             Agent(model, …)                    testing.check_wire
    a wire             Wire              your loop: tools_for, calls_in …   testing.check_wire
    a journal store    JournalStore      Agent(…, store=)                   testing.check_store
    a memory store     MemoryTexts       builtin_tools.memories(…)          -
    an observer        Observer          Agent(…, observe=)                 -

There is no base class to inherit: any object that fits is accepted. Each optional member has a protocol of its own.
The values that pass through a plug are here if nothing else uses them, or else in `toolsearch.events`,
`toolsearch.catalog` and `toolsearch.calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Generator, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from toolsearch.calls import Caller, NativeDelivery, ToolCall, ToolContext, ToolResult
    from toolsearch.catalog.tools import Shown, Tool
    from toolsearch.events.facts import Event, Reply, ReplyDiscarded, TextDelta, ToolWaiting
    from toolsearch.events.requests import Call, CallModel, Finished, Paused, Round, Run

__all__ = [
    "AnswersById", "AsyncCallable", "AsyncReplyStream", "BufferingLayer", "Do", "Encoder", "GateLayer",
    "InMemoryStore", "JournalStore", "Layer", "LeasingStore", "Matched", "MemoryTexts", "Model", "ModelAnswer",
    "ModelLayer", "ModelSteps", "NamedLayer", "NamedModel", "NativeModel", "Observer", "PersistentIndex", "Ranking",
    "Record", "RedactingLayer", "ReplyFilter", "ReplyStream", "RoundLayer", "RoundSteps", "RunLayer", "RunSteps",
    "SchemaModel", "Scored", "ServerVisibility", "ShowsTools", "Sleep", "StoreLayer", "StreamingLayer", "ToolAnswer",
    "ToolIndex", "ToolLayer", "ToolRunner", "ToolSteps", "VersionedVisibility", "Visibility", "Wire", "Within",
]  # fmt: skip

# -- an index ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Matched:
    """A word of the query, and the fields of the tool it was found in."""

    word: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scored:
    """One answer of an index: any positive finite score, higher is better. `confidence` is P(relevant), if fitted.

    `signals` are numbers by name that describe the hit; `toolsearch eval calibrate` fits the confidence to them.
    """

    id: str
    score: float
    matched: tuple[Matched, ...] = ()
    confidence: float | None = None
    signals: Mapping[str, float] | None = field(default=None, compare=False, repr=False)


class Ranking(list[Scored]):
    """What an index may return in place of a plain list, to say something about the whole search.

    `answerable` is P(some tool can do it), if known. `near` are the ids of the nearest tools, best first, hits or not;
    they are read when asked for. `degraded` says which part of the index was not used, `hint` how to ask better.
    """

    def __init__(
        self, scored: Iterable[Scored] = (), *, answerable: float | None = None, near: Iterable[str] = (),
        degraded: str | None = None, hint: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(scored)
        self.answerable, self.degraded, self.hint, self._near = answerable, degraded, hint, near

    @property
    def near(self) -> tuple[str, ...]:
        self._near = tuple(self._near)
        return self._near


@runtime_checkable
class ToolIndex(Protocol):
    """A search backend.

    `search` returns at most `limit` tools out of `among` (None: all), best first, and only tools for which there is
    evidence. It may raise `QueryError` for a query it cannot run, and nothing else. `add` replaces tools whose id is
    known. One index serves all sessions, so it is used from several threads.
    """

    @property
    def name(self) -> str: ...
    def add(self, tools: Sequence[Tool]) -> None: ...
    def remove(self, ids: Sequence[str]) -> None: ...
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> Sequence[Scored]: ...


class PersistentIndex(Protocol):
    """Optional, for an index that is kept between programs: it is asked once to drop all tools but these."""

    def keep_only(self, ids: Sequence[str]) -> None: ...


class Encoder(Protocol):
    """Texts in, vectors out.

    `name` says the model and its version or digest, so that vectors of two models are never mixed. `name` and `width`
    may load the model; both stay the same from then on. All three members may be used from several threads at once. The
    protocol does not support `isinstance`: Python 3.11 would load the model to answer.
    """

    @property
    def name(self) -> str: ...
    @property
    def width(self) -> int: ...
    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """A row for each text, (len(texts), width), float32. `query` is True for texts to search with."""
        ...


# -- what a program decides --------------------------------------------------------------------------------------

Visibility: TypeAlias = "Callable[[Tool, Caller | None], bool]"
"""Whether a caller may see a tool, in addition to the tool's `roles`."""

ToolRunner: TypeAlias = "Callable[[Tool, dict[str, Any], ToolContext], Any]"
"""Runs the tools that have no function of their own."""


class VersionedVisibility(Protocol):
    """Optional, for a `Visibility`: answers are kept as long as `version()` gives the same value."""

    def version(self) -> Hashable: ...


class ServerVisibility(Protocol):
    """Optional, for a `Visibility`: whether a caller may hear of a server that has not listed any tool yet.

    Without it the `Visibility` is asked about a `Tool` of that server, with an empty name.
    """

    def sees_server(self, server: str, caller: Caller | None, /) -> bool: ...


class AsyncCallable(Protocol):
    """Optional, for the function of a tool: async code uses `call_async` in its place."""

    def call_async(self, *args: Any, **kwargs: Any) -> Any: ...


# -- a layer -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sleep:
    """To wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Do:
    """To call a function; `TimeoutError` after `seconds`, or after this `share` of the time left of a limited turn."""

    function: Callable[[], Any]
    seconds: float | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """To write a fact into the journal."""

    event: Event


RequestT_co = TypeVar("RequestT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Within(Generic[RequestT_co]):
    """To have a request done in time; otherwise `TimeoutError` is raised."""

    seconds: float
    request: RequestT_co


# What each generator of a layer yields, is sent for the request it yields, and returns. For a `Do` it is sent what the
# function returned, of any type: write `value: Any = yield Do(…)`.
ToolAnswer: TypeAlias = "ToolResult | ToolWaiting"
AnswersById: TypeAlias = "Mapping[str, ToolAnswer]"
RunSteps: TypeAlias = "Generator[Run | Within[Run] | Sleep | Do | Record, Finished | Paused, Finished | Paused]"
RoundSteps: TypeAlias = "Generator[Round | Within[Round] | Sleep | Do | Record, AnswersById, AnswersById]"
ModelSteps: TypeAlias = "Generator[CallModel | Within[CallModel] | Sleep | Do | Record, Reply, Reply]"
ToolSteps: TypeAlias = "Generator[Call | Within[Call] | Sleep | Do | Record, ToolAnswer, ToolAnswer]"


class RunLayer(Protocol):
    """Around one turn, or what is left of it."""

    def around_run(self, run: Run, /) -> RunSteps: ...


class RoundLayer(Protocol):
    """Around the open calls of a reply; it returns the answers by call id."""

    def around_round(self, calls: Round, /) -> RoundSteps: ...


class ModelLayer(Protocol):
    """Around one call of the model."""

    def around_model(self, request: CallModel, /) -> ModelSteps: ...


class ToolLayer(Protocol):
    """Around one call of a tool."""

    def around_tool(self, call: Call, /) -> ToolSteps: ...


class StoreLayer(Protocol):
    """A layer that brings the store of the journals; it needs nothing else."""

    @property
    def store(self) -> JournalStore | None: ...


Layer: TypeAlias = RunLayer | RoundLayer | ModelLayer | ToolLayer | StoreLayer
"""One or more of the four generators, or a store.

A generator yields the request it was given, or a changed copy, to have it done. It gets back the result, and returns it
or another one. It may yield again (a retry), or not at all (a refusal). For its own work it yields `Sleep`, `Do`,
`Record` or `Within`, so it never blocks and never awaits. It keeps no state: what it must remember is a `Noted` fact.
"""


class NamedLayer(Protocol):
    """Optional: a layer takes the place of the default one with this name."""

    @property
    def name(self) -> str: ...


class GateLayer(Protocol):
    """Optional: with `gate = True` a layer judges calls; if it raises, no call of the round runs.

    With `gate = False` nothing depends on it: if it raises, this is logged, and the step is done without it.
    """

    @property
    def gate(self) -> bool: ...


class BufferingLayer(Protocol):
    """Optional: with `buffers = True` a layer may change or refuse a reply, so no piece of it is shown early."""

    @property
    def buffers(self) -> bool: ...


class ReplyFilter(Protocol):
    """Changes a reply as it comes in: `take` gives the deltas to show for one, `rest` those it still keeps."""

    def take(self, delta: TextDelta, /) -> Iterable[TextDelta]: ...
    def rest(self) -> Iterable[TextDelta]: ...


class StreamingLayer(Protocol):
    """Optional: a layer gives a new `ReplyFilter` for each reply that is shown as it comes in."""

    def pieces(self) -> ReplyFilter: ...


class RedactingLayer(Protocol):
    """Optional: the fact to keep in place of a fact, called before it is stored or shown. Quick, no side effects."""

    def as_stored(self, fact: Event, /) -> Event: ...


Observer: TypeAlias = "Callable[[Event | TextDelta | ReplyDiscarded], object]"
"""Gets every event as it happens. An exception it raises is logged and dropped."""

# -- a model, a wire ---------------------------------------------------------------------------------------------

ReplyStream: TypeAlias = "Iterator[TextDelta | Reply]"
AsyncReplyStream: TypeAlias = "AsyncIterator[TextDelta | Reply]"
ModelAnswer: TypeAlias = "Reply | ReplyStream | AsyncReplyStream | Awaitable[Reply | AsyncReplyStream]"


class Model(Protocol):
    """Asks a model; returns a `Reply`, or an iterator of `TextDelta` that ends with a `Reply`. Either may be async."""

    def __call__(self, request: CallModel, /) -> ModelAnswer: ...


class NamedModel(Protocol):
    """Optional: the name under which the model's calls are billed."""

    @property
    def name(self) -> str: ...


class NativeModel(Protocol):
    """Optional, for a model or a wire: how it brings found tools to the model by itself; None if it does not."""

    @property
    def native(self) -> NativeDelivery | None: ...


class SchemaModel(Protocol):
    """Optional: with `takes_schema = True` the provider enforces `CallModel.schema`; other models read it as text."""

    @property
    def takes_schema(self) -> bool: ...


class ShowsTools(Protocol):
    """What a wire needs of a `Session`."""

    def tools(self) -> list[Shown]: ...


class Wire(Protocol):
    """One provider's message format, dicts in and dicts out: a module or an object. No SDK is imported.

    `reply` is the whole object that the provider's SDK returned, or its dict.
    """

    def tools_for(self, session: ShowsTools, /) -> list[dict[str, Any]]:
        """The `tools` of the next request."""
        ...

    def message_from(self, reply: Any, /) -> dict[str, Any] | list[dict[str, Any]]:
        """The assistant's message of a reply, to send back with the history; a list where a reply is several items."""
        ...

    def calls_in(self, reply: Any, /) -> list[ToolCall]:
        """The calls of a reply, in the model's order."""
        ...

    def results_for(self, answered: Iterable[tuple[ToolCall, ToolResult]], /) -> list[dict[str, Any]]:
        """The messages that carry the results back."""
        ...


# -- stores ------------------------------------------------------------------------------------------------------


class JournalStore(Protocol):
    """Where journals live; `toolsearch.stores` has some.

    `append` stores all facts or none. It raises `StateError` if `position` is not the journal's length: of two writers,
    one fails before it does anything. `load` gives all facts in order, an empty list for an unknown id. `delete` says
    whether there was a journal. `list` gives the ids, in any order.
    """

    def append(self, conversation_id: str, position: int, facts: Sequence[Mapping[str, Any]]) -> None: ...
    def load(self, conversation_id: str) -> list[dict[str, Any]]: ...
    def delete(self, conversation_id: str) -> bool: ...
    def list(self) -> Iterable[str]: ...


class InMemoryStore(Protocol):
    """Optional: with `in_memory = True` a store never waits, so `arun` calls it without a thread."""

    @property
    def in_memory(self) -> bool: ...


class LeasingStore(Protocol):
    """Optional: a store that lets one worker at a time work on a conversation, as `SqliteStore` does.

    `lease` takes or renews the lease of a conversation for an owner, a text that is unique to one turn of one worker,
    for `seconds` from now. It returns who has it then: `owner`; or another one, whose time is not over, and nothing has
    changed. The lease of the owner `instead_of` counts as over: its process has ended. Measure the time by a clock that
    does not jump, such as the database's own or `time.monotonic`. `release` ends the lease, if `owner` has it.
    """

    def lease(self, conversation_id: str, owner: str, seconds: float, *, instead_of: str = "") -> str: ...
    def release(self, conversation_id: str, owner: str) -> None: ...


class MemoryTexts(Protocol):
    """Where memories live: for each owner (a text, see `builtin_tools.owner_of`), texts by key.

    `save` with an empty text forgets the key. With `arun` both methods may be async.
    """

    def load(self, owner: str) -> Mapping[str, str] | Awaitable[Mapping[str, str]]: ...
    def save(self, owner: str, key: str, text: str) -> Awaitable[None] | None: ...
