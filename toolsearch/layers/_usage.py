"""Usage: what model calls cost, by purpose, model and actor, and a quota for each actor.

The loop records a `ModelCalled` for every call, whatever comes of it: these are the rows. Prices are data with a date
and a source. A model that is not in the table has no known price, which is not the same as costing nothing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

from toolsearch.calls import Caller, actor_of
from toolsearch.errors import SetupError, ToolSearchError
from toolsearch.events.facts import Ending, Event, ModelCalled, Reply, Usage
from toolsearch.events.requests import CallModel
from toolsearch.layers._shared import result_of
from toolsearch.protocols import Layer, ModelSteps, Record
from toolsearch.support import checks

__all__ = ["PRICES", "Price", "Quota", "UsageTotal", "cost", "usage", "usage_summary", "usage_table"]

By: TypeAlias = Literal["purpose", "model", "actor"]


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens of input, of input from the cache, and of output; with a date and a source.

    Tokens that are written into a cache count as input.
    """

    input: float
    cached: float
    output: float
    date: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("input", "cached", "output"):
            checks.number(name, getattr(self, name), "a number of dollars", least=0, finite=True)
        checks.text("date", self.date)
        checks.text("source", self.source)


# Collected by hand, not fetched from a provider: check them before you bill anybody, and pass your own as `prices`. A
# model whose price depends on the length of a request is left out.
_ANTHROPIC = {
    "claude-opus-5-5": (4.0, 0.2, 20.0),
    "claude-opus-5": (5.0, 0.5, 25.0),
    "claude-opus-4-8": (5.0, 0.5, 25.0),
    "claude-opus-4-7": (5.0, 0.5, 25.0),
    "claude-opus-4-6": (5.0, 0.5, 25.0),
    "claude-opus-4-5": (5.0, 0.5, 25.0),
    "claude-sonnet-5-5": (2.0, 0.1, 10.0),
    "claude-sonnet-5": (2.0, 0.2, 10.0),
    "claude-sonnet-4-6": (3.0, 0.3, 15.0),
    "claude-sonnet-4-5": (3.0, 0.3, 15.0),
    "claude-haiku-4-5": (1.0, 0.1, 5.0),
}
_OPENAI = {
    "gpt-5": (1.25, 0.125, 10.0),
    "gpt-5-mini": (0.25, 0.025, 2.0),
    "gpt-5-nano": (0.05, 0.005, 0.4),
    "gpt-4.1": (2.0, 0.5, 8.0),
    "gpt-4.1-mini": (0.4, 0.1, 1.6),
    "gpt-4.1-nano": (0.1, 0.025, 0.4),
    "gpt-4o": (2.5, 1.25, 10.0),
    "gpt-4o-mini": (0.15, 0.075, 0.6),
}
PRICES: Mapping[str, Price] = {
    **{
        name: Price(*p, "2026-10", "the provider's price page, in part through other lists")
        for name, p in _ANTHROPIC.items()
    },
    **{name: Price(*p, "2026-03", "lists of others, not checked with the provider") for name, p in _OPENAI.items()},
}

# What may follow the name of a model that has a price: gpt-4o-2024-08-06 is gpt-4o, gpt-4o-audio-preview is not.
_VERSION = re.compile(r"-(?:\d{4}-?\d{2}-?\d{2}|latest)")


def cost(rows: ModelCalled | Iterable[Event], prices: Mapping[str, Price] = PRICES) -> float | None:
    """What a model call, or all of those in a journal, cost in US dollars; None if the price of one is not known.

    It can be passed as it is: `limits(cost=…, price=cost)`.
    """
    if not isinstance(rows, ModelCalled):
        each = [cost(row, prices) for row in rows if isinstance(row, ModelCalled)]
        return None if None in each else sum(filter(None, each), 0.0)
    price, used = _price(rows.model, prices), rows.usage
    if price is None:
        return None
    fresh = max(0, used.input_tokens - used.cached_tokens)
    dollars = fresh * price.input + used.cached_tokens * price.cached + used.output_tokens * price.output
    return dollars / 1_000_000


