"""A transcript, and results, as the messages and blocks of Anthropic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from toolsearch.calls import Part
from toolsearch.calls.parts import shown_image
from toolsearch.events.facts import Answers, Message, ModelReplied, UserSaid
from toolsearch.schemas.validation import ArgumentsError, parse_arguments
from toolsearch.support.text import LEVELS, clean, is_deeper, legal_name

__all__ = ["WIRE", "input_of", "messages_for", "result_block"]

WIRE = "anthropic"

IMAGE_BYTES = 5_000_000  # the provider refuses a request with a larger image


class Result(Protocol):
    """What is read of a `ToolResult`, or of the fact about it."""

    @property
    def status(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def parts(self) -> tuple[Part, ...]: ...


def messages_for(transcript: Iterable[Message]) -> list[dict[str, Any]]:
    """A transcript as the `messages` of a request. A reply of this provider is sent back as it came.

    The provider requires roles to alternate, and results before anything else from the user. So neighbours are merged.
    """
    messages: list[dict[str, Any]] = []
    toolsets: dict[str, str] = {}  # of the calls of the last reply, by id
    for message in transcript:
        match message:
            case UserSaid():
                role, blocks = "user", [*_text_blocks(message.text), *message.parts]
            case ModelReplied():
                role, blocks = "assistant", _assistant(message)
                toolsets = {str(each["id"]): each["toolset_name"] for each in blocks if each.get("toolset_name")}
            case Answers():
                role, blocks = (
                    "user",
                    [
                        result_block(legal_name(each.call_id), each, toolsets.get(each.call_id, ""))
                        for each in message.results
                    ],
                )
            case _:
                role, blocks = "user", [{"type": "text", "text": f"[{message.text}]"}]
        blocks = blocks or [{"type": "text", "text": "(nothing)"}]
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": list(blocks)})
    return messages


def _assistant(reply: ModelReplied) -> list[Any]:
    if reply.wire == WIRE and isinstance(reply.raw, Mapping):
        ids = iter(call.id for call in reply.calls)  # the session replaces an id that an earlier call has
        return [
            {**block, "id": next(ids, block.get("id"))} if block.get("type") == "tool_use" else block
            for block in reply.raw.get("content") or []
        ]
    calls = [
        {
            "type": "tool_use",
            "id": legal_name(call.id),
            "name": legal_name(call.name),
            "input": input_of(call.arguments),
        }
        for call in reply.calls
    ]
    return [*_text_blocks(reply.text), *calls]


def result_block(call_id: str, result: Result, toolset: str = "") -> dict[str, Any]:
    """The result of one call; of a member of a toolset, with its name."""
    ok = result.status == "ok"
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": call_id,
        "content": _content(clean(result.content), result.parts if ok else ()),
    }
    if toolset:
        block["toolset_name"] = toolset
    return block if ok else {**block, "is_error": True}


def _content(text: str, parts: Iterable[Part]) -> str | list[dict[str, Any]]:
    """The content of a result: its text, or where images are among its parts, blocks with each image in its place.

    In an error the provider takes text only.
    """
    blocks: list[dict[str, Any]] = []
    behind: list[dict[str, Any]] = []  # images whose placeholder a layer has cut or changed
    for part in parts:
        if (image := shown_image(part, IMAGE_BYTES)) is None:
            continue
        mark, media_type, data = image
        block = {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
        before, found, after = text.partition(mark)
        if found:
            blocks += [*_text_blocks(before.strip("\n")), block]
            text = after
        else:
            behind.append(block)
    return [*blocks, *_text_blocks(text.strip("\n")), *behind] if blocks or behind else text


def _text_blocks(text: str) -> list[dict[str, Any]]:
    """A text as blocks: none for a blank one, which the provider refuses."""
    return [{"type": "text", "text": text}] if text.strip() else []


def input_of(arguments: Any) -> dict[str, Any]:
    """The arguments of a call as the object that the provider requires."""
    try:
        return parse_arguments(arguments)
    except ArgumentsError as error:
        return {"unparsed": str(error) if is_deeper(arguments, LEVELS) else str(arguments)}
