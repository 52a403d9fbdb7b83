"""What a server asks of the user during a call: passed on to whoever can ask, and otherwise declined.

A server of the modern generation asks in the answer to a call, and is called again. An older one sends a request of its
own, which on stdio does not say for which call: it goes to the one call that runs on that connection, or to nobody.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeAlias

from mcp.client.session import ClientRequestContext
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from toolsearch import Caller
from toolsearch.support.threads import in_thread
from toolsearch.support.tool_questions import GivenAnswer, ToolAsks

__all__ = ["NOBODY", "Ask", "Asked", "Asking", "Elicit", "OpenCalls", "Question", "Waiting"]

log = logging.getLogger("toolsearch.mcp")

NOBODY = "the server asks the user for input, and nobody can be asked here. Do not call it again for this"


@dataclass(frozen=True, slots=True)
class Question:
    """What a server asks of the user while a tool runs.

    `schema` is the JSON Schema of the answer. `url` is an address that the user is asked to visit, where it is not an
    answer that is wanted.
    """

    server: str
    tool: str
    message: str
    schema: Mapping[str, object] = field(default_factory=dict)
    url: str = ""
    caller: Caller | None = None
    conversation_id: str = ""


Asked: TypeAlias = Mapping[str, object] | bool | None
Ask: TypeAlias = Callable[[Question], Asked | Awaitable[Asked]]
Elicit: TypeAlias = Callable[[ElicitRequestParams], Awaitable[ElicitResult]]

MOST_QUESTIONS = 8  # of one call; the client of the SDK goes through ten rounds, and one may be a question of ours


@dataclass(eq=False, slots=True)
class _OpenCall:
    """A call that runs: who can be asked, and how often that was done."""

    elicit: Elicit | None
    asked: int = 0


_CALL: ContextVar[_OpenCall | None] = ContextVar("toolsearch_mcp_call", default=None)


class OpenCalls:
    """The calls that run on one connection, and who can be asked for each."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._open: set[_OpenCall] = set()

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, elicit: Elicit | None) -> object:
        """Notes a call; its task and those it starts ask `elicit`. Returns what `end` takes."""
        call = _OpenCall(elicit)
        self._open.add(call)
        _CALL.set(call)
        return call

    def end(self, key: object) -> None:
        self._open = {call for call in self._open if call is not key}

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        """The callback of the SDK's client."""
        call = _CALL.get()
        if (call is None or call.elicit is None) and len(self._open) == 1:
            (call,) = self._open
        if call is None or call.elicit is None:
            log.warning("server %r asked the user for input: it was declined, since nobody can be asked", self._server)
            return ElicitResult(action="decline")
        call.asked += 1
        if call.asked > MOST_QUESTIONS:
            if call.asked == MOST_QUESTIONS + 1:
                log.warning("server %r asks more than %d times in one call: declined", self._server, MOST_QUESTIONS)
            return ElicitResult(action="decline")
        try:
            return await call.elicit(params)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.warning("server %r asked the user for input: asking failed (%s)", self._server, type(error).__name__)
            return ElicitResult(action="cancel")


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks a function of the program: an async one in the caller's loop, any other in a thread.

    A mapping is the answer, True says yes without one, False declines, and None means that there was no answer.
    """

    ask: Ask
    server: str
    tool: str
    caller: Caller | None
    conversation_id: str
    loop: asyncio.AbstractEventLoop | None

    async def elicit(self, params: ElicitRequestParams) -> ElicitResult:
        """The answer as a server takes it."""
        schema, url = (params.requested_schema, "") if isinstance(params, ElicitRequestFormParams) else ({}, params.url)
        question = Question(self.server, self.tool, params.message, schema, url, self.caller, self.conversation_id)
        given = await in_thread(lambda: self.ask(question))
        if inspect.isawaitable(given):
            given = await _awaited(given, self.loop)
        if isinstance(given, Mapping):
            return ElicitResult(action="accept", content=dict(given))  # type: ignore[arg-type]
        if given is None:
            return ElicitResult(action="cancel")
        return ElicitResult(action="accept", content=None if url else {}) if given else ElicitResult(action="decline")


class Waiting:
    """Gives the answers that a person has given; the first other question is `open`, and the call has to wait for it.

    The server is told that there is no answer yet. It is called again, and asks again, once there is one.
    """

    def __init__(self, given: GivenAnswer | None) -> None:
        self.open: ToolAsks | None = None
        earlier = given.state.get("answers") if given is not None else None
        self._answers: dict[str, object] = dict(earlier) if isinstance(earlier, Mapping) else {}
        if given is not None:
            answer = given.answer
            self._answers[str(given.state.get("message"))] = None if answer is None else dict(answer)

    async def elicit(self, params: ElicitRequestParams) -> ElicitResult:
        """The answer as a server takes it."""
        schema, url = (params.requested_schema, "") if isinstance(params, ElicitRequestFormParams) else ({}, params.url)
        if params.message in self._answers and self.open is None:
            answer = self._answers[params.message]
            if not isinstance(answer, Mapping):
                return ElicitResult(action="decline")
            return ElicitResult(action="accept", content=None if url else dict(answer))
        if self.open is None:
            question = f"{params.message} {url}".strip()
            self.open = ToolAsks(question, schema, {"message": params.message, "answers": dict(self._answers)})
        return ElicitResult(action="cancel")


async def _awaited(given: Awaitable[Asked], loop: asyncio.AbstractEventLoop | None) -> Asked:
    async def wait() -> Asked:
        return await given

    if loop is None:
        return await wait()
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(wait(), loop))
