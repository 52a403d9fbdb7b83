"""Threads that never keep the interpreter alive: a tool that hangs is left behind."""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["TIMEOUT_SECONDS", "StopFlag", "after_fork", "in_thread", "in_thread_if", "start", "within"]

TIMEOUT_SECONDS = 1e9  # a longer wait, which no clock can time, counts as endless

T = TypeVar("T")


class StopFlag(threading.Event):
    """An event that sets others with it: of what has a time limit, and so may be stopped alone too."""

    def __init__(self) -> None:
        super().__init__()
        self._followers: weakref.WeakSet[threading.Event] = weakref.WeakSet()
        self._adding = threading.Lock()

    def follower(self) -> threading.Event:
        """An event of its own, which is set when this one is."""
        event = threading.Event()
        with self._adding:
            self._followers.add(event)
        if self.is_set():
            event.set()
        return event

    def set(self) -> None:
        super().set()
        with self._adding:
            followers = list(self._followers)
        for each in followers:
            each.set()


@dataclass(frozen=True, slots=True)
class _Raised:
    """What a function raised, in place of what it returns."""

    error: BaseException


def _outcome_of(function: Callable[[], T]) -> T | _Raised:
    try:
        return function()
    except BaseException as error:
        return _Raised(error)


def start(function: Callable[[], object], name: str = "toolsearch") -> None:
    """Runs a function in a daemon thread, in a copy of the caller's context."""
    threading.Thread(target=contextvars.copy_context().run, args=(function,), name=name, daemon=True).start()


def within(function: Callable[[], T], seconds: float) -> T:
    """What a function returns or raises, run by `start`; raises `TimeoutError` if it takes longer."""
    done: queue.SimpleQueue[T | _Raised] = queue.SimpleQueue()
    start(lambda: done.put(_outcome_of(function)))
    try:
        outcome = done.get(timeout=seconds if seconds <= TIMEOUT_SECONDS else None)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    if isinstance(outcome, _Raised):
        raise outcome.error
    return outcome


_RENEWALS: weakref.WeakKeyDictionary[object, Callable[[Any], None]] = weakref.WeakKeyDictionary()


def after_fork(owner: T, renew: Callable[[T], None]) -> None:
    """Has `renew` called with its owner in every forked process, for as long as the owner lives.

    A fork takes no thread along, but the locks as they are: one that a background thread held stays locked for ever.
    """
    _RENEWALS[owner] = renew


def _renew_all() -> None:
    for owner, renew in [*_RENEWALS.items()]:
        renew(owner)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)


async def in_thread(function: Callable[[], T]) -> T:
    """What a function returns or raises, run by `start`; a caller that is cancelled meanwhile does not wait for it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(outcome: T | _Raised) -> None:
        if done.done():
            return
        if not isinstance(outcome, _Raised):
            done.set_result(outcome)
        elif isinstance(outcome.error, StopIteration):  # which no future can carry
            failure = RuntimeError(f"StopIteration: {outcome.error}")
            failure.__cause__ = outcome.error
            done.set_exception(failure)
        else:
            done.set_exception(outcome.error)

    def run() -> None:
        outcome = _outcome_of(function)
        with suppress(RuntimeError):  # the loop has ended: nobody is waiting any longer
            loop.call_soon_threadsafe(settle, outcome)

    start(run)
    return await done


async def in_thread_if(is_large: bool, function: Callable[[], T]) -> T:
    """What a function returns or raises, run in a thread if it has so much to do that the event loop would stand."""
    return await in_thread(function) if is_large else function()
