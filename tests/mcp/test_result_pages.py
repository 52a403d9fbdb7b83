"""Results that are too long for a model: group N of what users of gateways report."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch import SetupError
from toolsearch.mcp.guards import FETCH_RESULT, ResultPages
from toolsearch.mcp.guards.result_pages import estimated_tokens


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def image(size: int) -> dict[str, Any]:
    return {"type": "image", "data": base64.b64encode(b"\x89" * size).decode(), "mimeType": "image/png"}


def read_all(pages: ResultPages, first: dict[str, Any], key: str | None) -> list[list[dict[str, Any]]]:
    """The blocks of all pages, without their notes, read as a model does: by the call that a note names."""
    read, shown = [first["content"][:-1]], first
    while "call fetch_result with " in (note := shown["content"][-1]["text"]):
        call, _ = json.JSONDecoder().raw_decode(note, note.index("{"))
        assert call["key"] == key
        shown = pages.page(call["key"], call["page"])
        assert shown["isError"] is False
        read.append(shown["content"][:-1])
    assert "This is the end of it" in shown["content"][-1]["text"]
    return read


def whole_text(read: list[list[dict[str, Any]]]) -> str:
    return "".join(block["text"] for page in read for block in page if block["type"] == "text")


def test_a_result_within_the_budget_stays_as_it_is() -> None:
    result = {"content": [text("short"), image(90_000)], "structuredContent": {"a": 1}, "_meta": {"x": 1}}
    assert ResultPages().cut(result) == (result, None)


def test_a_long_text_comes_in_pages_that_together_hold_all_of_it() -> None:
    """318,000 characters in one result (nicobailon/pi-mcp-adapter#160)."""
    long = "".join(f"line {n}: the quick brown fox\n" for n in range(10_300))
    assert len(long) > 318_000
    pages = ResultPages(10_000)
    first, key = pages.cut({"content": [text(long)], "isError": False, "_meta": {"trace": "t1"}})
    assert first["_meta"] == {"trace": "t1"}
    assert first["isError"] is False
    assert first["content"][-1]["text"].startswith(f"[Page 1 of 11 of a result of {len(long):,} characters.")
    read = read_all(pages, first, key)
    assert whole_text(read) == long
    assert all(block["text"].endswith("\n") for page in read for block in page)  # cut at the ends of lines
    for page in read:
        assert sum(estimated_tokens(block["text"]) for block in page) <= 10_000


def test_ten_megabytes_in_one_line_are_kept_and_come_in_pages() -> None:
    pages = ResultPages(50_000)
    long = json.dumps(["ж" * 50] * 100_000, ensure_ascii=False)
    assert len(long.encode()) > 10_000_000
    first, key = pages.cut({"content": [text(long)]})
    assert sum(estimated_tokens(block["text"]) for block in first["content"]) <= 50_000
    assert whole_text(read_all(pages, first, key)) == long


def test_a_result_that_is_too_large_to_keep_says_that_the_rest_is_lost() -> None:
    pages = ResultPages(500, most_bytes=10_000)
    first, key = pages.cut({"content": [text("x" * 20_000)]})
    assert key is None
    assert "The rest is too large to be kept and is lost: ask for less" in first["content"][-1]["text"]
    assert len(pages) == 0


def test_images_stay_whole_and_are_named_before_their_page_comes() -> None:
    pages = ResultPages(3_000)
    blocks = [text("a" * 5_000), image(30_000), image(40_000), image(50_000), text("the end")]
    first, key = pages.cut({"content": blocks})
    note = first["content"][-1]["text"]
    assert "Later pages hold, besides text: image/png, 40,000 bytes (page 2), image/png, 50,000 bytes (page 2)" in note
    read = read_all(pages, first, key)
    assert [block for page in read for block in page] == blocks


def test_an_image_that_is_too_large_is_named_and_comes_when_it_is_asked_for() -> None:
    pages = ResultPages()
    first, key = pages.cut({"content": [image(9_000_000)]})
    assert [block["type"] for block in first["content"]] == ["text"]
    assert "Later pages hold, besides text: image/png, 9,000,000 bytes (page 2)" in first["content"][0]["text"]
    assert pages.page(key, 2)["content"][0] == image(9_000_000)


def test_resources_keep_their_frame_on_each_page_and_files_stay_whole() -> None:
    pages = ResultPages(1_000)
    report = {"type": "resource", "resource": {"uri": "file:///r.txt", "mimeType": "text/plain", "text": "word " * 900}}
    blob = base64.b64encode(b"%PDF" * 2_000).decode()
    file = {"type": "resource", "resource": {"uri": "file:///r.pdf", "mimeType": "application/pdf", "blob": blob}}
    first, key = pages.cut({"content": [report, file]})
    assert "application/pdf, 8,000 bytes (page 3)" in first["content"][-1]["text"]
    *texts, last = [block for page in read_all(pages, first, key) for block in page]
    assert {block["resource"]["uri"] for block in texts} == {"file:///r.txt"}
    assert "".join(block["resource"]["text"] for block in texts) == "word " * 900
    assert last == file


def test_structured_content_that_a_text_repeats_is_not_paged_twice() -> None:
    rows = [{"row": n, "value": "x" * 20} for n in range(1_000)]
    pages = ResultPages(5_000)
    first, key = pages.cut({"content": [text(json.dumps(rows))], "structuredContent": rows})
    assert "structuredContent" not in first
    assert json.loads(whole_text(read_all(pages, first, key))) == rows


def test_structured_content_that_no_text_repeats_becomes_a_part_of_the_pages() -> None:
    rows = {"rows": [{"row": n, "value": "x" * 20} for n in range(1_000)]}
    pages = ResultPages(5_000)
    first, key = pages.cut({"content": [text("1,000 rows.")], "structuredContent": rows})
    assert "structuredContent" not in first
    assert whole_text(read_all(pages, first, key)) == "1,000 rows." + json.dumps(rows)


def test_structured_content_stays_for_a_client_that_knows_the_output_schema() -> None:
    rows = {"rows": ["x" * 20] * 5_000}
    result = {"content": [text(json.dumps(rows))], "structuredContent": rows}
    first, key = ResultPages(5_000).cut(result, keep_structured=True)
    assert first["structuredContent"] == rows
    assert key is not None


@pytest.mark.parametrize(
    "content",
    [
        None,
        "text",
        {"type": "text", "text": "x" * 99_999},
        [None, 7, "x" * 99_999],
        [{"type": "odd", "x": "y" * 99_999}],
    ],
)
def test_odd_content_of_a_hostile_server_raises_nothing(content: object) -> None:
    pages = ResultPages(1_000)
    first, key = pages.cut({"content": content})
    if key is not None:
        read_all(pages, first, key)


def test_a_text_with_a_huge_frame_is_not_repeated_on_each_page() -> None:
    block = {**text("word " * 2_000), "_meta": {"noise": "n" * 100_000}}
    pages = ResultPages(1_000)
    first, key = pages.cut({"content": [block]})
    assert estimated_tokens(json.dumps(first)) < 1_000
    assert read_all(pages, first, key)[1:] == [[block]]


def test_old_results_make_room_and_a_lost_key_says_what_to_do() -> None:
    pages = ResultPages(500, most_bytes=50_000)
    keys = [pages.cut({"content": [text(letter * 20_000)]})[1] for letter in "abc"]
    assert len(pages) == 2
    gone = pages.page(keys[0], 2)
    assert gone["isError"] is True
    assert "Call the tool again" in gone["content"][0]["text"]
    assert pages.page(keys[2], "2")["content"][0]["text"].startswith("ccc")
    assert pages.page(keys[2], 2.0) == pages.page(keys[2], 2)


@pytest.mark.parametrize("at", [0, -1, 15, "two", None, True, float("nan"), float("inf"), {"a": 1}])
def test_a_page_that_is_not_there_is_an_error_that_names_the_pages(at: object) -> None:
    pages = ResultPages(1_000)
    _, key = pages.cut({"content": [text("x" * 20_000)]})
    assert "has the pages 1 to 9" in pages.page(key, at)["content"][0]["text"]


@pytest.mark.parametrize("key", ["", "0" * 12, None, 7, ["a"], "../../etc/passwd"])
def test_a_key_of_another_session_opens_nothing(key: object) -> None:
    mine, other = ResultPages(500), ResultPages(500)
    mine.cut({"content": [text("secret " * 1_000)]})
    assert other.page(key)["isError"] is True
    assert "secret" not in json.dumps(mine.page(key))


def test_sessions_share_a_room_and_open_nothing_of_each_other() -> None:
    """Memory stays flat, however many sessions are opened and left."""
    room = ResultPages(500, most_bytes=50_000)
    ana, ben = room.for_session("ana"), room.for_session("ben")
    _, first = ana.cut({"content": [text("a" * 20_000)]})
    _, second = ben.cut({"content": [text("b" * 20_000)]})
    assert ben.page(first)["isError"] is True
    assert ana.page(first)["isError"] is False
    assert (len(ana), len(ben), len(room)) == (1, 1, 0)
    ben.cut({"content": [text("b" * 20_000)]})
    assert (len(ana), len(ben)) == (0, 2)  # the oldest made room
    ben.clear()
    assert ben.page(second)["isError"] is True
    assert ana.cut({"content": [text("a" * 40_000)]})[1] is not None


def test_a_budget_too_small_for_a_note_is_refused() -> None:
    with pytest.raises(SetupError, match="budget_tokens must be a whole number of at least 500"):
        ResultPages(10)


def test_the_tool_that_reads_pages_is_a_read() -> None:
    assert FETCH_RESULT["annotations"]["readOnlyHint"] is True
    assert set(FETCH_RESULT["inputSchema"]["properties"]) == {"key", "page"}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=3_000) | st.integers(1, 3_000), min_size=1, max_size=12))
def test_whatever_the_parts_are_all_pages_together_hold_them(parts: list[str | int]) -> None:
    blocks = [text(part) if isinstance(part, str) else image(part) for part in parts]
    pages = ResultPages(700)
    first, key = pages.cut({"content": blocks})
    if key is None:
        assert first == {"content": blocks}
        return
    read = read_all(pages, first, key)
    assert whole_text(read) == "".join(part for part in parts if isinstance(part, str))
    assert [block for page in read for block in page if block["type"] == "image"] == [
        block for block in blocks if block["type"] == "image"
    ]
