"""The tools of a search box: those of files, and those of the servers of an mcp.json, connected while it is open."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from toolsearch import Catalog, SetupError
from toolsearch.cli.tool_files import fill, names_servers
from toolsearch_evals.inspection.live import ServerStates

__all__ = ["live_tools"]


@contextmanager
def live_tools(files: Sequence[str]) -> Generator[tuple[Catalog, ServerStates]]:
    """The catalog of these files and servers, and what gives the states of the servers.

    Raises `SetupError` if there is no tool in all of them, with what is wrong with each server.
    """
    configs = [file for file in files if names_servers(file)]
    catalog = Catalog()
    if rest := [file for file in files if file not in configs]:
        fill(catalog, rest)
    if not configs:
        yield catalog, list
        return
    from toolsearch.mcp import Servers

    with Servers(*configs, catalog=catalog) as servers:

        def states() -> list[dict[str, Any]]:
            return [
                {"name": name, "state": health.state, "reason": health.reason, "tools": health.tools}
                for name, health in servers.health().items()
            ]

        if not len(catalog):
            told = "; ".join(f"{each['name']}: {each['state']}, {each['reason'] or 'no tool'}" for each in states())
            raise SetupError(f"there is no tool to search: {told}")
        yield catalog, states
