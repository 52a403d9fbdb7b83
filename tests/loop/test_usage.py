"""Usage, prices and quotas: NA-2, NA-15, SA-47."""

from __future__ import annotations

from typing import Any

import pytest

from toolsearch import Caller, SetupError, ToolSearch, tool
from toolsearch.events.facts import Ending, Event, ModelCalled, RunEnded, Usage
from toolsearch.layers import Price, Quota, follow_ups, history, limits, structured, usage
from toolsearch.layers._usage import PRICES, cost, usage_summary, usage_table
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel

ANA, BOB = Caller("ana"), Caller("bob")
TABLE = {**PRICES, "scripted": Price(1.0, 0.1, 10.0)}


@tool
def look() -> str:
    """Look at something."""
    return "seen"


def agent_for(model: Any, *layers: Any, **options: Any) -> Agent:
    return Agent(model, ToolSearch([look], mode="static"), layers=layers, **options)


def row(model: str, spent: Usage = Usage(1_000_000, 0, 0, 1), **told: Any) -> ModelCalled:  # noqa: B008
    return ModelCalled(model=model, usage=spent, **told)


# -- rows --------------------------------------------------------------------------------------------------------


def test_there_is_a_row_for_each_call_whatever_came_of_it(drive: Any) -> None:
    """NA-2, NA-15: purpose, actor, model, tokens; also of a call that failed, and of an answer that was refused."""
    agent = agent_for(ScriptedModel([("look", {})], "no", '{"a": 1}', ConnectionError("gone")), structured(dict))
    drive(agent, "Go", conversation_id="s", caller=ANA)
    with pytest.raises(ConnectionError):
        drive(agent, "Go", conversation_id="s", caller=ANA)
    rows = [e for e in agent.conversation("s", caller=ANA).journal if isinstance(e, ModelCalled)]
    assert [(r.purpose, r.model, r.actor, r.usage.calls) for r in rows] == [
        ("chat", "scripted", "ana", 1),
        ("chat", "scripted", "ana", 1),
        ("structured_output", "scripted", "ana", 1),
        ("chat", "scripted", "ana", 1),
    ]
    assert [bool(r.error) for r in rows] == [False, False, False, True]


def test_the_result_has_the_total_of_the_turn(drive: Any) -> None:
    """SA-47."""
    agent = agent_for(ScriptedModel([("look", {})], "Seen.", "Where?", usage=Usage(100, 40, 10)), follow_ups())
    assert drive(agent, "Go").usage == Usage(300, 120, 30, 3)


# -- prices ------------------------------------------------------------------------------------------------------


def test_cached_tokens_have_their_own_price() -> None:
    price = {"m": Price(10.0, 1.0, 100.0)}
    assert cost(row("m", Usage(1_000_000, 400_000, 10_000, 1)), price) == pytest.approx(6.0 + 0.4 + 1.0)


def test_an_unknown_model_costs_none_and_never_nothing() -> None:
    known, unknown = row("gpt-4o"), row("somebody/else")
    assert cost(known) == pytest.approx(2.5)
    assert cost(unknown) is None
    assert cost([known, unknown]) is None, "a sum that leaves some out would look like all of it"
    assert cost([known, Ending("x"), known]) == pytest.approx(5.0)
    assert cost([]) == 0


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-haiku-4-5-latest", "claude-haiku-4-5"),
    ],
)
def test_a_dated_version_has_the_price_of_its_model(model: str, key: str) -> None:
    assert cost(row(model)) == PRICES[key].input


@pytest.mark.parametrize("model", ["gpt-4o-audio-preview", "gpt-5-pro", "gpt-4.12", "", "openai/gpt-4o", "GPT-4o"])
def test_a_name_that_only_begins_alike_has_no_price(model: str) -> None:
    assert cost(row(model)) is None


