"""The front door: what it binds, its sessions and their registry, and how it chooses the way tools are delivered."""

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from toolsearch import (
    Caller,
    Catalog,
    MissingExtra,
    Session,
    Settings,
    SetupError,
    StateError,
    Tool,
    ToolCall,
    ToolSearch,
)
from toolsearch.testing import FixedIndex
from toolsearch.wires import openai_chat as wire


def defined(name: str, description: str = "", /, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, **more}


def numbered(count: int, **more: Any) -> list[dict[str, Any]]:
    return [defined(f"box_{n:03}", f"Open the box number {n}", **more) for n in range(count)]


def ask_user(question: str) -> str:
    """Ask the user a question. Use it when something is unclear."""
    return "yes"


def shown(session: Session) -> list[str]:
    return [each.name for each in session.tools()]


# -- setting up --------------------------------------------------------------------------------------------------------


def test_B26_a_tool_called_like_the_search_tool_is_a_setup_error_that_names_the_way_out() -> None:
    """B26, SA-22: and another name for the built-in one helps."""
    tools = [defined("search_tools", "Search hand tools in the shop")]
    with pytest.raises(SetupError, match=r"'search_tools'.*search_tool='…'"):
        ToolSearch(tools)
    session = ToolSearch(tools, search_tool="find_tools").session()
    assert session.handle(ToolCall("a", "find_tools", {"query": "hand tools"})).data["loaded"] == ["search_tools"]
    assert shown(session) == ["find_tools", "search_tools"]


@pytest.mark.parametrize(
    ("clash", "mode"),
    [
        (defined("call_tool"), "bridge"),
        (defined("Search-Tools"), "append"),
        ({"type": "function", "function": {"name": "search_tools"}}, "append"),
    ],
)
def test_B26_siblings_every_built_in_name_is_kept_free(clash: Any, mode: str) -> None:
    """B26, D8: the bridge's tool, another spelling, another format, a tool that comes later."""
    with pytest.raises(SetupError, match="built-in"):
        ToolSearch([clash], mode=mode)
    search = ToolSearch(numbered(2), mode=mode)
    assert search.catalog.add(clash) is None
    assert "built-in" in search.catalog.quarantined[0].reason
    assert len(search.catalog) == 2


def test_only_the_bridge_takes_the_name_of_its_call_tool() -> None:
    search = ToolSearch([defined("call_tool", "Call a tool by phone")])
    session = search.session()
    session.handle(ToolCall("a", "search_tools", {"query": "phone"}))
    assert shown(session) == ["search_tools", "call_tool"]
    assert session.handle(ToolCall("b", "call_tool", {})).status != "unknown"


def test_a_tool_pinned_twice_is_shown_once() -> None:
    """BK-4: the always-on tools are there once each."""
    assert shown(ToolSearch([ask_user], pinned=["ask_user", ask_user]).session()) == ["search_tools", "ask_user"]


def test_a_new_role_holds_from_the_next_request_on() -> None:
    search = ToolSearch([defined("wipe", "Wipe the disk", roles=["admin"]), *numbered(2)])
    session = search.session("c", caller=Caller("ana"))
    assert session.handle(ToolCall("a", "search_tools", {"query": "wipe the disk"})).data["loaded"] == []
    assert search.session("c", caller=Caller("ana", ["admin"])) is session
    assert session.handle(ToolCall("b", "search_tools", {"query": "wipe disk"})).data["loaded"] == ["wipe"]
    with pytest.raises(StateError, match="another caller"):
        search.session("c", caller=Caller("bob", ["admin"]))


def test_what_is_no_caller_is_refused() -> None:
    with pytest.raises(SetupError, match="must be a Caller"):
        ToolSearch(numbered(2)).session(caller="ana")  # type: ignore[arg-type]


def test_auto_is_decided_again_at_a_compaction() -> None:
    """DESIGN 6: once a session, and again where the cache is lost anyway."""
    search = ToolSearch(numbered(3), mode="auto", auto_tokens=0, auto_tools=5)
    session = search.session()
    assert len(shown(session)) == 3
    search.catalog.extend(numbered(9), server="vault")
    assert len(shown(session)) == 12
    assert "delivered as 'append' now" in session.after_compaction()[0]
    assert shown(session) == ["search_tools"]


