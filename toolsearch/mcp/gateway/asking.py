"""Asking the person at a client while a call runs, in both generations of the protocol.

An older client is sent a request. A modern one takes none: its call is answered with what is asked, and the client
calls again with the answer. Meanwhile the call waits here, so what the person has agreed to is what goes on.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestParams,
    ElicitResult,
    InputRequiredResult,
)

from toolsearch.mcp.gateway.clients import Context, Who, who
from toolsearch.mcp.gateway.results import failed

__all__ = ["Asker", "AskingCalls", "CannotAsk"]

MOST_WAITING = 200  # calls that wait for an answer; the one that waits longest is given up
WAIT_SECONDS = 600.0
_KEY = "answer"  # of the one question in an answer
_Work: TypeAlias = "Callable[[Asker], Awaitable[dict[str, Any]]]"


class CannotAsk(Exception):
    """The client cannot put a question before a person."""


class Asker:
    """Asks the person behind one call. `context` is that of the request of the moment: a call may go on in another."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @property
    def who(self) -> Who:
        return who(self.context)

    async def ask(self, params: ElicitRequestParams) -> ElicitResult:
        """The answer. Raises `CannotAsk` where the client has not said that it can ask."""
        if not self.who.can_be_asked:
            raise CannotAsk
        return await self.context.session.send_request(
            ElicitRequest(params=params),
            ElicitResult,
            metadata=ServerMessageMetadata(related_request_id=self.context.request_id),
        )


class _WaitingAsker(Asker):
    """Leaves a question for the request that waits, and waits for the answer that another one brings."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.asked: asyncio.Queue[tuple[ElicitRequestParams, asyncio.Future[ElicitResult]]] = asyncio.Queue()
        self._one = asyncio.Lock()

    async def ask(self, params: ElicitRequestParams) -> ElicitResult:
        if not self.who.can_be_asked:
            raise CannotAsk
        async with self._one:
            answer: asyncio.Future[ElicitResult] = asyncio.get_running_loop().create_future()
            self.asked.put_nowait((params, answer))
            return await answer


@dataclass(eq=False)
class _Waiting:
    """A call that goes on when the answer comes: what it was, its task, and the question that is open."""

    call: str
    task: asyncio.Task[dict[str, Any]]
    asker: _WaitingAsker
    answer: asyncio.Future[ElicitResult] | None = None
    timer: asyncio.TimerHandle | None = None


class AskingCalls:
    """The calls of modern clients that wait for an answer, by a state that cannot be guessed. For one event loop."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    async def run(
        self, context: Context, params: CallToolRequestParams, work: _Work
    ) -> dict[str, Any] | InputRequiredResult:
        """Does the work of a call, or goes on with one whose answer this request brings."""
        if not who(context).is_modern:
            return await work(Asker(context))
        if params.request_state:
            return await self._resumed(context, params, params.request_state)
        asker = _WaitingAsker(context)
        task = asyncio.ensure_future(work(asker))
        return await self._until_asked(_Waiting(_told(params), task, asker))

    async def _resumed(
        self, context: Context, params: CallToolRequestParams, state: str
    ) -> dict[str, Any] | InputRequiredResult:
        waiting = self._waiting.pop(state, None)
        if waiting is None or waiting.answer is None:
            return failed("Nothing ran: this question was answered already, or too long ago. Call the tool again.")
        if waiting.timer is not None:
            waiting.timer.cancel()
        if waiting.call != _told(params):
            waiting.task.cancel()
            return failed("Nothing ran: the answer came with another call than the one that was asked about.")
        given = (params.input_responses or {}).get(_KEY)
        waiting.asker.context = context
        if not waiting.answer.done():
            waiting.answer.set_result(given if isinstance(given, ElicitResult) else ElicitResult(action="cancel"))
        waiting.answer = None
        return await self._until_asked(waiting)

    async def _until_asked(self, waiting: _Waiting) -> dict[str, Any] | InputRequiredResult:
        """What the work gives; or, if it asks something first, the question."""
        question = asyncio.ensure_future(waiting.asker.asked.get())
        try:
            await asyncio.wait({waiting.task, question}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            waiting.task.cancel()
            raise
        finally:
            if not question.done():
                question.cancel()
        if waiting.task.done():
            return waiting.task.result()
        params, waiting.answer = question.result()
        return self._parked(waiting, params)

    def _parked(self, waiting: _Waiting, params: ElicitRequestParams) -> InputRequiredResult:
        state = secrets.token_urlsafe(24)
        self._waiting[state] = waiting
        waiting.timer = asyncio.get_running_loop().call_later(WAIT_SECONDS, self._give_up, state)
        while len(self._waiting) > MOST_WAITING:
            self._give_up(next(iter(self._waiting)))
        return InputRequiredResult(input_requests={_KEY: ElicitRequest(params=params)}, request_state=state)

    def _give_up(self, state: str) -> None:
        if (waiting := self._waiting.pop(state, None)) is not None:
            if waiting.timer is not None:
                waiting.timer.cancel()
            waiting.task.cancel()

    def close(self) -> None:
        """Gives up all that waits."""
        for state in [*self._waiting]:
            self._give_up(state)


def _told(params: CallToolRequestParams) -> str:
    """What tells one call from another."""
    arguments: Mapping[str, object] = params.arguments or {}
    return json.dumps([params.name, arguments], sort_keys=True, default=str)
