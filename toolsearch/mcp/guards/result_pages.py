"""Results that are too long for a model: kept whole for a while, and handed out page by page.

A page is a result like any other: whole parts of the original in their order, texts cut at the ends of lines, and a
note that says how to get the next page. Nothing is lost in silence: all pages together hold the whole result, and what
cannot be kept is named.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from toolsearch.support import checks
from toolsearch.support.base64_data import size_of
from toolsearch.support.text import clean, counted, text_of

__all__ = ["FETCH_RESULT", "ResultPages", "estimated_tokens"]

JsonResult: TypeAlias = dict[str, Any]

BYTES_A_TOKEN = 3  # of UTF-8; English prose has some 4.5, JSON and other scripts about 3
MEDIA_TOKENS = 1_000  # of an image or a sound, which no model reads as text
MEDIA_CHARACTERS = 8_000_000  # of the Base64 of one image that a page holds beside other parts
BLOCK_TOKENS = 10  # of what stands around a part
NOTE_TOKENS = 200  # that a page leaves free for its note
LEAST_TOKENS = 500
FRAME_CHARACTERS = 2_000  # of the JSON around a text; a block with more is not cut
NAMED = 5  # parts of later pages that a note names

# The tool that hands out the pages, as `tools/list` has it.
FETCH_RESULT: Mapping[str, Any] = {
    "name": "fetch_result",
    "description": "Reads another page of a result that was too long to be shown whole. The note at the end of such a "
    "result says its key.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "key": {"type": "string", "description": "The key from the note."},
            "page": {"type": "integer", "minimum": 1, "description": "The page; the result itself was page 1."},
        },
        "required": ["key"],
    },
    "annotations": {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False, "openWorldHint": False},
}


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has for a model, by its length in UTF-8: too many rather than too few."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size // BYTES_A_TOKEN)


@dataclass(frozen=True)
class _Item:
    """A part of a result: a text, which may be cut, or something whole. `frame` is the block without its text."""

    frame: Mapping[str, Any]
    text: bytes | None = None
    inside: bool = False  # the text stands in the `resource` of the block

    def block(self, start: int = 0, end: int | None = None) -> JsonResult:
        """The block, with this part of its text."""
        if self.text is None:
            return dict(self.frame)
        text = self.text[start:end].decode()
        if self.inside:
            return {**self.frame, "resource": {**self.frame["resource"], "text": text}}
        return {**self.frame, "text": text}

    @cached_property
    def tokens(self) -> int:
        if self.text is not None:
            return -(-len(self.text) // BYTES_A_TOKEN) + BLOCK_TOKENS
        return MEDIA_TOKENS if self.is_media else estimated_tokens(_dumped(self.frame)) + BLOCK_TOKENS

    @property
    def is_media(self) -> bool:
        inner = self.frame.get("resource")
        kind = str(inner.get("mimeType")) if isinstance(inner, Mapping) and self.text is None else ""
        return self.frame.get("type") in ("image", "audio") or kind.startswith(("image/", "audio/"))

    @cached_property
    def weight(self) -> int:
        """Bytes, about."""
        return len(self.text) if self.text is not None else len(_dumped(self.frame))

    @property
    def name(self) -> str:
        """What a note calls a part that is not text."""
        inner = self.frame.get("resource")
        about = inner if isinstance(inner, Mapping) else self.frame
        kind = str(about.get("mimeType") or self.frame.get("type") or "part")[:80]
        data = about.get("data", about.get("blob"))
        size = f", {size_of(data):,} bytes" if isinstance(data, str) else ""
        return f"{clean(kind)}{size}"


_Piece: TypeAlias = tuple[_Item, int, int]  # an item, and from where to where its text goes


@dataclass(frozen=True)
class _Kept:
    """A result in pages."""

    pages: tuple[tuple[_Piece, ...], ...]
    weight: int
    characters: int


class _Store:
    """The results of all sessions, by their owner and key; the oldest leave first. Safe for threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most, self._weight = most_bytes, 0
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, owner: str, kept: _Kept) -> str | None:
        """The key of what is kept now; None for what is too large."""
        if kept.weight > self._most:
            return None
        key = secrets.token_hex(6)
        with self._lock:
            self._kept[owner, key] = kept
            self._weight += kept.weight
            while self._weight > self._most:
                _, gone = self._kept.popitem(last=False)
                self._weight -= gone.weight
        return key

    def get(self, owner: str, key: str) -> _Kept | None:
        with self._lock:
            return self._kept.get((owner, key))

    def clear(self, owner: str) -> None:
        with self._lock:
            for each in [each for each in self._kept if each[0] == owner]:
                self._weight -= self._kept.pop(each).weight

    def count(self, owner: str) -> int:
        with self._lock:
            return sum(each[0] == owner for each in self._kept)


