"""What a plain search for each tool's own summary misses, and which tool comes before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolsearch import Catalog, Tool, ToolIndex
from toolsearch.search.probes import suggest
from toolsearch_evals.doctor.findings import Finding

__all__ = ["search_findings"]

_NAMED = 3  # tools that a sentence names


def search_findings(catalog: Catalog, index: ToolIndex, tools: Iterable[Tool] | None = None) -> Iterator[Finding]:
    """Searches for each tool, or for these, by its own summary. The index must hold the catalog already."""
    for each in suggest(catalog, index, catalog if tools is None else tools):
        tool = catalog[each.tool]
        if not each.probe:
            check, text = "silent", f"only its name can be searched for; its schema has {_arguments(tool)}"
        elif each.place:
            check, text = "shadowed", f"{_in_front(each.before)} before it"
        else:
            check = "missed"
            text = f"{_in_front(each.before)} before it" if each.before else "nothing is found"
        yield Finding(check, tool.id, text, tool.server or "")


def _in_front(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{', '.join(ids[:_NAMED])}{more} {'comes' if len(ids) == 1 else 'come'}"


def _arguments(tool: Tool) -> str:
    count = len(tool.input_schema.get("properties") or ())
    return f"{count} argument{'' if count == 1 else 's'}" if count else "no arguments"
