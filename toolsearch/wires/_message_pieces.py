"""A streamed message of Anthropic, put together as if it had come at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from toolsearch.events.facts import TextDelta
from toolsearch.events.stops import BROKEN_OFF
from toolsearch.support.json_types import JsonObject
from toolsearch.wires._fragments import Fragments
from toolsearch.wires._reading import mapping, reply_error
from toolsearch.wires.shared import fields_of

__all__ = ["MessagePieces"]

_KINDS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


@dataclass(slots=True)
class _Block:
    """A block as far as it has come: how it began, the pieces of its texts, and those of its input."""

    begun: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    written: Fragments = field(default_factory=Fragments)
    citations: list[Any] = field(default_factory=list)

    def whole(self) -> dict[str, Any]:
        block = {**self.begun, **{key: _begun(self.begun, key) + "".join(p) for key, p in self.texts.items()}}
        if str(block.get("type")).endswith("tool_use") and (self.written or not block.get("input")):
            block["input"] = _read_input(self.written.text())
        if self.citations:
            block["citations"] = [*(block.get("citations") or []), *self.citations]
        return block


class MessagePieces:
    """Takes in the events of one reply."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._blocks: dict[int, _Block] = {}
        self._has_begun = False

    def take(self, event: object) -> list[TextDelta]:
        """Takes in an event; returns the deltas to show for it."""
        plain = fields_of(event)
        kind, index = plain.get("type"), plain.get("index")
        at = index if isinstance(index, int) else 0
        self._has_begun |= kind in ("message_start", "content_block_start", "content_block_delta")
        match kind:
            case "message_start":
                self._head = dict(mapping(plain.get("message")))
            case "content_block_start":
                self._blocks[at] = _Block(dict(mapping(plain.get("content_block"))))
            case "content_block_delta":
                return self._add(self._blocks.setdefault(at, _Block()), mapping(plain.get("delta")))
            case "message_delta":
                self._head |= {k: v for k, v in mapping(plain.get("delta")).items() if v is not None}
                self._head["usage"] = {**mapping(self._head.get("usage")), **mapping(plain.get("usage"))}
            case "error":
                raise reply_error(plain.get("error"), "the provider ended its reply with an error, and names none")
            case _:  # the end of a block or of the message, a ping
                pass
        return []

    def _add(self, block: _Block, delta: JsonObject) -> list[TextDelta]:
        if (kind := delta.get("type")) == "input_json_delta":
            piece = delta.get("partial_json")
            block.written.add(piece if isinstance(piece, str) else "")
        elif kind == "citations_delta":
            block.citations.append(delta.get("citation"))
        elif kind == "compaction_delta":  # comes whole
            block.begun |= {k: v for k, v in delta.items() if k != "type" and v is not None}
        elif (key := _KINDS.get(str(kind))) is not None and (piece := str(delta.get(key) or "")):
            block.texts.setdefault(key, []).append(piece)
            if key != "signature":
                return [TextDelta(piece, "text" if key == "text" else "reasoning")]
        return []

    def whole(self) -> dict[str, Any]:
        """The reply, as if it had come at once. One that did not come to its end has the reason `BROKEN_OFF`."""
        if not self._has_begun:
            return self._head
        stop = self._head.get("stop_reason") or BROKEN_OFF
        blocks = [block.whole() for _, block in sorted(self._blocks.items())]
        content = _ended(blocks) if stop in (BROKEN_OFF, "max_tokens") else blocks
        return {**self._head, "stop_reason": stop, "content": content}


def _ended(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks of a reply that was cut, without those that the provider would not take back.

    They are a thought whose signature had not come, and a call of a tool of the provider whose result had not.
    """
    answered = {block.get("tool_use_id") for block in blocks}
    return [block for block in blocks if not _is_open(block, answered)]


def _is_open(block: JsonObject, answered: AbstractSet[object]) -> bool:
    if block.get("type") == "thinking":
        return not block.get("signature")
    return block.get("type") in ("server_tool_use", "mcp_tool_use") and block.get("id") not in answered


def _begun(block: Mapping[str, Any], key: str) -> str:
    return str(block.get(key) or "")


def _read_input(written: str) -> object:
    """The input of a call as JSON; text that is not JSON stays as it is."""
    try:
        return json.loads(written) if written.strip() else {}
    except (ValueError, RecursionError):
        return written
