"""A streamed reply of OpenAI Responses, put together as if it had come at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolsearch.events.facts import TextDelta
from toolsearch.events.stops import BROKEN_OFF
from toolsearch.support.json_types import JsonObject
from toolsearch.wires._fragments import Fragments
from toolsearch.wires._reading import mapping, reply_error
from toolsearch.wires.shared import fields_of

__all__ = ["ResponsePieces"]

# The texts that come in pieces: the type of the part they belong to, its key, and what a piece of it is shown as.
_TEXTS = {
    "response.output_text.delta": ("output_text", "text", "text"),
    "response.refusal.delta": ("refusal", "refusal", "text"),
    "response.reasoning_summary_text.delta": ("", "", "reasoning"),
    "response.reasoning_text.delta": ("", "", "reasoning"),
}
_BEGIN = ("response.created", "response.queued", "response.in_progress")
_END = ("response.completed", "response.incomplete", "response.cancelled", "response.done")


@dataclass(slots=True)
class _Item:
    """An item as far as it has come: how it began, the pieces of its texts by their place, and those of arguments."""

    begun: JsonObject = field(default_factory=dict)
    texts: dict[int, tuple[str, str, list[str]]] = field(default_factory=dict)
    written: Fragments = field(default_factory=Fragments)
    done: JsonObject | None = None

    def whole(self) -> JsonObject | None:
        """The item; of one that did not come to its end, what the provider takes back, and None if it takes nothing."""
        if self.done is not None:
            return self.done
        if self.begun.get("type") == "function_call":
            return {**self.begun, "arguments": self.written.text() or self.begun.get("arguments"), **_CUT}
        if self.texts:
            parts = [{"type": kind, key: "".join(pieces)} for _, (kind, key, pieces) in sorted(self.texts.items())]
            return {"type": "message", "role": "assistant", **self.begun, "content": parts, **_CUT}
        return None  # a thought without its signature, a tool of the provider that has not ended


_CUT = {"status": "incomplete"}


class ResponsePieces:
    """Takes in the events of one reply."""

    def __init__(self) -> None:
        self._head: JsonObject = {}
        self._end: JsonObject | None = None
        self._items: dict[int, _Item] = {}

    def take(self, event: object) -> list[TextDelta]:
        """Takes in an event; returns the deltas to show for it."""
        plain = fields_of(event)
        kind, response = str(plain.get("type") or ""), mapping(plain.get("response"))
        if kind in _BEGIN:
            self._head = response
        elif kind in _END:
            self._end = response
        elif kind in ("response.failed", "error"):
            told = plain.get("error") or response.get("error") or {k: plain.get(k) for k in ("code", "message")}
            raise reply_error(told, "the provider ended its reply with an error, and names none")
        elif kind == "response.output_item.added":
            self._item(plain, is_new=True).begun = mapping(plain.get("item"))
        elif kind == "response.output_item.done":
            self._item(plain).done = mapping(plain.get("item"))
        elif kind.startswith("response.function_call_arguments."):
            self._write(plain)
        elif kind in _TEXTS:
            return self._add(plain, *_TEXTS[kind])
        return []

    def _item(self, event: JsonObject, *, is_new: bool = False) -> _Item:
        """The item that an event is about; if it does not say, the last one, or one behind that for a new item."""
        at = event.get("output_index")
        last = max(self._items, default=-1 if is_new else 0)
        return self._items.setdefault(at if isinstance(at, int) else last + is_new, _Item())

    def _write(self, event: JsonObject) -> None:
        item, whole = self._item(event), event.get("arguments")
        if isinstance(whole, str):
            item.written = Fragments()
        piece = whole if isinstance(whole, str) else event.get("delta")
        item.written.add(piece if isinstance(piece, str) else "")

    def _add(self, event: JsonObject, kind: str, key: str, shown: str) -> list[TextDelta]:
        piece, place = event.get("delta"), event.get("content_index")
        if not isinstance(piece, str) or not piece:
            return []
        if kind:
            texts = self._item(event).texts
            texts.setdefault(place if isinstance(place, int) else 0, (kind, key, []))[2].append(piece)
        return [TextDelta(piece, "text" if shown == "text" else "reasoning")]

    def whole(self) -> dict[str, Any]:
        """The reply, as if it had come at once. One that did not come to its end has the reason `BROKEN_OFF`."""
        items = [whole for _, item in sorted(self._items.items()) if (whole := item.whole()) is not None]
        if self._end is not None:  # some servers leave the items out of the last event
            return {**self._head, **self._end, "output": self._end.get("output") or items}
        if not self._head and not self._items:
            return {}
        reason = {"status": "incomplete", "incomplete_details": {"reason": BROKEN_OFF}}
        return {**self._head, **reason, "output": items}