def test_BK_4_pinned_tools_are_always_shown_named_in_the_note_and_never_searched() -> None:
    """BK-4: by function, by name or by id; each once."""
    search = ToolSearch([*numbered(5), defined("todo", "Write a list. Keep it short.")], pinned=[ask_user, "todo"])
    session = search.session()
    assert shown(session) == ["search_tools", "ask_user", "todo"]
    note = session.instructions()
    assert "- ask_user: Ask the user a question." in note
    assert "- todo: Write a list." in note
    assert "call them directly" in note
    assert "in other words" in note
    assert len(search.find("ask the user a question")) == 0
    answer = session.handle(ToolCall("a", "search_tools", {"query": "select:todo"}))
    assert "Already loaded, call directly: todo." in answer.content
    assert shown(session) == ["search_tools", "ask_user", "todo"]
    assert session.handle(ToolCall("a", "ask_user", {"question": "?"})).content == "yes"


def test_a_pinned_tool_that_is_not_there_or_not_one_is_a_setup_error() -> None:
    tools = [defined("run", server="a"), defined("run", server="b"), defined("stop")]
    with pytest.raises(SetupError, match=r"'stopp' is not in the catalog; did you mean 'stop'"):
        ToolSearch(tools, pinned=["stopp"])
    with pytest.raises(SetupError, match="several tools"):
        ToolSearch(tools, pinned="run")
    assert ToolSearch(tools, pinned="a/run").pinned[0].id == "a/run"


def test_C35_too_many_pinned_tools_are_a_setup_error() -> None:
    """C35"""
    many = numbered(127)
    with pytest.raises(SetupError, match="127 tools are pinned; with max_tools=128 at most 126 can be"):
        ToolSearch(many, pinned=[each["name"] for each in many])


def test_SA_37_settings_come_from_arguments_environment_and_file(tmp_path: Path) -> None:
    """SA-37: later ones win, and what is wrong is named."""
    file = tmp_path / "tools.toml"
    file.write_text('index = "regex"\nresults = 7\nmax_sessions = 5\n')
    environ = {"TOOLSEARCH_RESULTS": "9", "TOOLSEARCH_TTL_SECONDS": "none"}
    settings = Settings.load(file, environ, named=1)
    assert (settings.index, settings.results, settings.named, settings.max_sessions) == ("regex", 9, 1, 5)
    search = ToolSearch(numbered(3), settings=settings, results=2)
    assert (search.index.name, search.settings.results) == ("regex", 2)
    with pytest.raises(SetupError, match="there is no setting 'result'; did you mean 'results'"):
        ToolSearch(numbered(3), result=2)
    with pytest.raises(SetupError, match="there is no argument 'pined'; did you mean 'pinned'"):
        ToolSearch(numbered(3), pined=["ask_user"])
    with pytest.raises(SetupError, match=r"for a file pass Catalog\.from_file"):
        ToolSearch("tools.json")
    with pytest.raises(SetupError, match=r"there is no index 'lucene'; installed are: .*'keyword', 'regex'"):
        ToolSearch(numbered(3), "lucene")
    with pytest.raises(SetupError, match="has no 'search'"):
        ToolSearch(numbered(3), type("Half", (), {"name": "half", "add": 0, "remove": 0})())  # type: ignore[arg-type]


# -- the index and the catalog stay in step ----------------------------------------------------------------------------


class Counting(FixedIndex):
    """An index that writes down what it is given."""

    name = "counting"

    def __init__(self) -> None:
        super().__init__({})
        self.log: list[tuple[str, list[str]]] = []

    def add(self, tools: Sequence[Tool]) -> None:
        super().add(tools)
        self.log.append(("add", [tool.id for tool in tools]))

    def remove(self, ids: Sequence[str]) -> None:
        super().remove(ids)
        self.log.append(("remove", list(ids)))


def test_BK_8_a_tool_is_indexed_once_for_all_sessions_and_again_only_when_it_changes() -> None:
    """BK-8, SA-14, SA-15, X7's opposite: no session, request or restart of one indexes anything."""
    index = Counting()
    search = ToolSearch(numbered(3), index)
    assert index.log == [("add", ["box_000", "box_001", "box_002"])]
    for n in range(20):
        session = search.session(f"s{n}")
        session.handle(ToolCall("a", "search_tools", {"query": "select:box_001"}))
        session.tools()
        search.restore(session.export())
    assert len(index.log) == 1
    search.catalog.extend(numbered(3))
    assert len(index.log) == 1, "the same tools again are no change"
    search.catalog.replace(defined("box_001", "Open the box number 1", input_schema={"properties": {"key": {}}}))
    assert index.log[1:] == [("remove", []), ("add", ["box_001"])], "a changed schema is a change"


