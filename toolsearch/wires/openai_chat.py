"""OpenAI Chat Completions, and the many servers that speak it.

reply = client.chat.completions.create(model=…, messages=messages, tools=tools_for(session))
messages += [message_from(reply), *results_for([(call, session.handle(call)) for call in calls_in(reply)])]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolsearch.calls import ToolCall, ToolResult, clean
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
    kept |= {k: message[k] for k in ("refusal", "audio") if message.get(k) is not None}
    calls = message.get("tool_calls") or []
    if calls:
        kept["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": str(f.get("name") or ""), "arguments": _valid_json(f.get("arguments"))},
            }
            for call_id, f in _functions(calls)
        ]
    return kept


def calls_in(reply: Any) -> list[ToolCall]:
    """The calls of a reply, in the model's order."""
    return [
        ToolCall(call_id, str(f.get("name") or ""), f.get("arguments"))
        for call_id, f in _functions(_message(reply).get("tool_calls") or [])
    ]


def results_for(answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[dict[str, Any]]:
    """The messages that carry results back, one for each call."""
    return [{"role": "tool", "tool_call_id": call.id, "content": clean(result.content)} for call, result in answered]


def _message(reply: Any) -> Mapping[str, Any]:
    plain = reply if isinstance(reply, Mapping) else reply.model_dump(exclude_none=True)
    choices = plain.get("choices")
    message = choices[0].get("message") if choices else plain.get("message", plain)
    return message if isinstance(message, Mapping) else {}


def _functions(calls: Iterable[Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Id and function of each call; a missing or repeated id is replaced, by place, in every reading alike."""
    functions, seen = [], set()
    for at, call in enumerate(calls):
        call_id = str(call.get("id") or "")
        if not call_id or call_id in seen:
            call_id = f"{call_id or 'call'}_{at}"
        seen.add(call_id)
        function = call.get("function") or {"name": (call.get("custom") or {}).get("name"), "arguments": None}
        functions.append((call_id, function))
    return functions


def _valid_json(arguments: Any) -> str:
    """Arguments as the JSON object a provider demands in a history; malformed text is kept inside one."""
    if isinstance(arguments, Mapping):
        return json.dumps(arguments, ensure_ascii=False)
    text = clean(arguments) if isinstance(arguments, str) else ""
    if not text.strip() or text.strip() == "null":
        return "{}"
    try:
        return text if isinstance(json.loads(text), dict) else json.dumps({"unparsed": text}, ensure_ascii=False)
    except (ValueError, RecursionError):
        return json.dumps({"unparsed": text}, ensure_ascii=False)
