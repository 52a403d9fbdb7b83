"""The SDK logs what it cannot read: the text of a server as it is, and a trace for each line of it.

Such a text may hold a secret, and a server that writes to stdout writes a lot. So for our connections, which live in
threads of our own, these records are dropped, and `Tap` tells of such a server once, masked.
"""

from __future__ import annotations

import logging

__all__ = ["THREAD", "quieten"]

THREAD = "toolsearch-mcp"  # how the names of our threads begin
_LOGGERS = ("mcp.client.stdio", "mcp.client.streamable_http", "mcp.client.sse", "client")


def _is_kept(record: logging.LogRecord) -> bool:
    return not (record.exc_info and (record.threadName or "").startswith(THREAD))


def quieten() -> None:
    """Drops these records from now on. Calling it again changes nothing."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_kept)
