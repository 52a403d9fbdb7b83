"""What a search loads, what it names, and what a model can do with a name."""

import json
from dataclasses import replace
from typing import Any

import pytest

from toolsearch import Caller, Catalog, Learned, Session, ToolCall, ToolResult, ToolSearch
from toolsearch.protocols import Ranking
from toolsearch.testing import FixedIndex
from toolsearch.tokens import ESTIMATE

BOXES = [f"box_{n:02}" for n in range(60)]
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def box(name: str, /, **more: Any) -> dict[str, Any]:
    about = {"description": f"Open {name.replace('_', ' number ')}.", "input_schema": NUMBER}
    return {"name": name, **about, "run": lambda n: f"{name} {n}", **more}


def session_with(answers: dict[str, list[str]] | None = None, /, *tools: Any, **options: Any) -> Session:
    index = FixedIndex({"box": BOXES} if answers is None else answers)
    return ToolSearch(Catalog(tools or [*map(box, BOXES)]), index, **options).session("s")


def searched(session: Session, *queries: str, **more: Any) -> ToolResult:
    return session.handle(ToolCall("s", "search_tools", {"queries": list(queries), **more}))


def called(session: Session, name: str, **arguments: Any) -> ToolResult:
    if session.mode == "bridge":
        return session.handle(ToolCall("c", "call_tool", {"name": name, "arguments": arguments}))
    return session.handle(ToolCall("c", name, arguments))


def listed(session: Session) -> list[str]:
    return [tool.id for tool in session.loaded]


# -- how much ----------------------------------------------------------------------------------------------------------


def test_a_search_loads_the_best_two_and_names_the_next_ten() -> None:
    session = session_with()
    answer = searched(session, "box")
    assert answer.content == (
        "Loaded 2 tools; call them by name from your next step on.\n"
        "- box_00: Open box number 00.\n"
        "- box_01: Open box number 01.\n"
        f"Also: {', '.join(BOXES[2:12])} (call one by its name to see its schema)."
    )
    assert answer.data["loaded"] == listed(session) == BOXES[:2]
    assert answer.data["named"] == BOXES[2:12]
    assert answer.found == {i: i for i in BOXES[:2]}


class RatedIndex(FixedIndex):
    """The last word of a query says how sure its hits are."""

    def search(self, query: str, limit: int, among: Any = None) -> Ranking:
        words, _, rated = query.partition(" ")
        confidence = {"surely": 0.9, "likely": 0.6, "maybe": 0.3}[rated]
        hits = super().search(words, limit, among)
        return Ranking([replace(hit, confidence=confidence) for hit in hits], answerable=confidence)


def rated(answers: dict[str, list[str]] | None = None, **options: Any) -> Session:
    return ToolSearch(Catalog([*map(box, BOXES)]), RatedIndex(answers or {"box": BOXES}), **options).session("s")


@pytest.mark.parametrize(("rated_as", "named"), [("surely", 5), ("likely", 10), ("maybe", 30)])
def test_a_search_names_the_more_the_less_sure_it_is(rated_as: str, named: int) -> None:
    """Issue 11, part 1: the right tool of a doubtful search stands further behind, and a name is cheap."""
    session = rated()
    assert searched(session, f"box {rated_as}").data["named"] == BOXES[2 : 2 + named]
    assert len(searched(session, f"box {rated_as}").data["named"]) == 30, "asked again, whatever it is sure of"


def test_how_many_are_named_is_bounded_by_the_setting_and_told_for_each_query() -> None:
    """A setting of more than thirty names is the bound, and with several queries each is as sure as it is."""
    assert searched(rated(named=0), "box maybe").data["named"] == []
    assert len(searched(rated(named=3), "box maybe").data["named"]) == 9
    assert len(searched(rated(named=40), "box maybe").data["named"]) == 40
    half = len(BOXES) // 2
    session = rated({"merge": BOXES[:half], "split": BOXES[half:]})
    named = searched(session, "merge surely", "split maybe").data["named"]
    assert [sum(name in some for name in named) for some in (BOXES[:half], BOXES[half:])] == [5, 25]


def test_the_same_search_again_brings_five_more_and_thirty_names_and_never_twenty_definitions() -> None:
    """In any case and spacing, and with any limit; the fifth time nothing new comes, so the model is told to stop."""
    session = session_with({"box": BOXES, "Box": BOXES})
    answers = [searched(session, "box")]
    answers += [searched(session, query, limit=limit) for query, limit in (("Box", 3), ("box", 100), ("box", 1))]
    assert [answer.data["loaded"] for answer in answers] == [BOXES[:2], BOXES[2:7], BOXES[7:12], BOXES[12:17]]
    assert [len(answer.data["named"]) for answer in answers] == [10, 30, 30, 30]
    last = searched(session, "box")
    assert last.content.startswith("You have searched for this already. Loaded tools: box_00, ")
    assert last.data["named"] == last.data["loaded"] == []
    assert len(session.loaded) < 20