def _price(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of exactly this name, of the model it is a dated version of, or of the longest pattern `name*`."""
    if model in prices:
        return prices[model]
    names = [name for name in prices if model.startswith(name) and _VERSION.fullmatch(model, len(name))]
    names = names or [name for name in prices if name.endswith("*") and model.startswith(name[:-1])]
    return prices[max(names, key=len)] if names else None


# -- summaries ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """The total of some model calls: tokens and number, failed calls, seconds, and the cost of those with a price.

    `cost` is None if no price is known; `unpriced` calls are not part of it.
    """

    usage: Usage = field(default_factory=Usage)
    errors: int = 0
    seconds: float = 0.0
    cost: float | None = None
    unpriced: int = 0


def usage_summary(
    journal: Iterable[Event],
    by: By = "purpose",
    prices: Mapping[str, Price] = PRICES,
) -> dict[str, UsageTotal]:
    """What the model calls in a journal cost, by purpose, model or actor, in the order of the first call of each."""
    if by not in ("purpose", "model", "actor"):
        raise SetupError(f"by must be 'purpose', 'model' or 'actor', not {by!r}")
    rows: dict[str, list[ModelCalled]] = {}
    for row in journal:
        if isinstance(row, ModelCalled):
            rows.setdefault(getattr(row, by), []).append(row)
    return {key: _total(each, prices) for key, each in rows.items()}


def _total(rows: list[ModelCalled], prices: Mapping[str, Price]) -> UsageTotal:
    costs = [each for row in rows if (each := cost(row, prices)) is not None]
    return UsageTotal(
        usage=sum((row.usage for row in rows), Usage()),
        errors=sum(1 for row in rows if row.error),
        seconds=sum(row.seconds for row in rows),
        cost=sum(costs) if costs else None,
        unpriced=len(rows) - len(costs),
    )


def usage_table(
    journal: Iterable[Event],
    by: By = "purpose",
    prices: Mapping[str, Price] = PRICES,
) -> str:
    """`usage_summary` as plain text for a terminal, with a last line for the whole; "?": a price is not known."""
    rows = [event for event in journal if isinstance(event, ModelCalled)]
    lines: list[tuple[str, ...]] = [(by, "calls", "failed", "input", "cached", "output", "seconds", "US dollars")]
    lines += [_line(key or "-", total) for key, total in usage_summary(rows, by, prices).items()]
    lines.append(_line("all", _total(rows, prices)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    )


def _line(key: str, total: UsageTotal) -> tuple[str, ...]:
    used = total.usage
    money = "?" if total.cost is None else f"{total.cost:.4f}" + (" + ?" if total.unpriced else "")
    tokens = (used.input_tokens, used.cached_tokens, used.output_tokens)
    return key, f"{used.calls:,}", f"{total.errors:,}", *(f"{n:,}" for n in tokens), f"{total.seconds:.1f}", money


# -- quotas ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quota:
    """How many model calls, tokens (in and out) and US dollars one actor may use in a conversation; None: no bound."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        checks.whole("calls", self.calls, 0, none="for no bound")
        checks.whole("tokens", self.tokens, 0, none="for no bound")
        checks.number("cost", self.cost, "a number of dollars", least=0, none="for no bound")


NOTHING_LEFT = "there is nothing left for this user"

Allowance: TypeAlias = Quota | bool | str  # a text says what is used up
QuotaOf: TypeAlias = Callable[[Caller | None], Allowance | Awaitable[Allowance]]


def usage(quota: Quota | QuotaOf, *, prices: Mapping[str, Price] = PRICES) -> Layer:
    """A layer that asks before each model call whether its actor, the caller's user, may still make one.

    `quota` is a `Quota` for every actor, counted in the conversation, or a function from the caller, sync or async. The
    function returns a `Quota`, True, False, or a text that says what is used up; it may read a ledger of your own,
    which an observer fills (`observe=` gets a `ModelCalled` for each call). When the quota is used up, the turn ends
    with the reason "quota"; a helper's call (a summary, a repair) raises `ToolSearchError`. A quota of cost needs a
    price for every model, otherwise `SetupError` is raised. Put this layer last in the list, so that it sees every
    call. The calls of one step count from the next step on.
    """
    if not isinstance(quota, Quota):
        checks.function("quota", quota, "from a Caller to a Quota, True or False, or a Quota")
    table = checks.table("prices", prices, "prices")
    for name, price in table.items():
        checks.instance(f"prices[{name!r}]", price, Price, "a Price")
    return _Usage(quota, table)


@dataclass(frozen=True)
class _Usage:
    quota: Quota | QuotaOf
    prices: Mapping[str, Price]
    name: str = "usage"

    def around_model(self, request: CallModel) -> ModelSteps:
        allowance: object = self.quota
        if not isinstance(self.quota, Quota):
            allowance = yield from result_of(partial(self.quota, request.caller))
        used_up = self._used_up(allowance, request)
        if not used_up:
            return (yield request)
        text = f"The quota is used up: {used_up}."
        if request.purpose != "chat":
            raise ToolSearchError(text)
        yield Record(Ending("quota", text, self.name))
        return Reply(text, stop="ended")

    def _used_up(self, allowance: object, request: CallModel) -> str:
        """What is used up; empty if the call may be made."""
        match allowance:
            case True:
                return ""
            case False:
                return NOTHING_LEFT
            case str():
                return allowance.rstrip(".") or NOTHING_LEFT
            case Quota():
                actor = actor_of(request.caller)
                rows = [e for e in request.turn.journal if isinstance(e, ModelCalled) and e.actor == actor]
                return self._exhausted(allowance, rows)
            case _:
                wanted = "a Quota, True, False or a text is needed"
                raise SetupError(f"the function for a quota returned {allowance!r} where {wanted}")

    def _exhausted(self, quota: Quota, rows: list[ModelCalled]) -> str:
        """Which bound of the quota these calls have reached; empty if none."""
        used = sum((row.usage for row in rows), Usage())
        if quota.calls is not None and used.calls >= quota.calls:
            return f"{used.calls:,} of {quota.calls:,} model calls"
        if quota.tokens is not None and used.tokens >= quota.tokens:
            return f"{used.tokens:,} of {quota.tokens:,} tokens"
        if quota.cost is not None and (paid := self._paid(rows)) >= quota.cost:
            return f"{paid:.4g} of {quota.cost:.4g} US dollars"
        return ""

    def _paid(self, rows: list[ModelCalled]) -> float:
        unknown = next((row.model for row in rows if cost(row, self.prices) is None), None)
        if unknown is not None:
            raise SetupError(f"there is no price of {unknown!r} for the quota of cost: pass prices={{**PRICES, …}}")
        return cost(rows, self.prices) or 0.0