def test_one_bad_tool_costs_an_index_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    class Picky(Counting):
        def add(self, tools: Sequence[Tool]) -> None:
            if any(tool.id == "box_001" for tool in tools):
                raise ValueError("I do not like it")
            super().add(tools)

    index = Picky()
    search = ToolSearch(numbered(3), index)
    assert index.ids == {"box_000", "box_002"}
    assert "cannot take 'box_001'" in caplog.text
    assert [hit.tool.id for hit in search.find("box_001")] == ["box_001"], "its name still finds it"


class Unready(Counting):
    """An index that is set up wrongly, such as one whose encoder has no model."""

    def __init__(self, error: type[SetupError] = SetupError) -> None:
        super().__init__()
        self.error: type[SetupError] | None = error
        self.asked = 0

    def add(self, tools: Sequence[Tool]) -> None:
        self.asked += 1
        if self.error is MissingExtra:
            raise MissingExtra("the model", "torch", "sentence-transformers")
        if self.error is not None:
            raise SetupError("there is no model 'x' on this machine")
        super().add(tools)


def test_an_index_that_is_set_up_wrongly_is_an_error_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """Whole and once, rather than in the log for each tool."""
    catalog, index = Catalog(numbered(50)), Unready()
    with pytest.raises(SetupError, match="there is no model 'x' on this machine"):
        ToolSearch(catalog, index)
    assert index.asked == 1
    catalog.add(defined("late"))
    assert index.asked == 1, "what was never made does not follow the catalog"
    with pytest.raises(MissingExtra, match="pip install"):
        ToolSearch(catalog, Unready(MissingExtra))
    assert caplog.text == ""


def test_an_index_that_fails_as_a_whole_later_is_logged_once_a_change(caplog: pytest.LogCaptureFixture) -> None:
    index = Unready()
    index.error = None
    search = ToolSearch(numbered(3), index)
    index.error = SetupError
    search.catalog.extend([defined(f"late_{n}") for n in range(20)])
    assert len(caplog.records) == 1
    assert "index 'counting' could not apply a catalog change" in caplog.text
    assert "there is no model 'x'" in caplog.text
    assert [hit.tool.id for hit in search.find("late_3")] == ["late_3"], "its name still finds it"


@pytest.mark.parametrize("engine", ["whoosh", "tantivy", "faiss"])
def test_a_folder_forgets_the_tools_that_have_left_the_catalog_since(engine: str, tmp_path: Path) -> None:
    """Between two runs nobody tells the index what is gone, and it would take the places of others among the hits."""
    tools = [
        defined("play_violin", "Play the violin"),
        defined("play_piano", "Play the piano"),
        defined("play_cello", "Play the cello"),
    ]

    def opened() -> Any:
        if engine == "whoosh":
            return pytest.importorskip("toolsearch_indexes.whoosh").WhooshIndex(tmp_path)
        if engine == "tantivy":
            return pytest.importorskip("toolsearch_indexes.tantivy").TantivyIndex(tmp_path)
        return pytest.importorskip("toolsearch_indexes.faiss").FaissIndex.load(tmp_path)

    def started(definitions: list[dict[str, Any]], **options: Any) -> ToolSearch:
        search = ToolSearch(definitions, opened(), **options)
        if engine == "faiss":
            search.index.save(tmp_path)  # type: ignore[attr-defined]
        return search

    assert {hit.tool.id for hit in started(tools).find("play")} == {"play_violin", "play_piano", "play_cello"}
    search = started(tools[:2])
    assert {hit.tool.id for hit in search.find("play")} == {"play_violin", "play_piano"}
    assert {scored.id for scored in search.index.search("play cello", 5)} == {"play_violin", "play_piano"}
    assert len(opened()) == 2
    started(tools[:2], pinned=["play_piano"])
    assert [scored.id for scored in opened().search("play", 5)] == ["play_violin"]
    started([])
    assert len(opened()) == 1, "a catalog that is still empty says nothing of what has left it"


def test_a_folder_forgets_them_with_the_first_tools_where_the_catalog_was_empty_at_the_start(tmp_path: Path) -> None:
    whoosh = pytest.importorskip("toolsearch_indexes.whoosh")
    ToolSearch(numbered(30), whoosh.WhooshIndex(tmp_path))
    catalog = Catalog()
    search = ToolSearch(catalog, whoosh.WhooshIndex(tmp_path))
    assert len(search.index) == 30  # type: ignore[arg-type]
    catalog.extend([defined("late", "Arrive late"), defined("later", "Arrive later")])
    catalog.add(defined("last", "Arrive last"))
    assert len(whoosh.WhooshIndex(tmp_path)) == 3


