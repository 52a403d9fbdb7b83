"""Where the browser comes back to: one address on the loopback interface, open while somebody logs in."""

from __future__ import annotations

import asyncio
import html
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import AuthorizationCodeResult

from toolsearch import SetupError
from toolsearch.support.redaction import excerpt

__all__ = ["Redirect", "redirect_on_loopback"]

PATH = "/callback"
MOST_REQUEST_BYTES = 16_384
REQUEST_SECONDS = 10.0
_PAGE = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>toolsearch</title>
<body style="font: 1.1rem system-ui; margin: 4rem auto; max-width: 34rem"><p>{}</p>"""


class Redirect:
    """The answer of one login. What does not carry the `state` of this login is no answer to it, and is turned away."""

    def __init__(self) -> None:
        self.host, self.port = "127.0.0.1", 0
        self._state: str | None = None
        self._answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    @property
    def uri(self) -> str:
        """The address that the browser is sent back to."""
        return f"http://{self.host}:{self.port}{PATH}"

    def expect(self, authorization_url: str) -> None:
        """From now on, the answer to this request is waited for."""
        self._state = _only(parse_qs(urlsplit(authorization_url).query), "state")

    async def answer(self) -> AuthorizationCodeResult:
        """The code, when it has come. Raises `SetupError` if the login was refused."""
        return await self._answer

    def take(self, url: str) -> str | None:
        """Takes the address to which the browser was sent back; None, or what is wrong with it."""
        query = parse_qs(urlsplit(url.strip()).query)
        if self._state is None or _only(query, "state") != self._state:
            return "This is not the answer to the login that is under way."
        if self._answer.done():
            return "This login has its answer already."
        if (error := _only(query, "error")) is not None:
            why = excerpt(f"{error}: {_only(query, 'error_description') or ''}".removesuffix(": "), 200)
            self._answer.set_exception(SetupError(f"the login was refused ({why})"))
            return None
        if (code := _only(query, "code")) is None:
            return "The answer has no code."
        self._answer.set_result(AuthorizationCodeResult(code=code, state=self._state, iss=_only(query, "iss")))
        return None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request of a browser."""
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            writer.close()
            return
        method, _, rest = head.partition(" ")
        target = rest.partition(" ")[0]
        hosts = [line[5:].strip() for line in head.split("\r\n") if line.lower().startswith("host:")]
        if method != "GET" or urlsplit(target).path != PATH or hosts != [urlsplit(self.uri).netloc]:
            status, text = "404 Not Found", "There is nothing here."
        elif (problem := self.take(target)) is not None:
            status, text = "400 Bad Request", problem
        elif self._answer.exception() is not None:
            status, text = "200 OK", "You are not logged in. The terminal says why; this window can be closed."
        else:
            status, text = "200 OK", "The answer has come. The terminal says how it goes on; this window can be closed."
        body = _PAGE.format(html.escape(text)).encode()
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode()
            + body
        )
        try:
            await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def redirect_on_loopback(port: int = 0) -> AsyncGenerator[Redirect]:
    """Listens on 127.0.0.1, on this port or on a free one. Raises `SetupError` if the port is taken."""
    redirect = Redirect()
    try:
        server = await asyncio.start_server(redirect.serve, "127.0.0.1", port, limit=MOST_REQUEST_BYTES)
    except OSError as error:
        raise SetupError(f"the port {port} for the answer of the login cannot be used: {error.strerror}") from None
    redirect.port = server.sockets[0].getsockname()[1]
    async with server:
        yield redirect


def _only(query: dict[str, list[str]], name: str) -> str | None:
    """The value of a parameter that stands there once."""
    values = query.get(name, [])
    return values[0] if len(values) == 1 else None
