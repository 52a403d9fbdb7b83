"""Small real servers that speak MCP, good and bad ones, for every test that needs one.

    entry("plain", tools=3)                   an entry of `mcpServers` that starts servers/plain.py over stdio
    with over_http("everything") as entry:    the same server over streamable HTTP on loopback
    with over_http("everything", sse=True)    … over the older HTTP with server-sent events

By hand: `python tests/mcp/servers plain --tools 3`; `--help` lists what a server takes.

    plain       any number of tools that say which process and connection answered; `slow_start`, `seconds` a call
    quick       the same by hand, without the SDK: cheap to start many of
    everything  one tool for each thing that a result or a conversation can have; resources, prompts, completion
    changing    tools that come, go and change, told or untold
    asking      an action that asks the user before it runs, in both generations of the protocol
    stuck       hangs: at the start, at `initialize`, at a list, in a call; with keep-alives or in silence
    dying       ends: at the start with a secret on stderr, at a list, in a call, after so many starts
    raw         JSON-RPC by hand: pages of every kind, a bad tool among good ones, noise on stdout, invalid UTF-8
    clinging    does not end: leaves a child behind, ignores the end of its input, ignores SIGTERM
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
SECRET = "sk-test-0123456789abcdef-do-not-show"


def entry(name: str, /, **options: object) -> dict[str, Any]:
    """What `mcpServers` says of the server `name` over stdio. `True` gives a flag, `None` and `False` nothing."""
    if not (FOLDER / f"{name}.py").exists():
        raise ValueError(f"no server is called {name!r}: see {FOLDER}")
    arguments = [str(FOLDER), name]
    for key, value in options.items():
        if value is None or value is False:
            continue
        arguments.append("--" + key.replace("_", "-"))
        if value is not True:
            arguments.append(str(value))
    return {"command": sys.executable, "args": arguments}


@contextmanager
def over_http(name: str, /, *, port: int = 0, sse: bool = False, **options: object) -> Iterator[dict[str, Any]]:
    """The server `name` over HTTP on loopback while the block runs: gives its entry, with `url` and `type`."""
    started = entry(name, http=port, sse=sse, **options)
    # Its output is dropped once it has said its address: a pipe that nobody reads would stop it.
    process = subprocess.Popen(
        [started["command"], *started["args"]], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url.startswith("http://"):
            raise RuntimeError(f"the server {name!r} did not say its address: {url!r}")
        yield {"url": url, "type": "sse" if sse else "http"}
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def processes_with(marker: str) -> list[int]:
    """Ids of the processes that have `marker` in their command line, dead ones not counted: [] where /proc is not."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            command = (each / "cmdline").read_bytes().decode("utf-8", "replace")
            state = (each / "stat").read_text("utf-8").rpartition(")")[2].split()[0]
        except OSError:
            continue
        if marker in command and state != "Z" and int(each.name) != os.getpid():
            found.append(int(each.name))
    return found
