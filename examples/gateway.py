"""Three published MCP servers behind one: a client of the official SDK searches them, and calls what it found.

The client is told when its list of tools changes, and a person is asked before an action runs: the first time the
answer is no, the second time it is yes. The client does so in both generations of the protocol.

Run it with `python examples/gateway.py`. It needs the servers, and git:

    pip install 'toolsearch-kit[mcp]' mcp-server-time mcp-server-git database-mcp-sqlite
"""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, ElicitResult, TextContent, ToolListChangedNotification

SERVERS = ("mcp-server-time", "mcp-server-git", "database-mcp-sqlite")
# On the path, beside this Python, or where `make mcp-servers` of a clone puts them.
CLONE = Path(__file__).resolve().parent.parent / ".venv-mcp-servers" / ("Scripts" if os.name == "nt" else "bin")
FOLDERS = os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent), str(CLONE)])


def run_git(repository: Path, *arguments: str) -> str:
    git = shutil.which("git") or "git"
    done = subprocess.run([git, *arguments], cwd=repository, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout


def configuration(folder: Path) -> Path | None:
    """An mcp.json like any other, over a repository and a database in `folder`; None where a server is missing."""
    time, git, database = (shutil.which(name, path=FOLDERS) for name in SERVERS)
    if time is None or git is None or database is None or shutil.which("git") is None:
        return None
    repository, data = folder / "repository", folder / "data.db"
    repository.mkdir()
    run_git(repository, "init", "-q", "-b", "main")
    author = ("-c", "user.name=Ana", "-c", "user.email=ana@example.com")
    run_git(repository, *author, "commit", "-q", "--allow-empty", "-m", "Begin")
    connection = sqlite3.connect(data)
    connection.executescript("create table animals (name text, legs int); insert into animals values ('emu', 2)")
    connection.close()
    servers = {
        "time": {"command": time, "args": ["--local-timezone", "UTC"]},
        "git": {"command": git, "args": ["--repository", str(repository)]},
        "database": {"command": database, "args": ["--dsn", str(data)]},
    }
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return file


def shown(result: CallToolResult) -> str:
    text = " ".join(part.text for part in result.content if isinstance(part, TextContent))
    return " ".join(text.split())[:150]


async def visit(config: Path, generation: str) -> None:
    """What one client does. `generation` is "auto" for the newer protocol, "legacy" for the older one."""
    changed = asyncio.Event()
    answers = [ElicitResult(action="decline"), ElicitResult(action="accept", content={})]

    async def ask(context: Any, params: Any) -> ElicitResult:
        answer = answers.pop(0)
        print(f"  a person is asked: {params.message.splitlines()[0][:80]!r}, and says {answer.action}")
        return answer

    async def hear(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    async def listen(client: Client) -> None:
        async with client.listen(tools_list_changed=True) as news:
            async for _ in news:
                changed.set()

    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "toolsearch", "serve", str(config), "--mode", "live", "--no-cache"],
        env={"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "XDG_STATE_HOME": str(config.parent)},
    )
    async with Client(command, mode=generation, elicitation_callback=ask, message_handler=hear) as client:
        print(f"protocol {client.protocol_version}")
        listening = asyncio.create_task(listen(client)) if generation == "auto" else None

        async def names() -> str:
            return ", ".join(tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools)

        print("  listed:", await names())
        found = await client.call_tool("search_tools", {"queries": ["what time is it", "create a branch"], "limit": 1})
        print("  found:", shown(found))
        await asyncio.wait_for(changed.wait(), 10)
        print("  told that the list has changed:", await names())
        noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        print("  read:", shown(await client.call_tool("time__convert_time", noon)))
        for branch in ("first", "second"):
            arguments = {"repo_path": str(config.parent / "repository"), "branch_name": f"{branch}-{generation}"}
            print("  answer:", shown(await client.call_tool("git__git_create_branch", arguments)))
        if listening is not None:
            listening.cancel()


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = configuration(Path(folder))
        if config is None:
            print(f"This needs git and three published servers: pip install {' '.join(SERVERS)}")
            return
        for generation in ("legacy", "auto"):
            await visit(config, generation)
        print("branches:", *run_git(Path(folder) / "repository", "branch", "--format=%(refname:short)").split())


asyncio.run(main())
