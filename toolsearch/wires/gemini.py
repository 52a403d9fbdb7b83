"""Gemini, by Google's `google-genai`.

In a loop of your own:

    config = {"system_instruction": …, "tools": [{"function_declarations": tools_for(session)}]}
    config |= {"automatic_function_calling": {"disable": True}}
    reply = client.models.generate_content(model=…, contents=contents, config=config)
    contents += [message_from(reply), *results_for([(call, session.handle(call)) for call in calls_in(reply)])]

For an `Agent`: `model(client, "gemini-…")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from toolsearch.calls import ToolCall, ToolResult
from toolsearch.catalog.tools import Shown
from toolsearch.errors import SetupError
from toolsearch.events.facts import Message, Reply, Usage
from toolsearch.events.requests import CallModel
from toolsearch.events.stops import stopped, with_cut_end
from toolsearch.protocols import AsyncReplyStream, ReplyStream, ShowsTools
from toolsearch.schemas.export import exported, shortened
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import clean, plain_json
from toolsearch.wires._arguments import arguments_object
from toolsearch.wires._gemini_contents import contents_for, results_of
from toolsearch.wires._gemini_parts import (
    in_snake_case,
    meant_name,
    parts_in,
    plain_reply,
    sent_name,
)
from toolsearch.wires._gemini_pieces import GeminiPieces
from toolsearch.wires._reading import count_in, reply_error
from toolsearch.wires._user_parts import with_schema
from toolsearch.wires.shared import answered_calls, definitions, distinct_ids, own_tools, read_answer

__all__ = [
    "GeminiClient",
    "GeminiModel",
    "calls_in",
    "definition",
    "message_from",
    "messages_for",
    "model",
    "reply_from",
    "results_for",
    "tools_for",
]

WIRE = "gemini"


def tools_for(session: ShowsTools, *, description_characters: int | None = None) -> list[dict[str, Any]]:
    """The `function_declarations` of the one tool of the next request. Earlier ones keep their bytes and places."""
    checks.having("session", session, "a Session, as ToolSearch(…).session() gives", "tools")
    checks.whole("description_characters", description_characters, 100, none="for no limit")
    return definitions(session.tools(), lambda shown: definition(shown, description_characters))


def definition(shown: Shown, description_characters: int | None = None) -> dict[str, Any]:
    """One tool in this format.

    A name that begins with a digit or a dash gets an underscore before it, which `calls_in` takes off again. With a
    limit, a description that is too long is cut, and says so at its end.
    """
    made = exported(shown.tool.input_schema, "gemini")
    text = " ".join(filter(None, (shown.tool.description or shown.tool.fallback_description, made.note)))
    return {
        "name": sent_name(shown.name),
        "description": shortened(text, description_characters, shown.tool.id),
        "parameters_json_schema": made.schema,
    }


def message_from(reply: object) -> dict[str, Any]:
    """The content of a reply (an SDK object or its dict) to send back: all its parts, with their signatures.

    Calls have valid arguments, and ids also where the provider gave none.
    """
    return _kept(_parts(plain_reply(reply)))


def _kept(parts: list[dict[str, Any]]) -> dict[str, Any]:
    made = [{**p, "function_call": _valid(p["function_call"])} if "function_call" in p else p for p in parts]
    return {"role": "model", "parts": plain_json(made or [{"text": "(no answer)"}])}


def _valid(call: JsonObject) -> dict[str, Any]:
    name = sent_name(meant_name(str(call.get("name") or "")))
    return {**call, "name": name, "args": arguments_object(call.get("args"))}


def calls_in(reply: object) -> list[ToolCall]:
    """The calls of a reply, in the model's order; a missing or repeated id is replaced."""
    plain = plain_reply(reply)
    return _calls(_parts(plain), _stop(plain))


def _calls(parts: list[dict[str, Any]], stop: str) -> list[ToolCall]:
    calls = [part["function_call"] for part in parts if "function_call" in part]
    return list(
        with_cut_end([ToolCall(c["id"], meant_name(str(c.get("name") or "")), c.get("args")) for c in calls], stop)
    )


