"""Remembers which search led to which call in a conversation, so that use can teach."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import zip_longest

from toolsearch.search.index import Hits
from toolsearch.support.json_types import JsonObject

__all__ = ["SearchTrail"]

FOLLOWED = 3  # the number of last searches whose hits still teach when they are called
CHOSEN = 1.5  # what a call of a tool counts that an answer only named: the model passed over those that were loaded
EARLIER = 0.5  # what a search counts that led to no call, where a later one did
MOST = 50  # lessons of one conversation


class SearchTrail:
    """The last searches of one conversation. Not thread-safe by itself: its session holds a lock."""

    def __init__(self) -> None:
        self._searches = 0
        # tool id -> the query that found it last, that search's number, and what a call of the tool counts
        self._led: dict[str, tuple[str, int, float]] = {}
        self._unanswered: dict[int, str] = {}  # by its number, the query of a search that led to no call yet
        self._taught = 0

    def record_search(
        self, answers: Sequence[Hits], ids: AbstractSet[str], only_named: AbstractSet[str] = frozenset()
    ) -> None:
        """Remembers which query found which tools: those in `ids`, which it loaded, and those that it `only_named`.

        Where nothing fits, these are the nearest, or all tools of a small catalog. A query that is a tool's name, or
        was meant as one, teaches nothing.
        The tools of older searches are forgotten: a call long after a search may be for something else.
        """
        self._searches += 1
        at = self._searches
        named = {hit.tool.id for hits in answers for hit in hits if hit.exact}
        led: dict[str, tuple[str, int, float]] = {}
        tools = ([h.tool for h in hits] or ([] if hits.unknown else hits.near) for hits in answers)
        for rank in zip_longest(*tools):
            for hits, tool in zip(answers, rank, strict=True):
                if tool is not None and tool.id in (ids | only_named) - named:
                    led.setdefault(tool.id, (hits.query, at, 1.0 if tool.id in ids else CHOSEN))
        is_one = len(answers) == 1 and not named and not answers[0].unknown
        if is_one and not answers[0]:
            led = dict.fromkeys(sorted(only_named), (answers[0].query, at, CHOSEN)) | led
        self._led = self._recent() | led
        self._unanswered = {n: query for n, query in self._unanswered.items() if at - n < FOLLOWED}
        if is_one:
            self._unanswered[at] = answers[0].query

    def record_preselection(self, hits: Hits, ids: AbstractSet[str]) -> None:
        """Remembers which tools in `ids` the user's own words found. If none of them is called, they teach nothing."""
        self._searches += 1
        led = {h.tool.id: (hits.query, self._searches, 1.0) for h in hits if h.tool.id in ids and not h.exact}
        self._led = self._recent() | led

    def _recent(self) -> dict[str, tuple[str, int, float]]:
        """What the last searches led to, as `_led`."""
        return {i: each for i, each in self._led.items() if self._searches - each[1] < FOLLOWED}

    def pop_queries(self, tool_id: str) -> list[tuple[str, float]]:
        """The queries that a successful call of a tool confirms, with what it counts. Each search teaches once.

        The search that found the tool was a good one. So were the searches right before it that led to no call: they
        asked for the same thing in words that the index does not know yet. A search with several queries does not
        teach this, because the earlier searches may have been for any of them. After `MOST` lessons of a conversation
        nothing more is taught.
        """
        query, at, counted = self._led.pop(tool_id, ("", 0, 0.0))
        if not query:
            return []
        alone = self._unanswered.pop(at, None) == query
        before = [self._unanswered.pop(n) for n in list(self._unanswered) if n < at] if alone else []
        lessons = [(query, counted), *((earlier, EARLIER) for earlier in before)][: max(0, MOST - self._taught)]
        self._taught += len(lessons)
        return lessons

    def export(self) -> JsonObject:
        """JSON-ready data for `from_state`."""
        queries = list(dict.fromkeys(query for query, *_ in self._led.values()))  # each once: a search names many tools
        return {
            "queries": queries,
            "led": {
                i: [queries.index(query), self._searches - at, *([counted] if counted != 1 else [])]
                for i, (query, at, counted) in self._led.items()
            },
            "taught": self._taught,
            "unanswered": [[self._searches - at, query] for at, query in self._unanswered.items()],
        }

    @classmethod
    def from_state(cls, state: JsonObject) -> SearchTrail:
        """The trail from what `export` returned; an empty one if `state` is empty."""
        trail = cls()
        queries = [str(query) for query in state.get("queries", ())]
        for tool_id, (query, ago, *counted) in state.get("led", {}).items():  # in older states the query itself
            text = queries[query] if isinstance(query, int) else str(query)
            trail._led[str(tool_id)] = text, -int(ago), float(counted[0]) if counted else 1.0
        trail._taught = int(state.get("taught", 0))
        trail._unanswered = {-int(ago): str(query) for ago, query in state.get("unanswered", [])}
        return trail
