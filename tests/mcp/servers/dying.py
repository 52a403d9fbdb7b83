"""A server that ends: at the start with a secret on stderr, at its list, in a call; or only the first few times."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from tests.mcp.servers.by_hand import answer_lines, initialized, said, tool


def end(secret: str) -> None:
    print(f"fatal: cannot log in with the key {secret}", file=sys.stderr, flush=True)
    os._exit(3)


def starts(file: str) -> int:
    """How often this was started, this time counted, by the size of a file."""
    with Path(file).open("ab") as counted:
        counted.write(b".")
    return Path(file).stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at", choices=["start", "initialize", "list", "call"], default="start")
    parser.add_argument("--secret", default=os.environ.get("API_KEY", ""), help="it says it (default: $API_KEY)")
    parser.add_argument("--times", type=int, default=0, help="ends only at so many first starts; 0: at every one")
    parser.add_argument("--count", metavar="FILE", help="where the starts are counted")
    parser.add_argument("--marker", default="")
    chosen = parser.parse_args()
    started = starts(chosen.count) if chosen.count else 0
    well = chosen.times and started > chosen.times
    if chosen.at == "start" and not well:
        end(chosen.secret)

    def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        if (
            method == {"initialize": "initialize", "list": "tools/list", "call": "tools/call"}.get(chosen.at)
            and not well
        ):
            end(chosen.secret)
        if method == "initialize":
            return initialized("dying")
        if method == "tools/list":
            return {"tools": [tool("fetch")]}
        if method == "tools/call":
            return said(f"alive in {os.getpid()}")
        raise LookupError

    answer_lines(answer)
