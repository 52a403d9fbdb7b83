"""`mcp.json` in the place of a file of tools: its servers are started, asked for their tools, and ended."""

from __future__ import annotations

from toolsearch import Catalog, SetupError
from toolsearch.mcp.servers import Servers

__all__ = ["CONNECT_SECONDS", "add_servers"]

CONNECT_SECONDS = 60.0  # for all of them: some install themselves first


def add_servers(catalog: Catalog, file: str) -> None:
    """Adds the tools of the servers in an `mcp.json`; the catalog names those that cannot be reached.

    Raises `SetupError`, with the reasons, if there is no tool from any of them.
    """
    before = len(catalog)
    with Servers(file, connect_seconds=CONNECT_SECONDS, catalog=catalog) as servers:
        health = servers.health()
    if len(catalog) == before:
        reasons = "; ".join(f"{name!r}: {each.reason or each.state}" for name, each in health.items())
        raise SetupError(f"the servers in the file {file!r} give no tool: {reasons or 'there are none'}")
