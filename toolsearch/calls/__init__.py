"""A call that a model makes, and its answer.

values    a call, its result, the caller, and what a running tool may know about them
parts     what a result consists of: text, images, sound, resources, JSON
returned  what a tool returned, as its result
answers   the answers of the library itself, within one bound
loaded_tools  definitions that reach the model in the middle of a conversation, and what a wire can do about them
"""

from toolsearch.calls.loaded_tools import LoadedTool, NativeDelivery, native_of
from toolsearch.calls.parts import AudioPart, ImagePart, JsonPart, Part, ResourcePart, TextPart
from toolsearch.calls.values import (
    STATUSES,
    Caller,
    Status,
    ToolCall,
    ToolContext,
    ToolResult,
    actor_of,
    check_caller,
)

__all__ = [
    "STATUSES",
    "AudioPart",
    "Caller",
    "ImagePart",
    "JsonPart",
    "LoadedTool",
    "NativeDelivery",
    "Part",
    "ResourcePart",
    "Status",
    "TextPart",
    "ToolCall",
    "ToolContext",
    "ToolResult",
    "actor_of",
    "check_caller",
    "native_of",
]
