"""The two drivers of a turn: one works with threads, one with tasks. They decide nothing themselves."""

from __future__ import annotations

import asyncio
import math
import queue
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import partial
from typing import assert_never

from toolsearch.events.journal import read_events, stored
from toolsearch.loop.effects import (
    Abandon,
    Append,
    Cancelled,
    Effect,
    Emit,
    InboxItem,
    Receive,
    Spawn,
    StreamEvent,
)
from toolsearch.loop.trampoline import Trampoline
from toolsearch.loop.turn_loop import Result, TurnLoop
from toolsearch.protocols import InMemoryStore, JournalStore
from toolsearch.support.checks import offers
from toolsearch.support.context import in_conversation
from toolsearch.support.threads import in_thread, start

__all__ = ["adrive_turn", "drive_turn"]


class _TurnSteps(Trampoline[Effect, Result]):
    """The steps of a turn, in a context of their own. If the consumer stops, the turn is cancelled, and then ends."""

    def __init__(self, turn: TurnLoop) -> None:
        self.context = context = in_conversation(turn.id)

        # Not a method of this object: a turn that refers to itself would stay until the garbage collector comes.
        def run(step: Callable[[object], Effect], value: object) -> Effect:
            return context.run(step, value)

        super().__init__(turn.steps(), passing=(), run=run)
        self.closing: BaseException | None = None  # the exception that made the consumer stop

    def goes_on(self) -> bool:
        """As `advance`; at the end of a cancelled turn it re-raises what made the consumer stop."""
        if isinstance(self.error, GeneratorExit | asyncio.CancelledError | KeyboardInterrupt):
            first, self.closing = self.closing is None, self.error
            self.error = Cancelled() if first else None
        try:
            if self.advance():
                return True
        except BaseException:
            if self.closing is not None:
                raise self.closing from None
            raise
        if self.closing is not None:
            raise self.closing
        return False


def drive_turn(
    turn: TurnLoop, store: JournalStore, inbox: queue.SimpleQueue[InboxItem], *, is_stored: bool
) -> Iterator[StreamEvent | Result]:
    """Runs a turn with threads; yields every event as it happens, and the result at the end."""
    turn.take(read_events(store.load(turn.id)) if is_stored else [])
    steps = _TurnSteps(turn)
    while steps.goes_on():
        with steps:
            match wanted := steps.wanted:
                case Emit():
                    if steps.closing is None:  # otherwise nobody consumes events any more
                        yield wanted.event
                case Append():
                    append(store, turn.id, wanted)
                case Receive():
                    steps.answer = _next_item(inbox, wanted.seconds)
                case Spawn():
                    steps.context.run(start, partial(_run, wanted, inbox.put))
                case Abandon():
                    pass  # a thread cannot be stopped
                case _:
                    assert_never(wanted)
    yield steps.result


async def adrive_turn(
    turn: TurnLoop, store: JournalStore, inbox: asyncio.Queue[InboxItem], *, is_stored: bool
) -> AsyncGenerator[StreamEvent | Result, None]:
    """As `drive_turn`, with tasks."""
    tasks: dict[int, asyncio.Task[None]] = {}
    try:
        turn.take(read_events(await _aload(store, turn.id)) if is_stored else [])
        steps = _TurnSteps(turn)
        while steps.goes_on():
            with steps:
                match wanted := steps.wanted:
                    case Emit():
                        if steps.closing is None:
                            yield wanted.event
                    case Append():
                        await _aappend(store, turn.id, wanted)
                    case Receive():
                        steps.answer = await _next_item_async(inbox, wanted.seconds)
                    case Spawn():
                        running = _arun(wanted, inbox.put_nowait)
                        loop = asyncio.get_running_loop()
                        tasks[wanted.key] = loop.create_task(running, context=steps.context.copy())
                    case Abandon():
                        tasks[wanted.key].cancel()
                    case _:
                        assert_never(wanted)
        yield steps.result
    finally:
        for task in tasks.values():
            task.cancel()


# -- the store ---------------------------------------------------------------------------------------------------


def append(store: JournalStore, conversation_id: str, wanted: Append) -> None:
    """Stores facts, even if Ctrl-C comes meanwhile."""
    facts = [stored(event) for event in wanted.events]
    try:
        store.append(conversation_id, wanted.position, facts)
    except KeyboardInterrupt:  # before the write, or after it
        if len(store.load(conversation_id)) == wanted.position:
            store.append(conversation_id, wanted.position, facts)
        raise


async def _aappend(store: JournalStore, conversation_id: str, wanted: Append) -> None:
    if _is_in_memory(store):  # a thread would cost more than the write
        append(store, conversation_id, wanted)
    else:
        await _finish(in_thread(partial(append, store, conversation_id, wanted)))


async def _aload(store: JournalStore, conversation_id: str) -> list[dict[str, object]]:
    load = partial(store.load, conversation_id)
    return load() if _is_in_memory(store) else await in_thread(load)


def _is_in_memory(store: object) -> bool:
    return offers(store, InMemoryStore) and bool(store.in_memory)


async def _finish(write: Awaitable[None]) -> None:
    """Waits until a write has ended, even if the task is cancelled: the next write must not overtake it."""
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


# -- activities --------------------------------------------------------------------------------------------------


def _run(wanted: Spawn, put: Callable[[InboxItem], None]) -> None:
    """Runs an activity in this thread, and puts what it posts and its end into the inbox."""
    try:
        value = wanted.activity.run(lambda posted: put(InboxItem(wanted.key, posted)))
    except BaseException as error:
        put(InboxItem(wanted.key, done=True, error=error))
    else:
        put(InboxItem(wanted.key, done=True, value=value))


async def _arun(wanted: Spawn, put: Callable[[InboxItem], None]) -> None:
    """As `_run`, as a task."""
    try:
        value = await wanted.activity.arun(lambda posted: put(InboxItem(wanted.key, posted)))
    except asyncio.CancelledError:
        put(InboxItem(wanted.key, done=True, error=RuntimeError("the activity was cancelled from inside")))
        raise
    except BaseException as error:
        put(InboxItem(wanted.key, done=True, error=error))
    else:
        put(InboxItem(wanted.key, done=True, value=value))


def _next_item(inbox: queue.SimpleQueue[InboxItem], seconds: float | None) -> InboxItem | None:
    """Waits in short intervals: a Ctrl-C may come just before the wait, or may not end it at all."""
    until = math.inf if seconds is None else time.monotonic() + seconds
    while True:
        try:
            return inbox.get(timeout=max(0.0, min(0.5, until - time.monotonic())))
        except queue.Empty:
            if time.monotonic() >= until:
                return None


async def _next_item_async(inbox: asyncio.Queue[InboxItem], seconds: float | None) -> InboxItem | None:
    try:
        return await (inbox.get() if seconds is None else asyncio.wait_for(inbox.get(), seconds))
    except TimeoutError:
        return None
