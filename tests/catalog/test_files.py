"""Tools from files."""

import json
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Catalog, SetupError
from toolsearch.catalog.files import read_tools

A: dict[str, Any] = {"name": "a", "inputSchema": {"type": "object"}}
B: dict[str, Any] = {"type": "function", "function": {"name": "b"}}
LINES = f"{json.dumps(A)}\n\n{json.dumps(B)}\n"


@pytest.mark.parametrize("text", [
    json.dumps([A, B]), json.dumps([A, B], indent=2), json.dumps({"tools": [A, B], "nextCursor": None}),
    json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [A, B]}}), LINES, LINES.replace("\n", "\r\n"),
    "\n" + LINES,
    json.dumps([{"tools": [A]}, B]), f'{json.dumps({"tools": [A]})}\n{json.dumps({"result": {"tools": [B]}})}',
])  # fmt: skip
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "BOM"])
def test_a_file_of_any_form_gives_its_tools(tmp_path: Path, text: str, mark: str) -> None:
    file = tmp_path / "tools.json"
    file.write_bytes((mark + text).encode())
    catalog = Catalog(read_tools(file))
    assert [t.id for t in catalog] == ["a", "b"]
    assert not catalog.quarantined
    assert len(Catalog(read_tools(str(file)))) == 2


@pytest.mark.parametrize(
    ("whole", "ids"), [(A, ["a"]), ({"type": "namespace", "name": "crm", "tools": [A]}, ["crm/a"])]
)
def test_a_file_may_hold_one_definition(tmp_path: Path, whole: dict[str, Any], ids: list[str]) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(whole), "utf-8")
    assert [t.id for t in Catalog(read_tools(file))] == ids


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
def test_a_line_separator_inside_a_text_does_not_end_a_line(tmp_path: Path, separator: str) -> None:
    file = tmp_path / "tools.jsonl"
    lines = [json.dumps({"name": n, "description": f"One.{separator}Two."}, ensure_ascii=False) for n in "ab"]
    file.write_text("\n".join(lines), "utf-8")
    assert [t.id for t in Catalog(read_tools(file))] == ["a", "b"]


@pytest.mark.parametrize(("content", "told"), [
    (b"", "is empty"),
    (b" \n ", "is empty"),
    (b"5", "holds int, not tools"),
    (b"null", "holds NoneType, not tools"),
    (b'{"name": "a"}\n{"name": \n', "line 2"),
    (b"name,description\n", "is neither JSON nor JSON Lines"),
    (b"\xff\xfe\x00", "cannot be read"),
    (b"[" * 100_000, "nested too deeply"),
])  # fmt: skip
def test_a_broken_file_is_named_with_what_is_wrong(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "tools.json"
    file.write_bytes(content)
    with pytest.raises(SetupError, match=told) as caught:
        read_tools(file)
    assert "tools.json" in str(caught.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"there is no file .*nowhere"):
        read_tools(tmp_path / "nowhere.json")
    with pytest.raises(SetupError, match="cannot be read"):
        read_tools(tmp_path)


def test_one_bad_line_that_is_json_takes_only_itself_out(tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text(f"{json.dumps(A)}\n7\n{json.dumps(B)}", "utf-8")
    catalog = Catalog(read_tools(file))
    assert [t.id for t in catalog] == ["a", "b"]
    assert [q.name for q in catalog.quarantined] == ["7"]


# -- what people have --------------------------------------------------------------------------------------------------

ANSWER = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [A, B]}})
PROGRESS = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}})
HEADERS = "HTTP/2 200 \r\ncontent-type: text/event-stream\r\nmcp-session-id: 7\r\n\r\n"


