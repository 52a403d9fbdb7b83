"""What an earlier run knew of the servers, so that a gateway answers before they are connected. Never a secret."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from toolsearch.mcp.config import Config, ServerEntry
from toolsearch.support.private_files import cache_folder

__all__ = ["SavedCatalog", "SavedServer"]

log = logging.getLogger("toolsearch.mcp")

FORMAT = 1
MOST_BYTES = 50_000_000
SavedServer = dict[str, Any]  # "entry", the digest of its entry; "instructions"; "tools", as the server sent them


class SavedCatalog:
    """One file for a configuration, found by where that lies; only its owner can read it. Safe for threads.

    What was saved of a server counts as long as its entry is the same. A file that cannot be read, or written, is as
    good as none.
    """

    def __init__(self, configs: Iterable[str | os.PathLike[str]], folder: Path | None = None) -> None:
        key = "\0".join(str(Path(each).expanduser().absolute()) for each in configs)
        name = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:32]
        self.path = (folder or cache_folder()) / "gateway" / f"{name}.json"
        self._lock = threading.Lock()
        self._servers = self._read()

    def of(self, config: Config) -> dict[str, SavedServer]:
        """What is known of the servers of a configuration, by name."""
        with self._lock:
            held = dict(self._servers)
        return {
            name: held[name]
            for name, entry in config.servers.items()
            if name in held and held[name].get("entry") == _digest(entry, config)
        }

    def put(self, config: Config, server: str, tools: Iterable[Mapping[str, Any]], instructions: str | None) -> None:
        """Keeps what a server has sent; nothing of a server that repeats a secret of the configuration."""
        entry = config.servers.get(server)
        if entry is None:
            return
        kept: SavedServer = {"entry": _digest(entry, config), "instructions": instructions, "tools": list(tools)}
        text = json.dumps(kept, ensure_ascii=False)
        tells = any(secret in text or json.dumps(secret, ensure_ascii=False)[1:-1] in text for secret in config.secrets)
        with self._lock:
            before = self._servers.get(server)
            servers = {name: each for name, each in self._servers.items() if name in config.servers and name != server}
            self._servers = servers if tells else {**servers, server: kept}
            if before != self._servers.get(server):
                self._write()

    def _read(self) -> dict[str, SavedServer]:
        try:
            if self.path.stat().st_size > MOST_BYTES:
                return {}
            held = json.loads(self.path.read_text("utf-8"))
            servers = held["servers"] if held["format"] == FORMAT else {}
            return {name: each for name, each in servers.items() if isinstance(each["tools"], list)}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return {}

    def _write(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, draft = tempfile.mkstemp(dir=self.path.parent, suffix=".tmp")  # for its owner alone
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
                    json.dump({"format": FORMAT, "servers": self._servers}, file, ensure_ascii=False)
                Path(draft).replace(self.path)
            except BaseException:
                Path(draft).unlink(missing_ok=True)
                raise
        except OSError as error:
            log.warning("the tools cannot be kept for the next start in %s: %s", self.path, error)


def _digest(entry: ServerEntry, config: Config) -> str:
    """What tells one entry from another, without its secrets."""
    plain = json.dumps(
        [entry.transport, entry.command, entry.args, entry.url, entry.cwd, sorted(entry.env), sorted(entry.headers)],
        ensure_ascii=False,
    )
    return hashlib.sha256(config.masked(plain).encode("utf-8", "replace")).hexdigest()
