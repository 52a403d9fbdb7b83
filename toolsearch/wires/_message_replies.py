"""The reply of Anthropic: its calls, its blocks as they go back, and what an agent reads of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolsearch.calls import ToolCall
from toolsearch.errors import SetupError
from toolsearch.events.facts import Reply, Usage
from toolsearch.events.stops import with_cut_end
from toolsearch.schemas.parallel_calls import inner_calls
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import legal_name, plain_json
from toolsearch.wires._message_blocks import WIRE, input_of
from toolsearch.wires._reading import count_in, reply_error
from toolsearch.wires.shared import distinct_ids, fields_of

__all__ = ["MemberCall", "calls_in", "message_from", "reply_from"]


def message_from(reply: object) -> dict[str, Any]:
    """The assistant's message of a reply (an SDK object or its dict): its blocks unchanged, calls with valid input."""
    ids = iter(call.id for call in calls_in(reply))
    blocks: list[Any] = []
    for block in _blocks(reply):
        if block.get("type") == "tool_use":
            name, arguments = legal_name(block.get("name")), input_of(block.get("input"))
            blocks.append({**block, "id": next(ids), "name": name, "input": arguments})
        elif block.get("type") != "text" or str(block.get("text") or "").strip():
            blocks.append(block)
    # The provider refuses a history with blank text or with no block at all.
    return {"role": "assistant", "content": plain_json(blocks or [{"type": "text", "text": "(no answer)"}])}


def calls_in(reply: object) -> list[ToolCall]:
    """The calls of a reply, in the model's order; a missing or repeated id is replaced."""
    blocks = [block for block in _blocks(reply) if block.get("type") == "tool_use"]
    reply_id = reply.get("id") if isinstance(reply, Mapping) else getattr(reply, "id", None)
    ids = distinct_ids([block.get("id") for block in blocks], "toolu", [reply_id, blocks])
    calls = [_call(call_id, block) for call_id, block in zip(ids, blocks, strict=True)]
    return list(with_cut_end(calls, _stop(fields_of(reply))))


@dataclass(frozen=True, slots=True)
class MemberCall(ToolCall):
    """A call of a member of one of the provider's toolsets, such as its browser: the result has to name the toolset."""

    toolset_name: str = ""


def _call(call_id: str, block: JsonObject) -> ToolCall:
    name, toolset = str(block.get("name") or ""), block.get("toolset_name")
    if isinstance(toolset, str) and toolset:
        return MemberCall(call_id, name, block.get("input"), toolset_name=toolset)
    return ToolCall(call_id, name, block.get("input"))


def reply_from(reply: object) -> Reply:
    """A reply of the provider (an SDK object or its dict) as an agent reads it.

    Raises `ReplyError` for an error in place of a reply, and `SetupError` for what is no message of Anthropic.
    """
    plain = fields_of(reply)
    blocks = _blocks(plain)
    if plain.get("type") == "error" or plain.get("content") is None:
        raise reply_error(plain.get("error"), "the provider answered with nothing: there is no content in its reply")
    usage = plain.get("usage")
    read, written = (count_in(usage, f"cache_{what}_input_tokens") for what in ("read", "creation"))
    return Reply(
        text="".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text"),
        calls=tuple(calls_in(plain)),
        usage=Usage(count_in(usage, "input_tokens") + read + written, read, count_in(usage, "output_tokens")),
        reasoning="".join(str(block.get("thinking") or "") for block in blocks if block.get("type") == "thinking"),
        raw=message_from(plain),
        wire=WIRE,
        model=str(plain.get("model") or ""),
        stop=_stop(plain),
    )


def _blocks(reply: object) -> list[JsonObject]:
    plain = fields_of(reply)
    if "choices" in plain:  # read as a message it would seem to call nothing
        raise SetupError("this wire reads messages of Anthropic, but this is a chat completion: use openai_chat")
    content = plain.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, list | tuple) else []
    return [
        {key: value for key, value in block.items() if value is not None} for each in blocks for block in _parts(each)
    ]


def _parts(block: JsonObject) -> list[JsonObject]:
    """A block that stands for several calls as one block for each; any other block as it is."""
    inner = inner_calls(block.get("name"), block.get("input")) if block.get("type") == "tool_use" else []
    if not inner:
        return [block]
    first, *rest = [{"type": "tool_use", "name": name, "input": given or {}} for name, given in inner]
    return [{**first, "id": block.get("id")}, *rest]


def _stop(plain: JsonObject) -> str:
    word = plain.get("stop_reason")
    return word if isinstance(word, str) else ""
