"""The lists of servers: every page, bad tools beside good ones, changes told and untold, servers away and back."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from tests.mcp.servers import entry, over_http
from toolsearch import Agent, ToolCall, ToolSearch
from toolsearch.mcp import Servers
from toolsearch.mcp.questions import Question
from toolsearch.testing import ScriptedModel

PAGED = ["page_0_a", "page_0_b", "page_1_a", "page_1_b", "page_2_a", "page_2_b"]


def legacy(server: dict[str, object], **options: object) -> dict[str, object]:
    return {**server, "toolsearch": {"protocol": "legacy", **options}}


def asked(question: Question) -> dict[str, object] | None:
    questions.append(question)
    return {"confirm": True} if "a.txt" in question.message else None


questions: list[Question] = []


@pytest.fixture(scope="module")
def asking() -> Iterator[dict[str, Any]]:
    """One process that asks the user, in both generations."""
    with over_http("asking") as web:
        yield {"asks": web, "asked": legacy(web)}


@pytest.fixture(scope="module")
def servers(asking: dict[str, Any]) -> Iterator[Servers]:
    config = {kind: entry("raw", pages=kind) for kind in ("good", "repeated", "empty", "null", "failing")}
    config |= asking | {
        "later": entry("raw", pages="good", fail_after=1),
        "bad": entry("raw", bad="all"),
        "new": entry("changing"),
        "old": legacy(entry("changing")),
        "silent": entry("changing", told="no"),
        "quiet": {**entry("changing", told="no", after_lists=1), "toolsearch": {"refresh_seconds": 1}},
    }
    with Servers(config, connect_seconds=20, ask=asked) as started:
        yield started


def names_of(servers: Servers, server: str) -> list[str]:
    return [tool.name for tool in servers.catalog if tool.server == server]


def until(condition: Callable[[], bool], seconds: float = 15) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not condition():
        time.sleep(0.02)
    return condition()


@pytest.fixture
def search(servers: Servers) -> ToolSearch:
    return ToolSearch(servers.catalog, run=servers.run, index="keyword", not_loaded="run")


def test_a_search_says_that_a_server_is_still_connecting_and_finds_its_tools_later() -> None:
    """J43: it starts so slowly that the program goes on without it."""
    with Servers({"slow": entry("plain", slow_start=2)}, connect_seconds=0.1) as servers:
        search = ToolSearch(servers.catalog, run=servers.run, index="keyword", not_loaded="run")
        session = search.session()
        assert servers.health()["slow"].state == "connecting"
        first = session.handle(ToolCall("1", "search_tools", {"queries": ["calendar of the team"]}))
        assert "'slow'" in first.content
        assert "it is still connecting" in first.content
        assert asyncio.run(servers.ready(30, ["slow"]))["slow"].state == "ready"
        later = session.handle(ToolCall("2", "search_tools", {"queries": ["read the calendar number 2"]}))
        assert "slow__read_2" in later.content
        assert "connecting" not in later.content
        assert session.handle(ToolCall("3", "slow__read_2", {"key": "x"})).content.startswith("test read_2 x")


@pytest.mark.parametrize("kind", ["good", "repeated", "empty", "null"])
def test_every_page_is_read_and_no_cursor_leads_round_in_a_circle(servers: Servers, kind: str) -> None:
    """D01, J41: null, an empty text and no cursor at all are the end; a cursor that came before is too."""
    assert until(lambda: servers.health()[kind].state == "ready")
    assert names_of(servers, kind) == (PAGED[:4] if kind == "repeated" else PAGED)


def test_a_list_that_breaks_off_is_none(servers: Servers) -> None:
    """D05: half a list would remove tools."""
    assert until(lambda: servers.health()["failing"].state == "failed")
    assert names_of(servers, "failing") == []
    assert "failing" in servers.catalog.missing


def test_a_later_list_that_breaks_off_changes_nothing(servers: Servers, caplog: pytest.LogCaptureFixture) -> None:
    """D05: the tools, and the connection, stay as they were."""
    assert names_of(servers, "later") == PAGED
    asyncio.run(servers.refresh("later"))
    assert "server 'later': its tools could not be listed again, and stay as they were" in caplog.text
    assert names_of(servers, "later") == PAGED
    assert servers.health()["later"].state == "ready"
    assert asyncio.run(servers.call("later", "page_2_b")).content[0].text.startswith("page_2_b")


def test_one_unreadable_tool_costs_that_tool(servers: Servers, search: ToolSearch) -> None:
    """J40: and what was set aside is named."""
    good = {"page_0_a", "page_0_b"}
    assert good <= {*names_of(servers, "bad")}
    aside = {each.name for each in servers.catalog.quarantined}
    assert {"schema_text", "schema_list"} <= aside | {*names_of(servers, "bad")}
    for name in names_of(servers, "bad"):
        assert search.session().handle(ToolCall("1", f"bad__{name}", {})).ok


@pytest.mark.parametrize("server", ["new", "old", "silent"])
def test_a_tool_that_comes_is_found_in_the_same_session_and_one_that_goes_is_not(
    servers: Servers, search: ToolSearch, server: str
) -> None:
    """D03: in both generations, and from a server that tells nobody."""
    session = search.session()

    def found(call_id: str) -> str:
        return session.handle(
            ToolCall(call_id, "search_tools", {"queries": [f"open the treasure{server} vault"]})
        ).content

    assert f"{server}__treasure" not in found("1")
    assert session.handle(ToolCall("2", f"{server}__add", {"name": f"treasure{server}"})).ok
    assert until(lambda: f"{server}/treasure{server}" in servers.catalog)
    assert f"{server}__treasure{server}" in found("3")
    assert session.handle(ToolCall("4", f"{server}__treasure{server}", {})).ok
    assert session.handle(ToolCall("5", f"{server}__remove", {"name": f"treasure{server}"})).ok
    assert until(lambda: f"{server}/treasure{server}" not in servers.catalog)
    assert not session.handle(ToolCall("6", f"{server}__treasure{server}", {})).ok


def test_a_change_that_nobody_tells_is_found_without_a_call(servers: Servers) -> None:
    """I: a server whose tools are stale for a day."""
    assert until(lambda: "Before that, read" in servers.catalog["quiet/pay"].description)


def test_a_storm_of_notifications_is_a_few_listings(servers: Servers, search: ToolSearch) -> None:
    """I."""
    changes: list[str] = []
    end = servers.on_change(lambda server, kind: changes.append(f"{server} {kind}"))
    versions = servers.catalog.version
    assert search.session().handle(ToolCall("1", "new__storm", {})).ok
    time.sleep(1.5)
    end()
    assert changes.count("new tools") <= 4
    assert servers.catalog.version == versions


@pytest.mark.parametrize("server", ["asks", "asked"])
def test_what_a_server_asks_of_the_user_is_asked(servers: Servers, search: ToolSearch, server: str) -> None:
    """In both generations: one is asked by an answer, one by a request of the server."""
    questions.clear()
    agreed = search.session().handle(ToolCall("1", f"{server}__delete", {"name": "a.txt"}))
    assert agreed.content.startswith("deleted a.txt")
    assert [(q.server, q.tool, q.message, q.schema["required"]) for q in questions] == [
        (server, "delete", "Delete a.txt?", ["confirm"])
    ]
    unanswered = search.session().handle(ToolCall("2", f"{server}__delete", {"name": "b.txt"}))
    assert unanswered.content.startswith("not deleted: the user said cancel")


def test_where_nobody_can_be_asked_the_call_says_so(asking: dict[str, Any]) -> None:
    with Servers(asking) as servers:
        search = ToolSearch(servers.catalog, run=servers.run, index="keyword", not_loaded="run")
        for server in asking:
            result = search.session().handle(ToolCall("1", f"{server}__delete", {"name": "a.txt"}))
            assert result.status == "failed"
            assert "nobody can be asked here. Do not call it again for this" in result.content


def test_a_turn_while_a_server_is_away_does_not_unload_its_tools(servers: Servers, search: ToolSearch) -> None:
    """K19."""
    model = ScriptedModel(
        [("search_tools", {"queries": ["select:good__page_1_a"]})],
        "Found.",
        "Nothing to do.",
        [("good__page_1_a", {"x": 1})],
        "Done.",
    )
    agent = Agent(model, search)
    agent.run("Find it.", conversation_id="k19")
    servers.catalog.mark_missing("good", "it is away")
    agent.run("Wait.", conversation_id="k19")
    servers.catalog.mark_missing("good", None)
    agent.run("Call it.", conversation_id="k19")
    shown = [[each.name for each in request.tools] for request in model.requests]
    assert all("good__page_1_a" in names for names in shown[1:])
