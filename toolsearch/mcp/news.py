"""What a server tells without being asked: that its tools, prompts or resources have changed, in both generations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

import anyio
from mcp import Client
from mcp.client.session import ClientRequestContext, IncomingMessage, ListRootsFnT
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    SubscriptionLost,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types import (
    ListRootsResult,
    LoggingMessageNotification,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    ResourceUpdatedNotificationParams,
    Root,
    ServerNotification,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

__all__ = ["News", "roots_of"]

log = logging.getLogger("toolsearch.mcp")

SETTLE_SECONDS = 0.05  # after a notification, for others that come with it
PAUSE_SECONDS = 0.5  # between two listings, however many notifications come
REFRESH_SECONDS = 600.0  # between two listings of a server that tells nothing
AGAIN_SECONDS = 5.0  # before a stream of events that broke is opened again


class News:
    """Notifications of one server. `changed` asks for the tools to be read again.

    `tells` is whether a change of the tools would be told: one was, or the server said so for a stream of events. The
    tools of any other server are read again every so many seconds (`every`).
    """

    def __init__(
        self,
        report: Callable[[Literal["resources", "prompts"]], None],
        pass_on: Callable[[ServerNotification], None] = lambda _: None,
        every: float = REFRESH_SECONDS,
    ) -> None:
        self.tells = False
        self._every = every
        self.changed = asyncio.Event()
        self._report, self._pass_on = report, pass_on
        self._others: set[Literal["resources", "prompts"]] = set()  # kinds that have changed and are not reported yet
        self._other_changed = asyncio.Event()
        self._watched: frozenset[str] = frozenset()  # resources that somebody wants to hear of
        self._watched_others = asyncio.Event()

    async def watch(self, addresses: frozenset[str]) -> None:
        """Hears of these resources when they change, from a server of the modern generation."""
        if addresses != self._watched:
            self._watched = addresses
            self._watched_others.set()

    async def on_message(self, message: IncomingMessage) -> None:
        """The callback of the SDK's client."""
        match message:
            case ToolListChangedNotification():
                self._tools()
            case PromptListChangedNotification():
                self._other("prompts")
            case ResourceListChangedNotification():
                self._other("resources")
            case LoggingMessageNotification() | ResourceUpdatedNotification():
                self._pass_on(message)
            case _:
                pass

    def _tools(self) -> None:
        self.tells = True
        self.changed.set()

    def _other(self, kind: Literal["resources", "prompts"]) -> None:
        self._others.add(kind)
        self._other_changed.set()

    async def follow(self, client: Client, ended: asyncio.Event, refresh: Callable[[Client], Awaitable[None]]) -> None:
        """Until the connection has ended: listens, and reads the tools again when they have changed."""
        self.tells = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._refresh_when_changed, client, refresh)
            tasks.start_soon(self._refresh_now_and_then)
            tasks.start_soon(self._report_others)
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                tasks.start_soon(self._listen, client)
                tasks.start_soon(self._watch, client)
            await ended.wait()
            tasks.cancel_scope.cancel()

    async def _refresh_when_changed(self, client: Client, refresh: Callable[[Client], Awaitable[None]]) -> None:
        while True:
            await self.changed.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            self.changed.clear()
            await refresh(client)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _refresh_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            if not self.tells:
                self.changed.set()

    async def _report_others(self) -> None:
        """Reports what else has changed: a storm of notifications is one change of each kind."""
        while True:
            await self._other_changed.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            self._other_changed.clear()
            kinds, self._others = sorted(self._others), set()
            for kind in kinds:
                self._report(kind)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _listen(self, client: Client) -> None:
        """Events of the modern generation. A server that has none is not asked again."""
        while True:
            try:
                async with client.listen(
                    tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
                ) as events:
                    self.tells = self.tells or bool(events.honored.tools_list_changed)
                    async for event in events:
                        self._take(event)
            except MCPError as error:
                log.debug("a server has no events: %s", error)
                return
            except SubscriptionLost:
                pass
            await asyncio.sleep(AGAIN_SECONDS)
            self.changed.set()  # what happened meanwhile was not told

    async def _watch(self, client: Client) -> None:
        """Listens to the resources that are watched, on a stream that is opened anew when they are others."""
        while True:
            self._watched_others.clear()
            async with anyio.create_task_group() as tasks:
                if self._watched:
                    tasks.start_soon(self._listen_to, client, sorted(self._watched))
                await self._watched_others.wait()
                tasks.cancel_scope.cancel()

    async def _listen_to(self, client: Client, addresses: list[str]) -> None:
        while True:
            try:
                async with client.listen(resource_subscriptions=addresses) as events:
                    async for event in events:
                        if isinstance(event, ResourceUpdated):
                            params = ResourceUpdatedNotificationParams(uri=event.uri)
                            self._pass_on(ResourceUpdatedNotification(params=params))
            except MCPError as error:
                log.debug("a server has no events of resources: %s", error)
                return
            except SubscriptionLost:
                pass
            await asyncio.sleep(AGAIN_SECONDS)

    async def on_session_message(self, message: IncomingMessage) -> None:
        """The callback of a connection that belongs to a session: what changes is told on the server's own."""
        if isinstance(message, LoggingMessageNotification | ResourceUpdatedNotification):
            self._pass_on(message)

    def _take(self, event: ServerEvent) -> None:
        match event:
            case ToolsListChanged():
                self._tools()
            case PromptsListChanged():
                self._other("prompts")
            case ResourcesListChanged():
                self._other("resources")
            case _:
                pass


def roots_of(root: str) -> ListRootsFnT:
    """The answer to a server that asks where it may work."""

    async def roots(context: ClientRequestContext) -> ListRootsResult:
        path = Path(root)
        return ListRootsResult(roots=[Root(uri=path.as_uri(), name=path.name)])  # type: ignore[arg-type]

    return roots