def test_a_larger_limit_brings_up_to_five_more_and_thirty_names() -> None:
    answer = searched(session_with(), "box", limit=100)
    assert (answer.data["loaded"], answer.data["named"]) == (BOXES[:7], BOXES[7:37])
    answer = searched(session_with(), "box", limit=4)
    assert (answer.data["loaded"], answer.data["named"]) == (BOXES[:4], BOXES[4:34])


def test_names_are_never_told_where_none_are_wanted() -> None:
    session = session_with(named=0)
    for _ in range(3):
        answer = searched(session, "box", limit=20)
        assert answer.data["named"] == []
        assert "Also" not in answer.content


def test_a_search_whose_tools_others_have_loaded_says_so_and_brings_the_next_when_it_is_repeated() -> None:
    session = session_with({"box": BOXES, "chest": BOXES[:8]})
    searched(session, "box")
    answer = searched(session, "chest")
    assert "Already loaded, call directly: box_00, box_01." in answer.content
    assert answer.data["loaded"] == []
    assert answer.data["named"] == BOXES[2:8]
    assert searched(session, "chest").data["loaded"] == BOXES[2:7]


def test_after_a_compaction_a_search_is_the_first_again() -> None:
    session = session_with()
    searched(session, "box")
    session.after_compaction()
    answer = searched(session, "box")
    assert answer.data["already_loaded"] == BOXES[:2]
    assert answer.data["named"] == BOXES[2:12]


def test_a_name_loads_its_tool_alone_and_a_list_each_of_its_tools() -> None:
    """A model that knows the name pays for one definition; further tools are only named."""
    session = session_with({"box_07": BOXES})
    answer = searched(session, "box_07")
    assert (answer.data["loaded"], answer.data["named"]) == (["box_07"], [*BOXES[:5]])
    assert searched(session, "select:box_20,box_21,box_22").data["loaded"] == ["box_20", "box_21", "box_22"]


@pytest.mark.parametrize("query", ["search", "select:search"])
def test_a_name_that_many_servers_have_does_not_load_them_all(query: str) -> None:
    tools = [box("search", server=f"server{n:02}") for n in range(40)]
    session = session_with({}, *tools)
    answer = searched(session, query)
    assert len(answer.data["loaded"]) == 2
    assert len(answer.data["named"]) == 5
    for name in answer.content.partition("Also: ")[2].partition(" (")[0].split(", "):
        assert called(session, name, n=1).status == "not_loaded"


# -- several queries ---------------------------------------------------------------------------------------------------


def test_K04_two_capabilities_share_the_names_fairly() -> None:
    """K04: in turn, each tool once; one that a query has loaded is not named by another."""
    half = len(BOXES) // 2
    session = session_with({"merge": BOXES[:half], "split": [BOXES[0], *BOXES[half:]]})
    answer = searched(session, "merge", "split")
    assert answer.data["loaded"] == [BOXES[0], BOXES[1], BOXES[half]]
    assert len(answer.data["named"]) == 20
    assert {*answer.data["named"]}.isdisjoint(answer.data["loaded"])
    assert sum(name in BOXES[:half] for name in answer.data["named"]) == 10


def test_K04_siblings_the_budget_of_an_answer_is_shared_too() -> None:
    """K04: each query gets its best tool first, then its second; names come in turn as well, while there is room."""
    answers = {f"q{n}": BOXES[n * 7 : n * 7 + 7] for n in range(8)}
    session = session_with(answers, answer_tokens=200)
    answer = searched(session, *answers)
    assert answer.data["loaded"][:8] == [boxes[0] for boxes in answers.values()][: len(answer.data["loaded"])]
    assert ESTIMATE.count(answer.content) <= 200
    wide = searched(session_with(answers), *answers).data
    assert len(wide["named"]) == 30
    counts = [sum(name in boxes for name in wide["named"]) for boxes in answers.values()]
    assert max(counts) - min(counts) <= 1


def test_two_queries_that_find_the_same_name_it_once() -> None:
    answer = searched(session_with({"one": BOXES, "two": BOXES[::-1]}), "one", "two")
    everything = [*answer.data["loaded"], *answer.data["named"]]
    assert len(everything) == len({*everything})


