"""Extra arguments to a consumer: SA-48, BK-3 (think)."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from toolsearch import SetupError, ToolSearch, tool
from toolsearch.calls import NativeDelivery, ToolCall
from toolsearch.events.facts import Answers, ModelReplied, Reply
from toolsearch.events.requests import Paused
from toolsearch.layers import approval, limits, thought
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel
from toolsearch.wires import openai_chat

FIELDS = {"innerThought": "Why this call, in one sentence"}


class Mood(Enum):
    SURE = "sure"
    GUESS = "guess"


class Thought(BaseModel):
    innerThought: str = Field(description="Why this call")  # noqa: N815
    confidence: Literal["low", "high"] = "low"
    mood: Mood | None = None


class Desk:
    """A strict tool, one with an argument of the extra one's name, and what both got; what the consumer got."""

    def __init__(self, *script: Any, mode: Any = "static") -> None:
        self.got: list[dict[str, Any]] = []
        self.told: list[tuple[str, Any, Any]] = []
        self.model = ScriptedModel(*script)
        tools = [tool(self.pay, kind="action", server="desk"), tool(self.muse)]
        self.search = ToolSearch(tools, mode=mode)

    def pay(self, who: str, amount: int = 1) -> str:
        """Pay somebody."""
        self.got.append({"who": who, "amount": amount})
        return "paid"

    def muse(self, innerThought: str) -> str:  # noqa: N803
        """Think aloud."""
        self.got.append({"innerThought": innerThought})
        return "mused"

    def consumer(self, tool_id: str, raw: Any, extras: Any) -> None:
        self.told.append((tool_id, raw, extras))

    def agent(self, fields: Any = FIELDS, *layers: Any, consumer: Any = None, **options: Any) -> Agent:
        layer = thought(fields, consumer or self.consumer, **options)
        return Agent(self.model, self.search, layers=[layer, *layers])


def results(agent: Agent) -> list[tuple[str, str]]:
    transcript = agent.conversation("s").transcript
    return [(r.status, r.content) for m in transcript if isinstance(m, Answers) for r in m.results]


@pytest.mark.parametrize("as_text", [True, False])
def test_extra_arguments_go_to_the_consumer_and_not_to_the_tool(drive: Any, as_text: bool) -> None:
    """SA-48: (definition, raw input, parsed record); stripped, or this strict tool would refuse the call."""
    given: Any = {"innerThought": "Rent is due: é", "who": "Ana", "amount": 5}
    given = json.dumps(given, ensure_ascii=False) if as_text else given
    desk = Desk([("pay", given)], "Paid.")
    agent = desk.agent()
    assert drive(agent, "Pay", conversation_id="s").text == "Paid."
    assert desk.told == [("desk/pay", given, {"innerThought": "Rent is due: é"})]
    assert desk.got == [{"who": "Ana", "amount": 5}]
    (asked,) = next(m for m in agent.conversation("s").transcript if isinstance(m, ModelReplied)).calls
    plain = json.loads(asked.arguments) if as_text else asked.arguments
    assert plain == {"who": "Ana", "amount": 5}


def test_every_tool_is_shown_with_them_first_and_the_same_in_every_request(drive: Any) -> None:
    desk = Desk([("pay", {"innerThought": "x", "who": "Ana"})], "Paid.")
    drive(desk.agent(), "Pay")
    first, second = ([openai_chat.definition(s) for s in request.tools] for request in desk.model.requests)
    assert json.dumps(first) == json.dumps(second)
    pay = first[0]["function"]["parameters"]
    assert list(pay["properties"]) == ["innerThought", "who", "amount"]
    assert pay["required"] == ["innerThought", "who"]
    assert pay["properties"]["innerThought"] == {"type": "string", "description": FIELDS["innerThought"]}
    assert "innerThought" not in desk.search.catalog["desk/pay"].input_schema["properties"]


def test_a_tool_keeps_an_argument_of_its_own(drive: Any) -> None:
    desk = Desk([("muse", {"innerThought": "mine"})], "Mused.")
    drive(desk.agent(), "Muse")
    assert desk.got == [{"innerThought": "mine"}]
    assert desk.told == []


