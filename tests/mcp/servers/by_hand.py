"""JSON-RPC by hand, for servers that do what an SDK would not let them do. Older protocol, a line a message."""

import json
import sys
from collections.abc import Callable
from typing import Any

Answer = dict[str, Any] | None  # a result; None: no answer at all
ABLE = {"tools": {"listChanged": True}}


def initialized(name: str) -> dict[str, Any]:
    return {
        "protocolVersion": "2025-11-25",
        "capabilities": ABLE,
        "serverInfo": {"name": name, "version": "1"},
    }


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def tool(name: str, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"key": {"type": "string"}}}
    return {"name": name, "description": f"Reads {name}.", "inputSchema": schema, **more}


def write(message: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def answer_lines(answer: Callable[[str, dict[str, Any]], Answer]) -> None:
    """Reads requests until the input ends; `answer(method, params)` gives a result, None, or raises LookupError."""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        try:
            result = answer(message["method"], message.get("params") or {})
        except LookupError:
            error = {"code": -32601, "message": f"Method not found: {message['method']}"}
            write({"id": message["id"], "error": error})
            continue
        if result is not None:
            write({"id": message["id"], "result": result})
