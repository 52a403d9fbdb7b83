"""The tools that clients may find: those of the servers, by their served names, but for what is denied or held back."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from toolsearch import Catalog, Tool
from toolsearch.mcp.gateway.served_names import served_name
from toolsearch.mcp.guards import Held, Pins, Policy
from toolsearch.mcp.health import ServerHealth

__all__ = ["Definition", "ShownTools", "Source"]

log = logging.getLogger("toolsearch.mcp")

Definition = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """Where tools come from: the servers' own catalog, what they sent, how they are, and what an earlier run saved.

    `read` makes tools of what was saved of a server, each with its definition.
    """

    catalog: Catalog
    definition: Callable[[Tool], Definition]
    health: Callable[[], Mapping[str, ServerHealth]]
    saved: Callable[[], Mapping[str, Iterable[Definition]]]
    read: Callable[[str, Iterable[Definition]], list[tuple[Tool, Definition]]]


@dataclass(frozen=True)
class _State:
    """One state of what is shown: the original of each tool by id, and the tools that are held back or denied."""

    originals: Mapping[str, Tool] = field(default_factory=dict)
    held: Mapping[str, Held] = field(default_factory=dict)
    denied: tuple[Tool, ...] = ()
    saved: Mapping[str, Definition] = field(default_factory=dict)


class ShownTools:
    """A catalog of its own, kept in step with the servers', with pins and policy applied.

    A tool keeps its id; its name is the served one. Until a server has been listed, the tools of the last run stand for
    its own, if they are as pinned, and they go if it cannot be reached. Safe for threads.
    """

    def __init__(self, source: Source, policy: Policy, pins: Pins | None) -> None:
        self.catalog = Catalog(on_collision="replace")
        self.policy, self.pins = policy, pins
        self._source = source
        self._state = _State()
        self._lock = threading.Lock()
        self._seen: object = None  # of `_now`, when it was refreshed last
        self._listed: set[str] = set()  # servers that have been listed in this run

    @property
    def held(self) -> Mapping[str, Held]:
        """The tools that are held back, by id."""
        return self._state.held

    @property
    def held_names(self) -> Mapping[str, Held]:
        """The same by every name that a client may use: the id, the served name, the tool's own."""
        return {name: held for held in self._state.held.values() for name in _names(held.tool)}

    @property
    def denied_names(self) -> frozenset[str]:
        """The names of the tools that the policy denies, likewise."""
        return frozenset(name for tool in self._state.denied for name in _names(tool))

    def original(self, tool_id: str) -> Tool | None:
        """The tool as its server names it; None if it is not shown."""
        return self._state.originals.get(tool_id)

    def definition(self, tool: Tool) -> dict[str, Any]:
        """What a list of tools says of a shown tool: what its server sent, under the served name.

        One in which something hidden was found, or which is not known as it was sent, is shown as it was read.
        """
        state = self._state
        original = state.originals.get(tool.id, tool)
        sent = dict(state.saved.get(tool.id) or self._source.definition(original))
        if tool.flags or not isinstance(sent.get("inputSchema"), Mapping):
            sent = _as_read(original)
        return {**sent, "name": tool.name}

    def mark_listed(self, server: str) -> None:
        """A server has been listed: what was saved of it no longer counts."""
        self._listed.add(server)

    def forget(self, server: str) -> None:
        """A server's entry has changed: nothing of it has been listed."""
        self._listed.discard(server)

    def keep_up(self) -> None:
        """Takes over what has changed at the servers, if anything has."""
        if self._seen != self._now():
            self.refresh()

    def _now(self) -> tuple[object, ...]:
        """What `refresh` goes by, as far as it can be told quickly."""
        states = tuple((name, health.state) for name, health in self._source.health().items())
        return self._source.catalog.version, states, *self._source.catalog.missing.items()

    def refresh(self) -> bool:
        """Takes over what has changed at the servers, in the pins or in the policy; returns whether anything did."""
        with self._lock:
            now = self._now()
            originals, saved = self._originals()
            wanted = {t.id: t for t in originals if self.policy.verdict(t.server or "", t) != "deny"}
            denied = tuple(t for t in originals if t.id not in wanted)
            held = self.pins.check_all(wanted.values()) if self.pins is not None else {}
            shown = {
                i: replace(t, name=served_name(t.server or "", t.name)) for i, t in wanted.items() if i not in held
            }
            for tool_id in held.keys() - self._state.held.keys():
                log.warning("%s", held[tool_id].reason)
            self._state = _State({i: wanted[i] for i in shown}, held, denied, saved)
            changed = self._put(shown)
            self._mark_missing()
            self._seen = now  # at the end: whoever keeps up meanwhile waits for this
            return changed

    def _mark_missing(self) -> None:
        """Servers that cannot be reached are named where a search may want them."""
        there = {tool.server for tool in self.catalog}
        health = self._source.health()
        missing = {
            server: reason
            for server, reason in self._source.catalog.missing.items()
            if not (server in there and server in health and health[server].state == "connecting")
        }
        for server in {*missing, *self.catalog.missing}:
            if missing.get(server) != self.catalog.missing.get(server):
                self.catalog.mark_missing(server, missing.get(server))

    def _put(self, shown: Mapping[str, Tool]) -> bool:
        version = self.catalog.version
        for tool in list(self.catalog):
            if tool.id not in shown:
                self.catalog.remove(tool.id)
        new = [tool for tool in shown.values() if self.catalog.get(tool.id) != tool]
        if new:
            self.catalog.extend(new)
        return self.catalog.version != version

    def _originals(self) -> tuple[list[Tool], dict[str, Definition]]:
        """The tools of all servers, in the order of the configuration; and the definitions of those that were saved."""
        health = self._source.health()
        by_server: dict[str, list[Tool]] = {name: [] for name in health}
        for tool in self._source.catalog:
            by_server.setdefault(tool.server or "", []).append(tool)
        saved: dict[str, Definition] = {}
        for server, definitions in self._source.saved().items():
            waits = server in health and health[server].state == "connecting"
            if waits and server not in self._listed and not by_server[server]:
                read = self._as_pinned(self._source.read(server, definitions))
                by_server[server] = [tool for tool, _ in read]
                saved |= {tool.id: sent for tool, sent in read if sent}
        return [tool for tools in by_server.values() for tool in tools], saved

    def _as_pinned(self, saved: list[tuple[Tool, Definition]]) -> list[tuple[Tool, Definition]]:
        """Those of the saved tools that are as pinned: only what a connected server says is pinned, or held."""
        if self.pins is None:
            return saved
        other = self.pins.check_all([tool for tool, _ in saved], pin_new=False)
        return [(tool, sent) for tool, sent in saved if tool.id not in other]


def _as_read(tool: Tool) -> dict[str, Any]:
    """A definition of what was read of a tool, and cleaned."""
    parts = {"title": tool.title, "outputSchema": tool.output_schema}
    hints = {key: hint for key, hint in tool.annotations.items() if key != "title"}
    return {
        "description": tool.description,
        "inputSchema": dict(tool.input_schema),
        "annotations": hints,
        **{key: part for key, part in parts.items() if part},
    }


def _names(tool: Tool) -> tuple[str, ...]:
    return tool.id, served_name(tool.server or "", tool.name), tool.name
