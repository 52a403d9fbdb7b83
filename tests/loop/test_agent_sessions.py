"""What a `ToolSearch` offers its sessions, an agent's conversations have too: SA-12, SA-20, SA-23, NA-4, BK-1."""

from __future__ import annotations

import gc
import logging
import threading
from typing import Any

import pytest

from toolsearch import Caller, Catalog, Session, SetupError, StateError, ToolSearch, tool
from toolsearch.events.facts import ToolsRevealed
from toolsearch.events.requests import CallModel, Paused
from toolsearch.layers import approval, limits
from toolsearch.loop.agent import Agent
from toolsearch.stores import MemoryStore
from toolsearch.testing import FixedIndex, ScriptedModel

TOOLS = [
    {"name": "get_forecast", "server": "sky", "description": "Weather forecast for a city", "run": lambda: "rain"},
    {"name": "send_mail", "description": "Send an e-mail to somebody", "run": lambda: "sent"},
    {"name": "rotate_key", "description": "Rotate a secret key", "roles": ["admin"], "run": lambda: "new"},
]
FIND = [("search_tools", {"queries": ["select:send_mail,rotate_key"]})]


def names(request: CallModel) -> list[str]:
    return [shown.name for shown in request.tools]


class Clock:
    """Time that stands still until it is set on; it takes the place of the clock of the registry and the journals."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        for module in ("toolsearch.session.registry", "toolsearch.stores.recent"):
            monkeypatch.setattr(f"{module}.monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


# -- pre-selection -----------------------------------------------------------------------------------------------


def test_the_users_own_words_load_tools_before_the_model_is_asked(drive: Any) -> None:
    """SA-23: in every turn, as a fact, so that the tools are there after a restart."""
    store = MemoryStore()
    model = ScriptedModel([("get_forecast", {})], "Rain.", "Sent.")
    agent = Agent(model, ToolSearch(TOOLS, "keyword"), preselect=1, store=store)
    assert drive(agent, "What is the weather forecast for Oslo?", conversation_id="s").text == "Rain."
    assert names(model.requests[0]) == ["search_tools", "get_forecast"]
    revealed = [fact for fact in agent.conversation("s").journal if isinstance(fact, ToolsRevealed)]
    assert [fact.loaded for fact in revealed] == [("sky/get_forecast",)]
    other = ScriptedModel("Sent.")
    drive(
        Agent(other, ToolSearch(TOOLS, "keyword"), preselect=1, store=store), "Now send an e-mail", conversation_id="s"
    )
    assert names(other.requests[0]) == ["search_tools", "get_forecast", "send_mail"]


@pytest.mark.parametrize("said", ["", " \n", "xyzzy", "rotate a secret key"])
def test_words_that_fit_no_tool_of_the_caller_load_none(drive: Any, said: str) -> None:
    """SA-23: what the caller may not see is not loaded either."""
    model = ScriptedModel("Well.")
    agent = Agent(model, ToolSearch(TOOLS, "keyword"), preselect=3)
    drive(agent, said, conversation_id="s")
    assert names(model.requests[0]) == ["search_tools"]
    assert not [fact for fact in agent.conversation("s").journal if isinstance(fact, ToolsRevealed)]


@pytest.mark.parametrize("options", [{}, {"preselect": 0}])
def test_nothing_is_selected_unless_it_is_asked_for(drive: Any, options: dict[str, Any]) -> None:
    model = ScriptedModel("Well.")
    drive(Agent(model, ToolSearch(TOOLS, "keyword"), **options), "Weather forecast")
    assert names(model.requests[0]) == ["search_tools"]


def test_a_pre_selection_that_fails_ends_no_turn(drive: Any, caplog: pytest.LogCaptureFixture) -> None:
    """SA-23: the search tool is there all the same."""

    class Gone(FixedIndex):
        def search(self, query: str, limit: int, among: Any = None) -> Any:
            raise OSError("the disk is gone")

    agent = Agent(ScriptedModel("Well."), ToolSearch(TOOLS, Gone({})), preselect=2)
    assert drive(agent, "Weather forecast").text == "Well."
    assert "the pre-selection failed" in caplog.text


def test_where_all_tools_are_shown_nothing_is_searched_first(drive: Any) -> None:
    model = ScriptedModel("Well.")
    search = ToolSearch(TOOLS, mode="static")
    drive(Agent(model, search, preselect=2), "Weather forecast")
    assert names(model.requests[0]) == ["send_mail", "get_forecast"]


# -- the note about searching --------------------------------------------------------------------------------------


def test_the_note_stands_behind_the_system_text_or_where_the_program_puts_it(drive: Any) -> None:
    """SA-12: another place, another text, or none."""
    note = ToolSearch(TOOLS).session().instructions()
    for system, wanted in [
        ("Be brief.", f"Be brief.\n\n{note}"),
        ("", note),
        (lambda note: f"<tools>{note}</tools>\nBe brief.", f"<tools>{note}</tools>\nBe brief."),
        (lambda note: "Be brief.", "Be brief."),
        (lambda note: note.replace("search_tools", "the search tool"), note.replace("search_tools", "the search tool")),
    ]:
        model = ScriptedModel(FIND, "Done.")
        drive(Agent(model, ToolSearch(TOOLS), system=system), "Go")
        assert [request.system for request in model.requests] == [wanted, wanted]


def test_a_system_text_that_cannot_be_is_refused(drive: Any) -> None:
    async def later(note: str) -> str:
        return note

    with pytest.raises(SetupError, match="is async"):
        Agent(ScriptedModel(), TOOLS, system=later)  # type: ignore[arg-type]
    with pytest.raises(SetupError, match="system must be a str, or a function from the session's note to one, not 5"):
        Agent(ScriptedModel(), TOOLS, system=5)  # type: ignore[arg-type]
    with pytest.raises(SetupError, match="system of the agent must return a text, not None"):
        drive(Agent(ScriptedModel(), TOOLS, system=lambda note: None), "Go")  # type: ignore[arg-type, return-value]


# -- sessions: how many, how long, which -------------------------------------------------------------------------


def test_an_agents_conversations_are_listed_ended_and_evicted_as_sessions_are(drive: Any) -> None:
    """SA-20: beyond `max_sessions` the one not used for longest leaves; its session can be kept."""
    search = ToolSearch(TOOLS, max_sessions=2)
    kept: list[dict[str, Any]] = []
    search.on_evict(lambda session: kept.append(session.export()))
    agent = Agent(ScriptedModel(FIND, *["Done."] * 9), search)
    admin = Caller("ana", ["admin"])
    for name in ("a", "b", "a", "c"):
        drive(agent, "Go", conversation_id=name, caller=admin)
    assert search.conversation_ids() == ("a", "c")
    drive(agent, "Go", conversation_id="d", caller=admin)
    assert [state["id"] for state in kept] == ["b", "a"]
    restored = search.restore(kept[1], caller=admin)
    assert [each.id for each in restored.loaded] == ["send_mail", "rotate_key"], "with the caller's roles"
    search.end_session("a")
    assert search.end_session("c")
    assert not search.end_session("c")
    assert agent.conversation("c").journal == ()
    assert search.conversation_ids() == ("d",)
    assert len(kept) == 2, "what is ended was not evicted"


def test_an_agents_conversation_leaves_by_age_but_never_the_one_that_goes_on(drive: Any, clock: Clock) -> None:
    """SA-20: `ttl_seconds`, lazily, as for sessions."""
    search = ToolSearch(TOOLS, ttl_seconds=60)
    gone: list[str] = []
    search.on_evict(lambda session: gone.append(session.id))
    agent = Agent(ScriptedModel(*["Done."] * 9), search)
    for name in ("a", "b"):
        drive(agent, "Go", conversation_id=name)
    clock.now += 61
    drive(agent, "Go on", conversation_id="a")
    assert len(agent.conversation("a").transcript) == 4
    assert gone == ["b"]
    assert search.conversation_ids() == ("a",)
    clock.now += 61
    assert search.conversation_ids() == ()
    assert gone == ["b", "a"]
    assert agent.conversation("a").journal == ()


def test_a_paused_conversation_leaves_by_age_too(drive: Any, clock: Clock) -> None:
    search = ToolSearch(
        [tool(lambda: "paid", name="pay", kind="action", description="Pay")], mode="static", ttl_seconds=9
    )
    agent = Agent(ScriptedModel([("p1", "pay", {})]), search, actions="wait")
    assert isinstance(drive(agent, "Pay", conversation_id="a"), Paused)
    clock.now += 10
    assert search.conversation_ids() == ()
    with pytest.raises(StateError, match="is not waiting"):
        drive(agent, conversation_id="b", decisions={"p1": True})


def test_a_conversation_that_is_worked_on_neither_leaves_nor_can_be_ended(drive: Any, clock: Clock) -> None:
    search = ToolSearch(TOOLS, ttl_seconds=1, max_sessions=1)
    begun, release = threading.Event(), threading.Event()

    def slow(request: CallModel) -> str:
        if request.conversation_id == "slow":
            begun.set()
            release.wait(20)
        return "Done."

    agent = Agent(ScriptedModel(*[slow] * 9), search)
    wait = drive.beside(agent, "Go", conversation_id="slow")
    begun.wait(20)
    clock.now += 100
    for name in ("a", "b"):
        agent.run("Go", conversation_id=name)
    with pytest.raises(StateError, match="'slow' is being worked on: wait for it, or cancel it first"):
        search.end_session("slow")
    assert "slow" in search.conversation_ids()
    release.set()
    assert wait().text == "Done."


def test_a_store_keeps_its_conversations_whatever_the_settings_say(drive: Any, clock: Clock) -> None:
    """SA-20: only what is in memory is evicted; a stored journal is deleted by the program alone."""
    store = MemoryStore()
    search = ToolSearch(TOOLS, ttl_seconds=1, max_sessions=1)
    search.on_evict(lambda session: pytest.fail("evicted"))
    agent = Agent(ScriptedModel(*["Done."] * 9), search, store=store)
    for name in ("a", "b"):
        drive(agent, "Go", conversation_id=name)
        clock.now += 100
    assert search.conversation_ids() == ()
    assert not search.end_session("a")
    assert sorted(store.list()) == ["a", "b"]


def test_an_agent_that_is_gone_leaves_nothing_behind(drive: Any) -> None:
    search = ToolSearch(TOOLS)
    agent = Agent(ScriptedModel("Done."), search)
    drive(agent, "Go", conversation_id="a")
    assert search.conversation_ids() == ("a",)
    del agent
    gc.collect()
    assert search.conversation_ids() == ()


def test_an_own_session_and_a_conversation_of_an_agent_may_have_the_same_id(drive: Any) -> None:
    search = ToolSearch(TOOLS)
    session: Session = search.session("a")
    session.load(["send_mail"])
    agent = Agent(ScriptedModel("Done."), search)
    drive(agent, "Go", conversation_id="a")
    assert search.session("a") is session
    assert agent.conversation("a").session.loaded == ()
    assert search.conversation_ids() == ("a",)
    assert search.end_session("a")
    assert search.conversation_ids() == ()
    assert agent.conversation("a").journal == ()


# -- actions without an approval -----------------------------------------------------------------------------------


def pays(paid: list[str]) -> Catalog:
    return Catalog([tool(lambda: paid.append("paid"), name="pay", kind="action", description="Pay"), *TOOLS])


def test_actions_that_nobody_approves_are_said_aloud_once(drive: Any, caplog: pytest.LogCaptureFixture) -> None:
    """NA-4: by the first agent over the catalog, or as soon as the catalog has an action."""
    paid: list[str] = []
    catalog = pays(paid)
    search = ToolSearch(catalog, mode="static")
    Agent(ScriptedModel(), search, layers=[approval()])
    assert "approval" not in caplog.text
    for _ in range(2):
        drive(Agent(ScriptedModel([("pay", {})]), search), "Pay")
    told = [record.getMessage() for record in caplog.records if "without an approval" in record.getMessage()]
    assert len(told) == 1
    assert "before pay." in told[0]
    assert "actions='wait'" in told[0]
    assert paid == ["paid", "paid"]
    caplog.clear()
    late = Catalog()
    agent = Agent(ScriptedModel("Hm.", "Hm.", "Hm."), ToolSearch(late))
    drive(agent, "Go")
    assert "without an approval" not in caplog.text
    late.extend({"name": f"act_{n}", "kind": "action"} for n in range(7))
    drive(agent, "Go")
    drive(agent, "Go")
    told = [record.getMessage() for record in caplog.records if "without an approval" in record.getMessage()]
    assert len(told) == 1
    assert "act_0, act_1, act_2, act_3, act_4 and 2 more" in told[0]


class OwnGate:
    """A gate of the program, which may hold actions back."""

    name = "four eyes"
    gate = True

    def around_round(self, request: Any) -> Any:
        return (yield request)


@pytest.mark.parametrize(
    ("options", "is_told"),
    [
        ({}, True),
        ({"layers": [limits()]}, True),
        ({"actions": "run"}, False),
        ({"actions": "wait"}, False),
        ({"layers": [OwnGate()]}, False),
        ({"layers": [approval(when=["send_mail"])]}, False),
    ],
)
def test_who_has_decided_is_not_told(options: dict[str, Any], is_told: bool, caplog: pytest.LogCaptureFixture) -> None:
    """NA-4"""
    Agent(ScriptedModel(), ToolSearch(pays([])), **options)
    assert ("without an approval" in caplog.text) == is_told


def test_one_setting_makes_actions_wait(drive: Any) -> None:
    """NA-4: the kind "action" parks, as with the layer `approval`; reads run."""
    paid: list[str] = []
    calls = [("p1", "pay", {}), ("f1", "get_forecast", {})]
    agent = Agent(ScriptedModel(calls, "Paid."), ToolSearch(pays(paid), mode="static"), actions="wait")
    paused = drive(agent, "Pay", conversation_id="s")
    assert [each.id for each in paused.waiting] == ["p1"]
    assert paid == []
    assert drive(agent, conversation_id="s", decisions={"p1": True}).text == "Paid."
    assert paid == ["paid"]


def test_a_layer_of_the_program_takes_the_place_of_the_setting() -> None:
    gate = approval(when=["send_mail"])
    agent = Agent(ScriptedModel(), ToolSearch(pays([])), layers=[gate], actions="wait")
    assert [layer for layer in agent.parts.layers if getattr(layer, "name", "") == "approval"] == [gate]
    with pytest.raises(SetupError, match="actions must be 'wait' or 'run'"):
        Agent(ScriptedModel(), [], actions="ask")  # type: ignore[arg-type]


# -- the line at the start -----------------------------------------------------------------------------------------


def test_a_tool_search_says_at_the_start_what_it_serves_and_how(caplog: pytest.LogCaptureFixture) -> None:
    """BK-1: count, threshold and choice; at INFO, so a program that wants no logs has none."""
    caplog.set_level(logging.INFO, "toolsearch")
    ToolSearch(TOOLS, "keyword", mode="auto", pinned=["send_mail"])
    ToolSearch(TOOLS, "keyword")
    told = [record.getMessage() for record in caplog.records]
    assert told[0].startswith("3 tools, index 'keyword', 1 pinned, mode 'auto', 1 tools, about ")
    assert told[0].endswith("showing all costs less than searching over 10 turns, with a cold cache at first")
    assert told[1] == "3 tools, index 'keyword', 0 pinned, mode 'search'"
