"""Rules: which tools a caller may see and call now; one object decides at the search, the load, and the call.

    rule = rules(enabled, roles={"payroll/*": ["hr"]})
    agent = Agent(model, ToolSearch(catalog, visible=rule), layers=[rule])

`ToolSearch` keeps the answers of `visible` for a caller until the catalog or the value of `version()` changes. The
layer asks again in every round, and that is what keeps a call from running. Without the layer a later change of a rule
goes unnoticed; without `visible` a search may list a tool that cannot be called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol, TypeAlias

from toolsearch.calls import Caller
from toolsearch.catalog.names import escaped
from toolsearch.catalog.tools import Tool
from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.requests import CallModel, Round
from toolsearch.protocols import ModelLayer, ModelSteps, RoundLayer, RoundSteps, ToolAnswer
from toolsearch.support import checks as arguments

__all__ = ["Rules", "rules"]

log = logging.getLogger("toolsearch")

Check: TypeAlias = Callable[[Tool, Caller | None], object]
Patterns: TypeAlias = tuple[str, ...]


class Rules(ModelLayer, RoundLayer, Protocol):
    """What `rules(…)` makes: a layer, and the `visible` of a `ToolSearch`."""

    def __call__(self, tool: Tool, caller: Caller | None, /) -> bool:
        """Whether the caller may see and call the tool now."""
        ...

    def version(self) -> Hashable:
        """Changes when something changes that a check reads."""
        ...

    def sees_server(self, server: str, caller: Caller | None, /) -> bool:
        """Whether the caller may hear of a server that has not listed any tool yet."""
        ...


def rules(
    *checks: Check,
    allow: Iterable[str] = ("*",),
    deny: Iterable[str] = (),
    roles: Mapping[str, Iterable[str]] | None = None,
    tenants: Mapping[str, Iterable[str]] | None = None,
    personas: Mapping[str, Iterable[str]] | None = None,
    persona: str | Callable[[Caller | None], str] | None = None,
    version: Callable[[], Hashable] | None = None,
) -> Rules:
    """A layer, and a `visible` for `ToolSearch`; a tool may be used if every rule that is given allows it.

    Patterns are ids, or ids with `*` and `?`. `allow`, `deny`: for all callers. `roles`, `tenants`: from a pattern to
    roles or tenants, of which the caller needs one. `personas`: from a persona to the patterns it may use; `persona` is
    the one that speaks, or a function from the caller to it. `checks` are functions of the tool and the caller, quick
    and without side effects, asked in every round; if one raises, the answer is no. If a check reads anything else,
    pass `version`, a quick function whose value changes with it, or a search will not notice the change.
    """
    for check in checks:
        arguments.function("each check", check, "of a Tool and a Caller")
    if persona is not None and not isinstance(persona, str):
        arguments.function("persona", persona, "from the caller to a persona, or the name of one")
    arguments.function("version", version, "whose value changes when what a check reads does", none=True)
    used = _table("personas", personas, "patterns")
    if (personas is None) != (persona is None):
        raise SetupError("personas and persona go together: what each may use, and which one speaks")
    if isinstance(persona, str) and persona not in used:
        raise SetupError(f"there is no persona {persona!r}; there are: {', '.join(map(repr, used)) or 'none'}")
    return _Rules(
        checks=checks,
        allow=arguments.names("allow", allow, "patterns"),
        deny=arguments.names("deny", deny, "patterns"),
        roles=_table("roles", roles, "names"),
        tenants=_table("tenants", tenants, "names"),
        personas=used,
        persona=persona,
        version=version or _unchanging,
    )


def _unchanging() -> None:
    return None


def _table(option: str, value: object, what: str) -> dict[str, Patterns]:
    table = arguments.table(option, value, f"collections of {what}", none=True)
    return {key: arguments.names(f"{option}[{key!r}]", each, what) for key, each in table.items()}


@dataclass(frozen=True)
class _Rules:
    checks: tuple[Check, ...]
    allow: Patterns
    deny: Patterns
    roles: Mapping[str, Patterns]
    tenants: Mapping[str, Patterns]
    personas: Mapping[str, Patterns]
    persona: str | Callable[[Caller | None], str] | None
    version: Callable[[], Hashable]
    name: str = "rules"
    gate: bool = True

    def __call__(self, tool: Tool, caller: Caller | None) -> bool:
        """Whether the caller may see and call the tool now."""
        try:
            return self._is_listed(tool.id, caller) and all(check(tool, caller) for check in self.checks)
        except Exception:
            log.exception("a rule about %r failed: the tool may not be used", tool.id)
            return False

    def sees_server(self, server: str, caller: Caller | None) -> bool:
        """Whether the caller may hear of a server that has not listed any tool yet.

        Nobody knows its tools, so the answer is no where a rule about some of them is not met.
        """
        mine, tenant = (caller.roles, caller.tenant) if caller is not None else (frozenset[str](), None)
        whole = f"{escaped(server)}/"  # what stands for all its tools

        def about_it(pattern: str) -> bool:
            return fnmatchcase(whole, pattern) or fnmatchcase(escaped(server), pattern.partition("/")[0])

        if not any(map(about_it, self.allow)) or _fits(whole, self.deny):
            return False
        if any(about_it(p) and not mine.intersection(needed) for p, needed in self.roles.items()):
            return False
        if any(about_it(p) and tenant not in needed for p, needed in self.tenants.items()):
            return False
        try:
            if self.persona is not None and not any(map(about_it, self._persona_patterns(caller))):
                return False
            return all(check(Tool(id=whole, name="", server=server), caller) for check in self.checks)
        except Exception:
            log.exception("a rule about the server %r failed: it is not named", server)
            return False

    def around_model(self, request: CallModel) -> ModelSteps:
        """Leaves out of the request what may not be used now; rules say nothing of the session's own tools."""
        tools = (*request.tools, *request.deferred)
        hidden = {each.tool.id for each in tools if not (each.built_in or self(each.tool, request.caller))}
        return (yield request.with_tools(lambda each: None if each.tool.id in hidden else each) if hidden else request)

    def around_round(self, request: Round) -> RoundSteps:
        answers: dict[str, ToolAnswer] = {}
        for call in request.calls:
            if call.kind != "tool":
                continue
            tool = request.tools.get(call.id)
            if tool is None or not self(tool, request.caller):
                answers[call.id] = synthetic.unavailable(call)
        rest = request.without(answers)
        if rest.calls:
            answers |= yield rest
        return answers

    def _is_listed(self, tool_id: str, caller: Caller | None) -> bool:
        """What the patterns say."""
        mine, tenant = (caller.roles, caller.tenant) if caller is not None else (frozenset[str](), None)
        if not _fits(tool_id, self.allow) or _fits(tool_id, self.deny):
            return False
        if any(fnmatchcase(tool_id, p) and not mine.intersection(needed) for p, needed in self.roles.items()):
            return False
        if any(fnmatchcase(tool_id, p) and tenant not in needed for p, needed in self.tenants.items()):
            return False
        return self.persona is None or _fits(tool_id, self._persona_patterns(caller))

    def _persona_patterns(self, caller: Caller | None) -> Patterns:
        speaking = self.persona(caller) if callable(self.persona) else self.persona
        return self.personas.get(speaking or "", ())


def _fits(tool_id: str, patterns: Patterns) -> bool:
    return any(fnmatchcase(tool_id, pattern) for pattern in patterns)
