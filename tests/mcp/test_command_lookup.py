"""The command of an entry is found as a shell would find it, whatever ending it has on this system."""

import os
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from toolsearch import SetupError
from toolsearch.mcp import read_config
from toolsearch.mcp.processes import parameters_of


def test_npx_is_found_on_the_path_of_its_entry_and_is_npx_cmd_on_windows(tmp_path: Path) -> None:
    """Q: a client that starts "npx" as it is written fails on Windows, where the program is npx.cmd."""
    program = tmp_path / ("npx.cmd" if os.name == "nt" else "npx")
    program.write_text("", "utf-8")
    program.chmod(0o755)
    entry = {"command": "npx", "args": ["-y", "some-server"], "env": {"PATH": str(tmp_path)}}
    found = parameters_of(read_config({"npm": entry}).servers["npm"])
    assert [each.lower() for each in (found.command, *found.args)][-3:] == [str(program).lower(), "-y", "some-server"]


def test_a_command_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    entry = read_config({"npm": {"command": "npx", "env": {"PATH": str(tmp_path)}}}).servers["npm"]
    with pytest.raises(SetupError, match=r"there is no command 'npx': install it, or correct 'command' or PATH"):
        parameters_of(entry)
