"""What was played: conversations, with the tokens of each of their requests.

A played conversation knows no price. Whatever is assumed of prices, of caches, or of how often sending every tool
succeeds is applied afterwards, so nothing is played twice for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import reduce
from operator import add
from typing import Any

from toolsearch_evals.data.cases import Case
from toolsearch_evals.token_usage import TokenUsage

__all__ = ["PlayedConversation", "PlayedRequest", "PlayedTurn"]

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlayedRequest:
    """Tokens of one request and of the model's reply.

    `input` is the whole request. Of these, the first `shared` ones begin the request before in the same conversation
    (0 in the first), and `fixed` ones are its tools and its system message, which come first. `output` is what the
    model wrote. `tools_changed`: the tools are not those of the request before.
    """

    input: int
    shared: int
    fixed: int
    output: int
    tools_changed: bool = False

    @property
    def usage(self) -> TokenUsage:
        """What is cached if the conversation begins with an empty cache that keeps everything."""
        return TokenUsage(self.input - self.shared, self.shared, self.output)


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """One case as it went. `served`: each needed tool, or an alternative of it, was called and ran."""

    case: Case
    served: bool
    searches: int
    requests: tuple[PlayedRequest, ...]


@dataclass
class PlayedConversation:
    """The turns of a conversation, and the calls that the session refused (none, if all goes well)."""

    turns: list[PlayedTurn] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def requests(self) -> tuple[PlayedRequest, ...]:
        """All requests, in order."""
        return tuple(request for turn in self.turns for request in turn.requests)

    @property
    def searches(self) -> int:
        return sum(turn.searches for turn in self.turns)

    @property
    def usage(self) -> TokenUsage:
        """All tokens, cached as in `PlayedRequest.usage`."""
        return reduce(add, (request.usage for request in self.requests), TokenUsage())

    def as_json(self) -> JsonObject:
        """Everything, with cases by their ids."""
        turns = [
            {
                "case": turn.case.id,
                "served": turn.served,
                "searches": turn.searches,
                "requests": [asdict(request) for request in turn.requests],
            }
            for turn in self.turns
        ]
        return {"turns": turns, "refused": list(self.refused)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], cases: Mapping[str, Case]) -> PlayedConversation:
        """From what `as_json` gave, and the cases by their ids. Keys that it does not know are left out."""
        turns = [
            PlayedTurn(
                cases[turn["case"]],
                turn["served"],
                turn["searches"],
                tuple(PlayedRequest(*(each[name] for name in PlayedRequest.__slots__)) for each in turn["requests"]),
            )
            for turn in data["turns"]
        ]
        return cls(turns, list(data["refused"]))
