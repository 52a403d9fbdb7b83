"""A server with a search of its own: it lists that alone, and the definitions that it finds stand in no list."""

import argparse
import json
from typing import Any

from tests.mcp.servers.by_hand import answer_lines, initialized, said, tool

HIDDEN = [tool("weld_pipe", description="Welds a pipe."), tool("cut_pipe", description="Cuts a pipe.")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--structured", action="store_true", help="gives definitions as structured content, not as text"
    )
    parser.add_argument("--marker", default="")
    chosen = parser.parse_args()

    def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            return initialized("searching")
        if method == "tools/list":
            return {"tools": [tool("gateway_search", description="Finds tools for pipes.")]}
        if method == "tools/call" and params["name"] == "gateway_search":
            found = {"tools": HIDDEN}
            if chosen.structured:
                return {**said("Two tools."), "structuredContent": found}
            return said(json.dumps(found))
        if method == "tools/call":
            return said(f"{params['name']} ran")
        raise LookupError

    answer_lines(answer)
