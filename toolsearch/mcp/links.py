"""Connections, each left in the task that entered it, as the SDK wants it; and those of a server's sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TypeAlias

import anyio
from mcp import Client

from toolsearch.mcp.faults import ServerUnavailable, leaf_of
from toolsearch.mcp.questions import OpenCalls
from toolsearch.mcp.transports import Live

__all__ = ["Link", "LinkKey", "Links"]

LinkKey: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]  # a session, and headers of a caller
MOST_LINKS = 32
IDLE_SECONDS = 600.0


class Link:
    """A connection that is opened by its task, and held until it ends or is closed. All in one event loop.

    `used` is the loop's time at the end of the last call, `auth` what puts the login of the server on its requests.
    """

    def __init__(
        self, server: str, opening: Callable[[Link], AbstractAsyncContextManager[Live]], seconds: float
    ) -> None:
        self.open_calls = OpenCalls(server)
        self.used = asyncio.get_running_loop().time()
        self.ended = asyncio.Event()
        self.error: BaseException | None = None
        self.auth: object = None
        self._opening, self._seconds = opening, seconds
        self._opened = asyncio.Event()
        self._live: Live | None = None
        self._scope = anyio.CancelScope()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            with self._scope, anyio.fail_after(self._seconds) as limit:
                async with self._opening(self) as live:
                    limit.deadline = float("inf")
                    self._live = live
                    self._opened.set()
                    await live.ended.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.error = leaf_of(error)
        finally:
            self._live = None
            self.ended.set()
            self._opened.set()

    async def opened(self) -> Client:
        """The client, once hands were shaken. Raises what went wrong; a wait that is cancelled leaves the link be."""
        await self._opened.wait()
        if self._live is None:
            raise self.error or ConnectionError("the connection was closed")
        return self._live.client

    @property
    def is_usable(self) -> bool:
        """Whether it is open, or being opened."""
        return not self.ended.is_set() and (self._live is None or not self._live.ended.is_set())

    @property
    def login_problem(self) -> Exception | None:
        """Why the server refuses its requests for want of a login; None if it does not."""
        problem = getattr(self.auth, "problem", None)
        return problem if isinstance(problem, Exception) else None

    async def close(self) -> None:
        """Ends the connection, and waits until its process and its sockets are gone."""
        self._scope.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.shield(self._task)


class Links:
    """The connections of a server's sessions and callers, opened when they are needed; idle ones are closed.

    Of more than `most`, the one that was idle longest is closed for a new one.
    """

    def __init__(self, server: str, open_link: Callable[[LinkKey], Link], most: int, idle_seconds: float) -> None:
        self._server, self._open_link = server, open_link
        self._most, self._idle = most, idle_seconds
        self._links: dict[LinkKey, Link] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def get(self, key: LinkKey) -> Link:
        """The connection of a session or a caller. Raises `ServerUnavailable` where too many are in use."""
        link = self._links.pop(key, None)
        if link is not None and not link.is_usable:
            self._close_soon(link)
            link = None
        if link is None:
            self._make_room()
            link = self._open_link(key)
        self._links[key] = link  # the last one used stands last
        return link

    def _make_room(self) -> None:
        if len(self._links) < self._most:
            return
        idle = next((key for key, link in self._links.items() if not link.open_calls), None)
        if idle is None:
            raise ServerUnavailable(
                f"the server {self._server!r} has {self._most} connections of sessions, and all are in use: try again "
                "later, or raise 'connections' in its options"
            )
        self._close_soon(self._links.pop(idle))

    def _close_soon(self, link: Link) -> None:
        task = asyncio.get_running_loop().create_task(link.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def sweep(self) -> None:
        """Closes what is idle, again and again."""
        while True:
            await asyncio.sleep(max(self._idle / 4, 0.05))
            bar = asyncio.get_running_loop().time() - self._idle
            for key, link in list(self._links.items()):
                if not link.is_usable or (not link.open_calls and link.used < bar):
                    self._close_soon(self._links.pop(key))

    async def end(self, key: LinkKey) -> None:
        """Closes the connection of a key, where there is one."""
        if (link := self._links.pop(key, None)) is not None:
            await link.close()

    async def end_session(self, session: str) -> None:
        """Closes all connections of a session."""
        for key in [key for key in self._links if key[0] == session]:
            await self.end(key)

    async def close(self) -> None:
        links = [*self._links.values()]
        self._links.clear()
        await asyncio.gather(*(link.close() for link in links), *self._closing)

    def __len__(self) -> int:
        return len(self._links)