def test_prices_of_yours_go_before_the_shipped_ones_and_may_be_patterns() -> None:
    mine = {
        **PRICES,
        "gpt-4o": Price(9.0, 9.0, 9.0),
        "local/*": Price(0.0, 0.0, 0.0),
        "local/big*": Price(1.0, 1.0, 1.0),
    }
    assert cost(row("gpt-4o"), mine) == pytest.approx(9.0)
    assert cost(row("local/small"), mine) == 0.0
    assert cost(row("local/big-7"), mine) == pytest.approx(1.0)


def test_every_shipped_price_says_of_when_and_from_where_it_is() -> None:
    for name, price in PRICES.items():
        assert price.date[:2] == "20", name
        assert price.source, name
        assert 0 < price.cached <= price.input < price.output, name


def test_limits_take_the_cost_as_it_is(drive: Any) -> None:
    calls = [[("look", {"n": n})] for n in range(9)]
    agent = agent_for(
        Named("gpt-4o", *calls, usage=Usage(1_000_000, 0, 0)),
        limits(cost=4.0, price=cost, excess="end", identical=None),
    )
    assert drive(agent, "Go").reason == "cost budget"


class Named(ScriptedModel):
    """A scripted model with a name that has a price."""

    def __init__(self, name: str, *script: Any, **options: Any) -> None:
        super().__init__(*script, **options)
        self.name = name


# -- summaries ---------------------------------------------------------------------------------------------------

JOURNAL: list[Event] = [
    row("gpt-4o", Usage(1_000, 500, 10, 1), actor="ana", seconds=1.0),
    ModelCalled("history_summary", "gpt-4o-mini", Usage(2_000, 0, 100, 1), "ana", "", 0.5),
    row("gpt-4o", Usage(0, 0, 0, 1), actor="bob", error="ConnectionError: gone", seconds=0.1),
    row("unheard-of", Usage(7, 0, 7, 1), actor="bob"),
    RunEnded("answered"),
]


def test_rows_are_summed_by_purpose_model_or_actor() -> None:
    by_purpose = usage_summary(JOURNAL)
    assert list(by_purpose) == ["chat", "history_summary"]
    assert by_purpose["chat"].usage == Usage(1_007, 500, 17, 3)
    assert (by_purpose["chat"].errors, by_purpose["chat"].unpriced) == (1, 1)
    assert by_purpose["chat"].cost == pytest.approx((500 * 2.5 + 500 * 1.25 + 10 * 10) / 1e6)
    assert list(usage_summary(JOURNAL, "model")) == ["gpt-4o", "gpt-4o-mini", "unheard-of"]
    assert usage_summary(JOURNAL, "model")["unheard-of"].cost is None
    assert {actor: total.usage.calls for actor, total in usage_summary(JOURNAL, "actor").items()} == {
        "ana": 2,
        "bob": 2,
    }
    with pytest.raises(SetupError, match="by must be"):
        usage_summary(JOURNAL, "day")  # type: ignore[arg-type]


def test_the_table_is_plain_text_in_columns() -> None:
    assert usage_table(JOURNAL) == (
        "purpose          calls  failed  input  cached  output  seconds  US dollars\n"
        "chat                 3       1  1,007     500      17      1.1  0.0020 + ?\n"
        "history_summary      1       0  2,000       0     100      0.5      0.0004\n"
        "all                  4       1  3,007     500     117      1.6  0.0023 + ?"
    )
    assert usage_table([]).splitlines()[1].split() == ["all", "0", "0", "0", "0", "0", "0.0", "?"]


# -- quotas ------------------------------------------------------------------------------------------------------


def test_an_actor_over_the_quota_ends_the_turn_with_a_reason(drive: Any) -> None:
    """NA-2: checked before each call."""
    model = ScriptedModel([("look", {})], [("look", {})], "Done.")
    agent = agent_for(model, usage(Quota(calls=2)))
    result = drive(agent, "Go", conversation_id="s", caller=ANA)
    assert (result.reason, result.text) == ("quota", "The quota is used up: 2 of 2 model calls.")
    assert len(model.requests) == 2
    assert agent.conversation("s", caller=ANA).open == ()
    assert drive(agent, "Go on", conversation_id="s", caller=ANA).reason == "quota", (
        "over all turns of the conversation"
    )


