"""What the requests of a conversation cost: the tokens of each exact payload, split into cached and uncached."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch.tokens import TokenCounter

__all__ = ["ConversationMeter", "TokenMeter", "TokenUsage", "pieces", "tokenizer"]

compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens. `cached` ones began the request before, in the same conversation; `output` ones the model wrote."""

    uncached: int = 0
    cached: int = 0
    output: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(self.uncached + other.uncached, self.cached + other.cached, self.output + other.output)

    @property
    def total(self) -> int:
        return self.uncached + self.cached + self.output

    def cost(self, cached_weight: float, output_weight: float) -> float:
        """The price in units of one uncached input token."""
        return self.uncached + cached_weight * self.cached + output_weight * self.output


class TokenMeter:
    """Counts requests and replies. It remembers what it has counted, so repeated definitions are cheap."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._counted: dict[str, int] = {}

    def count(self, text: str) -> int:
        """Tokens of the JSON of a request or of a part of it; images in it count as such, not as text."""
        if text not in self._counted:
            self._counted[text] = self.counter.of_json(text)
        return self._counted[text]

    def tokens(self, request: Mapping[str, Any]) -> int:
        """Tokens of the request as the compact JSON that is sent.

        As many as counting that text in one go; an estimate is rounded up for each piece.
        """
        return sum(map(self.count, self.pieces(request)))

    def pieces(self, request: Mapping[str, Any], write: Callable[[Any], str] = compact) -> list[str]:
        """The request as text, cut into pieces whose tokens add up; `write` gives the JSON of a tool or a message."""
        return pieces(request, write)

    def request(self, request: Mapping[str, Any], before: Mapping[str, Any] | None) -> TokenUsage:
        """The tokens of a request, cached as far as it begins like the one before it."""
        now = self.pieces(request)
        cached = self.shared(now, self.pieces(before)) if before is not None else 0
        return TokenUsage(uncached=sum(map(self.count, now)) - cached, cached=cached)

    def reply(self, message: Mapping[str, Any]) -> TokenUsage:
        """What the model wrote, with the JSON around it."""
        return TokenUsage(output=self.count(compact(message)))

    def shared(self, now: Sequence[str], before: Sequence[str]) -> int:
        """With how many tokens a request begins like another one; both in pieces."""
        same, most = 0, min(len(now), len(before))
        while same < most and now[same] == before[same]:
            same += 1
        shared = sum(map(self.count, now[:same]))
        if same < most:
            shared += self.count(_common_start(now[same], before[same]))
        return shared


class ConversationMeter:
    """Counts the requests of one conversation, each against the one before it.

    The JSON of a tool or a message is written once, as long as it is the same object: nobody may change it.
    """

    def __init__(self, meter: TokenMeter) -> None:
        self._meter = meter
        self._written: dict[int, tuple[object, str]] = {}  # with the object, so that its id stays its own
        self._before: list[str] = []

    def request(self, request: Mapping[str, Any]) -> tuple[int, int]:
        """Tokens of the whole request, and of how it begins like the one before."""
        now = self._meter.pieces(request, self._write)
        whole, shared = sum(map(self._meter.count, now)), self._meter.shared(now, self._before)
        self._before = now
        return whole, shared

    def start(self, start: Mapping[str, Any]) -> int:
        """With how many tokens the last request begins like this one."""
        return self._meter.shared(self._before, self._meter.pieces(start, self._write))

    def reply(self, message: Mapping[str, Any]) -> int:
        """Tokens of what the model wrote."""
        return self._meter.reply(message).output

    def _write(self, item: object) -> str:
        known = self._written.get(id(item))
        if known is None:
            known = self._written[id(item)] = (item, compact(item))
        return known[1]


def pieces(request: Mapping[str, Any], write: Callable[[Any], str] = compact) -> list[str]:
    """The request's compact JSON, cut inside each tool and message after its `{"`.

    Tokenizers of this family never join such a run of punctuation with the letter after it. So the tokens of the pieces
    add up to the tokens of the whole, and a definition that was seen before need not be counted again.
    """
    cut: list[str] = []
    text = "{"
    for at, (key, value) in enumerate(request.items()):
        text += f"{',' if at else ''}{compact(key)}:"
        if not isinstance(value, list):
            text += compact(value)
            continue
        text += "["
        for place, item in enumerate(value):
            written = write(item)
            cut.append(f"{text}{',' if place else ''}{written[:2]}")
            text = written[2:]
        text += "]"
    return [*cut, text + "}"]


def _common_start(one: str, other: str) -> str:
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return one[:least]


def tokenizer(counter: TokenCounter, *, is_public: bool) -> str:
    """How the tokens of a wire are counted, in words. An estimate is called an estimate."""
    if is_public or not counter.exact:
        return counter.name
    return f"estimate with {counter.name}: the provider's own tokenizer is not public"
