"""The front door of the loop: an agent, and the two drivers that run its turns, with threads and with tasks."""

from __future__ import annotations

import asyncio
import math
import queue
import secrets
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from toolsearch.calls import Caller
from toolsearch.catalog.functions import is_async
from toolsearch.errors import SetupError, StateError
from toolsearch.events.facts import UserSaid
from toolsearch.events.journal import read_events, stored
from toolsearch.events.requests import CallModel, Decision
from toolsearch.loop.conversation import Conversation
from toolsearch.loop.effects import Cancelled, Drop, Emit, Item, Receive, Spawn, Store, Visible
from toolsearch.loop.layering import checked
from toolsearch.loop.resumption import RunRequest
from toolsearch.loop.turn_loop import Program, Result, TurnLoop
from toolsearch.protocols import JournalStore
from toolsearch.stores.recent import RecentJournals
from toolsearch.support import checks
from toolsearch.support.context import in_conversation
from toolsearch.support.text import clean
from toolsearch.support.threads import in_thread, start
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
        model: Callable[[CallModel], Any],
        search: ToolSearch | Any,
        *,
        system: str = "",
        layers: Iterable[Any] = (),
        observe: Callable[[Any], Any] | Iterable[Callable[[Any], Any]] = (),
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
        chosen = checked(layers)
        if defaults:
            from toolsearch.layers._defaults import default_layers

            chosen = [*default_layers(chosen), *chosen]
        self.program = Program(model, found, system, chosen, _observers(observe), clock)
        self._live: dict[str, TurnLoop] = {}
        own = store if store is not None else _found_store(chosen)
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
        result: Any = None
        async for shown in self.astream(said, conversation_id=conversation_id, caller=caller, decisions=decisions):
            result = shown
        return result  # type: ignore[no-any-return]

    def stream(
        self,
        said: str | UserSaid | None = None,
        *,
        conversation_id: str | None = None,
        caller: Caller | None = None,
        decisions: Mapping[str, Decision | bool] | None = None,
    ) -> Iterator[Visible | Result]:
        """As `run`, giving every event as it happens, and the result at the end. Closing it cancels the turn."""
        inbox: queue.SimpleQueue[Item] = queue.SimpleQueue()
        wish = RunRequest(_id(conversation_id), caller, _said(said), {} if decisions is None else decisions)
        turn = self._begin(wish, inbox.put)
        answer: Any = None
        error: BaseException | None = None
        closing: BaseException | None = None
        try:
            turn.take(read_events(self.store.load(turn.id)) if conversation_id else [])
            steps, context = turn.steps(), in_conversation(turn.id)
            while True:
                try:
                    need = context.run(steps.send, answer) if error is None else context.run(steps.throw, error)
                except StopIteration as end:
                    if closing is not None:
                        raise closing from None
                    yield end.value
                    return
                except BaseException:
                    if closing is not None:  # whoever left gets what made him leave
                        raise closing from None
                    raise
                answer = error = None
                try:
                    match need:
                        case Emit() if closing is None:
                            yield need.event
                        case Store():
                            self._append(turn, need)
                        case Receive():
                            answer = _next_item(inbox, need.seconds)
                        case Spawn():
                            context.run(start, partial(_run, need, inbox.put))
                        case _:
                            pass  # nothing is shown any more, and a thread cannot be stopped
                except (GeneratorExit, KeyboardInterrupt) as raised:
                    error, closing = None if closing else Cancelled(), raised
                except BaseException as raised:
                    error = raised
        finally:
            self._end(turn)

    async def astream(
        self,
        said: str | UserSaid | None = None,
        *,
        conversation_id: str | None = None,
        caller: Caller | None = None,
        decisions: Mapping[str, Decision | bool] | None = None,
    ) -> AsyncIterator[Visible | Result]:
        """As `stream`, for async code."""
        loop = asyncio.get_running_loop()
        inbox: asyncio.Queue[Item] = asyncio.Queue()

        def post(item: Item) -> None:
            loop.call_soon_threadsafe(inbox.put_nowait, item)

        wish = RunRequest(_id(conversation_id), caller, _said(said), {} if decisions is None else decisions)
        turn = self._begin(wish, post)
        answer: Any = None
        error: BaseException | None = None
        closing: BaseException | None = None
        tasks: dict[int, asyncio.Task[None]] = {}
        try:
            turn.take(read_events(await self._aload(turn.id)) if conversation_id else [])
            steps, context = turn.steps(), in_conversation(turn.id)
            while True:
                try:
                    need = context.run(steps.send, answer) if error is None else context.run(steps.throw, error)
                except StopIteration as end:
                    if closing is not None:
                        raise closing from None
                    yield end.value
                    return
                except BaseException:
                    if closing is not None:  # whoever left gets what made him leave
                        raise closing from None
                    raise
                answer = error = None
                try:
                    match need:
                        case Emit() if closing is None:
                            yield need.event
                        case Store():
                            await self._aappend(turn, need)
                        case Receive():
                            answer = await _next_item_async(inbox, need.seconds)
                        case Spawn():
                            running = _arun(need, inbox.put_nowait)
                            tasks[need.key] = loop.create_task(running, context=context.copy())
                        case Drop():
                            tasks[need.key].cancel()
                        case _:
                            pass
                except (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt) as raised:
                    error, closing = None if closing else Cancelled(), raised
                except BaseException as raised:
                    error = raised
        finally:
            for task in tasks.values():
                task.cancel()
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
        return Conversation.replay(self.program.search, facts, conversation_id=conversation_id, caller=caller)

    def _append(self, turn: TurnLoop, need: Store) -> None:
        facts = [stored(event) for event in need.events]
        try:
            self.store.append(turn.id, need.position, facts)
        except KeyboardInterrupt:  # it came before the write, or after it
            if len(self.store.load(turn.id)) == need.position:
                self.store.append(turn.id, need.position, facts)
            raise

    async def _aappend(self, turn: TurnLoop, need: Store) -> None:
        if getattr(self.store, "in_memory", False):  # a thread would cost more than the write
            self._append(turn, need)
        else:
            await _finished(in_thread(partial(self._append, turn, need)))

    async def _aload(self, conversation_id: str) -> list[dict[str, Any]]:
        load = partial(self.store.load, conversation_id)
        return load() if getattr(self.store, "in_memory", False) else await in_thread(load)

    def _begin(self, wish: RunRequest, post: Callable[[Item], None]) -> TurnLoop:
        with self._lock:
            if wish.conversation_id in self._live:
                raise StateError(
                    f"the conversation {wish.conversation_id!r} is being worked on: wait for it, or cancel it first"
                )
            turn = self._live[wish.conversation_id] = TurnLoop(self.program, wish, post)
        return turn

    def _end(self, turn: TurnLoop) -> None:
        with self._lock:
            if self._live.get(turn.id) is turn:
                del self._live[turn.id]

    def __repr__(self) -> str:
        return f"Agent({self.program.search!r}, {len(self.program.layers)} layers)"


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


