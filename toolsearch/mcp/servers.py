"""All servers of a configuration, as one catalog and one function that runs its tools."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias, TypeVar

import mcp_types
from mcp import Client
from mcp.shared.dispatcher import ProgressFnT
from pydantic import BaseModel, TypeAdapter

from toolsearch import Caller, Catalog, SetupError, StateError, Tool
from toolsearch.mcp.calls import CallOptions, call_tool, hiding, in_loop
from toolsearch.mcp.config import Config, ConfigSource, ServerEntry, read_config
from toolsearch.mcp.guards.configured import policy_of
from toolsearch.mcp.health import ServerHealth
from toolsearch.mcp.links import LinkKey
from toolsearch.mcp.listeners import Listeners
from toolsearch.mcp.loop_thread import LoopThread
from toolsearch.mcp.offers import NOTHING, Offer
from toolsearch.mcp.processes import Groups
from toolsearch.mcp.questions import Ask, Elicit
from toolsearch.mcp.runner import Runner, ToolProgress
from toolsearch.mcp.sdk_logs import THREAD
from toolsearch.mcp.supervisor import Host, Kind, Supervisor
from toolsearch.support import checks
from toolsearch.support.threads import in_thread

__all__ = ["Headers", "Listener", "Servers", "ToolProgress"]

log = logging.getLogger("toolsearch.mcp")

T = TypeVar("T")
R = TypeVar("R", bound=BaseModel)
Headers: TypeAlias = Callable[[Caller | None, str], Mapping[str, str]]
Listener: TypeAlias = Callable[[str, Kind], object]

_NOT_RUNNING = "these servers are not running: use `async with Servers(…)`, or call start()"
CALL_SECONDS = 300.0  # of a call whose server has no `timeout` in its entry
END_SECONDS = 15.0  # for everything to be ended


class Servers:
    """The servers of a configuration: connected at once, watched, and connected again when they are lost.

    `config` and `more` are files and mappings, see `read_config`; `root` is what `${ROOT}` stands for, and where
    servers are told to work. `connect_seconds` is how long a start waits for all of them: those that are late come
    later. `call_seconds` limits a call where the entry has no `timeout`. `headers` gives further headers for a caller
    and a server: each distinct set has connections of its own. `ask` is asked what a server wants to know of the user.
    `progress` hears how far a call is. Tools go into `catalog`, or a new one; those that the configuration denies do
    not, and `run` refuses them. With `keep_denied` they do: for a program that applies the policy itself.

    All connections live in one thread of their own; every method may be called from any thread and any event loop.
    """

    def __init__(
        self,
        config: ConfigSource | Config,
        *more: ConfigSource,
        connect_seconds: float = 20.0,
        call_seconds: float = CALL_SECONDS,
        root: str | os.PathLike[str] | None = None,
        headers: Headers | None = None,
        ask: Ask | None = None,
        can_ask: bool = False,
        progress: ToolProgress | None = None,
        catalog: Catalog | None = None,
        environ: Mapping[str, str] | None = None,
        keep_denied: bool = False,
    ) -> None:
        checks.number("connect_seconds", connect_seconds, "a number of seconds")
        checks.number("call_seconds", call_seconds, "a number of seconds")
        checks.function("headers", headers, "that takes a caller and a server", none="for none")
        checks.function("ask", ask, "that takes a Question", none="to decline")
        self._environ, self._root = environ, root
        self._config = config if isinstance(config, Config) else read_config(config, *more, environ=environ, root=root)
        self._policy, self._keep_denied = policy_of(self._config), keep_denied
        self._connect_seconds, self._call_seconds = connect_seconds, call_seconds
        self._headers = headers
        self._can_ask = can_ask or ask is not None
        self.catalog = catalog if catalog is not None else Catalog(qualified=True)
        self.run = Runner(self, ask, progress)
        self._thread: LoopThread | None = None
        self._groups = Groups()
        self._supervisors: dict[str, Supervisor] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed: Listeners[Kind] = Listeners()
        self._notified: Listeners[mcp_types.ServerNotification] = Listeners()

    # -- beginning and end ---------------------------------------------------------------------------------------

    def start(self, *, wait: bool = True) -> Servers:
        """Connects all servers, and waits for them at most `connect_seconds`; without `wait`, not at all.

        Raises `SetupError` if one that is `required` is not ready then; any other that fails is named by `health`.
        """
        begun = self._begun(self._begin(), self._connect_seconds if wait else 0)
        try:
            self.wait(begun)
        except BaseException:  # Ctrl-C: nothing is left running
            self.close()
            raise
        return self._checked() if wait else self

    def close(self) -> None:
        """Ends all connections and processes. Calling it again does nothing."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.submit(self._end()).result()
            thread.stop()
            self._groups.close()

    async def __aenter__(self) -> Servers:
        begun = self._begun(self._begin(), self._connect_seconds)
        try:
            await self.hop(begun)
            return self._checked()
        except BaseException:  # a start that is cancelled leaves nothing running
            await self.__aexit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(in_thread(self.close))

    def __enter__(self) -> Servers:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self) -> LoopThread:
        if self._thread is not None:
            raise StateError("these servers have been started already")
        self._thread = LoopThread(THREAD)
        return self._thread

    async def _begun(self, _: LoopThread, seconds: float) -> None:
        for entry in self._config.servers.values():
            self._supervise(entry)
        await self._settled(seconds, None)

    def _supervise(self, entry: ServerEntry) -> None:
        is_denied = self.is_denied if self._policy.can_deny and not self._keep_denied else None
        host = Host(
            self.catalog, self._groups, self._config.masked, self._changed.tell, self._notified.tell,
            self._connect_seconds, self._can_ask, is_denied,
        )  # fmt: skip
        supervisor = self._supervisors[entry.name] = Supervisor(entry, host)
        self._tasks[entry.name] = asyncio.create_task(supervisor.run(), name=f"toolsearch-mcp {entry.name}")

    async def _settled(self, seconds: float | None, names: Iterable[str] | None) -> None:
        wanted = [*self._supervisors] if names is None else [name for name in names if name in self._supervisors]
        waits = [asyncio.create_task(self._supervisors[name].settled()) for name in wanted]
        if waits:
            _, late = await asyncio.wait(waits, timeout=seconds)
            for each in late:
                each.cancel()

    def _checked(self) -> Servers:
        lacking = [
            f"{name!r}: {supervisor.health.reason}"
            for name, supervisor in self._supervisors.items()
            if supervisor.entry.required and not supervisor.health.is_ready
        ]
        if not lacking:
            return self
        self.close()
        raise SetupError(f"servers that are required are not ready: {'; '.join(lacking)}")

    async def _end(self) -> None:
        await self._stop([*self._supervisors])

    async def _stop(self, names: Iterable[str]) -> None:
        tasks = [self._tasks.pop(name) for name in names]
        for name in names:
            del self._supervisors[name]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=END_SECONDS)

    async def hop(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Awaits a coroutine that runs in the thread of the connections."""
        return await self._running(coroutine).run(coroutine)

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Waits for a coroutine that runs in the thread of the connections."""
        thread = self._running(coroutine)
        future: Future[T] = thread.submit(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _running(self, coroutine: Coroutine[Any, Any, object]) -> LoopThread:
        if self._thread is None:
            coroutine.close()
            raise StateError(_NOT_RUNNING)
        return self._thread

    # -- looking -------------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the servers, in the order of the configuration."""
        return tuple(self._config.servers)

    @property
    def config(self) -> Config:
        return self._config

    def health(self) -> dict[str, ServerHealth]:
        """The state of each server, by name."""
        blank = ServerHealth("connecting", "it has not been started")
        return {n: self._supervisors[n].health if n in self._supervisors else blank for n in self.names}

    async def ready(self, seconds: float | None = None, names: Iterable[str] | None = None) -> dict[str, ServerHealth]:
        """Waits for servers that are still connecting, all or those named, and returns the state of each."""
        await self.hop(self._settled(seconds, names))
        return self.health()

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with a server and what changed, in another thread, until the returned function is called."""
        return self._changed.add(listener)

    def on_notification(self, listener: Callable[[str, mcp_types.ServerNotification], object]) -> Callable[[], None]:
        """As `on_change`, for what a server logs, and for what it tells of a resource."""
        return self._notified.add(listener)

    def offer(self, server: str) -> Offer:
        """What a server said of itself when it was connected last."""
        supervisor = self._supervisors.get(server)
        return NOTHING if supervisor is None else supervisor.offer

    def definition(self, tool: Tool) -> Mapping[str, object]:
        """The definition of a tool as its server sent it; empty if that is not known."""
        supervisor = self._supervisors.get(tool.server or "")
        return supervisor.tools.definition(tool) if supervisor is not None else {}

    # -- requests ------------------------------------------------------------------------------------------------

    async def call(
        self,
        server: str,
        tool_name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress: ProgressFnT | None = None,
        meta: Mapping[str, Any] | None = None,
        session: str | None = None,
        caller: Caller | None = None,
        elicit: Elicit | None = None,
        seconds: float | None = None,
        repeatable: bool = False,
    ) -> mcp_types.CallToolResult:
        """Calls a tool by its name at the server; the result is as the server sent it.

        `session` has a connection of its own where the entry says `"session": "client"`. `elicit` answers what the
        server asks of the user. `repeatable`: it may run twice, so it is sent again where the connection broke.
        Raises `ServerUnavailable`, `CallFailed`, and the SDK's `MCPError` for an error that the server answered.
        """
        loop, supervisor = asyncio.get_running_loop(), self.supervisor(server)
        options = CallOptions(
            seconds=self.limit(server, seconds),
            key=self.link_key(server, session, caller),
            progress=in_loop(progress, loop),
            meta=meta,
            elicit=in_loop(elicit, loop),
            repeatable=repeatable,
        )
        result = await self.hop(call_tool(supervisor, tool_name, arguments or {}, options))
        return hiding(result, self._config.without_secrets)

    async def request(
        self,
        server: str,
        request: mcp_types.Request[Any, Any],
        result_type: type[R] | TypeAdapter[R],
        *,
        progress: ProgressFnT | None = None,
        session: str | None = None,
        caller: Caller | None = None,
        elicit: Elicit | None = None,
        seconds: float | None = None,
        repeatable: bool = False,
    ) -> R:
        """What a server answers to any request of the SDK's types, such as `ReadResourceRequest`; else as `call`."""
        loop = asyncio.get_running_loop()
        heard = in_loop(progress, loop)

        async def send(client: Client) -> R:
            return await client.session.send_request(request, result_type, progress_callback=heard)

        return await self.hop(
            self.supervisor(server).ask(
                send,
                key=self.link_key(server, session, caller),
                seconds=self.limit(server, seconds),
                elicit=in_loop(elicit, loop),
                repeatable=repeatable,
            )
        )

    async def reload(self, config: ConfigSource | Config, *more: ConfigSource) -> tuple[str, ...]:
        """Goes over to another configuration: only what is new or has changed is started, and what has gone is ended.

        Returns the names of the servers that were started or ended. Raises `SetupError`, and changes nothing, for a
        configuration that cannot be read.
        """
        new = (
            config if isinstance(config, Config) else read_config(config, *more, environ=self._environ, root=self._root)
        )
        return await self.hop(self._reloaded(new))

    async def _reloaded(self, new: Config) -> tuple[str, ...]:
        self._policy = policy_of(new)
        before, self._config = self._config, new
        gone = [name for name, entry in before.servers.items() if new.servers.get(name) != entry]
        fresh = [entry for name, entry in new.servers.items() if before.servers.get(name) != entry]
        await self._stop([name for name in gone if name in self._supervisors])
        for name in gone:
            if name not in new.servers:
                await in_thread(partial(self.catalog.sync, [], server=name))
                self.catalog.mark_missing(name, None)
        for entry in fresh:
            self._supervise(entry)
        return tuple(dict.fromkeys([*gone, *(entry.name for entry in fresh)]))

    async def refresh(self, *names: str) -> None:
        """Reads the tools of servers again, of all or those named: where a tool is asked for that is not known."""
        supervisors = [self.supervisor(name) for name in names or self.names]

        async def relist() -> None:
            await asyncio.gather(*(each.relist() for each in supervisors))

        await self.hop(relist())

    async def watch(self, server: str, addresses: frozenset[str]) -> None:
        """`on_notification` hears of these resources of a server of the modern generation when they change."""
        await self.hop(self.supervisor(server).news.watch(addresses))

    async def end_session(self, session: str) -> None:
        """Closes the connections that a session has of its own."""
        supervisors = [*self._supervisors.values()]

        async def end() -> None:
            await asyncio.gather(*(each.end_session(session) for each in supervisors))

        await self.hop(end())

    # -- inside --------------------------------------------------------------------------------------------------

    def supervisor(self, server: str) -> Supervisor:
        if (found := self._supervisors.get(server)) is None:
            if self._thread is None:
                raise StateError(_NOT_RUNNING)
            known = ", ".join(map(repr, self.names)) or "none"
            raise SetupError(f"there is no server {server!r} in the configuration; there are: {known}")
        return found

    def is_denied(self, tool: Tool) -> bool:
        """Whether the configuration denies a tool, by the patterns of `deny` or by `"default": "deny"`."""
        return not self._keep_denied and self._policy.verdict(tool.server or "", tool) == "deny"

    def limit(self, server: str, seconds: float | None) -> float:
        return seconds or self.supervisor(server).entry.timeout or self._call_seconds

    def link_key(self, server: str, session: str | None, caller: Caller | None) -> LinkKey | None:
        """What connection a request goes through; None for the server's own."""
        entry = self.supervisor(server).entry
        own = session if session and entry.options.get("session") == "client" else ""
        headers: Mapping[str, str] = {}
        if self._headers is not None and entry.transport != "stdio":
            headers = self._headers(caller, server) or {}
        return (own, tuple(sorted((str(k), str(v)) for k, v in headers.items()))) if own or headers else None
