"""What a reply may hold besides a reply: counters of all kinds, errors with status 200."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolsearch.errors import ReplyError
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import clean

__all__ = ["count_in", "mapping", "reply_error"]

MOST_TOKENS = 10**12  # of one reply; a larger number is a mistake

# The statuses that fit the words of providers, for `retry`.
_STATUSES = {
    word: status
    for status, words in {
        400: "invalid_request_error bad_request",
        401: "authentication_error invalid_api_key",
        403: "permission_error",
        404: "not_found_error model_not_found",
        413: "request_too_large",
        429: "rate_limit_error rate_limit_exceeded too_many_requests insufficient_quota",
        500: "api_error server_error internal_error internal_server_error",
        503: "service_unavailable unavailable",
        504: "timeout_error timeout",
        529: "overloaded_error overloaded",
    }.items()
    for word in words.split()
}


def mapping(value: object) -> JsonObject:
    """The value if it is an object, otherwise an empty one: some servers put other things in its place."""
    return value if isinstance(value, Mapping) else {}


def count_in(usage: object, *keys: str) -> int:
    """A counter of a reply, found by its keys; 0 for one that makes no sense: a bill is no reason to lose an answer."""
    value: object = usage
    for key in keys:
        value = mapping(value).get(key)
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MOST_TOKENS:
        return 0  # what is not a number, NaN among them, is not in these bounds either
    return int(value)


def reply_error(error: object, otherwise: str) -> ReplyError:
    """The error that a provider wrote in place of a reply, or `otherwise` where it wrote none."""
    told = mapping(error)
    message = told.get("message") or (error if isinstance(error, str) else "")
    words = [told.get("code"), told.get("type"), told.get("status")]
    codes = [word for word in words if isinstance(word, str) and word]
    text = f"the provider answered with an error: {clean(str(message))[:500]}" if message or codes else otherwise
    if codes and not message:
        text += codes[0][:100]
    return ReplyError(text, status_code=_status(words), code=codes[0] if codes else None)


def _status(words: list[Any]) -> int | None:
    for word in words:
        number = int(word) if isinstance(word, str) and word.isdecimal() and len(word) == 3 else word
        if isinstance(number, int) and not isinstance(number, bool) and 400 <= number < 600:
            return number
        if isinstance(word, str) and word.lower() in _STATUSES:
            return _STATUSES[word.lower()]
    return None
