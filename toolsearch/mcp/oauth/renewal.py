"""The token of a kept login, renewed when it ends: by one thread of one process at a time, for all of them.

Servers that rotate refresh tokens take a used one for stolen and end the login. So whoever renews holds the lock, and
looks first whether another has renewed meanwhile. Only a refusal in the words of OAuth ends a login: an answer of a
proxy, a status of an overloaded server or no answer at all is a reason to try again later.
"""

from __future__ import annotations

import time
from typing import NoReturn

import httpx2
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientMetadata, OAuthToken
from pydantic import BaseModel, ValidationError

from toolsearch.mcp.oauth.problems import NeedsLogin, RenewalFailed
from toolsearch.mcp.oauth.store import Login, LoginStore, login_key
from toolsearch.mcp.oauth.transfer import OK, LoginTokens, read_bounded, require_private

__all__ = ["SavedLogin", "expiry"]

SECONDS = 20.0  # for a request to the authorization server, all in all
LOCK_SECONDS = 2 * SECONDS
FRESH_SECONDS = 30.0  # a token that is refused so soon is not too old: another one would be refused as well
LONG_SECONDS = 1.0  # a failure that took so long stands for a while
EARLY_SECONDS = 30.0  # a token is renewed so long before it ends, but not before nine tenths of its life
# A refresh token, a client or a grant that the authorization server knows no more (RFC 6749, section 5.2).
FINAL = frozenset(["invalid_grant", "invalid_client", "unauthorized_client"])


class _Refusal(BaseModel):
    error: str
    error_description: str = ""


