"""What stands between a client and the servers of others. Nothing here knows a connection, or needs a package of MCP.

policy        which calls are allowed, asked about, or denied, by patterns
pins          the definitions that were approved; one that changed later is held back
definitions   what of a definition is pinned, and the difference between two, for people
pin_files     where pins live: a file that several processes share
reviewing     what servers offer now, compared with the pins, and approvals
result_pages  results that are too long for a model, kept whole and handed out in pages
configured    the policy and the pins that a configuration asks for
arguments     the arguments of a call, be they an object or its JSON text
"""

from toolsearch.mcp.guards.arguments import UnreadableArguments, read_arguments
from toolsearch.mcp.guards.definitions import said_by
from toolsearch.mcp.guards.pins import Held, Pins
from toolsearch.mcp.guards.policy import Policy, Verdict
from toolsearch.mcp.guards.result_pages import FETCH_RESULT, ResultPages

__all__ = [
    "FETCH_RESULT",
    "Held",
    "Pins",
    "Policy",
    "ResultPages",
    "UnreadableArguments",
    "Verdict",
    "read_arguments",
    "said_by",
]
