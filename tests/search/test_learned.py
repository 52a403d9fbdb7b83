"""Learning from use: what teaches, whom it helps, how far, and that no tenant ever meets another's."""

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch import Caller, Catalog, Learned, Scored, SetupError, StateError, Tool, ToolCall, ToolSearch
from toolsearch.search.lessons import raised
from toolsearch.session.teaching import SearchTrail
from toolsearch.testing import FixedIndex

DAY = 86_400.0
TOOLS = [
    {"name": "create_issue", "server": "tracker", "description": "Create an issue."},
    {"name": "set_mode", "server": "house", "description": "Set the mode of a climate device."},
    {"name": "get_forecast", "server": "meteo", "description": "Weather of a place."},
    {"name": "roll_dice", "description": "Roll dice.", "roles": ["player"]},
]
ANA = Caller("ana", tenant="acme")
BEN = Caller("ben", tenant="acme")
EVE = Caller("eve", tenant="rival")


class Clock:
    """Time as the test sets it."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def made(clock: Clock | None = None, **options: Any) -> Learned:
    return Learned(clock=clock or Clock(), **options)


def searched(learned: Learned | None, **options: Any) -> ToolSearch:
    def run(tool: Tool, arguments: dict[str, Any], context: Any) -> str:
        if arguments.get("fail"):
            raise ValueError("no")
        return "done"

    tools = [tool | {"input_schema": {"type": "object", "properties": {"fail": {"type": "boolean"}}}} for tool in TOOLS]
    return ToolSearch(
        Catalog(tools), options.pop("index", "keyword"), learned=learned, run=run, nothing_below=0, **options
    )


def use(
    search: ToolSearch, caller: Caller | None, queries: Sequence[str | list[str]], name: str, **arguments: Any
) -> bool:
    """A conversation that searches these one after the other and calls a tool; whether that went well."""
    session = search.session(caller=caller)
    for number, asked in enumerate(queries):
        session.handle(
            ToolCall(f"s{number}", "search_tools", {"queries": [asked] if isinstance(asked, str) else asked})
        )
    session.tools()
    return session.handle(ToolCall("c", name, arguments)).ok


def ids(search: ToolSearch, query: str, caller: Caller | None = ANA, limit: int = 5) -> list[str]:
    return [hit.tool.id for hit in search.find(query, limit, caller=caller)]


# -- what teaches ------------------------------------------------------------------------------------------------------


def test_it_is_off_unless_it_is_asked_for() -> None:
    search = searched(None)
    assert use(search, ANA, ["it is freezing", "climate device"], "set_mode")
    assert ids(search, "it is freezing") == []


def test_a_search_that_led_to_a_successful_call_teaches_that_pair() -> None:
    learned = made()
    search = searched(learned)
    assert use(search, ANA, ["climate device"], "set_mode")
    assert {i: lesson.query for i, lesson in learned.lessons("climate device", tenant="acme").items()} == {
        "house/set_mode": "climate device"
    }


def test_words_that_the_index_does_not_know_are_learned_from_the_search_after_them() -> None:
    search = searched(made())
    assert ids(search, "brr it is freezing") == []
    assert use(search, ANA, ["brr it is freezing", "climate device"], "set_mode")
    hit = search.find("brr, freezing", caller=BEN)[0]
    assert hit.tool.id == "house/set_mode"
    assert [(m.word, m.fields) for m in hit.matched] == [("brr it is freezing", ("learned",))]


def test_who_asks_for_several_things_at_once_teaches_no_other_words() -> None:
    learned = made()
    use(searched(learned), ANA, [["brr freezing", "dice for two"], "climate device"], "set_mode")
    assert learned.lessons("brr freezing", tenant="acme") == {}
    assert learned.lessons("climate device", tenant="acme")


@pytest.mark.parametrize(
    ("queries", "name", "arguments", "options"),
    [
        (["climate device"], "set_mode", {"fail": True}, {}),  # it failed
        (["climate device"], "set_mode", {"fail": "perhaps"}, {}),  # it was never run
        (["set_mode"], "set_mode", {}, {}),  # named
        (["select:house/set_mode"], "set_mode", {}, {}),
        (["climate device"], "set_mode", {}, {"pinned": ["house/set_mode"]}),  # always there
        ([], "set_mode", {}, {"not_loaded": "run"}),  # no search led to it
        (["climate device", "issue", "create an issue", "an issue"], "set_mode", {}, {}),  # long ago
        (["set_mode", "zzqx"], "set_mode", {}, {}),  # loaded before, though a search in vain names it again
        (["climate device"], "set_mode", {}, {"examples": ("author", "enriched")}),  # switched off
    ],
)
def test_nothing_else_teaches(
    queries: list[str], name: str, arguments: dict[str, Any], options: dict[str, Any]
) -> None:
    learned = made()
    use(searched(learned, **options), ANA, queries, name, **arguments)
    assert len(learned) == 0


def test_a_search_in_vain_teaches_a_tool_that_is_called_by_a_name_it_told() -> None:
    """The answer names all tools of a small catalog, and the model chose one of them for what it had asked."""
    learned = made()
    session = searched(learned).session(caller=ANA)
    session.handle(ToolCall("s", "search_tools", {"queries": ["brr freezing"]}))
    assert session.handle(ToolCall("c", "set_mode", {})).status == "not_loaded"
    session.tools()
    assert session.handle(ToolCall("d", "set_mode", {})).ok
    assert list(learned.lessons("brr freezing", tenant="acme")) == ["house/set_mode"]


def test_one_search_teaches_a_tool_once() -> None:
    learned = made()
    search = searched(learned)
    session = search.session(caller=ANA)
    session.handle(ToolCall("s", "search_tools", {"queries": ["climate device"]}))
    session.tools()
    first = [session.handle(ToolCall("a", "set_mode", {})) and learned.lessons("climate device", tenant="acme")]
    session.handle(ToolCall("b", "set_mode", {}))
    assert learned.lessons("climate device", tenant="acme") == first[0]


def test_a_restored_session_still_knows_what_led_to_a_tool() -> None:
    learned = made()
    search = searched(learned)
    session = search.session("one", caller=ANA)
    session.handle(ToolCall("s", "search_tools", {"queries": ["brr freezing"]}))
    session.handle(ToolCall("t", "search_tools", {"queries": ["climate device"]}))
    state = json.loads(json.dumps(session.export()))
    again = search.restore(state, caller=ANA)
    again.tools()
    assert again.handle(ToolCall("c", "set_mode", {})).ok
    assert learned.lessons("brr freezing", tenant="acme").keys() == {"house/set_mode"}


# -- whom it helps -----------------------------------------------------------------------------------------------------


def test_nothing_crosses_from_one_tenant_to_another() -> None:
    learned = made(without_tenant=True)
    tenants = ["acme", "rival", "", "None", None]
    search = searched(learned)
    for tenant in tenants:
        for query in ("brr it is freezing", "quite cold here"):
            learned.teach(f"{query} {tenant}", "house/set_mode", tenant=tenant)
            for other in tenants:
                found = learned.lessons(f"{query} {tenant}", tenant=other)
                assert all(lesson.query.endswith(str(other)) for lesson in found.values())
        learned.forget_tenant(tenant)
        assert ids(search, "brr it is freezing", Caller("x", tenant=tenant)) == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from(["cold", "cold feet", "冷たい", "x y z"])),
        max_size=30,
    )
)
def test_what_a_tenant_is_told_depends_on_what_it_taught_alone(taught: list[tuple[str | None, str]]) -> None:
    together = made(without_tenant=True)
    for tenant, query in taught:
        together.teach(query, f"tool of {tenant}", tenant=tenant, user="u")
    for tenant in ("a", "b", None):
        alone = made(without_tenant=True)
        for who, query in taught:
            if who == tenant:
                alone.teach(query, f"tool of {tenant}", tenant=tenant, user="u")
        for query in ("cold", "cold feet", "冷たい", "x y z"):
            assert together.lessons(query, tenant=tenant) == alone.lessons(query, tenant=tenant)


def test_a_caller_without_a_tenant_neither_teaches_nor_learns_unless_that_is_said() -> None:
    learned = made()
    search = searched(learned)
    for caller in (None, Caller("ana")):
        use(search, caller, ["brr freezing", "climate device"], "set_mode")
        assert (len(learned), ids(search, "brr freezing", caller)) == (0, [])
    search = searched(made(without_tenant=True))
    use(search, None, ["brr freezing", "climate device"], "set_mode")
    assert ids(search, "brr freezing", None) == ["house/set_mode"]
    assert ids(search, "brr freezing", ANA) == []


def test_an_empty_tenant_is_none() -> None:
    learned = made()
    assert not learned.teach("brr freezing", "house/set_mode", tenant="")
    assert learned.lessons("brr freezing", tenant="") == {}


def test_filters_hold_for_what_was_learned() -> None:
    learned = made()
    learned.teach("make it so", "roll_dice", tenant="acme")
    search = searched(learned)
    assert ids(search, "make it so") == []
    assert ids(search, "make it so", Caller("ana", ["player"], "acme")) == ["roll_dice"]


def test_what_others_may_not_see_takes_no_part_of_the_share() -> None:
    learned = made()
    learned.teach("make it so", "house/set_mode", tenant="acme")
    alone = learned.lessons("make it so", tenant="acme")
    learned.teach("make it so", "roll_dice", tenant="acme")
    assert learned.lessons("make it so", tenant="acme", among=frozenset(["house/set_mode"])) == alone


def test_what_is_not_in_the_catalog_takes_no_part_of_the_share() -> None:
    learned = made()
    learned.teach("make it so", "house/set_mode", tenant="acme")
    search = searched(learned)
    alone = search.find("make it so", caller=Caller("ana", ["player"], "acme"))
    for gone in ("gone", "gone too"):
        learned.teach("make it so", gone, tenant="acme")
    assert search.find("make it so", caller=Caller("ana", ["player"], "acme")) == alone


# -- how far -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", ["keyword", "hybrid", "vector", "regex", "whoosh", "tantivy", "faiss"])
def test_every_index_is_helped_on_its_own_scale(index: str) -> None:
    learned = made()
    search = searched(learned, index=index)
    query = "issue of a place"
    before = search.find(query, caller=ANA)
    learned.teach(query, "house/set_mode", tenant="acme")
    after = search.find(query, caller=ANA)
    lesson = learned.lessons(query, tenant="acme")["house/set_mode"]
    score = {hit.tool.id: hit.score for hit in before}
    expected = score.get("house/set_mode", 0) + learned.weight * lesson.share * before[0].score
    assert {hit.tool.id: hit.score for hit in after}["house/set_mode"] == pytest.approx(expected)
    assert {hit.tool.id for hit in before} <= {hit.tool.id for hit in after}


def test_a_learned_tool_takes_a_place_and_not_more_than_the_limit() -> None:
    index = FixedIndex({"anything": ["tracker/create_issue", "meteo/get_forecast"]})
    learned = made()
    search = searched(learned, index=index)
    learned.teach("anything goes", "house/set_mode", tenant="acme")
    learned.teach("anything", "house/set_mode", tenant="acme")
    assert len(ids(search, "anything", limit=2)) == 2
    assert "house/set_mode" in ids(search, "anything", limit=2)


def test_named_tools_stay_in_front_and_a_list_of_names_stays_as_it_is() -> None:
    learned = made()
    search = searched(learned)
    for query in ("create_issue", "create_issue climate", "select:create_issue", "select:nothing_like_it"):
        learned.teach(query, "house/set_mode", tenant="acme")
    assert ids(search, "create_issue climate")[0] == "tracker/create_issue"
    assert ids(search, "select:create_issue") == ["tracker/create_issue"]
    assert ids(search, "select:nothing_like_it") == []


@pytest.mark.parametrize(
    ("past", "asked", "like"),
    [
        ("make it warmer in here", "make it warmer in here", True),
        ("make it warmer in here", "Could you make it WARMER here, please?", True),
        ("deploy the billing service", "deplyo billing service", True),
        ("deploying services", "deploy a service", True),
        ("部屋を暖かくして", "部屋を暖かく", True),
        ("make it warmer in here", "book a table for two", False),
        ("what is the time", "what is the plan", False),
        ("", "", False),
    ],
)
def test_requests_are_alike_by_their_words_whatever_their_case_order_or_spelling(
    past: str, asked: str, like: bool
) -> None:
    learned = made()
    learned.teach(past, "tool", tenant="acme")
    assert bool(learned.lessons(asked, tenant="acme")) is like


def test_a_lesson_fades_and_is_forgotten() -> None:
    clock = Clock()
    learned = made(clock, half_life_days=10)
    learned.teach("brr", "tool", tenant="acme")
    shares = []
    for days in (0, 10, 40, 1_000):
        clock.now = days * DAY
        shares.append([lesson.share for lesson in learned.lessons("brr", tenant="acme").values()])
    assert shares[0] == [pytest.approx(1 / 2)]
    assert shares[1] == [pytest.approx(1 / 3)]
    assert shares[2] == [pytest.approx(1 / 17)]
    assert shares[3] == []
    clock.now = -DAY  # a clock that is set back makes nothing grow
    assert learned.lessons("brr", tenant="acme")["tool"].share == pytest.approx(1 / 2)


def test_a_tool_that_has_left_is_forgotten_and_a_changed_one_is_not() -> None:
    learned = made()
    search = searched(learned)
    for query, tool_id in (("brr", "house/set_mode"), ("hm", "tracker/create_issue"), ("hm", "meteo/get_forecast")):
        learned.teach(query, tool_id, tenant="acme")
    search.catalog.replace({"name": "set_mode", "server": "house", "description": "Another."})
    assert ids(search, "brr") == ["house/set_mode"]
    search.catalog.remove("house/set_mode")
    search.catalog.remove("tracker/create_issue")
    assert (len(learned), ids(search, "hm")) == (1, ["meteo/get_forecast"])


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_one_user_cannot_flood_a_pair() -> None:
    learned = made()
    for _ in range(1_000):
        learned.teach("brr", "bad", tenant="acme", user="eve")
    assert learned.lessons("brr", tenant="acme")["bad"].share == pytest.approx(3 / 4)
    for user in ("a", "b", "c", "d", "e", "f"):
        learned.teach("brr", "good", tenant="acme", user=user)
    found = learned.lessons("brr", tenant="acme")
    assert found["good"].share > found["bad"].share


def test_one_user_cannot_push_out_what_others_taught() -> None:
    learned = made(capacity=40)
    for n in range(20):
        learned.teach(f"honest{n}", "good", tenant="acme", user=f"user {n}")
    for n in range(1_000):
        learned.teach(f"flood{n}", "bad", tenant="acme", user="eve")
    assert all(learned.lessons(f"honest{n}", tenant="acme") for n in range(20))
    assert len(learned) == 20 + 10


def test_memory_is_bounded_in_every_way() -> None:
    learned = made(capacity=50, tenants=3)
    for n in range(400):
        learned.teach(f"query{n}", "tool", tenant=f"tenant {n % 5}")
        learned.teach("the same one", f"tool {n}", tenant="tenant 4", user=f"user {n}")
    assert len(learned) <= 3 * 50
    assert len(learned.lessons("the same one", tenant="tenant 4")) <= 8
    assert not learned.teach("long " * 100, "tool", tenant="acme")
    assert len(json.dumps(learned.export())) < 50_000


@pytest.mark.parametrize(
    "options",
    [{"capacity": 0}, {"tenants": 0}, {"half_life_days": 0}, {"weight": -1}, {"least": 0}, {"least": 1.5}],
)
def test_bounds_that_are_none_are_a_setup_error(options: dict[str, Any]) -> None:
    with pytest.raises(SetupError):
        made(**options)


def test_threads_may_teach_and_ask_together() -> None:
    learned = made(capacity=20)
    failed: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for n in range(200):
                learned.teach(f"request {n} of {name}", f"tool {n % 7}", tenant="acme", user=name)
                learned.lessons(f"request {n}", tenant="acme")
                learned.forget([f"tool {n % 5}"])
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(f"thread {n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


# -- storing -----------------------------------------------------------------------------------------------------------


def test_what_was_learned_can_be_kept_and_names_no_user() -> None:
    clock = Clock()
    learned = made(clock, without_tenant=True)
    learned.teach("brr it is cold", "a", tenant="acme", user="ana@example.com")
    learned.teach("brr it is cold", "b", tenant=None)
    state = json.dumps(learned.export())
    assert "ana@example.com" not in state
    again = made(clock, without_tenant=True)
    again.restore(state)
    assert again.export() == learned.export()
    for tenant in ("acme", None):
        assert again.lessons("brr cold", tenant=tenant) == learned.lessons("brr cold", tenant=tenant)


def test_the_keys_of_what_was_learned_are_these_whatever_its_parts_are_called() -> None:
    learned = made(Clock())
    learned.teach("brr", "a", tenant="acme")
    assert learned.export() == {
        "format": 1,
        "tenants": [{"tenant": "acme", "past": [["brr", "", {"a": {"": [1.0, learned._clock()]}}]]}],
    }


@pytest.mark.parametrize(
    "state",
    [
        "{",
        "[]",
        "[" * 100_000,
        {},
        {"format": 1, "tenants": [{"tenant": "a", "past": [["q", "", {"t": {"u": [10**400, 0]}}]]}]},
        {"format": 99, "tenants": []},
        {"format": 1, "tenants": [{"tenant": "a", "past": [["q"]]}]},
    ],
)
def test_what_is_no_export_is_refused_and_changes_nothing(state: Any) -> None:
    learned = made()
    learned.teach("brr", "tool", tenant="acme")
    with pytest.raises(StateError, match="this is not an export of Learned"):
        learned.restore(state)
    assert len(learned) == 1


class Sure:
    """An index that is sure of the first tools it finds: by tool the confidence."""

    name = "sure"

    def __init__(self, found: dict[str, float]) -> None:
        self.found = found

    def add(self, tools: Sequence[Tool]) -> None: ...
    def remove(self, ids: Sequence[str]) -> None: ...
    def search(self, query: str, limit: int, among: Any = None) -> list[Scored]:
        return [Scored(i, 1.0 - at / 10, confidence=p) for at, (i, p) in enumerate(self.found.items())][:limit]


@pytest.mark.parametrize(
    ("found", "limit", "verdict"),
    [
        ({"tracker/create_issue": 0.9}, 1, "weak"),  # the sure one is cut off
        ({"tracker/create_issue": 0.9}, 5, "weak"),  # a lesson alone is the best
        ({"house/set_mode": 0.3, "tracker/create_issue": 0.9}, 1, "weak"),
        ({"house/set_mode": 0.9, "tracker/create_issue": 0.3}, 5, "found"),
    ],
)
def test_the_verdict_is_about_the_hits_that_are_kept(found: dict[str, float], limit: int, verdict: str) -> None:
    learned = made(weight=4.0)
    learned.teach("it is freezing", "house/set_mode", tenant="acme")
    hits = searched(learned, index=Sure(found)).find("it is freezing", limit, caller=ANA)
    assert hits[0].tool.id == "house/set_mode"
    assert hits.verdict == verdict


# -- what was taught, and undoing it -----------------------------------------------------------------------------------


def school(clock: Clock) -> Learned:
    """Two tenants; at acme two users, the second of them ten days later."""
    learned = made(clock, without_tenant=True)
    learned.teach("brr it is cold", "house/set_mode", tenant="acme", user="ana")
    learned.teach("roll them", "roll_dice", tenant="rival", user="eve")
    clock.now = 10 * DAY
    learned.teach("cold, brr", "house/set_mode", tenant="acme", user="ben", times=2)
    learned.teach("make a ticket", "tracker/create_issue", tenant="acme", user="ben")
    learned.teach("make a ticket", "house/set_mode", tenant="acme", user="ben")
    return learned


def test_what_was_taught_is_listed_what_counts_most_first() -> None:
    clock = Clock()
    learned = school(clock)
    clock.now = 40 * DAY
    first, *others = learned.taught(tenant="acme")
    assert (first.query, first.tool, first.users, first.times, first.last) == (
        "brr it is cold",
        "house/set_mode",
        2,
        3.0,
        10 * DAY,
    )
    assert first.weight == pytest.approx(2 / 2 + 1 / 2 ** (40 / 30))
    assert [each.weight for each in others] == sorted((each.weight for each in others), reverse=True)
    assert {each.tenant for each in learned.taught()} == {"acme", "rival"}
    assert [each.tool for each in learned.taught(query="COLD brr")] == ["house/set_mode"]
    assert len(learned.taught(since=10 * DAY)) == 3


@pytest.mark.parametrize(
    ("which", "gone", "left"),
    [
        ({"query": "a ticket, make", "tool": "house/set_mode"}, 1, 3),  # one lesson
        ({"query": "make a ticket"}, 2, 2),
        ({"tool": "house/set_mode"}, 2, 2),
        ({"tenant": "rival"}, 1, 3),
        ({"tool": "roll_dice", "tenant": "acme"}, 0, 4),
        ({"since": 10 * DAY}, 3, 2),  # what Ana taught before stays
        ({"since": 11 * DAY}, 0, 4),
        ({"user": "ben"}, 3, 2),
        ({"user": "nobody"}, 0, 4),
        ({"query": "never asked"}, 0, 4),
    ],
)
def test_a_lesson_a_query_a_tool_a_tenant_a_user_or_a_time_can_be_undone(
    which: dict[str, Any], gone: int, left: int
) -> None:
    learned = school(Clock())
    assert (learned.undo(**which), len(learned.taught())) == (gone, left)
    assert learned.taught(**{key: value for key, value in which.items() if key != "user"}) == [] or "user" in which


def test_undoing_needs_to_know_what() -> None:
    with pytest.raises(SetupError, match="needs to know what"):
        made().undo()


def test_the_page_shows_every_lesson_and_escapes_it() -> None:
    learned = made()
    for n in range(120):
        learned.teach(f"<b>number{n}</b>", "tool", tenant="acme")
    page = learned.page()
    assert page.startswith("<!doctype html>")
    assert "<b>number" not in page
    assert page.count("&lt;b&gt;number") == 120
    assert learned._repr_html_().count("&lt;b&gt;number") == 100


# -- unlike requests, and one conversation -----------------------------------------------------------------------------


def test_a_lesson_from_an_unlike_query_changes_no_verdict_that_nothing_fits() -> None:
    learned = made()
    learned.teach("weather of the coast tomorrow", "meteo/get_forecast", tenant="acme")
    asked = "forecast the whether and the coats"
    lesson = learned.lessons(asked, tenant="acme")["meteo/get_forecast"]
    assert 0 < lesson.likeness < 0.5
    before = searched(None, index=Sure({})).find(asked, caller=ANA)
    nothing = replace(before, verdict="none")
    tool = searched(None).catalog["meteo/get_forecast"]
    assert raised(nothing, {tool: lesson}, 100.0, 5) == nothing
    like = replace(lesson, likeness=0.5)
    assert [hit.tool.id for hit in raised(nothing, {tool: like}, 100.0, 5)] == ["meteo/get_forecast"]


def test_one_conversation_teaches_no_more_than_fifty_lessons_also_after_a_restart() -> None:
    learned = made()
    search = searched(learned)
    session = search.session("one", caller=ANA)
    for n in range(70):
        if n == 40:
            session = search.restore(json.loads(json.dumps(session.export())), caller=ANA)
        session.handle(ToolCall(f"s{n}", "search_tools", {"queries": [f"climate device number{n}"]}))
        session.tools()
        assert session.handle(ToolCall(f"c{n}", "set_mode", {})).ok
    assert len(learned) == 50


def test_a_tool_that_was_only_named_teaches_more_than_the_one_that_was_loaded() -> None:
    index = FixedIndex({"anything": ["tracker/create_issue", "meteo/get_forecast", "house/set_mode"]})
    weights = {}
    for name in ("create_issue", "set_mode"):
        learned = made()
        session = searched(learned, index=index, results=1, named=5, not_loaded="run").session(caller=ANA)
        session.handle(ToolCall("s", "search_tools", {"queries": ["anything"]}))
        session.tools()
        assert session.handle(ToolCall("c", name, {})).ok
        (lesson,) = learned.taught()
        weights[name] = lesson.weight
    assert weights["set_mode"] == 1.5 * weights["create_issue"]


def test_a_trail_that_an_older_version_stored_is_read() -> None:
    trail = SearchTrail.from_state({"led": {"a": ["cold", 0]}, "unanswered": []})
    assert trail.pop_queries("a") == [("cold", 1.0)]


def stored(tools: Any, query: str = "send mail", tenant: Any = "acme") -> dict[str, Any]:
    return {"format": 1, "tenants": [{"tenant": tenant, "past": [[query, "", tools]]}]}


@pytest.mark.parametrize(
    "state",
    [
        stored({"a": {"u": [float("nan"), 1]}}),
        stored({"a": {"u": [float("inf"), 1]}}),
        stored({"a": {"u": [1, float("nan")]}}),
        stored({"a": {"u": [1, 1]}}, tenant=5),
        stored({"a": {"u": [1, 1]}}, tenant=True),
        stored({"a": {"u": [1, 1]}}, query=None),  # type: ignore[arg-type]
    ],
)
def test_a_poisoned_export_is_refused(state: Any) -> None:
    """A count that is no number would spoil every order that it is part of."""
    with pytest.raises(StateError, match="this is not an export of Learned"):
        made().restore(state)


@pytest.mark.parametrize(
    ("state", "lessons", "most"),
    [
        (stored({"a": {}}), 0, 0.0),
        (stored({"a": {"u": [-5, 1]}}), 0, 0.0),
        (stored({"a": {"u": [1, 1]}}, query="word " * 1_000), 0, 0.0),
        (stored({f"t{n}": {f"u{m}": [1e9, 1] for m in range(50)} for n in range(50)}), 8, 24.0),
        (stored({"a\ud800": {"u": [1, 1]}}, query="mail \ud800"), 1, 1.0),
    ],
)
def test_a_stored_lesson_counts_no_more_than_one_that_was_taught(state: Any, lessons: int, most: float) -> None:
    learned = made()
    learned.restore(state)
    assert len(learned.taught()) == lessons
    assert max((each.times for each in learned.taught()), default=0.0) == most
    learned.page().encode()
    learned.restore(json.dumps(learned.export()))
    assert len(learned.taught()) == lessons


def test_what_was_taught_steers_no_terminal_and_breaks_no_line() -> None:
    learned = made()
    learned.restore(stored({"<b>\x1b[31m\n": {"u": [1, 1]}}, query="\x1b]0;title\x07 mail"))
    for text in (learned.page(), *learned.taught()[0].row()):
        assert "\x1b" not in text
        assert "\x07" not in text
    assert "\n" not in "".join(learned.taught()[0].row())
