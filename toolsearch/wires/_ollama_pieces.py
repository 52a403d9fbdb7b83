"""A streamed reply of Ollama, put together as if it had come at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolsearch.events.facts import TextDelta
from toolsearch.events.stops import BROKEN_OFF
from toolsearch.wires._reading import mapping, reply_error
from toolsearch.wires.shared import fields_of

__all__ = ["OllamaPieces"]

_HEAD = ("model", "created_at", "done", "done_reason", "prompt_eval_count", "eval_count")


class OllamaPieces:
    """Takes in the chunks of one reply: texts come in pieces, calls whole."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        self._calls: list[Any] = []
        self._has_begun = False

    def take(self, chunk: object) -> list[TextDelta]:
        """Takes in a chunk; returns the deltas to show for it."""
        plain = fields_of(chunk)
        if plain.get("error"):
            raise reply_error(plain["error"], "")
        self._head |= {key: plain[key] for key in _HEAD if plain.get(key) is not None}
        self._has_begun |= isinstance(plain.get("message"), Mapping)
        message = mapping(plain.get("message"))
        calls = message.get("tool_calls")
        self._calls += calls if isinstance(calls, list | tuple) else []
        shown: list[TextDelta] = []
        for key in ("thinking", "content"):
            if isinstance(piece := message.get(key), str) and piece:
                self._texts.setdefault(key, []).append(piece)
                shown.append(TextDelta(piece, "reasoning" if key == "thinking" else "text"))
        return shown

    def whole(self) -> dict[str, Any]:
        """The reply, as if it had come at once. One that did not come to its end has the reason `BROKEN_OFF`."""
        if not self._has_begun:
            return self._head
        texts = {key: "".join(pieces) for key, pieces in self._texts.items()}
        head = self._head if self._head.get("done") else {**self._head, "done_reason": BROKEN_OFF}
        return {**head, "message": {"role": "assistant", "content": "", **texts, "tool_calls": self._calls}}
