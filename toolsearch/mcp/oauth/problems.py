"""Why a server takes no request: somebody has to log in, the login cannot be renewed now, or a token is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolsearch import SetupError

__all__ = ["NeedsLogin", "NeedsMoreRights", "RenewalFailed", "TokenRefused"]


_PLAIN = re.compile(r"[A-Za-z0-9][\w.:/@*+-]{0,199}\Z", re.ASCII)


class NeedsLogin(SetupError):
    """A server asks for a login that only a person can make; the message has the command.

    `server` is its name. `is_over` says that there was a login, which the server takes no more.
    """

    def __init__(self, server: str, why: str = "", options: str = "") -> None:
        reason = f" ({why})" if why else ""
        super().__init__(f"the server {server!r} needs a login{reason}: run toolsearch login {server}{options}")
        self.server = server
        self.is_over = bool(why)


class NeedsMoreRights(NeedsLogin):
    """A login has too few rights for one request; others still work."""

    def __init__(self, server: str, scopes: Iterable[str] = ()) -> None:
        plain = [scope for scope in dict.fromkeys(scopes) if _PLAIN.match(scope)]  # a server's word in a command line
        super().__init__(server, "this needs more rights than the login has", "".join(f" --scope {s}" for s in plain))
        self.is_over = False


class RenewalFailed(SetupError):
    """A login could not be renewed now, and is kept: the next request tries again. `server` is the server's name."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(
            f"the login of the server {server!r} could not be renewed now ({why}). It is kept, and tried again"
        )
        self.server = server


class TokenRefused(SetupError):
    """A server refuses the token that its entry has. `server` is the server's name."""

    def __init__(self, server: str) -> None:
        super().__init__(f"the server {server!r} refuses the token in its entry: put one that is valid into 'headers'")
        self.server = server
