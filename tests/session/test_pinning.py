"""Pinned tools: named, of a server, or fitting a pattern, also those that come later."""

import logging
from typing import Any

import pytest

from toolsearch import Caller, Catalog, SetupError, ToolCall, ToolSearch
from toolsearch.session import Session


def defined(name: str, server: str | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", **({"server": server} if server else {}), **more}


def shown(session: Session) -> list[str]:
    return [each.name for each in session.tools()]


def catalog() -> Catalog:
    tools = [defined("read_note", "notes"), defined("add_note", "notes"), defined("send_mail", "mail"), defined("add")]
    return Catalog(tools)


@pytest.mark.parametrize(
    "pinned", [["notes/*"], ["notes"], "notes/*", ["*_note"], ["notes/[ra]*"], ["notes/add_note", "notes"]]
)
def test_a_server_or_a_pattern_pins_all_its_tools(pinned: Any) -> None:
    """J33: always listed, never searched."""
    search = ToolSearch(catalog(), "keyword", pinned=pinned)
    assert {t.id for t in search.pinned} == {"notes/read_note", "notes/add_note"}
    assert sorted(shown(search.session())) == ["add_note", "read_note", "search_tools"]
    assert [hit.tool.id for hit in search.find("does note")] == []
    assert [hit.tool.id for hit in search.find("does mail")] == ["mail/send_mail"]


def test_a_tools_own_name_goes_before_a_servers() -> None:
    tools = [defined("notes"), defined("read_note", "notes")]
    assert [t.id for t in ToolSearch(tools, "keyword", pinned=["notes"]).pinned] == ["notes"]


def test_a_tool_whose_name_looks_like_a_pattern_is_itself() -> None:
    assert [t.name for t in ToolSearch([defined("a?"), defined("ab")], "keyword", pinned=["a?"]).pinned] == ["a?"]


@pytest.mark.parametrize("pinned", [["notes/*"], ["notes"]])
def test_tools_that_come_later_are_pinned_too(pinned: list[str]) -> None:
    """J33: the model of a conversation under way sees them at the end, once; what it was shown keeps its place."""
    tools = catalog()
    search = ToolSearch(tools, "keyword", pinned=pinned)
    session = search.session()
    before = shown(session)
    session.handle(ToolCall("1", "search_tools", {"queries": ["send mail"]}))
    assert shown(session) == [*before, "send_mail"]
    tools.add(defined("delete_note", "notes"))
    assert shown(session) == [*before, "send_mail", "delete_note"]
    assert "pinned tools came: delete_note" in session.notices()
    assert shown(search.session())[-1] == "delete_note"
    assert [hit.tool.id for hit in search.find("does delete")] == []
    session.after_compaction()
    assert shown(session) == [*before, "delete_note", "send_mail"]


def test_a_pattern_may_fit_nothing_yet() -> None:
    tools = Catalog([defined("add")])
    search = ToolSearch(tools, "keyword", pinned=["notes/*"])
    assert search.pinned == ()
    tools.sync([defined("read_note")], server="notes")
    assert [t.id for t in search.pinned] == ["notes/read_note"]
    tools.sync([], server="notes")
    assert search.pinned == ()
    tools.sync([defined("read_note")], server="notes")
    assert shown(search.session()) == ["search_tools", "read_note"]


def test_in_bridge_a_later_tool_is_listed_after_the_next_compaction() -> None:
    tools = catalog()
    session = ToolSearch(tools, "keyword", pinned=["notes/*"], mode="bridge").session()
    before = shown(session)
    tools.add(defined("delete_note", "notes"))
    assert shown(session) == before
    session.after_compaction()
    assert shown(session) == [*before, "delete_note"]


def test_pinned_tools_stay_within_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    """J33: too many at the start are an error; those that come later and do not fit are searched."""
    many = [defined(f"note_{i}", "notes") for i in range(4)]
    with pytest.raises(SetupError, match="4 tools are pinned; with max_tools=5 at most 3 can be"):
        ToolSearch(many, "keyword", pinned=["notes/*"], max_tools=5)
    tools = Catalog(many[:3])
    search = ToolSearch(tools, "keyword", pinned=["notes/*"], max_tools=5)
    with caplog.at_level(logging.WARNING, "toolsearch"):
        tools.add(many[3])
        assert len(search.pinned) == 3
    assert "'notes/note_3'" in caplog.text
    assert [hit.tool.id for hit in search.find("does note")] == ["notes/note_3"]
    tools.remove("notes/note_0")
    assert [t.id for t in search.pinned] == ["notes/note_1", "notes/note_2", "notes/note_3"]
    assert [hit.tool.id for hit in search.find("does note")] == []


def test_a_pattern_shows_nobody_a_tool_that_is_hidden_from_him() -> None:
    tools = catalog()
    search = ToolSearch(tools, "keyword", pinned=["notes/*"])
    guest, admin = search.session(), search.session(caller=Caller("ana", roles=["admin"]))
    tools.add(defined("delete_note", "notes", roles=["admin"]))
    assert "delete_note" not in shown(guest)
    assert "delete_note" in shown(admin)
    assert "delete_note" not in shown(search.session())


def test_a_restored_session_lists_a_later_pinned_tool_once() -> None:
    tools = catalog()
    search = ToolSearch(tools, "keyword", pinned=["notes/*"])
    session = search.session("s")
    shown(session)
    tools.add(defined("delete_note", "notes"))
    shown(session)
    again = ToolSearch(tools, "keyword", pinned=["notes/*"]).restore(session.export())
    assert sorted(shown(again)) == ["add_note", "delete_note", "read_note", "search_tools"]


def test_a_misspelt_server_is_an_error() -> None:
    with pytest.raises(SetupError, match="the pinned tool 'noteS' is not in the catalog"):
        ToolSearch(catalog(), "keyword", pinned=["noteS"])


def test_a_server_without_tools_yet_is_pinned_by_a_pattern_and_the_error_says_so() -> None:
    with pytest.raises(SetupError, match=r"'github' is not in the catalog; tools that come later .* 'github/\*'"):
        ToolSearch([], "keyword", pinned=["github"])
    assert ToolSearch([], "keyword", pinned=["github/*"]).pinned == ()
