"""What a script may say, and what the formats have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from toolsearch.calls import ToolCall
from toolsearch.support.json_types import JsonObject

__all__ = ["NO_HEADERS", "Failure", "ScriptedCall", "Step", "Written", "as_object", "as_text", "cut", "written"]

NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True)
class Failure:
    """A step that is an error of the provider: its status, its message, and headers such as `{"retry-after": "1"}`."""

    status: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Written:
    """What the model writes in one reply: a text, calls, or a text and then calls."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


Arguments: TypeAlias = str | JsonObject | None
ScriptedCall: TypeAlias = ToolCall | tuple[str, Arguments] | tuple[str, str, Arguments]
Plain: TypeAlias = str | Sequence[str | ScriptedCall] | JsonObject | Failure
Step: TypeAlias = Plain | Callable[[JsonObject], Plain]


def written(step: str | Sequence[str | ScriptedCall], number: int) -> Written:
    """A step of a script as what the model writes. A call without an id gets one with the number of the request."""
    if isinstance(step, str):
        return Written(step)
    texts: list[str] = []
    calls: list[ToolCall] = []
    for each in step:
        if isinstance(each, str):
            texts.append(each)
        elif isinstance(each, ToolCall):
            calls.append(each)
        else:
            call_id, name, arguments = each if len(each) == 3 else (f"call_{number}_{len(calls)}", *each)
            calls.append(ToolCall(call_id, name, arguments))
    return Written("".join(texts), tuple(calls))


def as_text(arguments: Arguments) -> str:
    """The arguments of a call as text; a text as it is, so that a script can break it."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)


def as_object(arguments: Arguments) -> dict[str, Any]:
    """The arguments of a call as an object; what is none is passed under the name `unparsed`."""
    if not isinstance(arguments, str):
        return dict(arguments or {})
    try:
        value = json.loads(arguments)
    except ValueError:
        return {"unparsed": arguments}
    return value if isinstance(value, dict) else {"unparsed": arguments}


def cut(text: str, size: int) -> Iterator[str]:
    """A text in pieces of at most so many characters."""
    for start in range(0, len(text), size):
        yield text[start : start + size]
