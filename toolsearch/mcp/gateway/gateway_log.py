"""A log of what clients searched and called: one JSON object a line, without arguments and results."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from toolsearch import SetupError, Tool
from toolsearch.mcp.gateway.conversations import Conversation
from toolsearch.mcp.gateway.searches import Searched

__all__ = ["GatewayLog"]

log = logging.getLogger("toolsearch.mcp")

TEXT_CHARACTERS = 500
CHARACTERS_A_TOKEN = 4


class GatewayLog:
    """Appends to a file, which only its owner can read; without a file, it does nothing. Safe for threads.

    Each line has `at` (seconds since 1970), `session` and `kind`; see docs/gateway.md. A file that cannot be written
    is reported once, and no call fails for it; one that cannot be opened raises `SetupError`.
    """

    def __init__(self, file: Path | None) -> None:
        self._lock = threading.Lock()
        self._file: IO[str] | None = None
        if file is not None:
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch(mode=0o600)
                self._file = file.open("a", encoding="utf-8", errors="replace")
            except OSError as error:
                raise SetupError(f"the log of --log {str(file)!r} cannot be written: {error.strerror}") from None

    def now(self) -> float:
        return time.perf_counter()

    def search(self, conversation: Conversation, arguments: Mapping[str, Any], searched: Searched) -> None:
        """A search: its queries, what it loaded and named, and how sure it was."""
        if self._file is None:
            return
        given = arguments.get("queries")
        queries = [str(each)[:TEXT_CHARACTERS] for each in (given if isinstance(given, list) else [given]) if each]
        data = searched.data
        self._write(
            conversation, "search", status="failed" if searched.failed else "ok", queries=queries,
            loaded=data.get("loaded", []), already=data.get("already_loaded", []), named=data.get("named", []),
            verdicts=data.get("verdicts", []), confidence=data.get("confidence", {}),
            tokens=len(searched.text) // CHARACTERS_A_TOKEN,
        )  # fmt: skip

    def call(self, conversation: Conversation, tool: Tool, status: str, begun: float | None = None) -> None:
        """A call of a server's tool and how it ended; `begun` is what `now` gave before it."""
        if self._file is None:
            return
        seconds = {} if begun is None else {"seconds": round(self.now() - begun, 4)}
        self._write(conversation, "call", tool=tool.id, server=tool.server, status=status, **seconds)

    def event(self, kind: str, **about: object) -> None:
        """Something that happened here: to a server, to a definition that is held back, to the configuration."""
        if self._file is not None:
            self._write(None, kind, **about)

    def _write(self, conversation: Conversation | None, kind: str, **about: object) -> None:
        whose = {"session": "", "client": ""}
        if conversation is not None:
            whose = {"session": conversation.id, "client": conversation.client[:TEXT_CHARACTERS]}
        line = json.dumps({"at": round(time.time(), 3), **whose, "kind": kind, **about}, ensure_ascii=False)
        with self._lock:
            if self._file is None:
                return
            try:
                self._file.write(line + "\n")
                self._file.flush()
            except (OSError, ValueError) as error:
                self._file = None
                log.warning("the log of the gateway cannot be written, and ends here: %s", error)

    def close(self) -> None:
        with self._lock:
            file, self._file = self._file, None
        if file is not None:
            file.close()
