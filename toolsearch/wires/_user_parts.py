"""What a user's message holds besides its text: parts in one provider's format, translated for another one.

A part of the format itself, or of none that is known here, stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolsearch.calls import ImagePart
from toolsearch.calls.parts import shown_image
from toolsearch.support.json_types import JsonObject

__all__ = ["parts_for", "with_schema"]

MOST_BYTES = 50_000_000  # of an image whose type is looked for in its bytes
# The types of parts that one format has alone. Parts of Gemini and of Ollama have no type.
_TYPES = {
    "openai_chat": ("image_url", "input_audio", "file"),
    "openai_responses": ("input_image", "input_text", "input_file"),
    "anthropic": ("image", "document"),
}
_OF_GEMINI = {"inline_data", "inlineData", "file_data", "fileData", "text"}


@dataclass(frozen=True, slots=True)
class _Image:
    """An image by its data in Base64 and its type, or by its address."""

    data: str = ""
    media_type: str = ""
    url: str = ""

    @property
    def address(self) -> str:
        return self.url or f"data:{self.media_type};base64,{self.data}"


def parts_for(wire: str, parts: Iterable[JsonObject]) -> list[dict[str, Any]]:
    """The parts in the format of a wire: images as images, and of everything else its text, or what it is."""
    made: list[dict[str, Any]] = []
    for part in parts:
        if _is_own(part, wire):
            made.append(dict(part))
        else:
            shown = [_shown(image, wire) for image in _images(part)]
            known = [image for image in shown if image is not None]
            made += known if known and len(known) == len(shown) else [_text(part, wire)]
    return made


def _is_own(part: JsonObject, wire: str) -> bool:
    kind = part.get("type")
    if wire in ("gemini", "ollama"):
        return kind is None and ("images" in part) == (wire == "ollama")
    if wire == "openai_responses":
        return str(kind).startswith("input_")
    foreign = {each for form, kinds in _TYPES.items() if form != wire for each in kinds}
    return kind not in foreign and (kind is not None or not ("images" in part or _OF_GEMINI & part.keys()))


def _images(part: JsonObject) -> list[_Image]:
    url, source = part.get("image_url"), part.get("source")
    address = url.get("url") if isinstance(url, Mapping) else url
    if isinstance(address, str):
        return [_of_address(address)]
    if part.get("type") == "image" and isinstance(source, Mapping):
        if isinstance(address := source.get("url"), str):
            return [_of_address(address)]
        return [_of_data(source.get("data"), source.get("media_type"))]
    blob = part.get("inline_data") or part.get("inlineData")
    if isinstance(blob, Mapping):
        kind = blob.get("mime_type") or blob.get("mimeType")
        return [_of_data(blob.get("data"), kind)] if str(kind).startswith("image/") else []
    images = part.get("images")
    return [_of_data(each, None) for each in images] if isinstance(images, list | tuple) else []


def _of_address(address: str) -> _Image:
    head, comma, data = address.partition(",")
    if head.startswith("data:image/") and head.endswith(";base64") and comma:
        return _of_data(data, head.removeprefix("data:").partition(";")[0])
    return _Image(url=address) if address.startswith(("https://", "http://")) else _Image()


def _of_data(data: object, media_type: object) -> _Image:
    """The type is what the part says; where it says none, what the bytes say."""
    image = ImagePart(data if isinstance(data, str | bytes) else "", str(media_type or ""))
    seen = None if image.media_type else shown_image(image, MOST_BYTES)
    return _Image(image.data, image.media_type or (seen[1] if seen else "image/png"))


def _shown(image: _Image, wire: str) -> dict[str, Any] | None:
    if not (image.data or image.url):
        return None
    match wire:
        case "openai_chat":
            return {"type": "image_url", "image_url": {"url": image.address}}
        case "openai_responses":
            return {"type": "input_image", "image_url": image.address}
        case "anthropic" if image.url:
            return {"type": "image", "source": {"type": "url", "url": image.url}}
        case "anthropic":
            return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}
        case "gemini" if image.data:
            return {"inline_data": {"mime_type": image.media_type, "data": image.data}}
        case "ollama" if image.data:
            return {"images": [image.data]}
        case _:
            return None


def _text(part: JsonObject, wire: str) -> dict[str, Any]:
    text = part.get("text")
    if not isinstance(text, str) or not text.strip():
        kind = part.get("type") or next(iter(_OF_GEMINI & part.keys()), "attachment")
        text = f"[{str(kind)[:40]}, not shown]"
    match wire:
        case "gemini" | "ollama":
            return {"text": text}
        case "openai_responses":
            return {"type": "input_text", "text": text}
        case _:
            return {"type": "text", "text": text}


def with_schema(system: str, schema: JsonObject | None) -> str:
    """The system text, with the schema that the answer has to follow."""
    if schema is None:
        return system
    asked = (
        f"When you answer without a call, answer with JSON of this JSON Schema and nothing else: {json.dumps(schema)}"
    )
    return f"{system}\n\n{asked}" if system else asked
