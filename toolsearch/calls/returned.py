"""What a tool returned, as its result: any value, parts, or what the client of an MCP server hands on.

`call_tool` of an MCP client gives content blocks, structured content and a flag for an error: as an object of its SDK,
as a dict in snake or camel case, or as the answer in JSON-RPC. All of these, and the bare blocks, are read here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolsearch.calls.parts import (
    AudioPart,
    ImagePart,
    JsonPart,
    Part,
    ResourcePart,
    TextPart,
    is_part,
    text_of_parts,
)
from toolsearch.calls.values import STATUSES, Status, ToolResult
from toolsearch.support.base64_data import TYPE_KEYS
from toolsearch.support.text import LEVELS, clean, is_deeper, plain_json, text_of

__all__ = ["data_to_store", "parts_to_store", "read_result"]

_PLAIN = (str, bytes, bytearray, memoryview, int, float, bool, type(None))
_MOST_BLOCKS = 1_000  # of a bare list; a longer one is data
_ERROR = ("isError", "is_error")
_STRUCTURED = ("structuredContent", "structured_content")
_ENVELOPE = frozenset([*_ERROR, *_STRUCTURED, "content", "_meta", "meta", "resultType", "result_type", "task"])
_TEXT_KEYS = frozenset(["type", "text", "annotations", "_meta", "meta"])


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read: the parts, the text of those that tell something new, and whether the tool says it failed."""

    parts: tuple[Part, ...]
    text: str
    failed: bool = False


# A server may ask for something before it answers. Its client has to ask the user, and call again.
_UNASKED = "The server asks for more input before it answers, and this program does not give any. It did not run."
_ASKS = _Read((TextPart(_UNASKED),), _UNASKED, failed=True)


def read_result(call_id: str, name: str, value: object) -> ToolResult:
    """The result of a call whose tool returned this value; `data` is the value itself.

    Raises what the value's own methods raise.
    """
    if type(value) is str and value and not value.isspace():
        return ToolResult(call_id, name, "ok", clean(value), value)
    if isinstance(value, ToolResult):
        return _own(call_id, name, value)
    read = _read(value)
    if read is None:
        text = text_of(value)
        return ToolResult(call_id, name, "ok", text if text.strip() else text_of(None), value)
    status: Status = "failed" if read.failed else "ok"
    return ToolResult(call_id, name, status, _told(read.text, name, status), value, read.parts)


def data_to_store(result: ToolResult) -> object:
    """The `data` of a result without what its parts hold already."""
    if not result.parts:
        return result.data
    try:
        return None if _read(result.data) is not None else result.data
    except Exception:  # of an object that cannot be looked at
        return None


def parts_to_store(result: ToolResult) -> tuple[Part, ...]:
    """The parts of a result, or none if they are a text and its content is the same text.

    Values that are nested too deeply to be read from a store again are left out.
    """
    match result.parts:
        case (TextPart(text),) if text == result.content:
            return ()
        case parts:
            sound = _sound(parts)
            return tuple(p for p in sound if not (isinstance(p, JsonPart) and is_deeper(p.value, LEVELS)))


def _sound(parts: object) -> tuple[Part, ...]:
    """What are parts of what a tool, or a layer, gave as such."""
    return tuple(filter(is_part, parts)) if isinstance(parts, list | tuple) else ()


def _own(call_id: str, name: str, result: ToolResult) -> ToolResult:
    """A result that the tool made itself, with whatever is wrong in it put right."""
    content: object = result.content
    status = result.status if result.status in STATUSES else "failed"
    parts = _sound(result.parts)
    if not isinstance(content, str) and (read := _read(content)) is not None:
        content, parts = read.text, parts or read.parts
        status = "failed" if read.failed and status == "ok" else status
    elif parts and content in (None, ""):
        content = text_of_parts(parts)
    text = _told(text_of(content), name, status)
    return replace(
        result, call_id=call_id, name=name, status=status, content=text, parts=parts, found=_wanted(result.found)
    )


def _wanted(found: object) -> dict[str, str]:
    """The ids of tools that a tool wants to be loaded: their names are for the session to give."""
    return {key: "" for key in found if isinstance(key, str)} if isinstance(found, Mapping) else {}


