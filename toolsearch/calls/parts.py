"""The parts of a result: text, images, sound, resources and JSON, each a value that a program can use as it is.

The model reads their text, see `ToolResult.content`. A wire shows an image itself where the provider takes one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

from toolsearch.support.base64_data import decoded, placeholder, size_of, without_data
from toolsearch.support.text import clean, plain_json, text_of

__all__ = [
    "AudioPart",
    "ImagePart",
    "JsonPart",
    "Part",
    "ResourcePart",
    "TextPart",
    "cleaned_part",
    "is_part",
    "read_part",
    "shown_image",
    "stored_part",
    "text_of_parts",
]

# What image files begin with. A provider refuses an image whose bytes do not fit its type, in each later request too.
_SIGNATURES = (
    ("image/png", b"\x89PNG\r\n\x1a\n", b""),
    ("image/jpeg", b"\xff\xd8\xff", b""),
    ("image/gif", b"GIF8", b""),
    ("image/webp", b"RIFF", b"WEBP"),
)


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True, init=False)
class _Media:
    """Data in Base64 with its type, such as "image/png". Bytes are accepted too; a `data:` address gives its data."""

    data: str = field(repr=False)
    media_type: str

    def __init__(self, data: str | bytes, media_type: str = "") -> None:
        object.__setattr__(self, "data", _base64(data))
        object.__setattr__(self, "media_type", media_type)

    @property
    def size(self) -> int:
        """The number of bytes."""
        return size_of(self.data)


@dataclass(frozen=True, slots=True, init=False)
class ImagePart(_Media):
    """An image: `data` in Base64 (bytes are accepted too), and its `media_type`, such as "image/png"."""


@dataclass(frozen=True, slots=True, init=False)
class AudioPart(_Media):
    """Sound: `data` in Base64 (bytes are accepted too), and its `media_type`, such as "audio/wav"."""


@dataclass(frozen=True, slots=True)
class ResourcePart:
    """A resource: its `text`, or its `data` in Base64, or with neither a link to it."""

    uri: str
    media_type: str = ""
    name: str = ""
    text: str | None = None
    data: str | None = field(default=None, repr=False)
    description: str = ""


@dataclass(frozen=True, slots=True)
class JsonPart:
    """Structured content: any JSON value."""

    value: Any = field(hash=False)


Part: TypeAlias = TextPart | ImagePart | AudioPart | ResourcePart | JsonPart

_KINDS: dict[str, type[Any]] = {
    "text": TextPart, "image": ImagePart, "audio": AudioPart, "resource": ResourcePart, "json": JsonPart,
}  # fmt: skip
_NAMES = {kind: name for name, kind in _KINDS.items()}


def is_part(value: object) -> bool:
    """Whether a value is a part of a result, with texts where a part has texts."""
    if (kind := type(value)) not in _NAMES:
        return False
    return kind is JsonPart or all(
        isinstance(item := getattr(value, each.name), str) or (item is None and each.default is None)
        for each in fields(_KINDS[_NAMES[kind]])
    )


def _base64(data: object) -> str:
    if isinstance(data, bytes | bytearray | memoryview):
        import base64

        return base64.b64encode(data).decode()
    text = str(data)
    head, comma, rest = text.partition(",") if text.startswith("data:") else ("", "", "")
    return rest if comma and head.endswith(";base64") else text


# -- text --------------------------------------------------------------------------------------------------------


def text_of_parts(parts: Iterable[Part]) -> str:
    """What a model reads of the parts: text as it is, JSON, and a placeholder for each image, sound and file."""
    return "\n".join(text for part in parts if (text := _text(part)))


def _text(part: Part) -> str:
    match part:
        case TextPart():
            return clean(part.text)
        case ImagePart() | AudioPart():
            return placeholder_of(part)
        case JsonPart():
            return text_of(without_data(plain_json(part.value)))
        case ResourcePart():
            return _text_of_resource(part)


def placeholder_of(part: ImagePart | AudioPart) -> str:
    """The text that stands for an image or a sound."""
    return placeholder(clean(part.media_type), part.data)


def _text_of_resource(part: ResourcePart) -> str:
    address = clean(part.uri)
    if part.text is not None:
        return f"Resource {address}:\n{clean(part.text)}" if address else clean(part.text)
    if part.data is not None:
        return f"Resource {address}: {placeholder(clean(part.media_type), part.data)}"
    about = ", ".join(clean(each) for each in (part.name, part.media_type) if each)
    described = f": {clean(part.description)}" if part.description else ""
    return f"Link to {address}{f' ({about})' if about else ''}{described}"


# -- images ------------------------------------------------------------------------------------------------------


def shown_image(part: Part, most_bytes: int) -> tuple[str, str, str] | None:
    """The placeholder, type and data (in Base64) of a part that is an image a provider can take; None for another.

    The type is what the bytes say, whatever the part says.
    """
    if isinstance(part, ResourcePart) and part.data is not None and part.media_type.startswith("image/"):
        image, mark = ImagePart(part.data, part.media_type), _text_of_resource(part)
    elif isinstance(part, ImagePart):
        image, mark = part, placeholder_of(part)
    else:
        return None
    data = decoded(image.data) if 0 < image.size <= most_bytes else None
    if data is None:
        return None
    for media_type, first, later in _SIGNATURES:
        if data.startswith(first) and later in data[:16]:
            return mark, media_type, _base64(data)
    return None


# -- storing -----------------------------------------------------------------------------------------------------


def stored_part(part: Part) -> dict[str, object]:
    """A part as JSON-ready data for `read_part`; what is empty is left out."""
    values = {each.name: plain_json(getattr(part, each.name)) for each in fields(part)}
    keeps = isinstance(part, JsonPart)
    return {"type": _NAMES[type(part)], **{name: item for name, item in values.items() if keeps or item}}


def cleaned_part(part: Part) -> Part:
    """The part as it will be read back from a store; the same object if that changes nothing."""
    if isinstance(part, ImagePart | AudioPart) and part.data.isascii() and part.media_type.isascii():
        return part
    read = read_part(stored_part(part))
    return part if read == part else read


def read_part(data: object) -> Part:
    """The part that `stored_part` wrote; raises `ValueError` for anything else."""
    if not isinstance(data, dict) or (kind := _KINDS.get(str(data.get("type")))) is None:
        raise ValueError(f"{json.dumps(data, default=str)[:200]} is not a part of a result")
    values = {name: item for name, item in data.items() if name != "type"}
    if kind is TextPart:
        values.setdefault("text", "")
    elif kind in (ImagePart, AudioPart):
        values.setdefault("data", "")
    elif kind is ResourcePart:
        values.setdefault("uri", "")
    if unknown := set(values) - {each.name for each in fields(kind)}:
        raise ValueError(f"a part of a result has the unknown field {min(unknown)!r}")
    part: Part = kind(**values)
    return part
