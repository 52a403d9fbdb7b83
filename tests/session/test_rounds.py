"""A reply with several calls, and what stays the same until the next request."""

import asyncio
import json
import logging
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch import Caller, Catalog, Session, SetupError, ToolCall, ToolSearch
from toolsearch.testing import FixedIndex


def defined(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"The {name} tool.", "run": lambda: f"{name} ran", **more}


TOOLS = [defined("rotate_key"), defined("print_page", server="printer"), defined("send_mail")]
FOUND = {"keys": ["rotate_key"], "pages": ["printer/print_page"], "mail": ["send_mail"]}


def session_of(*tools: Any, found: Any = FOUND, **options: Any) -> Session:
    return ToolSearch(Catalog(tools or TOOLS), FixedIndex(found), **options).session()


def search(*queries: str, call_id: str = "s") -> ToolCall:
    return ToolCall(call_id, "search_tools", {"queries": list(queries)})


def call(name: str, arguments: Any = None) -> ToolCall:
    return ToolCall(f"c-{name}", name, arguments or {})


def names(session: Session) -> list[str]:
    return [each.name for each in session.shown()]


# -- asking again ------------------------------------------------------------------------------------------------------


def test_shown_reads_and_tools_fixes() -> None:
    """A framework that asks again within a round does not make callable what the model was not shown."""
    session = session_of()
    assert names(session) == ["search_tools"]
    first = session.tools()
    session.handle(search("keys"))
    assert session.shown() == first
    assert session.handle(call("rotate_key")).status == "not_loaded"
    assert session.tools() == session.tools() == session.shown()
    assert names(session) == ["search_tools", "rotate_key"]
    assert session.handle(call("rotate_key")).ok


@pytest.mark.parametrize("mode", ["append", "bridge", "static"])
def test_shown_changes_nothing_in_any_mode(mode: Any) -> None:
    session = session_of(mode=mode, pinned=["send_mail"])
    for _ in range(2):
        before = session.export()
        assert session.shown() == session.shown()
        assert session.export() == before
        session.tools()
        session.handle(search("keys"))
    assert json.dumps([s.name for s in session.tools()]) == json.dumps(names(session))


def test_a_restored_session_shows_what_was_shown() -> None:
    session = session_of()
    session.handle(search("keys"))
    session.tools()
    session.handle(search("mail"))
    restored = Session.from_state(session._tools.view, json.loads(json.dumps(session.export())), None)
    assert names(restored) == names(session) == ["search_tools", "rotate_key"]
    assert [each.name for each in restored.tools()] == ["search_tools", "rotate_key", "send_mail"]


# -- what an answer made callable --------------------------------------------------------------------------------------


def test_an_answer_says_what_it_made_callable() -> None:
    both = {"mail": ["a/send_mail", "b/send_mail"]}
    session = session_of(defined("send_mail", server="a"), defined("send_mail", server="b"), found=both)
    session.tools()
    found = session.handle(search("mail")).found
    assert list(found) == ["a/send_mail", "b/send_mail"]
    assert list(found.values()) == [each.name for each in session.tools()[1:]]
    assert session.handle(search("mail")).found == {}
    assert session.handle(call(found["a/send_mail"])).found == {}


@pytest.mark.parametrize(
    ("policy", "arguments", "status", "found"),
    [
        ("show", {}, "not_loaded", {"rotate_key": "rotate_key"}),
        ("run", {}, "ok", {"rotate_key": "rotate_key"}),
        ("run", {"odd": 1}, "invalid_arguments", {"rotate_key": "rotate_key"}),
        ("refuse", {}, "not_loaded", {}),
    ],
)
def test_a_call_of_a_tool_that_is_not_loaded_says_whether_it_is_now(
    policy: Any, arguments: Any, status: str, found: Any
) -> None:
    strict = {"type": "object", "properties": {}, "additionalProperties": False}
    session = session_of({**defined("rotate_key"), "input_schema": strict}, not_loaded=policy)
    session.tools()
    result = session.handle(call("rotate_key", arguments))
    assert (result.status, result.found) == (status, found)
    assert [i for i in found if i not in {each.tool.id for each in session.tools()}] == []


def test_what_found_no_room_is_not_said_to_be_callable() -> None:
    session = session_of(*[defined(f"t{n}") for n in range(9)], found={"all": [f"t{n}" for n in range(9)]}, max_tools=3)
    result = session.handle(search("all"))
    assert list(result.found) == [each.tool.id for each in session.tools()[1:]]


# -- a whole reply -----------------------------------------------------------------------------------------------------


class SlowFirst(FixedIndex):
    """An index whose first look-up waits until another one has ended, or for a moment if none comes."""

    def __init__(self, answers: Any) -> None:
        super().__init__(answers)
        self.quick = threading.Event()

    def search(self, query: str, limit: int, among: Any = None) -> Any:
        if query == "keys":
            self.quick.wait(0.2)
        else:
            self.quick.set()
        return super().search(query, limit, among)


