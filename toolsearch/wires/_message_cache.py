"""Where the breakpoints of Anthropic's cache go in a request."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from toolsearch.support.json_types import JsonObject

__all__ = ["TimeToLive", "with_cache"]

TimeToLive: TypeAlias = Literal["5m", "1h"]

_UNMARKED = ("thinking", "redacted_thinking")  # blocks that the provider takes no breakpoint on


def with_cache(arguments: JsonObject, ttl: TimeToLive = "5m") -> dict[str, Any]:
    """The arguments of `messages.create`, marked so that the provider keeps the beginning of the request in its cache.

    There are three marks: on the last tool that is not deferred, on the system text, and on the last block of the last
    message. The provider takes four, so that one is left for the program. Nothing that was passed is changed.
    """
    mark = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    marked = dict(arguments)
    if tools := marked.get("tools"):
        listed = [place for place, tool in enumerate(tools) if not tool.get("defer_loading")]
        marked["tools"] = _marked(tools, listed[-1:], mark)
    if system := marked.get("system"):
        marked["system"] = _marked_end(system, mark)
    if messages := marked.get("messages"):
        *before, last = messages
        marked["messages"] = [*before, {**last, "content": _marked_end(last["content"], mark)}]
    return marked


def _marked_end(content: Any, mark: JsonObject) -> list[Any]:
    """A text, or blocks, with the mark on the last block that can have it."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    takes = [place for place, block in enumerate(blocks) if block.get("type") not in _UNMARKED]
    return _marked(blocks, takes[-1:], mark)


def _marked(items: Any, places: list[int], mark: JsonObject) -> list[Any]:
    return [{**item, "cache_control": dict(mark)} if at in places else item for at, item in enumerate(items)]
