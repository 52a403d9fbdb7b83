"""What a played conversation costs, by price profiles: of a token, of a cache, and of what makes a cache useless.

A profile of a model takes its price from the dated table of the library (`toolsearch.layers.PRICES`) and how its
provider caches from the table here. Both are collected by hand: check them before you bill anybody.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches

from toolsearch import SetupError
from toolsearch.layers import PRICES
from toolsearch_evals.savings.played import PlayedConversation, PlayedRequest

__all__ = ["PLAIN", "PROVIDERS", "PriceProfile", "cached_tokens", "cost", "profile_of"]


@dataclass(frozen=True, slots=True)
class PriceProfile:
    """Prices of a million tokens, and how they are cached.

    `input` is the price of a new token, `cached` of one from the cache, `output` of a written one. Writing new tokens
    into the cache costs `written_factor` times as much as reading them. A prefix is cached only if it has
    `least_prefix` tokens, and the cache of OpenAI's kind goes in `steps` of tokens. `all_lost_on_tools_change`: nothing
    is taken from the cache if the tools are not those of the request before; else, what comes before the change is.
    `currency` is "" where the unit is a new token, and `date` says of when the price is.
    """

    name: str
    input: float = 1.0
    cached: float = 0.1
    output: float = 5.0
    written_factor: float = 1.0
    least_prefix: int = 0
    steps: int = 1
    all_lost_on_tools_change: bool = False
    currency: str = ""
    date: str = ""
    source: str = ""

    @property
    def in_words(self) -> str:
        """What it assumes, in a sentence."""
        cached, output = self.cached / self.input, self.output / self.input
        said = [f"a cached token costs {cached:g} and a written one {output:g} of a new input token"]
        if self.written_factor != 1:
            said.append(f"writing into the cache costs {self.written_factor:g} times a new token")
        if self.least_prefix:
            said.append(f"prefixes of fewer than {self.least_prefix:,} tokens are not cached")
        if self.steps > 1:
            said.append(f"the cache goes in steps of {self.steps} tokens")
        if self.all_lost_on_tools_change:
            said.append("a change of the tools loses the whole cache")
        price = ""
        if self.currency:
            price = f" ({self.input:g} {self.currency} for a million new tokens; of {self.date}, {self.source})"
        return f"{self.name}: {'; '.join(said)}{price}."


PLAIN = PriceProfile("plain")

_OPENAI = PriceProfile("openai", least_prefix=1_024, steps=128)
_ANTHROPIC = PriceProfile("anthropic", written_factor=1.25, all_lost_on_tools_change=True)
# Tokens of the least prefix that Anthropic caches, by the beginning of a model's name, as published in the autumn of
# 2026. What is not published for a model is taken from the one before it in its family.
_LEAST_PREFIX = {
    "claude-opus-4-7": 2_048,
    "claude-opus-4-6": 4_096,
    "claude-opus-4-5": 4_096,
    "claude-opus-4": 1_024,
    "claude-opus-5": 512,
    "claude-sonnet": 1_024,
    "claude-haiku-4-5": 4_096,
}
PROVIDERS = {"openai": "gpt-5", "anthropic": "claude-sonnet-4-5"}  # the model that stands for a provider


def profile_of(name: str, plain: PriceProfile = PLAIN) -> PriceProfile:
    """A profile by its name: "plain", a provider ("openai", "anthropic"), or a model of the library's price table.

    `plain` is what "plain" means. Raises `SetupError` for an unknown name.
    """
    if name == plain.name:
        return plain
    model = PROVIDERS.get(name, name)
    if model not in PRICES:
        known = [plain.name, *PROVIDERS, *PRICES]
        near = get_close_matches(name, known, 1)
        said = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, known))}"
        raise SetupError(f"there are no prices {name!r}; {said}")
    price = PRICES[model]
    how = _ANTHROPIC if model.startswith("claude") else _OPENAI
    starts = [start for start in _LEAST_PREFIX if model.startswith(start)]
    least = _LEAST_PREFIX[max(starts, key=len)] if starts else how.least_prefix
    return replace(
        how,
        name=model,
        input=price.input,
        cached=price.cached,
        output=price.output,
        least_prefix=least,
        currency="USD",
        date=price.date,
        source=price.source,
    )


def cost(conversation: PlayedConversation, profile: PriceProfile = PLAIN, *, warm: bool = False) -> float:
    """The price of a conversation in new input tokens. Times the profile's `input`, by a million, it is money.

    Cold: its first request finds an empty cache. Warm: other conversations have left its tools and its system message
    in the cache. Within a conversation, the cache keeps what it has.
    """
    total = 0.0
    for at, request in enumerate(conversation.requests):
        cached = cached_tokens(request, profile, is_first=at == 0, warm=warm)
        is_written = request.input >= profile.least_prefix
        total += (request.input - cached) * profile.input * (profile.written_factor if is_written else 1)
        total += cached * profile.cached + request.output * profile.output
    return total / profile.input


def cached_tokens(request: PlayedRequest, profile: PriceProfile, *, is_first: bool, warm: bool) -> int:
    """How many tokens of a request come from the cache."""
    kept = request.shared
    if is_first:
        kept = request.fixed if warm else 0
    elif request.tools_changed and profile.all_lost_on_tools_change:
        kept = 0
    kept -= kept % profile.steps
    return kept if kept >= profile.least_prefix else 0
