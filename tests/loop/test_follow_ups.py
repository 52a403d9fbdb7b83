"""Follow-up questions: NA-2 (after the structured pass), NA-15; case C47."""

from __future__ import annotations

from typing import Any

import pytest

from toolsearch import SetupError, ToolSearch, tool
from toolsearch.events.facts import ModelCalled, Noted, ReplyDiscarded, TextDelta, Usage
from toolsearch.layers import follow_ups, follow_ups_of, structured
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel


@tool
def look() -> str:
    """Look at something."""
    return "seen"


def agent_for(model: ScriptedModel, *others: Any, **options: Any) -> Agent:
    return Agent(model, ToolSearch([look], mode="static"), layers=[follow_ups(**options), *others])


def journal(agent: Agent) -> Any:
    return agent.conversation("s").journal


def test_questions_follow_the_final_answer_and_only_that(drive: Any) -> None:
    model = ScriptedModel([("look", {})], "It is there.", "1. Where is it?\n2. Who put it there?\n3. Why?\n4. When?")
    agent = agent_for(model)
    result = drive(agent, "Look", conversation_id="s")
    assert (result.text, result.reason) == ("It is there.", "answered")
    assert follow_ups_of(journal(agent)) == ["Where is it?", "Who put it there?", "Why?"]
    assert len(model.requests) == 3
    assert len(agent.conversation("s").transcript) == 4, "the model does not read them"


def test_the_call_is_billed_and_has_no_tools(drive: Any) -> None:
    """NA-15; C47."""
    model = ScriptedModel("There.", "Where?")
    agent = agent_for(model)
    assert drive(agent, "Look", conversation_id="s").usage == Usage(200, 0, 20, 2)
    assert [e.purpose for e in journal(agent) if isinstance(e, ModelCalled)] == ["chat", "follow_ups"]
    assert (model.requests[1].tools, model.requests[1].schema) == ((), None)
    assert "up to 3 short questions" in model.requests[1].transcript[-1].text


@pytest.mark.parametrize("answer", [ConnectionError("gone"), [("look", {})], "", "Nothing to ask.", "x" * 300 + "?"])
def test_a_failure_costs_no_more_than_its_call(drive: Any, answer: Any) -> None:
    agent = agent_for(ScriptedModel("There.", answer))
    result = drive(agent, "Look", conversation_id="s")
    assert (result.text, result.usage.calls) == ("There.", 2)
    assert follow_ups_of(journal(agent)) == []
    assert not [e for e in journal(agent) if isinstance(e, Noted)]


def test_what_was_shown_of_the_answer_stands(drive: Any) -> None:
    shown = drive.shown(agent_for(ScriptedModel("There.", "Where?", pieces=2)), "Look")
    assert "".join(e.text for e in shown if isinstance(e, TextDelta)) == "There."
    assert not [e for e in shown if isinstance(e, ReplyDiscarded)]


def test_they_come_after_the_structured_pass(drive: Any) -> None:
    """NA-2."""
    agent = agent_for(ScriptedModel("no", '{"a": 1}', "Why one?"), structured(dict[str, int]), n=1)
    assert drive(agent, "Look", conversation_id="s").value == {"a": 1}
    purposes = [e.purpose for e in journal(agent) if isinstance(e, ModelCalled)]
    assert purposes == ["chat", "structured_output", "follow_ups"]
    assert follow_ups_of(journal(agent)) == ["Why one?"]


def test_those_of_an_earlier_turn_are_gone() -> None:
    agent = agent_for(ScriptedModel("There.", "Where?", "Here.", "Nothing."))
    agent.run("Look", conversation_id="s")
    agent.run("Look", conversation_id="s")
    assert follow_ups_of(journal(agent)) == []
    assert follow_ups_of([]) == []


@pytest.mark.parametrize(
    ("told", "questions"),
    [
        ("Here are some:\n- Where is it?\n* Who?\n", ["Where is it?", "Who?"]),
        ('["Where?", "Who?", 3]', ["Where?", "Who?"]),
        ("Where?\nWhere?", ["Where?"]),
        ("どこですか？", ["どこですか？"]),
        ('"2) What about **2024**?"', ["2) What about **2024**?"]),
    ],
)
def test_questions_are_read_as_models_write_them(told: str, questions: list[str]) -> None:
    agent = agent_for(ScriptedModel("There.", told))
    agent.run("Look", conversation_id="s")
    assert follow_ups_of(journal(agent)) == questions


@pytest.mark.parametrize(("options", "message"), [({"n": 0}, "n must be"), ({"seconds": 0}, "seconds must be")])
def test_what_cannot_work_is_said_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        follow_ups(**options)
