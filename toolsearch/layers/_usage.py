"""Usage: what model calls cost, by purpose, model and actor, and a quota for each actor.

The loop writes a `ModelCalled` for every call, whatever comes of it: these are the rows. Prices are data with a date
and a source; what is not in the table has no price, which is not a price of nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from toolsearch.calls import Caller
from toolsearch.errors import SetupError, ToolSearchError
from toolsearch.events.facts import Ending, Event, ModelCalled, Reply, Usage
from toolsearch.events.requests import CallModel
from toolsearch.protocols import Do, ModelSteps, Record
from toolsearch.support import checks

__all__ = ["PRICES", "Price", "Quota", "Total", "cost", "usage", "usage_summary", "usage_table"]


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens that went in, that came from the cache, and that came out; when and where said.

    Tokens written into a cache count as those that went in.
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


# Gathered by hand, not fetched from a provider: check them before you bill anybody, and pass your own as `prices`. A
# model whose price depends on a request's length is left out.
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
    """What a model call, or all in a journal, cost, in US dollars; None where the price of one is not known.

    `limits(cost=…, price=cost)` takes it as it is.
    """
    if not isinstance(rows, ModelCalled):
        each = [cost(row, prices) for row in rows if isinstance(row, ModelCalled)]
        return None if None in each else sum(filter(None, each), 0.0)
    price, spent = _price(rows.model, prices), rows.usage
    if price is None:
        return None
    fresh = max(0, spent.input_tokens - spent.cached_tokens)
    dollars = fresh * price.input + spent.cached_tokens * price.cached + spent.output_tokens * price.output
    return dollars / 1_000_000


def _price(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of this very name, of the one it is a dated version of, or of the longest pattern `name*`."""
    if model in prices:
        return prices[model]
    found = [name for name in prices if model.startswith(name) and _VERSION.fullmatch(model, len(name))]
    found = found or [name for name in prices if name.endswith("*") and model.startswith(name[:-1])]
    return prices[max(found, key=len)] if found else None


# -- looking at it -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Total:
    """Of some model calls: tokens and number, failed ones, seconds, and what those with a known price cost.

    `cost` is None where no price is known; `unpriced` calls are not in it.
    """

    usage: Usage = field(default_factory=Usage)
    errors: int = 0
    seconds: float = 0.0
    cost: float | None = None
    unpriced: int = 0


def usage_summary(
    journal: Iterable[Event],
    by: Literal["purpose", "model", "actor"] = "purpose",
    prices: Mapping[str, Price] = PRICES,
) -> dict[str, Total]:
    """What the model calls in a journal cost, by purpose, model or actor, in the order of the first call of each."""
    if by not in ("purpose", "model", "actor"):
        raise SetupError(f"by must be 'purpose', 'model' or 'actor', not {by!r}")
    rows: dict[str, list[ModelCalled]] = {}
    for row in journal:
        if isinstance(row, ModelCalled):
            rows.setdefault(getattr(row, by), []).append(row)
    return {key: _total(mine, prices) for key, mine in rows.items()}


def _total(rows: list[ModelCalled], prices: Mapping[str, Price]) -> Total:
    known = [each for row in rows if (each := cost(row, prices)) is not None]
    return Total(
        sum((row.usage for row in rows), Usage()),
        sum(1 for row in rows if row.error),
        sum(row.seconds for row in rows),
        sum(known) if known else None,
        len(rows) - len(known),
    )


def usage_table(
    journal: Iterable[Event],
    by: Literal["purpose", "model", "actor"] = "purpose",
    prices: Mapping[str, Price] = PRICES,
) -> str:
    """`summary` as plain text for a terminal, with a last line for all of it; "?" is a price that is not known."""
    rows = [event for event in journal if isinstance(event, ModelCalled)]
    lines: list[tuple[str, ...]] = [(by, "calls", "failed", "input", "cached", "output", "seconds", "US dollars")]
    lines += [_line(key or "-", total) for key, total in usage_summary(rows, by, prices).items()]
    lines.append(_line("all", _total(rows, prices)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    )


def _line(key: str, total: Total) -> tuple[str, ...]:
    spent = total.usage
    money = "?" if total.cost is None else f"{total.cost:.4f}" + (" + ?" if total.unpriced else "")
    tokens = (spent.input_tokens, spent.cached_tokens, spent.output_tokens)
    return key, f"{spent.calls:,}", f"{total.errors:,}", *(f"{n:,}" for n in tokens), f"{total.seconds:.1f}", money


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


def usage(quota: Quota | Callable[[Caller | None], Any], *, prices: Mapping[str, Price] = PRICES) -> Any:
    """A layer that asks before each model call whether its actor, the caller's user, may still make one.

    `quota` is a `Quota` for every actor, counted in the conversation, or a function from the caller, sync or async: it
    returns a `Quota`, True, or False or a text that says what is used up, out of a ledger of your own that an observer
    fills (`observe=`: a `ModelCalled` for each call). Over it the turn ends with the reason "quota"; a helper's call (a
    summary, a repair) raises `ToolSearchError`. A quota of cost needs a price for every model: else `SetupError` is
    raised. Put it last in the list, so that no call passes it by. The calls of one step count from the next step on.
    """
    if not isinstance(quota, Quota):
        checks.function("quota", quota, "from a Caller to a Quota, True or False, or a Quota")
    given = checks.table("prices", prices, "prices")
    for name, price in given.items():
        checks.instance(f"prices[{name!r}]", price, Price, "a Price")
    return _Usage(quota, given)


@dataclass(frozen=True)
class _Usage:
    quota: Quota | Callable[[Caller | None], Any]
    prices: Mapping[str, Price]
    name: str = "usage"

    def around_model(self, request: CallModel) -> ModelSteps:
        told: Any = self.quota
        if not isinstance(told, Quota):
            told = yield Do(partial(told, request.caller))
        used_up = self._used_up(told, request)
        if not used_up:
            return (yield request)
        text = f"The quota is used up: {used_up}."
        if request.purpose != "chat":
            raise ToolSearchError(text)
        yield Record(Ending("quota", text, self.name))
        return Reply(text, stop="ended")

    def _used_up(self, told: Any, request: CallModel) -> str:
        """What is used up; empty where nothing is."""
        if isinstance(told, bool):
            return "" if told else "there is nothing left for this user"
        if isinstance(told, str):
            return told.rstrip(".") or "there is nothing left for this user"
        if not isinstance(told, Quota):
            raise SetupError(f"the function for a quota gave {told!r} where a Quota, True, False or a text is needed")
        actor = (request.caller.user if request.caller else None) or ""
        rows = [e for e in request.turn.journal if isinstance(e, ModelCalled) and e.actor == actor]
        spent = sum((row.usage for row in rows), Usage())
        if told.calls is not None and spent.calls >= told.calls:
            return f"{spent.calls:,} of {told.calls:,} model calls"
        if told.tokens is not None and spent.tokens >= told.tokens:
            return f"{spent.tokens:,} of {told.tokens:,} tokens"
        if told.cost is not None and (paid := self._paid(rows)) >= told.cost:
            return f"{paid:.4g} of {told.cost:.4g} US dollars"
        return ""

    def _paid(self, rows: list[ModelCalled]) -> float:
        unknown = next((row.model for row in rows if cost(row, self.prices) is None), None)
        if unknown is not None:
            raise SetupError(f"there is no price of {unknown!r} for the quota of cost: pass prices={{**PRICES, …}}")
        return cost(rows, self.prices) or 0.0
