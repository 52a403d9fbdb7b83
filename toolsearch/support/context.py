"""The conversation and the call that the running code works for, so that logs, traces and metrics can name them.

A turn runs in a context of its own, and each of its threads and tasks in a copy of that context. What is set there
reaches the tools and nothing else, whoever reads the stream, and from whatever thread.
"""

from __future__ import annotations

from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass

__all__ = ["Scope", "in_call", "in_conversation", "scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Ids of the conversation and of the call; empty outside of one."""

    conversation: str = ""
    call: str = ""


_NOW: ContextVar[Scope] = ContextVar("toolsearch_scope", default=Scope())  # noqa: B039  # it is frozen


def scope() -> Scope:
    """The conversation and the call that the calling code works for."""
    return _NOW.get()


def in_conversation(conversation: str) -> Context:
    """A copy of the present context, for a turn of this conversation."""
    context = copy_context()
    context.run(_NOW.set, Scope(conversation))
    return context


def in_call(call: str) -> None:
    """Marks the present context, that of a thread or task of a turn, as working for this call from here on."""
    _NOW.set(Scope(_NOW.get().conversation, call))
