"""What every wire does: replies as dicts, calls with ids of their own, the answer of a client read to its end."""

from __future__ import annotations

import hashlib
import inspect
import logging
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, closing, nullcontext
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol

from toolsearch.calls import ToolCall, ToolResult
from toolsearch.catalog.tools import Shown
from toolsearch.errors import NotExportable
from toolsearch.events.facts import Reply, TextDelta
from toolsearch.events.requests import CallModel
from toolsearch.protocols import AsyncReplyStream, ReplyStream
from toolsearch.schemas.export import exported
from toolsearch.support import checks
from toolsearch.support.checks import wrong
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import NOTHING, clean

__all__ = [
    "Pieces",
    "answered_calls",
    "definitions",
    "distinct_ids",
    "fields_of",
    "own_tools",
    "read_answer",
    "strict_schemas",
]

log = logging.getLogger("toolsearch")


def definitions(tools: Iterable[Shown], definition: Callable[[Shown], dict[str, Any]]) -> list[dict[str, Any]]:
    """The definition of each tool, in order. A tool that cannot be expressed is left out; the log says so once."""
    made = []
    for shown in tools:
        try:
            made.append(definition(shown))
        except NotExportable as error:
            _warn_once(shown.tool.id, str(error))
    return made


def strict_schemas(tools: Iterable[Shown], most: int) -> dict[str, dict[str, Any]]:
    """The strict schemas of the first tools that lose nothing by it, at most `most`, by name; the log says why not.

    A provider has one budget for all strict tools of a request, so it is the first ones that get it, and keep it.
    """
    made: dict[str, dict[str, Any]] = {}
    for shown in tools:
        if len(made) >= most:
            break
        try:
            made[shown.name] = exported(shown.tool.input_schema, "openai_strict").schema
        except NotExportable as error:
            _inform_once(shown.tool.id, str(error))
    return made


@lru_cache(maxsize=4096)
def _inform_once(tool: str, why: str) -> None:
    log.info("the tool %r is not sent as strict, which would lose something: %s", tool, why)


@lru_cache(maxsize=4096)
def _warn_once(tool: str, why: str) -> None:
    log.warning("the tool %r is left out of all requests: %s", tool, why)


def own_tools(options: JsonObject, request: CallModel) -> tuple[list[Any], dict[str, Any]]:
    """The tools that a program put among the options of a model, for a reply to the user, and the other options."""
    tools = options.get("tools")
    rest = {name: value for name, value in options.items() if name != "tools"}
    return list(tools) if isinstance(tools, list | tuple) and request.purpose == "chat" else [], rest


