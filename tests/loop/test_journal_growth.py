"""A journal grows with what happens in a conversation, not with its square; older journals are read as they are."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch import Catalog, StateError, ToolSearch
from toolsearch.events.facts import ToolsFound
from toolsearch.loop.agent import Agent
from toolsearch.loop.conversation import Conversation
from toolsearch.stores import MemoryStore
from toolsearch.support.json_changes import changed, difference
from toolsearch.testing import ScriptedModel

SEARCH = ToolSearch(
    Catalog([{"name": f"t{n}", "server": "s", "description": f"does thing {n} of {n % 40}"} for n in range(300)]),
    index="keyword",
)


def talk(turns: int, store: MemoryStore, first: int = 0) -> None:
    """Turns of one search each, each by an agent of its own, as after a restart."""
    for n in range(first, first + turns):
        model = ScriptedModel([("search_tools", {"queries": [f"thing {n}"]})], "end")
        Agent(model, SEARCH, store=store).run("x", conversation_id="s")


def sessions_of(store: MemoryStore) -> list[dict[str, Any]]:
    return [fact for fact in store.load("s") if fact["fact"] in ("ToolsFound", "ToolsRevealed", "ToolsUnloaded")]


def in_the_old_form(store: MemoryStore) -> list[dict[str, Any]]:
    """The journal as it was stored before there were changes: the whole session in each fact."""
    state: dict[str, Any] = {}
    old = []
    for fact in store.load("s"):
        if changes := fact.pop("changes", None):
            state = changed(state, changes)
            fact["session"] = state
        state = fact.get("session", state)
        old.append(fact)
    return old


def test_D15_a_search_adds_as_much_late_in_a_conversation_as_early() -> None:
    """D15: each `ToolsFound` had the whole session, so 200 turns took 7.5 MB and 400 turns 18 MB."""
    store = MemoryStore()
    talk(90, store)
    sizes = [len(json.dumps(fact)) for fact in sessions_of(store)]
    assert len(sizes) == 90
    early, late = sum(sizes[10:40]), sum(sizes[60:90])
    assert late < 1.3 * early
    assert max(sizes[1:]) < 3_000
    whole = [len(json.dumps(fact)) for fact in in_the_old_form(store)]
    assert sum(map(len, map(json.dumps, store.load("s")))) < sum(whole) / 7


def test_D15_a_replay_has_the_session_of_the_live_conversation() -> None:
    store = MemoryStore()
    talk(20, store)
    agent = Agent(ScriptedModel(), SEARCH, store=store)
    whole = Conversation.replay(SEARCH, in_the_old_form(store), conversation_id="s")
    assert agent.conversation("s").session.export() == whole.session.export()
    assert len(agent.conversation("s").session.loaded) > 20


def test_D15_a_journal_of_the_old_form_is_read_and_goes_on() -> None:
    """Its facts stay as they are; those that come are stored as changes."""
    store, old = MemoryStore(), MemoryStore()
    talk(5, store)
    old.append("s", 0, in_the_old_form(store))
    talk(5, store, first=5)
    talk(5, old, first=5)
    assert [*map(sorted, sessions_of(old))] == [
        *[["call_id", "fact", "loaded", "session", "v"]] * 5,
        *[["call_id", "changes", "fact", "loaded", "v"]] * 5,
    ]
    there, here = (Agent(ScriptedModel(), SEARCH, store=each).conversation("s") for each in (store, old))
    assert there.session.export() == here.session.export()
    assert Conversation.replay(SEARCH, here.export(), conversation_id="s").session.export() == here.session.export()


def test_changes_of_a_fact_that_is_missing_are_refused() -> None:
    store = MemoryStore()
    talk(3, store)
    journal = store.load("s")
    first = next(n for n, fact in enumerate(journal) if fact["fact"] == "ToolsFound")
    del journal[first]["session"]
    with pytest.raises(
        StateError, match=r"changes the session of another fact than -1.*: a fact between them is missing"
    ):
        Conversation.replay(SEARCH, journal)


@pytest.mark.parametrize(
    "changes",
    [
        5,
        [],
        {"after": 1, "-": ["none"]},
        {"after": 1, "~": {"names": {"@": [[7, 1, []]]}}},
        {"after": 1, "~": 5},
        {"after": 1, "+": 5},
        {"after": 1, "~": {"found": {"@": [[9, 3, []]]}}},
    ],
)
def test_changes_that_do_not_fit_are_a_clear_error(changes: Any) -> None:
    state = Conversation(SEARCH.session()).session.export()
    with pytest.raises(StateError, match="fact 2 of the journal"):
        Conversation.replay(
            SEARCH,
            [
                {"v": 1, "fact": "RunBegan", "run": "r"},
                {"v": 1, "fact": "ToolsRevealed", "loaded": [], "session": state},
                {"v": 1, "fact": "ToolsRevealed", "loaded": [], "changes": changes}
                if changes != []
                else {"v": 1, "fact": "ToolsRevealed", "loaded": [], "changes": [[]]},
            ],
        )


def test_an_observer_and_a_driver_of_ones_own_get_what_is_stored() -> None:
    conversation = Conversation(SEARCH.session("own"))
    store, seen = MemoryStore(), []
    model = ScriptedModel(
        [("search_tools", {"queries": ["thing 1"]}), ("search_tools", {"queries": ["thing 2"]})], "end"
    )
    Agent(model, SEARCH, store=store, observe=seen.append).run("x", conversation_id="s")
    found = [event for event in seen if isinstance(event, ToolsFound)]
    assert [(bool(each.session), bool(each.changes)) for each in found] == [(True, False), (False, True)]
    assert [fact.get("changes", {}) for fact in sessions_of(store)] == [dict(each.changes) for each in found]
    assert conversation.session.loaded == ()


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2) | st.just(1.0)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text("abc+-~@", max_size=2), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text("abc+-~@", max_size=2), VALUES, max_size=5)


def same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@given(OBJECTS, OBJECTS)
@settings(max_examples=500, deadline=None)
def test_a_difference_leads_from_one_state_to_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = json.dumps(old)
    change = json.loads(json.dumps(difference(old, new)))
    assert same(changed(old, change), new)
    assert json.dumps(old) == before
    assert not difference(new, json.loads(json.dumps(new)))


@given(
    st.lists(st.integers(0, 40), unique=True), st.sets(st.integers(0, 40)), st.lists(st.integers(41, 60), unique=True)
)
@settings(max_examples=300, deadline=None)
def test_a_list_from_which_some_leave_and_to_which_some_come_costs_only_these(
    old: list[int], gone: set[int], new: list[int]
) -> None:
    """As the found tools: the oldest leave, new ones come last; and as a list that is kept sorted."""
    for before, after in (
        (old, [each for each in old if each not in gone] + new),
        (sorted(old), sorted({*old} - gone | {*new})),
    ):
        change = difference({"a": before}, {"a": after})
        assert changed({"a": before}, change) == {"a": after}
        splices = change.get("~", {}).get("a", {}).get("@", [])
        if splices:
            assert sum(splice[1] for splice in splices) == len({*before} - {*after})
            assert sum(len(splice[2]) for splice in splices) == len({*after} - {*before})
