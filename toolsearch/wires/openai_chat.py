"""OpenAI Chat Completions, and the many servers that speak it.

reply = client.chat.completions.create(model=…, messages=messages, tools=tools_for(session))
messages += [message_from(reply), *results_for([(call, session.handle(call)) for call in calls_in(reply)])]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolsearch.calls import ToolCall, ToolResult, clean, clean_json, distinct_ids, legal_name
from toolsearch.schema import exported, shortened
from toolsearch.session import Session, Shown

__all__ = ["calls_in", "definition", "message_from", "results_for", "tools_for"]

DESCRIPTION_CHARACTERS = 1_024  # the provider refuses a request with a longer one


def tools_for(session: Session, *, description_characters: int = DESCRIPTION_CHARACTERS) -> list[dict[str, Any]]:
    """The `tools` of the next request. Earlier entries keep their bytes and places; found tools come at the end."""
    return [definition(shown, description_characters) for shown in session.tools()]


def definition(shown: Shown, description_characters: int = DESCRIPTION_CHARACTERS) -> dict[str, Any]:
    """One tool in this format. A description that is too long is cut, and says so at its end."""
    schema, note = exported(shown.tool.input_schema)
    text = " ".join(filter(None, (shown.tool.description or shown.tool.fallback_description, note)))
    description = shortened(text, description_characters, shown.tool.id)
    return {"type": "function", "function": {"name": shown.name, "description": description, "parameters": schema}}


def message_from(reply: Any) -> dict[str, Any]:
    """The assistant's message of a reply (an SDK object or its dict), ready to be sent back with the history."""
    message = _message(reply)
    kept: dict[str, Any] = {"role": "assistant", "content": message.get("content")}
    if message.get("refusal") is not None:
        kept["refusal"] = message["refusal"]
    if isinstance(audio := message.get("audio"), Mapping):
        kept["audio"] = {"id": audio.get("id")}
    if calls := _functions(reply):
        kept["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": legal_name(f.get("name")), "arguments": _valid_json(f.get("arguments"))},
            }
            for call_id, f in calls
        ]
    elif kept.keys() == {"role", "content"} and kept["content"] is None:
        kept["content"] = ""
    cleaned: dict[str, Any] = clean_json(kept)
    return cleaned


def calls_in(reply: Any) -> list[ToolCall]:
    """The calls of a reply, in the model's order."""
    return [ToolCall(call_id, str(f.get("name") or ""), f.get("arguments")) for call_id, f in _functions(reply)]


def results_for(answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[dict[str, Any]]:
    """The messages that carry results back, one for each call."""
    return [
        {"role": "tool", "tool_call_id": clean(call.id), "content": clean(result.content)} for call, result in answered
    ]


def _message(reply: Any) -> Mapping[str, Any]:
    plain = reply if isinstance(reply, Mapping) else reply.model_dump(exclude_none=True, warnings=False)
    choices = plain.get("choices")
    message = choices[0].get("message") if choices else plain.get("message", plain)
    return message if isinstance(message, Mapping) else {}


def _functions(reply: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """Id and function of each call, in every reading alike."""
    calls = [call for call in _message(reply).get("tool_calls") or [] if isinstance(call, Mapping)]
    reply_id = reply.get("id") if isinstance(reply, Mapping) else getattr(reply, "id", None)
    ids = distinct_ids([call.get("id") for call in calls], "call", [reply_id, calls])
    custom = [{"name": (call.get("custom") or {}).get("name"), "arguments": None} for call in calls]
    return [(i, call.get("function") or other) for i, call, other in zip(ids, calls, custom, strict=True)]


def _valid_json(arguments: Any) -> str:
    """Arguments as the JSON object a provider demands in a history; malformed text is kept inside one."""
    if isinstance(arguments, Mapping):
        return json.dumps(clean_json(arguments), ensure_ascii=False)
    text = clean(arguments) if isinstance(arguments, str) else ""
    if not text.strip() or text.strip() == "null":
        return "{}"
    try:
        value = json.loads(text, parse_constant=_refuse)
        cleaned = clean_json(value)
    except (ValueError, RecursionError):
        value = cleaned = None
    if not isinstance(value, dict):
        return json.dumps({"unparsed": text}, ensure_ascii=False)
    return text if cleaned == value else json.dumps(cleaned, ensure_ascii=False)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
