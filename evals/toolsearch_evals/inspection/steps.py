"""What a trace is made of: steps and turns as JSON-ready objects, and how their texts are written."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolsearch.layers import RecordedTurn, private
from toolsearch.support.redaction import excerpt, redacted_value
from toolsearch.support.text import bounded, text_of
from toolsearch.tokens import counter

__all__ = ["Step", "Turn", "Words", "filled", "recorded_call", "search_step", "turn_of", "turn_of_record"]

Step: TypeAlias = dict[str, Any]
Turn: TypeAlias = dict[str, Any]
_LARGEST = 1e15  # of a number that is a time or a count
_NUMBERS = frozenset(
    "at answered decided seconds tokens input cached output lost dollars lost_dollars more requests unpriced "
    "turn".split()
)
_LISTS = frozenset("queries loaded already named verdicts led_to unloaded notices".split())
_FLAGS = frozenset(["in_vain", "action"])
_SAID = 200  # characters of what the user said, in the line of a turn
_RANDOM = re.compile(r"(?=.*[a-f])[0-9a-f-]{8,64}", re.IGNORECASE)  # an id that a program made up, as uuid does
_COUNTED = 100_000  # characters of a text whose tokens are counted
_LARGE = 20_000  # characters of arguments, from which on only their beginning is looked at


@dataclass(frozen=True, slots=True)
class Words:
    """How texts of people, models and tools are written: redacted, and cut to so many characters.

    Whom a turn is for and who decided is written only if it `names_people`.
    """

    characters: int = 600
    redact: Callable[[str], str] = private
    names_people: bool = False

    def cut(self, text: str) -> str:
        """A text as people may see it."""
        return excerpt(text, self.characters, self.redact) if text else ""

    def name(self, conversation: str) -> str:
        """The id of a conversation as people may see it: one that says something of a person, as a digest."""
        if _RANDOM.fullmatch(conversation) or self.redact(conversation) == conversation:
            return excerpt(conversation, self.characters, str)
        return hashlib.sha256(conversation.encode("utf-8", "replace")).hexdigest()[:12]

    def tokens(self, text: str) -> int:
        """The tokens of a text that a model reads; of a very long one by its beginning."""
        part = text[:_COUNTED]
        return round(counter().count(part) * len(text) / len(part)) if part else 0

    def arguments(self, value: object) -> str:
        """The arguments of a call as JSON; a value under a key such as `password` is a secret, whatever it is."""
        text = text_of({} if value is None else value)
        if len(text) <= _LARGE and not isinstance(value, str):
            text = text_of(redacted_value(value, self.redact))
        return self.cut(text)


def filled(step: Mapping[str, Any]) -> Step:
    """What is not empty (0 and False are), and of the type that it should be: in a damaged file it need not be."""
    return {key: value for key, value in step.items() if value and _is_sound(key, value)}


def _is_sound(key: str, value: object) -> bool:
    """Whether the value of a key is a number, a list of texts, a flag, or else a text."""
    if key in _NUMBERS:
        return _is_number(value)
    if key in _LISTS:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return key == "confidence" or isinstance(value, bool if key in _FLAGS else str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and abs(value) < _LARGEST


def search_step(search: Any, words: Words, led_to: Sequence[str] = ()) -> Step:
    """A recorded search, whose texts are redacted already, as a step, with the tools that it led to."""
    return filled(
        {
            "kind": "search",
            "queries": [bounded(query, words.characters) for query in search.queries],
            "category": bounded(search.category, words.characters),
            "status": search.status,
            "loaded": list(search.loaded),
            "already": list(search.already),
            "named": list(search.named),
            "verdicts": list(search.verdicts),
            "confidence": {tool: sure for tool, sure in search.confidence.items() if _is_number(sure)},
            "tokens": search.answer_tokens,
            "in_vain": search.in_vain,
            "led_to": list(led_to),
        }
    )


def turn_of(number: int, steps: Sequence[Step], mode: str = "") -> Turn:
    """A turn with the sums of its steps; when it began, and for whom, stands in the turn itself."""
    rounds = [step for step in steps if step["kind"] == "round"]
    priced = [step["dollars"] for step in rounds if "dollars" in step]
    first = next((step["at"] for step in steps if step.get("at")), 0.0)
    ends = [step for step in steps if step["kind"] == "end"]
    last = max((step.get(key, 0.0) for step in steps for key in ("at", "answered", "decided")), default=0.0)
    turn = {
        "turn": number,
        "at": first,
        "seconds": max(0.0, last - first) if first else 0.0,
        "user": next((step["user"] for step in steps if step.get("user")), ""),
        "said": bounded(" ".join(step["text"] for step in steps if step["kind"] == "user" and "text" in step), _SAID),
        "mode": mode,
        "ended": ends[-1].get("reason", "") if ends else "",
        "requests": len(rounds),
        "input": _sum(rounds, "input"),
        "cached": _sum(rounds, "cached"),
        "output": _sum(rounds, "output"),
        "lost": _sum(rounds, "lost"),
        "dollars": sum(priced),
        "lost_dollars": _sum(rounds, "lost_dollars"),
        "unpriced": len(rounds) - len(priced),
    }
    return {**filled(turn), "steps": [step for step in steps if step["kind"] != "began"]}


def _sum(rounds: Iterable[Step], key: str) -> Any:
    return sum(step.get(key, 0) for step in rounds)


def turn_of_record(turn: RecordedTurn, led_to: Sequence[Sequence[str]], words: Words) -> Turn:
    """A recorded turn, of which less is known: neither answers nor rounds, only the sum of its tokens."""
    steps = [filled({"kind": "user", "at": turn.at, "text": words.cut(turn.said)})]
    if turn.preselected:
        steps.append({"kind": "tools", "loaded": list(turn.preselected)})
    for seen in range(len(turn.searches) + 1):
        steps += [recorded_call(call, words) for call in turn.calls if call.after == seen]
        steps += [search_step(each, words, of) for each, of in zip(turn.searches, led_to, strict=True)][seen : seen + 1]
    if turn.ended:
        steps.append({"kind": "end", "reason": words.cut(turn.ended)})
    used = turn.usage
    sums = {
        "requests": used.calls,
        "input": used.input_tokens,
        "cached": used.cached_tokens,
        "output": used.output_tokens,
    }
    made = turn_of(turn.turn, steps, turn.mode)
    return {**made, **filled({**sums, "unpriced": used.calls})}


def recorded_call(call: Any, words: Words) -> Step:
    """A recorded call as a step."""
    given = "" if call.arguments is None else words.arguments(call.arguments)
    status, name = call.status, words.cut(call.name)
    return filled(
        {"kind": "call", "tool": call.tool, "name": name, "arguments": given, "status": status, "by": call.by}
    )
