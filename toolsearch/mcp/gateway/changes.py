"""What changes behind a gateway, and who is told: lists, resources, the log of a server, the configuration."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path

import mcp_types as types
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

from toolsearch import SetupError
from toolsearch.mcp.gateway.conversations import Conversation
from toolsearch.mcp.gateway.parts import Parts
from toolsearch.support.threads import in_thread

__all__ = ["Changes"]

log = logging.getLogger("toolsearch.mcp")

SETTLE_SECONDS = 0.05  # after a change, for others that come with it
WATCH_SECONDS = 1.0  # between two looks at the files


class Changes:
    """Follows the servers and the files, and tells the clients. For one event loop, that of `begin`."""

    def __init__(self, parts: Parts) -> None:
        self.bus = InMemorySubscriptionBus()
        self._parts = parts
        self._tasks: list[asyncio.Task[None]] = []
        self._listed: set[str] = set()  # servers whose tools have changed
        self._woken = asyncio.Event()
        self._version, self._held = parts.shown.catalog.version, set[str]()  # what was told last
        self._checked: object = None  # the policy whose patterns are checked
        self._warned = set[str]()  # its patterns that were warned of
        self._ends: list[Callable[[], None]] = []
        self._telling: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Begins to follow."""
        loop = asyncio.get_running_loop()
        servers = self._parts.servers
        self._version = self._parts.shown.catalog.version

        def on_change(server: str, kind: str) -> None:
            with suppress(RuntimeError):  # the loop may have ended
                loop.call_soon_threadsafe(self._note, server, kind)

        def on_notification(server: str, news: types.ServerNotification) -> None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._pass, server, news)

        self._ends = [servers.on_change(on_change), servers.on_notification(on_notification)]
        for server, health in servers.health().items():  # what came before anybody listened
            if health.is_settled:
                self._note(server, "health")
            if health.is_ready:
                self._note(server, "tools")
        self._tasks = [loop.create_task(self._keep_in_step()), loop.create_task(self._watch())]

    async def end(self) -> None:
        for end in self._ends:
            end()
        for task in (*self._tasks, *self._telling):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._telling, return_exceptions=True)
        self._log_held()
        await in_thread(self._keep_all)

    def _keep_all(self) -> None:
        """A client may leave before what a server has listed was kept."""
        for server, health in self._parts.servers.health().items():
            if health.is_ready:
                self._parts.keep(server)

    # -- the servers ---------------------------------------------------------------------------------------------

    def _note(self, server: str, kind: str) -> None:
        match kind:
            case "tools":
                self._listed.add(server)
                self._woken.set()
            case "health":
                health = self._parts.servers.health().get(server)
                if health is not None:
                    self._parts.log.event("server", server=server, state=health.state, reason=health.reason)
                    if health.is_ready:
                        self._spawn(self._welcome(server))
                self._woken.set()
            case "resources" | "prompts":
                self._spawn(self._tell_lists(kind))
            case _:
                pass

    async def _welcome(self, server: str) -> None:
        """A server has come, perhaps once more: clients may have listed what it has before it was there."""
        await self._parts.passing.subscribe_again(server)
        for kind in ("resources", "prompts"):
            if self._parts.servers.offer(server).has(kind):
                await self._tell_lists(kind)

    async def _keep_in_step(self) -> None:
        while True:
            await self._woken.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            self._woken.clear()
            try:
                await self._follow()
            except Exception:
                log.exception("the gateway could not follow a change")

    async def _follow(self) -> None:
        listed, self._listed = self._listed, set()
        parts = self._parts
        for server in listed:
            parts.shown.mark_listed(server)
        await in_thread(parts.shown.refresh)
        self._log_held()
        version = parts.shown.catalog.version
        changed, self._version = version != self._version, version
        self._warn_of_policy()
        for server in listed:
            await in_thread(lambda name=server: parts.keep(name))  # type: ignore[misc]
        if changed:
            for conversation in parts.conversations:
                if conversation.mode == "all":
                    await self._send(conversation, types.ToolListChangedNotification())
            if parts.lists.some_are_shown_all:
                await self.bus.publish(ToolsListChanged())

    def _warn_of_policy(self) -> None:
        """A pattern that is misspelt protects nothing: each is checked once the servers that it can fit are settled."""
        servers, policy = self._parts.servers, self._parts.shown.policy
        if policy is not self._checked:
            self._checked, self._warned = policy, set()
        health = servers.health()
        away = ", ".join(f"{n!r} ({each.state})" for n, each in health.items() if each.is_settled and not each.is_ready)
        besides = f"; these servers are not there: {away}" if away else ""
        for pattern in policy.unused(servers.catalog, [n for n, each in health.items() if not each.is_settled]):
            if pattern not in self._warned:
                self._warned.add(pattern)
                log.warning("the pattern %s fits no tool of any server%s", pattern, besides)

    def _log_held(self) -> None:
        held = self._parts.shown.held
        for tool_id in held.keys() - self._held:
            self._parts.log.event("held", tool=tool_id, reason=held[tool_id].reason)
        self._held = set(held)

    async def tell_tools(self, conversation: Conversation) -> None:
        """Tells one client that its list of tools has changed."""
        if conversation.channel is not None:
            await self._send(conversation, types.ToolListChangedNotification())
        else:
            await self.bus.publish(ToolsListChanged())

    async def _tell_lists(self, kind: str) -> None:
        is_prompts = kind == "prompts"
        for conversation in self._parts.conversations:
            news = types.PromptListChangedNotification() if is_prompts else types.ResourceListChangedNotification()
            await self._send(conversation, news)
        await self.bus.publish(PromptsListChanged() if is_prompts else ResourcesListChanged())

    async def _send(self, conversation: Conversation, news: types.ServerNotification) -> None:
        if conversation.channel is not None:
            with suppress(Exception):  # the client may have left
                await conversation.channel.send_notification(news)

    # -- what servers tell ---------------------------------------------------------------------------------------

    def _pass(self, server: str, news: types.ServerNotification) -> None:
        match news:
            case types.ResourceUpdatedNotification():
                self._spawn(self._tell_updated(server, news))
            case types.LoggingMessageNotification():
                self._spawn(self._parts.in_flight.tell_log(server, news, [*self._parts.conversations]))
            case _:
                pass

    async def _tell_updated(self, server: str, news: types.ResourceUpdatedNotification) -> None:
        address = self._parts.passing.known_as(server, str(news.params.uri))
        known = news.model_copy(update={"params": news.params.model_copy(update={"uri": address})})
        for conversation in self._parts.conversations:
            if address in conversation.subscribed:
                await self._send(conversation, known)
        await self.bus.publish(ResourceUpdated(uri=address))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    # -- the files -----------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Reads the configuration again when a file of it has changed; pins are read again, too."""
        files = [*self._parts.files, *self._parts.pin_files]
        stamps = [_stamp(file) for file in files]
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            now = [_stamp(file) for file in files]
            if now == stamps:
                continue
            configs = len(self._parts.files)
            changed = now[:configs] != stamps[:configs]
            stamps = now
            if changed:
                await self._reload()
            self._woken.set()

    async def _reload(self) -> None:
        """A file that cannot be read changes nothing: editors write in steps."""
        try:
            names = await self._parts.reload()
        except SetupError as error:
            log.warning("the configuration was not read again, and stays as it was: %s", error)
            self._parts.log.event("reload", status="failed", reason=str(error))
            return
        for name in names:
            self._parts.shown.forget(name)
        log.info("the configuration was read again; servers that changed: %s", ", ".join(names) or "none")
        self._parts.log.event("reload", status="ok", servers=list(names))


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        held = file.stat()
    except OSError:
        return None
    return held.st_mtime_ns, held.st_size, held.st_ino