class SavedLogin:
    """The login of one server, as it is kept. Its methods block, but for `current`."""

    def __init__(self, server: str, url: str, store: LoginStore) -> None:
        self.server = server
        self.key = login_key(server, url)
        self.store = store
        self._seen: tuple[tuple[int, int] | None, Login | None] = (None, None)
        self._failure: tuple[float, RenewalFailed] | None = None  # until when it stands for others, monotonic

    def current(self) -> tuple[bool, str | None]:
        """Whether the login that was read last is still the one that is kept and has not ended; and its token."""
        stamp, login = self._seen
        if stamp != self.store.stamp(self.key) or (login is not None and login.shown.refused):
            return False, None
        return login is None or not _is_ending(login), self.last_token

    @property
    def last_token(self) -> str | None:
        """The token that was read last, ended or not."""
        login = self._seen[1]
        return None if login is None or login.shown.refused else login.tokens.access_token

    @property
    def scopes(self) -> list[str]:
        """The rights that the login has, as far as its server says."""
        login = self._seen[1]
        return (login.tokens.scope or "").split() if login is not None else []

    def token(self) -> str | None:
        """The access token, renewed if it is about to end; None without a login.

        Raises `NeedsLogin` if the login is over, `RenewalFailed` if it cannot be renewed now.
        """
        login = self._load()
        if login is None:
            return None
        if login.shown.refused:
            raise NeedsLogin(self.server, login.shown.refused)
        if not _is_ending(login) or not login.tokens.refresh_token:
            return login.tokens.access_token
        return self._renewed(login.tokens.access_token)

    def another_token(self, refused: str) -> str | None:
        """A token in the place of one that the server has refused before its time; None if there can be none.

        Raises as `token` does.
        """
        login = self._load()
        if login is None or login.shown.refused:
            return None
        if login.tokens.access_token != refused:
            return login.tokens.access_token
        is_fresh = time.time() - max(login.shown.since, login.shown.renewed) < FRESH_SECONDS
        return self._renewed(refused) if login.tokens.refresh_token and not is_fresh else None

    def _load(self) -> Login | None:
        stamp = self.store.stamp(self.key)
        login = self.store.load(self.key)
        self._seen = (stamp, login)
        return login

    def _renewed(self, old: str) -> str:
        """The token that comes after the old one, whoever asks for it."""
        try:
            with self.store.lock(self.key, LOCK_SECONDS):
                login = self._load()
                if login is None:
                    raise NeedsLogin(self.server)
                if login.shown.refused:
                    raise NeedsLogin(self.server, login.shown.refused)
                if login.tokens.access_token != old:
                    return login.tokens.access_token
                return self._ask_in_time(login)
        except OSError as error:  # of the lock; a time-out is one
            raise RenewalFailed(self.server, str(error)) from None

    def _ask_in_time(self, login: Login) -> str:
        """The new token. A failure that took long is not repeated at once by all who wait for it."""
        began = time.monotonic()
        if self._failure is not None and began < self._failure[0]:
            raise self._failure[1]
        try:
            return self._ask(login)
        except RenewalFailed as error:
            ended = time.monotonic()
            if ended - began > LONG_SECONDS:
                self._failure = (ended + 2 * (ended - began), error)
            raise

    def _ask(self, login: Login) -> str:
        address, data, headers = _request_of(login)
        end = time.monotonic() + SECONDS
        try:
            require_private(address)
            with (
                httpx2.Client(timeout=SECONDS) as client,
                client.stream("POST", address, data=data, headers=headers) as response,
            ):
                body = read_bounded(response, end)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise RenewalFailed(self.server, f"{type(error).__name__}") from None
        if response.status_code != OK:
            self._refuse(login, response.status_code, body)
        try:
            tokens = OAuthToken.model_validate_json(body)
        except ValidationError:
            raise RenewalFailed(self.server, "the answer has no token") from None
        # What the answer leaves out stays as it was (RFC 6749, section 6).
        tokens.refresh_token = tokens.refresh_token or login.tokens.refresh_token
        tokens.scope = tokens.scope or login.tokens.scope
        shown = login.shown.model_copy(
            update={
                "expires_at": expiry(tokens),
                "renewed": time.time(),
                "renewable": tokens.refresh_token is not None,
            }
        )
        self._save(login.model_copy(update={"tokens": tokens, "shown": shown}))
        return tokens.access_token

    def _refuse(self, login: Login, status: int, body: bytes) -> NoReturn:
        try:
            error = _Refusal.model_validate_json(body).error
        except ValidationError:
            error = ""
        if error not in FINAL:
            raise RenewalFailed(self.server, f"status {status}")
        why = f"the login has ended: {error}"
        self._save(login.model_copy(update={"shown": login.shown.model_copy(update={"refused": why})}))
        raise NeedsLogin(self.server, why)

    def _save(self, login: Login) -> None:
        self.store.save(self.key, login)
        self._seen = (self.store.stamp(self.key), login)


def expiry(tokens: OAuthToken) -> float | None:
    """When the access token ends, in seconds since 1970; None if nobody says."""
    return None if tokens.expires_in is None else time.time() + tokens.expires_in


def _is_ending(login: Login) -> bool:
    if login.shown.expires_at is None:
        return False
    early = min(EARLY_SECONDS, 0.1 * (login.tokens.expires_in or 0))
    return time.time() >= login.shown.expires_at - early


def _request_of(login: Login) -> tuple[str, dict[str, str], dict[str, str]]:
    """Where a login is renewed, and the form and the headers that ask for it."""
    context = OAuthContext(
        login.shown.url, OAuthClientMetadata(redirect_uris=None), LoginTokens(login.client), None, None
    )
    context.client_info, context.oauth_metadata = login.client, login.metadata
    base = context.get_authorization_base_url(login.shown.url)
    address = str(login.metadata.token_endpoint) if login.metadata else f"{base}/token"
    data = {
        "grant_type": "refresh_token",
        "refresh_token": login.tokens.refresh_token or "",
        "client_id": login.client.client_id,
    }
    if login.resource:
        data["resource"] = login.resource
    data, headers = context.prepare_token_auth(data, {"Accept": "application/json"})
    return address, data, headers
