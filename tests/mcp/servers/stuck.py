"""A server that hangs: at the start, at `initialize`, at its list, in a call; in silence or with keep-alives."""

import argparse
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.mcp.servers.by_hand import answer_lines, initialized, said, tool, write

METHODS = {"initialize": "initialize", "list": "tools/list", "call": "tools/call"}


def keep_alive() -> None:
    """A message ten times a second that answers nothing."""
    while True:
        write({"method": "notifications/message", "params": {"level": "info", "data": "still here"}})
        time.sleep(0.1)


class Stream(BaseHTTPRequestHandler):
    """Over HTTP: opens a stream of events, sends a comment ten times a second, and never an answer."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b": keep-alive\n\n")
                self.wfile.flush()
                time.sleep(0.1)
        except OSError:
            self.close_connection = True

    def log_message(self, *args: Any) -> None:
        """Says nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at", choices=["start", *METHODS], default="call", help="where it hangs")
    parser.add_argument("--keep-alive", action="store_true", help="sends messages that answer nothing meanwhile")
    parser.add_argument("--http", type=int, metavar="PORT", help="hangs in every request, with comments as keep-alives")
    parser.add_argument("--sse", action="store_true", help="accepted and ignored")
    parser.add_argument("--marker", default="")
    chosen = parser.parse_args()
    if chosen.http is not None:
        server = ThreadingHTTPServer(("127.0.0.1", chosen.http), Stream)
        print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
        server.serve_forever()
    if chosen.at == "start":
        time.sleep(3600)

    def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == METHODS[chosen.at]:
            if chosen.keep_alive:
                threading.Thread(target=keep_alive, daemon=True).start()
            return None
        if method == "initialize":
            return initialized("stuck")
        if method == "tools/list":
            return {"tools": [tool("wait"), tool("other")]}
        if method == "tools/call":
            return said("no wait")
        raise LookupError

    answer_lines(answer)