def test_a_record_is_parsed_for_the_consumer(drive: Any) -> None:
    given = {"innerThought": "due", "confidence": "high", "mood": "sure", "who": "Ana"}
    desk = Desk([("pay", given)], "Paid.")
    drive(desk.agent(Thought), "Pay")
    assert desk.told[0][2] == Thought(innerThought="due", confidence="high", mood=Mood.SURE)
    schema = desk.model.requests[0].tools[0].tool.input_schema
    assert schema["required"] == ["innerThought", "who"]
    assert list(schema["$defs"]) == ["thought.Mood"]
    assert "#/$defs/thought.Mood" in json.dumps(schema["properties"])
    assert "title" not in schema["properties"]["confidence"]


def test_a_call_without_them_runs_all_the_same(drive: Any) -> None:
    desk = Desk([("pay", {"who": "Ana"})], "Paid.")
    drive(desk.agent(), "Pay")
    assert (desk.told, desk.got) == ([], [{"who": "Ana", "amount": 1}])


def test_extra_arguments_that_do_not_fit_are_not_given_on_and_hinder_nothing(drive: Any) -> None:
    desk = Desk([("pay", {"innerThought": "x", "confidence": "a lot", "who": "Ana"})], "Paid.")
    drive(desk.agent(Thought), "Pay")
    assert (desk.told, desk.got) == ([], [{"who": "Ana", "amount": 1}])


def test_a_consumer_that_raises_hinders_nothing(drive: Any) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("x")

    desk = Desk([("pay", {"innerThought": "x", "who": "Ana"})], "Paid.")
    assert drive(desk.agent(consumer=broken), "Pay").text == "Paid."
    assert desk.got == [{"who": "Ana", "amount": 1}]


def test_a_consumer_may_be_async() -> None:
    import asyncio

    desk = Desk([("pay", {"innerThought": "x", "who": "Ana"})], "Paid.")

    async def consumer(*told: Any) -> None:
        desk.told.append(told)  # type: ignore[arg-type]

    asyncio.run(desk.agent(consumer=consumer).arun("Pay"))
    assert len(desk.told) == 1
    desk.model.requests.clear()
    with pytest.raises(SetupError, match="arun"):
        desk.agent(consumer=consumer).run("Pay")


def test_the_providers_own_message_stays_as_the_model_wrote_it(drive: Any) -> None:
    raw = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function"}]}
    reply = Reply(calls=(ToolCall("c1", "pay", {"innerThought": "x", "who": "Ana"}),), raw=raw, wire="openai_chat")
    desk = Desk(reply, "Paid.")
    agent = desk.agent()
    drive(agent, "Pay", conversation_id="s")
    assert next(m for m in agent.conversation("s").transcript if isinstance(m, ModelReplied)).raw == raw


def test_other_thoughts_do_not_make_another_call(drive: Any) -> None:
    calls = [[("pay", {"innerThought": f"thought {n}", "who": "Ana"})] for n in range(3)]
    desk = Desk(*calls, "Paid.")
    agent = desk.agent(FIELDS, limits(identical=2))
    drive(agent, "Pay", conversation_id="s")
    assert [status for status, _ in results(agent)] == ["ok", "ok", "limit"]


def test_a_person_is_asked_without_them(drive: Any) -> None:
    desk = Desk([("pay", {"innerThought": "x", "who": "Ana"})], "Paid.")
    paused = drive(desk.agent(FIELDS, approval()), "Pay")
    assert isinstance(paused, Paused)
    assert paused.waiting[0].arguments == {"who": "Ana"}
    assert "innerThought" not in paused.waiting[0].question


def test_in_the_bridge_they_are_the_bridges_own(drive: Any) -> None:
    desk = Desk(
        [("search_tools", {"queries": ["pay somebody"]})],
        [("call_tool", {"innerThought": "due", "name": "pay", "arguments": {"who": "Ana"}})],
        "Paid.",
        mode="bridge",
    )
    agent = desk.agent()
    assert drive(agent, "Pay", conversation_id="s").text == "Paid."
    assert [(tool_id, extras) for tool_id, _, extras in desk.told] == [("pay", {"innerThought": "due"})]
    assert desk.got == [{"who": "Ana", "amount": 1}]
    search, bridge = (shown.tool.input_schema["properties"] for shown in desk.model.requests[0].tools)
    assert "innerThought" not in search
    assert list(bridge) == ["innerThought", "name", "arguments"]


