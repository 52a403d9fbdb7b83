"""A transcript as the contents of a request to Gemini."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolsearch.calls import Part
from toolsearch.calls.parts import shown_image
from toolsearch.events.facts import Answers, Message, ModelReplied, UserSaid
from toolsearch.support.text import clean
from toolsearch.wires._gemini_parts import call_part, signed
from toolsearch.wires._user_parts import parts_for

__all__ = ["contents_for", "results_of"]

IMAGE_BYTES = 7_000_000  # the provider refuses a request with a larger image
IMAGES = ("image/png", "image/jpeg", "image/webp")  # of the types that we know, those that it takes


def contents_for(transcript: Iterable[Message], wire: str) -> list[dict[str, Any]]:
    """A transcript as the `contents` of a request. A reply of this provider is sent back as it came.

    A content of the user comes first, and contents of the model are never neighbours, because the provider refuses a
    call that does not follow a content of the user.
    """
    contents: list[dict[str, Any]] = []
    for message in transcript:
        match message:
            case UserSaid():
                contents.append({"role": "user", "parts": _said(message, wire)})
            case ModelReplied():
                if contents and contents[-1]["role"] == "model":
                    contents[-1]["parts"] = [*contents[-1]["parts"], *_assistant(message, wire)]
                    continue
                if not contents:
                    contents.append({"role": "user", "parts": [{"text": "(…)"}]})
                contents.append({"role": "model", "parts": _assistant(message, wire)})
            case Answers():
                calls = [part.get("function_call") or {} for part in contents[-1]["parts"]] if contents else []
                names = {call.get("id"): call.get("name") or "unnamed" for call in calls}
                results = [(names.get(result.call_id, "unnamed"), result) for result in message.results]
                contents += results_of([(n, r.call_id, r.status == "ok", r.content, r.parts) for n, r in results])
            case _:
                contents.append({"role": "user", "parts": [{"text": f"[{message.text}]"}]})
    return contents


def _assistant(reply: ModelReplied, wire: str) -> list[dict[str, Any]]:
    if reply.wire == wire and isinstance(reply.raw, Mapping):
        ids = iter(call.id for call in reply.calls)  # the session replaces an id that an earlier call has
        return signed(
            [
                {**part, "function_call": {**call, "id": next(ids, call.get("id"))}}
                if isinstance(call := part.get("function_call"), Mapping)
                else dict(part)
                for part in reply.raw.get("parts") or []
            ]
        )
    said = [{"text": reply.text}] if reply.text.strip() else []
    calls = [call_part(call.id, call.name, call.arguments) for call in reply.calls]
    return signed([*said, *calls]) or [{"text": "(no answer)"}]


def _said(message: UserSaid, wire: str) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"text": message.text}] if message.text.strip() else []
    parts += parts_for(wire, message.parts)
    return parts or [{"text": "(nothing)"}]


def results_of(answers: Iterable[tuple[str, str, bool, str, Iterable[Part]]]) -> list[dict[str, Any]]:
    """The contents for answers, each the name that was sent, the id, whether it is no error, its text and its parts."""
    responses: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []  # in a content of their own: not every model takes them inside a response
    for name, call_id, ok, text, parts in answers:
        told = {"output" if ok else "error": clean(text)}
        responses.append({"function_response": {"id": clean(call_id), "name": name, "response": told}})
        for part in parts if ok else ():
            image = shown_image(part, IMAGE_BYTES)
            if image is not None and image[1] in IMAGES:
                blob = {"mime_type": image[1], "data": image[2]}
                images += [{"text": f"An image in the result of {name}:"}, {"inline_data": blob}]
    return [{"role": "user", "parts": parts} for parts in (responses, images) if parts]