def answered_calls(answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[tuple[ToolCall, ToolResult]]:
    """Calls, each with its result; raises `SetupError` for anything else, such as a result that was not awaited.

    A blank content becomes the text for nothing: some providers refuse it, and then every later request.
    """
    wanted = "pairs of a ToolCall and its ToolResult, as in [(call, session.handle(call))]"
    if not isinstance(answered, Iterable):
        raise checks.wrong("answered", wanted, answered)
    pairs: list[tuple[ToolCall, ToolResult]] = []
    for pair in answered:
        match pair:
            case (ToolCall() as call, ToolResult() as result):
                pairs.append((call, result if result.content.strip() else replace(result, content=NOTHING)))
            case _:
                raise checks.wrong("answered", wanted, pair)
    return pairs


def fields_of(reply: object) -> JsonObject:
    """A reply, or a piece of one, as a dict: what a provider's SDK gave, or a dict already; else `SetupError`."""
    if isinstance(reply, Mapping):
        return reply
    dump = getattr(reply, "model_dump", None)
    if dump is None:
        more = ": await it first" if hasattr(reply, "__await__") else ""
        raise wrong("a reply", "what the provider's SDK gave, whole, or its dict", reply, more=more)
    fields: JsonObject = dump(exclude_none=True, warnings=False)
    return fields


def distinct_ids(ids: Iterable[object], prefix: str, reply: object) -> list[str]:
    """The ids of a reply's calls as text; a missing or repeated one is made from the reply and the call's place.

    The same reply always gives the same ids, and another reply gives other ids.
    """
    distinct: list[str] = []
    digest = ""
    for place, given in enumerate(ids):
        call_id = plain = clean(str(given or ""))
        while not call_id or call_id in distinct:
            digest = digest or hashlib.sha256(repr(reply).encode("utf-8", "replace")).hexdigest()
            call_id = f"{plain[:24] or prefix}_{digest[:8]}_{place}"
            digest = digest[1:]
        distinct.append(call_id)
    return distinct


# -- the answer of a client --------------------------------------------------------------------------------------


class Pieces(Protocol):
    """Puts a streamed reply together."""

    def take(self, piece: Any, /) -> Iterable[TextDelta]:
        """Takes in a piece; returns the deltas to show for it."""
        ...

    def whole(self) -> JsonObject:
        """The reply, as if it had come at once."""
        ...


def read_answer(
    answer: object,
    reply_from: Callable[[Any], Reply],
    pieces: Pieces | None = None,
    again: Callable[[Exception], object] | None = None,
) -> ReplyStream | AsyncReplyStream:
    """What a model function returns for the answer of a client's call: the deltas of a stream, and then the reply.

    The answer is a reply, or with `pieces` a stream of them; from an async client, an awaitable of one of these. The
    client itself is not asked whether it is async: it may be wrapped, and then neither its class nor its method tells.
    For the same reason a stream need not be one that can be closed, and a server may send a whole reply in its place.

    An async client raises when it is awaited. Then `again` is asked for another answer; it may raise the error.
    """
    if inspect.isawaitable(answer):
        return _AsyncAnswer(answer, reply_from, pieces, again)
    return _read(answer, reply_from, pieces)


def _read(answer: Any, reply_from: Callable[[Any], Reply], pieces: Pieces | None) -> Iterator[TextDelta | Reply]:
    if pieces is None or _is_reply(answer):
        yield reply_from(answer)
        return
    with answer if hasattr(answer, "__exit__") else closing(answer) if hasattr(answer, "close") else nullcontext():
        for piece in answer:
            if not _says_nothing(piece):
                yield from pieces.take(piece)
    yield reply_from(pieces.whole())


async def _read_async(
    answer: Awaitable[Any],
    reply_from: Callable[[Any], Reply],
    pieces: Pieces | None,
    again: Callable[[Exception], Any] | None,
) -> AsyncGenerator[TextDelta | Reply]:
    try:
        received = await answer
    except Exception as error:
        if again is None:
            raise
        received = await again(error)
    if pieces is None or _is_reply(received):
        yield reply_from(received)
        return
    closes = hasattr(received, "aclose")
    async with received if hasattr(received, "__aexit__") else aclosing(received) if closes else nullcontext():
        async for piece in received:
            for delta in [] if _says_nothing(piece) else pieces.take(piece):
                yield delta
    yield reply_from(pieces.whole())


def _is_reply(answer: object) -> bool:
    """Whether a server that was asked for a stream has sent a reply at once."""
    return isinstance(answer, Mapping) or hasattr(answer, "model_dump")


def _says_nothing(piece: object) -> bool:
    """Whether a piece of a stream is no object: a sign of life, or the word for the end, which the SDKs leave out."""
    return piece is None or isinstance(piece, str | bytes | int | float | list)


class _AsyncAnswer(AsyncIterator[TextDelta | Reply]):
    """An async answer; a request that nobody waits for, as in `run`, is dropped without a warning of Python."""

    def __init__(
        self,
        answer: Awaitable[Any],
        reply_from: Callable[[Any], Reply],
        pieces: Pieces | None,
        again: Callable[[Exception], object] | None,
    ) -> None:
        self._parts = _read_async(answer, reply_from, pieces, again)
        if inspect.iscoroutine(answer):  # one that was awaited is closed already
            weakref.finalize(self, answer.close)

    async def __anext__(self) -> TextDelta | Reply:
        return await anext(self._parts)

    async def aclose(self) -> None:
        """Closes the connection too."""
        await self._parts.aclose()
