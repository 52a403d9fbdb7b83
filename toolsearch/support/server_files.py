"""The form of `mcp.json`: JSON with comments, and the servers in it by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

__all__ = ["SERVER_KEYS", "URL_KEYS", "is_entry", "parsed", "servers_of"]

URL_KEYS = ("url", "httpUrl", "serverUrl")
SERVER_KEYS = ("mcpServers", "servers", "mcp_servers", "context_servers")
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')


def parsed(text: str) -> object:
    """JSON; or with comments and a comma at the end of a list, as some clients write it. Raises `ValueError`."""
    try:
        return json.loads(text)
    except ValueError:
        plain = _LAST_COMMA.sub(lambda match: match[1] or "", _COMMENT.sub(lambda match: match[1] or " ", text))
        if plain == text:
            raise
        return json.loads(plain)


def servers_of(whole: Mapping[str, object]) -> Mapping[str, object] | None:
    """The entries by name: under a key that clients use, or the whole if it has nothing else. None if it has none."""
    for key in SERVER_KEYS:
        if isinstance(found := whole.get(key), Mapping) and not is_entry(found):
            return found
    options = whole.get("toolsearch")
    is_named = isinstance(options, Mapping) and not is_entry(options)
    entries = {name: entry for name, entry in whole.items() if not (name == "toolsearch" and is_named)}
    return entries if entries and all(map(is_entry, entries.values())) else None


def is_entry(value: object) -> bool:
    """Whether a value is what one writes for a server: it has a command or an address."""
    return isinstance(value, Mapping) and any(isinstance(value.get(key), str) for key in ("command", *URL_KEYS))
