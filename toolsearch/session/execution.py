"""Runs the tool of a planned call, with threads or with tasks. Every outcome becomes an answer."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from toolsearch.calls import STATUSES, Caller, Status, ToolContext, ToolResult
from toolsearch.calls.answers import answer
from toolsearch.calls.returned import read_result
from toolsearch.catalog.functions import adrained, context_parameters, drained, in_async, is_async
from toolsearch.errors import SetupError
from toolsearch.protocols import ToolRunner
from toolsearch.schemas.validation import ArgumentsError
from toolsearch.session.call_plans import CallPlan, misfit
from toolsearch.support.large_values import is_large
from toolsearch.support.text import reason_of

__all__ = ["Execution"]

log = logging.getLogger("toolsearch")

Function = Callable[..., object]


class _Stopped(Exception):
    """Nobody waits for the call any more, and its tool has not begun."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What a tool returned, read already."""

    result: ToolResult


class Execution:
    """One planned call of a tool. `run_others` runs tools that have no function of their own."""

    def __init__(
        self,
        plan: CallPlan,
        conversation_id: str,
        caller: Caller | None,
        run_others: ToolRunner | None,
        cancelled: threading.Event | None,
    ) -> None:
        if plan.tool is None:
            raise SetupError(f"the plan for {plan.call.name!r} has no tool to run")
        self._call, self._tool, self._plan = plan.call, plan.tool, plan
        self._run_others = run_others
        flag = cancelled or threading.Event()
        self._context = ToolContext(conversation_id, plan.call.id, caller, _digest(plan), flag)

    def run(self) -> ToolResult:
        """Runs the tool in this thread. For an async tool, the answer says what to use instead."""
        value, error = self._attempt(lambda function: function)
        if error is not None:
            return self._result_of_error(error)
        if inspect.isawaitable(value) or isinstance(value, AsyncIterator):
            _close(value)
            return self._result_of_async_tool()
        return self._result_of(value)

    async def arun(self) -> ToolResult:
        """As `run`, for async code: an async tool is awaited; any other tool runs in a thread of its own."""
        import asyncio

        from toolsearch.support.threads import in_thread

        if is_async(in_async(self._tool.run or self._run_others)):
            value, error = self._attempt(in_async)
        else:
            value, error = await in_thread(self._attempt_and_read)
        try:
            if inspect.isawaitable(value):
                value = drained(await value)
            if isinstance(value, AsyncIterator):
                value = await adrained(value)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as raised:
            task = asyncio.current_task()
            if isinstance(raised, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            error = raised
        if error is not None:
            return self._result_of_error(error)
        if isinstance(value, _Read):
            return value.result
        return await in_thread(lambda: self._result_of(value)) if is_large(value) else self._result_of(value)

    def _attempt_and_read(self) -> tuple[object, BaseException | None]:
        """As `_attempt`, in a thread; what is returned at once is also read there, because it may be large."""
        value, error = self._attempt(lambda function: function)
        if error is not None or inspect.isawaitable(value) or isinstance(value, AsyncIterator):
            return value, error
        return _Read(self._result_of(value)), None

    def _attempt(self, choose: Callable[[Function], Function]) -> tuple[object, BaseException | None]:
        """What the tool returned, or what it raised. Both become an answer; only Ctrl-C is raised."""
        try:
            return drained(self._start(choose)), None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return None, error

    def _start(self, choose: Callable[[Function], Function]) -> object:
        """Calls the tool's function. `choose` picks the function itself, or its variant for async code."""
        if self._context.cancelled.is_set():
            raise _Stopped
        tool, arguments = self._tool, dict(self._plan.arguments or {})
        if tool.function is not None:
            positional, keywords = tool.function.bind(arguments, self._context)
            return choose(tool.function.call)(*positional, **keywords)
        if tool.run is not None:
            return choose(tool.run)(**arguments, **dict.fromkeys(context_parameters(tool.run), self._context))
        if self._run_others is not None:
            return choose(self._run_others)(tool, arguments, self._context)
        raise SetupError(f"the tool {tool.id!r} has no function: pass run=… with it, or run=… to ToolSearch")

    # -- answers -------------------------------------------------------------------------------------------------

    def _result_of(self, value: object) -> ToolResult:
        call = self._call
        try:
            return read_result(call.id, call.name, value)
        except Exception as error:
            why = f"what it returned cannot be shown: {reason_of(error)}"
            status: Status = value.status if isinstance(value, ToolResult) and value.status in STATUSES else "ok"
            return answer(call.id, call.name, status, f"{call.name!r} ran, but {why}. Do not run it again.", value)

    def _result_of_error(self, error: BaseException) -> ToolResult:
        call = self._call
        if isinstance(error, ArgumentsError):
            return misfit(call, self._tool, error)
        if isinstance(error, _Stopped):
            text = f"{call.name!r} was cancelled: the turn was stopped, and it did not run. Ask before you try again."
            return answer(call.id, call.name, "cancelled", text)
        if isinstance(error, SetupError):
            log.error("%s", error)
            text = f"{call.name!r} cannot run here: {reason_of(error)}. Use another tool."
            return answer(call.id, call.name, "failed", text)
        log.debug("tool %r failed", call.name, exc_info=error)
        what = f"{call.name!r} failed: {reason_of(error)}."
        text = f"{what} If other arguments can help, call it again; otherwise say what happened."
        return answer(call.id, call.name, "failed", text, error)

    def _result_of_async_tool(self) -> ToolResult:
        name = self._call.name
        log.error("tool %r is async: use `await session.ahandle(call)`, or `arun` of an agent", name)
        text = (
            f"{name!r} did not run: it is async, and the program must use `await session.ahandle(call)`, or `arun` of "
            "an agent. Use another tool, or say so."
        )
        return answer(self._call.id, name, "failed", text)


def _digest(plan: CallPlan) -> str:
    """A digest of the tool and the arguments, because providers may give two calls of a conversation the same id."""
    name = plan.tool.id if plan.tool else plan.call.name
    called = json.dumps([name, plan.arguments], sort_keys=True, default=str)
    return hashlib.sha256(called.encode("utf-8", "replace")).hexdigest()[:16]


def _close(value: object) -> None:
    close = getattr(value, "close", None) or getattr(value, "cancel", None)
    if close is not None:
        close()
