"""Time-outs of tools, models and turns: NA-11; case C27."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from toolsearch import SetupError, ToolContext, ToolSearch, tool
from toolsearch.events.facts import Answers, ModelCalled, RunEnded
from toolsearch.layers import retry, timeout
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel

SHORT = 0.05
LONG = 20.0


class Tools:
    """One that answers, and one that does so only when the test is over."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.told_to_stop = threading.Event()
        tools = [tool(self.fast), tool(self.never)]
        self.search = ToolSearch(tools, mode="static")

    def fast(self) -> str:
        """Answers at once."""
        return "fast result"

    def never(self, context: ToolContext) -> str:
        """Does not answer."""
        if context.cancelled.wait(LONG):
            self.told_to_stop.set()
        return "late"

    def agent(self, model: Any, *layers: Any) -> Agent:
        return Agent(model, self.search, layers=layers)


def results(agent: Agent, session: str = "s") -> list[tuple[str, str]]:
    transcript = agent.conversation(session).transcript
    return [(r.status, r.content) for m in transcript if isinstance(m, Answers) for r in m.results]


def test_a_tool_that_never_returns_is_timed_out_and_the_others_stay(drive: Any) -> None:
    """C27: the fast result is kept, the run goes on, and the tool is told to stop."""
    tools = Tools()
    agent = tools.agent(ScriptedModel([("fast", {}), ("never", {})], "Only one answered."), timeout(tool=SHORT))
    result = drive(agent, "Go", conversation_id="s")
    assert result.text == "Only one answered."
    assert [status for status, _ in results(agent)] == ["ok", "timed_out"]
    assert "timed out" in results(agent)[1][1]
    assert "Check before you try again" in results(agent)[1][1]
    assert tools.told_to_stop.wait(LONG)


def test_each_tool_may_have_its_own_bound(drive: Any) -> None:
    tools = Tools()
    per_tool = {"never": SHORT, "fast": None}
    agent = tools.agent(ScriptedModel([("fast", {}), ("never", {})], "Done."), timeout(tool=LONG, per_tool=per_tool))
    drive(agent, "Go", conversation_id="s")
    assert [status for status, _ in results(agent)] == ["ok", "timed_out"]


def test_a_model_that_does_not_answer_raises_and_the_conversation_is_whole(drive: Any) -> None:
    over = threading.Event()
    agent = Tools().agent(ScriptedModel(lambda _: over.wait(LONG) and "late", "Here."), timeout(model=SHORT))
    with pytest.raises(TimeoutError, match="no answer within"):
        drive(agent, "Go", conversation_id="s")
    over.set()
    journal = agent.conversation("s").journal
    assert next(e.error for e in journal if isinstance(e, ModelCalled)).startswith("TimeoutError")
    assert isinstance(journal[-1], RunEnded)
    assert drive(agent, "Again", conversation_id="s").text == "Here."


def test_a_late_model_is_asked_again_where_a_retry_is_outside(drive: Any) -> None:
    over = threading.Event()
    model = ScriptedModel(lambda _: over.wait(LONG) and "late", "Here.")
    agent = Tools().agent(model, retry(seconds=0), timeout(model=SHORT))
    assert drive(agent, "Go").text == "Here."
    over.set()


def test_a_turn_that_takes_too_long_raises_and_its_calls_are_answered(drive: Any) -> None:
    agent = Tools().agent(ScriptedModel([("never", {})], "Here."), timeout(turn=SHORT))
    with pytest.raises(TimeoutError, match="the turn took longer"):
        drive(agent, "Go", conversation_id="s")
    assert agent.conversation("s").open == ()
    assert results(agent)[0][0] == "interrupted"


def test_a_search_is_bounded_only_by_name(drive: Any) -> None:
    tools = [{"name": f"tool_{n}", "description": "does things " * 60} for n in range(40)]
    model = ScriptedModel([("search_tools", {"queries": ["things"]})], "Done.")
    agent = Agent(model, ToolSearch(tools, mode="append"), layers=[timeout(tool=1e-9)])
    drive(agent, "Go", conversation_id="s")
    assert [status for status, _ in results(agent)] == ["ok"]


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "bounds nothing"), ({"tool": 0}, "tool must be"), ({"per_tool": {"x": -1}}, r"per_tool\['x'\] must be")],
)
def test_what_cannot_work_is_said_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        timeout(**options)
