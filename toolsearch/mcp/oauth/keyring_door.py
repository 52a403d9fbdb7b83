"""The keyring of the user's desktop, through the package `keyring`, where that is installed and has a real backend."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Protocol

from toolsearch import SetupError

__all__ = ["Keyring", "open_keyring"]


class _Backend(Protocol):
    priority: float

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


class Keyring:
    """One backend of `keyring`. What it raises differs with the backend, so that everything is caught."""

    def __init__(self, backend: _Backend) -> None:
        self._backend = backend

    def read(self, service: str, name: str) -> str | None:
        """The secret, None if there is none. Raises `SetupError` if the keyring is locked or fails."""
        try:
            return self._backend.get_password(service, name)
        except Exception as error:
            raise SetupError(
                f"the keyring cannot be read ({type(error).__name__}): unlock it, or set TOOLSEARCH_LOGINS=file and "
                "log in again"
            ) from None

    def write(self, service: str, name: str, secret: str) -> bool:
        """Whether the keyring took the secret: Windows takes short ones only. What it had under this name is gone."""
        try:
            self._backend.set_password(service, name, secret)
        except Exception:
            self.delete(service, name)
            return False
        return True

    def delete(self, service: str, name: str) -> None:
        """Removes the secret, if there is one."""
        with suppress(Exception):
            self._backend.delete_password(service, name)


def _chained(backend: _Backend) -> list[_Backend]:
    return [*getattr(backend, "backends", ())]


def open_keyring() -> Keyring | None:
    """The keyring; None where there is none, where it would keep plain text, or with TOOLSEARCH_LOGINS=file.

    Raises `SetupError` if TOOLSEARCH_LOGINS is `keyring` and there is none.
    """
    wanted = os.environ.get("TOOLSEARCH_LOGINS", "")
    if wanted not in ("", "file", "keyring"):
        raise SetupError(f"TOOLSEARCH_LOGINS must be 'file' or 'keyring', not {wanted!r}")
    if wanted == "file":
        return None
    try:
        backend: _Backend = import_module("keyring").get_keyring()
        # The backends that fail, or keep plain text, have less; a chain of backends writes to its first one.
        is_real = all(each.priority >= 1 for each in (backend, *_chained(backend)[:1]))
    except Exception:
        is_real = False
    else:
        if is_real:
            return Keyring(backend)
    if wanted == "keyring":
        raise SetupError(
            "TOOLSEARCH_LOGINS is 'keyring', but there is none: install the package 'keyring' and a backend of it"
        )
    return None
