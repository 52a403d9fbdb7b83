"""What the adapters share: the framework's context of the call that runs, and which calls a person approves first."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from toolsearch import CallPlan, Session, SetupError, Shown, Tool, ToolCall

__all__ = ["Approval", "asking_plan", "context_of", "definition", "found_in", "running_in"]

Approval = Callable[[Tool], bool]
"""Whether a person approves each call of a tool, in addition to the tools whose own definition says so."""

_RUNNING: ContextVar[Mapping[str, Any] | None] = ContextVar("toolsearch_running", default=None)


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


def definition(shown: Shown) -> tuple[str, str, dict[str, Any]]:
    """A tool as a framework is told of it: the name that the model calls it by, its description, its schema."""
    tool = shown.tool
    return shown.name, tool.description or tool.fallback_description, dict(tool.input_schema)


def found_in(metadata: object, key: str) -> list[str]:
    """The ids of found tools that an adapter left in the history; what others wrote there counts for nothing."""
    held = metadata.get(key) if isinstance(metadata, Mapping) else None
    return [each for each in held if isinstance(each, str)] if isinstance(held, list | tuple) else []


def asking_plan(session: Session, call: ToolCall, approval: Approval | None) -> CallPlan | None:
    """The plan of the call, or of the first one inside it, that a person has to approve; None if there is none.

    A call through `call_tool` is judged as a call of the tool that it names, with that tool's arguments.
    """
    for each in session.inner_calls(call) or [call]:
        plan = session.decide(each)
        if plan.tool is not None and plan.result is None and (_asks(plan.tool) or (approval and approval(plan.tool))):
            return plan
    return None


def _asks(tool: Tool) -> bool:
    """Whether a tool's own definition says that a person approves each call, as its framework would see to."""
    return bool(tool.annotations.get("requiresApproval"))
