"""Pages of every kind, a bad tool among good ones, noise on stdout, invalid UTF-8: what an SDK would not send."""

import argparse
import sys
from typing import Any

from tests.mcp.servers.by_hand import answer_lines, initialized, said, tool

KINDS = ("one", "good", "repeated", "empty", "null", "endless", "failing")
# Tools that cannot be read. The last is good JSON and no tool at all.
BAD: dict[str, Any] = {
    "no-name": {"description": "Has no name.", "inputSchema": {"type": "object"}},
    "number-name": tool("x") | {"name": 7},
    "no-schema": {"name": "no_schema", "description": "Has no schema."},
    "schema-text": tool("schema_text") | {"inputSchema": "object"},
    "schema-list": tool("schema_list") | {"inputSchema": ["object"]},
    "bad-annotations": tool("bad_annotations", annotations={"readOnlyHint": "perhaps"}),
    "bad-icons": tool("bad_icons", icons="none"),
    "bad-meta": tool("bad_meta") | {"_meta": 5},
    "bad-output": tool("bad_output", outputSchema=17),
    "no-object": "a text",
}


def page(kind: str, cursor: str | None) -> dict[str, Any]:
    """The page at a cursor: two tools a page, three pages where they end well."""
    at = int((cursor or "0").rpartition("-")[2] or 0)
    tools = [tool(f"page_{at}_{letter}") for letter in "ab"]
    more: dict[str, Any] = {}
    if kind == "endless":
        more = {"nextCursor": f"at-{at + 1}"}
    elif kind == "repeated":
        more = {"nextCursor": "at-1"}
    elif kind == "failing" and at == 2:
        raise LookupError
    elif kind != "one" and at < 2:
        more = {"nextCursor": f"at-{at + 1}"}
    elif kind == "empty":
        more = {"nextCursor": ""}
    elif kind == "null":
        more = {"nextCursor": None}
    return {"tools": tools, **more}


def noise(how: str) -> None:
    """What a careless server writes between its messages."""
    out = sys.stdout.buffer
    if how == "text":
        out.write(b"Server is running on stdio\n" + b"progress: 10 %\n" * 20)
    elif how == "flood":
        for _ in range(20_000):
            out.write(b"debug: " + b"z" * 90 + b"\n")
    elif how == "utf8":
        out.write(b"caf\xe9 \xff\xfe\n")
    elif how == "long":
        out.write(b"w" * 5_000_000 + b"\n")
    elif how == "json":
        out.write(b'{"level": "info", "message": "no JSON-RPC"}\n[1, 2]\nnull\n"text"\n')
    elif how == "answers":
        out.write(b'{"jsonrpc": "2.0", "id": 99999, "result": {}}\n')
    out.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", choices=KINDS, default="one", help="how the list of tools goes on")
    parser.add_argument("--bad", choices=[*BAD, "all"], help="a tool that cannot be read, among the good ones")
    parser.add_argument("--noise", choices=["text", "flood", "utf8", "long", "json", "answers"])
    parser.add_argument("--fail-after", type=int, default=0, help="fails in the middle of every list after so many")
    parser.add_argument("--marker", default="")
    chosen = parser.parse_args()
    lists: list[None] = []  # one for each that was begun

    def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        if chosen.noise:
            noise(chosen.noise)
        if method == "initialize":
            return initialized("raw")
        if method == "ping":
            return {}
        if method == "tools/list":
            cursor = params.get("cursor")
            lists.extend([cursor] * (cursor is None))
            breaks_off = chosen.fail_after and len(lists) > chosen.fail_after
            listed = page("failing" if breaks_off else chosen.pages, cursor)
            if chosen.bad:
                bad = list(BAD.values()) if chosen.bad == "all" else [BAD[chosen.bad]]
                listed["tools"][1:1] = bad
            return listed
        if method == "tools/call":
            return said(f"{params['name']} {params.get('arguments')}")
        raise LookupError

    answer_lines(answer)
