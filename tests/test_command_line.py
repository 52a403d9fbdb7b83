"""The `toolsearch` command: what it answers to a file without tools, to several files, and what it says of itself."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolsearch

KEY = {"name": "rotate_key", "description": "Replace an API key by a new one.", "inputSchema": {"type": "object"}}
FORECAST = {"name": "get_forecast", "description": "Weather forecast for a city.", "inputSchema": {"type": "object"}}


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "toolsearch", *arguments],
        cwd=folder, env=os.environ | environment, check=False, capture_output=True, encoding="utf-8",
    )  # fmt: skip


def written(folder: Path, name: str, content: Any) -> str:
    (folder / name).write_text(json.dumps(content), "utf-8")
    return name


@pytest.mark.parametrize(
    ("content", "shape"),
    [
        ({"mcpServers": {"github": {"command": "npx"}}}, "the configuration of an MCP client"),
        ({"servers": {"github": {"type": "http", "url": "http://127.0.0.1"}}}, "the configuration of an MCP client"),
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


@pytest.mark.skipif(os.name == "nt" or shutil.which("bash") is None, reason="bash is not on this machine")
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("toolsearch")
    shown = subprocess.run(
        ["bash", "-c", f"'{command}' --show-completion; true"], check=True, capture_output=True, encoding="utf-8"
    ).stdout
    (tmp_path / "complete.sh").write_text(shown, "utf-8")
    program = """
    source complete.sh
    COMP_WORDS=(toolsearch se); COMP_CWORD=1; _toolsearch_completion toolsearch; echo "${COMPREPLY[@]}"
    COMP_WORDS=(toolsearch search --lim); COMP_CWORD=2; _toolsearch_completion toolsearch; echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "-c", program], cwd=tmp_path, check=True, capture_output=True, encoding="utf-8",
        env=os.environ | {"PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["search", "--limit"]
