"""The searches of one conversation: their hits are loaded within a budget, and repeated ones that find nothing stop."""

from __future__ import annotations

from collections.abc import Sequence

from toolsearch.calls.answers import ANSWER_CHARACTERS
from toolsearch.catalog.tools import Tool, definition_tokens
from toolsearch.search.index import Hits
from toolsearch.session.listing import listing_of, pages_of, with_place
from toolsearch.session.loaded import LoadedTools
from toolsearch.session.meta_tool import SearchOutcome, SearchRequest
from toolsearch.session.teaching import SearchTrail
from toolsearch.session.view import View
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import bounded
from toolsearch.tokens import ESTIMATE

__all__ = ["SearchLog"]


class SearchLog:
    """The searches of one conversation. Not thread-safe by itself: its session holds a lock, except for `look_up`."""

    def __init__(self, view: View, tools: LoadedTools) -> None:
        self.trail = SearchTrail()
        self._view = view
        self._settings = view.settings
        self._tools = tools
        self._asked: dict[str, int] = {}  # `SearchRequest.key` -> how often it was searched
        self._in_vain = 0  # searches in a row that found nothing
        self._schemas: dict[str, str] = {}  # in "bridge": digests of the definitions that answers have shown

    @property
    def _is_bridge(self) -> bool:
        """Whether answers include the schemas, because the model sees them nowhere else."""
        return self._tools.mode == "bridge"

    @property
    def _most_tokens(self) -> int:
        """What one answer may cost."""
        return self._settings.answer_tokens * (4 if self._is_bridge else 1)

    def look_up(self, request: SearchRequest) -> SearchOutcome:
        """Runs the queries; changes nothing."""
        view, caller = self._view, self._tools.caller
        bridge = self._settings.call_tool if self._is_bridge else None
        outcome = SearchOutcome(request, {}, call_tool=bridge, missing=view.missing(caller))
        outcome.refuses = self._settings.not_loaded == "refuse"
        category = None
        if (wanted := request.category) is not None:
            known = view.visible(caller).places[1]
            category = next((c for c in known if c.casefold() == wanted.casefold()), None)
            if category is None:
                listed = ", ".join(map(repr, known[:30])) or "none"
                problem = f"There is no category {wanted[:80]!r}; there are: {listed}. Use one of them, or none."
                outcome.answers = [Hits(query, problem=problem) for query in request.queries[:1]]
                return outcome
        seen = view.visible(caller, category)
        outcome.listings = [listing for query in request.queries if (listing := listing_of(query, seen))]
        outcome.answers = [
            with_place(view.find(query, request.limit, caller=caller, category=category), seen)
            for query in request.queries
            if listing_of(query, seen) is None
        ]
        return outcome

    def take(self, outcome: SearchOutcome) -> None:
        """Loads as many of the hits as the budget allows."""
        outcome.listed = pages_of(outcome.listings, self._tools.name_of, self._settings.answer_tokens)
        if not outcome.answers:
            return
        fitting = _in_turn(outcome.answers)
        for tool in [*fitting, *(t for hits in outcome.answers for t in hits.near)]:
            outcome.names[tool.id] = self._tools.name_of(tool)
        # In "bridge" only an answer shows a schema, so one that is new, changed or lost is shown (again).
        unseen = {t.id for t in fitting if self._schemas.get(t.id) != t.digest} if outcome.call_tool else set[str]()
        loaded = self._tools.ids() - (unseen - {t.id for t in self._tools.pinned})
        outcome.already = [t for t in fitting if t.id in loaded]
        self._fill(outcome, [t for t in fitting if t.id not in loaded])
        outcome.evicted = self._tools.reveal([t.id for t in outcome.new], late=[t.id for t in outcome.already])
        outcome.already = [t for t in outcome.already if t.id in self._tools.ids()]
        self._schemas |= {t.id: t.digest for t in outcome.new}
        self.trail.record_search(outcome.answers, {t.id for t in (*outcome.new, *outcome.already)})

    def _fill(self, outcome: SearchOutcome, tools: list[Tool]) -> None:
        """Takes tools in order until the answer or the request would be too large; always takes the best one."""
        request = self._tools.most_tokens
        most = self._most_tokens
        outcome.left_out = list(tools)
        while outcome.left_out:
            request -= definition_tokens(outcome.left_out[0])
            outcome.new.append(outcome.left_out.pop(0))
            fits = request >= 0 and len(outcome.new) <= self._tools.room
            if len(outcome.new) > 1 and not (fits and ESTIMATE.count(outcome.text()) <= most):
                outcome.left_out.insert(0, outcome.new.pop())
                break

    def report(self, outcome: SearchOutcome) -> str:
        """What the model reads: the result, or a short answer to a repeated search that is no use."""
        times = 0
        # A query that could not run does not count, and a listing is no search.
        if not (outcome.is_empty and (outcome.has_failed or outcome.listed)):
            times = self._asked[outcome.request.key] = self._asked.get(outcome.request.key, 0) + 1
            self._in_vain = self._in_vain + 1 if outcome.is_empty else 0
        return bounded(self._brake(outcome, times) or outcome.text(), max(ANSWER_CHARACTERS, 8 * self._most_tokens))

    def _brake(self, outcome: SearchOutcome, times: int) -> str | None:
        """A short answer in place of the long one, if searching again is no use."""
        if outcome.has_failed or outcome.listed:
            return None
        if times > 1 and outcome.already and not outcome.new:
            names = ", ".join(outcome.names[t.id] for t in outcome.already[:10])
            doubt = f" {caution}" if (caution := outcome.caution()) else ""
            way = f"through {self._settings.call_tool} now" if self._is_bridge else "now"
            return (
                f"You have searched for this already. Loaded tools: {names}. Call one {way}, or search for something "
                f"else.{doubt}"
            )
        if times > 1 and outcome.is_empty:
            return (
                "You have searched for this already and nothing fits. Use other words, or say that no tool can do it."
            )
        if self._in_vain >= 3:
            return (
                f"{outcome.text()}\nThat was search number {self._in_vain} in a row that found nothing. Stop searching "
                "for this: say that no tool can do it, or ask what else would help."
            )
        return None

    def has_shown(self, tool: Tool) -> bool:
        """Whether the model has this tool's definition before it: among the tools, or in "bridge" in an answer."""
        is_pinned = any(tool.id == pinned.id for pinned in self._tools.pinned)
        is_seen = is_pinned or not self._is_bridge or self._schemas.get(tool.id) == tool.digest
        return is_seen and tool.id in self._tools.ids()

    def deliver(self, hits: Hits, tools: Sequence[Tool]) -> None:
        """Loads some hits of a search that the model did not ask for; in "bridge" their schemas are shown with it."""
        ids = [tool.id for tool in tools]
        self._tools.reveal(ids)
        self._schemas |= {tool.id: tool.digest for tool in tools}
        self.trail.record_preselection(hits, set(ids))

    def forget(self) -> None:
        """Forgets earlier searches: their answers are gone from the history, so asking again is not a repetition."""
        self._asked, self._in_vain, self._schemas = {}, 0, {}

    def export(self) -> JsonObject:
        """JSON-ready data for `restore`."""
        return {
            "asked": dict(self._asked),
            "in_vain": self._in_vain,
            "schemas": dict(self._schemas),
            "trail": self.trail.export(),
        }

    def restore(self, state: JsonObject) -> None:
        """Restores what `export` returned."""
        self._asked, self._in_vain = dict(state["asked"]), int(state["in_vain"])
        self._schemas = dict(state["schemas"])
        self.trail = SearchTrail.from_state(state.get("trail", {}))


def _in_turn(answers: list[Hits]) -> list[Tool]:
    """The tools of all answers, each once: first the best of every query, then the second of every query, and so on."""
    turns: dict[str, Tool] = {}
    for rank in range(max(map(len, answers), default=0)):
        for hits in answers:
            if rank < len(hits):
                turns.setdefault(hits[rank].tool.id, hits[rank].tool)
    return list(turns.values())
