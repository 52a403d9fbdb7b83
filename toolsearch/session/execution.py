"""Running the tool of a planned call, with threads or with tasks: whatever comes of it is an answer."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from toolsearch.calls import STATUSES, Caller, ToolContext, ToolResult
from toolsearch.catalog.functions import adrained, context_parameters, drained, in_async, is_async
from toolsearch.errors import SetupError
from toolsearch.protocols import ToolRunner
from toolsearch.schemas.validation import ArgumentsError
from toolsearch.session.call_plans import CallPlan, misfit
from toolsearch.support.text import clean, text_of

__all__ = ["Execution", "reason_of"]

log = logging.getLogger("toolsearch")

Function = Callable[..., Any]


class Execution:
    """One planned call of a tool; `run_others` runs a tool that has no function of its own."""

    def __init__(
        self,
        plan: CallPlan,
        conversation_id: str,
        caller: Caller | None,
        run_others: ToolRunner | None,
        cancelled: threading.Event | None,
    ) -> None:
        if plan.tool is None:
            raise SetupError(f"the call {plan.call.name!r} is not a call of a tool that can run")
        self._call, self._tool, self._plan = plan.call, plan.tool, plan
        self._run_others = run_others
        flag = cancelled or threading.Event()
        self._context = ToolContext(conversation_id, plan.call.id, caller, _digest(plan), flag)

    def run(self) -> ToolResult:
        """Runs the tool in this thread. An async tool is an answer that says what to use instead."""
        value, error = self._attempt(lambda function: function)
        if error is not None:
            return self._failed(error)
        if inspect.isawaitable(value) or hasattr(value, "__anext__"):
            _close(value)
            return self._async_met()
        return self._returned(value)

    async def arun(self) -> ToolResult:
        """As `run`, for async code: an async tool is awaited, any other runs in a thread of its own."""
        import asyncio

        from toolsearch.support.threads import in_thread

        if is_async(in_async(self._tool.run or self._run_others)):
            value, error = self._attempt(in_async)
        else:
            value, error = await in_thread(lambda: self._attempt(lambda function: function))
        try:
            if inspect.isawaitable(value):
                value = drained(await value)
            if hasattr(value, "__anext__"):
                value = await adrained(value)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as raised:
            task = asyncio.current_task()
            if isinstance(raised, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            error = raised
        return self._returned(value) if error is None else self._failed(error)

    def _attempt(self, choose: Callable[[Any], Function]) -> tuple[Any, BaseException | None]:
        """What the tool returned, or what it raised: whatever that is, it is an answer. Only Ctrl-C is none."""
        try:
            return drained(self._start(choose)), None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return None, error

    def _start(self, choose: Callable[[Any], Function]) -> Any:
        """Calls the tool's function, as `choose` picks it: the function itself, or its variant for async code."""
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

    def _returned(self, value: object) -> ToolResult:
        call = self._call
        result = value if isinstance(value, ToolResult) else ToolResult(call.id, call.name, "ok", "", value)
        content: object = value.content if isinstance(value, ToolResult) else value
        try:
            text = text_of(content)
        except Exception as error:
            text = f"{call.name!r} ran, but what it returned cannot be shown: {reason_of(error)}. Do not run it again."
        status = result.status if result.status in STATUSES else "failed"
        return replace(result, call_id=call.id, name=call.name, status=status, content=text)

    def _failed(self, error: BaseException) -> ToolResult:
        call = self._call
        if isinstance(error, ArgumentsError):
            return misfit(call, self._tool, error)
        if isinstance(error, SetupError):
            log.error("%s", error)
            text = f"{call.name!r} cannot run here: {reason_of(error)}. Use another tool."
            return ToolResult(call.id, call.name, "failed", text)
        log.debug("tool %r failed", call.name, exc_info=error)
        what = f"{call.name!r} failed: {reason_of(error)}."
        text = f"{what} If other arguments can help, call it again; else say what happened."
        return ToolResult(call.id, call.name, "failed", text, error)

    def _async_met(self) -> ToolResult:
        name = self._call.name
        log.error("tool %r is async: use `await session.ahandle(call)`, or `arun` of an agent", name)
        text = (
            f"{name!r} did not run: it is async, and the program must use `await session.ahandle(call)`, or `arun` of "
            "an agent."
        )
        return ToolResult(self._call.id, name, "failed", text)


def reason_of(error: BaseException) -> str:
    """What went wrong, bounded, whatever the exception's own text does."""
    try:
        reason = f"{type(error).__name__}: {error}"
    except Exception:
        reason = type(error).__name__
    return clean(reason)[:2_000].rstrip(".")


def _digest(plan: CallPlan) -> str:
    """Of what is called with what: providers give two calls of a conversation the same id."""
    name = plan.tool.id if plan.tool else plan.call.name
    called = json.dumps([name, plan.arguments], sort_keys=True, default=str)
    return hashlib.sha256(called.encode("utf-8", "replace")).hexdigest()[:16]


def _close(value: Any) -> None:
    close = getattr(value, "close", None) or getattr(value, "cancel", None)
    if close is not None:
        close()
