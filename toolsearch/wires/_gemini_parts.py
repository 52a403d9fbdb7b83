"""The parts of a content of Gemini: read from the SDK's objects or from the JSON of the API, and made for a history.

A history holds JSON, so bytes, such as the signature of a thought, are Base64 here; the SDK takes them that way too.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from toolsearch.schemas.parallel_calls import inner_calls
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import clean, legal_name
from toolsearch.wires._arguments import arguments_object
from toolsearch.wires._reading import mapping
from toolsearch.wires.shared import fields_of

__all__ = ["call_part", "in_snake_case", "meant_name", "parts_in", "plain_reply", "sent_name", "signed"]

_CAPITAL = re.compile(r"(?<=[a-z0-9])[A-Z]")
_NO_FIRST = re.compile(r"_*[0-9-]")
# A model that signs its calls wants a signature with each first call. The provider documents this one for calls of a
# model that does not sign: another provider's, or an older one.
_NOT_SIGNED = base64.b64encode(b"skip_thought_signature_validator").decode()


def sent_name(name: object) -> str:
    """A name as the provider accepts it. It must not begin with a digit or a dash: an underscore goes before these.

    It goes before underscores that such a sign follows, too, so that no two names become one.
    """
    legal = legal_name(name)
    return f"_{legal}" if _NO_FIRST.match(legal) else legal


def meant_name(name: str) -> str:
    """The name that `sent_name` was given."""
    return name[1:] if name.startswith("_") and _NO_FIRST.match(name) else name


def plain_reply(reply: object) -> JsonObject:
    """A reply, or a piece of one, as a dict; raises `SetupError` for anything else."""
    dump = None if isinstance(reply, Mapping) else getattr(reply, "model_dump", None)
    plain: JsonObject = fields_of(reply) if dump is None else dump(mode="json", exclude_none=True, warnings=False)
    return in_snake_case(plain)


def in_snake_case(value: object) -> dict[str, Any]:
    """An object with its keys as the SDK has them; what is inside stays. An empty one for what is no object."""
    return {
        _CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", str(key)): item
        for key, item in mapping(value).items()
        if item is not None
    }


def parts_in(plain: JsonObject) -> list[dict[str, Any]]:
    """The parts of a reply's first candidate, without those that say nothing: a history with them is refused."""
    candidates = plain.get("candidates")
    first = next((each for each in candidates if isinstance(each, Mapping)), {}) if isinstance(candidates, list) else {}
    content = mapping(in_snake_case(first).get("content")) if "candidates" in plain else plain
    parts = content.get("parts")
    made = [_part(part) for part in parts if isinstance(part, Mapping)] if isinstance(parts, list | tuple) else []
    return [each for part in made for each in _calls_apart(part) if _says_something(each)]


def _part(part: JsonObject) -> dict[str, Any]:
    made = in_snake_case(part)
    if "function_call" in made:
        made["function_call"] = in_snake_case(made["function_call"])
    if isinstance(blob := made.get("inline_data"), Mapping):
        made["inline_data"] = {key: _as_base64(value) for key, value in blob.items()}
    return {key: _as_base64(value) for key, value in made.items()}


def _as_base64(value: object) -> Any:
    return base64.urlsafe_b64encode(value).decode() if isinstance(value, bytes) else value


def _says_something(part: JsonObject) -> bool:
    """A signature alone is refused; at the end of a stream, one comes with an empty text."""
    return bool(part.keys() - {"thought", "thought_signature", "text"} or part.get("text")) or (
        "text" in part and "thought_signature" in part
    )


def _calls_apart(part: dict[str, Any]) -> list[dict[str, Any]]:
    """A call that stands for several as one part for each; any other part as it is."""
    call = mapping(part.get("function_call"))
    inner = inner_calls(call.get("name"), call.get("args")) if "function_call" in part else []
    if not inner:
        return [part]
    first, *rest = [{"name": name, "args": given or {}} for name, given in inner]
    return [{**part, "function_call": {"id": call.get("id"), **first}}, *({"function_call": each} for each in rest)]


def call_part(call_id: str, name: str, arguments: object) -> dict[str, Any]:
    """A call that another model has made."""
    return {"function_call": {"id": clean(call_id), "name": sent_name(name), "args": arguments_object(arguments)}}


def signed(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts with a signature for their first call, where the model that made it does not sign."""
    first = next((place for place, part in enumerate(parts) if "function_call" in part), None)
    if first is not None and not parts[first].get("thought_signature"):
        parts[first] = {**parts[first], "thought_signature": _NOT_SIGNED}
    return parts
