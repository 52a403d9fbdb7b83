"""What a notebook shows of a session and of a result: all escaped, without a script, and nothing is changed."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from toolsearch import Catalog, Session, ToolCall, ToolResult, ToolSearch
from toolsearch.support.html import MOST_CHARACTERS

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\" ' & \ud800"
TAGS = {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "pre", "details", "summary"}


class Reader(HTMLParser):
    """The texts of well-formed HTML; fails on a tag or an attribute that needs trust."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        html.encode("utf-8")
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert {name for name, _ in attrs} <= {"style"}
        assert not {"color", "background"} & set(re.findall("[a-z]+", str(attrs))), "a notebook may be light or dark"
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def shown(of: Any) -> list[str]:
    return Reader(of._repr_html_()).texts


def session(mode: str, **settings: Any) -> Session:
    tools = [
        {"name": "send_mail", "description": f"Send a mail. {HOSTILE}", "input_schema": {"type": "object"}},
        {"name": "read_mail", "description": HOSTILE, "input_schema": {"type": "object"}},
        {"name": "clock", "description": "Say the time.", "input_schema": {"type": "object"}},
    ]
    return ToolSearch(Catalog(tools), "keyword", pinned=["clock"], mode=mode, **settings).session(HOSTILE)


def search(of: Session) -> ToolResult:
    return of.handle(ToolCall("1", "search_tools", {"queries": ["send mail"]}))


def rows(of: Session) -> list[tuple[str, str, str]]:
    """Tool, what it is, and how it is called."""
    texts = shown(of)
    start = texts.index("summary") + 1
    return [(texts[at], texts[at + 1], texts[at + 2]) for at in range(start, len(texts) - 1, 5)]


def test_a_session_shows_its_mode_and_why_and_its_tools() -> None:
    talk = session("append")
    talk.tools()
    texts = shown(talk)
    assert texts[0].startswith("Session ")
    assert texts[0].endswith("append: the setting `mode`")
    assert rows(talk) == [("search_tools", "built in", "search_tools"), ("clock", "pinned", "clock")]
    assert texts[-1].startswith("A request carries 2 tools, about ")


def test_a_found_tool_is_shown_before_a_request_carries_it_and_then() -> None:
    talk = session("append")
    talk.tools()
    search(talk)
    assert ("send_mail", "found", "in the next request") in rows(talk)
    talk.tools()
    assert ("send_mail", "found", "send_mail") in rows(talk)


def test_in_bridge_a_found_tool_is_called_through_another_one() -> None:
    talk = session("bridge", call_tool="use")
    talk.tools()
    search(talk)
    assert ("send_mail", "found", "through use") in rows(talk)


def test_in_static_all_tools_are_listed() -> None:
    talk = session("static")
    talk.tools()
    assert ("send_mail", "listed", "send_mail") in rows(talk)


def test_looking_at_a_session_changes_nothing() -> None:
    talk = session("append")
    talk.tools()
    search(talk)
    before = talk.export()
    shown(talk)
    assert talk.export() == before
    assert [each.name for each in talk.shown()] == ["search_tools", "clock"]


def test_a_large_session_shows_its_beginning() -> None:
    many = [{"name": f"tool_{n}", "description": "x" * 500, "input_schema": {"type": "object"}} for n in range(120)]
    talk = ToolSearch(Catalog(many), "keyword", mode="static").session()
    talk.tools()
    assert shown(talk)[-1] == "… and 70 more"
    assert len(talk._repr_html_()) < 30_000


def test_a_result_shows_its_status_its_text_and_what_it_found() -> None:
    result = search(session("append"))
    texts = shown(result)
    assert texts[0] == "search_tools: ok"
    assert result.content.splitlines()[0] in texts[1]
    assert "Found" in texts
    assert "send_mail" in texts


@pytest.mark.parametrize("content", [HOSTILE, f"{HOSTILE}\n" * 40, ""])
def test_a_result_is_shown_as_text(content: str) -> None:
    texts = shown(ToolResult("1", HOSTILE, "failed", content, found={HOSTILE: HOSTILE}))
    assert content.replace("\ud800", "\ufffd").strip() in "".join(texts)


def test_a_long_result_is_folded_and_cut() -> None:
    html = ToolResult("1", "read", "ok", "line\n" * 5_000)._repr_html_()
    assert "<details><summary>line</summary>" in html
    assert "characters]" in html
    assert len(html) < MOST_CHARACTERS + 500


def test_hits_of_a_long_query_stay_small() -> None:
    hits = ToolSearch(Catalog([{"name": "send_mail", "description": "Send a mail."}]), "keyword").find("mail " * 400)
    assert len(shown(hits)[0]) < 300