def results_for(answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[dict[str, Any]]:
    """The one content that carries all results back, and behind it one with their images; [] if nothing was called."""
    pairs = [(sent_name(call.name), call.id, result) for call, result in answered_calls(answered)]
    return results_of([(name, call_id, result.ok, result.content, result.parts) for name, call_id, result in pairs])


# -- for an agent ------------------------------------------------------------------------------------------------


def model(client: GeminiClient, name: str, *, stream: bool = True, **options: object) -> GeminiModel:
    """A model for an `Agent`, asked through a `genai.Client`, or through its `aio`; `options` go into every `config`.

    An option that is None is left out. The `tools` among the options, such as `[{"google_search": {}}]`, come before
    those of the session.
    """
    wanted = "a genai.Client, or its aio for arun"
    checks.having("client", client, wanted, "models.generate_content", "models.generate_content_stream")
    checks.text("name", name, empty=False)
    checks.flag("stream", stream)
    return GeminiModel(client, name, stream, options)


class Generates(Protocol):
    """The part of a client that sends a request."""

    @property
    def generate_content(self) -> Callable[..., object]: ...
    @property
    def generate_content_stream(self) -> Callable[..., object]: ...


class GeminiClient(Protocol):
    """What is used of a `genai.Client`, of its `aio`, or of one that wraps it."""

    @property
    def models(self) -> Generates: ...


class GeminiModel:
    """Asks the provider; with `stream`, its reply is shown as it comes in. An async client needs `arun`."""

    takes_schema = True

    def __init__(self, client: GeminiClient, name: str, stream: bool, options: JsonObject) -> None:
        self.client, self.name, self.stream, self.options = client, name, stream, dict(options)

    def request_for(self, request: CallModel) -> dict[str, Any]:
        """The arguments of `generate_content`. With tools, a schema is asked for in words: not all models take both."""
        config: dict[str, Any] = {"automatic_function_calling": {"disable": True}}
        system, declared = request.system, definitions(request.tools, definition)
        own, options = own_tools(self.options | dict(request.options), request)
        tools = [*own, *([{"function_declarations": declared}] if declared else [])]
        if tools:
            system = with_schema(system, request.schema)
        elif request.schema is not None:
            config |= {"response_mime_type": "application/json", "response_json_schema": dict(request.schema)}
        config |= {"system_instruction": clean(system) or None, **options, "tools": tools or None}
        if not declared:  # the provider refuses settings for functions that there are not
            config["tool_config"] = None
        kept = {name: value for name, value in config.items() if value is not None}
        return {"model": self.name, "contents": messages_for(request.transcript), "config": kept}

    def __call__(self, request: CallModel) -> ReplyStream | AsyncReplyStream:
        models, arguments = self.client.models, self.request_for(request)
        ask = models.generate_content_stream if self.stream else models.generate_content
        return read_answer(ask(**arguments), reply_from, GeminiPieces() if self.stream else None)


def reply_from(reply: object) -> Reply:
    """A reply of the provider (an SDK object or its dict) as an agent reads it.

    Raises `ReplyError` for an error in place of a reply, and `SetupError` for what is no reply of Gemini.
    """
    plain = plain_reply(reply)
    parts, stop = _parts(plain), _stop(plain)
    if not stop and not _has_candidate(plain):
        raise reply_error(
            plain.get("error"), "the provider answered with nothing: there are no candidates in its reply"
        )
    usage = in_snake_case(plain.get("usage_metadata"))
    texts: dict[bool, list[str]] = {True: [], False: []}
    for part in parts:
        if isinstance(part.get("text"), str):
            texts[bool(part.get("thought"))].append(part["text"])
    return Reply(
        text="".join(texts[False]),
        calls=tuple(_calls(parts, stop)),
        usage=Usage(
            count_in(usage, "prompt_token_count") + count_in(usage, "tool_use_prompt_token_count"),
            count_in(usage, "cached_content_token_count"),
            count_in(usage, "candidates_token_count") + count_in(usage, "thoughts_token_count"),
        ),
        reasoning="".join(texts[True]),
        raw=_kept(parts),
        wire=WIRE,
        model=str(plain.get("model_version") or ""),
        stop=stop,
    )


def messages_for(transcript: Iterable[Message]) -> list[dict[str, Any]]:
    """A transcript as the `contents` of a request. A reply of this provider is sent back as it came."""
    return contents_for(transcript, WIRE)


# -- inside ------------------------------------------------------------------------------------------------------


def _has_candidate(plain: JsonObject) -> bool:
    candidates = plain.get("candidates")
    return isinstance(candidates, list) and any(isinstance(each, Mapping) and each for each in candidates)


def _parts(plain: JsonObject) -> list[dict[str, Any]]:
    """The parts of a reply, each call with an id of its own."""
    if "choices" in plain:  # read as contents it would seem to call nothing
        raise SetupError("this wire reads replies of Gemini, but this is a chat completion: use openai_chat")
    parts = parts_in(plain)
    calls = [in_snake_case(part["function_call"]) for part in parts if "function_call" in part]
    told = [[call.get("id"), call.get("name"), call.get("args")] for call in calls]
    ids = iter(distinct_ids([call.get("id") for call in calls], "call", [plain.get("response_id"), told]))
    return [
        {**part, "function_call": {**in_snake_case(part["function_call"]), "id": next(ids)}}
        if "function_call" in part
        else part
        for part in parts
    ]


def _stop(plain: JsonObject) -> str:
    """The provider's word for why the reply ended. A request that was blocked has none: then why it was blocked."""
    candidates = plain.get("candidates")
    first = in_snake_case(next(iter(candidates), None)) if isinstance(candidates, list) else {}
    word = first.get("finish_reason")
    if not first and (reason := in_snake_case(plain.get("prompt_feedback")).get("block_reason")):
        return reason if stopped(reason) else "blocked"
    return word if isinstance(word, str) else ""
