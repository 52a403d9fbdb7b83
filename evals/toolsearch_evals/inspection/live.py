"""A search box on loopback, for whoever has its address: a page, and a door for its queries.

The address has a random token, and everything else is answered with 404. A request must name this host, so that no name
that was pointed here gets in, and a query must come from the page itself, not from another one in the same browser.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import threading
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from socketserver import TCPServer
from types import TracebackType
from typing import Any, TypeAlias

from toolsearch import SetupError
from toolsearch_evals.inspection.box import SearchBox
from toolsearch_evals.reports.page import asset, head

__all__ = ["LiveBox", "ServerStates"]

log = logging.getLogger("toolsearch")

MOST_BYTES = 20_000  # of a query's body
IDLE_SECONDS = 30.0  # after which a connection that sends nothing is closed
ServerStates: TypeAlias = Callable[[], list[dict[str, Any]]]
"""Gives what is known of each MCP server: `name`, `state`, `reason` and `tools`."""


class LiveBox:
    """Serves a search box until it is closed. `address` is where, with the token; port 0 takes any that is free."""

    def __init__(self, box: SearchBox, states: ServerStates = list, *, port: int = 0, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(24)
        try:
            self._server = _Server(("127.0.0.1", port), partial(_Handler, self))
        except (OSError, OverflowError) as error:
            raise SetupError(f"the port {port} cannot be used: {error}; pass another one with --port") from None
        self.box, self.states = box, states
        self._thread: threading.Thread | None = None

    @property
    def host(self) -> str:
        """The host and port that a request must name."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def address(self) -> str:
        return f"http://{self.host}/{self.token}/"

    def serve(self) -> None:
        """Serves in this thread, until Ctrl-C or `close` in another one."""
        try:
            self._server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            pass
        finally:
            self._server.server_close()

    def __enter__(self) -> LiveBox:
        self._thread = threading.Thread(target=self.serve, name="toolsearch-inspect", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stops serving in another thread, and frees the port."""
        self._server.shutdown()
        if self._thread is not None:
            self._thread.join()
        self._server.server_close()

    def answer(self, query: str) -> dict[str, Any]:
        """What the page gets for a query."""
        return {"tools": len(self.box.catalog), "servers": self.states(), "indexes": self.box.answer(query)}

    def page(self) -> str:
        """The page, which may ask only this host."""
        style, script = asset("page.css"), _asset("live.js")
        styles = [style, _asset("timeline.css"), _asset("live.css")]
        tools, servers = len(self.box.catalog), self.states()
        data = json.dumps({"tools": tools, "servers": servers, "indexes": self.box.indexes}).replace("<", "\\u003c")
        return (
            f"{head('Search box', styles, [script], more=_CONNECT)}<body><main>{_BODY}</main>"
            f'<script type="application/json" id="data">{data}</script><script>{script}</script></body></html>\n'
        )


class _Server(ThreadingHTTPServer):
    """A server that asks no name server for its own name, and says nothing of a browser that hangs up."""

    daemon_threads = True

    def server_bind(self) -> None:
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        log.debug("a request of the search box failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """Answers the page and its queries; nothing else."""

    server_version, sys_version = "toolsearch", ""
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS

    def __init__(self, live: LiveBox, *arguments: Any) -> None:
        self._live = live
        super().__init__(*arguments)

    def do_GET(self) -> None:
        if self._is_let_in("/"):
            self._send(HTTPStatus.OK, self._live.page(), "text/html")

    def do_POST(self) -> None:
        if not self._is_let_in("/search"):
            return
        kind = self.headers.get_content_type()
        size = self.headers.get("Content-Length", "")
        if kind != "application/json" or not size.isdecimal() or len(size) > 9:
            self._refuse(HTTPStatus.BAD_REQUEST, "a query is JSON, with its length")
            return
        if int(size) > MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a query has at most {MOST_BYTES:,} bytes")
            return
        try:
            asked = json.loads(self.rfile.read(int(size)))
            query = asked["query"]
        except (ValueError, TypeError, KeyError, RecursionError):
            query = None
        if not isinstance(query, str):
            self._refuse(HTTPStatus.BAD_REQUEST, 'a query is {"query": "words"}')
            return
        answer = self._live.answer(query)
        self._send(HTTPStatus.OK, json.dumps(answer, ensure_ascii=False, default=str), "application/json")

    def _is_let_in(self, place: str) -> bool:
        """Whether a request is for us, from the page or from the person who has its address; if not, it is answered."""
        hosts = {self._live.host, self._live.host.replace("127.0.0.1", "localhost")}
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host not in hosts or (origin is not None and origin != f"http://{host}"):
            self._refuse(HTTPStatus.FORBIDDEN, "this box is for its own page")
            return False
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            self._refuse(HTTPStatus.FORBIDDEN, "this box is for its own page")
            return False
        wanted = f"/{self._live.token}{place}"
        if not hmac.compare_digest(self.path.encode("utf-8", "replace"), wanted.encode()):
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")
            return False
        return True

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True  # what the request sent may not have been read
        self._send(status, why, "text/plain")

    def _send(self, status: HTTPStatus, text: str, kind: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name that the class has
        """Nothing: the path of a request has the token."""


_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_CONNECT = "connect-src 'self'; "
_BODY = (
    "<h1>Search box</h1>"
    '<p class="about" id="about"></p>'
    '<form id="form" role="search"><label class="sr" for="query">What should the tool do?</label>'
    '<input id="query" type="search" autocomplete="off" autofocus placeholder="What should the tool do?">'
    "<button>Search</button></form>"
    '<p class="note" id="status" role="status"></p><div id="answers"></div>'
    '<noscript><p class="note">The box needs its script.</p></noscript>'
)


def _asset(name: str) -> str:
    return resources.files("toolsearch_evals.inspection").joinpath(name).read_text("utf-8")
