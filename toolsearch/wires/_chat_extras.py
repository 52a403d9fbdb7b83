"""What servers add to a chat completion and want back: signatures, and the model's reasoning in a form of their own.

A call goes back with all that came with it. Of a message, these go back: `reasoning_details`, `thinking_blocks`,
`provider_specific_fields`, `extra_content`. The reasoning as text goes back only where a program asks for it: DeepSeek
wants it, and others refuse the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import LEVELS, is_deeper

__all__ = [
    "KEPT_FOR", "Extras", "extras_of_call", "extras_of_message", "names_to_keep", "text_of_parts", "thinking_in",
    "without_kept",
]  # fmt: skip

KEPT_FOR = "kept_for"  # in the `raw` of a reply: a model, and the members that go back to this one alone

_OF_A_MESSAGE = ("reasoning_details", "thinking_blocks", "provider_specific_fields", "extra_content")
_READ = frozenset({"id", "type", "index", "function", "custom"})  # of a call; everything else is an extra
_GROWS = ("text", "thinking", "summary", "data")  # of a block; its other members come whole


def names_to_keep(keep: object) -> tuple[str, ...]:
    """The members of a message that a program wants back, besides those that always go back."""
    names = (keep,) if isinstance(keep, str) else keep
    if not isinstance(names, list | tuple | set | frozenset) or not all(isinstance(n, str) and n for n in names):
        raise checks.wrong("keep", 'names of a reply\'s members, as in ("reasoning_content",)', keep)
    return tuple(names)


def extras_of_message(message: JsonObject, keep: Iterable[str] = ()) -> dict[str, Any]:
    """The members of a message that go back as they came; empty ones say nothing."""
    return {key: message[key] for key in (*_OF_A_MESSAGE, *keep) if _says_something(message.get(key))}


def extras_of_call(call: JsonObject) -> dict[str, Any]:
    """What a server wrote beside the id and the function of a call."""
    return {key: value for key, value in call.items() if key not in _READ and _says_something(value)}


def without_kept(raw: JsonObject, model: str) -> dict[str, Any]:
    """The message of a journaled reply for this model: another one does not get what was kept for its author."""
    author, *names = raw.get(KEPT_FOR) or [model]
    gone = {KEPT_FOR} if author == model or not model else {KEPT_FOR, *names}
    return {key: value for key, value in raw.items() if key not in gone}


def thinking_in(content: object) -> str:
    """What a model thought, where a server writes it among the parts of the content, as Mistral does."""
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    thoughts = [part.get("thinking") for part in parts if part.get("type") == "thinking"]
    return "".join(map(text_of_parts, thoughts))


def text_of_parts(content: object) -> str:
    """The text of a content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    return "".join(str(part.get("text") or "") for part in parts)


def _says_something(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(item is not None for item in value.values()) and not is_deeper(value, LEVELS)
    if isinstance(value, list):
        return bool(value) and not is_deeper(value, LEVELS)
    return value is not None and value != ""


@dataclass(slots=True)
class _Block:
    """One block of a list that comes in pieces: its texts grow, and the rest is replaced."""

    rest: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    inner: Extras | None = None  # members that are lists of blocks themselves

    def take(self, piece: JsonObject) -> None:
        for key, value in piece.items():
            if key in _GROWS and isinstance(value, str):
                self.texts.setdefault(key, []).append(value)
            elif key in _GROWS and isinstance(value, list):
                self.inner = self.inner or Extras(0)
                self.inner.take({key: value})
            elif _says_something(value) or key not in self.rest:
                self.rest[key] = value

    def is_continued_by(self, piece: JsonObject) -> bool:
        """Whether a piece belongs to this block: it says so by its index, or the block has no end yet."""
        if self.rest.get("type") != piece.get("type"):
            return False
        index = piece.get("index")
        if index is not None or self.rest.get("index") is not None:
            return bool(self.rest.get("index") == index)
        has_ended = self.rest.get("signature") or self.rest.get("closed")
        return not has_ended and any(key in piece for key in ("text", "thinking", "summary"))

    def whole(self) -> dict[str, Any]:
        inner = self.inner.whole() if self.inner else {}
        return {**self.rest, **{key: "".join(pieces) for key, pieces in self.texts.items()}, **inner}


class Extras:
    """The extras of one message, or of one call, put together from the pieces of a stream."""

    def __init__(self, levels: int = 2) -> None:
        self._levels = levels  # of objects whose members may come in pieces
        self._values: dict[str, Any] = {}
        self._inner: dict[str, Extras] = {}
        self._blocks: dict[str, list[Any]] = {}

    def take(self, piece: JsonObject) -> None:
        """Takes in what `extras_of_message` or `extras_of_call` gives for a piece."""
        for key, value in piece.items():
            if isinstance(value, list):
                self._take_blocks(self._blocks.setdefault(key, []), value)
            elif isinstance(value, Mapping) and self._levels:
                self._inner.setdefault(key, Extras(self._levels - 1)).take(value)
            elif _says_something(value) or key not in self._values:
                self._values[key] = value

    def _take_blocks(self, blocks: list[Any], pieces: list[Any]) -> None:
        for piece in pieces:
            if not isinstance(piece, Mapping):
                blocks.append(piece)
                continue
            # Blocks come one after another: a piece continues the last one, or by its index one of the latest.
            latest = reversed(blocks[-8:] if piece.get("index") is not None else blocks[-1:])
            earlier = (block for block in latest if isinstance(block, _Block) and block.is_continued_by(piece))
            if (block := next(earlier, None)) is None:
                blocks.append(block := _Block())
            block.take(piece)

    def whole(self) -> dict[str, Any]:
        """The members as if they had come at once."""
        made = dict(self._values)
        made |= {key: inner.whole() for key, inner in self._inner.items()}
        for key, blocks in self._blocks.items():
            made[key] = [block.whole() if isinstance(block, _Block) else block for block in blocks]
        return made
