"""Which tools would gain most from example queries: each is searched for with its own summary.

A tool that its own first sentence does not find will not be found by a user's words either, and one that comes behind a
twin is called in its place at best by chance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.tools import Tool
from toolsearch.protocols import ToolIndex
from toolsearch.search.index import find

__all__ = ["Suggestion", "suggest"]

FIRST = 5  # hits that a tool should be among
NEAR = 0.9  # of the best score: a tool behind another one, but not below this, is confused with it
SUMMARY_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A tool that its own summary, the `probe`, does not bring to the front.

    `place` is its place among the first hits, or 0 if it is not among them. `before` are the ids of the tools in front
    of it. `harm` is 1 for a tool that was missed or says nothing, and at most 0.5 for one with a twin.
    """

    tool: str
    problem: str
    harm: float
    probe: str
    place: int
    before: tuple[str, ...]


def suggest(catalog: Catalog, index: ToolIndex, tools: Iterable[Tool]) -> list[Suggestion]:
    """Those of the tools that should get example queries first, the most harmful cases at the front; equal ones by id.

    Each probe is searched in the whole catalog. The index must hold the tools already.
    """
    found = (_probe(catalog, index, tool) for tool in tools)
    return sorted((each for each in found if each is not None), key=lambda each: (-each.harm, each.tool))


def _probe(catalog: Catalog, index: ToolIndex, tool: Tool) -> Suggestion | None:
    probe = tool.summary(SUMMARY_CHARACTERS) if tool.description or tool.title else ""
    if not any(char.isalpha() for char in probe):
        return Suggestion(tool.id, "it has no description", 1.0, "", 0, ())
    hits = list(find(catalog, index, probe, FIRST, nothing_below=0))
    place = next((at for at, hit in enumerate(hits, 1) if hit.tool.id == tool.id), 0)
    before = tuple(hit.tool.id for hit in hits[: place - 1 if place else FIRST])
    if not place:
        return Suggestion(tool.id, "its own summary does not find it", 1.0, probe, 0, before)
    best, own = hits[0], hits[place - 1]
    if place > 1 and (own.score >= NEAR * best.score or best.exact):
        share = 1.0 if best.exact else own.score / best.score
        return Suggestion(tool.id, f"{best.tool.id} comes before it", 0.5 * share, probe, place, before)
    return None
