"""Rules: which tools a caller may see and call now; the same object decides at search, at load, and at the call.

    rule = rules(enabled, roles={"payroll/*": ["hr"]})
    agent = Agent(model, ToolSearch(catalog, visible=rule), layers=[rule])

What `ToolSearch` keeps of `visible` holds for a caller until the catalog changes or `version` gives something else. The
layer asks again in every round: it is what keeps a call from running. Without the layer a rule that has changed
meanwhile is not seen; without `visible` a search may list a tool that cannot be called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from toolsearch.calls import Caller
from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.requests import CallModel, Round
from toolsearch.protocols import ModelSteps, RoundSteps
from toolsearch.support import checks as arguments

if TYPE_CHECKING:
    from toolsearch.catalog.tools import Tool

__all__ = ["rules"]

log = logging.getLogger("toolsearch")

Check = Callable[["Tool", Caller | None], Any]
Patterns = tuple[str, ...]


def rules(
    *checks: Check,
    allow: Iterable[str] = ("*",),
    deny: Iterable[str] = (),
    roles: Mapping[str, Iterable[str]] | None = None,
    tenants: Mapping[str, Iterable[str]] | None = None,
    personas: Mapping[str, Iterable[str]] | None = None,
    persona: str | Callable[[Caller | None], str] | None = None,
    version: Callable[[], Any] | None = None,
) -> Any:
    """A layer, and a `visible` for `ToolSearch`; a tool may be used where every rule that is given says so.

    Patterns are ids, or ids with `*` and `?`. `allow`, `deny`: of all callers. `roles`, `tenants`: from a pattern to
    those of whom the caller needs one. `personas`: from a persona to the patterns it may use; `persona` is the one that
    speaks, or a function from the caller to it. `checks` are functions of the tool and the caller, quick and without
    side effects, asked in every round; where one raises, the answer is no. Whatever a check reads beside the two has to
    be in `version`, a quick function whose value changes when that does, or a search will not see the change.
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
        checks,
        arguments.names("allow", allow, "patterns"),
        arguments.names("deny", deny, "patterns"),
        _table("roles", roles, "names"),
        _table("tenants", tenants, "names"),
        used,
        persona,
        version or _always,
    )


def _always() -> None:
    return None


def _table(option: str, given: object, what: str) -> dict[str, Patterns]:
    told = arguments.table(option, given, f"collections of {what}", none=True)
    return {key: arguments.names(f"{option}[{key!r}]", each, what) for key, each in told.items()}


@dataclass(frozen=True)
class _Rules:
    checks: tuple[Check, ...]
    allow: Patterns
    deny: Patterns
    roles: Mapping[str, Patterns]
    tenants: Mapping[str, Patterns]
    personas: Mapping[str, Patterns]
    persona: str | Callable[[Caller | None], str] | None
    version: Callable[[], Any]
    name: str = "rules"
    gate: bool = True

    def __call__(self, tool: Tool, caller: Caller | None) -> bool:
        """Whether the caller may see and call the tool now."""
        try:
            return self._listed(tool.id, caller) and all(check(tool, caller) for check in self.checks)
        except Exception:
            log.exception("a rule about %r failed: the tool may not be used", tool.id)
            return False

    def around_model(self, request: CallModel) -> ModelSteps:
        """Leaves out of the request what may not be used now; the search tool and its like are no tools of anybody."""
        kept = tuple(shown for shown in request.tools if shown.built_in or self(shown.tool, request.caller))
        return (yield request if len(kept) == len(request.tools) else replace(request, tools=kept))

    def around_round(self, request: Round) -> RoundSteps:
        answers: dict[str, Any] = {}
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

    def _listed(self, tool_id: str, caller: Caller | None) -> bool:
        """What the lists say."""
        mine, tenant = (caller.roles, caller.tenant) if caller is not None else (frozenset[str](), None)
        if not _fits(tool_id, self.allow) or _fits(tool_id, self.deny):
            return False
        if any(fnmatchcase(tool_id, p) and not mine.intersection(needed) for p, needed in self.roles.items()):
            return False
        if any(fnmatchcase(tool_id, p) and tenant not in needed for p, needed in self.tenants.items()):
            return False
        if self.persona is None:
            return True
        speaking = self.persona(caller) if callable(self.persona) else self.persona
        return _fits(tool_id, self.personas.get(speaking, ()))


def _fits(tool_id: str, patterns: Patterns) -> bool:
    return any(fnmatchcase(tool_id, pattern) for pattern in patterns)
