"""One server of MCP in front of all others: clients search it, and call what they find through it.

gateway         Gateway: its beginning and end          parts          what it is made of, put together
handlers        the methods that a client can call      clients        who sends a request
settings        how a gateway behaves                   conversations  what is kept for each client
lists           which tools a client is shown           descriptions   the gateway's own tools, in words
shown_tools     what of the servers may be found        served_names   what tools are called here
searches        the search                              resolving      which tool a name means
tool_calls      the way of one call                     asking         a question to the person at a client
results         results of the gateway's own            in_flight      the calls that run at each server
passing         resources, prompts, completion          meta           metadata that goes on to a server
changes         what changes, and who is told           saved_catalog  what an earlier run knew
gateway_log     a line for each search and call         spans          OpenTelemetry
http            the gateway over HTTP, on loopback
"""

from toolsearch.mcp.gateway.gateway import Gateway
from toolsearch.mcp.gateway.settings import GatewaySettings

__all__ = ["Gateway", "GatewaySettings"]