@pytest.mark.parametrize("text", [
    f"event: message\ndata: {ANSWER}\n\n",
    f"event: message\r\ndata: {ANSWER}\r\n\r\n",
    f"data:{ANSWER}",
    f": keep-alive\n\nid: 1\nretry: 100\nevent: message\ndata: {ANSWER}\n\n",
    f"data: {PROGRESS}\n\ndata: {ANSWER}\n\n",
    "data: " + json.dumps(json.loads(ANSWER), indent=1).replace("\n", "\ndata: ") + "\n\n",
    f"{HEADERS}event: message\ndata: {ANSWER}\n\n",
    f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{ANSWER}",
    f"data: {ANSWER}\n\ndata: [DONE]\n\n",
    json.dumps({"a": {"description": "A."}, "b": {"description": "B.", "parameters": {"type": "object"}}}),
    json.dumps({"tools": {"a": {"description": "A."}, "b": {"description": "B."}}}),
    json.dumps({"functions": [A, B]}),
], ids=lambda text: text[:30])  # fmt: skip
def test_files_as_people_have_them_give_their_tools(tmp_path: Path, text: str) -> None:
    """J21, J22: the recorded answer of a server that streams, with or without headers; maps by name; `functions`."""
    file = tmp_path / "tools.txt"
    file.write_bytes(text.encode())
    catalog = Catalog.from_file(file)
    assert [t.id for t in catalog] == ["a", "b"]
    assert not catalog.quarantined


def test_a_file_that_powershell_wrote_is_read(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_bytes(LINES.encode("utf-16"))
    assert len(Catalog.from_file(file)) == 2


@pytest.mark.parametrize(("text", "told"), [
    ("event: message\n\n", "an event stream without a message"),
    ("data: <html>\n\n", "an event stream whose data is not JSON"),
    (f"data: {PROGRESS}\n\n", "an RPC request or notification"),
    ('{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}', "'Method not found'"),
    ('{"mcpServers": {"notes": {"command": "npx"}}}', "the configuration of an MCP client"),
    ('["add_note", "del_note"]', "'add_note' is a name or a text"),
    ("[]", "an empty list"),
    ('{"tools": []}', "an empty list"),
    ('[{"name": "a", "inputSchema": 5}]', "must be a JSON object, not int"),
])  # fmt: skip
def test_a_file_without_a_usable_tool_is_an_error_that_names_it(tmp_path: Path, text: str, told: str) -> None:
    """J22: what it is instead, and what to do."""
    file = tmp_path / "tools.json"
    file.write_text(text, "utf-8")
    with pytest.raises(SetupError, match=r"tools\.json") as caught:
        Catalog.from_file(file)
    assert told in str(caught.value)


def test_a_catalog_is_made_of_several_files_and_of_folders(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text(json.dumps(B), "utf-8")
    (tmp_path / "a.json").write_text(json.dumps([A]), "utf-8")
    (tmp_path / "notes.md").write_text("nothing", "utf-8")
    assert [t.id for t in Catalog.from_file(tmp_path)] == ["a", "b"]
    assert [t.id for t in Catalog.from_file(tmp_path / "b.jsonl", tmp_path / "a.json")] == ["b", "a"]
    assert [t.id for t in Catalog.from_file(tmp_path, server="notes")] == ["notes/a", "notes/b"]
    assert len(read_tools(tmp_path)) == 2


def test_a_folder_with_a_file_of_tools_is_that_file(tmp_path: Path) -> None:
    """As a data set is, whose other files hold cases."""
    (tmp_path / "tools.jsonl").write_text(LINES, "utf-8")
    (tmp_path / "cases.jsonl").write_text('{"query": "do a"}', "utf-8")
    assert [t.id for t in Catalog.from_file(tmp_path)] == ["a", "b"]


def test_a_file_whose_list_goes_on_says_so(tmp_path: Path) -> None:
    """K30: through `read_tools` too."""
    file = tmp_path / "tools.json"
    file.write_text(json.dumps({"tools": [A], "nextCursor": "x"}), "utf-8")
    for catalog in (Catalog.from_file(file), Catalog(read_tools(file))):
        assert "the list of tools goes on" in catalog.notices[0]
