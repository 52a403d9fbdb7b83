"""One task, played by an agent with a real model: what it did to the world, what was billed, how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import Any

from toolsearch import Agent, CallModel, Catalog, Settings, ToolSearch
from toolsearch.events import Event, ModelCalled, ModelReplied, ToolReturned
from toolsearch.layers import PRICES, Price, cost, limits
from toolsearch.protocols import Layer, Model, ModelSteps
from toolsearch.support.json_types import JsonObject
from toolsearch.support.redaction import redacted
from toolsearch_evals.agent.catalogs import definitions_for
from toolsearch_evals.agent.endpoint import Endpoint, RequestMeter, SentRequest, retrying, without_key
from toolsearch_evals.agent.json_adapter import JsonToolModel
from toolsearch_evals.agent.probe import Adapter
from toolsearch_evals.agent.tasks import SYSTEM, MadeCall, Task, problems_of, unchosen
from toolsearch_evals.agent.world import World, effects
from toolsearch_evals.backends import open_backend
from toolsearch_evals.token_usage import TokenMeter

__all__ = ["Arm", "Asked", "PlayedTask", "Remaining", "play_task"]

STATIC = "static"
ROUNDS = 16
TOKENS = ("new", "cached", "written")
BUDGETS = ("token budget", "cost budget")  # reasons of the layer `limits`


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to give a model its tools: a mode of `ToolSearch`, and for search an index and settings, with words."""

    mode: str
    index: str = "keyword"
    settings: Mapping[str, str] = field(default_factory=dict)
    in_words: str = ""

    @property
    def label(self) -> str:
        return f"{self.mode} ({self.in_words})" if self.in_words else self.mode


@dataclass(frozen=True)
class Asked:
    """The endpoint, its client, and what is needed to ask it: how tools are sent, prices by name of a model."""

    endpoint: Endpoint
    client: Any
    tokens: TokenMeter
    adapter: Adapter = "tools"
    prices: Mapping[str, Price] = field(default_factory=lambda: PRICES)
    prices_in_words: str | None = None
    retry: Layer = field(default_factory=retrying)

    def model(self, meter: RequestMeter) -> Model:
        """The model of one conversation."""
        inner = self.endpoint.asked_with(self.client, meter)
        if self.adapter != "tools":
            inner = JsonToolModel(inner, self.endpoint.model, schema=self.adapter == "schema")
        return _Begun(inner, self.endpoint.model, meter)

    def told(self, text: str) -> str:
        """What a client said, in a line, without the key or what looks like a secret."""
        return redacted(without_key(" ".join(text.split()), self.endpoint.key()))[:300]

    def dollars(self, row: ModelCalled) -> float | None:
        """What a request cost; by the name that was asked for where the one in the reply has no price."""
        paid = cost(row, self.prices)
        return cost(replace(row, model=self.endpoint.model), self.prices) if paid is None else paid


@dataclass(frozen=True, slots=True)
class Remaining:
    """What may still be spent; None for no bound."""

    tokens: int | None = None
    dollars: float | None = None


@dataclass(frozen=True)
class PlayedTask:
    """`score` is the line about the task, `requests` has one a request. If a budget `cut` it, it is no result."""

    score: JsonObject
    requests: tuple[JsonObject, ...]
    cut: bool = False


class _Begun:
    """A model whose requests the meter counts one by one, also those that fail before they are sent."""

    takes_schema = False

    def __init__(self, inner: Model, name: str, meter: RequestMeter) -> None:
        self.inner, self.name, self.meter = inner, name, meter

    def __call__(self, request: CallModel) -> Any:
        self.meter.begin()
        return self.inner(request)


class _Whole:
    """A layer that shows no piece of a reply early, so that one whose stream breaks can be asked for again."""

    name, buffers = "whole", True

    def around_model(self, request: CallModel) -> ModelSteps:
        return (yield request)


def play_task(task: Task, size: int, arm: Arm, asked: Asked, *, seed: int = 0, remaining: Remaining) -> PlayedTask:
    """Plays one task in a new world and a new conversation. An error of the endpoint is part of the score."""
    world, meter, events = World(), RequestMeter(asked.tokens), list[Event]()
    agent = Agent(
        asked.model(meter),
        _search(task, size, arm, world, seed),
        system=SYSTEM,
        layers=[_Whole(), asked.retry, *_limits(remaining, asked.dollars)],
        observe=events.append,  # type: ignore[arg-type]  # a reply is whole, so no piece of one is observed
        actions="run",
    )
    began, error, text, reason = time.monotonic(), None, "", "failed"
    try:
        result = agent.run(task.text)
    except Exception as raised:  # whatever a client raises; it counts as a failed task
        error = asked.told(f"{type(raised).__name__}: {raised}")
    else:
        text, reason = getattr(result, "text", ""), getattr(result, "reason", "paused")
    seconds = time.monotonic() - began
    requests = tuple(_requests(events, meter.sent, asked))
    calls = _calls(events)
    problems = [error] if error is not None else _problems(task, world, calls, text, reason)
    score: JsonObject = {
        "case": task.id,
        "success": not problems,
        "problems": problems,
        "error": error,
        "reason": reason,
        "answer": text[:500],
        "right tools": not unchosen(task, calls),
        "missing tools": unchosen(task, calls),
        "calls": [{"tool": c.tool, "arguments": dict(c.arguments), "status": c.status, "kind": c.kind} for c in calls],
        "wrong calls": sum(_is_wrong(call, task) for call in calls),
        "searches": sum(call.kind == "search" for call in calls),
        "rounds": sum(isinstance(event, ModelReplied) for event in events),
        **_totals(requests),
        "seconds": round(seconds, 3),
    }
    return PlayedTask(score, requests, cut=reason in BUDGETS)


