"""Threads that never keep the interpreter alive: a tool that hangs is left behind."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

__all__ = ["TIMEOUT_SECONDS", "in_thread", "start", "within"]

TIMEOUT_SECONDS = 1e9  # a longer wait, which no clock can time, counts as endless

T = TypeVar("T")


def start(function: Callable[[], object], name: str = "toolsearch") -> None:
    """Runs a function in a daemon thread, in a copy of the caller's context."""
    threading.Thread(target=contextvars.copy_context().run, args=(function,), name=name, daemon=True).start()


def within(function: Callable[[], T], seconds: float) -> T:
    """What a function returns or raises, run by `start`; raises `TimeoutError` if it takes longer."""
    done: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((function(), None))
        except BaseException as error:
            done.put((None, error))

    start(run)
    try:
        value, error = done.get(timeout=seconds if seconds <= TIMEOUT_SECONDS else None)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value]  # there is one where there is no error


async def in_thread(function: Callable[[], T]) -> T:
    """What a function returns or raises, run by `start`; a caller that is cancelled meanwhile does not wait for it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if not done.done():
            if error is None:
                done.set_result(value)  # type: ignore[arg-type]
            else:
                done.set_exception(error)

    def run() -> None:
        value, failure = None, None
        try:
            value = function()
        except StopIteration as error:  # which no future can carry
            failure = RuntimeError(f"StopIteration: {error}")
            failure.__cause__ = error
        except BaseException as error:
            failure = error  # type: ignore[assignment]
        with suppress(RuntimeError):  # the loop has ended: nobody is waiting any longer
            loop.call_soon_threadsafe(settle, value, failure)

    start(run)
    return await done
