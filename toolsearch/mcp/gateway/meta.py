"""The `_meta` of a request as it goes on to a server: what belongs to the client's own connection stays here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["LOG_LEVEL_KEY", "passed_meta"]

LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
_OWN_PREFIX = "io.modelcontextprotocol/"  # of the keys in which a client says who it is and what it speaks
_TOKENS = ("progressToken", "progress_token")


def passed_meta(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The metadata for a server; None if nothing is left."""
    left = {
        key: value
        for key, value in (meta or {}).items()
        if key not in _TOKENS and (not key.startswith(_OWN_PREFIX) or key == LOG_LEVEL_KEY)
    }
    return left or None
