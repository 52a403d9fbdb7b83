"""What the adapters share: the framework's context of the call that runs, and which calls a person approves first."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from toolsearch import Caller, CallPlan, NotExportable, Session, SetupError, Shown, Tool, ToolCall, ToolSearch

__all__ = [
    "Approval",
    "CallerOf",
    "asking_plan",
    "asking_plans",
    "asks",
    "context_of",
    "definition",
    "definitions",
    "found_in",
    "opened",
    "running_in",
]

log = logging.getLogger("toolsearch")

CallerOf = Callable[[Any], Caller | None]
"""Who a run acts for, from the framework's context of it."""

Approval = Callable[[Tool], bool]
"""Whether a person approves each call of a tool, in addition to the tools whose own definition says so."""

_RUNNING: ContextVar[Mapping[str, Any] | None] = ContextVar("toolsearch_running", default=None)


_TAKEN: WeakKeyDictionary[Session, set[str]] = WeakKeyDictionary()  # what a session took from the history, once


def opened(search: ToolSearch, conversation_id: str | None, caller: Caller | None, found: Iterable[str]) -> Session:
    """The session of a conversation, with what the history says was `found` before: it is loaded, and can be called.

    The history may know more than the session: another process had the conversation, or a durable run took the answer
    of a search from its records. What left the session since, it does not get back.
    """
    session = search.session(conversation_id, caller=caller)
    is_new, loaded = session not in _TAKEN, len(session.loaded)
    taken = _TAKEN.setdefault(session, set())
    session.load(new := [each for each in dict.fromkeys(found) if each not in taken])
    taken.update(new)
    if is_new or len(session.loaded) > loaded:
        session.tools()  # the model was shown them before
    return session


@contextmanager
def running_in(framework: str, context: object) -> Generator[None]:
    """While it lasts, functions that take the framework's own context get this one."""
    token = _RUNNING.set({**(_RUNNING.get() or {}), framework: context})
    try:
        yield
    finally:
        _RUNNING.reset(token)


def context_of(framework: str, tool: str) -> Any:
    """The framework's context of the call that runs. Raises `SetupError` outside the framework's adapter."""
    if (context := (_RUNNING.get() or {}).get(framework)) is None:
        raise SetupError(f"{tool!r} takes the context of {framework}, so it runs only in an agent of that framework")
    return context


@lru_cache(maxsize=4096)
def _told(tool: Tool) -> tuple[str, dict[str, Any]] | None:
    """The description and the schema of a tool as any provider takes them: the framework's model may be any."""
    try:
        made = tool.exported()
    except NotExportable as error:
        log.warning("the tool %r is left out of all requests: %s", tool.id, error)
        return None
    return " ".join(filter(None, (tool.description or tool.fallback_description, made.note))), made.schema


def definitions(tools: Iterable[Shown]) -> list[tuple[Shown, str, dict[str, Any]]]:
    """Tools as a framework is told of them, each with its description and its schema.

    A tool that cannot be expressed is left out; the log says so once.
    """
    made = ((shown, _told(shown.tool)) for shown in tools)
    return [(shown, told[0], dict(told[1])) for shown, told in made if told is not None]


def definition(shown: Shown) -> tuple[str, str, dict[str, Any]]:
    """The same of one tool, with the name that the model calls it by. Raises `SetupError` if it cannot be expressed."""
    for _, text, schema in definitions([shown]):
        return shown.name, text, schema
    raise SetupError(f"the tool {shown.tool.id!r} cannot be expressed for any provider")


def found_in(metadata: object, key: str) -> list[str]:
    """The ids of found tools that an adapter left in the history; what others wrote there counts for nothing."""
    held = metadata.get(key) if isinstance(metadata, Mapping) else None
    return [each for each in held if isinstance(each, str)] if isinstance(held, list | tuple) else []


def asking_plans(session: Session, call: ToolCall, approval: Approval | None) -> list[CallPlan]:
    """The plans that a person has to approve before a call is handled: of the call itself, or of those inside it.

    A call through `call_tool` is judged as a call of the tool that it names, with that tool's arguments.
    """
    plans = [session.decide(each) for each in session.inner_calls(call) or [call]]
    ready = [plan for plan in plans if plan.tool is not None and plan.result is None]
    return [plan for plan in ready if plan.tool is not None and asks(plan.tool, approval)]


def asking_plan(session: Session, call: ToolCall, approval: Approval | None) -> CallPlan | None:
    """The first of `asking_plans`, if there is one."""
    return next(iter(asking_plans(session, call, approval)), None)


def asks(tool: Tool, approval: Approval | None) -> bool:
    """Whether a person approves each call of a tool: its own definition says so, or the program does."""
    return bool(tool.annotations.get("requiresApproval")) or (approval is not None and approval(tool))
