"""Where logins are kept: a file for each server that only its owner may read; secrets in a keyring if there is one."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import BaseModel, ValidationError

from toolsearch import SetupError
from toolsearch.mcp.oauth.keyring_door import Keyring, open_keyring
from toolsearch.support.locks import locked
from toolsearch.support.private_files import make_private_folder, read_private, state_folder, write_private

__all__ = ["Login", "LoginStore", "Shown", "login_key", "public_url"]

SERVICE = "toolsearch"  # of the entries in the keyring


class Shown(BaseModel):
    """What of a login may be shown. Times are seconds since 1970."""

    version: int = 1
    server: str
    url: str  # without what may be a secret in it
    since: float  # of the login
    renewed: float = 0.0  # when its token was last renewed
    expires_at: float | None = None
    renewable: bool = False
    refused: str = ""  # why the authorization server renews it no more
    kept_in: Literal["file", "keyring"] = "file"


class Login(BaseModel):
    """A login as it is kept. `metadata` says where it is renewed, `resource` what its tokens are for."""

    shown: Shown
    tokens: OAuthToken
    client: OAuthClientInformationFull
    metadata: OAuthMetadata | None = None
    resource: str | None = None


class _Kept(BaseModel):
    """A file: what may be shown and, where there is no keyring, the secrets as JSON."""

    shown: Shown
    login: str | None = None


def login_key(server: str, url: str) -> str:
    """The name under which a login is kept. Another address of the same name is another login: it gets no token."""
    digest = hashlib.sha256(f"{server}\n{url}".encode()).hexdigest()[:16]
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '_', server)[:40]}-{digest}"


def public_url(url: str) -> str:
    """The address without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class LoginStore:
    """The logins of this user. Its methods block: call them in a thread. They raise `SetupError`."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = state_folder() / "logins" if folder is None else folder

    @cached_property
    def _keyring(self) -> Keyring | None:
        """Opened when it is needed: finding it takes a while."""
        return open_keyring()

    def prepare(self) -> None:
        """Makes sure that a login can be kept, before somebody takes the trouble to log in."""
        make_private_folder(self.folder)
        _ = self._keyring

    def stamp(self, key: str) -> tuple[int, int] | None:
        """A value that changes whenever the login does; None if there is none. It does not block for long."""
        try:
            found = os.lstat(self._file(key))
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def shown(self, key: str) -> Shown | None:
        """What may be shown of the login, None if there is none. It does not ask the keyring."""
        kept = self._kept(self._file(key))
        return None if kept is None else kept.shown

    def load(self, key: str) -> Login | None:
        """The login, None if there is none."""
        kept = self._kept(self._file(key))
        if kept is None:
            return None
        secret = kept.login
        if kept.shown.kept_in == "keyring":
            if self._keyring is None:
                raise SetupError(
                    f"the login of the server {kept.shown.server!r} is in the keyring, which cannot be opened: "
                    "install the package 'keyring', or log in again"
                )
            secret = self._keyring.read(SERVICE, key)
        if secret is None:
            return None
        try:
            return Login.model_validate_json(secret)
        except ValidationError:
            raise SetupError(f"the login of the server {kept.shown.server!r} is damaged: log in again") from None

    def save(self, key: str, login: Login) -> None:
        """Keeps the login in the place of the one there."""
        make_private_folder(self.folder)
        in_keyring = False
        if self._keyring is not None:
            shown = login.shown.model_copy(update={"kept_in": "keyring"})
            in_keyring = self._keyring.write(SERVICE, key, login.model_copy(update={"shown": shown}).model_dump_json())
        kept_in: Literal["file", "keyring"] = "keyring" if in_keyring else "file"
        shown = login.shown.model_copy(update={"kept_in": kept_in})
        secret = None if in_keyring else login.model_copy(update={"shown": shown}).model_dump_json()
        write_private(self._file(key), _Kept(shown=shown, login=secret).model_dump_json(indent=1).encode())

    def remove(self, key: str) -> bool:
        """Forgets the login; whether there was one."""
        if self._keyring is not None:
            self._keyring.delete(SERVICE, key)
        try:
            self._file(key).unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise SetupError(f"{str(self._file(key))!r} cannot be removed: {error.strerror}") from None
        return True

    def lock(self, key: str, seconds: float) -> AbstractContextManager[None]:
        """The lock that whoever changes the login holds, in whatever process. Raises `TimeoutError`, `OSError`."""
        make_private_folder(self.folder)
        return locked(self.folder / f"{key}.lock", seconds)

    def __iter__(self) -> Iterator[Shown]:
        """What may be shown of each login, by name. One whose file cannot be read is left out."""
        found = []
        for file in self.folder.glob("*.json"):
            with suppress(SetupError):
                if (kept := self._kept(file)) is not None:
                    found.append(kept.shown)
        return iter(sorted(found, key=lambda shown: (shown.server, shown.url)))

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _kept(self, file: Path) -> _Kept | None:
        data = read_private(file)
        if data is None:
            return None
        try:
            return _Kept.model_validate_json(data)
        except ValidationError:
            raise SetupError(f"the login in {str(file)!r} is damaged: remove it and log in again") from None
