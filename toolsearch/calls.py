"""A call a model makes, the answer it gets, and what a running tool may know about both."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from toolsearch.support import checks

__all__ = [
    "Caller",
    "Status",
    "ToolCall",
    "ToolContext",
    "ToolResult",
    "check_caller",
]

Status = Literal[
    "ok", "unknown", "not_loaded", "invalid_arguments", "denied", "expired", "cancelled", "timed_out", "failed",
    "interrupted", "limit",
]  # fmt: skip
STATUSES: tuple[str, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who the conversation acts for. Filters are asked with it at search, at load and at the call.

    `roles` may be one text. Raises `SetupError` for what is no text: ids of another type are written as text first.
    """

    user: str | None = None
    roles: frozenset[str] = frozenset()
    tenant: str | None = None

    def __init__(self, user: str | None = None, roles: Iterable[str] = (), tenant: str | None = None) -> None:
        checks.text("user", user, none="for nobody in particular")
        checks.text("tenant", tenant, none="for no tenant")
        object.__setattr__(self, "user", user)
        object.__setattr__(
            self, "roles", frozenset([roles] if isinstance(roles, str) else checks.names("roles", roles))
        )
        object.__setattr__(self, "tenant", tenant)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the model wrote it: `arguments` is its JSON text, or already an object."""

    id: str
    name: str
    arguments: str | Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one answer to one call. `content` is what the model reads; `data` is for the program.

    Of a tool that raised, `data` is what it raised.
    """

    call_id: str
    name: str
    status: Status
    content: str
    data: Any = field(default=None, compare=False)

    @property
    def ok(self) -> bool:
        return self.status == "ok"


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Given to a tool function that has a parameter annotated `ToolContext`; never part of its schema.

    `idempotency_key` is the same for every attempt of one call, and another for a call with other arguments, even if
    the model uses an id again. A long tool should look at `cancelled` now and then.
    """

    conversation_id: str
    call_id: str
    caller: Caller | None = None
    digest: str = ""  # of what is called with what
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False)

    @property
    def idempotency_key(self) -> str:
        return ":".join(filter(None, (self.conversation_id, self.call_id, self.digest)))


def check_caller(caller: object) -> None:
    """Raises `SetupError` for what is no caller."""
    checks.instance("caller", caller, Caller, "a Caller, as in Caller(user='ana')", none="for nobody in particular")
