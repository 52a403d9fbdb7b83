"""A request of OpenAI Responses that is sent again because of its reasoning: some models and servers refuse it."""

from __future__ import annotations

import logging
import re
from typing import Any

from toolsearch.support.json_types import JsonObject

__all__ = ["ENCRYPTED", "FREE", "without_reasoning"]

log = logging.getLogger("toolsearch")

ENCRYPTED = "reasoning.encrypted_content"  # what `include` asks for
FREE = ("message", "function_call", "tool_search_call")  # items that need no id of their own

_NOT_GIVEN = re.compile(rf"encrypted content is not supported|{re.escape(ENCRYPTED)}", re.IGNORECASE)
_NOT_READ = re.compile(r"invalid_encrypted_content|encrypted content .{0,200}could not be", re.IGNORECASE | re.DOTALL)


def without_reasoning(arguments: JsonObject, error: Exception) -> dict[str, Any] | None:
    """The same request without what was refused of reasoning; None if it was refused for anything else.

    A model that does not reason has no encrypted content to give. One of another organisation, or on another host,
    cannot read what was given before: then the thoughts are left out, and the ids of the items that followed them.
    """
    if getattr(error, "status_code", None) != 400:
        return None
    told, include = str(error), arguments.get("include") or []
    if _NOT_READ.search(told):
        log.warning("earlier reasoning is left out, because the provider cannot read it: %.300s", told)
        items = [item for item in arguments["input"] if item.get("type") != "reasoning"]
        return {**arguments, "input": [_without_id(item) for item in items]}
    if ENCRYPTED in include and _NOT_GIVEN.search(told):
        rest = [each for each in include if each != ENCRYPTED]
        kept = {key: value for key, value in arguments.items() if key != "include"}
        return {**kept, "include": rest} if rest else kept
    return None


def _without_id(item: JsonObject) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "id" or item.get("type") not in FREE}
