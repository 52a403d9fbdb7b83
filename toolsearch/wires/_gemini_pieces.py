"""A streamed reply of Gemini, put together as if it had come at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolsearch.events.facts import TextDelta
from toolsearch.events.stops import BROKEN_OFF
from toolsearch.support.json_types import JsonObject
from toolsearch.wires._gemini_parts import in_snake_case, plain_reply
from toolsearch.wires._reading import mapping, reply_error

__all__ = ["GeminiPieces"]

_HEAD = ("response_id", "model_version", "usage_metadata", "prompt_feedback", "create_time")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(?:'([^']*)'|\"([^\"]*)\"|(\d{1,9}))\]")  # of a path, as in $.people[0]['name']
_VALUES = ("string_value", "number_value", "bool_value")


class GeminiPieces:
    """Takes in the chunks of one reply: texts in pieces, calls whole, or where that was asked for in pieces too."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._parts: list[_Text | _Call] = []
        self._end: dict[str, Any] | None = None  # of the candidate; None until there is one

    def take(self, chunk: object) -> list[TextDelta]:
        """Takes in a chunk; returns the deltas to show for it."""
        plain = plain_reply(chunk)
        self._head |= {key: plain[key] for key in _HEAD if plain.get(key)}
        candidates = plain.get("candidates")
        if plain.get("error") and not candidates:
            raise reply_error(plain["error"], "")
        for each in candidates if isinstance(candidates, list) else []:
            candidate = in_snake_case(each)
            if candidate and not candidate.get("index"):  # a second one has an index that is not 0
                return self._take_candidate(candidate)
        return []

    def _take_candidate(self, candidate: JsonObject) -> list[TextDelta]:
        end = self._end = self._end or {}
        end |= {key: candidate[key] for key in ("finish_reason", "finish_message") if candidate.get(key)}
        parts = mapping(candidate.get("content")).get("parts")
        shown: list[TextDelta] = []
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, Mapping):
                shown += self._take_part(in_snake_case(part))
        return shown

    def _take_part(self, part: dict[str, Any]) -> list[TextDelta]:
        last = self._parts[-1] if self._parts else None
        if isinstance(text := part.get("text"), str):
            if isinstance(last, _Text) and last.is_continued_by(part):
                last.pieces.append(text)
            else:
                self._parts.append(_Text(part, [text]))
            return [TextDelta(text, "reasoning" if part.get("thought") else "text")] if text else []
        call = in_snake_case(part.get("function_call"))
        if isinstance(last, _Call) and "function_call" in part and not call.get("name"):
            last.part |= {key: value for key, value in part.items() if key != "function_call"}
        else:
            last = _Call(part)
            self._parts.append(last)
        last.take(call)
        return []

    def whole(self) -> dict[str, Any]:
        """The reply, as if it had come at once. One that did not come to its end has the reason `BROKEN_OFF`."""
        if self._end is None:
            return self._head
        content = {"role": "model", "parts": [part.whole() for part in self._parts]}
        return {**self._head, "candidates": [{"finish_reason": BROKEN_OFF, **self._end, "content": content}]}


@dataclass(slots=True)
class _Text:
    """A text as far as it has come. One with a signature must go back as it came, and is joined with no other."""

    part: dict[str, Any]
    pieces: list[str]

    def is_continued_by(self, part: JsonObject) -> bool:
        plain = self.part.keys() | part.keys() <= {"text", "thought"}
        return plain and bool(self.part.get("thought")) == bool(part.get("thought"))

    def whole(self) -> dict[str, Any]:
        return {**self.part, "text": "".join(self.pieces)}


class _Call:
    """A call, or another part that comes whole. The arguments of a call may come in pieces, where that was asked for:
    each names a path in them, and what stands there, or more of its text.
    """

    def __init__(self, part: JsonObject) -> None:
        self.part = dict(part)
        self._values: list[tuple[list[str | int], list[object]]] = []  # a path, and the pieces of what stands there
        self._grows = ""  # the path whose text goes on

    def take(self, call: JsonObject) -> None:
        pieces = call.get("partial_args")
        for each in pieces if isinstance(pieces, list) else []:
            piece = in_snake_case(each)
            path = piece.get("json_path")
            if not isinstance(path, str) or not (steps := _steps(path)):
                continue
            value = next((piece[key] for key in _VALUES if key in piece), None)
            if path == self._grows:
                self._values[-1][1].append(value)
            else:
                self._values.append((steps, [value]))
            self._grows = path if piece.get("will_continue") else ""

    def whole(self) -> dict[str, Any]:
        if "function_call" not in self.part:
            return self.part
        call = in_snake_case(self.part.get("function_call"))
        arguments = dict(mapping(call.get("args")))
        for steps, values in self._values:
            texts = [value for value in values if isinstance(value, str)]
            _place(arguments, steps, "".join(texts) if texts else values[-1])
        rest = {key: value for key, value in call.items() if key not in ("partial_args", "will_continue")}
        return {**self.part, "function_call": {**rest, "args": arguments}}


def _steps(path: str) -> list[str | int]:
    return [int(number) if number else name or one or two for name, one, two, number in _STEP.findall(path)]


def _place(arguments: dict[str, Any], steps: list[str | int], value: object) -> None:
    """Puts a value where a path leads, and what is missing on the way; a path that leads nowhere is passed over."""
    inside: Any = arguments
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        missing = value if after is None else [] if isinstance(after, int) else {}
        if isinstance(inside, dict):
            if after is None:
                inside[step] = value
            inside = inside.setdefault(step, missing)
        elif isinstance(inside, list) and isinstance(step, int) and step <= len(inside):
            if step == len(inside):
                inside.append(missing)
            elif after is None:
                inside[step] = value
            inside = inside[step]
        else:
            return
