"""The `toolsearch` command: what it answers to a file without tools, to several files, and what it says of itself."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolsearch

KEY = {"name": "rotate_key", "description": "Replace an API key by a new one.", "inputSchema": {"type": "object"}}
FORECAST = {"name": "get_forecast", "description": "Weather forecast for a city.", "inputSchema": {"type": "object"}}


def run(folder: Path, *arguments: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "toolsearch", *arguments], input=given,
        cwd=folder, env=os.environ | environment, check=False, capture_output=True, encoding="utf-8",
    )  # fmt: skip


def written(folder: Path, name: str, content: Any) -> str:
    (folder / name).write_text(json.dumps(content), "utf-8")
    return name


@pytest.mark.parametrize(
    ("content", "shape"),
    [
        ({"mcpServers": {}}, "the configuration of an MCP client"),
        ({"openapi": "3.1.0", "paths": {}}, "an OpenAPI description"),
        ({"swagger": "2.0", "paths": {}}, "an OpenAPI description"),
        ([{"title": "rotate_key", "type": "object"}], "JSON schemas, which have a title"),
        ([], "an empty list"),
        ({"tools": []}, "an empty list"),
        ([{"name": "broken", "inputSchema": ["x"]}], "must be a JSON object, not list"),
        ([1, 2], "int is not a tool"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_file_without_a_usable_tool_is_an_error_that_names_its_shape(
    content: Any, shape: str, tmp_path: Path
) -> None:
    done = run(tmp_path, "search", "rotate a key", "--tools", written(tmp_path, "mine.json", content))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("toolsearch: the file 'mine.json' holds no usable tool: ")
    assert shape in done.stderr
    assert done.stderr.count("\n") == 1
    assert "no tool was passed" not in done.stderr, "said twice"


def test_check_gives_the_only_reason_once(tmp_path: Path) -> None:
    done = run(tmp_path, "check", "--tools", written(tmp_path, "mcp.json", {"mcpServers": {}}))
    assert done.returncode == 2
    assert done.stderr.startswith("toolsearch: the file 'mcp.json' holds no usable tool: it is the configuration of")


def test_one_usable_tool_is_enough(tmp_path: Path) -> None:
    file = written(tmp_path, "mine.json", [KEY, {"name": "broken", "inputSchema": ["x"]}])
    done = run(tmp_path, "search", "rotate a key", "--tools", file, "--index", "keyword")
    assert done.returncode == 0
    assert "rotate_key" in done.stdout
    assert "quarantined broken" in done.stderr


def test_several_files_are_searched_together(tmp_path: Path) -> None:
    files = ["--tools", written(tmp_path, "a.json", [KEY]), "--tools", written(tmp_path, "b.json", [FORECAST])]
    for query, name in (("api key", "rotate_key"), ("weather", "get_forecast")):
        done = run(tmp_path, "search", query, *files, "--index", "keyword")
        assert done.returncode == 0
        assert "Catalog(2 tools)" in done.stdout
        assert name in done.stdout
    assert run(tmp_path, "check", *files).stdout == "Catalog(2 tools)\n"


def test_the_same_file_twice_is_no_error(tmp_path: Path) -> None:
    file = written(tmp_path, "a.json", [KEY])
    done = run(tmp_path, "search", "api key", "--tools", file, "--tools", file, "--index", "keyword")
    assert done.returncode == 0
    assert "Catalog(1 tool)" in done.stdout


def test_one_file_of_several_without_a_tool_is_an_error(tmp_path: Path) -> None:
    files = ["--tools", written(tmp_path, "a.json", [KEY]), "--tools", written(tmp_path, "b.json", [])]
    done = run(tmp_path, "search", "api key", *files)
    assert done.returncode == 2
    assert "'b.json' holds no usable tool" in done.stderr


def test_it_says_its_version(tmp_path: Path) -> None:
    done = run(tmp_path, "--version")
    assert (done.returncode, done.stdout) == (0, f"toolsearch {toolsearch.__version__}\n")


# -- --tools, in every command ---------------------------------------------------------------------------------------


def test_tools_come_from_standard_input_and_from_a_folder(tmp_path: Path) -> None:
    """J21: what `curl` of a server gives can be piped in."""
    stream = f"event: message\ndata: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': {'tools': [KEY]}})}\n\n"
    piped = run(tmp_path, "check", "--tools", "-", given=stream)
    assert (piped.returncode, piped.stdout) == (0, "Catalog(1 tool)\n")
    (tmp_path / "mine").mkdir()
    written(tmp_path, "mine/a.json", [KEY])
    written(tmp_path, "mine/b.json", {"tools": [FORECAST]})
    assert run(tmp_path, "check", "--tools", "mine").stdout == "Catalog(2 tools)\n"
    both = run(tmp_path, "check", "--tools", "-", "--tools", "mine/b.json", given=json.dumps([KEY]))
    assert both.stdout == "Catalog(2 tools)\n"


@pytest.mark.parametrize(
    ("arguments", "given", "told"),
    [
        (["--tools", "-"], "", "standard input is empty"),
        (["--tools", "-"], '{"mcpServers": {}}', "standard input holds no usable tool"),
        (["--tools", "-", "--tools", "-"], "[]", "standard input can be read only once"),
        (["--tools", "empty"], "", "no file in it ends in .json"),
        (["--tools", "nowhere.json"], "", "there is no file 'nowhere.json'"),
        (["--tools", ""], "", "--tools names no file"),
    ],
)
@pytest.mark.parametrize("command", [["search", "key"], ["check"], ["enrich", "--out", "x", "--ask", "cat"]])
def test_what_gives_no_tools_is_an_error_in_every_command(
    command: list[str], arguments: list[str], given: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    done = run(tmp_path, *command, *arguments, given=given)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""


def test_check_says_that_a_list_goes_on(tmp_path: Path) -> None:
    """K30: a page that is not the last is not taken for the whole list."""
    file = written(tmp_path, "tools.json", {"tools": [KEY], "nextCursor": "page-2"})
    done = run(tmp_path, "check", "--tools", file, COLUMNS="400")
    assert done.returncode == 1
    assert done.stdout == "Catalog(1 tool)\n"
    assert "the list of tools goes on, nextCursor is 'page-2'" in done.stderr
    assert "goes on" in run(tmp_path, "search", "api", "key", "--tools", file).stderr


def test_check_lists_every_reason_even_if_nothing_is_usable(tmp_path: Path) -> None:
    broken = [{"name": name, "inputSchema": 5} for name in "ab"]
    done = run(tmp_path, "check", "--tools", written(tmp_path, "tools.json", broken), COLUMNS="200")
    assert done.returncode == 2
    assert done.stderr.count("must be a JSON object, not int") == 3  # each, and the sentence on the whole


ODD: dict[str, Any] = {
    "name": "list_builds",
    "description": "x" * 2_000,
    "inputSchema": {
        "type": "object",
        "properties": {"filter[app]": {"type": "string"}, "me": {"$ref": "#"}, "any": {"not": {"type": "null"}}},
    },
}


def test_check_says_what_becomes_of_each_tool_for_a_provider(tmp_path: Path) -> None:
    """Changes are told, and no mistake; a tool that cannot be sent would be one."""
    file = written(tmp_path, "tools.json", [KEY, ODD])
    done = run(tmp_path, "check", "--tools", file, "--target", "openai", "--target", "gemini", COLUMNS="400")
    assert done.returncode == 0
    further = (
        "a reference that comes round again admits anything: me.me", "not is not sent: me.any", "not is not sent: any",
    )  # fmt: skip
    renamed = "an argument is sent under another name: 'filter[app]' as 'filter_app'"
    assert done.stdout.splitlines() == [
        "Catalog(2 tools)",
        "openai: 1 changed, 0 left out",
        f"  changed   list_builds: {renamed}; the description has 2,000 characters, of which 1,024 are sent",
        "gemini: 1 changed, 0 left out",
        f"  changed   list_builds: {renamed}; {'; '.join(further)}",
    ]
    told = json.loads(run(tmp_path, "check", "--tools", file, "--target", "all", "--format", "json").stdout)
    assert list(told["targets"]) == ["openai", "anthropic", "gemini", "ollama"]
    assert told["targets"]["anthropic"] == {"changed": [{"id": "list_builds", "changes": [renamed]}], "left_out": []}
    assert run(tmp_path, "check", "--tools", file).stdout == "Catalog(2 tools)\n"


# -- what search prints ------------------------------------------------------------------------------------------------

LONG = "storage_account_create_with_a_name_that_is_wider_than_a_terminal_of_eighty_columns_ever_is"
TOOLS = [
    {"name": "rotate_key", "description": "Replace an API key by a new one, at once, in every region."},
    {"name": "issue_dependency_write_ff_issue_dependencies", "description": "Replace the keys of issues."},
    {"name": LONG, "description": "Replace the key of a storage account."},
]


@pytest.mark.parametrize("columns", [80, 50])
def test_each_hit_is_shown_with_its_confidence_and_its_whole_id(columns: int, tmp_path: Path) -> None:
    catalog = {"vault": TOOLS}
    file = written(tmp_path, "tools.json", catalog)
    done = run(tmp_path, "search", "replace", "a", "key", "--tools", file, "--index", "keyword", COLUMNS=str(columns))
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert all(len(line) <= columns for line in lines), lines
    assert lines[0].startswith("'replace a key' in Catalog(3 tools from 1 server)")
    unfolded = "".join(line.strip() for line in lines)
    for each in TOOLS:
        assert f"vault/{each['name']}" in unfolded
    (short,) = [line for line in lines if "vault/rotate_key" in line]
    assert re.match(r" \.\d\d  vault/rotate_key +Replace an API", short), short
    assert "matched" not in done.stdout


def test_words_need_no_quotes_and_details_are_behind_an_option(tmp_path: Path) -> None:
    file = written(tmp_path, "tools.json", TOOLS)
    options = ["--tools", file, "--index", "keyword", "--limit", "1"]
    plain, quoted = run(tmp_path, "search", "api", "key", *options), run(tmp_path, "search", "api key", *options)
    assert plain.stdout == quoted.stdout
    assert len(plain.stdout.splitlines()) == 2
    detailed = run(tmp_path, "search", "api", "key", *options, "-v")
    assert "matched" in detailed.stdout
    assert "api (description)" in detailed.stdout
    named = run(tmp_path, "search", "rotate_key", *options)
    assert "\nname  rotate_key" in named.stdout


def test_a_weak_answer_is_a_number_and_no_sentence(tmp_path: Path) -> None:
    done = run(tmp_path, "search", "key", "--tools", written(tmp_path, "tools.json", TOOLS), "--index", "keyword")
    assert "may not fit" not in done.stdout + done.stderr


def test_json_is_for_programs(tmp_path: Path) -> None:
    file = written(tmp_path, "tools.json", {"vault": [*TOOLS, {"name": "broken", "inputSchema": 5}]})
    done = run(
        tmp_path, "search", "api", "key", "--tools", file, "--index", "keyword", "--format", "json", COLUMNS="20"
    )
    answer = json.loads(done.stdout)
    assert (answer["query"], answer["index"], answer["tools"]) == ("api key", "keyword", 3)
    first = answer["hits"][0]
    assert (first["id"], first["server"], first["exact"]) == ("vault/rotate_key", "vault", False)
    assert 0 < first["confidence"] < 1
    assert {"word": "api", "fields": ["description"]} in first["matched"]
    assert answer["quarantined"][0]["name"] == "broken"
    named = json.loads(run(tmp_path, "search", "rotate_key", "--tools", file, "--format", "json").stdout)["hits"][0]
    assert (named["exact"], named["score"], named["confidence"]) == (True, None, 1.0)
    checked = json.loads(run(tmp_path, "check", "--tools", file, "--format", "json").stdout)
    assert (checked["tools"], checked["servers"]) == (3, ["vault"])


@pytest.mark.parametrize(
    ("query", "index", "code", "told"),
    [
        ([""], "keyword", 2, "The query is empty"),
        (["  "], "keyword", 2, "The query is empty"),
        (["(rotate"], "regex", 2, "The pattern '(rotate' is not valid"),
        (["zzzz", "qqqq"], "keyword", 1, "Nothing fits 'zzzz qqqq'."),
        (["key"], "nothing", 2, "there is no index 'nothing'"),
    ],
)
def test_the_exit_code_tells_scripts_what_happened(
    query: list[str], index: str, code: int, told: str, tmp_path: Path
) -> None:
    file = written(tmp_path, "tools.json", TOOLS)
    done = run(tmp_path, "search", *query, "--tools", file, "--index", index)
    assert done.returncode == code
    assert told in done.stdout + done.stderr
    assert (done.stdout == "") == (code == 2)


@pytest.mark.parametrize("command", ["search", "check", "enrich"])
def test_every_command_shows_an_example_and_its_defaults(command: str, tmp_path: Path) -> None:
    done = run(tmp_path, command, "--help", COLUMNS="400")
    assert f"Example: toolsearch {command} " in done.stdout
    lines = [line for line in done.stdout.splitlines() if re.match(r"│ (?:\*|   ) *--", line)]
    said = [line for line in lines if "[required]" in line or "[default" in line or "<bool>" in line]
    assert len(lines) > 1
    assert said == lines


@pytest.mark.skipif(os.name == "nt" or shutil.which("bash") is None, reason="bash is not on this machine")
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("toolsearch")
    shown = subprocess.run(
        ["bash", "-c", f"'{command}' --show-completion; true"], check=True, capture_output=True, encoding="utf-8"
    ).stdout
    (tmp_path / "complete.sh").write_text(shown, "utf-8")
    program = """
    source complete.sh
    COMP_WORDS=(toolsearch sea); COMP_CWORD=1; _toolsearch_completion toolsearch; echo "${COMPREPLY[@]}"
    COMP_WORDS=(toolsearch search --lim); COMP_CWORD=2; _toolsearch_completion toolsearch; echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "-c", program], cwd=tmp_path, check=True, capture_output=True, encoding="utf-8",
        env=os.environ | {"PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["search", "--limit"]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "ascii:strict"])
def test_a_terminal_that_cannot_show_a_text_gets_a_code(encoding: str, tmp_path: Path) -> None:
    tools = written(tmp_path, "t.json", [{"name": "rotate_key", "description": "A key \u4e2d \U0001f511"}])
    for form in ("text", "json"):
        done = run(tmp_path, "search", "--tools", tools, "rotate key", "--format", form, PYTHONIOENCODING=encoding)
        assert (done.returncode, done.stderr) == (0, "")
        assert "\\u4e2d" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell closes the streams")
def test_streams_that_are_closed_or_full_are_told_in_a_line(tmp_path: Path) -> None:
    written(tmp_path, "t.json", [KEY])
    command = f"{sys.executable} -m toolsearch check --tools"
    for line, told in (
        (f"{command} - <&-", "standard input is closed"),
        (f"{command} t.json > /dev/full", "the output cannot be written" if Path("/dev/full").exists() else ""),
    ):
        done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, check=False, encoding="utf-8")
        assert told in done.stderr
        assert "Traceback" not in done.stderr
        assert done.returncode == 2 or not told
