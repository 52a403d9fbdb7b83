"""Search a catalog of tools and hand an agent the few it needs.

catalog     Tool, Catalog: what there is        search      ToolSearch: the front door
index       ToolIndex, Hit: the search seam     session     Session: what one conversation may see and call
calls       ToolCall, ToolResult, Caller        wires       one provider format a module
settings    every setting                       errors      what can go wrong, by whose fault
tokens      counting, offline                   testing     check_index and public doubles
"""

import logging

from toolsearch.calls import Caller, Status, ToolCall, ToolContext, ToolResult
from toolsearch.catalog import Catalog, Change, Quarantined, Tool, tool
from toolsearch.errors import (
    DefinitionError,
    MissingExtra,
    QueryError,
    SetupError,
    StateError,
    ToolSearchError,
    UnknownTool,
)
from toolsearch.index import Hit, Hits, Matched, Scored, ToolIndex, find, open_index
from toolsearch.learned import Learned
from toolsearch.search import ToolSearch
from toolsearch.session import Decision, Session, Shown
from toolsearch.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "Caller",
    "Catalog",
    "Change",
    "Decision",
    "DefinitionError",
    "Hit",
    "Hits",
    "Learned",
    "Matched",
    "MissingExtra",
    "Quarantined",
    "QueryError",
    "Scored",
    "Session",
    "Settings",
    "SetupError",
    "Shown",
    "StateError",
    "Status",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolIndex",
    "ToolResult",
    "ToolSearch",
    "ToolSearchError",
    "UnknownTool",
    "find",
    "open_index",
    "tool",
]

logging.getLogger("toolsearch").addHandler(logging.NullHandler())
