"""What providers refuse, lose or cannot be sent, found out with the rules of the loopback providers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from toolsearch import Catalog, Tool
from toolsearch.catalog.exports import PROVIDERS, Provider, check_exports
from toolsearch.testing.loopback import anthropic, gemini, openai_chat
from toolsearch_evals.doctor.findings import Finding
from toolsearch_evals.doctor.schemas import contradictions

__all__ = ["MOST_TOOLS", "definition", "refusal", "schema_findings"]

Body = dict[str, Any]
_Found = defaultdict[tuple[str, str], list[str]]
MOST_TOOLS: dict[Provider, int] = {"openai": openai_chat.MOST_TOOLS, "gemini": gemini.MOST_DECLARATIONS}
# Gemini documents few keywords, and takes more than it documents: nearly half of the published tools have `$schema`.
_UNDOCUMENTED = "unsupported keyword"
_TOLD = ("is only described", "is sent under another name")  # what of the changes the model or the call makes up for
_WHOSE = re.compile(r"\A(?:Invalid schema for function '.*?': |function_declarations\[.*?\]: |tools\..*?\.custom: )")
_SAID = [{"role": "user", "content": "Hello"}]


def _openai(tools: list[Body]) -> Body:
    return {"tools": [{"type": "function", "function": each} for each in tools], "messages": _SAID}


def _anthropic(tools: list[Body]) -> Body:
    made = [{"name": t["name"], "description": t["description"], "input_schema": t["parameters"]} for t in tools]
    return {"tools": made, "max_tokens": 100, "messages": _SAID}


def _gemini(tools: list[Body]) -> Body:
    names = {"parameters": "parametersJsonSchema"}
    made = [{names.get(key, key): value for key, value in each.items()} for each in tools]
    return {"tools": [{"functionDeclarations": made}], "contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}


_REFUSING: Mapping[str, tuple[Callable[[list[Body]], Body], Callable[[Body], str]]] = {
    "openai": (_openai, openai_chat.refusal),
    "anthropic": (_anthropic, anthropic.refusal),
    "gemini": (_gemini, gemini.refusal),
}


def definition(tool: Tool) -> Body:
    """A tool as a program sends it that changes nothing: its own name, text and schema."""
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)}


def refusal(provider: Provider, definitions: list[Body]) -> str:
    """Why the provider refuses a request with these definitions; "" if it takes it, or refuses nothing."""
    if provider not in _REFUSING:
        return ""
    written, refused = _REFUSING[provider]
    reason = refused(written(definitions))
    return "" if _UNDOCUMENTED in reason else _WHOSE.sub("", reason, count=1)


def schema_findings(catalog: Catalog, providers: Iterable[Provider] = PROVIDERS) -> Iterator[Finding]:
    """What is wrong with the definitions of a catalog, in themselves and on the way to these providers."""
    asked = list(providers)
    yield from (Finding("unreadable", entry.name, entry.reason) for entry in catalog.quarantined)
    for tool in catalog:
        if found := list(contradictions(tool.input_schema)):
            yield Finding("contradiction", tool.id, "; ".join(found[:3]), tool.server or "")
    for check, of in _by_provider(catalog, asked).items():
        for (tool_id, reason), targets in of.items():
            yield Finding(check, tool_id, f"{', '.join(targets)}: {reason}", catalog[tool_id].server or "")
    for provider, most in MOST_TOOLS.items():
        if provider in asked and len(catalog) > most:
            yield Finding("too-many", provider, f"{len(catalog):,} tools, and a request takes at most {most}")


def _by_provider(catalog: Catalog, providers: list[Provider]) -> dict[str, _Found]:
    """The providers that a tool cannot be sent to, that refuse it, or lose a part of it, by tool and reason."""
    found = {name: _Found(list) for name in ("left-out", "refused", "lost")}
    for each in check_exports(catalog, providers):
        if each.left_out:
            found["left-out"][each.tool.id, each.left_out].append(each.target)
        elif lost := [change for change in each.changes if not any(told in change for told in _TOLD)]:
            found["lost"][each.tool.id, "; ".join(lost)].append(each.target)
    for provider in providers:
        for tool in catalog:
            if reason := refusal(provider, [definition(tool)]):
                found["refused"][tool.id, reason].append(provider)
    return found
