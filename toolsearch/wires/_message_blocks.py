"""A transcript, results and definitions as the messages and blocks of Anthropic.

In the mode "native" an answer brings the tools that it found. There are two ways. Either each request declares all
tools, deferred, and the content of the result is `tool_reference` blocks, nothing else; then the text of the answer
follows behind all results. Or a message of the system behind the results has the definitions, as `tool_addition`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from toolsearch.calls import LoadedTool, Part
from toolsearch.calls.parts import shown_image
from toolsearch.catalog.tools import Shown, shown_of
from toolsearch.events.facts import Answers, Message, ModelReplied, UserSaid
from toolsearch.schemas.export import exported, shortened
from toolsearch.schemas.validation import ArgumentsError, parse_arguments
from toolsearch.support.text import LEVELS, clean, is_deeper, legal_name
from toolsearch.wires._user_parts import parts_for
from toolsearch.wires.shared import definitions

__all__ = ["WIRE", "additions_for", "definition", "input_of", "messages_for", "references", "result_blocks"]

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


def definition(shown: Shown, description_characters: int | None = None) -> dict[str, Any]:
    """One tool in this format; with a limit, a description that is too long is cut, and says so at its end."""
    made = exported(shown.tool.input_schema, "anthropic")
    text = " ".join(filter(None, (shown.tool.description or shown.tool.fallback_description, made.note)))
    return {
        "name": shown.name,
        "description": shortened(text, description_characters, shown.tool.id),
        "input_schema": made.schema,
    }


def messages_for(
    transcript: Iterable[Message], *, declared: Collection[str] = (), listed: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """A transcript as the `messages` of a request. A reply of this provider is sent back as it came.

    `declared` are the names of the tools that the request declares, deferred: answers refer to those that they found.
    With `listed`, the names in the request's `tools`, the definitions of all others come by value.

    The provider requires roles to alternate, and results before anything else from the user. So neighbours are merged.
    It takes a message of the system only before one of the assistant, or at the end.
    """
    messages: list[dict[str, Any]] = []
    role: str
    blocks: list[Any]
    toolsets: dict[str, str] = {}  # of the calls of the last reply, by id
    known = {*(listed or ())}
    waiting: list[dict[str, Any]] = []  # additions
    for message in transcript:
        if listed is not None:
            brought = [loaded for loaded in _loaded_in(message) if loaded.name not in known]
            waiting += additions_for(brought)
            known |= {loaded.name for loaded in brought}
        match message:
            case UserSaid():
                role, blocks = "user", [*_text_blocks(message.text), *parts_for("anthropic", message.parts)]
            case ModelReplied():
                role, blocks = "assistant", _assistant(message)
                toolsets = {str(each["id"]): each["toolset_name"] for each in blocks if each.get("toolset_name")}
                messages += [{"role": "system", "content": waiting}] if waiting else []
                waiting = []
            case Answers():
                role = "user"
                blocks = result_blocks(
                    (legal_id(each.call_id), each, toolsets.get(each.call_id, ""), references(each.loaded, declared))
                    for each in message.results
                )
            case _:
                role, blocks = "user", [{"type": "text", "text": f"[{message.text}]"}]
        blocks = blocks or [{"type": "text", "text": "(nothing)"}]
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": list(blocks)})
    return [*messages, {"role": "system", "content": waiting}] if waiting else messages


def _loaded_in(message: Message) -> Iterable[LoadedTool]:
    if isinstance(message, Answers):
        return [loaded for result in message.results for loaded in result.loaded]
    return message.loaded if isinstance(message, UserSaid) else ()


def _assistant(reply: ModelReplied) -> list[Any]:
    if reply.wire == WIRE and isinstance(reply.raw, Mapping):
        ids = iter(call.id for call in reply.calls)  # the session replaces an id that an earlier call has
        return [
            {**block, "id": legal_id(next(ids, str(block.get("id"))))} if block.get("type") == "tool_use" else block
            for block in reply.raw.get("content") or []
        ]
    calls = [
        {
            "type": "tool_use",
            "id": legal_id(call.id),
            "name": legal_name(call.name),
            "input": input_of(call.arguments),
        }
        for call in reply.calls
    ]
    return [*_text_blocks(reply.text), *calls]


def result_blocks(
    answered: Iterable[tuple[str, Result, str, list[dict[str, Any]]]],
) -> list[dict[str, Any]]:
    """The blocks of all results of a round: for each the id of its call, its toolset if any, and its references.

    References stand alone in a result, which then is no error. What the answer says follows behind all results.
    """
    blocks: list[dict[str, Any]] = []
    behind: list[dict[str, Any]] = []
    for call_id, result, toolset, found in answered:
        text, ok = clean(result.content), result.status == "ok"
        if found:
            behind += _text_blocks(text)
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": call_id,
            "content": found or _content(text, result.parts if ok else ()),
        }
        blocks.append(block)
        if toolset:
            block["toolset_name"] = toolset
        if not ok and not found:
            block["is_error"] = True
    return [*blocks, *behind]


def references(loaded: Iterable[LoadedTool], declared: Collection[str] | None = None) -> list[dict[str, Any]]:
    """What an answer found, as the content of its result. A tool that the request does not declare is left out.

    With None for `declared`, all are that can be expressed, as `tools_for` declares them.
    """
    names = [each["name"] for each in definitions(map(shown_of, loaded), definition)]
    return [{"type": "tool_reference", "tool_name": name} for name in names if declared is None or name in declared]


def additions_for(loaded: Iterable[LoadedTool]) -> list[dict[str, Any]]:
    """The definitions of tools, as the content of a message of the system."""
    return [
        {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": each}}
        for each in definitions(map(shown_of, loaded), definition)
    ]


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


def legal_id(call_id: str) -> str:
    """The id of a call as the provider takes it. One that has to be changed stays different from every other."""
    legal = legal_name(call_id)
    if legal == call_id:
        return legal
    digest = hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{legal[:55]}_{digest}"


def input_of(arguments: Any) -> dict[str, Any]:
    """The arguments of a call as the object that the provider requires."""
    try:
        return parse_arguments(arguments)
    except ArgumentsError as error:
        return {"unparsed": str(error) if is_deeper(arguments, LEVELS) else str(arguments)}