def _told(text: str, name: str, status: Status) -> str:
    """The text, or one in the place of a blank text, which tells a model nothing and which some providers refuse."""
    if text.strip():
        return text
    if status == "ok":
        return text_of(None)
    return (
        f"{name!r} failed and gave no reason. If other arguments can help, call it again; otherwise say what happened."
    )


# -- what was returned -------------------------------------------------------------------------------------------


def _read(value: object) -> _Read | None:
    """The value as parts; None for a value that is data like any other."""
    if isinstance(value, _PLAIN):
        return None
    if is_part(value):
        return _of_parts([value])
    if isinstance(value, list | tuple):
        return _read_list(value)
    if isinstance(value, Mapping):
        if "jsonrpc" in value:
            return _read_answer(value)
        if "input_required" in (value.get("resultType"), value.get("result_type")):
            return _ASKS
        if _is_envelope(value):
            return _read_envelope(value)
        return _read_list([value]) if "type" in value else None
    return _read_object(value)


def _read_list(items: Sequence[Any]) -> _Read | None:
    """A list of parts, among which texts and values may stand, or of content blocks."""
    if not 0 < len(items) <= _MOST_BLOCKS:
        return None
    if any(map(is_part, items)):
        return _of_parts(items)
    match items:
        case (list() as content, Mapping() as structured) if content and all(map(_is_bare_block, content)):
            return _read_envelope({"content": content, "structured_content": structured})  # of an older SDK
        case _:
            pass
    parts = [_part(item) if _is_bare_block(item) else None for item in items]
    return None if None in parts else _of_parts(parts)


def _of_parts(items: Sequence[Any]) -> _Read:
    parts = tuple(i if is_part(i) else TextPart(i) if isinstance(i, str) else JsonPart(plain_json(i)) for i in items)
    return _Read(parts, text_of_parts(parts))


def _read_object(value: object) -> _Read | None:
    """An object of an SDK: the whole answer, or one block of it."""
    if isinstance(value, type):
        return None
    if getattr(value, "result_type", None) == "input_required":
        return _ASKS
    if isinstance(getattr(value, "content", None), list | tuple):
        keys = [*_ERROR, *_STRUCTURED]
        found = {key: getattr(value, key) for key in keys if not _is_older_name(value, key) and hasattr(value, key)}
        if found:
            return _read_envelope({"content": value.content, **found})  # type: ignore[attr-defined]
    return _read_list([value]) if isinstance(getattr(value, "type", None), str) else None


def _read_answer(answer: Mapping[str, Any]) -> _Read | None:
    """An answer in JSON-RPC, as a server sends it."""
    if (error := answer.get("error")) is not None:
        told = error if isinstance(error, Mapping) else {"message": text_of(error)}
        about = [clean(str(told.get("message") or "")), text_of(told["data"]) if told.get("data") else ""]
        return _Read((TextPart(text := " ".join(filter(None, about))),), text, failed=True)
    result = answer.get("result")
    return _read_envelope(result) if isinstance(result, Mapping) and _is_envelope(result) else None


def _is_envelope(value: Mapping[str, Any]) -> bool:
    """Whether a dict is what `call_tool` of an MCP client gives, and not a tool's own data with a key "content"."""
    content = value.get("content") or ()
    if any(key in value for key in _ERROR):
        return value.keys() <= _ENVELOPE or (isinstance(content, list | tuple | str) and "content" in value)
    if not value.keys() <= _ENVELOPE or not isinstance(content, list | tuple):
        return False
    structured = any(key in value for key in _STRUCTURED)
    return structured or any(_part(block) is not None for block in content)


def _read_envelope(envelope: Mapping[str, Any]) -> _Read:
    content = envelope.get("content") or ()
    blocks = content if isinstance(content, list | tuple) else [content]
    parts = tuple(_part(block) or _unknown(block) for block in blocks if block is not None)
    structured = next((envelope[key] for key in _STRUCTURED if envelope.get(key) is not None), None)
    failed = any(_is_true(envelope.get(key)) for key in _ERROR)
    if structured is None:
        return _Read(parts, text_of_parts(parts), failed)
    value = plain_json(structured)
    whole = (*parts, JsonPart(value))
    return _Read(whole, text_of_parts(parts if _tells(parts, value) else whole), failed)


def _is_true(flag: object) -> bool:
    return flag.lower() == "true" if isinstance(flag, str) else bool(flag)


