"""Why a server gets no token: somebody has to log in, or the login cannot be renewed now."""

from __future__ import annotations

from toolsearch import SetupError

__all__ = ["NeedsLogin", "RenewalFailed"]


class NeedsLogin(SetupError):
    """A server asks for a login that only a person can make; the message has the command. `server` is its name."""

    def __init__(self, server: str, why: str = "") -> None:
        reason = f" ({why})" if why else ""
        super().__init__(f"the server {server!r} needs a login{reason}: run toolsearch login {server}")
        self.server = server


class RenewalFailed(SetupError):
    """A login could not be renewed now, and is kept: the next request tries again. `server` is the server's name."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(
            f"the login of the server {server!r} could not be renewed now ({why}). It is kept, and tried again"
        )
        self.server = server
