"""The clients of MCP that can be put behind the gateway, and the change of their files that does it.

table        the clients, and where each keeps its servers      connection   what connecting one would change
convert      a client's entry as an entry of ours                records      what was changed, and undoing it
preview      the lines that differ, without secrets              jsonc        where each value of a JSON text stands
json_edit    changes in JSON that leave the rest as it is        toml_edit    the same in TOML
"""

from toolsearch.mcp.clients.connection import Connection, connection, gateway_entry
from toolsearch.mcp.clients.records import Changed, Records
from toolsearch.mcp.clients.table import CLIENTS, App, Place, client_named

__all__ = [
    "CLIENTS",
    "App",
    "Changed",
    "Connection",
    "Place",
    "Records",
    "client_named",
    "connection",
    "gateway_entry",
]
