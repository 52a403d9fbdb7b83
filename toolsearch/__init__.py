"""Search a catalog of tools and hand an agent the few it needs.

catalog     Tool, Catalog: what there is        search      ToolSearch: the front door
index       ToolIndex, Hit: the search seam     session     Session: what one conversation may see and call
calls       ToolCall, ToolResult, Caller        wires       one provider format a module
settings    every setting                       errors      what can go wrong, by whose fault
tokens      counting, offline                   testing     check_index and public doubles

agent       Agent: the loop, run and arun       layers      what governs and watches it, one concern a module
seams       Finished, Paused; Approve, Deny     stores      where conversations live
"""

import logging
from typing import TYPE_CHECKING, Any

from toolsearch.calls import Caller, Status, ToolCall, ToolContext, ToolResult
from toolsearch.catalog import Catalog, Change, Quarantined, Tool, tool
from toolsearch.errors import (
    AnswerError,
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

if TYPE_CHECKING:
    from toolsearch.agent import Agent
    from toolsearch.seams import Answer, Approve, Deny, Finished, Paused

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Answer",
    "AnswerError",
    "Approve",
    "Caller",
    "Catalog",
    "Change",
    "Decision",
    "DefinitionError",
    "Deny",
    "Finished",
    "Hit",
    "Hits",
    "Learned",
    "Matched",
    "MissingExtra",
    "Paused",
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

_LATER = {
    "Agent": "agent",
    "Answer": "seams",
    "Approve": "seams",
    "Deny": "seams",
    "Finished": "seams",
    "Paused": "seams",
}


def __getattr__(name: str) -> Any:
    """The names of the loop, which is imported only where it is used."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"toolsearch.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
