"""Conversations over a catalog without labelled cases: each turn needs a tool that its own summary asks for.

Whether the search finds what users mean cannot be known without labels. So it is not measured but swept: of the turns,
a given share is met, and the others search three times in vain, as in `scripted`. What the requests carry is real.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from toolsearch import Catalog, Settings, SetupError, Tool, ToolCall, ToolSearch
from toolsearch_evals.backends import open_backend
from toolsearch_evals.data.cases import Case
from toolsearch_evals.savings.formats import WireFormat
from toolsearch_evals.savings.own_tokens import static_search
from toolsearch_evals.savings.played import PlayedConversation, PlayedRequest
from toolsearch_evals.savings.prices import PLAIN, PriceProfile, cost
from toolsearch_evals.savings.scripted import answer, play
from toolsearch_evals.token_usage import TokenMeter

__all__ = [
    "OwnPlan",
    "OwnTalks",
    "SearchAnswer",
    "break_even_tokens",
    "measure_answers",
    "play_talks",
    "queries_of",
    "saving_half",
    "talks_of",
    "with_summary",
]

PROBES = 40  # tools that are searched for to see how long an answer is
_NOWHERE = (("",),)  # a need that no tool meets
_RESAMPLES = 1_000
Tick = Callable[[str], None]


@dataclass(frozen=True)
class OwnPlan:
    """What is played over one's own tools. `hits` are shares of the turns in which the search finds what is needed."""

    index: str = "keyword"
    wire: str = "openai_chat"
    modes: tuple[str, ...] = ("append", "bridge", "auto")
    turns: tuple[int, ...] = (1, 3, 10, 20)
    hits: tuple[float, ...] = (0.6, 0.8, 1.0)
    conversations: int = 5
    seed: int = 0
    prices: PriceProfile = PLAIN
    warm: bool = False
    settings: tuple[tuple[str, str], ...] = ()

    def search(self, catalog: Catalog, mode: str) -> ToolSearch:
        """A search in a mode, with the settings of the plan."""
        settings = Settings.from_mapping({**dict(self.settings), "mode": mode})
        return ToolSearch(catalog, open_backend(self.index), run=answer, settings=settings)

    @property
    def plays(self) -> int:
        """How many conversations are played."""
        return self.conversations * (1 + len(self.modes) * len(self.hits))


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Tokens of a search's answer, and of the definitions that it adds to the next request: the median and the 90th
    percentile over the tools that were searched for."""

    searched: int
    answer: float
    answer_high: float
    added: float
    added_high: float

    @classmethod
    def of(cls, answers: Sequence[int], added: Sequence[int]) -> SearchAnswer:
        def high(values: Sequence[int]) -> float:
            return sorted(values)[int(0.9 * (len(values) - 1))]

        return cls(len(answers), median(answers), high(answers), median(added), high(added))


@dataclass(frozen=True)
class OwnTalks:
    """The conversations of one way to deliver tools and one share of turns met; "static" ones have every tool.

    `sends_all`: so has a mode that decides for itself.
    """

    mode: str
    hit: float
    played: tuple[PlayedConversation, ...]
    sends_all: bool = False

    def costs(self, turns: int, plan: OwnPlan) -> list[float]:
        """The price of each conversation up to a turn, in new input tokens."""
        cut = [replace_turns(each, turns) for each in self.played]
        return [cost(each, plan.prices, warm=plan.warm) for each in cut]

    def tokens(self, turns: int) -> float:
        """Mean tokens of a conversation up to a turn, those written among them."""
        cut = [replace_turns(each, turns).requests for each in self.played]
        return sum(each.input + each.output for requests in cut for each in requests) / len(self.played)

    def met(self, turns: int) -> int:
        """Requests met in all conversations up to a turn."""
        return sum(turn.served for each in self.played for turn in each.turns[:turns])


def replace_turns(played: PlayedConversation, turns: int) -> PlayedConversation:
    """The beginning of a conversation."""
    return replace(played, turns=played.turns[:turns])


def talks_of(tools: Sequence[Tool], plan: OwnPlan) -> list[list[Tool]]:
    """The tools that each conversation needs, one a turn: all different as long as there are enough."""
    rng = random.Random(plan.seed)
    talks = []
    for _ in range(plan.conversations):
        chosen: list[Tool] = []
        while len(chosen) < max(plan.turns):
            chosen += rng.sample(list(tools), len(tools))
        talks.append(chosen[: max(plan.turns)])
    return talks


def play_talks(
    catalog: Catalog, form: WireFormat, meter: TokenMeter, plan: OwnPlan, tick: Tick = lambda _: None
) -> Iterator[OwnTalks]:
    """Plays the conversations with every tool sent, then in each mode with each share of turns met."""
    talks = talks_of(with_summary(catalog), plan)
    queries = queries_of({tool.id: tool for talk in talks for tool in talk}.values(), plan.search(catalog, "append"))

    def played(search: ToolSearch, hit: float) -> tuple[PlayedConversation, ...]:
        made = []
        for number, talk in enumerate(talks):
            shift = number / plan.conversations
            cases = [
                Case(f"{number}-{at}", queries[tool.id], ((tool.id,),) if _is_met(at, shift, hit) else _NOWHERE)
                for at, tool in enumerate(talk)
            ]
            made.append(play(search, cases, form, meter, recognised=1.0))
            tick(f"{len(talk)} turns, {search.settings.mode}")
        return tuple(made)

    yield OwnTalks("static", 1.0, played(static_search(catalog), 1.0))
    for mode in plan.modes:
        search = plan.search(catalog, mode)
        for hit in plan.hits:
            sends_all = search.session().mode == "static"  # then nothing can be missed
            yield OwnTalks(mode, hit, played(search, 1.0 if sends_all else hit), sends_all)


def _is_met(turn: int, shift: float, hit: float) -> bool:
    """Whether the search finds what a turn needs. Over the conversations, it does so in `hit` of them at each turn."""
    return (0.35 * turn + shift + 1e-9) % 1 < hit


def queries_of(tools: Iterable[Tool], search: ToolSearch) -> dict[str, str]:
    """What each tool is asked for with, by id: its own summary, or its name if the summary does not find it."""
    queries = {}
    for tool in tools:
        session = search.session()
        result = session.handle(ToolCall("call_1", search.settings.search_tool, {"queries": [_summary(tool)]}))
        found = {shown.id for shown in session.loaded}
        if isinstance(result.data, dict):
            found.update(result.data.get("named", ()))
        queries[tool.id] = _summary(tool) if tool.id in found else search.catalog.provider_name(tool.id)
    return queries


def with_summary(catalog: Catalog) -> list[Tool]:
    """The tools that have a summary to ask with."""
    found = [tool for tool in catalog if any(char.isalpha() for char in _summary(tool))]
    if not found:
        raise SetupError("none of the tools has a description, so there is nothing to search for")
    return found


def _summary(tool: Tool) -> str:
    return tool.summary(300) if tool.description or tool.title else ""


def measure_answers(
    search: ToolSearch, tools: Sequence[Tool], form: WireFormat, meter: TokenMeter, seed: int
) -> SearchAnswer:
    """Searches for tools by their own summaries, each in a new session, and counts what comes back."""
    answers, added = list[int](), list[int]()
    for tool in random.Random(seed).sample(list(tools), min(PROBES, len(tools))):
        session = search.session()
        before = form.wire.tools_for(session)
        call = ToolCall("call_1", search.settings.search_tool, {"queries": [_summary(tool)]})
        messages = form.wire.results_for([(call, session.handle(call))])
        after = form.wire.tools_for(session)
        empty = meter.tokens(form.request(before, "", []))
        answers.append(meter.tokens(form.request(before, "", messages)) - empty)
        added.append(meter.tokens(form.request(after, "", [])) - empty)
    return SearchAnswer.of(answers, added)


def saving_half(static: OwnTalks, searched: OwnTalks, turns: int, plan: OwnPlan) -> float | None:
    """Half of the 95 % interval of the saving on a met request: a seeded bootstrap over the conversations.

    None with fewer than three conversations, or if a resample meets nothing.
    """
    before, after = static.costs(turns, plan), searched.costs(turns, plan)
    met = [[sum(turn.served for turn in each.turns[:turns]) for each in of.played] for of in (static, searched)]
    rng, places = random.Random(plan.seed), range(plan.conversations)
    drawn = []
    for _ in range(_RESAMPLES if plan.conversations > 2 else 0):
        chosen = rng.choices(places, k=plan.conversations)
        one, other = (sum(of[at] for at in chosen) for of in met)
        if not other:
            return None
        drawn.append(1 - sum(after[at] for at in chosen) / other / (sum(before[at] for at in chosen) / one))
    drawn.sort()
    return (drawn[round(0.975 * _RESAMPLES) - 1] - drawn[round(0.025 * _RESAMPLES)]) / 2 if drawn else None


def break_even_tokens(
    static: OwnTalks, searched: OwnTalks, definitions: int, turns: int, plan: OwnPlan
) -> float | None:
    """How many tokens of definitions a request must have for search to be cheaper by the price of a met request.

    The static conversations are priced anew with so many instead of their own, by bisection; None if nothing is met.
    """
    if not searched.met(turns):
        return None
    wanted = sum(searched.costs(turns, plan)) / searched.met(turns)

    def costs(tokens: float) -> float:
        priced = [_with_definitions(replace_turns(each, turns), round(tokens) - definitions) for each in static.played]
        return sum(cost(each, plan.prices, warm=plan.warm) for each in priced) / static.met(turns)

    low, high = 0.0, 1_000_000.0
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (low, middle) if costs(middle) >= wanted else (middle, high)
    return high


def _with_definitions(played: PlayedConversation, more: int) -> PlayedConversation:
    """A conversation with so many more tokens of definitions at the front of each request."""

    def grown(request: PlayedRequest) -> PlayedRequest:
        shared = request.shared + more if request.shared else 0
        return replace(
            request, input=max(1, request.input + more), shared=max(0, shared), fixed=max(0, request.fixed + more)
        )

    return replace(played, turns=[replace(turn, requests=tuple(map(grown, turn.requests))) for turn in played.turns])