@pytest.mark.parametrize("is_async", [False, True])
def test_K15_two_searches_of_a_reply_are_loaded_in_the_model_s_order(is_async: bool) -> None:
    """K15: whichever ends first."""
    session = ToolSearch(Catalog(TOOLS), SlowFirst(FOUND)).session()
    session.tools()
    calls = [search("keys", call_id="1"), search("pages", call_id="2"), call("rotate_key")]
    results = asyncio.run(session.ahandle_all(calls)) if is_async else session.handle_all(calls)
    assert [each.name for each in session.tools()] == ["search_tools", "rotate_key", "print_page"]
    assert [(r.call_id, r.status) for r in results] == [("1", "ok"), ("2", "ok"), ("c-rotate_key", "not_loaded")]
    assert session.handle_all([]) == asyncio.run(session.ahandle_all(iter([]))) == []


@pytest.mark.parametrize("wrong", [call("alone"), None, 5])
def test_what_is_no_list_of_calls_is_a_setup_error(wrong: Any) -> None:
    session = ToolSearch([], "keyword").session()
    with pytest.raises(SetupError, match="calls must be a list of calls, as calls_in"):
        session.handle_all(wrong)
    with pytest.raises(SetupError, match="calls must be a list of calls, as calls_in"):
        asyncio.run(session.ahandle_all(wrong))


def test_calls_run_together_unless_one_must_be_alone() -> None:
    running, most = 0, 0

    async def work() -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return "done"

    def most_at_once(*kinds: str) -> int:
        nonlocal most
        most = 0
        tools = [{**defined(f"t{n}"), "run": work, "kind": kind} for n, kind in enumerate(kinds)]
        session = ToolSearch(tools, mode="static").session()
        session.tools()
        results = asyncio.run(session.ahandle_all([call(f"t{n}") for n in range(len(kinds))]))
        assert [r.content for r in results] == ["done"] * len(kinds)
        return most

    assert most_at_once("read", "read", "read") == 3
    assert most_at_once("read", "action", "read") == 1


def test_a_tool_that_goes_or_changes_while_an_earlier_call_of_the_reply_runs_is_looked_up_again() -> None:
    catalog = Catalog()

    def first() -> str:
        catalog.remove("second")
        catalog.replace({**defined("third"), "input_schema": {"properties": {"now": {}}, "required": ["now"]}})
        return "first ran"

    catalog.extend([{**defined("first"), "run": first}, defined("second"), defined("third")])
    session = ToolSearch(catalog, mode="static").session()
    session.tools()
    results = session.handle_all([call("first"), call("second"), call("third")])
    assert [r.status for r in results] == ["ok", "unknown", "invalid_arguments"]


calls = st.lists(
    st.one_of(
        st.sampled_from(["keys", "pages", "mail", "nothing"]).map(search),
        st.sampled_from(["rotate_key", "print_page", "send_mail", "nobody"]).map(call),
    ),
    max_size=5,
)


@given(st.lists(calls, max_size=4), st.booleans(), st.sampled_from(["append", "bridge"]))
def test_a_reply_is_answered_from_what_the_model_was_shown(replies: list[Any], is_async: bool, mode: Any) -> None:
    """Whatever a reply calls: an answer for each call, in order, and only what was shown or found before it runs."""
    session = session_of(mode=mode)
    for reply in replies:
        session.tools()
        before = {tool.name for tool in session.loaded}
        results = asyncio.run(session.ahandle_all(reply)) if is_async else session.handle_all(reply)
        assert [r.call_id for r in results] == [c.id for c in reply]
        ran = {r.name for r in results if r.ok and r.name != "search_tools"}
        assert ran <= before
        assert {i for r in results for i in r.found} == {t.id for t in session.loaded if t.name not in before}


# -- the program does not send the list --------------------------------------------------------------------------------


def test_F15_a_list_that_the_program_never_sends_is_told_to_both(caplog: pytest.LogCaptureFixture) -> None:
    """The third call is not answered as the first one, for ever; the program reads what to do in its log, once."""
    session = session_of()
    session.tools()
    session.handle(search("keys"))
    with caplog.at_level(logging.WARNING, "toolsearch"):
        first, *more = [session.handle(call("rotate_key")) for _ in range(4)]
    assert "It is loaded now: call 'rotate_key' in your next step" in first.content
    for each in more:
        assert each.status == "not_loaded"
        assert "the program has not sent the new tool list" in each.content
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "'rotate_key' was found, but its definition is not sent to the model: call session.tools()" in caplog.text
    session.tools()
    assert session.handle(call("rotate_key")).ok


