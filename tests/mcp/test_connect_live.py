"""What `toolsearch connect` leaves in a client starts a gateway, and the servers that moved are behind it."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from mcp import Client, StdioServerParameters

from tests.mcp.gateways import text_of
from tests.mcp.servers import entry
from toolsearch.mcp.clients import CLIENTS, Records, client_named, connection

# `toolsearch`, with the one command that is needed: the entry points of an older installation may lack it.
COMMAND = """
import typer
from toolsearch.mcp.commands.serve import serve
app = typer.Typer()
app.callback()(lambda: None)
app.command("serve")(serve)
app()
"""
PROGRAM = [sys.executable, "-c", COMMAND]


def test_the_entry_that_is_left_serves_what_has_moved(tmp_path: Path) -> None:
    file, ours = tmp_path / "mcp.json", tmp_path / "ours.json"
    file.write_text(json.dumps({"mcpServers": {"plain": entry("plain", tools=2)}}), "utf-8")
    Records(tmp_path / "records").make(connection(client_named("cursor"), file, ours, PROGRAM))
    left = CLIENTS["cursor"].entries(file.read_text("utf-8"), "it")["toolsearch"]
    assert isinstance(left, dict)
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}

    async def check() -> str:
        started = StdioServerParameters(command=left["command"], args=left["args"], env=environment)
        async with Client(started) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]  # all, since they are few
            assert {"plain__read_0", "plain__read_1"} <= {*names}
            return text_of(await client.call_tool("plain__read_0", {"key": "a"}))

    assert asyncio.run(check())
