"""Binary data written as Base64: its size, and a placeholder in its place, because no model can read it as text."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

__all__ = ["TYPE_KEYS", "decoded", "placeholder", "size_of", "without_data", "without_urls"]

_SPACE = re.compile(r"\s+")
_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,(?P<data>[A-Za-z0-9+/_-]{32,}={0,2})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\r\n-]*={0,2}\s*")
_SURE = 128  # characters: a hash is shorter
_PAYLOADS = ("data", "blob", "base64", "b64_json")
TYPE_KEYS = ("mimeType", "mime_type", "media_type", "mediaType")  # where the type of some data stands
_MEDIA = ("image/", "audio/", "video/", "application/pdf", "application/octet-stream")  # never written as text
# Types of contents as MCP and the providers have them. In a list with one of these, an item of another type is unknown.
_CONTENTS = (
    "text", "image", "audio", "resource", "resource_link", "image_url", "input_image", "input_text", "document",
)  # fmt: skip


def size_of(data: str) -> int:
    """The number of bytes that a text in Base64 stands for."""
    return len(_SPACE.sub("", data).rstrip("=")) * 3 // 4


def placeholder(kind: object, data: str) -> str:
    """The text that replaces data in Base64: type and size."""
    return f"<{str(kind or 'binary data')[:80]}, {size_of(data):,} bytes, not shown>"


def decoded(data: str) -> bytes | None:
    """The bytes of a text in Base64, the standard alphabet or the one for addresses; None if it is not Base64."""
    plain = _SPACE.sub("", data).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def without_data(value: object, kind: object = None) -> Any:
    """A JSON value with placeholders for data in Base64; `kind` is the type that an outer object names.

    Short data is recognised only next to the type of an image, a sound and the like; it may be a name or a hash.
    """
    if isinstance(value, str):
        return without_urls(value)
    if isinstance(value, list):
        has_contents = any(_type(item) in _CONTENTS for item in value)
        return [without_data(_known(item) if has_contents else item, kind) for item in value]
    if not isinstance(value, dict):
        return value
    own = next(
        (value[key] for key in (*TYPE_KEYS, "type") if isinstance(value.get(key), str) and value[key] != "base64"), None
    )
    kind = own or kind
    return {
        key: placeholder(kind, item)
        if kind and key in _PAYLOADS and isinstance(item, str) and _is_data(item, own, key)
        else without_data(item, kind)
        for key, item in value.items()
    }


def _is_data(text: str, kind: str | None, key: str) -> bool:
    """Whether a text is data in Base64; `kind` is the type that stands next to it."""
    is_media = kind is not None and (kind.startswith(_MEDIA) or (key == "blob" and "/" in kind))
    if len(text) < _SURE and not (is_media and text and len(text.strip()) % 4 == 0):
        return False
    return _BASE64.fullmatch(text) is not None


def _type(item: object) -> object:
    return item.get("type") if isinstance(item, dict) else None


def _known(item: object) -> object:
    """A content of a message; one of an unknown type becomes a placeholder."""
    kind = item.get("type") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(kind, str) or kind in _CONTENTS:
        return item
    if any(isinstance(item.get(key), str) for key in _PAYLOADS):
        return item
    size = len(json.dumps(item, ensure_ascii=False))
    return f"<content of the unknown type {kind[:80]!r}, {size:,} characters, not shown>"


def without_urls(text: str) -> str:
    """The text with placeholders for the data in its `data:` addresses."""
    return _URL.sub(lambda match: placeholder(match["type"], match["data"]), text)
