"""One server: it is connected, listed, listened to, and connected again when it was lost. All in one event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import anyio
from mcp import Client
from mcp_types import ServerNotification

from toolsearch import Catalog, Tool
from toolsearch.mcp.config import ServerEntry
from toolsearch.mcp.faults import CallFailed, ServerUnavailable, is_forgotten, is_lost, reason_of_failure
from toolsearch.mcp.health import ServerHealth, State
from toolsearch.mcp.links import IDLE_SECONDS, MOST_LINKS, Link, LinkKey, Links
from toolsearch.mcp.news import REFRESH_SECONDS, News, roots_of
from toolsearch.mcp.oauth import NeedsLogin, auth_for, login_stamp
from toolsearch.mcp.offers import NOTHING, Offer
from toolsearch.mcp.processes import Groups
from toolsearch.mcp.questions import Elicit
from toolsearch.mcp.tool_list import ToolList
from toolsearch.mcp.transports import Callbacks, Live, connected
from toolsearch.support.threads import in_thread

__all__ = ["Host", "Kind", "Supervisor"]

log = logging.getLogger("toolsearch.mcp")

T = TypeVar("T")
Kind: TypeAlias = Literal["tools", "resources", "prompts", "health"]

FIRST_DELAY, LONGEST_DELAY = 0.5, 60.0  # seconds before a connection is tried again
STEADY_SECONDS = 10.0  # a connection that lived so long begins again with the first delay
WAIT_SECONDS = 5.0  # how long a call waits for a server that was lost
FRESH_SECONDS = 2.0  # a listing of a server that never tells of changes is that long good enough
LOGIN_POLL_SECONDS = 2.0
CONNECTING = "it is still connecting"


@dataclass(frozen=True)
class Host:
    """What all servers of a program share."""

    catalog: Catalog
    groups: Groups
    masked: Callable[[str], str]
    report: Callable[[str, Kind], None]
    pass_on: Callable[[str, ServerNotification], None]
    connect_seconds: float
    can_ask: bool = False
    is_denied: Callable[[Tool], bool] | None = None  # such a tool does not come into the catalog


class Supervisor:
    """Holds the connections of one server: its own, and one for each session or caller that needs one."""

    def __init__(self, entry: ServerEntry, host: Host) -> None:
        self.entry, self._host = entry, host
        self.news = News(
            lambda kind: host.report(entry.name, kind),
            lambda news: host.pass_on(entry.name, news),
            max(0.1, entry.seconds("refresh_seconds", REFRESH_SECONDS)),
        )
        self.offer = NOTHING  # what it said of itself when hands were shaken last
        self.client: Client | None = None  # of the server's own connection, while it is ready
        self.tools = ToolList(entry, host.catalog, lambda: host.report(entry.name, "tools"), host.is_denied)
        self._relisting = False
        self._seconds_limit = entry.seconds("connect_seconds", max(60.0, host.connect_seconds))
        most = int(entry.seconds("connections", MOST_LINKS))
        self._links = Links(entry.name, self._open_link, most, entry.seconds("idle_seconds", IDLE_SECONDS))
        self._link: Link | None = None
        self._last_words: Callable[[], str] = lambda: ""
        self._nudged, self._state_changed = asyncio.Event(), asyncio.Event()
        self._attempts = self._failures = 0
        self._has_ended = False
        self._seconds: float | None = None
        self.health = ServerHealth("connecting", CONNECTING, since=time.time())
        self._set(*(("disabled", "") if entry.disabled else ("connecting", CONNECTING)))

    # -- its life ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Connects and serves until it is cancelled."""
        sweeping = asyncio.create_task(self._links.sweep())
        try:
            if self.entry.disabled:
                return
            if self.entry.problem:
                log.warning("server %r: %s", self.entry.name, self.entry.problem)
                self._set("failed", self.entry.problem)
                return
            await self._keep_connected()
        finally:
            self._has_ended = True
            self._state_changed.set()
            sweeping.cancel()
            await self._links.close()
            if self._link is not None:
                await self._link.close()

    async def _keep_connected(self) -> None:
        delay = FIRST_DELAY
        while True:
            begun = time.monotonic()
            self._attempts += 1
            self._nudged.clear()
            state, reason = await self._attempt()
            self.client = None
            if self.health.is_ready:
                delay = FIRST_DELAY if time.monotonic() - begun > STEADY_SECONDS else delay
                state, reason = "connecting", f"the connection was lost ({reason}), and is being made again"
            else:
                self._failures += 1
            if reason != self.health.reason:
                log.warning("server %r: %s", self.entry.name, reason)
            self._set(state, reason)
            await self._pause(delay)
            delay = min(2 * delay, LONGEST_DELAY)

    async def _pause(self, delay: float) -> None:
        """Until it is time for another attempt, a call needs the server, or somebody has logged in to it."""
        await asyncio.sleep(FIRST_DELAY)
        with anyio.move_on_after(delay - FIRST_DELAY):
            if self.health.state != "needs login":
                await self._nudged.wait()
                return
            stamp = before = await in_thread(self._login)
            while stamp == before:
                await asyncio.sleep(LOGIN_POLL_SECONDS)
                stamp = await in_thread(self._login)

    def _login(self) -> object:
        return login_stamp(self.entry, self.entry.name)

    async def _attempt(self) -> tuple[State, str]:
        """One connection from its beginning to its end. Returns the state after it, and why."""
        begun = time.monotonic()
        link = self._link = self._open_link(None)
        try:
            client = await link.opened()
            with anyio.fail_after(self._seconds_limit):
                await self.tools.read(client)
            self.offer = Offer(client.server_capabilities, client.instructions or "", client.protocol_version)
            self.client, self._seconds = client, round(time.monotonic() - begun, 3)
            self._attempts = 0
            self._set("ready", "")
            log.info("server %r is ready", self.entry.name)
            await self.news.follow(client, link.ended, self._refresh)
            error = link.error or ConnectionResetError()
        except asyncio.CancelledError:
            raise
        except BaseException as raised:
            error = raised
        finally:
            self._link = None
            await link.close()
        error = link.login_problem or error
        reason = reason_of_failure(error, self.entry, self._host.masked)
        words = "" if self.health.is_ready else self._last_words()
        return "needs login" if isinstance(error, NeedsLogin) else "failed", f"{reason} ({words})" if words else reason

    def _open_link(self, key: LinkKey | None) -> Link:
        headers = dict(key[1]) if key else {}

        def opening(link: Link) -> AbstractAsyncContextManager[Live]:
            named = any(name.lower() == "authorization" for name in headers)
            link.auth = auth = None if named else auth_for(self.entry, self.entry.name)
            callbacks = Callbacks(
                self.news.on_message if key is None else self.news.on_session_message,
                link.open_calls.answer if self._host.can_ask else None,
                roots_of(self.entry.root) if self.entry.root else None,
            )
            words = self._keep_words if key is None else lambda _: None
            return connected(
                self.entry, callbacks, self._host.groups, self._host.masked, headers=headers, auth=auth, words=words,
                mode=str(self.entry.options.get("protocol", "auto")),
            )  # fmt: skip

        return Link(self.entry.name, opening, self._seconds_limit)

    def _keep_words(self, words: Callable[[], str]) -> None:
        self._last_words = words

    def _set(self, state: State, reason: str) -> None:
        self.health = ServerHealth(state, reason, len(self.tools), time.time(), self._attempts, self._seconds)
        name = self.entry.name
        self._host.catalog.mark_missing(name, reason or None)
        changed, self._state_changed = self._state_changed, asyncio.Event()
        changed.set()
        self._host.report(name, "health")

    # -- its tools -----------------------------------------------------------------------------------------------

    async def _refresh(self, client: Client) -> None:
        """Lists again; a listing that fails leaves the tools as they are."""
        try:
            with anyio.fail_after(self._seconds_limit):
                await self.tools.read(client)
        except Exception as error:
            reason = reason_of_failure(error, self.entry, self._host.masked)
            log.warning(
                "server %r: its tools could not be listed again, and stay as they were: %s", self.entry.name, reason
            )

    async def relist(self) -> None:
        """Reads the tools again now, if it is connected."""
        if self.client is not None:
            await self._refresh(self.client)

    def relist_if_stale(self) -> None:
        """After a call of a server that never told of a change: its tools are read again, in the background."""
        if not (self.news.tells or self._relisting):
            self._relisting = True
            since = time.monotonic() - self.tools.read_at
            asyncio.get_running_loop().call_later(max(0.0, FRESH_SECONDS - since), self._relist_now)

    def _relist_now(self) -> None:
        self._relisting = False
        self.news.changed.set()

    # -- its requests --------------------------------------------------------------------------------------------

    async def ask(
        self,
        send: Callable[[Client], Awaitable[T]],
        *,
        key: LinkKey | None = None,
        seconds: float,
        elicit: Elicit | None = None,
        repeatable: bool = False,
    ) -> T:
        """What a request gives, on the connection of `key`. A repeatable one is sent again where the connection broke.

        Raises `ServerUnavailable` where there is no connection, `CallFailed` where it broke or took longer than
        `seconds` in all, and what the SDK raises for an answer that is an error.
        """
        name = self.entry.name
        try:
            with anyio.fail_after(seconds):
                for again in (True, False):
                    link = await self._usable_link(key)
                    try:
                        return await self._on(link, send, elicit)
                    except Exception as error:
                        if (problem := link.login_problem) is not None:
                            if isinstance(problem, NeedsLogin) and problem.is_over:
                                await self._give_up(link, key)
                            raise ServerUnavailable(str(problem)) from error
                        if not (is_lost(error, self.entry) or not link.is_usable):
                            raise
                        never_ran = is_forgotten(error, self.entry)
                        await self._give_up(link, key)
                        if not (again and (repeatable or never_ran)):
                            reason = reason_of_failure(link.error or error, self.entry, self._host.masked)
                            raise CallFailed(
                                f"the connection to the server {name!r} was lost meanwhile ({reason}): it is not known "
                                "whether it ran. Check before you run it again"
                            ) from error
        except TimeoutError:
            raise CallFailed(f"the server {name!r} gave no answer within {seconds:g} s, and was told to stop") from None
        raise AssertionError("unreachable")

    async def _on(self, link: Link, send: Callable[[Client], Awaitable[T]], elicit: Elicit | None) -> T:
        client = await link.opened()
        open_call = link.open_calls.begin(elicit)
        try:
            return await send(client)
        finally:
            link.open_calls.end(open_call)
            link.used = asyncio.get_running_loop().time()

    async def _give_up(self, link: Link, key: LinkKey | None) -> None:
        """Leaves a connection that broke; the server's own is opened again by its loop."""
        if key is None:
            link.ended.set()
        else:
            await self._links.end(key)

    async def _usable_link(self, key: LinkKey | None) -> Link:
        if key is not None and not self.entry.disabled and not self.entry.problem:
            return self._links.get(key)
        if not self._is_usable:
            self._nudged.set()
            with anyio.move_on_after(WAIT_SECONDS if self.health.is_settled else self._host.connect_seconds):
                await self._until_usable()
        if self._link is None or not self._is_usable:
            raise ServerUnavailable(self.unavailable())
        return self._link

    @property
    def _is_usable(self) -> bool:
        return self.client is not None and self._link is not None and self._link.is_usable

    async def _until_usable(self) -> None:
        """Waits for the attempt that runs, or the next one, whatever comes of it."""
        failures = self._failures
        is_off = self.entry.disabled or bool(self.entry.problem)
        while not (self._is_usable or failures != self._failures or is_off or self._has_ended):
            await self._state_changed.wait()

    def unavailable(self) -> str:
        """Why it cannot be used, and what to do."""
        name, health = self.entry.name, self.health
        if health.state == "disabled":
            return f"the server {name!r} is switched off in the configuration. Do without it"
        if health.state == "needs login":
            return health.reason
        return f"the server {name!r} cannot be reached now: {health.reason}. Try again later, or do without it"

    async def settled(self) -> None:
        """Waits until the first attempt is over."""
        while not (self.health.is_settled or self._has_ended):
            await self._state_changed.wait()

    async def end_session(self, session: str) -> None:
        await self._links.end_session(session)
