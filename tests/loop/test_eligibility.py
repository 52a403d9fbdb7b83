"""Stopping by your own predicate: SA-40."""

from __future__ import annotations

from typing import Any

import pytest

from toolsearch import SetupError, ToolSearch, tool
from toolsearch.calls import ToolCall
from toolsearch.events.facts import Answers, Reply
from toolsearch.events.requests import Paused, Round
from toolsearch.layers import approval, eligibility
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel


class Desk:
    def __init__(self, *script: Any) -> None:
        self.ran: list[str] = []
        self.model = ScriptedModel(*script)
        self.search = ToolSearch([tool(self.look), tool(self.pay, kind="action")], mode="static")

    def look(self) -> str:
        """Look at something."""
        self.ran.append("look")
        return "seen"

    def pay(self) -> str:
        """Pay somebody."""
        self.ran.append("pay")
        return "paid"

    def agent(self, *layers: Any) -> Agent:
        return Agent(self.model, self.search, layers=layers)


def says(text: str, *names: str) -> Reply:
    return Reply(text, tuple(ToolCall(f"{name}_{place}", name, {}) for place, name in enumerate(names)))


def results(agent: Agent) -> list[tuple[str, str]]:
    transcript = agent.conversation("s").transcript
    return [(r.status, r.content) for m in transcript if isinstance(m, Answers) for r in m.results]


def test_a_reply_that_is_not_eligible_is_the_answer_and_none_of_its_calls_runs(drive: Any) -> None:
    """SA-40 gave back a reply with open calls: the conversation could not go on."""
    desk = Desk(says("Enough.", "look", "look"), "Hello.")
    agent = desk.agent(eligibility(lambda _: False))
    result = drive(agent, "Go", conversation_id="s")
    assert (result.text, result.reason) == ("Enough.", "not eligible")
    assert desk.ran == []
    assert [status for status, _ in results(agent)] == ["cancelled", "cancelled"]
    assert "did not run: the program ended the turn here" in results(agent)[0][1]
    assert drive(agent, "Go on", conversation_id="s").text == "Hello.", "the conversation is whole"


def test_the_predicate_sees_the_round_and_the_turn(drive: Any) -> None:
    def only_two(asked: Round) -> bool:
        return asked.turn.rounds <= 2 and all(call.name == "look" for call in asked.calls)

    desk = Desk(says("One", "look"), says("Two", "look"), says("Three", "look"))
    result = drive(desk.agent(eligibility(only_two, reason="two rounds")), "Go")
    assert (result.text, result.reason, desk.ran) == ("Three", "two rounds", ["look", "look"])


def test_the_predicate_may_be_async() -> None:
    async def never(_: Round) -> bool:
        return False

    import asyncio

    desk = Desk(says("Enough.", "look"))
    assert asyncio.run(desk.agent(eligibility(never)).arun("Go")).reason == "not eligible"


@pytest.mark.parametrize("predicate", [lambda _: 1 / 0, lambda _: "no"])
def test_a_predicate_that_fails_lets_nothing_run(drive: Any, predicate: Any) -> None:
    desk = Desk(says("Go", "look"), "Sorry.")
    agent = desk.agent(eligibility(predicate))
    assert drive(agent, "Go", conversation_id="s").text == "Sorry."
    assert desk.ran == []
    assert results(agent)[0][0] == "denied"


def test_a_round_that_waited_for_a_person_is_not_judged_again(drive: Any) -> None:
    asked: list[Round] = []

    def once(given: Round) -> bool:
        asked.append(given)
        return len(asked) == 1

    desk = Desk(says("Paying.", "pay"), "Paid.")
    agent = desk.agent(eligibility(once), approval())
    paused = drive(agent, "Pay", conversation_id="s")
    assert isinstance(paused, Paused)
    assert drive(agent, conversation_id="s", decisions={paused.waiting[0].id: True}).text == "Paid."
    assert desk.ran == ["pay"]


@pytest.mark.parametrize(
    ("options", "message"), [({"predicate": 3}, "predicate must"), ({"reason": ""}, "reason must")]
)
def test_what_cannot_work_is_said_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        eligibility(**{"predicate": lambda _: True, **options})