def test_a_search_that_is_gone_no_longer_follows_the_catalog() -> None:
    catalog, index = Catalog(numbered(1)), Counting()
    search = ToolSearch(catalog, index)
    del search
    import gc

    gc.collect()
    catalog.add(defined("a"))
    catalog.add(defined("b"))
    assert index.log == [("add", ["box_000"])]


def test_two_searches_share_a_catalog() -> None:
    catalog = Catalog(numbered(3))
    one, other = ToolSearch(catalog, "keyword"), ToolSearch(catalog, "regex", pinned=["box_000"])
    catalog.add(defined("late", "Arrive late"))
    assert [h.tool.id for h in one.find("arrive")] == [h.tool.id for h in other.find("arrive")] == ["late"]


# -- the registry ------------------------------------------------------------------------------------------------------


def test_a_session_is_found_again_by_its_id() -> None:
    """SA-13, SA-20"""
    search = ToolSearch(numbered(3))
    assert search.session("a") is search.session("a")
    assert search.conversation_ids() == ("a",)
    assert search.end_session("a")
    assert not search.end_session("a")
    assert search.conversation_ids() == ()
    with pytest.raises(SetupError, match="conversation_id must be a str"):
        search.session(7)  # type: ignore[arg-type]


def test_C31_a_session_belongs_to_its_caller() -> None:
    """C31: whoever guesses an id gets nothing."""
    search = ToolSearch(numbered(3))
    search.session("a", caller=Caller("ana"))
    for other in (None, Caller("bob"), Caller("ana", tenant="x")):
        with pytest.raises(StateError, match="belongs to another caller"):
            search.session("a", caller=other)
    assert search.session("a", caller=Caller("ana")).caller == Caller("ana")


def test_SA_20_past_the_most_the_session_not_used_for_longest_leaves_and_can_be_kept() -> None:
    """SA-20"""
    search = ToolSearch(numbered(3), max_sessions=2)
    kept: list[dict[str, Any]] = []
    search.on_evict(lambda session: kept.append(session.export()))
    search.session("a").handle(ToolCall("x", "search_tools", {"query": "select:box_001"}))
    search.session("b")
    search.session("a")
    search.session("c")
    assert search.conversation_ids() == ("a", "c")
    search.session("d")
    assert search.conversation_ids() == ("c", "d")
    assert [state["id"] for state in kept] == ["b", "a"]
    assert shown(search.restore(kept[1])) == ["search_tools", "box_001"]


def test_SA_20_sessions_leave_by_age_but_never_the_one_that_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    """SA-20: lazily; a listener that fails does no harm."""
    search = ToolSearch(numbered(3), ttl_seconds=0.05)
    search.on_evict(lambda _: 1 / 0)
    one = search.session("a")
    search.session("b")
    time.sleep(0.06)
    assert search.session("a") is one
    assert search.conversation_ids() == ("a",)
    assert "a listener for evicted sessions failed" in caplog.text
    time.sleep(0.06)
    assert search.conversation_ids() == ()


def test_SA_20_without_limits_all_sessions_stay() -> None:
    """SA-20: "never" is a choice too."""
    search = ToolSearch(numbered(1), max_sessions=None)
    for n in range(1_500):
        search.session(str(n))
    assert len(search.conversation_ids()) == 1_500


