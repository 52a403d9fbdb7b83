"""The front door of the loop: an agent, which drives conversations and keeps none itself."""

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
from toolsearch.loop.conversation import Conversation
from toolsearch.loop.drivers import adrive_turn, drive_turn
from toolsearch.loop.effects import InboxItem, StreamEvent
from toolsearch.loop.layering import checked_layers
from toolsearch.loop.resumption import RunRequest
from toolsearch.loop.turn_io import AgentParts
from toolsearch.loop.turn_loop import Result, TurnLoop
from toolsearch.protocols import JournalStore, Layer, Model, Observer, StoreLayer
from toolsearch.stores.recent import RecentJournals
from toolsearch.support import checks
from toolsearch.support.text import clean
from toolsearch.tool_search import ToolSearch

__all__ = ["Agent"]


class Agent:
    """A model, a catalog, and layers around each step; it drives conversations and keeps none itself.

    `model` takes a `CallModel` and gives a `Reply`, or an iterator of `TextDelta` that ends with a `Reply`; either may
    be async (see `toolsearch.wires`). `search` is a `ToolSearch`, or what makes one. `layers`: the first is outermost.
    `observe` are functions that get every event; what they raise is logged. `store` keeps the journals; without one,
    those of the last conversations are kept in memory. With `defaults` the layers of `toolsearch.layers._defaults` go
    before the others, but for those whose name one of the others has.
    """

    def __init__(
        self,
        model: Model,
        search: ToolSearch | Catalog | Iterable[Any],
        *,
        system: str = "",
        layers: Iterable[Layer] = (),
        observe: Observer | Iterable[Observer] = (),
        store: JournalStore | None = None,
        defaults: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        checks.function("model", model, "that takes a CallModel, as openai_chat.model(…) is")
        checks.text("system", system)
        checks.having("store", store, *checks.STORE, none="to keep the last conversations in memory")
        checks.flag("defaults", defaults)
        checks.function("clock", clock, "that gives seconds since the epoch")
        found = search if isinstance(search, ToolSearch) else ToolSearch(search)
        chosen = checked_layers(layers)
        if defaults:
            from toolsearch.layers._defaults import default_layers

            chosen = [*default_layers(chosen), *chosen]
        self.parts = AgentParts(model, found, system, chosen, _observers(observe), clock)
        self._live: dict[str, TurnLoop] = {}
        brought = next((each.store for each in chosen if isinstance(each, StoreLayer) and each.store is not None), None)
        own = store if store is not None else brought
        self.store: JournalStore = own if own is not None else RecentJournals(found.settings.max_sessions, self._live)
        self._lock = threading.Lock()

    def run(
        self,
        said: str | UserSaid | None = None,
        *,
        conversation_id: str | None = None,
        caller: Caller | None = None,
        decisions: Mapping[str, Decision | bool] | None = None,
    ) -> Result:
        """Works on what the user said until there is an answer, or a person has to decide.

        Without `said` it goes on where the conversation stopped: with `decisions` by call id for a `Paused`, or after a
        crash. What is said to a paused conversation declines what was waiting. Raises what the model raises; the
        conversation stays whole then. Raises `StateError` if the conversation is being worked on, or has nothing to do.
        """
        *_, result = self.stream(said, conversation_id=conversation_id, caller=caller, decisions=decisions)
        return result  # type: ignore[return-value]  # the last one is

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
        return result  # type: ignore[return-value]  # the last one is

    def stream(
        self,
        said: str | UserSaid | None = None,
        *,
        conversation_id: str | None = None,
        caller: Caller | None = None,
        decisions: Mapping[str, Decision | bool] | None = None,
    ) -> Iterator[StreamEvent | Result]:
        """As `run`, giving every event as it happens, and the result at the end. Closing it cancels the turn."""
        inbox: queue.SimpleQueue[InboxItem] = queue.SimpleQueue()
        request = RunRequest(_id(conversation_id), caller, _said(said), {} if decisions is None else decisions)
        turn = self._begin(request, inbox.put)
        try:
            yield from drive_turn(turn, self.store, inbox, is_stored=bool(conversation_id))
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

        request = RunRequest(_id(conversation_id), caller, _said(said), {} if decisions is None else decisions)
        turn = self._begin(request, post)
        events = adrive_turn(turn, self.store, inbox, is_stored=bool(conversation_id))
        try:
            async for event in events:
                yield event
        finally:
            try:
                await events.aclose()
            finally:
                self._end(turn)

    def cancel(self, conversation_id: str) -> bool:
        """Stops the turn of a conversation, from any thread; says whether one was going on.

        Every open call is answered as cancelled. A sync tool cannot be stopped: its `ToolContext.cancelled` is set, and
        what it returns is dropped.
        """
        turn = self._live.get(_id(conversation_id))
        if turn is not None:
            turn.cancel()
        return turn is not None

    def conversation(self, conversation_id: str, *, caller: Caller | None = None) -> Conversation:
        """A conversation as its journal has it now: its transcript, what is waiting, what it has found."""
        conversation_id = _id(conversation_id)
        facts = read_events(self.store.load(conversation_id))
        return Conversation.replay(self.parts.search, facts, conversation_id=conversation_id, caller=caller)

    def _begin(self, request: RunRequest, post: Callable[[InboxItem], None]) -> TurnLoop:
        with self._lock:
            if request.conversation_id in self._live:
                raise StateError(
                    f"the conversation {request.conversation_id!r} is being worked on: wait for it, or cancel it first"
                )
            turn = self._live[request.conversation_id] = TurnLoop(self.parts, request, post)
        return turn

    def _end(self, turn: TurnLoop) -> None:
        with self._lock:
            if self._live.get(turn.id) is turn:
                del self._live[turn.id]

    def __repr__(self) -> str:
        return f"Agent({self.parts.search!r}, {len(self.parts.layers)} layers)"


def _observers(observe: Any) -> list[Callable[[Any], Any]]:
    """What `observe` names, which may be one function or several."""
    if callable(observe) or not isinstance(observe, Iterable | None):
        observe = [observe]
    observers: list[Callable[[Any], Any]] = list(observe or ())
    for each in observers:
        checks.function("observe", each, "that takes an event, or several of them")
        if is_async(each):
            raise SetupError(f"the observer {each!r} is async: an observer is a plain function, called for each event")
    return observers


def _id(conversation_id: str | None) -> str:
    if conversation_id is not None and not (conversation_id and isinstance(conversation_id, str)):
        raise SetupError(
            f"a conversation id must be text, not {conversation_id!r}; leave it out for a new conversation"
        )
    return secrets.token_urlsafe(16) if conversation_id is None else clean(conversation_id)


def _said(said: str | UserSaid | None) -> UserSaid | None:
    if said is not None and not isinstance(said, str | UserSaid):
        raise SetupError(f"what the user said must be text or UserSaid, not {said!r}")
    if not isinstance(said, UserSaid):
        return None if said is None else UserSaid(said)
    text: object = said.text
    if not isinstance(text, str):
        raise SetupError(f"the text of UserSaid must be text, not {text!r}")
    return said
