"""Queries that list names: `list:*`, `server:github`, `category:files`; bounded, page by page, loading nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch import Caller, Session, ToolCall, ToolResult, ToolSearch
from toolsearch.tokens import ESTIMATE

ADMIN, GUEST = Caller("u", ["admin"]), Caller("u", [])


def defined(name: str, server: str | None = None, /, **more: Any) -> dict[str, Any]:
    return {"name": name, "server": server, "description": f"{name} it.", "run": lambda **given: given, **more}


TOOLS = [
    defined("create_issue", "github"),
    defined("list_issues", "github", category="read only"),
    defined("send_message", "Slack 2"),
    defined("read_file", "files", category="Files"),
    defined("rotate_key", "vault", roles=["admin"], category="secrets"),
    defined("restart_server", "ops"),
    defined("ask_user"),
]
SEARCH = ToolSearch(TOOLS, "keyword")


def asked(session: Session, *queries: str, **more: Any) -> ToolResult:
    return session.handle(ToolCall("1", "search_tools", {"queries": list(queries), **more}))


def listed(query: str, caller: Caller = GUEST, search: ToolSearch = SEARCH, **more: Any) -> str:
    session = search.session(caller=caller)
    result = asked(session, query, **more)
    assert result.status == "ok"
    assert session.loaded == (), "a listing loads nothing"
    return result.content


# -- the forms ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["server:github", "Server: github", " SERVER:GitHub ", "list:github", "server:git-hub"]
)
def test_a_server_is_listed_by_its_name_in_any_case(query: str) -> None:
    assert listed(query) == 'Server github, 2 tools; "select:NAME" loads one:\ncreate_issue, list_issues'


def test_a_category_and_all_are_listed_too() -> None:
    assert listed("category:files") == 'Category Files, 1 tool; "select:NAME" loads one:\nread_file'
    assert listed("category:read only").endswith("\nlist_issues")
    assert listed("list:*") == (
        'All tools, 6 tools; "select:NAME" loads one:\n'
        "Slack 2: send_message\nfiles: read_file\ngithub: create_issue, list_issues\nops: restart_server\n"
        "without a server: ask_user"
    )
    assert listed("list:all") == listed("list:*")
    assert listed("list:*", category="files").endswith("\nread_file")


def test_a_number_may_be_part_of_a_servers_name() -> None:
    assert listed("server:slack 2").startswith("Server Slack 2, 1 tool;")
    assert listed("server:slack 2 1").startswith("Server Slack 2, 1 tool;")
    assert "has 1 pages" in listed("server:slack 2 3")


@pytest.mark.parametrize(
    "query",
    [
        "list: open issues", "list issues", "server restart", "server: restart", "restart_server", "category", "list:",
        "server:", "list issues in github", "server:github issues", "list:* issues", "a server:github",
    ],
)  # fmt: skip
def test_other_queries_are_searched_whatever_they_look_like(query: str) -> None:
    content = asked(SEARCH.session(caller=GUEST), query).content
    assert 'NAME" loads one' not in content
    assert "No server is named" not in content
    assert "Loaded" in content or "Nothing fits" in content


def test_a_tool_that_has_such_a_name_is_meant_by_it() -> None:
    search = ToolSearch([*TOOLS, defined("server:github")], "keyword")
    assert asked(search.session(), "server:github").data["loaded"][0] == "server:github"


def test_an_unknown_place_gets_the_names_like_it() -> None:
    assert listed("server:githb") == 'No server is named "githb". Similar: github. "list:*" lists all names.'
    assert listed("category:filez") == 'No category is named "filez". Similar: Files. "list:*" lists all names.'
    assert listed("server:xyzzy") == 'No server is named "xyzzy". "list:*" lists all names.'


# -- pages -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [100, 250, 1_000])
def test_the_pages_together_have_every_name_once_and_each_is_bounded(tokens: int) -> None:
    tools = [defined(f"read_record_{n:03}", f"server{n % 7}") for n in range(300)]
    search = ToolSearch(tools, "keyword", answer_tokens=tokens)
    session, query, seen = search.session(), "list:*", list[str]()
    for _ in range(200):
        content = asked(session, query).content
        assert ESTIMATE.count(content) <= tokens + 40
        seen += re.findall(r"read_record_\d+", content)
        following = re.search(r'\nNext: "(.+)"\Z', content)
        if following is None:
            break
        query = following[1]
    assert sorted(seen) == [tool["name"] for tool in tools]
    assert "Ask for one of them" in asked(session, "list:* 999").content


def test_several_listings_cost_no_more_than_one_answer() -> None:
    tools = [defined(f"read_record_{n:03}", f"server{n % 7}") for n in range(300)]
    session = ToolSearch(tools, "keyword", answer_tokens=400).session()
    content = asked(session, *(f"server:server{n}" for n in range(7)), "read record 299").content
    left = re.findall(r"Not listed, to keep this short: ask (.+) alone", content)
    assert [one.count("server:") for one in left] == [5]
    assert "Loaded" in content
    assert ESTIMATE.count(content) <= 3 * 400


def test_asking_again_is_no_repetition_and_no_search_in_vain() -> None:
    session = SEARCH.session(caller=GUEST)
    contents = [asked(session, "server:github").content for _ in range(5)]
    assert len(set(contents)) == 1
    assert "in a row that found nothing" not in asked(session, "nothing of the kind").content


def test_what_is_listed_can_be_loaded_and_called() -> None:
    for mode in ("append", "bridge"):
        session = ToolSearch(TOOLS, "keyword", mode=mode).session()
        names = asked(session, "server:github").content.splitlines()[1].split(", ")
        assert asked(session, f"select:{','.join(names)}").data["loaded"] == [
            "github/create_issue",
            "github/list_issues",
        ]
        session.tools()
        assert session.handle(ToolCall("2", names[0], {})).ok


# -- who may see what --------------------------------------------------------------------------------------------------


def test_D12_what_a_caller_may_not_see_is_neither_listed_nor_counted_nor_similar() -> None:
    without = ToolSearch([tool for tool in TOOLS if not tool.get("roles")], "keyword")
    for query in ("list:*", "server:vault", "list:vault", "category:secrets", "server:vaul", "category:secret"):
        told = asked(SEARCH.session(caller=GUEST), query)
        assert (told.content, told.data) == (asked(without.session(caller=GUEST), query).content, told.data), query
    assert "rotate_key" in listed("server:vault", ADMIN)
    assert "rotate_key" in listed("category:secrets", ADMIN)
    assert "7 tools" in listed("list:*", ADMIN)


@settings(deadline=None)
@given(st.sampled_from(["list:", "server:", "category:", "LIST : "]), st.text(max_size=40))
def test_whatever_is_written_nothing_raises_and_nothing_hidden_is_told(form: str, rest: str) -> None:
    result = asked(SEARCH.session(caller=GUEST), form + rest)
    assert result.status in ("ok", "invalid_arguments")
    assert "rotate_key" not in result.content.replace(rest, "")


def test_pinned_tools_are_not_listed() -> None:
    search = ToolSearch(TOOLS, "keyword", pinned=["github/create_issue"])
    assert listed("server:github", search=search).endswith("\nlist_issues")
