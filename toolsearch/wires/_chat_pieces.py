"""A streamed chat completion, put together as if it had come at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolsearch.events.facts import TextDelta
from toolsearch.events.stops import BROKEN_OFF
from toolsearch.support.json_types import JsonObject
from toolsearch.wires._chat_extras import Extras, extras_of_call, extras_of_message, text_of_parts, thinking_in
from toolsearch.wires._fragments import Fragments
from toolsearch.wires._reading import mapping, reply_error
from toolsearch.wires.shared import fields_of

__all__ = ["ChatPieces"]

_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


@dataclass(slots=True)
class _Call:
    """A call as far as it has come. `index` is the one it came under, `is_placed` whether the server wrote it."""

    index: int
    is_placed: bool
    id: str = ""
    name: str = ""
    arguments: Fragments = field(default_factory=Fragments)
    extras: Extras = field(default_factory=Extras)

    def whole(self) -> dict[str, Any]:
        return {
            **self.extras.whole(),
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": self.arguments.text()},
        }


class ChatPieces:
    """Takes in the chunks of one reply. The time it takes grows with their length and number only."""

    def __init__(self, keep: Sequence[str] = ()) -> None:
        self._keep = keep  # members of a message besides those that are always taken in
        self._head: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        self._extras = Extras()
        self._is_listed = False  # whether the content is a list of parts
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._latest: dict[int, _Call] = {}  # by index
        self._end: dict[str, Any] | None = None  # of the choice; None until there is one

    def take(self, chunk: object) -> list[TextDelta]:
        """Takes in a chunk; returns the deltas to show for it."""
        plain = fields_of(chunk)
        self._head |= {key: plain[key] for key in ("id", "model", "usage") if plain.get(key)}
        choices = plain.get("choices")
        if plain.get("error") and not choices:
            raise reply_error(plain["error"], "")
        shown: list[TextDelta] = []
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, Mapping):
                shown += self._take_choice(choice)
        return shown

    def _take_choice(self, choice: JsonObject) -> list[TextDelta]:
        end = self._end = self._end or {}
        end |= {key: choice[key] for key in ("finish_reason", "error") if choice.get(key)}
        delta = mapping(choice.get("delta"))
        if not delta and not self._texts and not self._calls:
            delta = mapping(choice.get("message"))  # some gateways send the whole reply as one chunk
        shown: list[TextDelta] = []
        content = delta.get("content")
        if isinstance(content, list) or (self._is_listed and isinstance(content, str)):
            shown += self._take_parts(content)
            delta = {key: value for key, value in delta.items() if key != "content"}
        for key in (*_TEXTS, *(name for name in self._keep if name not in _TEXTS)):
            if isinstance(piece := delta.get(key), str) and piece:
                self._texts.setdefault(key, []).append(piece)
                if key in _TEXTS:
                    shown.append(TextDelta(piece, "reasoning" if key.startswith("reasoning") else "text"))
        kept = extras_of_message(delta, self._keep)
        self._extras.take({key: value for key, value in kept.items() if not isinstance(value, str)})
        calls = delta.get("tool_calls")
        for place, call in enumerate(calls if isinstance(calls, list) else []):
            if isinstance(call, Mapping):
                self._take_call(call, place)
        return shown

    def _take_parts(self, content: str | list[Any]) -> list[TextDelta]:
        """Takes in content that is a list of parts, or a text that follows one."""
        given = [{"type": "text", "text": content}] if isinstance(content, str) and content else content
        parts = [part for part in given if isinstance(part, Mapping)]
        if not parts:
            return []
        before = [] if self._is_listed else self._texts.pop("content", [])
        self._is_listed = True
        self._extras.take({"content": [*({"type": "text", "text": text} for text in before), *parts]})
        deltas = [TextDelta(thinking_in([part]), "reasoning") for part in parts]
        deltas += [TextDelta(text_of_parts([part])) for part in parts]
        return [delta for delta in deltas if delta.text]

    def _take_call(self, piece: JsonObject, place: int) -> None:
        function, index = mapping(piece.get("function")), piece.get("index")
        call_id, name = str(piece.get("id") or ""), str(function.get("name") or "")
        is_placed = isinstance(index, int)
        at = index if isinstance(index, int) else place
        call = self._by_id.get(call_id) or self._continued(at, call_id, name)
        if call is None:
            call = self._latest[at] = _Call(at, is_placed)
            self._calls.append(call)
        if call_id and not call.id:
            call.id = call_id
            self._by_id[call_id] = call
        # Some servers send the name with every piece, or as much of it as there is.
        call.name = name if name.startswith(call.name) else call.name + name if name else call.name
        call.arguments.add(_text(function.get("arguments")))
        call.extras.take(extras_of_call(piece))

    def _continued(self, index: int, call_id: str, name: str) -> _Call | None:
        """The call that a piece continues, or None. Some servers give several calls the same index, or no index."""
        call = self._latest.get(index)
        if call is None or not name or not call.name:
            return call
        if call_id and call.id:
            return None
        begun = bool(call.arguments)
        return None if begun and (name != call.name or call.arguments.is_closed()) else call

    def whole(self) -> dict[str, Any]:
        """The reply, as if it had come at once. One that did not come to its end has the reason `BROKEN_OFF`."""
        if self._end is None:
            return {**self._head, "choices": []}
        message: dict[str, Any] = {"role": "assistant", **self._extras.whole()}
        message |= {key: "".join(pieces) for key, pieces in self._texts.items()}
        if calls := self._whole_calls():
            message["tool_calls"] = calls
        return {**self._head, "choices": [{"message": message, "finish_reason": BROKEN_OFF, **self._end}]}

    def _whole_calls(self) -> list[dict[str, Any]]:
        """The calls in order. A call without an id that came again, whole, under its own index, is one call."""
        calls: list[dict[str, Any]] = []
        before: _Call | None = None
        for call in sorted(self._calls, key=lambda each: each.index):
            whole = call.whole()
            again = before is not None and before.index == call.index and before.is_placed and not before.id
            if not (again and not call.id and calls[-1] == whole):
                calls.append(whole)
            before = call
        return calls


def _text(arguments: object) -> str:
    """A piece of arguments; some servers send an object."""
    if isinstance(arguments, str):
        return arguments
    try:
        return json.dumps(arguments) if arguments else ""
    except (TypeError, ValueError, RecursionError):
        return str(arguments)