def test_many_threads_asking_for_one_id_get_one_session() -> None:
    search = ToolSearch(numbered(3))
    found: list[Session] = []
    threads = [threading.Thread(target=lambda: found.append(search.session("a"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(session) for session in found}) == 1


def test_a_restored_session_takes_the_place_of_a_live_one() -> None:
    search = ToolSearch(numbered(3))
    live = search.session("a")
    again = search.restore(json.dumps(live.export()))
    assert again is not live
    assert search.session("a") is again


def test_C31_a_stored_session_belongs_to_its_caller_too() -> None:
    search = ToolSearch(numbered(3))
    state = search.session("a", caller=Caller("ana", ["dev"], "acme")).export()
    for other in (None, Caller("ana"), Caller("bob", tenant="acme"), Caller("ana", tenant="rival")):
        with pytest.raises(StateError, match="belongs to another caller"):
            search.restore(state, caller=other)
    assert search.restore(state, caller=Caller("ana", tenant="acme")).id == "a"  # the roles given last hold
    older = {key: value for key, value in state.items() if key not in ("user", "tenant")}
    assert search.restore(older, caller=Caller("bob")).id == "a"


# -- pre-selection -----------------------------------------------------------------------------------------------------


def test_SA_23_the_users_own_words_can_load_tools_before_the_first_request() -> None:
    """SA-23: one call, with a limit, with the caller's filter; in the mode static it changes nothing."""
    tools = [
        *numbered(20),
        defined("get_weather", "Weather forecast"),
        defined("set_weather", "Weather", roles=["god"]),
    ]
    session = ToolSearch(tools).session()
    added = session.preselect("What is the weather forecast for Oslo?", limit=3)
    assert added == "\n\n[Loaded for this message, if it fits: get_weather.]"
    assert shown(session) == ["search_tools", "get_weather"]
    assert session.handle(ToolCall("a", "get_weather")).status == "failed", "it is callable, and has no function"
    assert session.preselect("") == ""
    static = ToolSearch(tools, mode="static").session()
    before = wire.tools_for(ToolSearch(tools, mode="static").session())
    assert static.preselect("weather", 3) == ""
    assert wire.tools_for(static) == before


# -- how tools are delivered -------------------------------------------------------------------------------------------


def test_BK_1_nine_tools_are_static_and_ten_are_searched() -> None:
    """BK-1, X8: pinned tools are not counted; `why()` prints count, threshold and choice."""
    nine = ToolSearch([*numbered(9), ask_user], mode="auto", auto_tokens=0, pinned=["ask_user"]).session()
    assert len(shown(nine)) == 10
    assert "search_tools" not in shown(nine)
    assert nine.instructions() == ""
    assert nine.why().startswith("static: 9 tools, about ")
    assert "below 10 tools" in nine.why()
    ten = ToolSearch([*numbered(10), ask_user], mode="auto", auto_tokens=0, pinned=["ask_user"]).session()
    assert shown(ten) == ["search_tools", "ask_user"]
    assert ten.why().startswith("append: 10 tools, about ")
    assert "from 10 tools" in ten.why()


def test_X8_by_default_a_small_catalog_is_static_until_its_tokens_cost_more_than_searching() -> None:
    """X8: by price the tokens decide, whatever the number of tools; thresholds of either can be set instead."""
    assert ToolSearch(numbered(30), mode="auto").session().mode == "static"
    wordy = [defined(f"t{n}", "word " * 600) for n in range(12)]
    assert ToolSearch(wordy, mode="auto").session().mode == "bridge"
    assert ToolSearch(wordy, mode="auto", expected_turns=3).session().mode == "append"
    assert ToolSearch(wordy[:4], mode="auto").session().mode == "static"
    assert ToolSearch(wordy, mode="auto", auto_tools=20).session().mode == "static"
    assert ToolSearch(wordy, mode="auto", auto_tokens=10_000).session().mode == "static"
    assert ToolSearch(numbered(140), mode="auto", auto_tools=1_000).session().mode == "append", "no request holds 140"


def test_the_choice_counts_what_the_caller_may_see_and_is_made_once_a_session() -> None:
    search = ToolSearch([*numbered(20, roles=["admin"]), defined("one")], mode="auto", auto_tokens=0)
    assert search.session().mode == "static"
    session = search.session("s", caller=Caller(roles="admin"))
    assert session.mode == "append"
    for n in range(15):
        search.catalog.remove(f"box_{n:03}")
    assert session.mode == "append"
    assert search.restore(session.export(), caller=session.caller).mode == "append"
    assert search.session(caller=session.caller).mode == "static"


def test_a_mode_that_was_set_is_kept_and_said() -> None:
    assert ToolSearch(numbered(3), mode="append").session().why() == "append: the setting `mode`"
    with pytest.raises(SetupError, match="200 tools cannot all be shown with max_tools=128"):
        ToolSearch(numbered(200), mode="static").session()
    with pytest.raises(SetupError, match="'mode'"):
        ToolSearch(numbered(2), mode="inline")  # type: ignore[arg-type]


def test_an_id_that_no_request_can_carry_finds_its_session_again_and_takes_nobody_elses() -> None:
    search = ToolSearch([ask_user])
    ann, bob = Caller(user="ann"), Caller(user="bob")
    session = search.session("x\ud800", caller=ann)
    assert search.session("x\ud800", caller=ann) is session
    assert search.session("x\ufffd", caller=ann) is session
    with pytest.raises(StateError, match="belongs to another caller"):
        search.session("x\ud800", caller=bob)
    assert search.session("x\ufffd", caller=ann) is session
    assert search.restore({**session.export(), "id": "x\ud800"}, caller=ann).id == "x\ufffd"
    assert search.end_session("x\ud800")
    assert search.conversation_ids() == ()
