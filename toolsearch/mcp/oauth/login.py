"""Logging in to a server, by a person and a browser: the SDK's flow, and what it gets is kept when it is whole."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.client.auth.utils import extract_resource_metadata_from_www_auth
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, TokenEndpointAuthMethod
from pydantic import AnyUrl

from toolsearch import SetupError, __version__
from toolsearch.mcp.oauth.redirect import Redirect, redirect_on_loopback
from toolsearch.mcp.oauth.renewal import LOCK_SECONDS, SECONDS, expiry
from toolsearch.mcp.oauth.store import Login, LoginStore, Shown, login_key, public_url
from toolsearch.mcp.oauth.transfer import FORBIDDEN, UNAUTHORIZED, LoginTokens, require_private
from toolsearch.support.redaction import excerpt

__all__ = ["ClientOptions", "log_in", "log_out"]

PROTOCOL = "2025-11-25"
# How a client proves itself, the best first: a program on a user's machine keeps no secret.
METHODS: tuple[TokenEndpointAuthMethod, ...] = ("none", "client_secret_post", "client_secret_basic")
# Any request that a server may mind. It is refused without a token, and says with one whether the token is taken.
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": PROTOCOL,
        "capabilities": {},
        "clientInfo": {"name": "toolsearch", "version": __version__},
    },
}
_HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": PROTOCOL}


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """What a server's entry says about the login: a registered client, rights, the port to come back to."""

    client_id: str | None = None
    client_secret: str | None = None
    scopes: tuple[str, ...] = ()
    port: int | None = None


async def log_in(
    server: str,
    url: str,
    show: Callable[[str, Redirect], None],
    *,
    options: ClientOptions | None = None,
    store: LoginStore,
    seconds: float = 300.0,
) -> Shown:
    """Logs in, and keeps the login. `show` gets the address that a person has to open, and where the answer goes.

    Raises `SetupError` if the server asks for no login, if nobody answers in `seconds`, or if the login fails.
    """
    options = options or ClientOptions()
    key = login_key(server, url)
    await asyncio.to_thread(store.prepare)
    async with redirect_on_loopback(options.port or 0) as redirect:
        with _explained(server):
            async with asyncio.timeout(seconds):
                flow, tokens = await _logged_in(server, url, redirect, show, options)
    login = _login_of(server, url, flow, tokens)
    await asyncio.to_thread(_keep, store, key, login)
    return login.shown


async def _logged_in(
    server: str, url: str, redirect: Redirect, show: Callable[[str, Redirect], None], options: ClientOptions
) -> tuple[_LoginFlow, LoginTokens]:
    """The flow at its end, and what it got.

    Each login registers a client of its own, since authorization servers forget clients. One that registers no public
    client is asked for one with a secret, and one that does not like an address of numbers for `localhost`.
    """
    refused: OAuthRegistrationError | None = None
    hosts = ("127.0.0.1", "localhost")
    attempts: list[tuple[TokenEndpointAuthMethod, str]] = [(method, host) for host in hosts for method in METHODS]
    for method, host in attempts:
        redirect.host = host
        tokens = LoginTokens(_registered(options, redirect.uri) if options.client_id is not None else None)
        flow = _flow(url, redirect, tokens, lambda address: show(address, redirect), options.scopes, method=method)
        try:
            await _say_hello(server, url, flow)
        except OAuthRegistrationError as error:
            refused = refused or error
        else:
            return flow, tokens
    assert refused is not None
    raise refused


class _LoginFlow(OAuthClientProvider):
    """The SDK's flow, which logs in even where the server minds only what comes after the first request."""

    def __init__(self, *arguments: object, wanted: tuple[str, ...], **more: object) -> None:
        super().__init__(*arguments, **more)  # type: ignore[arg-type]  # as the SDK's class takes them
        self._wanted = wanted
        self.first_status = 0

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        flow = super().async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                response = yield outgoing
                if outgoing is request and not self.first_status:
                    self.first_status = response.status_code
                    response = self._challenge(response)
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _challenge(self, response: httpx2.Response) -> httpx2.Response:
        """The refusal that begins the flow, with the rights that are wanted in it."""
        if response.status_code != UNAUTHORIZED and not response.is_success:
            return response
        said = response.headers.get("WWW-Authenticate", "Bearer")
        if self._wanted:
            metadata = extract_resource_metadata_from_www_auth(response)
            said = f'Bearer scope="{" ".join(self._wanted)}"' + (
                f', resource_metadata="{metadata}"' if metadata else ""
            )
        return httpx2.Response(UNAUTHORIZED, headers={"WWW-Authenticate": said}, request=response.request)


