"""A page of a server's tools as the server sent it, past a client that would refuse the page for one bad tool.

The streams of a transport are wrapped. Of an answer to `tools/list` the client reads a copy that it accepts, and the
page as it came stands in the metadata of this copy. Output schemas are left out of the copy: the client would drop a
result that does not fit them, and a result that is not perfect is better than none.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, TypeAlias

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from toolsearch.mcp.repairs import line_of, readable, sound_result
from toolsearch.support.json_types import JsonObject

__all__ = ["PAGE_KEY", "Streams", "Tap", "tapped"]

PAGE_KEY = "toolsearch/page"
_PASSED = ("resultType", "ttlMs", "cacheScope")
_DEFAULTS: Mapping[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_LONGEST_MEMORY = 1_000  # requests whose answers are awaited

Message: TypeAlias = "SessionMessage | Exception"
Streams: TypeAlias = "tuple[Any, Any]"  # what a transport of the SDK gives: one to read from, one to write to


class Tap:
    """What is seen of the messages of one connection: the answers to `tools/list` and `tools/call`, and its end.

    `on_noise` is told the first line that is no message.
    """

    def __init__(self, on_noise: Callable[[str], object]) -> None:
        self.ended = anyio.Event()
        self._on_noise: Callable[[str], object] | None = on_noise
        self._asked: dict[object, str] = {}  # by the id of a request, its method
        self._is_legacy = False

    def sent(self, item: SessionMessage) -> None:
        """Notes a request whose answer is looked at."""
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method in ("initialize", "tools/list", "tools/call"):
            self._asked[message.id] = message.method
            while len(self._asked) > _LONGEST_MEMORY:
                del self._asked[next(iter(self._asked))]

    def received(self, item: Message) -> Message:
        """The message, mended where the client could not read it; in the place of a page, its copy."""
        if isinstance(item, Exception):
            mended = readable(item)
            if mended is not None:
                item = SessionMessage(mended)
            elif self._on_noise is not None and (line := line_of(item)):
                self._on_noise(line)
                self._on_noise = None
        message = item.message if isinstance(item, SessionMessage) else None
        if not isinstance(message, JSONRPCResponse):
            return item
        match self._asked.pop(message.id, None):
            case "initialize":
                self._is_legacy = True
            case "tools/list":
                message.result = _accepted(message.result)
            case "tools/call":
                message.result = sound_result(message.result, is_legacy=self._is_legacy)
            case _:
                pass
        return item


def _accepted(page: JsonObject) -> dict[str, Any]:
    """A page that the client of the SDK accepts, with the page as it came in its metadata."""
    tools = page.get("tools")
    cursor = page.get("nextCursor")
    copy: dict[str, Any] = {**_DEFAULTS, **{key: page[key] for key in _PASSED if _is_sound(key, page.get(key))}}
    copy["tools"] = [_stand_in(tool) for tool in tools if _is_named(tool)] if isinstance(tools, list) else []
    copy["_meta"] = {PAGE_KEY: dict(page)}
    if isinstance(cursor, str) and cursor:
        copy["nextCursor"] = cursor
    return copy


def _is_sound(key: str, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) if key == "ttlMs" else isinstance(value, str)


def _is_named(tool: object) -> bool:
    return isinstance(tool, Mapping) and isinstance(tool.get("name"), str)


def _stand_in(tool: JsonObject) -> dict[str, Any]:
    schema = tool.get("inputSchema")
    sound = isinstance(schema, dict) and schema.get("type") == "object" and _has_plain_parts(schema)
    return {"name": tool["name"], "inputSchema": schema if sound else {"type": "object"}}


def _has_plain_parts(schema: JsonObject) -> bool:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    plain = isinstance(properties, dict) and all(isinstance(each, dict) for each in properties.values())
    return plain and isinstance(required, list) and all(isinstance(each, str) for each in required)


@asynccontextmanager
async def tapped(transport: Any, tap: Tap) -> AsyncGenerator[Streams, None]:
    """The transport with both streams wrapped."""
    async with transport as (read, write):
        yield _Read(read, tap), _Write(write, tap)


class _Stream:
    def __init__(self, inner: Any, tap: Tap) -> None:
        self._inner, self._tap = inner, tap

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        found: bool | None = await self._inner.__aexit__(kind, error, trace)
        return found


class _Read(_Stream):
    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Message:
        return self._tap.received(await self._until_end(self._inner.receive()))

    def __aiter__(self) -> _Read:
        return self

    async def __anext__(self) -> Message:
        return self._tap.received(await self._until_end(self._inner.__anext__()))

    async def _until_end(self, receiving: Any) -> Any:
        try:
            return await receiving
        except BaseException:  # the end of the stream, or of the task that reads it
            self._tap.ended.set()
            raise


class _Write(_Stream):
    async def send(self, item: SessionMessage, /) -> None:
        self._tap.sent(item)
        await self._inner.send(item)
