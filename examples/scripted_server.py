"""A model that answers from a script, on this machine: the examples use it where no key is set.

`serve` takes the replies as lists of calls (name, arguments), or as text, and speaks the formats of OpenAI Chat
Completions and Anthropic Messages.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = str | list[tuple[str, dict[str, Any]]]


@contextmanager
def serve(replies: Sequence[Reply]) -> Iterator[str]:
    """The address of a server that gives one reply after the other."""
    waiting = list(replies)

    class Scripted(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            make = openai_reply if self.path.endswith("/chat/completions") else anthropic_reply
            body = json.dumps(make(waiting.pop(0), f"{len(waiting)}")).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def openai_reply(reply: Reply, key: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply if isinstance(reply, str) else None}
    if not isinstance(reply, str):
        message["tool_calls"] = [
            {"id": f"call_{key}_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for n, (name, given) in enumerate(reply)
        ]
    reason = "stop" if isinstance(reply, str) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {"id": key, "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice]}


def anthropic_reply(reply: Reply, key: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": reply}] if isinstance(reply, str) else []
    if not isinstance(reply, str):
        content = [
            {"type": "tool_use", "id": f"toolu_{key}_{n}", "name": name, "input": given}
            for n, (name, given) in enumerate(reply)
        ]
    return {
        "id": key,
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": "end_turn" if isinstance(reply, str) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
