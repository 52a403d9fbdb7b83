"""What a user's message holds besides text, in the formats of several providers; a schema, asked for in words."""

from __future__ import annotations

import json
from collections.abc import Mapping

from toolsearch.support.json_types import JsonObject

__all__ = ["image_in", "text_in", "with_schema"]


def image_in(part: JsonObject) -> tuple[str, str] | None:
    """The media type and the data (in Base64) of an image as OpenAI or Anthropic take one; None for another part."""
    url = part.get("image_url")
    address = url.get("url") if isinstance(url, Mapping) else url
    if isinstance(address, str) and address.startswith("data:image/"):
        head, _, data = address.removeprefix("data:").partition(",")
        return (head.removesuffix(";base64"), data) if head.endswith(";base64") else None
    source = part.get("source")
    if part.get("type") == "image" and isinstance(source, Mapping) and source.get("type") == "base64":
        return str(source.get("media_type") or "image/png"), str(source.get("data") or "")
    return None


def text_in(part: JsonObject) -> str:
    """The text of a part; for another provider's image or file, which kind of part it is."""
    text = part.get("text")
    return text if isinstance(text, str) and text.strip() else f"[{part.get('type') or 'attachment'}, not shown]"


def with_schema(system: str, schema: JsonObject | None) -> str:
    """The system text, with the schema that the answer has to follow."""
    if schema is None:
        return system
    asked = (
        f"When you answer without a call, answer with JSON of this JSON Schema and nothing else: {json.dumps(schema)}"
    )
    return f"{system}\n\n{asked}" if system else asked
