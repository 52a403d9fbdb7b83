"""For which conversation and call the code that runs now works, so that logs, traces and metrics can say so.

A turn runs in a context of its own, and every thread and task of it in a copy of that one: what is set there reaches
the tools and nobody else, whoever reads the stream, and from whatever thread.
"""

from __future__ import annotations

from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass

__all__ = ["Scope", "in_call", "in_conversation", "scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Ids of the conversation and of the call; empty where there is none."""

    conversation: str = ""
    call: str = ""


_NOW: ContextVar[Scope] = ContextVar("toolsearch_scope", default=Scope())  # noqa: B039  # it is frozen


def scope() -> Scope:
    """The conversation and the call that the code which asks works for."""
    return _NOW.get()


def in_conversation(conversation: str) -> Context:
    """A copy of the present context, for a turn of this conversation."""
    context = copy_context()
    context.run(_NOW.set, Scope(conversation))
    return context


def in_call(call: str) -> None:
    """From here on the present context, that of a thread or task of a turn, is of this call."""
    _NOW.set(Scope(_NOW.get().conversation, call))