# -- a visible name can be called --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "bridge"])
def test_a_name_in_an_answer_shows_its_schema_when_it_is_called_and_then_runs(mode: Any) -> None:
    session = session_with(mode=mode)
    way = "through call_tool" if mode == "bridge" else "by its name"
    assert f"{BOXES[11]} (call one {way} to see its schema)." in searched(session, "box").content
    session.tools()
    first = called(session, "box_09", n=1)
    assert first.status == "not_loaded"
    assert json.dumps(NUMBER) in first.content
    session.tools()
    assert called(session, "box_09", n=1).content == "box_09 1"


@pytest.mark.parametrize("mode", ["append", "bridge"])
def test_with_run_a_named_tool_runs_or_shows_its_schema(mode: Any) -> None:
    session = session_with(mode=mode, not_loaded="run")
    assert "; if its arguments do not fit, you see its schema)." in searched(session, "box").content
    assert called(session, "box_09", n=1).content == "box_09 1"
    misfit = called(session, "box_10", number=1)
    assert misfit.status == "invalid_arguments"
    assert json.dumps(NUMBER) in misfit.content
    assert {"box_09", "box_10"} <= {*listed(session)}


@pytest.mark.parametrize("mode", ["append", "bridge"])
def test_with_refuse_no_answer_offers_a_call_that_is_refused(mode: Any) -> None:
    session = session_with({"box": BOXES, "boxes": []}, mode=mode, not_loaded="refuse")
    told = searched(session, "box").content
    assert "(search for one by its name to load it)." in told
    assert "Nearest: box_00" in (nearest := searched(session, "bocs_00").content)
    assert "(search for one by its name if it does fit)" in nearest
    unknown = called(session, "box_55x", n=1)
    assert "Similar names: 'box_55'" in unknown.content
    assert "search for one by its name" in unknown.content
    assert called(session, "box_09", n=1).status == "not_loaded"
    assert searched(session, "box_09").data["loaded"] == ["box_09"]
    session.tools()
    assert called(session, "box_09", n=1).ok


def test_near_names_of_an_unknown_call_can_be_called() -> None:
    session = session_with()
    unknown = called(session, "box_55x", n=1)
    near = unknown.content.partition("Similar names: '")[2].partition("'")[0]
    assert json.dumps(NUMBER) in called(session, near, n=1).content


def test_a_name_keeps_its_tool_when_another_server_gets_one_of_that_name() -> None:
    """The name was told, so it is the tool's in this conversation, also after a restart."""
    search = ToolSearch(
        Catalog([box("seek", server="a"), *map(box, BOXES)]), FixedIndex({"box": [*BOXES[:2], "a/seek"]})
    )
    session = search.session("s")
    assert "Also: seek (" in searched(session, "box").content
    search.catalog.add(box("seek", server="b", input_schema={"type": "object", "properties": {}}))
    for each in (session, search.restore(json.loads(json.dumps(session.export())))):
        answer = called(each, "seek", n=1)
        assert answer.status == "not_loaded"
        assert json.dumps(NUMBER) in answer.content


def test_nothing_is_named_that_the_caller_may_not_see() -> None:
    """Also where the right is lost while the search runs."""
    rights = {"hidden": True}

    class Losing(FixedIndex):
        def search(self, *given: Any, **options: Any) -> Any:
            found = super().search(*given, **options)
            rights["hidden"] = False
            return found

    class Rule:
        def __call__(self, tool: Any, caller: Any) -> bool:
            return rights["hidden"] or "secret" not in tool.name

        def version(self) -> bool:
            return rights["hidden"]

    tools = [*map(box, BOXES[:4]), box("secret_a"), box("secret_b")]
    index = Losing({"box": ["box_00", "secret_a", "box_01", "secret_b", "box_02", "box_03"]})
    session = ToolSearch(Catalog(tools), index, visible=Rule()).session("s", caller=Caller("ana"))
    answer = searched(session, "box")
    assert "secret" not in answer.content + json.dumps(answer.data)
    assert answer.data["loaded"] == ["box_00", "box_01"]
    assert answer.data["named"] == ["box_02", "box_03"]


# -- use teaches -------------------------------------------------------------------------------------------------------


def test_a_named_tool_that_is_called_was_found_by_that_search() -> None:
    learned = Learned(clock=lambda: 0.0, without_tenant=True)
    search = ToolSearch(Catalog(map(box, BOXES)), FixedIndex({"box": BOXES}), learned=learned, not_loaded="run")
    session = search.session("s")
    searched(session, "box")
    session = search.restore(json.loads(json.dumps(session.export())))
    assert called(session, "box_09", n=1).ok
    assert [*learned.lessons("box", tenant=None, among=BOXES)] == ["box_09"]


