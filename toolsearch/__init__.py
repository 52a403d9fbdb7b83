"""Search a catalog of tools and hand an agent the few it needs.

What a program uses
    tool_search     ToolSearch: the front door              settings       every setting
    calls           a call, its answer, who it is for       errors         what can go wrong, by whose fault
    protocols       every plug on one page                  tokens         counting, offline
    builtin_tools   tools an agent always has               testing        kits that prove a plug, public doubles
    delegation      an agent as a tool of another one

The packages, each with a map in its first lines
    catalog         what there is                           search         finding it, through any index
    session         what one conversation may see and call  events         what a conversation is made of
    loop            the agent loop                          layers         what governs and watches it
    stores          where conversations live                wires          one provider format a module
    frameworks      inside the agents of other frameworks   mcp             servers of MCP, and a gateway
    schemas         JSON Schema, in and out                 cli            the `toolsearch` command
    support         small helpers, for inside use only
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolsearch.calls import (
    AudioPart,
    Caller,
    ImagePart,
    JsonPart,
    Part,
    ResourcePart,
    Status,
    TextPart,
    ToolCall,
    ToolContext,
    ToolResult,
)
from toolsearch.catalog import Catalog, Change, Quarantined, Shown, Tool, tool
from toolsearch.errors import (
    AnswerError,
    DefinitionError,
    MissingExtra,
    NotExportable,
    QueryError,
    ReplyError,
    SetupError,
    StateError,
    ToolSearchError,
    UnknownTool,
)
from toolsearch.protocols import Matched, Scored, ToolIndex
from toolsearch.search import Hit, Hits, Learned, Suggestion, TaughtLesson, find, open_index
from toolsearch.session import CallPlan, Session
from toolsearch.settings import Settings
from toolsearch.tool_search import ToolSearch

if TYPE_CHECKING:
    from toolsearch.events import (
        Answer,
        Approve,
        CallModel,
        Deny,
        Finished,
        Paused,
        Reply,
        TextDelta,
        UserSaid,
        Waiting,
    )
    from toolsearch.loop import Agent, Conversation

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Answer",
    "AnswerError",
    "Approve",
    "AudioPart",
    "CallModel",
    "CallPlan",
    "Caller",
    "Catalog",
    "Change",
    "Conversation",
    "DefinitionError",
    "Deny",
    "Finished",
    "Hit",
    "Hits",
    "ImagePart",
    "JsonPart",
    "Learned",
    "Matched",
    "MissingExtra",
    "NotExportable",
    "Part",
    "Paused",
    "Quarantined",
    "QueryError",
    "Reply",
    "ReplyError",
    "ResourcePart",
    "Scored",
    "Session",
    "Settings",
    "SetupError",
    "Shown",
    "StateError",
    "Status",
    "Suggestion",
    "TaughtLesson",
    "TextDelta",
    "TextPart",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolIndex",
    "ToolResult",
    "ToolSearch",
    "ToolSearchError",
    "UnknownTool",
    "UserSaid",
    "Waiting",
    "find",
    "open_index",
    "tool",
]

logging.getLogger("toolsearch").addHandler(logging.NullHandler())

# The names of the loop, by the package that has them: imported only where they are used.
_LATER = {
    "Agent": "loop",
    "Answer": "events",
    "Approve": "events",
    "CallModel": "events",
    "Conversation": "loop",
    "Deny": "events",
    "Finished": "events",
    "Paused": "events",
    "Reply": "events",
    "TextDelta": "events",
    "UserSaid": "events",
    "Waiting": "events",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    """The public names, and the modules that are loaded."""
    private = {"Any", "TYPE_CHECKING", "_LATER", "import_module", "logging"}
    return sorted({*globals(), *__all__} - private)
