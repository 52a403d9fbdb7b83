"""Why a reply ended: what providers call it, and what this makes of the reply.

Most replies end because the model has said what it wanted. The others are no answers, and the reasons for them are:

    cut off            the reply reached its limit of tokens        empty        it has no text and no call
    context overflow   the conversation has no room for more        broken off   the stream ended before the reply did
    filtered           a filter stopped it                          paused       the provider wants to be asked again
    refused            the model declined to answer                 error        the provider failed
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

from toolsearch.calls import ToolCall

__all__ = ["BROKEN_OFF", "REASONS", "STOPS", "no_answer", "with_cut_end"]

BROKEN_OFF = "broken off"  # a wire's own word for `stop`, where a stream ended without the provider's

# The words of providers, in small letters, by our reason. All other words (stop, end_turn, tool_calls, …) are ordinary.
STOPS: Mapping[str, str] = MappingProxyType(
    {
        word: reason
        for reason, words in {
            "cut off": "length max_length max_tokens max_new_tokens max_output_tokens max_completion_tokens "
            "max_tokens_reached model_length token_limit incomplete",
            "context overflow": "model_context_window_exceeded context_length_exceeded error_limit",
            "filtered": "content_filter content_filtered guardrail_intervened safety recitation blocklist "
            "prohibited_content spii error_toxic language image_safety image_prohibited_content image_recitation "
            "sensitive moderation blocked jailbreak model_armor",
            "refused": "refusal",
            "paused": "pause_turn",
            "broken off": "abort aborted cancel cancelled canceled user_cancel timeout time_limit network_error "
            "repetition insufficient_system_resource malformed_function_call malformed_response "
            "malformed_model_output malformed_tool_use unexpected_tool_call too_many_tool_calls",
            "error": "error missing_thought_signature",
        }.items()
        for word in words.split()
    }
    | {BROKEN_OFF: "broken off"}
)
_BETWEEN = re.compile(r"[\s-]+")
REASONS = frozenset({*STOPS.values(), "empty"})


class Ended(Protocol):
    """What is looked at of a reply."""

    @property
    def text(self) -> str: ...
    @property
    def stop(self) -> str: ...
    @property
    def value(self) -> object: ...


def stopped(stop: object) -> str:
    """Our reason for a provider's word, in any case and with any sign between its parts; "" for an ordinary one."""
    if not isinstance(stop, str):
        return ""
    word = stop.strip().lower()
    return STOPS.get(word) or STOPS.get(_BETWEEN.sub("_", word[:100]), "")


def no_answer(reply: Ended) -> str:
    """The reason why a reply without calls is no answer; "" if it is one."""
    if reply.stop == "ended":  # a layer gave it in the model's place
        return ""
    if reason := stopped(reply.stop):
        return reason
    return "" if (reply.text or "").strip() or reply.value is not None else "empty"


def with_cut_end(calls: Sequence[ToolCall], stop: str) -> tuple[ToolCall, ...]:
    """The calls of a reply; if the reply ended in the middle of the last one, that one says why in `cut`.

    Nobody can tell whether arguments are whole if the provider says that it stopped the reply: what it hands over may
    have been made valid. A stream that merely breaks off hands over the text as it came, and an object that is closed
    in it is whole.
    """
    reason = stopped(stop)
    if not calls or calls[-1].cut or reason in ("", "paused"):
        return tuple(calls)
    if reason == "broken off" and _is_whole(calls[-1].arguments):
        return tuple(calls)
    return (*calls[:-1], replace(calls[-1], cut=reason))


def _is_whole(arguments: object) -> bool:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return False
    return isinstance(arguments, Mapping) and bool(arguments)
