"""Prices: what a conversation that was played costs, by what is assumed of caches and providers."""

from dataclasses import replace

import pytest

from toolsearch import SetupError
from toolsearch.layers import PRICES
from toolsearch_evals.data.cases import Case
from toolsearch_evals.savings.played import PlayedConversation, PlayedRequest, PlayedTurn
from toolsearch_evals.savings.prices import PLAIN, PriceProfile, cost, profile_of

CASE = Case("1", "anything")
FIRST, SECOND, THIRD = (
    PlayedRequest(1_000, 0, 800, 10),
    PlayedRequest(1_500, 990, 800, 20),
    PlayedRequest(1_900, 300, 1_100, 30, tools_changed=True),
)
TALK = PlayedConversation([PlayedTurn(CASE, True, 1, (FIRST, SECOND)), PlayedTurn(CASE, True, 0, (THIRD,))])


def test_a_cold_conversation_pays_for_what_it_does_not_share() -> None:
    new, cached, output = 1_000 + 510 + 1_600, 990 + 300, 60
    assert cost(TALK) == pytest.approx(new + 0.1 * cached + 5 * output)
    assert (TALK.usage.uncached, TALK.usage.cached, TALK.usage.output) == (new, cached, output)


def test_a_warm_one_finds_its_tools_and_its_system_message_in_the_cache() -> None:
    assert cost(TALK) - cost(TALK, warm=True) == pytest.approx(0.9 * 800)


@pytest.mark.parametrize(
    ("change", "cached"),
    [
        ({}, (0, 990, 300)),
        ({"least_prefix": 512}, (0, 990, 0)),
        ({"least_prefix": 1_024}, (0, 0, 0)),
        ({"steps": 128}, (0, 896, 256)),
        ({"all_lost_on_tools_change": True}, (0, 990, 0)),
    ],
)
def test_what_a_provider_does_not_cache_is_new(change: dict[str, int], cached: tuple[int, int, int]) -> None:
    profile = replace(PLAIN, **change)  # type: ignore[arg-type]
    new = sum(request.input - kept for request, kept in zip(TALK.requests, cached, strict=True))
    assert cost(TALK, profile) == pytest.approx(new + 0.1 * sum(cached) + 5 * 60)


def test_a_short_prefix_is_not_warm_either() -> None:
    profile = replace(PLAIN, least_prefix=900)
    assert cost(TALK, profile, warm=True) == cost(TALK, profile)


def test_writing_costs_more_where_something_is_written() -> None:
    writes = replace(PLAIN, written_factor=1.25)
    assert cost(TALK, writes) - cost(TALK) == pytest.approx(0.25 * (1_000 + 510 + 1_600))
    least = replace(writes, least_prefix=1_200)  # the first request is too short to be cached
    assert cost(TALK, least) == pytest.approx(1_000 + 1.25 * (1_500 + 1_900) + 5 * 60)


def test_a_profile_of_a_model_has_its_dated_price_and_its_providers_cache() -> None:
    claude, gpt = profile_of("claude-sonnet-4-5"), profile_of("gpt-5")
    assert (claude.input, claude.cached, claude.output) == (3.0, 0.3, 15.0)
    assert (claude.written_factor, claude.least_prefix, claude.all_lost_on_tools_change) == (1.25, 1_024, True)
    assert (gpt.written_factor, gpt.least_prefix, gpt.steps, gpt.all_lost_on_tools_change) == (1, 1_024, 128, False)
    assert profile_of("anthropic") == claude
    assert profile_of("openai") == gpt
    assert profile_of("claude-opus-4-5").least_prefix == 4_096
    assert profile_of("plain") == PLAIN
    for model, price in PRICES.items():
        profile = profile_of(model)
        assert profile.date == price.date
        assert price.date in profile.in_words
        assert "USD" in profile.in_words


def test_a_price_is_the_same_in_money_and_in_new_tokens() -> None:
    dollars = PriceProfile("mine", input=2.0, cached=0.2, output=10.0, currency="USD")
    assert cost(TALK, dollars) == pytest.approx(cost(TALK))


def test_prices_that_do_not_exist_name_those_that_do() -> None:
    with pytest.raises(SetupError, match="no prices 'gpt5'; did you mean 'gpt-5'"):
        profile_of("gpt5")
    with pytest.raises(SetupError, match="there are 'plain', 'openai', 'anthropic', 'claude-"):
        profile_of("zzz")
