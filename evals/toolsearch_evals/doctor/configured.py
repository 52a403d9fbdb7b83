"""Defects planted into clean entries of a configuration, and into a small real server."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from toolsearch import MissingExtra
from toolsearch.mcp import ServerEntry, read_config
from toolsearch_evals.doctor.alarms import Alarms
from toolsearch_evals.doctor.configuration import configuration_findings
from toolsearch_evals.doctor.findings import CHECKS
from toolsearch_evals.doctor.launching import MARK, Launch, launch, marked
from toolsearch_evals.doctor.planting import Defect, Planted
from toolsearch_evals.doctor.trials import Harm, Trial

__all__ = ["CLEAN", "configuration_alarms", "configuration_trials", "server_trials"]

Entry = dict[str, Any]
# As documentations write them, with versions; every secret is a variable, and goes where it belongs.
CLEAN: Mapping[str, Entry] = {
    "files": {
        "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-filesystem@2026.7.4", "${ROOT}", "/srv/files"],
    },
    "everything": {"command": "npx.cmd", "args": ["--yes", "some-server@1.4.0"], "env": {"LOG_LEVEL": "debug"}},
    "windows": {"command": "cmd", "args": ["/c", "npx", "-y", "some-server@2.0.1"]},
    "time": {"command": "uvx", "args": ["mcp-server-time==2026.2.1", "--local-timezone", "Europe/Berlin"]},
    "git": {
        "command": "uvx",
        "args": ["--from", "git+https://example.com/a/b@0a1b2c3d4e5f", "server", "--repository", "."],
    },
    "fetch": {"command": "uv", "args": ["tool", "run", "mcp-server-fetch@2026.1.0", "--user-agent", "me"]},
    "pipx": {"command": "pipx", "args": ["run", "--spec", "x==1.0", "x==1.0"]},
    "github": {
        "command": "docker",
        "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "example.com/github/server:v0.14.1"],
        "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_PERSONAL_ACCESS_TOKEN}"},
    },
    "image": {"command": "docker", "args": ["run", "--rm", "-i", "-v", "/data:/data", "mcp/sqlite@sha256:0123abcd"]},
    "own": {"command": "/usr/local/bin/own-server", "args": ["--port", "8080", "--keyboard", "qwerty"]},
    "python": {
        "command": "python",
        "args": ["-m", "own_server", "--token-limit", "4096"],
        "env": {"PYTHONPATH": "src"},
    },
    "node": {"command": "node", "args": ["dist/index.js", "--config", "tokens.json"]},
    "local": {"command": "npx", "args": ["tsx@4.2.0", "./server.ts"], "env": {"MAX_TOKENS": "8000"}},
    "deno": {"command": "deno", "args": ["run", "--allow-net", "main.ts"]},
    "sql": {"command": "./sql-server", "args": ["--dsn-file", "/run/secrets/dsn"], "cwd": "${ROOT}"},
    "remote": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer ${EXAMPLE_TOKEN}"}},
    "login": {"type": "http", "url": "https://api.example.org/mcp/v1?toolsets=repos,issues"},
    "old": {"type": "sse", "url": "https://events.example.net/sse", "headers": {"X-Region": "eu"}},
    "instance": {"url": "https://api.example.com/v1/3f2504e0-4f89-41d3-9a0c-0305e82c3301/mcp"},
    "wordy": {"url": "https://example.com/a-long-path-in-words-that-has-more-than-32-signs/mcp"},
    "loopback": {"url": "http://127.0.0.1:3845/mcp"},
    "here": {"url": "http://localhost:8931/sse"},
    "keyed": {"command": "key-server", "env": {"API_KEY": "${KEYED_API_KEY}", "KEYSTORE": "/home/me/keys"}},
    "blank": {"command": "blank-server", "env": {"API_KEY": "<your key>", "OTHER_TOKEN": "YOUR_TOKEN_HERE"}},
    "author": {"command": "author-server", "args": ["--author", "me", "--secretary", "you", "--pass-through"]},
    "disabled": {"command": "off-server", "disabled": True},
}
_VALUE = "s3cr3t-Zx81kQ0pLm"
_LONG_VALUE = "OTg3NjU0MzIxLWFiY2RlZi0wMTIzNDU2Nzg5"


def _added(entry: Entry, *more: str) -> Entry | None:
    return {**entry, "args": [*entry.get("args", []), *more]} if "command" in entry else None


def _address(entry: Entry, change: Callable[[str], str]) -> Entry | None:
    return (
        {**entry, "url": change(entry["url"].partition("?")[0])} if entry.get("url", "").startswith("https") else None
    )


def _with_password(entry: Entry) -> Entry | None:
    return _address(entry, lambda url: url.replace("//", f"//me:{_VALUE}@"))


def _table(entry: Entry, needs: str, key: str, name: str, value: str) -> Entry | None:
    return {**entry, key: {**entry.get(key, {}), name: value}} if needs in entry else None


def _unversioned(entry: Entry) -> Entry | None:
    plain = {"2026.7.4", "1.4.0", "2.0.1", "2026.1.0"}
    args = entry.get("args", [])
    made = [arg.rpartition("@")[0] if arg.rpartition("@")[2] in plain else arg.partition("==")[0] for arg in args]
    return {**entry, "args": made} if made != args else None


_PLANTS: tuple[tuple[str, str, Callable[[Entry], Entry | None]], ...] = (
    ("an option with its value", "secret-in-arguments", lambda e: _added(e, "--api-key", _VALUE)),
    ("an option with = and its value", "secret-in-arguments", lambda e: _added(e, f"--token={_VALUE}")),
    ("a variable", "secret-in-arguments", lambda e: _added(e, "--password", "${DB_PASSWORD}")),
    ("a value by its form", "secret-in-arguments", lambda e: _added(e, "ghp_0123456789abcdefghij0123456789abcdef")),
    ("a password in an address", "secret-in-arguments", lambda e: _added(e, f"postgres://me:{_VALUE}@db/x")),
    ("a key in the query", "secret-in-url", lambda e: _address(e, lambda url: f"{url}?api_key={_VALUE}")),
    ("a password before the host", "secret-in-url", _with_password),
    ("a long word in the path", "secret-in-url", lambda e: _address(e, lambda url: f"{url}/{_LONG_VALUE}/mcp")),
    ("a value in env", "secret-in-file", lambda e: _table(e, "command", "env", "SERVICE_API_KEY", _VALUE)),
    ("a value in a header", "secret-in-file", lambda e: _table(e, "url", "headers", "X-Api-Key", _VALUE)),
    ("http", "plain-http", lambda e: _address(e, lambda url: url.replace("https:", "http:"))),
    ("no version", "unpinned", _unversioned),
)  # fmt: skip


def _entries(of: Mapping[str, Entry]) -> list[ServerEntry]:
    return [*read_config({"mcpServers": dict(of)}, environ={}).servers.values()]


def configuration_trials() -> Iterator[Trial]:
    """Each defect in each clean entry that can have it."""
    measured = {"secret-in-arguments": _readable_arguments, "secret-in-url": _logged_address}
    for name, check, plant in _PLANTS:
        spoiled = [{key: made} for key, entry in CLEAN.items() if not entry.get("disabled") and (made := plant(entry))]
        found = sum(any(each.check == check for each in configuration_findings(_entries(of))) for of in spoiled)
        harm = Harm.of(measured[check]() if check in measured else [])
        yield Trial(_defect(name, check), len(spoiled), found, harm)
    both = {
        key: {**CLEAN[key], "env": {"SHARED_TOKEN": "${SHARED_TOKEN}"}} for key in ("own", "node", "keyed", "python")
    }
    shared = {each.where for each in configuration_findings(_entries(both)) if each.check == "shared-secret"}
    yield Trial(_defect("one variable for all", "shared-secret"), len(both), len(shared), Harm.of([]))


def configuration_alarms() -> dict[str, Alarms]:
    """What is said of the clean entries, and of the small server as it should be; everything is a false alarm."""
    found = list(configuration_findings(_entries(CLEAN)))
    checks = [check for check, of in CHECKS.items() if of.kind == "configuration"]
    named = {check: len({each.where for each in found if each.check == check}) for check in checks}
    launches = [_launched("") for _ in range(STARTS)]
    started = {
        "noise": sum(bool(each.noise) for each in launches),
        "left-behind": sum(each.left > 0 for each in launches),
    }
    return {check: Alarms(len(CLEAN), times, times) for check, times in named.items()} | {
        check: Alarms(STARTS, times, times) for check, times in started.items()
    }


def _defect(name: str, check: str) -> Defect:
    return Defect(name, check, "configuration", lambda *_: Planted((), {}))


# -- what a secret among arguments, or in an address, is open to -------------------------------------------------------

STARTS, GRACE_SECONDS = 3, 0.7


def _readable_arguments() -> list[float]:
    """Whether the system lets other users read the arguments of a process. Known on Linux only."""
    found = []
    for _ in range(STARTS if Path("/proc/self/cmdline").exists() else 0):
        command = [sys.executable, "-c", "print(flush=True); input()", _VALUE]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603
            process.stdout.readline()  # type: ignore[union-attr]
            file = Path(f"/proc/{process.pid}/cmdline")
            found.append(float(bool(file.stat().st_mode & 0o004) and _VALUE.encode() in file.read_bytes()))
            process.communicate(b"\n")
    return found


def _logged_address() -> list[float]:
    """Whether the standard library's server has the query of a request in the line that it logs."""
    lines: list[str] = []

    class Logging(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            lines.append(format % args)

    with ThreadingHTTPServer(("127.0.0.1", 0), Logging) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for _ in range(STARTS):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
            connection.request("GET", f"/mcp?api_key={_VALUE}")
            connection.getresponse().read()
            connection.close()
        server.shutdown()
    return [float(_VALUE in line) for line in lines]


# -- servers -----------------------------------------------------------------------------------------------------------

_SERVER = """
import json, subprocess, sys, time
way = sys.argv[1]
if way == "noise":
    print("Server is starting …", flush=True)
if way == "child":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdin=subprocess.DEVNULL,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
def answer(asked):
    if asked["method"] == "initialize":
        about = {"name": "x", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    if asked["method"] == "tools/list":
        return {"tools": [{"name": "one", "inputSchema": {"type": "object"}}]}
    return {}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked)}), flush=True)
while way == "stays":
    time.sleep(1)
"""


def _launched(way: str) -> Launch:
    return launch([sys.executable, "-c", _SERVER, way], dict(os.environ), None, grace=GRACE_SECONDS)


def server_trials() -> Iterator[Trial]:
    """A small real server that writes noise, leaves a child, or stays: asked plainly, and through `Servers`."""
    ways = {"noise": "noise", "a child in a session of its own": "left-behind", "deaf to the end": "left-behind"}
    for way, (name, check) in zip(("noise", "child", "stays"), ways.items(), strict=True):
        launches = [_launched(way) for _ in range(STARTS)]
        if check == "noise":
            found, harm = [bool(each.noise) for each in launches], [float(each.seconds is None) for each in launches]
        else:
            found, harm = [each.left > 0 for each in launches], [float(each.left > 0) for each in launches]
        try:
            through = Harm.of([_through(way)[check == "left-behind"] for _ in range(STARTS)])
        except MissingExtra:
            through = None
        yield Trial(_defect(name, check), STARTS, sum(found), Harm.of(harm), through=through)


def _through(way: str) -> tuple[float, float]:
    """Whether a connection by `Servers` fails, and whether a process is left when it is closed."""
    from toolsearch.mcp import Servers

    mark = uuid.uuid4().hex
    entry = {"command": sys.executable, "args": ["-c", _SERVER, way], "env": {MARK: mark}}
    with Servers({"mcpServers": {"planted": entry}}) as servers:
        is_ready = servers.health()["planted"].is_ready
    left = marked(f"{MARK}={mark}")
    for process in left:
        os.kill(process, signal.SIGTERM)
    return float(not is_ready), float(bool(left))
