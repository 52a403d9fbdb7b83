"""Servers that others have published, from the environment of `make mcp-servers`: entries, and one call of each.

Those in Python speak the newer protocol, but for two that live on the first generation of the SDK; those of Node speak
the older one. `sqlite` was written for the first generation, and dies on the second: a dead server of the real world.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

ENVIRONMENT = Path(__file__).resolve().parents[3] / ".venv-mcp-servers"
PROGRAMS = "Scripts" if os.name == "nt" else "bin"
IS_HERE = Path(sys.prefix).resolve() == ENVIRONMENT
HAS_NODE = (ENVIRONMENT / "node_modules").is_dir()
WHY = "needs published MCP servers in an environment of their own: see `make mcp-servers`"
DEAD = "sqlite"

# A call of each that reads, and what is found in the text of its answer.
READS: dict[str, tuple[str, dict[str, Any], str]] = {
    "time": (
        "convert_time",
        {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"},
        "+",
    ),
    "git": ("git_log", {"repo_path": "{repo}"}, "the first commit"),
    "database": ("execute_sql", {"sql": "select name from animals"}, "zebra"),
    "sqlite_first": ("read_query", {"query": "select name from animals"}, "zebra"),
    "calculator": ("calculate", {"expression": "6 * 7"}, "42"),
    "everything": ("get-sum", {"a": 20, "b": 22}, "42"),
    "filesystem": ("read_text_file", {"path": "{repo}/note.txt"}, "a note for the tests"),
    "memory": ("read_graph", {}, "entities"),
    "thinking": (
        "sequentialthinking",
        {"thought": "one", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
        "thoughtNumber",
    ),
}
FETCHED = "fetch"  # fetches a page of this machine


def published(folder: Path) -> dict[str, dict[str, Any]]:
    """Entries of all that are installed, over a repository and a database that are made in `folder`."""
    repo, data = folder / "repo", folder / "data.db"
    if not repo.is_dir():
        _make_repository(repo)
        _make_database(data)

    def python(program: str, *args: object, environment: Path = ENVIRONMENT, **env: str) -> dict[str, Any]:
        command = shutil.which(program, path=str(environment / PROGRAMS)) or program
        return {"command": command, "args": [str(each) for each in args], **({"env": env} if env else {})}

    first = ENVIRONMENT / "first"
    entries = {
        "time": python("mcp-server-time", "--local-timezone", "UTC"),
        "git": python("mcp-server-git", "--repository", repo),
        "fetch": python("mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"),
        "database": python("database-mcp-sqlite", "--dsn", data),
        DEAD: python("mcp-server-sqlite", "--db-path", data),
        "sqlite_first": python("mcp-server-sqlite", "--db-path", data, environment=first),
        "calculator": python("mcp-server-calculator", environment=first),
    }
    if HAS_NODE:

        def node(program: str, *args: object, **env: str) -> dict[str, Any]:
            found = shutil.which(f"mcp-server-{program}", path=str(ENVIRONMENT / "node_modules" / ".bin"))
            return {"command": found or program, "args": [str(each) for each in args], **({"env": env} if env else {})}

        entries |= {
            "everything": node("everything"),
            "filesystem": node("filesystem", repo),
            "memory": node("memory", MEMORY_FILE_PATH=str(folder / "memory.json")),
            "thinking": node("sequential-thinking"),
        }
    return entries


def read_of(server: str, folder: Path) -> tuple[str, dict[str, Any], str]:
    """The call of a server that reads: a tool, its arguments, and what its answer has in it."""
    tool, arguments, found = READS[server]
    return tool, json.loads(json.dumps(arguments).replace("{repo}", str(folder / "repo"))), found


def _make_repository(repo: Path) -> None:
    repo.mkdir(parents=True)
    (repo / "note.txt").write_text("a note for the tests\n", "utf-8")
    name = ["-c", "user.email=tests@example.com", "-c", "user.name=tests"]
    for command in (["init", "-q", "."], ["add", "."], [*name, "commit", "-q", "-m", "the first commit"]):
        subprocess.run(["git", *command], cwd=repo, check=True)


def _make_database(data: Path) -> None:
    with sqlite3.connect(data) as connection:
        connection.execute("create table animals (name text, legs integer)")
        connection.execute("insert into animals values ('zebra', 4), ('emu', 2)")
    connection.close()
