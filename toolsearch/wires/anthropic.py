"""Anthropic Messages.

reply = client.messages.create(model=…, max_tokens=…, system=…, messages=messages, tools=tools_for(session))
messages += [message_from(reply), *results_for([(call, session.handle(call)) for call in calls_in(reply)])]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolsearch.arguments import ArgumentsError, parse_arguments
from toolsearch.calls import ToolCall, ToolResult, clean
from toolsearch.schema import exported, shortened
from toolsearch.session import Session, Shown

__all__ = ["calls_in", "definition", "message_from", "results_for", "tools_for"]


def tools_for(session: Session, *, description_characters: int | None = None) -> list[dict[str, Any]]:
    """The `tools` of the next request. Earlier entries keep their bytes and places; found tools come at the end."""
    return [definition(shown, description_characters) for shown in session.tools()]


def definition(shown: Shown, description_characters: int | None = None) -> dict[str, Any]:
    """One tool in this format; with a limit, a description that is too long is cut, and says so at its end."""
    schema, note = exported(shown.tool.input_schema)
    text = " ".join(filter(None, (shown.tool.description or shown.tool.fallback_description, note)))
    return {
        "name": shown.name,
        "description": shortened(text, description_characters, shown.tool.id),
        "input_schema": schema,
    }


def message_from(reply: Any) -> dict[str, Any]:
    """The assistant's message of a reply (an SDK object or its dict): its blocks unchanged, calls with valid input."""
    blocks = []
    ids = iter(call.id for call in calls_in(reply))
    for block in _blocks(reply):
        is_call = block.get("type") == "tool_use"
        blocks.append({**block, "id": next(ids), "input": _input(block.get("input"))} if is_call else block)
    return {"role": "assistant", "content": blocks}


def calls_in(reply: Any) -> list[ToolCall]:
    """The calls of a reply, in the model's order; a missing or repeated id is replaced, by place."""
    calls: list[ToolCall] = []
    seen: set[str] = set()
    for at, block in enumerate(_blocks(reply)):
        if block.get("type") == "tool_use":
            call_id = str(block.get("id") or "")
            if not call_id or call_id in seen:
                call_id = f"{call_id or 'toolu'}_{at}"
            seen.add(call_id)
            calls.append(ToolCall(call_id, str(block.get("name") or ""), block.get("input")))
    return calls


def results_for(answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[dict[str, Any]]:
    """The one user message that carries all results back; none where nothing was called."""
    blocks = [
        {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": clean(result.content),
            **({} if result.ok else {"is_error": True}),
        }
        for call, result in answered
    ]
    return [{"role": "user", "content": blocks}] if blocks else []


def _blocks(reply: Any) -> list[Mapping[str, Any]]:
    plain = reply if isinstance(reply, Mapping) else reply.model_dump(exclude_none=True)
    content = plain.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or [] if isinstance(block, Mapping)]


def _input(arguments: Any) -> dict[str, Any]:
    try:
        return parse_arguments(arguments)
    except ArgumentsError:
        return {"unparsed": arguments if isinstance(arguments, str) else str(arguments)}