def _tells(parts: Sequence[Part], structured: Any) -> bool:
    """Whether the parts say what the structured content says: servers send it as text too, for older clients."""
    if any(_is_same(part, structured) for part in parts):
        return True
    if isinstance(structured, Mapping) and set(structured) == {"result"}:  # a value that is no object is wrapped
        return _tells(parts, structured["result"])
    if not isinstance(structured, list) or not 0 < len(structured) <= len(parts):
        return False
    left = iter(parts)  # each element is a part of its own, in this order
    return all(any(_is_same(part, element) for part in left) for element in structured)


def _is_same(part: Part, value: Any) -> bool:
    if isinstance(value, Mapping) and _part(value) == part:
        return True
    if not isinstance(part, TextPart):
        return False
    if isinstance(value, str) and value == part.text:
        return True
    try:
        return bool(json.loads(part.text) == value)
    except (ValueError, RecursionError):
        return False


# -- blocks ------------------------------------------------------------------------------------------------------


def _field(block: object, *names: str) -> Any:
    """The first of these fields that a block has, be it a dict or an object."""
    for name in names:
        if isinstance(block, Mapping):
            value = block.get(name)
        else:
            value = None if _is_older_name(block, name) else getattr(block, name, None)
        if value is not None:
            return value
    return None


def _is_older_name(value: object, name: str) -> bool:
    """Whether an object has a field by another name as well: FastMCP warns of each look at an older one of MCP's."""
    newer = re.sub(r"(?=[A-Z])", "_", name).lower()
    return newer != name and hasattr(value, newer)


def _text_field(block: object, *names: str) -> str:
    value = _field(block, *names)
    return "" if value is None else clean(str(value))


def _is_bare_block(item: object) -> bool:
    """Whether an item that stands in no envelope is a block: a dict with keys of its own is data."""
    if isinstance(item, (*_PLAIN, list, tuple)):
        return False
    is_text = isinstance(item, Mapping) and item.get("type") == "text"
    return not is_text or item.keys() <= _TEXT_KEYS  # type: ignore[attr-defined]


def _part(block: object) -> Part | None:
    """The part that a content block is; None if it is of a kind that is not known."""
    if is_part(block):
        return block  # type: ignore[return-value]
    match _field(block, "type") if not isinstance(block, _PLAIN) else None:
        case "text" if isinstance(text := _field(block, "text"), str):
            return TextPart(clean(text))
        case "image" | "audio" as kind:
            return _media(block, ImagePart if kind == "image" else AudioPart)
        case "image_url" if (url := _text_field(_field(block, "image_url"), "url")).startswith("data:image/"):
            return ImagePart(url, url[5:].partition(";")[0])
        case "resource" if (resource := _field(block, "resource")) is not None and not isinstance(resource, _PLAIN):
            return _resource(resource)
        case "resource_link" if isinstance(_field(block, "uri"), str) or not isinstance(block, Mapping):
            return _resource(block)
        case _:
            return None


def _media(block: object, kind: type[ImagePart | AudioPart]) -> Part | None:
    """An image or a sound; its data and type may stand in a `source`, as one provider has them."""
    source = block if (inner := _field(block, "source")) is None or isinstance(inner, _PLAIN) else inner
    data, media_type = _field(source, "data"), _field(source, *TYPE_KEYS)
    if not isinstance(data, str | bytes) or media_type is None:
        return None
    return kind(data, clean(str(media_type)))


def _resource(resource: object) -> ResourcePart | None:
    text, blob = _field(resource, "text"), _field(resource, "blob")
    uri = _text_field(resource, "uri")
    if not uri and text is None and blob is None:
        return None
    return ResourcePart(
        uri,
        _text_field(resource, *TYPE_KEYS),
        _text_field(resource, "title", "name"),
        None if text is None else clean(str(text)),
        None if blob is None else str(blob),
        _text_field(resource, "description"),
    )


def _unknown(block: object) -> Part:
    """A block of an unknown kind, as the JSON that it is; an image or a sound without its type is one all the same."""
    if isinstance(block, str):
        return TextPart(clean(block))
    kind, data = (None, None) if isinstance(block, _PLAIN) else (_field(block, "type"), _field(block, "data"))
    if kind in ("image", "audio") and isinstance(data, str | bytes):
        return (ImagePart if kind == "image" else AudioPart)(data, f"{kind}/unknown")
    return JsonPart(plain_json(block))
