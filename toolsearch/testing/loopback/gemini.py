"""Gemini's generateContent and streamGenerateContent: what is refused, replies, events."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolsearch.events.facts import Usage
from toolsearch.support.json_types import JsonObject
from toolsearch.testing.loopback import schema_rules
from toolsearch.testing.loopback.steps import NO_HEADERS, Failure, Written, as_object, cut

__all__ = ["error", "events", "refusal", "reply", "stream_type"]

MOST_DECLARATIONS = 512
_AFTER_USER = "Please ensure that function call turn comes immediately after a user turn or a function response turn."
_STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
             429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}  # fmt: skip


def refusal(body: JsonObject, headers: Mapping[str, str] = NO_HEADERS) -> str:
    """Why a request with this body is refused; "" if it is taken."""
    del headers
    return next(_problems(body), "")


def _problems(body: JsonObject) -> Iterator[str]:
    declared = [each for tool in body.get("tools") or [] for each in tool.get("functionDeclarations") or []]
    names = [each["name"] for each in declared]
    if len({*names}) < len(names):
        yield f"Duplicate function declaration found: {names}"
    if len(declared) > MOST_DECLARATIONS:
        yield f"{len(declared)} function declarations, {MOST_DECLARATIONS} at most"
    for each in declared:
        if "parametersJsonSchema" in each:
            problems = schema_rules.gemini_json(each["name"], each.get("description"), each["parametersJsonSchema"])
        else:
            problems = schema_rules.gemini(each["name"], each.get("description"), each.get("parameters"))
        yield from (f"function_declarations[{each['name']}]: {problem}" for problem in problems)
    yield from _problems_of_contents(body["contents"])
    yield from _problems_of_signatures(body["contents"])


def _problems_of_contents(contents: list[JsonObject]) -> Iterator[str]:
    called: list[str] = []
    for place, content in enumerate(contents):
        at = f"contents[{place}]"
        parts = content.get("parts") or []
        if content.get("role", "user") not in ("user", "model"):
            yield f"{at}: Please use a valid role: user, model."
        if not parts:
            yield f"{at}.parts must not be empty"
        if any(not part for part in parts):
            yield f"{at}: required oneof field 'data' must have one initialized field"
        answered = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        if len(answered) != len(called):
            yield (f"{at}: Please ensure that the number of function response parts is equal to the number of function "
                   f"call parts of the function call turn: {answered} for {called}")  # fmt: skip
        if sorted(answered) != sorted(called):
            yield f"{at}: function responses {answered} for the calls {called}"
        for part in parts:
            if "functionResponse" in part and not isinstance(part["functionResponse"]["response"], dict):
                yield f"{at}: function_response.response must be an object"
            if "functionCall" in part and not isinstance(part["functionCall"].get("args", {}), dict):
                yield f"{at}: function_call.args must be an object"
        called = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        if called and content.get("role") != "model":
            yield f"{at}: only the model calls functions"
        if called and (not place or contents[place - 1].get("role", "user") != "user"):
            yield f"{at}: {_AFTER_USER}"
    if contents and contents[0].get("role", "user") != "user":
        yield _AFTER_USER
    if called:
        yield f"the function calls {called} have no responses"


def _problems_of_signatures(contents: list[JsonObject]) -> Iterator[str]:
    """In the turn that goes on, the first call of each content of the model needs the signature that it came with."""
    said = [place for place, content in enumerate(contents) if any("text" in part for part in content["parts"])
            and content.get("role", "user") == "user"]  # fmt: skip
    for content in contents[max(said, default=0) :]:
        first = next((part for part in content["parts"] if "functionCall" in part), None)
        if first is not None and not first.get("thoughtSignature"):
            yield f"Function call is missing a thought_signature in functionCall parts: {first['functionCall']['name']}"


def reply(step: Written, body: JsonObject, usage: Usage = Usage()) -> dict[str, Any]:  # noqa: B008
    """The body of a whole reply."""
    parts: list[dict[str, Any]] = [{"text": step.text}] if step.text else []
    for place, call in enumerate(step.calls):
        told = {**({"id": call.id} if call.id else {}), "name": call.name, "args": as_object(call.arguments)}
        signed = base64.b64encode(f"signature of {call.name}".encode()).decode()
        parts.append({"functionCall": told, **({} if place else {"thoughtSignature": signed})})
    counts = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
    }
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    head = {"modelVersion": body.get("model") or "scripted", "responseId": "response_1"}
    return {"candidates": [candidate], "usageMetadata": counts, **head}


def events(reply: JsonObject, size: int) -> Iterator[str]:
    """Texts come in pieces, calls whole."""
    pieces: list[dict[str, Any]] = []
    candidate = (reply.get("candidates") or [{}])[0]
    for part in (candidate.get("content") or {}).get("parts") or []:
        if not isinstance(part.get("text"), str):
            pieces.append(part)
            continue
        texts = [*cut(part["text"], size)] or [""]
        rest = {key: value for key, value in part.items() if key != "thoughtSignature"}
        pieces += [{**rest, "text": text} for text in texts[:-1]]
        pieces.append({**part, "text": texts[-1]})
    rest = {key: value for key, value in reply.items() if key not in ("candidates", "usageMetadata")}
    for piece in pieces[:-1]:
        yield _event({**rest, "candidates": [{"content": {"role": "model", "parts": [piece]}, "index": 0}]})
    if "candidates" in reply:
        last = {**candidate, "content": {**(candidate.get("content") or {}), "parts": pieces[-1:]}}
        yield _event({**reply, "candidates": [last]})
    else:
        yield _event(reply)


def _event(chunk: JsonObject) -> str:
    return f"data: {json.dumps(chunk)}\n\n"


def stream_type(path: str, body: JsonObject) -> str:
    """The media type of the stream that is asked for; "" for a whole reply."""
    del body
    return "text/event-stream" if ":streamGenerateContent" in path else ""


def error(failure: Failure) -> dict[str, Any]:
    """The body of an error."""
    status = _STATUSES.get(failure.status, "INTERNAL")
    return {"error": {"code": failure.status, "message": failure.message, "status": status}}
