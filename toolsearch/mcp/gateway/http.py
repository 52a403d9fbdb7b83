"""The gateway over streamable HTTP: on loopback, for programs of this machine alone, with a token if wanted."""

from __future__ import annotations

import errno
import hmac
import ipaddress
import logging
import socket
import sys
from collections.abc import Mapping

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from toolsearch import SetupError
from toolsearch.mcp.gateway.clients import SESSION_HEADER
from toolsearch.mcp.gateway.gateway import Gateway

__all__ = ["http_app", "is_loopback", "listen", "serve_http"]

log = logging.getLogger("toolsearch.mcp")

PATH = "/mcp"
MOST_PORT = 65_535
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(host: str) -> bool:
    """Whether an address is one of this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def http_app(gateway: Gateway, *, host: str = "127.0.0.1", token: str = "", origins: tuple[str, ...] = ()) -> ASGIApp:
    """An application that serves a running gateway at `/mcp`.

    Requests with an `Origin` of a page elsewhere are refused, unless it is one of `origins`, and so are those for
    another host than this one. With a `token`, each needs it as a bearer token; without one, an address beyond loopback
    raises `SetupError`.
    """
    if not is_loopback(host) and not token:
        raise SetupError(f"{host!r} is reached from other machines: give a token, so that not everybody can call tools")
    hosts = [*_LOOPBACK, *([host] if not is_loopback(host) else [])]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=is_loopback(host),
        allowed_hosts=[*(f"{each}:*" for each in hosts), *hosts],
        allowed_origins=[*(f"http://{each}:*" for each in _LOOPBACK), *origins],
    )
    app: Starlette = gateway.server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=security,
        host=host,
        session_idle_timeout=gateway.settings.idle_seconds,
        max_sessions=gateway.settings.sessions,
    )
    leaving = _Leaving(app, gateway)
    guarded = _Origins(leaving, (*security.allowed_origins,)) if not is_loopback(host) else leaving
    return _Token(guarded, token) if token else guarded


class _Token:
    """Lets only requests with the bearer token pass."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not hmac.compare_digest(_bearer(scope), self._token):
            # No address of an authorization server: this is the gateway's own token, and no login gives one.
            answer = PlainTextResponse(
                "This gateway needs its own token: send it as 'Authorization: Bearer …'. It is the one that "
                "`toolsearch serve --http` was started with.",
                status_code=401,
                headers={"WWW-Authenticate": 'Bearer realm="toolsearch gateway"'},
            )
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)


class _Leaving:
    """Tells the gateway of clients that end their session."""

    def __init__(self, app: ASGIApp, gateway: Gateway) -> None:
        self._app, self._gateway = app, gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
        if scope["type"] == "http" and scope["method"] == "DELETE":
            self._gateway.client_left(_headers(scope).get(SESSION_HEADER.encode(), b"").decode("latin-1"))


class _Origins:
    """Refuses requests of pages elsewhere, where the SDK does not."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        self._app, self._origins = app, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = _headers(scope).get(b"origin", b"").decode("latin-1") if scope["type"] == "http" else ""
        if origin and origin not in self._origins:
            await PlainTextResponse("Invalid Origin header", status_code=403)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _headers(scope: Scope) -> Mapping[bytes, bytes]:
    return dict(scope["headers"])


def _bearer(scope: Scope) -> bytes:
    kind, _, token = _headers(scope).get(b"authorization", b"").partition(b" ")
    return token.strip() if kind.lower() == b"bearer" else b""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one. Raises `SetupError` if the port is taken, or is none.

    Its protocol is named: asyncio turns the wait for further small packets off only then, and answers are small ones.
    """
    if not 0 <= port <= MOST_PORT:
        raise SetupError(f"--port must be a number from 0 to {MOST_PORT}, not {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":  # there it would let two programs have one port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
        return listening
    except OSError as error:
        listening.close()
        other = "; pass another one with --port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else ""
        raise SetupError(f"{host}:{port} cannot be served: {error.strerror or error}{other}") from None


async def serve_http(app: ASGIApp, listening: socket.socket) -> None:
    """Serves until the process is told to stop."""
    config = uvicorn.Config(
        app, log_level="warning", lifespan="on", timeout_graceful_shutdown=2, log_config=None, access_log=False
    )
    await uvicorn.Server(config).serve([listening])