def test_found_tools_are_shown_with_them_too(drive: Any) -> None:
    desk = Desk(
        [("search_tools", {"queries": ["pay somebody"]})],
        [("pay", {"innerThought": "due", "who": "Ana"})],
        "Paid.",
        mode="append",
    )
    drive(desk.agent(), "Pay")
    assert [shown.name for shown in desk.model.requests[1].tools if shown.name == "pay"]
    assert "innerThought" in desk.model.requests[1].tools[1].tool.input_schema["properties"]
    assert desk.got == [{"who": "Ana", "amount": 1}]


def test_unstripped_they_reach_a_tool_that_takes_anything(drive: Any) -> None:
    """SA-48: removal can be off."""
    got: list[dict[str, Any]] = []

    def anything(**given: Any) -> str:
        """Takes anything."""
        got.append(given)
        return "ok"

    desk = Desk([("anything", {"innerThought": "x", "b": 1})], "Done.")
    desk.search = ToolSearch([tool(anything)], mode="static")
    drive(desk.agent(strip=False), "Go")
    assert got == [{"innerThought": "x", "b": 1}]
    assert len(desk.told) == 1


@pytest.mark.parametrize("arguments", ["{broken", "[1]", None])
def test_arguments_that_are_none_are_answered_as_ever(drive: Any, arguments: Any) -> None:
    desk = Desk([("pay", arguments)], "Sorry.")
    agent = desk.agent()
    drive(agent, "Pay", conversation_id="s")
    assert results(agent)[0][0] == "invalid_arguments"
    assert desk.told == []


class Empty(BaseModel):
    pass


@pytest.mark.parametrize("fields", [{}, {"x": 3}, {1: "text"}, Empty, 5, "innerThought"])
def test_fields_that_are_none_are_said_at_once(fields: Any) -> None:
    """SA-48: at least one field."""
    with pytest.raises(SetupError, match="thought needs"):
        thought(fields, print)


def test_a_consumer_is_required() -> None:
    """SA-48."""
    with pytest.raises(SetupError, match="consumer must be"):
        thought(FIELDS, None)  # type: ignore[arg-type]


class Native(ScriptedModel):
    """A model whose wire delivers natively."""

    native = NativeDelivery()


@pytest.mark.parametrize("declares", [True, False])
def test_every_definition_has_the_extra_arguments_in_the_mode_native_too(declares: bool) -> None:
    """SA-48: those that are deferred, and those that an answer brings."""
    desk = Desk(mode="native")
    desk.model = Native(
        [("search_tools", {"queries": ["pay somebody"]})], [("pay", {"innerThought": "Owed.", "who": "bo"})]
    )
    desk.model.native = NativeDelivery(declares=declares)  # type: ignore[attr-defined]
    desk.agent().run("Pay bo.")
    asked = desk.model.requests[-1]
    declared = [shown.tool.input_schema for shown in asked.deferred if shown.name == "pay"]
    listed = [shown.tool.input_schema for shown in asked.tools if shown.name == "pay"]
    brought = [loaded.input_schema for message in asked.transcript if isinstance(message, Answers)
               for result in message.results for loaded in result.loaded if loaded.name == "pay"]  # fmt: skip
    assert (len(declared), len(listed), len(brought)) == (int(declares), 1, 1)
    assert {"innerThought", "who", "amount"} == {*listed[0]["properties"]}
    assert [*listed, *declared] == brought * (1 + declares)
    assert desk.told == [("desk/pay", {"innerThought": "Owed.", "who": "bo"}, {"innerThought": "Owed."})]
    assert desk.got == [{"who": "bo", "amount": 1}]
    requests = desk.model.requests
    assert all(now.deferred == requests[0].deferred for now in requests)
