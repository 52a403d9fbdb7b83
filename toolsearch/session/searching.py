"""The searches of one conversation: their hits are loaded within a budget, and repeated ones that find nothing stop."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import zip_longest
from math import ceil

from toolsearch.calls.answers import ANSWER_CHARACTERS
from toolsearch.catalog.tools import Tool, definition_tokens
from toolsearch.search.index import Hits
from toolsearch.session.delivery import IN_TEXT
from toolsearch.session.directory import FEW, overview
from toolsearch.session.listing import listing_of, pages_of, with_place
from toolsearch.session.loaded import LoadedTools
from toolsearch.session.meta_tool import MORE, MOST_NAMED, SearchRequest, some_of
from toolsearch.session.search_outcome import SHORTEST, SearchOutcome, is_doubtful
from toolsearch.session.teaching import SearchTrail
from toolsearch.session.view import View
from toolsearch.session.visible_tools import VisibleTools
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import bounded
from toolsearch.tokens import ESTIMATE

__all__ = ["SearchLog"]

RETRIES = 3  # of one search that each load more
FOR_NAMES = 0.25  # of an answer that is kept for names
SURE, DOUBTFUL = 0.5, 3  # times the setting `named`: what a sure search names, and a doubtful one
ALL_NAMED = 50  # tools: where a search that is asked again is not sure, all names of so small a catalog are told


class SearchLog:
    """The searches of one conversation. Not thread-safe by itself: its session holds a lock, except for `look_up`."""

    def __init__(self, view: View, tools: LoadedTools) -> None:
        self.trail = SearchTrail()
        self._settings = view.settings
        self._tools = tools
        self._asked: dict[str, int] = {}  # `SearchRequest.key` -> how often it was searched
        self._in_vain = 0  # searches in a row that found nothing
        self._schemas: dict[str, str] = {}  # in "bridge": digests of the definitions that answers have shown

    @property
    def _is_bridge(self) -> bool:
        """Whether answers include the schemas, because the model sees them nowhere else."""
        return self._tools.mode in IN_TEXT

    @property
    def _most_tokens(self) -> int:
        """What one answer may cost."""
        return self._settings.answer_tokens * (4 if self._is_bridge else 1)

    def look_up(self, request: SearchRequest) -> SearchOutcome:
        """Runs the queries; changes nothing."""
        view, caller = self._tools.view, self._tools.caller
        bridge, action = (self._settings.call_tool, self._settings.action_tool) if self._is_bridge else (None, None)
        not_loaded, missing = self._settings.not_loaded, view.missing(caller)
        outcome = SearchOutcome(
            request, {}, call_tool=bridge, action_tool=action, not_loaded=not_loaded, missing=missing
        )
        category = None
        if (wanted := request.category) is not None:
            known = view.visible(caller).places[1]
            category = next((c for c in known if c.casefold() == wanted.casefold()), None)
            if category is None:
                listed = some_of([repr(c[:80]) for c in known], MOST_NAMED, 2 * self._settings.answer_tokens) or "none"
                problem = f"There is no category {wanted[:80]!r}; there are: {listed}. Use one of them, or none."
                outcome.answers = [Hits(query, problem=problem) for query in request.queries[:1]]
                return outcome
        seen = view.visible(caller, category)
        listings = [listing_of(query, seen) for query in request.queries]
        outcome.listings = [listing for listing in listings if listing is not None]
        searched = [query for query, listing in zip(request.queries, listings, strict=True) if listing is None]
        view.prepare(searched)
        outcome.answers = [with_place(self._find(query, request, category), seen) for query in searched]
        return outcome

    def _find(self, query: str, request: SearchRequest, category: str | None) -> Hits:
        """As many hits as are loaded and named, which depends on how sure the search is."""
        named, most = self._settings.named, self._most_named
        loaded = request.limit + MORE * min(self._times(request), RETRIES)
        depth = loaded + (most if self._is_retry(request) else named)
        hits = self._tools.view.find(query, depth, caller=self._tools.caller, category=category)
        deeper = loaded + self._named_at_first(hits)
        if deeper <= depth:
            return hits
        return self._tools.view.find(query, deeper, caller=self._tools.caller, category=category)

    def take(self, outcome: SearchOutcome) -> None:
        """Loads the best hits, as many as the budget allows, and names the next ones.

        The same search again, or a larger limit, loads up to five more that are not loaded yet, so that asking again
        brings something new; after `RETRIES` times it does not, so that no search fills a request.
        """
        seen = self._tools.view.visible(self._tools.caller)  # it may have changed since the queries ran
        listings = [listing.still(seen) for listing in outcome.listings]
        outcome.pages = pages_of(listings, self._tools.name_of, self._settings.answer_tokens)
        if not outcome.answers:
            return
        request, times = outcome.request, self._times(outcome.request)
        found = [[h.tool for h in hits if seen.get(h.tool.id) is not None] for hits in outcome.answers]
        everything = _in_turn(found)
        for tool in [*everything, *(t for hits in outcome.answers for t in hits.near if seen.get(t.id) is not None)]:
            outcome.names[tool.id] = self._tools.name_of(tool)
        # In "bridge" only an answer shows a schema, so one that is new, changed or lost is shown (again).
        unseen = {t.id for t in everything if self._schemas.get(t.id) != t.digest} if outcome.call_tool else set[str]()
        loaded = self._tools.ids() - (unseen - {t.id for t in self._tools.pinned})
        wanted: list[list[Tool]] = []
        for hits, tools in zip(outcome.answers, found, strict=True):
            first = tools[: self._asked_for(hits)]
            usual = max(len(first), self._settings.results)
            more = max(0, request.limit - usual) if times == 0 else MORE if times <= RETRIES else 0
            wanted.append([*first, *[t for t in tools[len(first) :] if t.id not in loaded][:more]])
        outcome.already = [t for t in everything if t.id in loaded]
        fresh = [t for t in _in_turn(wanted) if t.id not in loaded]
        if times > RETRIES and any(tools[0].id in loaded for tools in found if tools):
            fresh = fresh if self._tools.has_room_for(fresh) else []  # or tools would take turns without an end
        self._fill(outcome, fresh)
        outcome.evicted = self._tools.reveal([t.id for t in outcome.new], late=[t.id for t in outcome.already])
        outcome.already = [t for t in outcome.already if t.id in self._tools.ids()]
        self._schemas |= {t.id: t.digest for t in outcome.new}
        listed = {t.id for t in (*outcome.new, *outcome.already)}
        self._name(outcome, found, seen)
        # Once in a row of such searches, and not where a directory says it already.
        if outcome.finds_nothing and not self._in_vain and not self._settings.most_in_directory:
            outcome.overview, outcome.all_told = overview(seen, self._tools.name_of)
            self._tools.give_names(outcome.all_told)
        told = {t.id for t in (*outcome.named, *outcome.nearest, *outcome.all_told)}
        self.trail.record_search(outcome.answers, listed, told - self._tools.ids())

    def _asked_for(self, hits: Hits) -> int:
        """How many of the first hits a query asks for. One that is a name asks for that tool, and a list for each."""
        words = len(hits.query.replace(",", " ").replace(";", " ").split())
        exact = min(sum(hit.exact for hit in hits), max(words, self._settings.results))
        return exact if exact and words == 1 else max(exact, self._settings.results)

    def _fill(self, outcome: SearchOutcome, tools: list[Tool]) -> None:
        """Takes tools in order until the answer or the request would be too large; always takes the best one.

        A part of the answer is left for names: many of them take as much as one tool.
        """
        request = self._tools.most_tokens
        most = self._most_tokens * (1 - FOR_NAMES if self._settings.named else 1)
        outcome.left_out = list(tools)
        self._shorten(outcome, most)
        while outcome.left_out:
            request -= definition_tokens(outcome.left_out[0])
            outcome.new.append(outcome.left_out.pop(0))
            fits = request >= 0 and len(outcome.new) <= self._tools.room
            if len(outcome.new) == 1:
                self._shorten(outcome, most)
            elif not (fits and ESTIMATE.count(outcome.text()) <= most):
                outcome.left_out.insert(0, outcome.new.pop())
                break

    def _shorten(self, outcome: SearchOutcome, most: float) -> None:
        """Says less of the queries that found nothing, if many of them take the room of what was found."""
        while outcome.kept_short < SHORTEST and ESTIMATE.count(outcome.text()) > most:
            outcome.kept_short += 1

    def _name(self, outcome: SearchOutcome, found: Sequence[Sequence[Tool]], seen: VisibleTools) -> None:
        """Names the further tools of each query, as many as the answer has room for, so that the model can call them.

        If the search is not sure and all others of the tools it `seen` fit as well, they are named too.
        """
        at_first = [self._named_at_first(hits) for hits in outcome.answers]
        is_retry = self._is_retry(outcome.request)
        most = [self._most_named] * len(found) if is_retry else at_first
        listed = {t.id for t in (*outcome.new, *outcome.already)}
        further = [[t for t in tools if t.id not in listed] for tools in found]
        wanted = {t.id for tools, count in zip(further, most, strict=True) for t in tools[:count]}
        tools = [t for t in _in_turn(found) if t.id not in listed]
        some = [t for t in tools if t.id in wanted][: self._most_named]
        rest = self._rest(outcome, tools, seen)
        if rest and len(tools) + len(rest) <= (ALL_NAMED if is_retry else max(at_first)):
            # A list as short as this would have stood in the first answer, so it is new only if it is longer.
            outcome.names_rest = len(tools) + len(rest) > (FEW if outcome.is_empty else max(at_first))
            some = [*tools, *rest]
            outcome.names |= {tool.id: self._tools.name_of(tool) for tool in rest}

        def tokens_with(count: int) -> int:
            outcome.named = some[:count]
            return ESTIMATE.count(outcome.text())

        if some and tokens_with(len(some)) > self._most_tokens:  # mostly all fit; every name makes the answer longer
            fitting = bisect_right(range(1, len(some)), self._most_tokens, key=tokens_with)
            outcome.named = some[:fitting]
        told = {t.id for t in outcome.named}
        outcome.left_out = [t for t in outcome.left_out if t.id not in told]
        self._tools.give_names((*outcome.named, *outcome.nearest))

    def _rest(self, outcome: SearchOutcome, tools: Sequence[Tool], seen: VisibleTools) -> list[Tool]:
        """The tools of a small catalog that no query found, if it may want them, and they are not named elsewhere."""
        is_sure = all(hits.verdict == "found" or hits.unknown or hits.problem for hits in outcome.answers)
        is_first = outcome.is_empty and not self._is_retry(outcome.request)  # then `overview` says what there is
        is_large = len(seen) > ALL_NAMED + len(self._tools.pinned)
        is_elsewhere = outcome.request.category is not None or self._settings.most_in_directory > 0
        if is_sure or is_first or is_large or is_elsewhere or not self._settings.named:
            return []
        told = {t.id for t in (*outcome.new, *outcome.already, *outcome.nearest, *tools)}
        return [tool for tool in seen.listed if tool.id not in told]

    def _times(self, request: SearchRequest) -> int:
        return self._asked.get(request.key, 0)

    @property
    def _most_named(self) -> int:
        """How many tools one answer names at most."""
        return max(self._settings.named, MOST_NAMED) if self._settings.named else 0

    def _named_at_first(self, hits: Hits) -> int:
        """How many tools a query names that was not asked before, and does not ask for more.

        These are half as many as the setting says if the search has found something, and more if its hits are doubtful:
        then the right tool stands further behind.
        """
        share = DOUBTFUL if is_doubtful(hits) else SURE if hits.verdict == "found" else 1
        return min(self._most_named, ceil(share * self._settings.named))

    def _is_retry(self, request: SearchRequest) -> bool:
        """Whether it was asked before, or asks for more."""
        return self._times(request) > 0 or request.limit > self._settings.results

    def report(self, outcome: SearchOutcome) -> str:
        """What the model reads: the result, or a short answer, without names, to a repeated search that is no use."""
        times = 0
        # A query that could not run does not count, and a listing is no search.
        if not (outcome.is_empty and (outcome.has_failed or outcome.pages)):
            times = self._asked[outcome.request.key] = self._asked.get(outcome.request.key, 0) + 1
            self._in_vain = self._in_vain + 1 if outcome.is_empty else 0
        if text := self._brake(outcome, times):
            outcome.named, outcome.names, outcome.all_told = [], {}, ()
        else:
            text = outcome.text() + self._stop(outcome)
        return bounded(text, max(ANSWER_CHARACTERS, 8 * self._most_tokens))

    def _brake(self, outcome: SearchOutcome, times: int) -> str:
        """A short answer in place of the long one, if searching again is no use; else nothing."""
        if outcome.has_failed or outcome.pages or times < 2 or (outcome.names_rest and times == 2):
            return ""
        if outcome.is_empty:
            return (
                "You have searched for this already and nothing fits. Use other words, or say that no tool can do it."
            )
        if outcome.new:
            return ""
        names = ", ".join(outcome.names[t.id] for t in outcome.already[:10])
        doubt = f" {caution}" if (caution := outcome.caution()) else ""
        way = f"through {' or '.join(self._settings.doors)} now" if self._is_bridge else "now"
        return (
            f"You have searched for this already. Loaded tools: {names}. Call one {way}, or search for something "
            f"else.{doubt}"
        )

    def _stop(self, outcome: SearchOutcome) -> str:
        """What ends a row of searches that find nothing."""
        if outcome.has_failed or outcome.pages or self._in_vain < 3:
            return ""
        return (
            f"\nThat was search number {self._in_vain} in a row that found nothing. Stop searching for this: say that "
            "no tool can do it, or ask what else would help."
        )

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


def _in_turn(answers: Sequence[Sequence[Tool]]) -> list[Tool]:
    """The tools of all answers, each once: first the best of every query, then the second of every query, and so on."""
    in_turn = (tool for places in zip_longest(*answers) for tool in places if tool is not None)
    return list({tool.id: tool for tool in in_turn}.values())