class ResultPages:
    """The long results of one session, each under a key that cannot be guessed. Safe for threads.

    A result of more than `budget_tokens`, by `estimated_tokens`, is cut. Results are kept up to `most_bytes` together,
    also those of the sessions that `for_session` makes of this one; the oldest leave first.
    """

    def __init__(self, budget_tokens: int = 10_000, *, most_bytes: int = 64_000_000) -> None:
        checks.whole("budget_tokens", budget_tokens, LEAST_TOKENS)
        checks.whole("most_bytes", most_bytes)
        self._budget, self._owner, self._store = budget_tokens, "", _Store(most_bytes)

    def for_session(self, owner: str) -> ResultPages:
        """The results of another session, in the same room: a key of one opens nothing in the other."""
        other = copy(self)
        other._owner = owner
        return other

    def cut(self, result: Mapping[str, Any], *, keep_structured: bool = False) -> tuple[JsonResult, str | None]:
        """A result of `tools/call`, as JSON, within the budget; and the key of the rest, None if it is whole.

        Everything but `content` and `structuredContent` stays as it is. Structured content counts by itself, for
        clients show either; one that is too long becomes part of the pages, unless a text says the same. With
        `keep_structured` it stays: a client that knows the tool's output schema refuses a result without it.
        """
        items, structured = _items_of(result), result.get("structuredContent")
        # What does not fit is left out of the first page.
        beyond = structured is not None and not keep_structured and self._is_long(structured)
        if not beyond and self._fits(items):
            return dict(result), None
        if not keep_structured and structured is not None and not _is_told(items, structured):
            items.append(_text_item({"type": "text"}, _dumped(structured)))
        left = {name: value for name, value in result.items() if keep_structured or name != "structuredContent"}
        if self._fits(items):  # a text says the same as the structured content, in fewer words
            return left, None
        pages = [*_pages(items, self._budget - NOTE_TOKENS)]
        if any(self._is_too_large(item) for item, _, _ in pages[0]):
            pages.insert(0, ())  # only named, until it is asked for
        kept = _Kept(tuple(pages), sum(item.weight for item in items), sum(map(_characters, items)))
        key = self._store.put(self._owner, kept)
        return {**left, "content": _shown(kept, 1, key)}, key

    def page(self, key: object, at: object = 1) -> JsonResult:
        """One page of a kept result, from 1, as a result of `tools/call`; an error for a key or a page that is not."""
        kept = self._store.get(self._owner, key) if isinstance(key, str) else None
        if kept is None:
            return _error(
                f"No result is kept under the key {text_of(key)[:60]!r}. Long results are kept until newer ones need "
                "their room, and only for the session that got them. Call the tool again."
            )
        number = _number(at)
        if number is None or not 1 <= number <= len(kept.pages):
            return _error(f"This result has the pages 1 to {len(kept.pages)}, not {text_of(at)[:60]!r}.")
        return {"content": _shown(kept, number, str(key)), "isError": False}

    def clear(self) -> None:
        """Drops the results of this session."""
        self._store.clear(self._owner)

    def __len__(self) -> int:
        return self._store.count(self._owner)

    def _fits(self, items: list[_Item]) -> bool:
        media = sum(item.weight for item in items if item.is_media)
        return sum(item.tokens for item in items) <= self._budget and media <= MEDIA_CHARACTERS

    def _is_too_large(self, item: _Item) -> bool:
        return item.text is None and not self._fits([item])

    def _is_long(self, structured: object) -> bool:
        return estimated_tokens(_dumped(structured)) > self._budget


def _error(text: str) -> JsonResult:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _number(at: object) -> int | None:
    """A page, which a model may write as a text or with a decimal point."""
    try:
        number = float(at) if isinstance(at, str | int | float) and not isinstance(at, bool) else None
        return int(number) if number is not None and number == int(number) else None
    except (ValueError, OverflowError):
        return None


def _dumped(value: object) -> str:
    return clean(json.dumps(value, ensure_ascii=False, default=str))


# -- items -------------------------------------------------------------------------------------------------------


