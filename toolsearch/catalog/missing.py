"""The servers that cannot be reached now, why, and who may hear of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from toolsearch.calls import Caller
from toolsearch.support import checks

__all__ = ["MissingServer", "missing_server"]


@dataclass(frozen=True, slots=True)
class MissingServer:
    """A server that cannot be reached. A caller needs one of the `roles` to be told; without any, all may be."""

    reason: str
    roles: frozenset[str] = frozenset()

    def may_be_told(self, caller: Caller | None) -> bool:
        return not self.roles or (caller is not None and not self.roles.isdisjoint(caller.roles))


def missing_server(reason: object, roles: Iterable[str]) -> MissingServer:
    """Checks what a program says of a server. Raises `SetupError`."""
    checks.text("reason", reason, none="once it can be reached again")
    return MissingServer(str(reason), frozenset(checks.names("roles", roles)))
