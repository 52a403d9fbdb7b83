"""The parts of a gateway, put together from a configuration."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from toolsearch import Tool
from toolsearch.mcp.config import Config, ConfigSource, read_config
from toolsearch.mcp.definitions import tools_of
from toolsearch.mcp.gateway.asking import AskingCalls
from toolsearch.mcp.gateway.conversations import Conversation, Conversations
from toolsearch.mcp.gateway.gateway_log import GatewayLog
from toolsearch.mcp.gateway.in_flight import InFlight
from toolsearch.mcp.gateway.lists import ToolLists
from toolsearch.mcp.gateway.passing import Passing
from toolsearch.mcp.gateway.resolving import Resolver
from toolsearch.mcp.gateway.saved_catalog import SavedCatalog
from toolsearch.mcp.gateway.searches import Searches
from toolsearch.mcp.gateway.settings import GatewaySettings
from toolsearch.mcp.gateway.shown_tools import Definition, ShownTools, Source
from toolsearch.mcp.gateway.spans import Spans
from toolsearch.mcp.gateway.tool_calls import ToolCalls
from toolsearch.mcp.guards import Pins, Policy, said_by
from toolsearch.mcp.servers import Servers

__all__ = ["Parts"]

log = logging.getLogger("toolsearch.mcp")


class Parts:
    """What the handlers of a gateway work with. The arguments are those of `Gateway`."""

    def __init__(
        self,
        configs: tuple[ConfigSource, ...],
        environ: Mapping[str, str] | None,
        root: str | os.PathLike[str] | None,
        cache_folder: Path | None,
        settings: Mapping[str, object],
    ) -> None:
        self._configs, self._environ, self._root = configs, environ, root
        config = self._read()
        self.settings = chosen = GatewaySettings.of(config, settings)
        self.servers = Servers(config, root=root, environ=environ, can_ask=True, keep_denied=True)
        self.files = tuple(Path(each) for each in configs if not isinstance(each, Mapping))
        self._saved = SavedCatalog(self.files, cache_folder) if self.files and chosen.cache else None
        source = Source(
            self.servers.catalog, self.servers.definition, self.servers.health, self._saved_tools, self._read_tools
        )
        self.shown = ShownTools(source, _policy_of(config), self._pins(config))
        self.log = GatewayLog(chosen.log)
        self.searches = Searches(self.shown, chosen.index)
        self.conversations = Conversations(chosen.sessions, chosen.idle_seconds, chosen.result_tokens, self._forget)
        self.passing = Passing(self.servers, chosen.search_seconds)
        self.asking = AskingCalls()
        self.in_flight = InFlight()
        resolver = Resolver(self.servers, self.shown, chosen.search_seconds)
        self.calls = ToolCalls(
            self.servers, self.shown, self.searches, resolver, self.log, Spans(), self.in_flight, chosen.confirm,
            chosen.search_seconds,
        )  # fmt: skip
        self.lists = ToolLists(self.servers, self.shown, self.searches, resolver, chosen)
        self._ending: set[asyncio.Task[None]] = set()

    def _read(self) -> Config:
        return read_config(*self._configs, environ=self._environ, root=self._root)

    def _pins(self, config: Config) -> Pins | None:
        if not self.files and self.settings.pins is None:
            return None  # there is no file that a person could run `toolsearch pin` on
        own = {name: options.get("pin") for name, options in _own_options(config).items()}
        mode = self.settings.pin or config.options.get("pin")
        return Pins.load(self.settings.pins, *self.files, mode=mode, servers=own)

    @property
    def pin_files(self) -> tuple[Path, ...]:
        """The file of the pins, if there is one."""
        return (self.shown.pins.path,) if self.shown.pins is not None else ()

    async def reload(self) -> tuple[str, ...]:
        """Reads the configuration again; returns the servers that were started or ended. Raises `SetupError`."""
        config = self._read()
        policy = _policy_of(config)
        names = await self.servers.reload(config)
        self.shown.policy = policy
        return names

    # -- what is kept for the next start -------------------------------------------------------------------------

    def _saved_tools(self) -> Mapping[str, Iterable[Definition]]:
        saved = self._saved.of(self.servers.config) if self._saved is not None else {}
        return {name: each["tools"] for name, each in saved.items()}

    def _read_tools(self, server: str, definitions: Iterable[Definition]) -> list[tuple[Tool, Definition]]:
        return tools_of(definitions, self.servers.config.servers[server])

    def instructions_of_servers(self) -> list[tuple[str, str]]:
        """What each server says of its use: now, or in the run before, if that is as pinned."""
        saved = self._saved.of(self.servers.config) if self._saved is not None else {}
        texts: list[tuple[str, str]] = []
        for name in self.servers.names:
            if told := self.servers.offer(name).instructions:
                texts.append((name, self._approved(name, told)))
            elif kept := saved.get(name, {}).get("instructions"):
                said, pins = said_by(name, str(kept)), self.shown.pins
                if pins is None or not pins.check_all([said], pin_new=False):
                    texts.append((name, said.description))
        return texts

    def _approved(self, server: str, text: str) -> str:
        """What a server says of its use, cleaned; or, where that was not approved, the way to do so."""
        said = said_by(server, text)
        held = self.shown.pins.check(said) if self.shown.pins is not None else None
        if held is None:
            return said.description
        log.warning("the instructions of the server %r changed and are held back: %s", server, held.command)
        return f"(What it says was not approved by a person yet, who can do so with: {held.command})"

    def keep(self, server: str) -> None:
        """Keeps what a server has listed for the next start, but for what is held back."""
        if self._saved is not None:
            pins = self.shown.pins
            said: str | None = self.servers.offer(server).instructions
            tools = [tool for tool in self.servers.catalog if tool.server == server]
            held = pins.check_all(tools, pin_new=False) if pins is not None else {}
            definitions = [sent for tool in tools if tool.id not in held and (sent := self.servers.definition(tool))]
            if said and pins is not None and pins.check(said_by(server, said)) is not None:
                said = None
            self._saved.put(self.servers.config, server, definitions, said)

    def answered(self, conversation: Conversation) -> None:
        """After a request: one without a session leaves no connection and no search behind."""
        own = any(entry.options.get("session") == "client" for entry in self.servers.config.servers.values())
        if conversation.is_passing and (own or conversation.searching is not None):
            self._forget(conversation)

    def _forget(self, conversation: Conversation) -> None:
        """Ends what was kept for a client that has gone, or was silent for too long."""
        self.searches.end(conversation)
        task = asyncio.ensure_future(self.servers.end_session(conversation.id))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _policy_of(config: Config) -> Policy:
    """The policy of a configuration."""
    return Policy.of(config.options, _own_options(config))


def _own_options(config: Config) -> dict[str, Mapping[str, object]]:
    """What stands under "toolsearch" in each entry, without what stands there at the top."""
    own = ((name, entry.raw.get("toolsearch")) for name, entry in config.servers.items())
    return {name: options for name, options in own if isinstance(options, Mapping)}
