"""What login and renewal share: the storage that the SDK asks for, and requests that stay bounded and private."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

import httpx2
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

__all__ = ["FORBIDDEN", "OK", "UNAUTHORIZED", "LoginTokens", "is_loopback", "read_bounded", "require_private"]

OK, UNAUTHORIZED, FORBIDDEN = 200, 401, 403
MOST_BYTES = 1_000_000


class LoginTokens:
    """The SDK's `TokenStorage`, in memory: what a login got is kept when it is whole, not in pieces."""

    def __init__(self, client: OAuthClientInformationFull | None = None) -> None:
        self.client = client
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def is_loopback(host: str | None) -> bool:
    """Whether a host is this machine, by its name alone."""
    return host in ("127.0.0.1", "::1", "localhost")


def require_private(url: str) -> None:
    """Raises `httpx2.InvalidURL` unless what is sent there is encrypted, or stays on this machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
        raise httpx2.InvalidURL(f"{parts.scheme}://{parts.hostname} would see the login in plain text")


def read_bounded(response: httpx2.Response, end: float) -> bytes:
    """The body, read until `end` (monotonic) at the latest. Raises `httpx2.ReadTimeout` or `httpx2.ReadError`."""
    body = b""
    for chunk in response.iter_bytes():
        body += chunk
        if time.monotonic() > end:
            raise httpx2.ReadTimeout("the answer takes too long")
        if len(body) > MOST_BYTES:
            raise httpx2.ReadError("the answer is too long")
    return body
