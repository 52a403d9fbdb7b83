"""The scripted model: the public double for tests of what is around a model."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from toolsearch import ToolCall, ToolSearch
from toolsearch.events.facts import Answers, Reply, TextDelta, Usage
from toolsearch.events.requests import CallModel, Finished
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel


def ask(model: ScriptedModel) -> Any:
    return model(CallModel(()))


def test_each_step_is_a_text_calls_a_reply_a_failure_or_a_function() -> None:
    def add(request: CallModel) -> str:
        return f"{len(request.transcript)} messages"

    own = Reply("my own", model="mine")
    model = ScriptedModel("hello", [("a", {"x": 1}), ("id", "b", "{}")], own, ValueError("boom"), KeyError, add)
    usage = Usage(100, 0, 10)
    assert ask(model) == Reply("hello", usage=usage, model="scripted", stop="stop")
    calls = (ToolCall("c1_0", "a", {"x": 1}), ToolCall("id", "b", "{}"))
    assert ask(model) == Reply(calls=calls, usage=usage, model="scripted", stop="tool_calls")
    assert ask(model) is own
    with pytest.raises(ValueError, match="boom"):
        ask(model)
    with pytest.raises(KeyError):
        ask(model)
    assert ask(model).text == "0 messages"
    assert ask(model).text == "Done."  # after the last step
    assert len(model.requests) == 7


def test_a_function_may_give_any_kind_of_step() -> None:
    steps: list[Any] = ["text", [("a", {})], Reply("own"), ValueError("boom")]
    for step in steps[:-1]:
        assert isinstance(ask(ScriptedModel(lambda request, step=step: step)), Reply)
    with pytest.raises(ValueError, match="boom"):
        ask(ScriptedModel(lambda request: steps[-1]))


def test_texts_come_in_pieces_if_asked_for() -> None:
    pieces = ask(ScriptedModel("abcdefg", pieces=3))
    assert isinstance(pieces, Iterator)
    assert list(pieces) == [
        TextDelta("abc"), TextDelta("def"), TextDelta("g"),
        Reply("abcdefg", usage=Usage(100, 0, 10), model="scripted", stop="stop"),
    ]  # fmt: skip


def test_it_costs_what_is_written_down() -> None:
    assert ask(ScriptedModel("hi", usage=Usage(7, 3, 1))).usage == Usage(7, 3, 1)


def test_a_whole_agent_can_be_written_down(drive: Any) -> None:
    """What it was asked with shows what a real model would have seen."""

    def weather(city: str) -> dict[str, Any]:
        """Weather in a city."""
        return {"city": city, "celsius": 17}

    def answer(request: CallModel) -> str:
        results = request.transcript[-1]
        assert isinstance(results, Answers)
        return f"It is {json.loads(results.results[0].content)['celsius']} °C."

    model = ScriptedModel(
        [("search_tools", {"queries": ["weather"]})], [("weather", {"city": "Rome"})], answer, pieces=2
    )
    result = drive(Agent(model, ToolSearch([weather], mode="append")), "How is Rome?")
    assert isinstance(result, Finished)
    assert (result.text, result.usage.calls) == ("It is 17 °C.", 3)
    assert [len(request.tools) for request in model.requests] == [1, 2, 2]
