"""The two drivers of a turn: one works with threads, one with tasks. They decide nothing themselves."""

from __future__ import annotations

import asyncio
import math
import queue
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from functools import partial
from typing import assert_never

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
from toolsearch.loop.leases import Lease
from toolsearch.loop.stored_journal import StoredJournal
from toolsearch.loop.trampoline import Trampoline
from toolsearch.loop.turn_loop import Result, TurnLoop
from toolsearch.support.context import in_conversation
from toolsearch.support.threads import start

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
        self.thrown: BaseException | None = None  # what the consumer threw into the stream

    def goes_on(self) -> bool:
        """As `advance`; at the end of a cancelled turn it re-raises what made the consumer stop."""
        stops = isinstance(self.error, GeneratorExit | asyncio.CancelledError | KeyboardInterrupt)
        if stops or (self.error is not None and self.error is self.thrown):
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
    turn: TurnLoop, journal: StoredJournal, inbox: queue.SimpleQueue[InboxItem]
) -> Iterator[StreamEvent | Result]:
    """Runs a turn with threads; yields every event as it happens, and the result at the end."""
    try:
        turn.take(journal.take_up())
        steps = _TurnSteps(turn)
        while steps.goes_on():
            with steps:
                match wanted := steps.wanted:
                    case Emit():
                        if steps.closing is None:  # otherwise nobody consumes events any more
                            try:
                                yield wanted.event
                            except BaseException as error:
                                steps.thrown = error
                                raise
                    case Append():
                        journal.append(wanted)
                    case Receive():
                        steps.answer = _next_item(inbox, wanted.seconds, journal.lease)
                    case Spawn():
                        steps.context.run(start, partial(_run, wanted, inbox.put))
                    case Abandon():
                        pass  # a thread cannot be stopped
                    case _:
                        assert_never(wanted)
    finally:
        journal.lease.release()
    yield steps.result


async def adrive_turn(
    turn: TurnLoop, journal: StoredJournal, inbox: asyncio.Queue[InboxItem]
) -> AsyncGenerator[StreamEvent | Result, None]:
    """As `drive_turn`, with tasks."""
    tasks: dict[int, asyncio.Task[None]] = {}
    try:
        turn.take(await journal.atake_up())
        steps = _TurnSteps(turn)
        while steps.goes_on():
            with steps:
                match wanted := steps.wanted:
                    case Emit():
                        if steps.closing is None:
                            yield wanted.event
                    case Append():
                        await journal.aappend(wanted)
                    case Receive():
                        steps.answer = await _next_item_async(inbox, wanted.seconds, journal)
                    case Spawn():
                        running = _arun(wanted, inbox.put_nowait)
                        loop = asyncio.get_running_loop()
                        tasks[wanted.key] = loop.create_task(running, context=steps.context.copy())
                    case Abandon():
                        tasks[wanted.key].cancel()
                    case _:
                        assert_never(wanted)
    finally:
        for task in tasks.values():
            task.cancel()
        await journal.arelease()
    yield steps.result


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


def _next_item(inbox: queue.SimpleQueue[InboxItem], seconds: float | None, lease: Lease) -> InboxItem | None:
    """Waits in short intervals: a Ctrl-C may come just before the wait, or may not end it at all."""
    until = math.inf if seconds is None else time.monotonic() + seconds
    while True:
        try:
            return inbox.get(timeout=max(0.0, min(0.5, lease.seconds_left, until - time.monotonic())))
        except queue.Empty:
            if time.monotonic() >= until:
                return None
            lease.renew()


async def _next_item_async(
    inbox: asyncio.Queue[InboxItem], seconds: float | None, journal: StoredJournal
) -> InboxItem | None:
    until = math.inf if seconds is None else time.monotonic() + seconds
    while True:
        wait = min(journal.lease.seconds_left, until - time.monotonic())
        try:
            async with asyncio.timeout(None if wait == math.inf else wait):
                return await inbox.get()
        except TimeoutError:
            if time.monotonic() >= until:
                return None
            await journal.arenew()