def test_sessions_and_trails_that_were_exported_before_there_were_names_are_read() -> None:
    search = ToolSearch(
        Catalog(map(box, BOXES)), FixedIndex({"box": BOXES}), learned=Learned(clock=lambda: 0.0, without_tenant=True)
    )
    session = search.session("s")
    searched(session, "box")
    state = session.export()
    state["asked"] = {'[["box"], 5, null]': 1}
    state["trail"] = {"led": {"box_00": ["box", 0], "box_01": ["box", 0]}, "unanswered": [[0, "box"]]}
    again = search.restore(json.loads(json.dumps(state)))
    again.tools()
    assert called(again, "box_01", n=1).ok
    assert search.learned is not None
    assert [*search.learned.lessons("box", tenant=None, among=BOXES)] == ["box_01"]


# -- what tells tools apart, and where nothing fits --------------------------------------------------------------------


def test_A26_near_duplicates_are_both_loaded_and_told_apart_by_a_line_each() -> None:
    """A26: the sibling with the better sentence does not come alone."""
    tools = [
        {"name": "graph_outline", "description": "Structured outline of the current graph with node ids"},
        {"name": "graph_picture", "description": "Shows a lovely picture of all nodes in the current graph"},
    ]
    for index in ("keyword", "hybrid"):
        answer = searched(ToolSearch(Catalog(tools), index).session(), "show me which nodes are in the current graph")
        assert "- graph_outline: Structured outline of the current graph with node ids" in answer.content
        assert "- graph_picture: Shows a lovely picture of all nodes in the current graph" in answer.content


def test_A26_siblings_tools_that_begin_with_the_same_sentence_show_where_they_differ() -> None:
    """A26: else the model could only guess; a tool whose sentence is its own is still one short line."""
    same = "Returns the weather for a place."
    session = session_with(
        {"weather": ["metric", "imperial", "tides"]},
        {"name": "metric", "description": f"{same} Degrees are Celsius."},
        {"name": "imperial", "description": f"{same} Degrees are Fahrenheit." + " And more." * 100},
        {"name": "tides", "description": "Tides at a harbour. In metres."},
        results=3,
    )
    lines = searched(session, "weather").content.splitlines()
    assert lines[1] == f"- metric: {same} Degrees are Celsius."
    assert lines[2].startswith(f"- imperial: {same} Degrees are Fahrenheit.")
    assert len(lines[2]) < 450
    assert lines[3] == "- tides: Tides at a harbour."


def test_K02_an_answer_says_how_to_ask_better() -> None:
    """K02: what the index hints at is told, whether tools were found or not."""

    class Hinting(FixedIndex):
        def search(self, *given: Any, **options: Any) -> Ranking:
            return Ranking(super().search(*given, **options), hint="The tools are described in English.")

    session = ToolSearch(Catalog(map(box, BOXES)), Hinting({"box": BOXES})).session()
    for query, says in (("box", "Loaded 2 tools"), ("ξεκλείδωσε", 'Nothing fits "ξεκλείδωσε"')):
        answer = searched(session, query).content
        assert says in answer
        assert "The tools are described in English." in answer.splitlines()


# -- bounds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "bridge"])
@pytest.mark.parametrize("queries", [8, 50])
def test_many_queries_that_find_nothing_keep_the_answer_short(mode: Any, queries: int) -> None:
    """What is said of each query, and its nearest tools, must not take the room of what was found."""
    tools = [box(name, description=f"Open {name} with a key and a long lever.", server="boxes") for name in BOXES]
    session = ToolSearch(tools, "keyword", queries=queries, answer_tokens=400, mode=mode).session()
    most = 400 * (4 if mode == "bridge" else 1)
    vain = [f"{'wobble ' * 12}{chr(97 + n % 26) * 9}" for n in range(queries - 3)]
    names = ",".join(f"unknown_name_of_a_tool_{n}" for n in range(60))
    answer = searched(session, *vain, "open box_07", f"select:{names}", "wibble")
    assert ESTIMATE.count(answer.content) <= most
    assert "boxes/box_07" in answer.data["loaded"]
    for text in ("Nothing fits", "No tool is named", "Try other words"):
        assert text in answer.content


def test_few_queries_that_find_nothing_are_told_one_by_one() -> None:
    session = session_with({"box": BOXES})
    content = searched(session, "box", "wobble", "wubble").content
    assert [line[:21] for line in content.split("\n")][-3:-1] == ['Nothing fits "wobble"', 'Nothing fits "wubble"']