@pytest.mark.parametrize(
    ("quota", "said"),
    [(Quota(tokens=110), "110 of 110 tokens"), (Quota(cost=0.0002), "0.0002 of 0.0002 US dollars")],
)
def test_tokens_and_money_are_counted_too(drive: Any, quota: Quota, said: str) -> None:
    agent = agent_for(ScriptedModel([("look", {})], "Done."), usage(quota, prices=TABLE))
    assert drive(agent, "Go").text == f"The quota is used up: {said}."


def test_a_quota_of_money_needs_a_price_for_every_model(drive: Any) -> None:
    agent = agent_for(ScriptedModel([("look", {})], "Done."), usage(Quota(cost=1.0)))
    with pytest.raises(SetupError, match=r"no price of 'scripted'.*prices="):
        drive(agent, "Go")


def test_a_function_says_what_each_actor_may_use(drive: Any) -> None:
    quotas = {"ana": Quota(calls=9), "bob": Quota(calls=1)}
    agent = agent_for(ScriptedModel(*[[("look", {})], "Done."] * 2), usage(lambda caller: quotas[caller.user]))
    assert drive(agent, "Go", caller=ANA).reason == "answered"
    assert drive(agent, "Go", caller=BOB).reason == "quota"


def test_a_ledger_of_your_own_counts_over_conversations(drive: Any) -> None:
    """NA-15: the row of each call goes to the observer, and the next call asks the ledger."""
    ledger: dict[str, int] = {}

    def fill(event: Any) -> None:
        if isinstance(event, ModelCalled):
            ledger[event.actor] = ledger.get(event.actor, 0) + event.usage.tokens

    def left(caller: Caller | None) -> bool | str:
        used = ledger.get(caller.user or "" if caller else "", 0)
        return used < 200 or f"{used} of 200 tokens today"

    agent = agent_for(ScriptedModel("One.", "Two.", "Three.", "Four."), usage(left), observe=fill)
    assert [drive(agent, "Go", caller=ANA).reason for _ in range(3)] == ["answered", "answered", "quota"]
    assert drive(agent, "Go", caller=ANA).text == "The quota is used up: 220 of 200 tokens today."
    assert drive(agent, "Go", caller=BOB).text == "Three."


def test_a_ledger_may_be_asked_async() -> None:
    import asyncio

    async def nothing(_: Caller | None) -> bool:
        return False

    assert asyncio.run(agent_for(ScriptedModel("One."), usage(nothing)).arun("Go")).reason == "quota"


def test_a_helpers_call_is_not_made_either_and_the_answer_stays(drive: Any) -> None:
    model = ScriptedModel("One.", "Where?")
    agent = agent_for(model, follow_ups(), usage(lambda _: len(model.requests) < 1))
    result = drive(agent, "Go")
    assert (result.text, result.reason, len(model.requests)) == ("One.", "answered", 1)


def test_a_turn_that_the_quota_ended_is_not_taken_for_an_answer(drive: Any) -> None:
    model = ScriptedModel()
    agent = agent_for(model, follow_ups(), structured(dict), history(9), usage(lambda _: False))
    result = drive(agent, "Go")
    assert (result.reason, result.value, model.requests) == ("quota", None, [])


@pytest.mark.parametrize("quota", [3, None, {"ana": 1}])
def test_what_is_no_quota_is_said_at_once(quota: Any) -> None:
    with pytest.raises(SetupError, match="quota must be"):
        usage(quota)


def test_a_function_that_gives_no_quota_is_an_error(drive: Any) -> None:
    with pytest.raises(SetupError, match="returned 5 where"):
        drive(agent_for(ScriptedModel("One."), usage(lambda _: 5)), "Go")