def _search(task: Task, size: int, arm: Arm, world: World, seed: int) -> ToolSearch:
    settings = Settings.from_mapping({"max_tools": size + 2, **arm.settings, "mode": arm.mode})
    catalog = Catalog(definitions_for(task, size, seed))
    return ToolSearch(catalog, open_backend(arm.index), run=world.run, settings=settings)


def _limits(remaining: Remaining, price: Callable[[ModelCalled], float | None]) -> list[Layer]:
    """The usual limits of a turn and, apart from them, what is left of the budget, which ends it at once."""
    budget = limits(
        soft=None,
        hard=None,
        identical=None,
        per_tool=None,
        calls=None,
        searches=None,
        unknown=None,
        tokens=None if remaining.tokens is None else max(1, remaining.tokens),
        cost=None if remaining.dollars is None else max(1e-9, remaining.dollars),
        price=price,
        excess="end",
    )
    return [limits(soft=ROUNDS, hard=ROUNDS + 2), budget]


def _problems(task: Task, world: World, calls: Sequence[MadeCall], text: str, reason: str) -> list[str]:
    found = problems_of(task, world.tables, calls, text)
    return found if reason == "answered" else [f"the turn ended with {reason!r} and no answer", *found]


def _calls(events: Sequence[Event]) -> list[MadeCall]:
    """The calls in order, each with the status of its answer."""
    answered = {event.call_id: event.status for event in events if isinstance(event, ToolReturned)}
    made = [call for event in events if isinstance(event, ModelReplied) for call in event.calls]
    return [
        MadeCall(
            call.tool if call.kind != "search" else call.name,
            call.given if call.given is not None else _mapping(call.arguments),
            answered.get(call.id, "interrupted"),
            call.kind,
        )
        for call in made
    ]


def _mapping(arguments: object) -> Mapping[str, Any]:
    return arguments if isinstance(arguments, Mapping) else {"unparsed": str(arguments)[:500]}


def _is_wrong(call: MadeCall, task: Task) -> bool:
    """Whether a call was of no use: refused, or of a tool that the task has no use for.

    Looking things up in the task's servers is of use. A call that only shows the schema of such a tool is no mistake.
    """
    if call.kind == "search":
        return call.status != "ok"
    reads = call.tool.partition("/")[0] in task.servers and effects().get(call.tool, {}).get("do") == "find"
    fits = reads or any(call.tool in group for group in task.needs)
    return not fits or call.status not in ("ok", "not_loaded")


def _requests(events: Sequence[Event], sent: Sequence[SentRequest], asked: Asked) -> list[JsonObject]:
    """A line a request: what was billed, and what was counted.

    If the provider does not say what it billed, `billed` is None, and the new tokens are those that were counted.
    """
    rows = [event for event in events if isinstance(event, ModelCalled)]
    lines: list[JsonObject] = []
    for number, (row, each) in enumerate(zip(rows, sent, strict=False), 1):
        used, said = row.usage, row.usage.input_tokens > 0
        cached = min(used.cached_tokens, used.input_tokens)  # some endpoints count more as cached than was sent
        new = used.input_tokens - cached if said else 0 if row.error else each.counted
        lines.append(
            {
                "turn": 0,
                "request": number,
                "new": new,
                "cached": cached,
                "written": used.output_tokens,
                "billed": used.tokens if said else None,
                "counted": each.counted,
                "dollars": asked.dollars(row) if said else None,
                "seconds": round(row.seconds, 3),
                "first seconds": None if each.first_seconds is None else round(each.first_seconds, 3),
                "error": asked.told(row.error) or None,
            }
        )
    return lines


def _totals(requests: Sequence[JsonObject]) -> JsonObject:
    """Of a task: sums of tokens and dollars, None where no request says them, and the mean time to the first token."""
    said = [line for line in requests if line["billed"] is not None]
    paid = [line["dollars"] for line in said if line["dollars"] is not None]
    first = [line["first seconds"] for line in requests if line["first seconds"] is not None]
    totals: JsonObject = {
        "requests": len(requests),
        "failed requests": sum(line["error"] is not None for line in requests),
        "billed requests": len(said),
        "counted": sum(line["counted"] for line in requests if line["error"] is None),
        "counted where billed": sum(line["counted"] for line in said),
        "dollars": sum(paid) if paid and len(paid) == len(said) else None,
        "first seconds": round(mean(first), 3) if first else None,
    }
    return {**totals, **{key: sum(line[key] for line in said) if said else None for key in TOKENS}}
