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
