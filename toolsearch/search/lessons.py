"""What past use says about a search: lessons, and what they do to the order of the hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime

from toolsearch.catalog.tools import Tool
from toolsearch.protocols import Matched
from toolsearch.search.index import Hit, Hits
from toolsearch.settings import SURE_FROM
from toolsearch.support.html import table

__all__ = ["Lesson", "TaughtLesson", "lessons_table", "raised"]

ALIKE = 0.5  # a lesson from a query less like the present one brings in no tool where the index is sure of none


@dataclass(frozen=True, slots=True)
class Lesson:
    """What past use says for a tool: `share`, above 0 and below 1, and the past query most like the present one.

    `likeness` says how like that query is; 1 is the same words.
    """

    share: float
    query: str
    likeness: float = 1.0


@dataclass(frozen=True, slots=True)
class TaughtLesson:
    """A past query and a tool that it led to, as `Learned.taught` lists them.

    `times` is the number of calls as far as they were counted, and `weight` what is left of it today. `last` is what
    the clock said at the last call.
    """

    query: str
    tool: str
    weight: float
    times: float
    users: int
    last: float
    tenant: str | None

    def row(self) -> tuple[str, ...]:
        """The lesson as texts, a text a field."""
        numbers = (f"{self.weight:.2f}", f"{self.times:.1f}", str(self.users))
        texts = (_shown(self.query), _shown(self.tool))
        return (*texts, *numbers, _day(self.last), "none" if self.tenant is None else _shown(self.tenant))


def lessons_table(lessons: Sequence[TaughtLesson], *, most: int) -> str:
    """The lessons as an HTML table of at most `most` rows; everything in it is escaped."""
    heads = [each.name for each in fields(TaughtLesson)]
    return table(f"{len(lessons):,} lessons learned from use", heads, [each.row() for each in lessons], most=most)


def _shown(text: str) -> str:
    """A text without the characters that would steer a terminal, or break a line."""
    return "".join(char if char.isprintable() else " " for char in text)


def _day(seconds: float) -> str:
    """The day of a time in seconds since 1970; other times as they are."""
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return f"{seconds:g}"


def raised(hits: Hits, lessons: Mapping[Tool, Lesson], weight: float, limit: int, sure_from: float = SURE_FROM) -> Hits:
    """The hits with `weight` times a lesson's share of the best score added to each tool's own, best first.

    Tools that the search did not find come in with that alone; if the index is sure that nothing fits, only by a lesson
    from a query that is `ALIKE`. Tools that the query named stay in front, however many; the answer to a query of names
    only is unchanged. The verdict becomes "weak" if the index was sure that nothing fits, and if "found" is not true of
    the hits that remain: the best came in by a lesson alone, or no hit is as sure as `sure_from`.
    """
    exact = [hit for hit in hits if hit.exact]
    rest = {hit.tool.id: hit for hit in hits if not hit.exact}
    if hits.unknown or (exact and not rest):
        return hits
    places: dict[str, float] = {}  # the scores, as far as they agree with the order: like tools may stand behind others
    for hit in rest.values():
        places[hit.tool.id] = min([hit.score, *list(places.values())[-1:]])
    best = max((hit.score for hit in rest.values()), default=1.0)
    named = {hit.tool.id for hit in exact}
    for tool, lesson in lessons.items():
        is_like = lesson.likeness >= ALIKE or hits.verdict != "none"
        if tool.id not in named and is_like and (more := weight * lesson.share * best) > 0:
            hit = rest.get(tool.id) or Hit(tool, 0.0)
            matched = (*hit.matched, Matched(lesson.query, ("learned",)))
            rest[tool.id] = replace(hit, score=hit.score + more, matched=matched)
            places[tool.id] = places.get(tool.id, 0.0) + more
    order = {tool_id: at for at, tool_id in enumerate(rest)}
    ranked = sorted(rest.values(), key=lambda hit: (-places[hit.tool.id], order[hit.tool.id]))
    first = (*exact, *ranked[: max(0, limit - len(exact))])
    if not first:
        return hits
    sure = first[0].confidence is not None and max(hit.confidence or 0.0 for hit in first) >= sure_from
    weak = hits.verdict == "none" or (hits.verdict == "found" and not sure)
    return replace(hits, hits=first, near=(), problem=None, verdict="weak" if weak else hits.verdict)
