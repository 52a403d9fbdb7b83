"""The front door of the loop: an agent runs conversations, and their state is kept in a store."""

from __future__ import annotations

import asyncio
import queue
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any

from toolsearch.calls import Caller
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.functions import is_async
from toolsearch.errors import SetupError, StateError
from toolsearch.events.facts import UserSaid
from toolsearch.events.journal import read_events
from toolsearch.events.requests import Decision
from toolsearch.loop.actions import ActionNotice, Actions, has_approval
from toolsearch.loop.conversation import Conversation
from toolsearch.loop.drivers import adrive_turn, drive_turn
from toolsearch.loop.effects import InboxItem, StreamEvent
from toolsearch.loop.evictions import Evictions
from toolsearch.loop.layering import checked_layers
from toolsearch.loop.resumption import RunRequest
from toolsearch.loop.stored_journal import StoredJournal
from toolsearch.loop.turn_io import AgentParts
from toolsearch.loop.turn_loop import Result, TurnLoop
from toolsearch.protocols import JournalStore, Layer, Model, Observer, StoreLayer
from toolsearch.support import checks
from toolsearch.support.text import clean
from toolsearch.tool_search import ToolSearch

__all__ = ["Agent"]

LEASE_SECONDS = 30.0


class Agent:
    """A model, a catalog of tools, and layers around each step. One agent serves any number of conversations.

    `model` takes a `CallModel` and returns a `Reply`, or an iterator of `TextDelta` that ends with a `Reply`; either
    may be async. See `toolsearch.wires`. `search` is a `ToolSearch`, or something to make one from: a catalog or a list
    of tools. `system` is the system text, which the session's note about searching follows; or a function from that
    note to the whole text. The first of the `layers` is the outermost. `observe` is one function or several that get
    every event; exceptions they raise are logged. `store` keeps the journals; without one, the last conversations are
    kept in memory, as many and as long as the settings `max_sessions` and `ttl_seconds` say. With `defaults` the
    default layers go before yours, except those that one of yours replaces by having the same name.

    `preselect`: the most tools that are found with the user's own words and come with the message, in each turn; None
    for what the setting `preselect` says. `actions` says what tools of the kind "action" do if no layer asks a person:
    "wait" adds the layer `approval`, "run" runs them; None runs them too, and logs a warning about it once. In a store
    that has leases, a turn keeps other workers off its conversation, which is free again if the process dies, or does
    not renew its lease for `lease_seconds`. `clock` returns seconds since the epoch.
    """

    def __init__(
        self,
        model: Model,
        search: ToolSearch | Catalog | Iterable[Any],
        *,
        system: str | Callable[[str], str] = "",
        layers: Iterable[Layer] = (),
        observe: Observer | Iterable[Observer] = (),
        store: JournalStore | None = None,
        defaults: bool = True,
        preselect: int | None = None,
        actions: Actions | None = None,
        lease_seconds: float | None = LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        checks.function("model", model, "that takes a CallModel, as openai_chat.model(…) is")
        _check_system(system)
        checks.having("store", store, *checks.STORE, none="to keep the last conversations in memory")
        checks.flag("defaults", defaults)
        checks.whole("preselect", preselect, least=0, none="for the setting `preselect`")
        if actions is not None:
            checks.choice("actions", actions, "wait", "run")
        checks.number("lease_seconds", lease_seconds, "a number of seconds", finite=True, none="for no lease")
        checks.function("clock", clock, "that gives seconds since the epoch")
        tool_search = search if isinstance(search, ToolSearch) else ToolSearch(search)
        chosen = checked_layers(layers)
        if defaults:
            from toolsearch.layers._defaults import default_layers

            chosen = [*default_layers(chosen), *chosen]
        if actions == "wait" and not has_approval(chosen):
            from toolsearch.layers import approval

            chosen = [*chosen, approval()]
        self.parts = AgentParts(model, tool_search, system, chosen, _observers(observe), clock, preselect)
        self._lease_seconds = lease_seconds
        self._live: dict[str, TurnLoop] = {}
        stores = [store, *(each.store for each in chosen if checks.offers(each, StoreLayer))]
        own = next((each for each in stores if each is not None), None)
        self._evictions = Evictions(tool_search)
        self.store: JournalStore = own if own is not None else self._evictions.journals(self._live)
        self._lock = threading.Lock()
        self._notice = None if actions else ActionNotice(tool_search.catalog, chosen)
        if self._notice is not None:
            self._notice.look()

    def run(
        self,
        said: str | UserSaid | None = None,
        *,
        conversation_id: str | None = None,
        caller: Caller | None = None,
        decisions: Mapping[str, Decision | bool] | None = None,
    ) -> Result:
        """Works on the user's message until there is an answer, or a person has to decide.

        Without a message (`said`) it continues where the conversation stopped: after a `Paused`, with `decisions` by
        call id, or after a crash. A message to a paused conversation declines the waiting calls. Raises what the model
        raises; the conversation stays valid. Raises `StateError` if another run works on the conversation, or if there
        is no turn to continue.
        """
        *_, result = self.stream(said, conversation_id=conversation_id, caller=caller, decisions=decisions)
        return result  # type: ignore[return-value]  # the last item is the result

    async def arun(
        self,
        said: str | UserSaid | None = None,
        *,
        conversation_id: str | None = None,
        caller: Caller | None = None,
        decisions: Mapping[str, Decision | bool] | None = None,
    ) -> Result:
        """As `run`, for async code."""
        result: StreamEvent | Result | None = None
        async for event in self.astream(said, conversation_id=conversation_id, caller=caller, decisions=decisions):
            result = event
        return result  # type: ignore[return-value]  # the last item is the result

    def stream(
        self,
        said: str | UserSaid | None = None,
        *,
        conversation_id: str | None = None,
        caller: Caller | None = None,
        decisions: Mapping[str, Decision | bool] | None = None,
    ) -> Iterator[StreamEvent | Result]:
        """As `run`, but yields every event as it happens, and the result at the end. Closing it cancels the turn."""
        inbox: queue.SimpleQueue[InboxItem] = queue.SimpleQueue()
        request = RunRequest(_id(conversation_id), caller, _user_message(said), {} if decisions is None else decisions)
        turn = self._begin(request, inbox.put)
        try:
            yield from drive_turn(turn, self._journal_of(turn, is_new=not conversation_id), inbox)
        finally:
            self._end(turn)

    async def astream(
        self,
        said: str | UserSaid | None = None,
        *,
        conversation_id: str | None = None,
        caller: Caller | None = None,
        decisions: Mapping[str, Decision | bool] | None = None,
    ) -> AsyncIterator[StreamEvent | Result]:
        """As `stream`, for async code."""
        loop = asyncio.get_running_loop()
        inbox: asyncio.Queue[InboxItem] = asyncio.Queue()

        def post(item: InboxItem) -> None:
            loop.call_soon_threadsafe(inbox.put_nowait, item)

        request = RunRequest(_id(conversation_id), caller, _user_message(said), {} if decisions is None else decisions)
        turn = self._begin(request, post)
        events = adrive_turn(turn, self._journal_of(turn, is_new=not conversation_id), inbox)
        try:
            async for event in events:
                yield event
        finally:
            try:
                await events.aclose()
            finally:
                self._end(turn)

    def cancel(self, conversation_id: str) -> bool:
        """Stops the turn of a conversation, from any thread; returns whether there was one.

        Every open call is answered as cancelled. A sync tool cannot be stopped: its `ToolContext.cancelled` is set, and
        what it returns is dropped.
        """
        turn = self._live.get(_id(conversation_id))
        if turn is not None:
            turn.cancel()
        return turn is not None

    def conversation(self, conversation_id: str, *, caller: Caller | None = None) -> Conversation:
        """A conversation as its journal has it now, with its transcript, waiting calls and found tools."""
        conversation_id = _id(conversation_id)
        facts = read_events(self.store.load(conversation_id))
        return Conversation.replay(
            self.parts.search, facts, conversation_id=conversation_id, caller=caller, wire=self.parts.model
        )

    def _journal_of(self, turn: TurnLoop, *, is_new: bool) -> StoredJournal:
        return StoredJournal(self.store, turn.id, self._lease_seconds, is_new=is_new)

    def _begin(self, request: RunRequest, post: Callable[[InboxItem], None]) -> TurnLoop:
        if self._notice is not None:
            self._notice.look()
        with self._lock:
            if request.conversation_id in self._live:
                raise StateError(
                    f"conversation {request.conversation_id!r} is being worked on: wait for it, or cancel it first"
                )
            turn = self._live[request.conversation_id] = TurnLoop(self.parts, request, post)
        return turn

    def _end(self, turn: TurnLoop) -> None:
        with self._lock:
            if self._live.get(turn.id) is turn:
                self._evictions.note_turn(turn.id, turn.caller)
                del self._live[turn.id]

    def __repr__(self) -> str:
        return f"Agent({self.parts.search!r}, {len(self.parts.layers)} layers)"


def _check_system(system: object) -> None:
    """The system text, or a function that makes it from the session's note."""
    if callable(system):
        if is_async(system):
            raise SetupError(
                f"the function {system!r} for system is async: pass a plain one, it is called in each round"
            )
    elif not isinstance(system, str):
        raise checks.wrong("system", "a str, or a function from the session's note to one", system)


def _observers(observe: Observer | Iterable[Observer]) -> list[Observer]:
    """`observe` as a list; it may be one function or several."""
    wanted, value = "that takes an event, or several of them", observe
    if not isinstance(value, Iterable | None):
        checks.function("observe", value, wanted)
    observers = [observe] if callable(observe) else list(observe or ())
    for each in observers:
        checks.function("observe", each, wanted)
        if is_async(each):
            raise SetupError(f"the observer {each!r} is async: an observer is a plain function, called for each event")
    return observers


def _id(conversation_id: str | None) -> str:
    if conversation_id is not None and not (conversation_id and isinstance(conversation_id, str)):
        raise SetupError(
            f"conversation_id must be a text that is not empty, not {conversation_id!r}; leave it out for a new one"
        )
    return secrets.token_urlsafe(16) if conversation_id is None else clean(conversation_id)


def _user_message(said: str | UserSaid | None) -> UserSaid | None:
    if said is not None and not isinstance(said, str | UserSaid):
        raise SetupError(f"the user message must be a text or a UserSaid, not {said!r}")
    if not isinstance(said, UserSaid):
        return None if said is None else UserSaid(said)
    text: object = said.text
    if not isinstance(text, str):
        raise SetupError(f"text of UserSaid must be a text, not {text!r}")
    return said
