"""Which tools may be called: by patterns for all servers and for one, and by what a tool does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from toolsearch import SetupError, Tool
from toolsearch.support import checks

__all__ = ["Policy", "Verdict", "is_like"]

Verdict = Literal["allow", "ask", "deny"]
_STRICTEST_FIRST: tuple[Verdict, ...] = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A pattern as it was written, the place where it stands, and the server that it is limited to, if any."""

    text: str
    place: str
    server: str | None

    def fits(self, server: str, tool: Tool) -> bool:
        if self.server is not None:
            return server == self.server and is_like(tool.name, self.text)
        by_id = server == tool.server and is_like(tool.id, self.text)
        return by_id or is_like(f"{server}/{tool.name}", self.text)

    def may_fit(self, server: str) -> bool:
        """Whether it could fit a tool of this server, whatever its name."""
        if self.server is not None:
            return server == self.server
        first, has_star, _ = self.text.partition("*")
        return first.startswith(f"{server}/") or (has_star != "" and f"{server}/".startswith(first))


@dataclass(frozen=True)
class Policy:
    """The verdict on each tool: "allow", "ask" (a person first) or "deny" (the tool is not even shown).

    The strictest pattern that fits a tool decides: deny before ask before allow, wherever they stand. A tool that no
    pattern fits gets the `default` of its server, or that of all, or, if there is none, "allow" where it only reads and
    "ask" where it may change something.
    """

    patterns: Mapping[Verdict, tuple[_Pattern, ...]] = field(default_factory=dict)
    defaults: Mapping[str | None, Verdict] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, object], entries: Mapping[str, Mapping[str, object]] | None = None) -> Policy:
        """The policy in our options of a configuration: `allow`, `ask` and `deny` are lists of patterns.

        `options` are those for all servers, with patterns as "server/tool", where `*` stands for any text. `entries`
        has those of single servers, by name; there a pattern is the name of a tool. `default` is the verdict on tools
        that no pattern fits. Other keys are ignored. Raises `SetupError` for what cannot be a pattern or a verdict.
        """
        places: list[tuple[str | None, Mapping[str, object]]] = [(None, options), *(entries or {}).items()]
        patterns: dict[Verdict, tuple[_Pattern, ...]] = {
            verdict: tuple(pattern for server, each in places for pattern in _patterns(verdict, each, server))
            for verdict in _STRICTEST_FIRST
        }
        defaults: dict[str | None, Verdict] = {
            server: _verdict(each["default"], server) for server, each in places if each.get("default") is not None
        }
        return cls(patterns, defaults)

    @property
    def can_deny(self) -> bool:
        """Whether there is a tool that it would deny."""
        return bool(self.patterns.get("deny")) or "deny" in self.defaults.values()

    def verdict(self, server: str, tool: Tool) -> Verdict:
        """Whether a tool may be called. `server` is the name in the configuration, whatever the tool says."""
        for verdict in _STRICTEST_FIRST:
            if self._fitting(verdict, server, tool) is not None:
                return verdict
        for place in (server, None):
            if place in self.defaults:
                return self.defaults[place]
        return "allow" if tool.kind == "read" else "ask"

    def is_by_pattern(self, server: str, tool: Tool) -> bool:
        """Whether a pattern decides, and no default and not what the tool does."""
        return any(self._fitting(verdict, server, tool) is not None for verdict in _STRICTEST_FIRST)

    def is_by_kind(self, server: str, tool: Tool) -> bool:
        """Whether no pattern and no default decides, so that the verdict goes by what the tool does."""
        return not self.is_by_pattern(server, tool) and not {server, None} & self.defaults.keys()

    def why(self, server: str, tool: Tool) -> str:
        """Where the verdict comes from, in words: a pattern and its place, a default, or what the tool does."""
        for verdict in _STRICTEST_FIRST:
            if (pattern := self._fitting(verdict, server, tool)) is not None:
                return f"the pattern {pattern.text!r} in {pattern.place}"
        if server in self.defaults:
            return f"the default of the server {server!r}"
        if None in self.defaults:
            return "the default of all servers"
        return "it only reads" if tool.kind == "read" else "it may change something"

    def unused(self, tools: Iterable[Tool], awaited: Collection[str] = ()) -> tuple[str, ...]:
        """The patterns that fit none of these tools, each with its place: a misspelt one protects nothing.

        One that could fit a tool of an `awaited` server, whose tools are not known yet, is left out.
        """
        known = [(tool.server or "", tool) for tool in tools]
        return tuple(
            f"{pattern.text!r} in {pattern.place}"
            for patterns in self.patterns.values()
            for pattern in patterns
            if not any(pattern.fits(server, tool) for server, tool in known) and not any(map(pattern.may_fit, awaited))
        )

    def _fitting(self, verdict: Verdict, server: str, tool: Tool) -> _Pattern | None:
        return next((each for each in self.patterns.get(verdict, ()) if each.fits(server, tool)), None)


def _patterns(verdict: Verdict, options: Mapping[str, object], server: str | None) -> Iterable[_Pattern]:
    place = f"{verdict!r}" if server is None else f"{verdict!r} of the server {server!r}"
    value = options.get(verdict)
    if value is None:
        return
    for text in [value] if isinstance(value, str) else checks.names(place, value, "patterns"):
        if not text.strip():
            raise SetupError(f"a pattern in {place} is empty: write server/tool, or * for all")
        if server is None and "/" not in text and text != "*":
            raise SetupError(f"the pattern {text!r} in {place} names no server: write {text}/* or */{text}")
        yield _Pattern(text, place, server)


def _verdict(value: object, server: str | None) -> Verdict:
    checks.choice("default" if server is None else f"default of the server {server!r}", value, *get_args(Verdict))
    return cast("Verdict", value)


def is_like(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern, in which `*` stands for any text; case counts. Takes linear time in the name."""
    first, *others = pattern.split("*")
    if not others:
        return name == pattern
    if not name.startswith(first) or len(name) < len(first) + len(others[-1]) or not name.endswith(others[-1]):
        return False
    at, end = len(first), len(name) - len(others[-1])
    for piece in others[:-1]:
        if (found := name.find(piece, at, end)) < 0:
            return False
        at = found + len(piece)
    return True
