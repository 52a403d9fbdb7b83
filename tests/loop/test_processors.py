"""What goes in, comes out and is kept: NA-13, NA-2; DESIGN 5.6."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch import SetupError, ToolSearch, tool
from toolsearch.events.facts import (
    Answers,
    ModelCalled,
    ModelReplied,
    Reply,
    ReplyDiscarded,
    RunEnded,
    TextDelta,
    UserSaid,
)
from toolsearch.events.requests import CallModel
from toolsearch.layers import Refuse, Rewrite, follow_ups, history, processors, redact, structured
from toolsearch.layers._processors import _HeldBack
from toolsearch.loop.agent import Agent
from toolsearch.stores import MemoryStore
from toolsearch.testing import ScriptedModel

CARD = "4111111111111111"
cards = redact(r"\b\d{16}\b", by="[card]")


@tool
def card_of(who: str) -> dict[str, str]:
    """The card of a person."""
    return {"who": who, "card": CARD}


def agent_for(model: Any, *layers: Any, **options: Any) -> Agent:
    return Agent(model, ToolSearch([card_of], mode="static"), layers=layers, **options)


def text_of_request(request: CallModel) -> str:
    return repr(request.transcript)


# -- into --------------------------------------------------------------------------------------------------------


def test_what_the_model_reads_is_rewritten_before_each_call_and_the_journal_is_not(drive: Any) -> None:
    """NA-13."""
    model = ScriptedModel([("card_of", {"who": "Ana"})], "It ends in 1.")
    agent = agent_for(model, processors(into=[cards]))
    drive(agent, f"Mine is {CARD}", conversation_id="s")
    assert len(model.requests) == 2
    assert not [request for request in model.requests if CARD in text_of_request(request)]
    assert "[card]" in model.requests[1].transcript[2].results[0].content
    assert agent.conversation("s").turn.said == f"Mine is {CARD}"


def test_a_function_changes_the_request(drive: Any) -> None:
    def polite(request: CallModel) -> CallModel:
        return replace(request, system=f"{request.system} Be polite.".strip())

    model = ScriptedModel("Gladly.")
    drive(agent_for(model, processors(into=[lambda _: None, polite, polite])), "Go")
    assert model.requests[0].system == "Be polite. Be polite."


def test_a_refusal_ends_the_turn_before_the_model_is_asked(drive: Any) -> None:
    model = ScriptedModel("Hello.")
    no_cards = processors(into=[lambda r: Refuse("card", "No cards, please.") if CARD in repr(r.transcript) else None])
    agent = agent_for(model, follow_ups(), structured(str), no_cards)
    result = drive(agent, f"Mine is {CARD}", conversation_id="s")
    assert (result.text, result.reason, model.requests) == ("No cards, please.", "card", [])
    assert not [e for e in agent.conversation("s").journal if isinstance(e, ModelCalled)], "nothing is billed"


def test_helpers_read_what_is_rewritten_too(drive: Any) -> None:
    model = ScriptedModel("One.", "A summary.", "Two.")
    agent = agent_for(model, history(2, summarize=True), processors(into=[cards]))
    drive(agent, f"Mine is {CARD}", conversation_id="s")
    drive(agent, "Go on", conversation_id="s")
    assert [request.purpose for request in model.requests] == ["chat", "history_summary", "chat"]
    assert not [request for request in model.requests if CARD in text_of_request(request)]


# -- out ---------------------------------------------------------------------------------------------------------


def test_a_reply_passes_is_replaced_or_refused(drive: Any) -> None:
    """NA-13."""

    def judge(reply: Reply) -> Any:
        if "secret" in reply.text:
            return Refuse("leak", "I must not say that.")
        return replace(reply, text="Good evening.", raw=None) if reply.text == "Good day." else None

    for said, text, reason in (
        ("Hello.", "Hello.", "answered"),
        ("Good day.", "Good evening.", "answered"),
        ("The secret is 7.", "I must not say that.", "leak"),
    ):
        agent = agent_for(ScriptedModel(said, pieces=3), processors(out=[judge]))
        shown = drive.shown(agent, "Go", conversation_id="s")
        assert (shown[-1].text, shown[-1].reason) == (text, reason)
        assert not [e for e in shown if isinstance(e, TextDelta)], "buffered"
        assert "secret" not in json.dumps(agent.conversation("s").export())


def test_a_reply_that_is_refused_is_billed_all_the_same(drive: Any) -> None:
    """NA-2."""
    agent = agent_for(ScriptedModel("No."), processors(out=[lambda _: Refuse()]))
    assert drive(agent, "Go").usage.calls == 1


def test_calls_of_a_reply_that_is_refused_do_not_run(drive: Any) -> None:
    agent = agent_for(ScriptedModel([("card_of", {"who": "Ana"})]), processors(out=[lambda r: Refuse("no calls")]))
    assert drive(agent, "Go", conversation_id="s").reason == "no calls"
    assert not [m for m in agent.conversation("s").transcript if isinstance(m, Answers)]


def test_a_changed_text_is_sent_back_without_the_message_that_has_the_old_one(drive: Any) -> None:
    raw = {"role": "assistant", "content": f"It is {CARD}"}
    same = {"role": "assistant", "content": "Fine."}
    replies = [Reply(raw["content"], raw=raw, wire="openai_chat"), Reply("Fine.", raw=same, wire="openai_chat")]
    agent = agent_for(ScriptedModel(*replies), processors(out=[cards]))
    for _ in replies:
        drive(agent, "Go", conversation_id="s")
    first, second = (m for m in agent.conversation("s").transcript if isinstance(m, ModelReplied))
    assert (first.text, first.raw) == ("It is [card]", None)
    assert second.raw == same


def test_async_processors_are_awaited() -> None:
    async def shout(reply: Reply) -> Reply:
        return replace(reply, text=reply.text.upper())

    agent = agent_for(ScriptedModel("hello", "hello"), processors(out=[shout]))
    assert asyncio.run(agent.arun("Go")).text == "HELLO"
    with pytest.raises(SetupError, match="arun"):
        agent.run("Go")


def test_a_processor_that_raises_ends_the_turn_and_nothing_is_shown(drive: Any) -> None:
    def broken(_: Any) -> None:
        raise KeyError("x")

    agent = agent_for(ScriptedModel(f"It is {CARD}", pieces=2), processors(out=[broken]))
    with pytest.raises(KeyError):
        drive.shown(agent, "Go", conversation_id="s")
    assert CARD not in json.dumps(agent.conversation("s").export())


# -- while it comes in -------------------------------------------------------------------------------------------


def shown_text(shown: list[Any], kind: str = "text") -> str:
    return "".join(e.text for e in shown if isinstance(e, TextDelta) and e.kind == kind)


@pytest.mark.parametrize("pieces", [1, 3, 7, 1_000])
def test_a_redactor_lets_a_reply_be_shown_while_it_comes_in(drive: Any, pieces: int) -> None:
    """NA-13: incremental processors hold back 64 characters."""
    text = f"{'Some words. ' * 30}The card is {CARD}, and {CARD} is another. {'More words. ' * 30}{CARD}"
    agent = agent_for(ScriptedModel(text, pieces=pieces), processors(out=[cards]))
    shown = drive.shown(agent, "Go")
    assert shown_text(shown) == shown[-1].text == text.replace(CARD, "[card]")
    replied = next(place for place, e in enumerate(shown) if isinstance(e, ModelReplied))
    billed = next(place for place, e in enumerate(shown) if isinstance(e, ModelCalled))
    before = shown_text(shown[:billed])
    assert replied > billed
    if pieces < 64:
        assert before, "it is shown while it comes in"
    assert not [e for e in shown if isinstance(e, ReplyDiscarded)]


def test_one_processor_that_needs_the_whole_reply_holds_back_all_of_it(drive: Any) -> None:
    """NA-13: unless all are incremental."""
    for other in (Rewrite(str.upper), lambda reply: None):
        agent = agent_for(ScriptedModel("words " * 90, pieces=5), processors(out=[cards, other]))
        assert shown_text(drive.shown(agent, "Go")) == ""


def test_several_rewrite_one_after_another_and_reasoning_apart(drive: Any) -> None:
    def model(_: CallModel) -> Any:
        for piece in ("card 41111111", "11111111 and "):
            yield TextDelta(piece, "reasoning")
            yield TextDelta(piece)
        yield Reply(f"card {CARD} and ", reasoning=f"card {CARD} and ")

    louder = Rewrite(lambda text: text.replace("[card]", "[CARD]"), 64)
    shown = drive.shown(agent_for(model, processors(out=[cards, louder])), "Go")
    assert shown_text(shown) == shown_text(shown, "reasoning") == shown[-1].text == "card [CARD] and "


def test_what_is_held_back_when_a_reply_breaks_off_is_not_shown(drive: Any) -> None:
    def model(_: CallModel) -> Any:
        yield TextDelta(f"{'x' * 70} 41111111")
        raise ConnectionError("gone")

    shown: list[Any] = []
    agent = agent_for(model, processors(out=[cards]), observe=shown.append)
    with pytest.raises(ConnectionError):
        drive(agent, "Go")
    assert shown_text(shown) == "x" * 15
    assert [e for e in shown if isinstance(e, ReplyDiscarded)]


@given(st.lists(st.sampled_from(["a", "b", "ab", "abab", " ", "x", "ba", "é"]), max_size=40))
def test_in_whatever_pieces_a_text_comes_it_is_rewritten_as_a_whole(pieces: list[str]) -> None:
    for pattern in (r"abab", r"\bab\b", r"b(?=a)", r"(?<=x)a"):
        rewrite = redact(pattern, by="#", look_back=6)
        held = _HeldBack(rewrite)
        assert "".join(map(held.take, pieces)) + held.rest() == re.sub(pattern, "#", "".join(pieces))


# -- stored ------------------------------------------------------------------------------------------------------


def test_what_must_not_be_kept_is_gone_before_anything_is_stored_or_shown(drive: Any) -> None:
    """DESIGN 5.6: of the user, of a tool, of the model, in text and in data; in the store and in the stream."""
    store = MemoryStore()
    raw = {"role": "assistant", "content": CARD}
    model = ScriptedModel([("card_of", {"who": "Ana"})], Reply(f"It is {CARD}", raw=raw, reasoning=CARD))
    agent = agent_for(model, processors(stored=[cards]), store=store)
    said = UserSaid(f"Mine is {CARD}", ({"type": "text", "text": CARD}, {"type": "image", "data": CARD}))
    shown = drive.shown(agent, said, conversation_id="s")
    journal = agent.conversation("s").journal
    parts = next(e for e in journal if isinstance(e, UserSaid)).parts
    assert [part.get("text", part.get("data")) for part in parts] == ["[card]", CARD], "only texts are read"
    kept = json.dumps(store.load("s")).replace(json.dumps(parts[1]), "")
    assert CARD not in kept
    assert kept.count("[card]") >= 6
    assert shown[-1].text == "It is [card]"
    assert CARD not in repr([e for e in shown if not isinstance(e, UserSaid)])
    assert CARD not in text_of_request(model.requests[1]).replace(repr(parts[1]), ""), "what is not kept is not read"


def test_a_tool_still_gets_what_the_model_wrote(drive: Any) -> None:
    got: list[str] = []

    def pay(card: str) -> str:
        """Pay."""
        got.append(card)
        return "paid"

    agent = Agent(
        ScriptedModel([("pay", {"card": CARD})]),
        ToolSearch([tool(pay)], mode="static"),
        layers=[processors(stored=[cards])],
    )
    drive(agent, "Pay")
    assert got == [CARD]


def test_the_value_and_the_end_of_a_turn_are_kept_without_it(drive: Any) -> None:
    agent = agent_for(ScriptedModel(json.dumps({"card": CARD})), processors(stored=[cards]), structured(dict[str, str]))
    assert drive(agent, "Go", conversation_id="s").value == {"card": "[card]"}
    ended = agent.conversation("s").journal[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.value, ended.text) == ({"card": "[card]"}, '{"card": "[card]"}')


def test_errors_are_kept_without_it(drive: Any) -> None:
    agent = agent_for(ScriptedModel(ValueError(f"bad request: {CARD}")), processors(stored=[cards]))
    with pytest.raises(ValueError, match="bad request"):
        drive(agent, "Go", conversation_id="s")
    assert CARD not in json.dumps(agent.conversation("s").export())


def test_where_redacting_fails_nothing_is_stored(drive: Any) -> None:
    def broken(text: str) -> str:
        raise KeyError(text)

    store = MemoryStore()
    with pytest.raises(KeyError):
        drive(agent_for(ScriptedModel(), processors(stored=[broken]), store=store), CARD, conversation_id="s")
    assert CARD not in json.dumps(store.load("s"))


# -- setting it up -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: processors(into=cards), "into must be a list"),
        (lambda: processors(out=print), "out must be a list"),
        (lambda: processors(out=["x"]), "a function or a Rewrite"),
        (lambda: processors(out=[Rewrite(str.upper, -1)]), "look_back"),
        (redact, "needs a pattern"),
        (lambda: redact("("), "regular expressions"),
    ],
)
def test_what_cannot_work_is_said_at_once(make: Any, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        make()


def test_a_processor_that_gives_something_else_is_an_error(drive: Any) -> None:
    with pytest.raises(SetupError, match="returned 'x' where a Reply"):
        drive(agent_for(ScriptedModel("Hi."), processors(out=[lambda _: "x"])), "Go")


@pytest.mark.parametrize("pattern", [r"\d+", r"(?m)^[0-9]*$", r"\d{16}", r"(?s)4.*4"])
@pytest.mark.parametrize("piece", [1, 20])
def test_K26_the_work_of_a_streamed_redaction_grows_with_the_length_of_the_reply(pattern: str, piece: int) -> None:
    """K26: '4' * 40,000 in pieces of 20 took four times as long as half of it; counted in characters, not seconds."""
    redaction = redact(pattern)
    work = []
    for length in (2_000, 4_000, 8_000, 16_000):
        read = 0

        def function(text: str) -> str:
            nonlocal read
            read += len(text)
            return redaction.function(text)

        held, text = _HeldBack(Rewrite(function, 64)), "4" * length
        shown = [held.take(text[at : at + piece]) for at in range(0, length, piece)]
        assert "".join([*shown, held.rest()]) == redaction.function(text)
        work.append(read / length)
    assert max(work[1:]) <= work[0] * 1.5  # how often each character is read
