"""What a request to a model cost, and what the cache of the provider lost of the request before it.

A request begins with what the one before it was. So all input tokens of that one could come from the cache, whole steps
of the provider's cache; what did not is lost. It is known only where the provider reports cached tokens at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from toolsearch.events.facts import ModelCalled, Usage
from toolsearch.layers import PRICES, cost
from toolsearch_evals.inspection.steps import Turn
from toolsearch_evals.savings.prices import PLAIN, PriceProfile, profile_of

__all__ = ["CacheReader", "drop_unknown_losses"]

KEPT_SECONDS = 300  # how long providers keep a prefix at least


def drop_unknown_losses(turns: Iterable[Turn]) -> None:
    """Takes the losses of models out of which no request took anything from a cache: nobody may report it."""
    turns = list(turns)
    rounds = [step for turn in turns for step in turn["steps"] if step["kind"] == "round"]
    reported = {step.get("model") for step in rounds if step.get("cached")}
    for turn in turns:
        for step in turn["steps"]:
            if step["kind"] == "round" and step.get("lost") and step.get("model") not in reported:
                turn["lost"] -= step.pop("lost")
                turn["lost_dollars"] = turn.get("lost_dollars", 0.0) - step.pop("lost_dollars", 0.0)
                step.pop("why", None)


@dataclass
class CacheReader:
    """Follows the requests of one conversation."""

    _before: dict[str, ModelCalled] = field(default_factory=dict)  # the last request, by model
    _causes: dict[str, None] = field(default_factory=dict)  # what has happened since it

    def lost_by(self, cause: str) -> None:
        """Something happened that changes the beginning of the next request."""
        self._causes[cause] = None

    def round_of(self, event: ModelCalled) -> dict[str, Any]:
        """What is known of a request: tokens, seconds, US dollars, and what the cache lost, with the cause."""
        used, price = event.usage, cost(event)
        made = {
            "at": event.at,
            "model": event.model,
            "purpose": "" if event.purpose == "chat" else event.purpose,
            "input": used.input_tokens,
            "cached": used.cached_tokens,
            "output": used.output_tokens,
            "seconds": event.seconds,
            **({} if price is None else {"dollars": price}),
        }
        if event.purpose == "chat" and not event.error:
            made |= self._loss(event, used)
            self._before[event.model] = event
            self._causes.clear()
        return made

    def _loss(self, event: ModelCalled, used: Usage) -> dict[str, Any]:
        before = self._before.get(event.model)
        if before is None:
            return {}
        how = _profile(event.model)
        could = min(before.usage.input_tokens, used.input_tokens)
        could -= could % how.steps
        lost = could - used.cached_tokens
        if lost <= 0 or could < how.least_prefix:
            return {}
        whole = replace(event, usage=replace(used, cached_tokens=used.cached_tokens + lost))
        paid, cheapest = cost(event), cost(whole)
        dearer = {} if paid is None or cheapest is None else {"lost_dollars": paid - cheapest}
        return {"lost": lost, "why": self._why(event, before), **dearer}

    def _why(self, event: ModelCalled, before: ModelCalled) -> str:
        causes = [*self._causes]
        waited = event.at - event.seconds - before.at
        if before.at and waited > KEPT_SECONDS:
            causes.append(f"{waited / 60:,.0f} minutes passed")
        return " and ".join(causes)


@cache
def _profile(model: str) -> PriceProfile:
    """How the provider of a model caches; nothing is assumed of one without a price."""
    named = [name for name in PRICES if model.startswith(name)]
    return profile_of(max(named, key=len)) if named else PLAIN
