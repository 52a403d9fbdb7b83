"""What there is, in the instructions: all names of a small catalog, the servers of a larger one; in fixed bytes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch import Caller, Catalog, Session, StateError, ToolCall, ToolSearch, tool
from toolsearch.layers import rules
from toolsearch.session.subjects import subjects_of
from toolsearch.tokens import ESTIMATE
from toolsearch.wires import openai_chat

ADMIN, GUEST = Caller("u", ["admin"]), Caller("u", [])
PLAIN = ToolSearch([]).session().instructions()


def defined(name: str, server: str | None = None, /, **more: Any) -> dict[str, Any]:
    return {"name": name, "server": server, "description": f"{name} it.", "run": lambda **given: given, **more}


TOOLS = [
    defined("create_issue", "github"),
    defined("list_issues", "github"),
    defined("search", "github"),
    defined("search", "slack"),
    defined("send_message", "slack"),
    defined("rotate_key", "vault", roles=["admin"]),
    defined("ask_user"),
]


def many(count: int, server: str = "files") -> list[dict[str, Any]]:
    return [defined(f"read_file_{n:03}", server) for n in range(count)]


def directory(session: Session) -> list[str]:
    """The lines behind the plain note."""
    note = session.instructions()
    assert note.startswith(PLAIN)
    return note.removeprefix(PLAIN).strip().splitlines()


# -- the names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"mode": "append"}, {"directory": 0}, {"mode": "auto", "directory": 0}])
def test_by_default_there_is_none(options: dict[str, Any]) -> None:
    """A session begins with one search tool and nothing else."""
    session = ToolSearch(TOOLS, "keyword", **{"auto_tools": 0, "auto_tokens": 0, **options}).session()
    assert session.instructions() == PLAIN
    assert [each.name for each in session.tools()] == ["search_tools"]
    assert not session.has_directory
    assert "directory" not in session.export()


@pytest.mark.parametrize("options", [{"directory": 6}, {"mode": "auto", "auto_tools": 0, "auto_tokens": 0}])
def test_all_names_stand_there_by_server(options: dict[str, Any]) -> None:
    session = ToolSearch(TOOLS, "keyword", pinned=["ask_user"], **options).session(caller=GUEST)
    note = session.instructions()
    github, slack = (session._tools.name_of(each) for each in Catalog(TOOLS).named("search"))
    assert note.endswith(
        "- ask_user: ask_user it.\n"
        'All tools that search_tools can load; the query "select:NAME,NAME" loads some by their names:\n'
        f"github: create_issue, list_issues, {github}\n"
        f"slack: {slack}, send_message"
    )
    assert github.startswith("github_search_")


def test_every_name_can_be_searched_for_and_called() -> None:
    for mode in ("append", "bridge"):
        search = ToolSearch(TOOLS, "keyword", mode=mode, directory=200)
        lines = search.session(caller=ADMIN).instructions().partition("names:\n")[2].splitlines()
        names = [name for line in lines for name in line.partition(": ")[2].split(", ")]
        assert len(names) == len(TOOLS)
        for name in names:
            session = search.session(caller=ADMIN)
            found = session.handle(ToolCall("1", "search_tools", {"queries": [f"select:{name}"]}))
            assert len(found.data["loaded"]) == 1, name
            session.tools()
            assert session.handle(ToolCall("2", name, {})).ok
            blind = search.session(caller=ADMIN)
            assert blind.handle(ToolCall("3", name, {})).status == "not_loaded"
            blind.tools()
            assert blind.handle(ToolCall("4", name, {})).ok


def test_without_servers_the_names_stand_alone() -> None:
    session = ToolSearch([defined("a"), defined("b")], directory=9).session()
    assert directory(session)[1:] == ["a, b"]


def test_a_name_costs_a_few_tokens() -> None:
    session = ToolSearch([defined(f"create_record_{n}", "erp") for n in range(200)], directory=200).session()
    assert ESTIMATE.count("\n".join(directory(session))) <= 5 * 200


def test_in_static_there_is_no_note_at_all() -> None:
    session = ToolSearch(TOOLS, mode="static", directory=200).session()
    assert (session.instructions(), session.has_directory) == ("", False)


def test_a_catalog_without_tools_has_no_directory() -> None:
    assert ToolSearch([], directory=200).session().instructions() == PLAIN
    assert ToolSearch(TOOLS, pinned=["*"], directory=200).session().has_directory is False


# -- the servers -------------------------------------------------------------------------------------------------------


def test_of_a_larger_catalog_the_servers_stand_there_with_counts_and_subjects() -> None:
    tools = [
        *(defined(f"{verb}_pull_request", "github") for verb in ("create", "list", "merge")),
        *(defined(f"{verb}_issue", "github", category="Tracking") for verb in ("create", "list", "close", "get")),
        *(defined(f"read_{what}", "files") for what in ("file", "files", "folder")),
        defined("ping", "echo"),
        defined("stand_alone"),
    ]
    session = ToolSearch(tools, "keyword", directory=5).session()
    assert directory(session) == [
        'What search_tools can find, with the number of tools; the query "server:NAME" lists their names:',
        "github (7): Tracking, issue, pull",
        "files (3): folder",
        "echo (1)",
        "without a server (1): alone, stand",
    ]


def test_without_servers_the_categories_stand_there() -> None:
    tools = [defined(f"read_{n}", category="files") for n in "abc"] + [
        defined("send_mail", category="mail"),
        defined("x"),
    ]
    assert directory(ToolSearch(tools, directory=2).session())[1:] == [
        "files (3)",
        "mail (1)",
        "without a category (1)",
    ]


def test_many_servers_cost_no_more_than_an_answer() -> None:
    tools = [defined(f"read_{n}", f"server number {n}") for n in range(900)]
    session = ToolSearch(tools, directory=200, answer_tokens=300).session()
    lines = directory(session)
    assert ESTIMATE.count("\n".join(lines)) <= 340
    left = 900 - (len(lines) - 2)
    assert lines[-1] == f"and {left} more servers with {left} tools"


def test_what_tools_are_about_comes_from_their_categories_and_names() -> None:
    def about(*names: str, category: str | None = None, server: str = "acme") -> list[str]:
        tools = [tool(defined(name, server, category=category)) for name in names]
        return subjects_of(tools, [server])

    assert about("getUserProfile", "updateUserProfile", "listUsers") == ["user", "profile"]
    assert about("list_statuses", "get_status") == ["statuses"]
    assert about("list_categories", "get_category", "list_boxes") == ["category", "boxes"]
    assert about("a", "b2", "get", "run") == []
    assert about("acme_order_get", "acme_orders_list") == ["order"]
    assert about("get_file", category="Files") == ["Files"]
    assert about("search_mail", category="post") == ["post", "mail"]


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), max_size=5), st.text(max_size=20))
def test_subjects_can_be_had_of_any_names(names: list[str], server: str) -> None:
    tools = [each for name in names if name.strip() for each in Catalog([defined(name, server or None)])]
    assert len(subjects_of(tools, [server])) <= 4
    assert all("\n" not in subject for subject in subjects_of(tools))


# -- fixed bytes -------------------------------------------------------------------------------------------------------


def test_a_change_of_the_catalog_changes_nothing_until_a_compaction() -> None:
    search = ToolSearch(TOOLS, "keyword", directory=200)
    session = search.session("s", caller=ADMIN)
    note = session.instructions()
    search.catalog.extend([defined("create_issue", "gitlab"), defined("new_one")])
    search.catalog.remove("slack/send_message")
    assert session.instructions() == note
    assert search.restore(json.dumps(session.export()), caller=ADMIN).instructions() == note
    session.tools()
    called = session.handle(ToolCall("1", "create_issue", {}))
    assert called.status == "not_loaded", "the name that was told still means the tool that it meant"
    session.after_compaction()
    assert session.instructions() != note
    assert "new_one" in session.instructions()
    assert "send_message" not in session.instructions()


def test_a_session_that_was_stored_without_one_has_none_until_a_compaction() -> None:
    state = ToolSearch(TOOLS, "keyword").session("s").export()
    again = ToolSearch(TOOLS, "keyword", directory=200).restore(state)
    assert again.instructions() == PLAIN
    again.after_compaction()
    assert again.has_directory


@pytest.mark.parametrize("broken", [5, {"text": "a"}, {"text": "a", "ids": None, "servers": [], "roles": []}])
def test_a_state_that_is_damaged_is_refused(broken: Any) -> None:
    search = ToolSearch(TOOLS, "keyword", directory=200)
    state = search.session("s").export()
    with pytest.raises(StateError, match="not an exported session"):
        search.restore({**state, "directory": broken})


# -- who may see what --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [3, 200])
def test_D12_what_a_caller_may_not_see_is_neither_named_nor_counted(most: int) -> None:
    tools = [*TOOLS, defined("hidden", "github", roles=["admin"])]
    with_it = ToolSearch(tools, "keyword", directory=most).session(caller=GUEST).instructions()
    without = ToolSearch([t for t in tools if not t.get("roles")], "keyword", directory=most).session(caller=GUEST)
    assert with_it == without.instructions()
    assert "vault" in ToolSearch(tools, "keyword", directory=most).session(caller=ADMIN).instructions()


@pytest.mark.parametrize("most", [3, 200])
@pytest.mark.parametrize("restored", [False, True])
def test_D12_what_a_caller_lost_leaves_the_directory(most: int, restored: bool) -> None:
    search = ToolSearch(TOOLS, "keyword", directory=most)
    session = search.session("s", caller=ADMIN)
    assert "vault" in session.instructions()
    lost = search.restore(session.export(), caller=GUEST) if restored else search.session("s", caller=GUEST)
    assert "vault" not in lost.instructions()
    assert "rotate_key" not in lost.instructions()
    assert lost.instructions() == lost.instructions()


def test_D12_a_rule_that_changes_its_mind_is_heard() -> None:
    allowed = [True]
    rule = rules(lambda each, caller: each.server != "vault" or bool(allowed), version=lambda: len(allowed))
    tools = [{**each, "roles": []} for each in TOOLS]
    session = ToolSearch(tools, "keyword", visible=rule, directory=200).session()
    assert "rotate_key" in session.instructions()
    allowed.clear()
    assert "rotate_key" not in session.instructions()


# -- why ---------------------------------------------------------------------------------------------------------------


def test_why_says_what_auto_brings() -> None:
    auto: Any = {"mode": "auto", "auto_tools": 0, "auto_tokens": 0}
    assert (
        ToolSearch(TOOLS, **auto)
        .session()
        .why()
        .endswith(
            "searching pays; the instructions name all tools; up to 3 that fit the words of a message come with it"
        )
    )
    assert "the instructions name the servers; up to" in ToolSearch(many(201), **auto).session().why()
    assert ToolSearch(TOOLS, **auto, directory=0, preselect=0).session().why().endswith("searching pays")


# -- the overview ------------------------------------------------------------------------------------------------------


def nothing(session: Session, query: str = "xyzzy quux") -> str:
    """The answer to a search that finds nothing."""
    answer = session.handle(ToolCall("1", "search_tools", {"queries": [query]}))
    assert answer.data["loaded"] == []
    return answer.content


def test_where_nothing_fits_all_names_of_a_few_tools_are_shown() -> None:
    search = ToolSearch(TOOLS, "keyword", pinned=["ask_user"])
    assert nothing(search.session(caller=GUEST)).endswith(
        "\nThese are all tools:\n"
        "github: create_issue, list_issues, github_search_86c865d0\n"
        "slack: slack_search_6a7fc616, send_message"
    )


def test_where_nothing_fits_in_a_larger_catalog_the_servers_are_shown() -> None:
    tools = [*many(60), *many(9, "mail"), defined("ask_user")]
    assert nothing(ToolSearch(tools, "keyword").session()).endswith(
        '\nWhat there is; the query "server:NAME" lists the names of one:\n'
        "files (60)\nmail (9): file\nwithout a server (1): ask, user"
    )
    crowd = [defined(f"read_{n}", f"server number {n}") for n in range(900)]
    text = nothing(ToolSearch(crowd, "keyword").session()).partition("What there is")[2]
    assert ESTIMATE.count(text) < 200
    assert re.search(r"\nand \d+ more servers with \d+ tools\Z", text)


def test_what_there_is_is_shown_once_in_a_row_of_searches_in_vain_and_not_beside_a_directory() -> None:
    session = ToolSearch(TOOLS, "keyword").session()
    assert "These are all tools" in nothing(session)
    assert "These are all tools" not in nothing(session, "frobnicate blah")
    session.handle(ToolCall("2", "search_tools", {"queries": ["select:send_message"]}))
    assert "These are all tools" in nothing(session, "plugh")
    assert "These are all tools" not in nothing(ToolSearch(TOOLS, "keyword", directory=200).session())
    unknown = session.handle(ToolCall("3", "search_tools", {"queries": ["select:no_such_tool"]}))
    assert "These are all tools" not in unknown.content, "a name was wrong, not the idea"
    assert nothing(ToolSearch([], "keyword").session()).endswith("one capability a query.")


@pytest.mark.parametrize("extra", [0, 60])
def test_D12_what_is_shown_where_nothing_fits_tells_nothing_of_hidden_tools(extra: int) -> None:
    tools = [*TOOLS, defined("hidden", "github", roles=["admin"]), *many(extra)]
    open_ones = [each for each in tools if not each.get("roles")]
    with_them, without = (ToolSearch(each, "keyword").session(caller=GUEST) for each in (tools, open_ones))
    assert nothing(with_them) == nothing(without)
    assert "vault" in nothing(ToolSearch(tools, "keyword").session(caller=ADMIN))


def test_the_wire_is_not_touched_by_it() -> None:
    plain, told = (ToolSearch(TOOLS, "keyword", directory=most).session() for most in (0, 200))
    assert openai_chat.tools_for(plain) == openai_chat.tools_for(told)