def _flow(
    url: str,
    redirect: Redirect,
    tokens: LoginTokens,
    show: Callable[[str], None],
    scopes: tuple[str, ...],
    *,
    method: TokenEndpointAuthMethod,
) -> _LoginFlow:
    async def open_page(address: str) -> None:
        require_private(address)
        _choose_method(flow)
        redirect.expect(address)
        show(address)

    async def answer() -> AuthorizationCodeResult:
        return await redirect.answer()

    metadata = OAuthClientMetadata(
        redirect_uris=[AnyUrl(redirect.uri)],
        client_name="toolsearch",
        token_endpoint_auth_method=method,
        grant_types=["authorization_code", "refresh_token"],
    )
    flow = _LoginFlow(url, metadata, tokens, open_page, answer, wanted=scopes)
    return flow


def _choose_method(flow: _LoginFlow) -> None:
    """A client of the entry shows its secret in the way that the authorization server takes."""
    client, metadata = flow.context.client_info, flow.context.oauth_metadata
    known = (metadata.token_endpoint_auth_methods_supported if metadata else None) or []
    if client is not None and client.client_secret and client.issuer is None and known:
        taken = [method for method in METHODS if method != "none" and method in known]
        if taken and client.token_endpoint_auth_method not in known:
            client.token_endpoint_auth_method = taken[0]


async def _say_hello(server: str, url: str, flow: _LoginFlow) -> None:
    async def check(request: httpx2.Request) -> None:
        require_private(str(request.url))

    timeout = httpx2.Timeout(SECONDS)
    async with httpx2.AsyncClient(auth=flow, timeout=timeout, event_hooks={"request": [check]}) as client:
        async with client.stream("POST", url, json=_HELLO, headers=_HEADERS) as response:
            status, session = response.status_code, response.headers.get("mcp-session-id")
        if session:  # nothing is left at the server
            await client.delete(url, headers={**_HEADERS, "mcp-session-id": session})
    if flow.context.current_tokens is None:
        raise SetupError(f"the server {server!r} asks for no login: it answered with the status {flow.first_status}")
    if status in (UNAUTHORIZED, FORBIDDEN):
        raise SetupError(f"the server {server!r} refuses the token that it was logged in with (status {status})")


@contextmanager
def _explained(server: str) -> Generator[None]:
    """What goes wrong on the way, as an error that says what to do."""
    try:
        yield
    except TimeoutError:
        raise SetupError(
            f"nobody answered the login to {server!r} in time: run toolsearch login {server} again"
        ) from None
    except OAuthRegistrationError as error:
        raise SetupError(
            f"the server {server!r} did not register this program ({excerpt(str(error), 200)}): if it asks for no "
            "login, there is nothing to do; otherwise register a client there and put its id into the entry: "
            '"oauth": {"clientId": "…"}'
        ) from None
    except OAuthFlowError as error:
        raise SetupError(f"the login to {server!r} failed: {excerpt(str(error), 300)}") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        why = excerpt(str(error) or type(error).__name__, 200)
        raise SetupError(f"the server {server!r} or its authorization server cannot be reached: {why}") from None


def _login_of(server: str, url: str, flow: _LoginFlow, tokens: LoginTokens) -> Login:
    got, client = tokens.tokens, tokens.client
    assert got is not None
    assert client is not None
    context = flow.context
    resource = context.get_resource_url() if context.should_include_resource_param(PROTOCOL) else None
    shown = Shown(
        server=server,
        url=public_url(url),
        since=time.time(),
        expires_at=expiry(got),
        renewable=got.refresh_token is not None,
    )
    return Login(shown=shown, tokens=got, client=client, metadata=context.oauth_metadata, resource=resource)


def _keep(store: LoginStore, key: str, login: Login) -> None:
    try:
        with store.lock(key, LOCK_SECONDS):
            store.save(key, login)
    except OSError as error:
        raise SetupError(f"the login cannot be kept: {error}") from None


def _registered(options: ClientOptions, uri: str) -> OAuthClientInformationFull:
    return OAuthClientInformationFull(
        client_id=options.client_id or "",
        client_secret=options.client_secret,
        redirect_uris=[AnyUrl(uri)],
        token_endpoint_auth_method="client_secret_post" if options.client_secret else "none",
    )


def log_out(server: str, url: str, store: LoginStore) -> bool:
    """Forgets the login, and tells the authorization server if it wants to know; whether there was one. It blocks."""
    key = login_key(server, url)
    try:
        with store.lock(key, LOCK_SECONDS):
            login = _loaded(store, key)
            removed = store.remove(key)
    except OSError as error:
        raise SetupError(f"the login cannot be removed: {error}") from None
    if login is not None and login.metadata is not None and login.metadata.revocation_endpoint is not None:
        _revoke(login, str(login.metadata.revocation_endpoint))
    return removed


def _loaded(store: LoginStore, key: str) -> Login | None:
    with suppress(SetupError):  # a damaged login is removed too
        return store.load(key)
    return None


def _revoke(login: Login, address: str) -> None:
    """Best effort (RFC 7009): the login is forgotten whatever the server answers."""
    data = {"token": login.tokens.refresh_token or login.tokens.access_token, "client_id": login.client.client_id}
    if login.client.client_secret:
        data["client_secret"] = login.client.client_secret
    try:
        require_private(address)
        httpx2.post(address, data=data, timeout=SECONDS)
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return
