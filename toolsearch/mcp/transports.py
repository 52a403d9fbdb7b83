"""A connection to one server over stdio, streamable HTTP or SSE, through the SDK's client."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.session import ElicitationFnT, ListRootsFnT, MessageHandlerFnT
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

from toolsearch import __version__
from toolsearch.mcp.config import ServerEntry
from toolsearch.mcp.pages import Streams, Tap, tapped
from toolsearch.mcp.processes import HAS_GROUPS, ErrorOutput, Groups, end_group, parameters_of
from toolsearch.mcp.sdk_logs import quieten
from toolsearch.support.redaction import excerpt

__all__ = ["Callbacks", "Live", "connected"]

log = logging.getLogger("toolsearch.mcp")
quieten()

NOISE_CHARACTERS = 80
WRITE_SECONDS = 30.0  # for a connection to be made, and for a request to be written
READ_SECONDS = 3_600.0  # between two pieces of an answer: a whole operation has a limit of its own


@dataclass(frozen=True)
class Callbacks:
    """What is answered to a server, and who hears of its notifications."""

    on_message: MessageHandlerFnT | None = None
    on_question: ElicitationFnT | None = None
    on_roots: ListRootsFnT | None = None


@dataclass(frozen=True)
class Live:
    """A connection that is open. `ended` is set when the server, or the way to it, is gone."""

    client: Client
    ended: anyio.Event
    last_words: Callable[[], str] = field(default=lambda: "")


@asynccontextmanager
async def connected(
    entry: ServerEntry,
    callbacks: Callbacks,
    groups: Groups,
    masked: Callable[[str], str],
    *,
    headers: Mapping[str, str] | None = None,
    auth: httpx2.Auth | None = None,
    mode: str = "auto",
    words: Callable[[Callable[[], str]], None] = lambda _: None,
) -> AsyncGenerator[Live, None]:
    """A connection, shaken hands on. It must be entered and left in one task. Raises what the SDK raises.

    `words` is given a function that tells the server's last words on stderr, also if no connection comes about.
    """

    def on_noise(line: str) -> None:
        log.warning(
            "server %r writes what is no message of MCP, such as %r; it is ignored",
            entry.name, excerpt(line.strip(), NOISE_CHARACTERS, masked),
        )  # fmt: skip

    tap = Tap(on_noise)
    async with AsyncExitStack() as stack:
        if entry.transport == "stdio":
            transport: Any = _stdio(entry, groups, masked, words)
        else:
            transport = await _over_http(entry, {**entry.headers, **(headers or {})}, auth, stack)
        client = Client(
            tapped(transport, tap),
            mode=mode,
            message_handler=callbacks.on_message,
            elicitation_callback=callbacks.on_question,
            list_roots_callback=callbacks.on_roots,
            client_info=Implementation(name="toolsearch", version=__version__),
            cache=None,
        )
        yield Live(await stack.enter_async_context(client), tap.ended)


@asynccontextmanager
async def _stdio(
    entry: ServerEntry, groups: Groups, masked: Callable[[str], str], words: Callable[[Callable[[], str]], None]
) -> AsyncGenerator[Streams, None]:
    started: list[int] = []

    def on_group(group: int) -> None:
        started.append(group)
        groups.add(group)

    errors = ErrorOutput(entry.name, on_group, masked)
    words(lambda: errors.last_words)
    try:
        async with stdio_client(parameters_of(entry), errlog=errors.into) as streams:
            errors.started()
            yield streams
    finally:
        with anyio.CancelScope(shield=True):
            errors.close()
            for group in started if HAS_GROUPS else ():
                await end_group(group)
                groups.remove(group)


async def _over_http(
    entry: ServerEntry, headers: Mapping[str, str], auth: httpx2.Auth | None, stack: AsyncExitStack
) -> Any:
    if entry.transport == "sse":
        return sse_client(entry.url, dict(headers), WRITE_SECONDS, READ_SECONDS, auth=auth)
    timeout = httpx2.Timeout(WRITE_SECONDS, read=READ_SECONDS)
    client = httpx2.AsyncClient(headers=dict(headers), timeout=timeout, auth=auth)
    return streamable_http_client(entry.url, http_client=await stack.enter_async_context(client))
