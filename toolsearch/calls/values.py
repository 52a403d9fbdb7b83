"""A call that a model makes, its answer, and what a running tool may know about them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from toolsearch.calls.loaded_tools import LoadedTool
from toolsearch.calls.parts import Part
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject

__all__ = [
    "STATUSES",
    "Caller",
    "Status",
    "ToolCall",
    "ToolContext",
    "ToolResult",
    "actor_of",
    "check_caller",
]

Status = Literal[
    "ok", "unknown", "not_loaded", "invalid_arguments", "denied", "expired", "cancelled", "timed_out", "failed",
    "interrupted", "limit",
]  # fmt: skip
STATUSES: tuple[str, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Caller:
    """The user a conversation acts for. Filters see it at search, at load and at the call.

    `roles` may be a single str. Raises `SetupError` for anything but str: convert ids of other types first.
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
    """One call as the model wrote it: `arguments` is its JSON text, or already an object.

    `cut` is empty for a whole call. Otherwise the reply ended in the middle of the call, and `cut` says why, for
    example "cut off" at the token limit; such a call is answered, and never runs.
    """

    id: str
    name: str
    arguments: str | JsonObject | None = None
    cut: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one answer to one call. `content` is what the model reads; `data` is for the program.

    `data` is what the tool returned, or the exception that it raised. `parts` are the text, images, sound, resources
    and JSON of a result that has parts; then `content` is their text, with a placeholder for what is not text. `found`
    has the tools that this answer made callable from the next request on: the id of each, and the name to call it by. A
    tool that returns a `ToolResult` has the tools loaded whose ids are in its `found`.
    In the mode "native" `loaded` has those of their definitions that a wire puts where the answer stands.
    """

    call_id: str
    name: str
    status: Status
    content: str
    data: Any = field(default=None, compare=False)
    parts: tuple[Part, ...] = ()
    found: Mapping[str, str] = field(default_factory=dict, hash=False)
    loaded: tuple[LoadedTool, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def _repr_html_(self) -> str:
        from toolsearch.support.html import block, table, text_block

        found = table("Found", ("tool", "name to call it by"), self.found.items()) if self.found else ""
        return block(f"{self.name}: {self.status}", text_block(self.content), found)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Passed to a tool function that has a parameter annotated `ToolContext`; never part of its schema.

    `idempotency_key` is the same for every attempt of one call, and differs for a call with other arguments, even if
    the model uses an id again. A tool that takes long should check `cancelled` now and then.
    """

    conversation_id: str
    call_id: str
    caller: Caller | None = None
    digest: str = ""  # of the tool and the arguments
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False)

    @property
    def idempotency_key(self) -> str:
        return ":".join(filter(None, (self.conversation_id, self.call_id, self.digest)))


def actor_of(caller: Caller | None) -> str:
    """The user who is billed, and whose decisions are recorded; empty if that is nobody in particular."""
    return (caller.user if caller else None) or ""


def check_caller(caller: object) -> None:
    """Raises `SetupError` unless it is a `Caller` or None."""
    checks.instance("caller", caller, Caller, "a Caller, as in Caller(user='ana')", none="for nobody in particular")
