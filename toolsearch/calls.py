"""A call a model makes, the answer it gets, and what a running tool may know about both."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import threading
from collections import deque
from collections.abc import ItemsView, Iterable, KeysView, Mapping, ValuesView
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, get_args

from toolsearch import options
from toolsearch.options import wrong

_SURROGATES = re.compile("[\ud800-\udfff]")
LONG_BITS = 2_000  # fewer than the least limit that Python can be given for writing a whole number

__all__ = [
    "Caller",
    "Status",
    "ToolCall",
    "ToolContext",
    "ToolResult",
    "answered_calls",
    "check_caller",
    "clean",
    "clean_json",
    "distinct_ids",
    "fields_of",
    "legal_name",
    "plain_json",
    "text_of",
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
        options.text("user", user, none="for nobody in particular")
        options.text("tenant", tenant, none="for no tenant")
        object.__setattr__(self, "user", user)
        object.__setattr__(
            self, "roles", frozenset([roles] if isinstance(roles, str) else options.names("roles", roles))
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

    session_id: str
    call_id: str
    caller: Caller | None = None
    digest: str = ""  # of what is called with what
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False)

    @property
    def idempotency_key(self) -> str:
        return ":".join(filter(None, (self.session_id, self.call_id, self.digest)))


def check_caller(caller: object) -> None:
    """Raises `SetupError` for what is no caller."""
    options.instance("caller", caller, Caller, "a Caller, as in Caller(user='ana')", none="for nobody in particular")


def answered_calls(answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[tuple[ToolCall, ToolResult]]:
    """Calls, each with its result; raises `SetupError` for anything else, such as a result nobody waited for."""
    wanted = "pairs of a ToolCall and its ToolResult, as in [(call, session.handle(call))]"
    if not isinstance(answered, Iterable):
        raise options.wrong("answered", wanted, answered)
    pairs = list(answered)
    for pair in pairs:
        match pair:
            case (ToolCall(), ToolResult()):
                pass
            case _:
                raise options.wrong("answered", wanted, pair)
    return pairs


def clean(text: str) -> str:
    """The text as valid UTF-8: lone surrogates, which no request body can carry, become U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def clean_json(value: Any) -> Any:
    """A copy of a JSON value with every text in it cleaned; numbers that JSON does not know become text."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): clean_json(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > LONG_BITS:
        return _long(value)
    return [clean_json(item) for item in value] if isinstance(value, list | tuple) else value


def _long(number: int) -> int | str:
    """A whole number, or what stands for one that Python writes down no more."""
    try:
        str(number)
    except ValueError:
        return f"<a whole number of {number.bit_length():,} bits>"
    return number


def plain_json(value: Any) -> Any:
    """A copy as plain JSON, as `clean_json`; what JSON does not know (models, enums, sets, bytes) as in `text_of`."""
    if value is None or isinstance(value, str | int | float):
        return clean_json(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return plain_json(_plain(value))


def legal_name(name: Any) -> str:
    """A name a model made up, as a provider accepts it in a history: it refuses a request that holds any other."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", str(name or ""))[:64] or "unnamed"


def fields_of(reply: Any) -> Mapping[str, Any]:
    """A reply, or a piece of one, of a provider's SDK as a dict, which it may be already; else raises `SetupError`."""
    if isinstance(reply, Mapping):
        return reply
    dump = getattr(reply, "model_dump", None)
    if dump is None:
        more = ": await it first" if hasattr(reply, "__await__") else ""
        raise wrong("a reply", "what the provider's SDK gave, whole, or its dict", reply, more=more)
    fields: Mapping[str, Any] = dump(exclude_none=True, warnings=False)
    return fields


def distinct_ids(ids: Iterable[Any], prefix: str, reply: Any) -> list[str]:
    """The ids of a reply's calls as text; a missing or repeated one is made up from the reply and its place.

    The same reply always gives the same ids, and another reply others.
    """
    made: list[str] = []
    digest = ""
    for place, told in enumerate(ids):
        call_id = plain = clean(str(told or ""))
        while not call_id or call_id in made:
            digest = digest or hashlib.sha256(repr(reply).encode("utf-8", "replace")).hexdigest()
            call_id = f"{plain[:24] or prefix}_{digest[:8]}_{place}"
            digest = digest[1:]
        made.append(call_id)
    return made


def text_of(value: Any) -> str:
    """What a tool returned, as the text a model reads: text as it is, values as JSON, bytes as a placeholder."""
    if value is None:
        return "Done; the tool returned nothing."
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<binary data, {len(bytes(value)):,} bytes>"
    try:
        return clean(json.dumps(value, ensure_ascii=False, default=_plain))
    except (TypeError, ValueError, RecursionError):  # keys that are no text, a circle: the tool did run, so its text
        return clean(str(value))


def _plain(value: Any) -> Any:
    """What `json` does not know: models, dataclasses, enums and sets become plain; anything else its text."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, deque | KeysView | ValuesView | ItemsView):
        return list(value)
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<binary data, {len(bytes(value)):,} bytes>"
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return str(value)
