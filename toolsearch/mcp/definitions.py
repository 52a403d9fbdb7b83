"""How the definitions of a server become tools: with MCP's own defaults, and with what its entry trusts it with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from toolsearch import Catalog, DefinitionError, SetupError, Tool, tool
from toolsearch.mcp.config import ServerEntry

__all__ = ["is_of", "sync_tools", "tools_of"]


def sync_tools(
    catalog: Catalog,
    definitions: Iterable[object],
    entry: ServerEntry,
    is_denied: Callable[[Tool], bool] | None = None,
) -> None:
    """Makes the tools of a server in the catalog those of its definitions, but for those that are denied.

    Raises what `Catalog.sync` raises.
    """
    read = [_with_hints(each, entry) for each in definitions]
    if is_denied is not None:
        read = [each for each in read if not any(map(is_denied, _tools_in(each, entry)))]
    catalog.sync(read, server=entry.name, trust=entry.texts("trust"), roles=entry.texts("roles") or None)


def tools_of(
    definitions: Iterable[Mapping[str, object]], entry: ServerEntry
) -> list[tuple[Tool, Mapping[str, object]]]:
    """The tools of definitions, each with its own; as they would be in a catalog."""
    catalog, sent = Catalog(), list(definitions)
    sync_tools(catalog, sent, entry)
    by_name = {str(each.get("name")): each for each in sent}
    pairs = ((tool, by_name.get(tool.name)) for tool in catalog)
    return [(tool, each if each is not None and is_of(each, tool, entry) else {}) for tool, each in pairs]


def _tools_in(definition: object, entry: ServerEntry) -> Iterable[Tool]:
    """The tools that a definition gives, by the names that they would have in a catalog."""
    alone = Catalog()
    try:
        alone.sync([definition], server=entry.name)
    except SetupError:
        return ()  # whoever reads it says what is wrong
    return alone


def is_of(definition: Mapping[str, object], made: Tool, entry: ServerEntry) -> bool:
    """Whether it is this definition that a tool was made of.

    A list may name `pay` and `pay `, which are one tool: the one is approved, and the other one must not be shown.
    """
    read, trust, roles = _with_hints(definition, entry), entry.texts("trust"), entry.texts("roles")
    try:
        again = tool(read, trust=trust, server=entry.name)
        if roles:
            again = tool(read, trust=trust, server=entry.name, roles=roles)
    except DefinitionError:
        return False
    return again.digest == made.digest


def _with_hints(definition: object, entry: ServerEntry) -> object:
    """A definition without hints means, by MCP's defaults, a tool that may change something: it gets empty ones.

    Else `pay` would be a read, which needs nobody's consent, and may be sent twice. The option `unhinted` of an entry
    can be "read", for a server that has no hints and only reads.
    """
    if not isinstance(definition, Mapping) or isinstance(definition.get("annotations"), Mapping):
        return definition
    return definition if entry.options.get("unhinted") == "read" else {**definition, "annotations": {}}
