"""An endpoint to evaluate: the provider's own client, with a key from the environment, and each request measured.

The client does not try again by itself, since the agent's layer `retry` does, and counts what it does. A key is read
from the environment and passed to the client; nothing here keeps or prints it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from toolsearch import MissingExtra, Reply, SetupError
from toolsearch.layers import retry
from toolsearch.protocols import Layer, Model
from toolsearch.support.json_types import JsonObject
from toolsearch.wires import anthropic, fields_of, openai_chat
from toolsearch_evals.token_usage import TokenMeter

__all__ = ["WIRES", "Endpoint", "RequestMeter", "SentRequest", "WireName", "retrying", "whole_reply", "without_key"]

WireName = Literal["openai_chat", "anthropic"]
WIRES: tuple[WireName, ...] = ("openai_chat", "anthropic")
_KEYS = {"openai_chat": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
# What of a request the provider reads as its prompt, in the order in which it does.
_PROMPT = ("tools", "system", "messages", "response_format")
ATTEMPTS, FIRST_WAIT, LONGEST_WAIT = 5, 1.0, 60.0  # of a request that fails for a moment; the waits in seconds


def retrying() -> Layer:
    """The layer that makes a request again; it obeys a provider that says how long to wait."""
    return retry(ATTEMPTS, FIRST_WAIT, longest=LONGEST_WAIT)


@dataclass(slots=True)
class SentRequest:
    """One request. `counted` are its tokens as we count them; `first_seconds` is None where nothing was streamed."""

    counted: int = 0
    first_seconds: float | None = None


@dataclass
class RequestMeter:
    """Counts and times the requests of one conversation, in order; a request that fails is one too."""

    tokens: TokenMeter
    sent: list[SentRequest] = field(default_factory=list)

    def begin(self) -> None:
        """A model is asked; what the client sends now belongs to this."""
        self.sent.append(SentRequest())

    def around(self, create: Callable[..., Any]) -> Callable[..., Any]:
        """The client's function that sends a request, measured."""

        def measured(**arguments: Any) -> Any:
            current = self.sent[-1]
            current.counted = self.tokens.tokens({key: arguments[key] for key in _PROMPT if key in arguments})
            began = time.monotonic()
            answer = create(**arguments)
            streamed = arguments.get("stream") and not hasattr(answer, "model_dump")
            return _timed(answer, current, began) if streamed else answer

        return measured


def _timed(stream: Any, current: SentRequest, began: float) -> Iterator[Any]:
    with stream:
        for piece in stream:
            if current.first_seconds is None and _tells(piece):
                current.first_seconds = time.monotonic() - began
            yield piece


def _tells(piece: object) -> bool:
    """Whether a piece of a stream has something that the model wrote, and is no mere beginning."""
    plain = fields_of(piece) if hasattr(piece, "model_dump") else {}
    if str(plain.get("type")).startswith("content_block"):
        return True
    deltas = [choice.get("delta") or {} for choice in plain.get("choices") or []]
    return any(value and key != "role" for delta in deltas for key, value in delta.items())


@dataclass(frozen=True)
class Endpoint:
    """Where a model is, and how it is asked.

    `base_url` is None for the provider's own address. `key_variable` is the environment variable that holds the key, ""
    for the usual one of the wire. `options` go into every request. A request may take `seconds`.
    """

    model: str
    wire: WireName = "openai_chat"
    base_url: str | None = None
    key_variable: str = ""
    stream: bool = True
    seconds: float = 120.0
    options: JsonObject = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.wire not in WIRES:
            raise SetupError(f"there is no wire {self.wire!r} to ask an endpoint with; pass {' or '.join(WIRES)}")
        if self.base_url is not None and urlsplit(self.base_url).scheme not in ("http", "https"):
            raise SetupError(f"the address {self.base_url!r} does not begin with http:// or https://")

    @property
    def variable(self) -> str:
        """The environment variable that holds the key."""
        return self.key_variable or _KEYS[self.wire]

    def key(self) -> str:
        """The key. Raises `SetupError` if there is none and the endpoint is the provider's own."""
        key = os.environ.get(self.variable, "").strip()
        if not key.isprintable():
            raise SetupError(f"the key in {self.variable} holds control characters; it is not shown here")
        if not key and self.base_url is None:
            raise SetupError(
                f"the variable {self.variable} is not set: put the key there, or pass --base-url for a server that "
                "needs none"
            )
        return key

    @property
    def place(self) -> str:
        """Where it is, for reports: no name of this machine, no user, no path."""
        if self.base_url is None:
            return "the provider's own address"
        host = urlsplit(self.base_url).hostname or ""
        is_here = host in ("localhost", "::1", "0.0.0.0") or host.startswith("127.")  # noqa: S104 - a name to look for
        return "a server on this machine" if is_here else host

    def client(self) -> Any:
        """A new client of the provider's SDK. Raises `MissingExtra` if that is not installed."""
        key = self.key() or "none"
        options: Mapping[str, Any] = {"api_key": key, "max_retries": 0, "timeout": self.seconds}
        options = {**options, **({} if self.base_url is None else {"base_url": self.base_url})}
        try:
            if self.wire == "anthropic":
                from anthropic import Anthropic

                return Anthropic(**options)
            from openai import OpenAI

            return OpenAI(**options)
        except ImportError:
            package = "anthropic" if self.wire == "anthropic" else "openai"
            raise MissingExtra(f"asking a model over {self.wire}", package, "endpoints") from None

    def asked_with(self, client: Any, meter: RequestMeter) -> Model:
        """The model for an agent; the meter measures what it sends."""
        if self.wire == "anthropic":
            measured: Any = SimpleNamespace(messages=SimpleNamespace(create=meter.around(client.messages.create)))
            return anthropic.model(measured, self.model, stream=self.stream, **dict(self.options))
        create = meter.around(client.chat.completions.create)
        measured = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
        return openai_chat.model(measured, self.model, stream=self.stream, **self.options)


def whole_reply(answer: object) -> Reply:
    """The reply that a model gives, at once or at the end of a stream; of a model with a sync client."""
    *_, last = [answer] if isinstance(answer, Reply) else cast("Iterable[object]", answer)
    assert isinstance(last, Reply)
    return last


def without_key(text: str, key: str) -> str:
    """A text without the key, for messages and files."""
    return text.replace(key, "…") if len(key) > 3 else text
