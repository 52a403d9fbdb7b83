"""The login of a server, put on each request to it. It opens no browser and asks nobody."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Protocol

import anyio.to_thread
import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth

from toolsearch import SetupError
from toolsearch.mcp.oauth.problems import NeedsLogin, NeedsMoreRights, RenewalFailed, TokenRefused
from toolsearch.mcp.oauth.renewal import SavedLogin
from toolsearch.mcp.oauth.store import LoginStore, login_key
from toolsearch.mcp.oauth.transfer import FORBIDDEN, UNAUTHORIZED, require_private

__all__ = ["ServerAuth", "auth_for", "login_stamp"]


class Entry(Protocol):
    """What of a server's entry decides about its login."""

    @property
    def url(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


def auth_for(entry: Entry, name: str, *, store: LoginStore | None = None) -> ServerAuth | OwnToken | None:
    """The login of a server for its requests; None for one that has no address.

    An entry with an `Authorization` header of its own gets no login: then `problem` says if the server refuses it.
    Where nobody is logged in yet, requests go without a token, and `problem` says so if the server minds.

    Raises `NeedsLogin` if there was a login and it is over, `SetupError` if what is kept cannot be read.
    """
    if not entry.url:
        return None
    if any(header.lower() == "authorization" for header in entry.headers):
        return OwnToken(name)
    login = SavedLogin(name, entry.url, LoginStore() if store is None else store)
    shown = login.store.shown(login.key)
    if shown is not None and shown.refused:
        raise NeedsLogin(name, shown.refused)
    return ServerAuth(login, entry.url)


def login_stamp(entry: Entry, name: str, *, store: LoginStore | None = None) -> tuple[int, int] | None:
    """A value that changes when somebody logs in to the server, out of it, or a login is renewed; None without one."""
    store = LoginStore() if store is None else store
    return store.stamp(login_key(name, entry.url)) if entry.url else None


class OwnToken(httpx2.Auth):
    """Adds nothing to the requests of an entry that has a token, and remembers in `problem` whether it was refused."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.problem: TokenRefused | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """One request, as it is."""
        response = yield request
        self.problem = TokenRefused(self._server) if response.status_code == UNAUTHORIZED else None


class ServerAuth(httpx2.Auth):
    """The token of a kept login, on requests to the server's own origin only.

    A refusal of the server passes as it came, so that the connection lives on; `problem` then says what to do about
    it, as `NeedsLogin` or `RenewalFailed`, until a request succeeds.
    """

    def __init__(self, login: SavedLogin, url: str) -> None:
        self._login = login
        self._origin = _origin(httpx2.URL(url))
        self.problem: NeedsLogin | RenewalFailed | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """One request, and once more with another token if the first one is refused."""
        if _origin(request.url) != self._origin:
            yield request
            return
        is_current, token = self._login.current()
        trouble: NeedsLogin | RenewalFailed | None = None
        if not is_current:
            token, trouble = await self._ask(self._login.token)
            if isinstance(trouble, RenewalFailed):
                token = self._login.last_token  # which the server may take for a while
        self._put(request, token)
        response = yield request
        if response.status_code == UNAUTHORIZED and token is not None and trouble is None:
            refused = token
            token, trouble = await self._ask(lambda: self._login.another_token(refused))
            if token is not None:
                self._put(request, token)
                response = yield request
        self.problem = self._problem(response, trouble, has_token=token is not None)

    async def _ask(self, question: Callable[[], str | None]) -> tuple[str | None, NeedsLogin | RenewalFailed | None]:
        """The answer of a blocking question. It goes on if the caller gives up: a new token must not get lost."""
        try:
            return await anyio.to_thread.run_sync(question, abandon_on_cancel=True), None
        except (NeedsLogin, RenewalFailed) as error:
            return None, error
        except SetupError as error:  # what is kept cannot be read
            return None, RenewalFailed(self._login.server, str(error))

    def _put(self, request: httpx2.Request, token: str | None) -> None:
        if token is not None:
            require_private(str(request.url))
            request.headers["Authorization"] = f"Bearer {token}"

    def _problem(
        self, response: httpx2.Response, trouble: NeedsLogin | RenewalFailed | None, *, has_token: bool
    ) -> NeedsLogin | RenewalFailed | None:
        server = self._login.server
        if response.status_code == UNAUTHORIZED:
            return trouble or NeedsLogin(server, "it refuses the token" if has_token else "")
        said = extract_field_from_www_auth(response, "error")
        if response.status_code == FORBIDDEN and said == "insufficient_scope":
            return NeedsMoreRights(
                server, [*self._login.scopes, *(extract_scope_from_www_auth(response) or "").split()]
            )
        return None


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
