"""Results that the gateway gives itself, and how those of servers are passed on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_types import SERVER_INFO_META_KEY, CallToolResult

__all__ = ["failed", "passed_on", "told", "without_server"]


def told(text: str) -> dict[str, Any]:
    """A result of one text."""
    return {"content": [{"type": "text", "text": text}], "isError": False}


def failed(text: str) -> dict[str, Any]:
    """A result that says why something did not happen, and what to do."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def passed_on(result: CallToolResult) -> dict[str, Any]:
    """The result of a server, with all that it holds."""
    dumped = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    if meta := without_server(dumped.pop("_meta", None)):
        dumped["_meta"] = meta
    return dumped


def without_server(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Metadata without the name of the server, which the SDK stamps on results: it is the gateway that answers."""
    return {key: value for key, value in (meta or {}).items() if key != SERVER_INFO_META_KEY} or None