def _items_of(result: Mapping[str, Any]) -> list[_Item]:
    content = result.get("content")
    blocks = content if isinstance(content, list | tuple) else [] if content is None else [content]
    return [_item_of(block) for block in blocks]


def _item_of(block: object) -> _Item:
    if not isinstance(block, Mapping):
        return _text_item({"type": "text"}, text_of(block))
    inner = block.get("resource")
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return _text_item({name: value for name, value in block.items() if name != "text"}, block["text"])
    if isinstance(inner, Mapping) and isinstance(inner.get("text"), str):
        frame = {**block, "resource": {name: value for name, value in inner.items() if name != "text"}}
        return _text_item(frame, inner["text"], inside=True)
    return _Item(dict(block))


def _text_item(frame: Mapping[str, Any], text: str, *, inside: bool = False) -> _Item:
    if len(_dumped(frame)) > FRAME_CHARACTERS:
        whole = {**frame, "resource": {**frame["resource"], "text": text}} if inside else {**frame, "text": text}
        return _Item(whole)
    return _Item(frame, clean(text).encode(), inside)


def _characters(item: _Item) -> int:
    return len(item.text.decode()) if item.text is not None else 0


def _is_told(items: list[_Item], structured: object) -> bool:
    """Whether a text says what the structured content says: servers send it as text too, for older clients."""
    for item in items:
        try:
            if item.text is not None and json.loads(item.text) == structured:
                return True
        except (ValueError, RecursionError):
            pass
    return False


# -- pages -------------------------------------------------------------------------------------------------------


def _pages(items: list[_Item], room: int) -> Iterator[tuple[_Piece, ...]]:
    """The items in pages of at most `room` tokens; what is larger and cannot be cut has a page of its own."""
    page: list[_Piece] = []
    left, media = room, MEDIA_CHARACTERS
    for item in items:
        start, whole = 0, item.text is None
        size = item.weight if item.is_media else 0
        if whole and page and (item.tokens > left or size > media):
            yield tuple(page)
            page, left, media = [], room, MEDIA_CHARACTERS
        if whole:
            page.append((item, 0, 0))
            left, media = left - item.tokens, media - size
            continue
        text = item.text or b""
        while start < len(text) or not text:
            if left <= BLOCK_TOKENS + min(50, item.tokens):  # a few words on a page of their own tell nothing
                yield tuple(page)
                page, left, media = [], room, MEDIA_CHARACTERS
            end = _end(text, start, (left - BLOCK_TOKENS) * BYTES_A_TOKEN)
            page.append((item, start, end))
            left -= -(-(end - start) // BYTES_A_TOKEN) + BLOCK_TOKENS
            start = end
            if not text:
                break
    if page:
        yield tuple(page)


def _end(text: bytes, start: int, most: int) -> int:
    """Where a piece of a text ends: at the end of a line if that keeps half of it, and never inside a character."""
    end = start + most
    if end >= len(text):
        return len(text)
    line = text.rfind(b"\n", start + most // 2, end)
    if line >= 0:
        return line + 1
    while text[end] & 0xC0 == 0x80:
        end -= 1
    return end


def _shown(kept: _Kept, number: int, key: str | None) -> list[JsonResult]:
    """The blocks of a page, and its note."""
    blocks = [item.block(start, end) for item, start, end in kept.pages[number - 1]]
    return [*blocks, {"type": "text", "text": _note(kept, number, key)}]


def _note(kept: _Kept, number: int, key: str | None) -> str:
    pages = len(kept.pages)
    size = f" of {counted(kept.characters, 'character')}" if kept.characters else ""
    where = f"[Page {number:,} of {pages:,} of a result{size}."
    if number == pages:
        return f"{where} This is the end of it.]"
    later = [
        f"{item.name} (page {page:,})"
        for page, pieces in enumerate(kept.pages, 1)
        for item, _, _ in pieces
        if page > number and item.text is None
    ]
    others = f", and {len(later) - NAMED:,} more" if len(later) > NAMED else ""
    also = f" Later pages hold, besides text: {', '.join(later[:NAMED])}{others}." if later else ""
    if key is None:
        return f"{where} The rest is too large to be kept and is lost: ask for less, or for the part you need.{also}]"
    call = json.dumps({"key": key, "page": number + 1})
    return f"{where} If you need more, call {FETCH_RESULT['name']} with {call}, or ask the tool for less.{also}]"
