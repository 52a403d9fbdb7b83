"""The items of a reply of OpenAI Responses: what it calls, what it says, and what goes back with the history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolsearch.errors import ReplyError, SetupError
from toolsearch.schemas.parallel_calls import inner_calls
from toolsearch.schemas.validation import ArgumentsError, parse_arguments
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import LEVELS, is_deeper, legal_name, plain_json
from toolsearch.wires._arguments import valid_json
from toolsearch.wires._reading import mapping, reply_error
from toolsearch.wires.shared import distinct_ids, fields_of

__all__ = ["TOOL_SEARCH", "input_of", "is_call", "items_of", "refuse_errors", "sent_back", "stop_of", "texts_in"]

TOOL_SEARCH = "tool_search"  # a search tool of this name is the provider's own tool, which the program carries out

# What replies of other formats have, and the wire that reads them. Read as Responses, they would seem to call nothing.
_OTHERS = {
    "choices": "this is a chat completion: use toolsearch.wires.openai_chat",
    "content": "this is a message of Anthropic: use toolsearch.wires.anthropic",
}


def items_of(reply: object) -> list[dict[str, Any]]:
    """The items of a reply, each call with an id of its own; an item that stands for several calls is split."""
    plain = fields_of(reply)
    for key, what in _OTHERS.items():
        if key in plain and "output" not in plain:
            raise SetupError(f"this wire reads replies of OpenAI Responses, but {what}")
    output = plain.get("output")
    given = [item for item in output if isinstance(item, Mapping)] if isinstance(output, list | tuple) else []
    items = [each for item in given if isinstance(item.get("type"), str) for each in _parts(item)]
    calls = [item for item in items if is_call(item)]
    ids = distinct_ids([call.get("call_id") for call in calls], "call", [plain.get("id"), calls])
    for call, call_id in zip(calls, ids, strict=True):
        call["call_id"] = call_id
    return items


def _parts(item: JsonObject) -> list[dict[str, Any]]:
    """A copy of the item without what is null; one for each call if it stands for several."""
    # The SDK writes `async` with an underscore, because it is a word of Python.
    own = {"async" if key == "async_" else key: value for key, value in item.items() if value is not None}
    inner = inner_calls(own.get("name"), own.get("arguments")) if own.get("type") == "function_call" else []
    if not inner:
        return [own]
    first, *rest = [{"type": "function_call", "name": name, "arguments": given} for name, given in inner]
    return [{**own, **first}, *rest]


def is_call(item: JsonObject) -> bool:
    """Whether an item is a call that the session answers. A tool of the provider's, and a custom tool, is not."""
    kind = item.get("type")
    return kind == "function_call" or (kind == "tool_search_call" and item.get("execution") == "client")


def input_of(arguments: Any) -> dict[str, Any]:
    """The arguments of a search of this provider, which are an object; what is none is kept inside one."""
    try:
        return parse_arguments(arguments)
    except ArgumentsError as error:
        return {"unparsed": str(error) if is_deeper(arguments, LEVELS) else str(arguments)}


def sent_back(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items as the provider takes them back: unchanged, but for what makes it refuse the whole request."""
    kept: list[Any] = []
    for item in items:
        match item.get("type"):
            case "function_call":
                name, arguments = legal_name(item.get("name")), valid_json(item.get("arguments"))
                kept.append({**_known(item), "name": name, "arguments": arguments})
            case "tool_search_call" if is_call(item):
                kept.append({**item, "arguments": input_of(item.get("arguments"))})
            case "message":
                kept.append({"role": "assistant", **item, "content": _contents(item)})
            case _:
                kept.append(item)
    while kept and kept[-1].get("type") == "reasoning":  # a thought that nothing follows, in a reply that was cut
        kept.pop()
    plain: list[dict[str, Any]] = plain_json(kept)
    return plain


def _known(part: JsonObject) -> dict[str, Any]:
    """Without what `client.responses.parse` adds, which the provider does not take back."""
    return {key: value for key, value in part.items() if key not in ("parsed", "parsed_arguments")}


def _contents(message: JsonObject) -> object:
    content = message.get("content")
    if not isinstance(content, list | tuple):
        return content if isinstance(content, str) else []
    return [_known(part) for part in content if isinstance(part, Mapping)]


def texts_in(items: list[dict[str, Any]]) -> tuple[str, str, str]:
    """The text, the refusal and the reasoning of a reply.

    If a message is marked as the final answer, the text is that of the final answer only, without remarks on the way.
    """
    messages = [item for item in items if item.get("type") == "message"]
    final = [message for message in messages if message.get("phase") == "final_answer"]
    parts = [part for message in final or messages for part in _texts_of(message.get("content"))]
    thoughts = [item for item in items if item.get("type") == "reasoning"]
    reasoning = [
        text
        for thought in thoughts
        for key in ("summary", "content")
        for _, text in _texts_of(thought.get(key))
    ]  # fmt: skip
    said = "".join(text for kind, text in parts if kind != "refusal")
    return said, "".join(text for kind, text in parts if kind == "refusal"), "\n\n".join(reasoning)


def _texts_of(parts: object) -> Iterator[tuple[str, str]]:
    """The kind and text of each part; a message may be a plain text too."""
    if isinstance(parts, str):
        yield "", parts
    for part in parts if isinstance(parts, list | tuple) else []:
        if isinstance(part, Mapping):
            kind = str(part.get("type") or "")
            text = part.get("refusal" if kind == "refusal" else "text")
            if isinstance(text, str) and text:
                yield kind, text


def refuse_errors(plain: JsonObject) -> None:
    """Raises `ReplyError` for a body that is no reply: some failures are reported with status 200."""
    status = plain.get("status")
    if plain.get("error") or status == "failed":
        raise reply_error(plain.get("error"), "the provider ended its reply with an error, and names none")
    if not isinstance(plain.get("output"), list | tuple):
        raise reply_error(None, "the provider answered with nothing: there is no output in its reply")
    if status in ("queued", "in_progress"):
        raise ReplyError(
            f"the provider has not finished its reply: its status is {status!r}. Leave out the option `background`"
        )


def stop_of(plain: JsonObject, items: list[dict[str, Any]]) -> str:
    """The provider's word for why the reply ended; it has none for a refusal, which it marks in another way."""
    reason = mapping(plain.get("incomplete_details")).get("reason")
    word = reason or plain.get("status")
    stop = word if isinstance(word, str) else ""
    text, refusal, _ = texts_in(items)
    return "refusal" if stop in ("", "completed") and refusal and not text else stop
