"""The policy and the pins that a configuration asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from toolsearch.mcp.config import Config, ServerEntry
from toolsearch.mcp.guards.pins import Pins
from toolsearch.mcp.guards.policy import Policy

__all__ = ["pins_of", "policy_of"]


def policy_of(config: Config) -> Policy:
    """The policy in the options of a configuration and of its servers. Raises `SetupError` for a bad pattern."""
    return Policy.of(config.options, {name: _own(entry) for name, entry in config.servers.items()})


def pins_of(
    config: Config,
    paths: Sequence[str | os.PathLike[str]],
    file: str | os.PathLike[str] | None = None,
    *,
    strict: bool = False,
) -> Pins:
    """The pins of the configuration in these files, in `file` or in the user's state folder.

    The option `pin` says what happens to tools that were never seen, for all servers and for one; with `strict` they
    are held, whatever the options say, but for servers whose pins are off. Raises `SetupError` for another value, and
    for a damaged file.
    """
    servers = {name: _own(entry).get("pin") for name, entry in config.servers.items()}
    if strict:
        servers = {name: value for name, value in servers.items() if value in (False, "off")}
    return Pins.load(file, *paths, mode="strict" if strict else config.options.get("pin"), servers=servers)


def _own(entry: ServerEntry) -> Mapping[str, object]:
    """What stands in the entry itself: `entry.options` has the options of all servers too."""
    own = entry.raw.get("toolsearch")
    return own if isinstance(own, Mapping) else {}