@pytest.mark.parametrize("policy", ["show", "refuse"])
def test_F15_siblings_a_program_that_sends_the_list_is_never_blamed(
    caplog: pytest.LogCaptureFixture, policy: Any
) -> None:
    session = session_of(not_loaded=policy)
    for _ in range(4):
        session.tools()
        twice = [call("send_mail"), call("send_mail")]
        for result in session.handle_all(twice) if policy == "show" else map(session.handle, twice):
            assert "the program" not in result.content
        session.unload(["send_mail"])
    session.handle(search("keys"))
    assert "It is loaded now" in session.handle(call("rotate_key")).content
    assert caplog.text == ""


# -- unloading ---------------------------------------------------------------------------------------------------------


def test_a_tool_that_a_provider_refuses_can_be_unloaded() -> None:
    session = session_of(pinned=["send_mail"])
    session.handle(search("keys", "pages"))
    session.tools()
    assert session.unload(["rotate_key", "nobody", "send_mail"]) == ("rotate_key",)
    assert session.unload(["rotate_key"]) == ()
    assert "rotate_key" in names(session)  # the request that was sent
    assert [each.name for each in session.tools()] == ["search_tools", "send_mail", "print_page"]
    assert session.notices() == ["unloaded by the program: rotate_key"]
    assert list(session.handle(search("keys")).found) == ["rotate_key"]


def test_what_was_unloaded_in_a_bridge_is_shown_with_its_schema_again() -> None:
    session = session_of(mode="bridge")
    session.handle(search("keys"))
    session.unload(["rotate_key"])
    assert "arguments: {" in session.handle(search("keys")).content


# -- a server that is away ---------------------------------------------------------------------------------------------


def test_K19_siblings_a_role_that_comes_back_and_a_compaction_between() -> None:
    catalog = Catalog([defined("rotate_key", roles=["admin"]), defined("send_mail")])
    session = ToolSearch(catalog, FixedIndex(FOUND)).session("s", caller=Caller("ana", ["admin"]))
    session.handle(search("keys", "mail"))
    session.rebind_caller(Caller("ana"))
    session.after_compaction()
    assert [each.name for each in session.tools()] == ["search_tools", "send_mail"]
    session.rebind_caller(Caller("ana", ["admin"]))
    assert [each.name for each in session.tools()] == ["search_tools", "send_mail", "rotate_key"]
    session.unload(["rotate_key"])
    assert [each.name for each in session.tools()] == ["search_tools", "send_mail"]


def test_K19_siblings_what_is_away_counts_for_no_cap_and_comes_back_within_it() -> None:
    """No tool that was found meanwhile leaves for it."""
    catalog = Catalog()
    catalog.sync([defined(f"a{n}") for n in range(3)], server="a")
    catalog.extend([defined(f"b{n}") for n in range(3)])
    found = {"a": [f"a/a{n}" for n in range(3)], "b": [f"b{n}" for n in range(3)]}
    search_ = ToolSearch(catalog, FixedIndex(found), max_tools=4, results=3)
    session = search_.session("s")
    session.handle(search("a"))
    catalog.sync([], server="a")
    session = search_.restore(json.loads(json.dumps(session.export())))
    session.handle(search("b"))
    assert len(session.tools()) == 4
    catalog.sync([defined(f"a{n}") for n in range(3)], server="a")
    assert [each.name for each in session.tools()] == ["search_tools", "b0", "b1", "b2"]
    assert session.unload(["b1"]) == ("b1",)
    assert [each.name for each in session.tools()] == ["search_tools", "b0", "b2", "a0"]


# -- what a model is told ----------------------------------------------------------------------------------------------


def test_K20_a_bridge_never_says_to_call_what_is_not_in_the_request() -> None:
    """K20: every answer names the tool through which the others are called."""
    session = session_of(mode="bridge")
    assert "can be called through call_tool from your next step on" in session.tools()[0].tool.description
    through = ToolCall("c", "call_tool", {"name": "print_page", "arguments": {}})
    assert "call 'print_page' through call_tool in your next step" in session.handle(through).content
    session.handle(search("keys"))
    assert "Call one through call_tool now" in session.handle(search("keys")).content
    nothing = session_of(defined("get_weather"), mode="bridge", found={}).handle(search("get wether"))
    assert "Nearest: get_weather (call one through call_tool if it does fit)" in nothing.content


def test_K18_a_missing_server_is_told_where_the_hits_are_weak() -> None:
    """K18: what was found need not fit, so the tool may be on the server that is away."""
    tools = [
        {"server": "cal", "name": "open_calendar", "description": "Open the calendar."},
        {"server": "files", "name": "pull_file", "description": "Pull a file."},
    ]
    session = ToolSearch(Catalog(tools), "hybrid", mode="append").session()
    session._tools.view.catalog.mark_missing("github", "connection refused")
    told = session.handle(search("open a pull request")).content
    assert (
        "The server 'github' cannot be reached now, so its tools are missing or do not run: connection refused." in told
    )
    assert "github" not in session.handle(search("open_calendar")).content