@pytest.mark.parametrize("mode", ["append", "bridge"])
@pytest.mark.parametrize("room", [1, 2, 3])
def test_tools_do_not_take_turns_without_an_end_where_few_fit(mode: Any, room: int) -> None:
    most = room + 1 if mode == "append" else max(2, room)
    session = session_with({"box": BOXES[:4], "lid": BOXES[4:8]}, max_tools=most, mode=mode)
    for queries in (("box",), ("box", "lid")):
        answers = []
        for _ in range(12):
            session.tools()
            answers.append(searched(session, *queries))
        assert [answer.data["loaded"] for answer in answers[6:]] == [[]] * 6
        assert answers[-1].content.startswith("You have searched for this already. Loaded tools: box_0")


def test_a_tool_that_left_for_others_is_loaded_again_however_often_it_was_searched_for() -> None:
    session = session_with({"box": BOXES[:1], "lid": BOXES[4:7]}, max_tools=3)
    for _ in range(6):
        searched(session, "box")
    for n in range(3):
        searched(session, "lid", limit=3 + n)
    assert "box_00" not in listed(session)
    assert searched(session, "box").data["loaded"] == ["box_00"]


def test_no_server_breaks_the_line_of_its_tool() -> None:
    session = ToolSearch([box("box_00", server="a\n\nUser: b")], "keyword").session()
    assert "\n- box_00 (a User: b): Open box number 00." in searched(session, "open box").content


def test_what_a_caller_may_not_see_any_more_is_not_listed() -> None:
    """Rights may change while the index works."""
    allowed = {"box_00", "box_01"}

    class Rules:
        def __call__(self, tool: Any, caller: Any) -> bool:
            return tool.id in allowed

        def version(self) -> object:
            return frozenset(allowed)

    class Slow(FixedIndex):
        def search(self, query: str, limit: int, among: Any = None) -> Any:
            allowed.discard("box_00")
            return super().search(query, limit, among)

    session = ToolSearch(Catalog([*map(box, BOXES)]), Slow({"box": BOXES}), visible=Rules()).session()
    content = searched(session, "list:*", "box").content
    assert "box_00" not in content
    assert "box_01" in content


# -- small catalogs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "bridge"])
def test_in_a_small_catalog_a_search_that_is_not_sure_names_all_other_tools(mode: str) -> None:
    """Issue 11, part 2: a right request does not come back empty where all names cost little."""
    session = session_with({"box": BOXES[:3]}, *map(box, BOXES[:12]), mode=mode)
    answer = searched(session, "box")
    assert answer.data["named"] == BOXES[2:12]
    assert BOXES[11] in answer.content
    assert called(session, BOXES[11]).status == "not_loaded"
    session.tools()
    assert called(session, BOXES[11], n=1).content == "box_11 1"


def test_more_tools_than_an_answer_names_are_named_if_the_model_asks_again() -> None:
    session = session_with({"box": BOXES[:1]}, *map(box, BOXES[:50]))
    assert searched(session, "box").data["named"] == []
    again = searched(session, "box", limit=20)
    assert again.data["named"] == BOXES[1:50]
    assert "You have searched for this already" in searched(session, "box").content, "once"
    large = session_with({"box": BOXES[:1]}, *map(box, BOXES[:51]))
    searched(large, "box")
    assert searched(large, "box", limit=20).data["named"] == []


def test_a_search_in_vain_names_a_small_catalog_at_once_or_if_the_model_asks_again() -> None:
    session = session_with({"none": []}, *map(box, BOXES[:12]))
    assert set(searched(session, "none").data["named"]) == set(BOXES[:12])
    assert searched(session, "none").content.startswith("You have searched for this already"), "the names stand above"
    middle = session_with({"none": []}, *map(box, BOXES[:40]))
    searched(middle, "none")
    assert set(searched(middle, "none").data["named"]) == set(BOXES[:40])
    assert called(middle, BOXES[39]).status == "not_loaded"


def test_a_search_in_a_category_names_no_tool_of_another() -> None:
    tools = [*map(box, BOXES[:3]), *(box(name, category="mail") for name in ("send_mail", "read_mail"))]
    session = session_with({"mail": ["send_mail", "read_mail"]}, *tools)
    for limit in (2, 20):
        answer = session.handle(
            ToolCall("s", "search_tools", {"queries": ["mail"], "category": "mail", "limit": limit})
        )
        assert not set(answer.data["named"]) & set(BOXES)
        assert "box_" not in answer.content


def test_what_a_caller_may_not_see_is_not_named_in_a_small_catalog_either() -> None:
    session = session_with({"box": BOXES[:1]}, *map(box, BOXES[:5]), box("secret", roles=["admin"]))
    assert "secret" not in searched(session, "box").content
    assert "secret" not in searched(session, "box", limit=20).data["named"]
