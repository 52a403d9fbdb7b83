"""`mcp.json` as a value of `--tools`: its servers are started and asked, in every command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from tests.mcp.servers import entry
from toolsearch import Catalog, SetupError
from toolsearch.cli.tool_files import names_servers
from toolsearch.mcp import read_config
from toolsearch.mcp.tool_file import add_servers


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "toolsearch", *arguments],
        cwd=folder, check=False, capture_output=True, encoding="utf-8",
    )  # fmt: skip


def written(folder: Path, servers: dict[str, object], key: str = "mcpServers") -> str:
    (folder / "mcp.json").write_text(json.dumps({key: servers}), "utf-8")
    return "mcp.json"


def test_the_servers_are_searched_and_those_that_are_away_are_named(tmp_path: Path) -> None:
    file = written(tmp_path, {"plain": entry("plain", tools=5), "dead": {"command": "no-such-command"}})
    done = run(tmp_path, "search", "read the calendar", "--tools", file, "--index", "keyword")
    assert done.returncode == 0, done.stderr
    assert "plain/read_2" in done.stdout
    assert "the server 'dead' cannot be reached: there is no command 'no-such-command'" in " ".join(done.stderr.split())


def test_a_file_whose_servers_give_no_tool_says_why(tmp_path: Path) -> None:
    file = written(tmp_path, {"dead": {"command": "no-such-command"}}, "servers")
    done = run(tmp_path, "check", "--tools", file)
    assert done.returncode == 2
    assert "toolsearch: the servers in the file 'mcp.json' give no tool: 'dead': there is no command" in done.stderr


def test_no_server_runs_on(tmp_path: Path) -> None:
    catalog = Catalog()
    add_servers(catalog, str(tmp_path / written(tmp_path, {"one": entry("plain", tools=2), "off": {"disabled": True}})))
    assert [tool.id for tool in catalog] == ["one/read_0", "one/read_1"]
    with pytest.raises(SetupError, match="give no tool: there are none"):
        add_servers(Catalog(), str(tmp_path / written(tmp_path, {})))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"mcpServers": { // ours\n"a": {"command": "x"},}}', True),
        ('/* ours */ {"mcpServers": /* too */ {"a": {"args": [], "command": "x"}}}', True),
        ('{"servers": {"a": {"args": [], /* last */ "command": "x"}}}', True),
        ('{"a": {"url": "http://127.0.0.1/mcp"}, "toolsearch": {"mode": "all"}}', True),
        ('{"mcpServers": {}}', False),
        ('{"tools": [], "servers": {"a": {"url": "http://127.0.0.1"}}}', False),
        ('{"name": "a", "description": "writes \\"mcpServers\\": {\\"x\\": {}}"}', False),
        ('{"mcpServers": {', False),
    ],
)
def test_a_file_is_known_to_name_servers_as_the_servers_read_it(tmp_path: Path, text: str, names: bool) -> None:
    (tmp_path / "mcp.json").write_text(text, "utf-8")
    assert names_servers(str(tmp_path / "mcp.json")) is names
    if names:
        assert [*read_config(tmp_path / "mcp.json").servers] == ["a"]
