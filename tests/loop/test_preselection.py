"""What comes with a message of the user in an agent's conversation: once, as a fact, the same in all later requests."""

from __future__ import annotations

import re
from typing import Any

import pytest

from toolsearch import Caller, ToolSearch
from toolsearch.delegation import delegate
from toolsearch.events.facts import Answers, ToolsFound, ToolsRevealed, UserSaid
from toolsearch.events.requests import CallModel, Paused
from toolsearch.layers import approval, history, memory, processors, redact
from toolsearch.loop.agent import Agent
from toolsearch.loop.conversation import Conversation
from toolsearch.stores import MemoryStore
from toolsearch.testing import ScriptedModel
from toolsearch.wires import anthropic, openai_chat

TOOLS = [
    {"name": "get_forecast", "server": "sky", "description": "Weather forecast for a city", "run": lambda: "rain"},
    {"name": "send_mail", "description": "Send an e-mail to somebody", "kind": "action", "run": lambda: "sent"},
    {"name": "rotate_key", "description": "Rotate a secret key", "roles": ["admin"], "run": lambda: "new"},
]
WEATHER, MAIL = "What is the weather forecast for Oslo?", "Now send an e-mail"
ADDED = "\n\n[Loaded for this message, if it fits: get_forecast.]"


def searching(**options: Any) -> ToolSearch:
    return ToolSearch(TOOLS, "keyword", **{"preselect": 1, **options})


def said(request: CallModel) -> list[str]:
    return [message.text for message in request.transcript if isinstance(message, UserSaid)]


def names(request: CallModel) -> list[str]:
    return [shown.name for shown in request.tools]


def revealed(agent: Agent, conversation_id: str = "s") -> list[ToolsRevealed]:
    return [fact for fact in agent.conversation(conversation_id).journal if isinstance(fact, ToolsRevealed)]


@pytest.mark.parametrize("mode", ["append", "bridge", "auto"])
def test_the_message_keeps_its_bytes_in_every_later_request_and_after_a_restart(drive: Any, mode: Any) -> None:
    search = searching(mode=mode, auto_tools=0, auto_tokens=0)
    model = ScriptedModel([("get_forecast", {})], "Rain.", "Sent.", "You are welcome.")
    agent = Agent(model, search, store=MemoryStore(), actions="run")
    for text in (WEATHER, MAIL, "Thank you"):
        drive(agent, text, conversation_id="s")
    first = said(model.requests[0])[0]
    assert first.startswith(f"{WEATHER}\n\n[Loaded for this message, if it fits")
    assert {said(request)[0] for request in model.requests} == {first}
    assert [len(said(request)) for request in model.requests] == [1, 1, 2, 3]
    assert said(model.requests[-1])[2] == "Thank you"
    facts = revealed(agent)
    assert [fact.loaded for fact in facts] == [("sky/get_forecast",), ("send_mail",)]
    assert [WEATHER + fact.said for fact in facts[:1]] == [first]
    journal = agent.conversation("s").export()
    again = Conversation.replay(search, journal, conversation_id="s")
    assert again.transcript == agent.conversation("s").transcript
    assert [fact.text for fact in again.journal if isinstance(fact, UserSaid)] == [WEATHER, MAIL, "Thank you"]


def test_the_first_request_has_the_tool_and_no_round_is_lost(drive: Any) -> None:
    model = ScriptedModel([("get_forecast", {})], "Rain.")
    assert drive(Agent(model, searching()), WEATHER).text == "Rain."
    assert names(model.requests[0]) == ["search_tools", "get_forecast"]
    assert len(model.requests) == 2


@pytest.mark.parametrize("options", [{}, {"mode": "bridge"}, {"mode": "auto"}])
def test_by_default_nothing_comes(drive: Any, options: dict[str, Any]) -> None:
    """With "auto" so few tools are all shown."""
    model = ScriptedModel("Well.")
    drive(Agent(model, ToolSearch(TOOLS, "keyword", **options)), WEATHER)
    assert said(model.requests[0]) == [WEATHER]


def test_an_agent_may_say_otherwise_than_the_setting(drive: Any) -> None:
    model = ScriptedModel("Well.", "Rain.")
    drive(Agent(model, searching(), preselect=0), WEATHER)
    drive(Agent(model, searching(preselect=0), preselect=1), WEATHER)
    assert [said(request) for request in model.requests] == [[WEATHER], [WEATHER + ADDED]]


def test_a_turn_that_goes_on_after_a_pause_searches_no_second_time(drive: Any) -> None:
    model = ScriptedModel([("c1", "send_mail", {})], "Sent.")
    agent = Agent(model, searching(), layers=[approval()], store=MemoryStore())
    paused = drive(agent, MAIL, conversation_id="s")
    assert isinstance(paused, Paused)
    assert len(revealed(agent)) == 1
    drive(agent, conversation_id="s", decisions={"c1": True})
    assert len(revealed(agent)) == 1
    assert said(model.requests[0]) == said(model.requests[1])


def test_a_new_message_to_a_paused_turn_is_searched_as_any_other(drive: Any) -> None:
    model = ScriptedModel([("c1", "send_mail", {})], "Rain.")
    agent = Agent(model, searching(), layers=[approval()], store=MemoryStore())
    drive(agent, MAIL, conversation_id="s")
    drive(agent, WEATHER, conversation_id="s")
    assert said(model.requests[1])[1] == WEATHER + ADDED