# -- doing what the loop needs -----------------------------------------------------------------------------------


def _run(need: Spawn, put: Callable[[Item], None]) -> None:
    """An activity in its thread."""
    try:
        value = need.activity.run(lambda posted: put(Item(need.key, posted)))
    except BaseException as error:
        put(Item(need.key, done=True, error=error))
    else:
        put(Item(need.key, done=True, value=value))


async def _arun(need: Spawn, put: Callable[[Item], None]) -> None:
    """An activity as a task."""
    try:
        value = await need.activity.arun(lambda posted: put(Item(need.key, posted)))
    except asyncio.CancelledError:
        put(Item(need.key, done=True, error=RuntimeError("it was cancelled from inside")))
        raise
    except BaseException as error:
        put(Item(need.key, done=True, error=error))
    else:
        put(Item(need.key, done=True, value=value))


def _next_item(inbox: queue.SimpleQueue[Item], seconds: float | None) -> Item | None:
    """Wakes up now and then: an interrupt from the keyboard may come just before the wait, or not end it at all."""
    until = math.inf if seconds is None else time.monotonic() + seconds
    while True:
        try:
            return inbox.get(timeout=max(0.0, min(0.5, until - time.monotonic())))
        except queue.Empty:
            if time.monotonic() >= until:
                return None


async def _next_item_async(inbox: asyncio.Queue[Item], seconds: float | None) -> Item | None:
    try:
        return await (inbox.get() if seconds is None else asyncio.wait_for(inbox.get(), seconds))
    except TimeoutError:
        return None


async def _finished(write: Awaitable[None]) -> None:
    """Waits for a write to its end, even if the task is cancelled meanwhile: facts are stored one after another."""
    running = asyncio.ensure_future(write)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    running.result()
    if cancelled is not None:
        raise cancelled


def _found_store(layers: Iterable[Any]) -> JournalStore | None:
    return next((layer.store for layer in layers if getattr(layer, "store", None) is not None), None)
