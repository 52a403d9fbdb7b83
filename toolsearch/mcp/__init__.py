"""Servers of MCP: their tools as a searched catalog, and one server in front of all of them.

Reading, without the SDK of MCP
    config          mcp.json, as every client writes it     health         what state a server is in
    options         our options in it: none is misspelt

Connecting, with the SDK: the extra `mcp`
    servers         Servers: all servers of a configuration supervisor     one server: connect, list, listen, again
    links           one connection, in a task of its own    transports     stdio, streamable HTTP, SSE
    listing         all pages of a server's tools, as JSON  pages          a page as the server sent it
    processes       whole process trees, and their stderr   runner         `run` of a ToolSearch, sync or async
    calls           one call, and how it is made
    listeners       who hears of news                       offers         what a server says of itself
    loop_thread     the thread in which connections live    questions      what a server asks of the user
    faults          what went wrong, in words               news           what a server tells unasked
    repairs         messages that the SDK cannot read       sdk_logs       what the SDK would log of them
    tool_file       mcp.json as a value of --tools          tool_list      a server's tools, in step with the catalog
    definitions     how definitions become tools

Around them, packages
    guards          policy, pins, and pages of long results
    oauth           logins to servers that ask for one
    gateway         one server in front of all of them
    clients         the clients that can be put behind the gateway
    commands        serve, login, pin, connect
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolsearch.mcp.config import Config, ServerEntry, read_config
from toolsearch.mcp.health import ServerHealth

if TYPE_CHECKING:
    from toolsearch.mcp.faults import CallFailed, ServerUnavailable
    from toolsearch.mcp.questions import Question
    from toolsearch.mcp.servers import Servers

__all__ = [
    "CallFailed",
    "Config",
    "Question",
    "ServerEntry",
    "ServerHealth",
    "ServerUnavailable",
    "Servers",
    "read_config",
]

# What needs the SDK, by the module that has it: imported only where it is used.
_LATER = {
    "CallFailed": "faults",
    "Question": "questions",
    "ServerUnavailable": "faults",
    "Servers": "servers",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio", "httpx2"):
            raise
        from toolsearch import MissingExtra

        raise MissingExtra(f"toolsearch.mcp.{name}", "mcp", "mcp") from None
