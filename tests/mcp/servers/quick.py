"""Any number of tools, as `plain`, by hand and so without the SDK: a process starts in a moment, and takes 12 MB."""

import argparse
import os
from typing import Any

from tests.mcp.servers.by_hand import answer_lines, initialized

TOPICS = ("invoice", "ticket", "calendar", "parcel", "contract", "backup", "newsletter", "vehicle", "recipe", "meter")


def topic_of(number: int) -> str:
    return TOPICS[number % len(TOPICS)]


def definition(name: str, server: str, number: int) -> dict[str, Any]:
    topic = topic_of(number)
    schema = {
        "type": "object",
        "properties": {"key": {"type": "string", "description": f"Key of the {topic}."}},
        "required": ["key"],
    }
    return {
        "name": name,
        "description": f"Reads {topic} number {number} of {server}.",
        "inputSchema": schema,
        "annotations": {"readOnlyHint": True, "idempotentHint": True},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="test")
    parser.add_argument("--tools", type=int, default=3)
    parser.add_argument("--prefix", default="read_", help="of the names of the tools")
    parser.add_argument("--marker", default="", help="a word to find this process by")
    chosen = parser.parse_args()
    listed = [definition(f"{chosen.prefix}{number}", chosen.name, number) for number in range(chosen.tools)]
    names, calls = {each["name"] for each in listed}, 0

    def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        nonlocal calls
        if method == "initialize":
            return initialized(chosen.name)
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": listed}
        if method != "tools/call" or params["name"] not in names:
            raise LookupError
        calls += 1
        key = (params.get("arguments") or {}).get("key")
        said = {"server": chosen.name, "tool": params["name"], "key": key, "pid": os.getpid(), "calls": calls}
        words = f"{chosen.name} {params['name']} {key} pid {os.getpid()} call {calls}"
        text = {"type": "text", "text": words}
        return {"content": [text], "structuredContent": said}

    answer_lines(answer)