def test_a_turn_that_fails_and_is_asked_for_again_keeps_what_came(drive: Any) -> None:
    model = ScriptedModel(OSError("the line is down"), "Rain.")
    agent = Agent(model, searching(), store=MemoryStore())
    with pytest.raises(OSError, match="the line is down"):
        drive(agent, WEATHER, conversation_id="s")
    drive(agent, WEATHER, conversation_id="s")
    assert said(model.requests[-1]) == [WEATHER + ADDED, WEATHER], "the tool is loaded already"
    assert "get_forecast" in names(model.requests[-1])


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        (UserSaid(WEATHER, ({"type": "image_url", "image_url": {"url": "data:,"}},)), WEATHER + ADDED),
        (UserSaid("Please:", ({"type": "text", "text": WEATHER},)), f"Please:{ADDED}"),
        (UserSaid("", ({"type": "image_url", "image_url": {"url": "data:,weather forecast"}},)), ""),
        (UserSaid(" "), " "),
        (UserSaid(""), ""),
    ],
)
def test_the_words_of_all_parts_are_searched_and_images_are_not(drive: Any, message: UserSaid, wanted: str) -> None:
    model = ScriptedModel("Well.")
    drive(Agent(model, searching()), message)
    assert said(model.requests[0]) == [wanted]


def test_the_wires_send_the_text_as_part_of_the_users_message(drive: Any) -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    model = ScriptedModel("Rain.", "Rain.")
    agent = Agent(model, searching())
    drive(agent, WEATHER)
    drive(agent, UserSaid(WEATHER, (image,)))
    plain, with_image = (request.transcript for request in model.requests)
    text = {"type": "text", "text": WEATHER + ADDED}
    assert openai_chat.messages_for(plain) == [{"role": "user", "content": WEATHER + ADDED}]
    translated = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    assert openai_chat.messages_for(with_image) == [{"role": "user", "content": [text, translated]}]
    assert anthropic.messages_for(plain) == [{"role": "user", "content": [text]}]
    assert anthropic.messages_for(with_image) == [{"role": "user", "content": [text, image]}]


def test_what_is_redacted_is_not_searched_and_stands_nowhere(drive: Any) -> None:
    """The words are searched as they are stored: a search is part of the session that is stored, too."""
    model = ScriptedModel("Rain.")
    layers = [processors(stored=[redact("weather")])]
    agent = Agent(model, searching(), layers=layers, store=MemoryStore())
    drive(agent, "weather forecast", conversation_id="s")
    assert "[redacted] forecast" in said(model.requests[0])[0]
    assert len(revealed(agent)) == 1
    assert "weather" not in re.sub(r"description.*?\]", "", repr(agent.conversation("s").journal)).lower()


def test_what_comes_goes_with_its_message_when_the_history_is_cut(drive: Any) -> None:
    model = ScriptedModel("Rain.", "Sent.", "Well.", "Well.")
    agent = Agent(model, searching(), layers=[memory(keep="answers"), history(messages=3)], actions="run")
    for text in (WEATHER, MAIL, "Thank you", "Good-bye"):
        drive(agent, text, conversation_id="s")
    last = said(model.requests[-1])
    assert WEATHER + ADDED not in last
    assert last[-1] == "Good-bye"
    assert "get_forecast" in names(model.requests[-1]), "what was found stays"


def test_a_child_agent_searches_the_words_of_its_task_for_the_same_caller(drive: Any) -> None:
    child = ScriptedModel("Done.", "Done.")
    helper = delegate(Agent(child, searching()), "helper", "Does it.")
    for caller, wanted in ((Caller("eve"), []), (Caller("root", roles={"admin"}), ["rotate_key"])):
        parent = ScriptedModel([("helper", {"task": "rotate the secret key"})], "Done.")
        drive(Agent(parent, ToolSearch([helper], mode="static", preselect=1)), "Go", caller=caller)
        assert names(child.requests[-1])[1:] == wanted
        assert [message for message in parent.requests[-1].transcript if isinstance(message, Answers)]
        assert said(parent.requests[-1]) == ["Go"]


def test_the_model_can_search_all_the_same(drive: Any) -> None:
    model = ScriptedModel([("search_tools", {"queries": ["weather forecast", "send e-mail"]})], "Well.")
    agent = Agent(model, searching(), store=MemoryStore())
    drive(agent, WEATHER, conversation_id="s")
    assert names(model.requests[-1]) == ["search_tools", "get_forecast", "send_mail"]
    assert [f.loaded for f in agent.conversation("s").journal if isinstance(f, ToolsFound)] == [("send_mail",)]


def test_a_journal_from_before_has_no_such_text(drive: Any) -> None:
    """What an earlier version stored: tools were loaded, and the message stayed as it was."""
    agent = Agent(ScriptedModel("Rain."), searching(), store=MemoryStore())
    drive(agent, WEATHER, conversation_id="s")
    journal = [{k: v for k, v in fact.items() if k != "said"} for fact in agent.conversation("s").export()]
    again = Conversation.replay(searching(), journal, conversation_id="s")
    assert [each.text for each in again.transcript if isinstance(each, UserSaid)] == [WEATHER]
    assert [each.id for each in again.session.loaded] == ["sky/get_forecast"]


def test_the_directory_keeps_its_bytes_over_the_turns_of_a_conversation(drive: Any) -> None:
    """Each turn restores the session from the journal: also where the first turn neither searched nor called."""
    search = searching(directory=200, preselect=0)
    model = ScriptedModel("Hello.", "Well.", "Well.")
    agent = Agent(model, search, system="Be brief.", store=MemoryStore())
    drive(agent, "Hi", conversation_id="s")
    search.catalog.extend([{"name": "new_one", "description": "A new one"}])
    drive(agent, "And?", conversation_id="s")
    drive(agent, "Hi", conversation_id="other")
    assert model.requests[0].system == model.requests[1].system
    assert "new_one" in model.requests[2].system
    assert [fact.loaded for fact in revealed(agent)] == [()]
