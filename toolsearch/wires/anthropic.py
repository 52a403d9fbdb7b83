"""Anthropic Messages.

reply = client.messages.create(model=…, max_tokens=…, system=…, messages=messages, tools=tools_for(session))
messages += [message_from(reply), *results_for([(call, session.handle(call)) for call in calls_in(reply)])]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolsearch.arguments import ArgumentsError, parse_arguments
from toolsearch.calls import ToolCall, ToolResult, clean, clean_json, distinct_ids, legal_name
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
    ids = iter(call.id for call in calls_in(reply))
    blocks: list[Any] = []
    for block in _blocks(reply):
        if block.get("type") == "tool_use":
            name, given = legal_name(block.get("name")), _input(block.get("input"))
            blocks.append({**block, "id": next(ids), "name": name, "input": given})
        elif block.get("type") != "text" or str(block.get("text") or "").strip():
            blocks.append(block)
    # The provider refuses a history with blank text or with no block at all.
    return {"role": "assistant", "content": clean_json(blocks or [{"type": "text", "text": "(no answer)"}])}


def calls_in(reply: Any) -> list[ToolCall]:
    """The calls of a reply, in the model's order; a missing or repeated id is replaced."""
    blocks = [block for block in _blocks(reply) if block.get("type") == "tool_use"]
    reply_id = reply.get("id") if isinstance(reply, Mapping) else getattr(reply, "id", None)
    ids = distinct_ids([block.get("id") for block in blocks], "toolu", [reply_id, blocks])
    return [
        ToolCall(call_id, str(block.get("name") or ""), block.get("input"))
        for call_id, block in zip(ids, blocks, strict=True)
    ]


def results_for(answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[dict[str, Any]]:
    """The one user message that carries all results back; none where nothing was called."""
    blocks = [
        {
            "type": "tool_result",
            "tool_use_id": clean(call.id),
            "content": clean(result.content),
            **({} if result.ok else {"is_error": True}),
        }
        for call, result in answered
    ]
    return [{"role": "user", "content": blocks}] if blocks else []


def _blocks(reply: Any) -> list[Mapping[str, Any]]:
    plain = reply if isinstance(reply, Mapping) else reply.model_dump(exclude_none=True, warnings=False)
    content = plain.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = [block for block in content or [] if isinstance(block, Mapping)]
    return [{key: value for key, value in block.items() if value is not None} for block in blocks]


def _input(arguments: Any) -> dict[str, Any]:
    try:
        return parse_arguments(arguments)
    except ArgumentsError:
        return {"unparsed": arguments if isinstance(arguments, str) else str(arguments)}
