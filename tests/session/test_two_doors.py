"""In "bridge", actions can have a call tool of their own, so that a client can ask a person before these alone."""

from __future__ import annotations

from typing import Any

import pytest

from toolsearch import Session, Settings, SetupError, Tool, ToolCall, ToolResult, ToolSearch
from toolsearch.catalog.marks import Marks

RAN: list[str] = []


def git_tool(name: str, description: str, kind: Any) -> Tool:
    return Tool(id=f"git/{name}", name=name, description=description, server="git", marks=Marks(kind=kind))


TOOLS = [
    git_tool("git_status", "Shows the status of the working tree.", "read"),
    git_tool("git_log", "Shows the log of the commits.", "read"),
    git_tool("git_commit", "Records the changes as a commit.", "action"),
]


def opened(**options: Any) -> Session:
    RAN.clear()
    search = ToolSearch(
        TOOLS,
        index="keyword",
        mode="bridge",
        action_tool="call_action",
        run=lambda tool, arguments, context: RAN.append(tool.id) or "done",
        **options,
    )
    return search.session()


def called(session: Session, door: str, name: str) -> ToolResult:
    return session.handle(ToolCall("1", door, {"name": name, "arguments": {}}))


def test_the_second_door_is_listed_and_each_says_what_it_is_for() -> None:
    tools = {shown.name: shown.tool for shown in opened().tools()}
    assert list(tools) == ["search_tools", "call_tool", "call_action"]
    assert (tools["call_tool"].kind, tools["call_action"].kind) == ("read", "action")
    assert "call_action" in tools["call_tool"].description
    assert "call_tool or call_action" in tools["search_tools"].description


def test_an_action_does_not_run_through_the_door_of_reads_and_runs_through_its_own() -> None:
    session = opened(not_loaded="run")
    refused = called(session, "call_tool", "git_commit")
    assert (refused.status, RAN) == ("invalid_arguments", [])
    assert "did not run: it may change something. Call it through call_action" in refused.content
    assert called(session, "call_action", "git_commit").ok
    assert called(session, "call_tool", "git_status").ok
    assert RAN == ["git/git_commit", "git/git_status"]


def test_a_read_runs_through_either_door() -> None:
    """A person who allowed more than was needed is not asked again."""
    assert called(opened(not_loaded="run"), "call_action", "git_status").ok


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select:git_commit", "Loaded 1 tool; call it through call_action.\n- git_commit (git) (action): Records"),
        ("select:git_status", "Loaded 1 tool; call it through call_tool.\n- git_status (git): Shows"),
        (
            "select:git_status,git_commit",
            "Loaded 2 tools; call them through call_tool, or call_action where it says (action).",
        ),
    ],
)
def test_an_answer_says_through_which_door_a_tool_is_called(query: str, told: str) -> None:
    answer = opened().handle(ToolCall("1", "search_tools", {"queries": [query]})).content
    assert answer.startswith(told)


def test_names_alone_are_marked_too() -> None:
    answer = opened(results=1).handle(ToolCall("1", "search_tools", {"queries": ["shows the commit log"]})).content
    assert "git_commit (action)" in answer


def test_a_tool_that_is_not_loaded_is_shown_with_its_door() -> None:
    answer = called(opened(), "call_action", "git_commit").content
    assert "call 'git_commit' through call_action in your next step" in answer


def test_a_second_door_needs_the_mode_that_has_doors_and_a_name_of_its_own() -> None:
    with pytest.raises(SetupError, match="needs mode='bridge', not 'append'"):
        Settings.of(mode="append", action_tool="call_action")
    with pytest.raises(SetupError, match="another built-in tool has that name"):
        Settings.of(mode="bridge", action_tool="call_tool")


def test_the_names_of_both_doors_are_kept_free() -> None:
    """A server's tool of that name would take the calls that are meant for the door."""
    search = ToolSearch(
        [*TOOLS, git_tool("Call_Action", "Takes calls.", "read")], mode="bridge", action_tool="call_action"
    )
    assert "git/Call_Action" not in search.catalog
    assert len(search.catalog) == len(TOOLS)
