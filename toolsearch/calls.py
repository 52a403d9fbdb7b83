"""A call a model makes, the answer it gets, and what a running tool may know about both."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

_SURROGATES = re.compile("[\ud800-\udfff]")

__all__ = ["Caller", "Status", "ToolCall", "ToolContext", "ToolResult", "clean", "text_of"]

Status = Literal[
    "ok", "unknown", "not_loaded", "invalid_arguments", "denied", "expired", "cancelled", "timed_out", "failed",
    "interrupted", "limit",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Caller:
    """Who the conversation acts for. Filters are asked with it at search, at load and at the call."""

    user: str | None = None
    roles: frozenset[str] = frozenset()
    tenant: str | None = None

    def __init__(self, user: str | None = None, roles: Iterable[str] = (), tenant: str | None = None) -> None:
        object.__setattr__(self, "user", user)
        object.__setattr__(self, "roles", frozenset([roles] if isinstance(roles, str) else roles))
        object.__setattr__(self, "tenant", tenant)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the model wrote it: `arguments` is its JSON text, or already an object."""

    id: str
    name: str
    arguments: str | Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one answer to one call. `content` is what the model reads; `data` is for the program."""

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

    `idempotency_key` is the same for every attempt of one call. A long tool should look at `cancelled` now and then.
    """

    session_id: str
    call_id: str
    caller: Caller | None = None
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False)

    @property
    def idempotency_key(self) -> str:
        return f"{self.session_id}:{self.call_id}"


def clean(text: str) -> str:
    """The text as valid UTF-8: lone surrogates, which no request body can carry, become U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def text_of(value: Any) -> str:
    """What a tool returned, as the text a model reads: text as it is, values as JSON, bytes as a placeholder."""
    if value is None:
        return "Done; the tool returned nothing."
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<binary data, {len(bytes(value)):,} bytes>"
    return clean(json.dumps(value, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    """What `json` does not know: pydantic models, dataclasses and sets become plain; anything else its text."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<binary data, {len(bytes(value)):,} bytes>"
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return str(value)
