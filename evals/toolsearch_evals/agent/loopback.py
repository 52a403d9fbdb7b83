"""A provider on this machine with a scripted model: OpenAI Chat Completions and Anthropic Messages over HTTP.

It is for trying `toolsearch eval agent` without a key, a network or a bill, and for tests. It counts the prompt as
`toolsearch` does, and what begins like the request before, from 1,024 tokens on, as cached.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from toolsearch.events.facts import Usage
from toolsearch.support.json_types import JsonObject
from toolsearch.testing import Failure, LoopbackProvider
from toolsearch.testing.loopback.steps import Step, Written
from toolsearch.tokens import counter
from toolsearch_evals.agent.json_adapter import HOW
from toolsearch_evals.agent.scripted_model import Exchange, Prompt, as_json, next_reply
from toolsearch_evals.token_usage import TokenMeter

__all__ = ["ScriptedProvider"]

LEAST_CACHED = 1_024  # tokens


class ScriptedProvider(LoopbackProvider):
    """Use it with `with`; `url` is the address for `--base-url`. `requests` are the bodies so far.

    With `drops_tools` it does as servers do whose model's template has no tools: it removes them from a request,
    without a word. For a provider that fails at times, override `refusal` and `stream`.
    """

    def __init__(self, *, drops_tools: bool = False) -> None:
        super().__init__(stream_pieces=40)
        self.drops_tools = drops_tools
        self._tokens, self._counting = TokenMeter(counter()), threading.Lock()
        self._before: JsonObject | None = None

    def refusal(self, number: int, body: JsonObject) -> Failure | None:
        """Whether the request with this number is refused; the first has number 1."""
        del number, body
        return None

    def step(self, body: JsonObject) -> Step:
        """The next reply of the model whose solutions are known."""
        if (failure := self.refusal(len(self.requests), body)) is not None:
            return failure
        described = _tools_in_text(body)
        if described:
            return as_json(next_reply(Prompt(described, *_said_in_text(body["messages"]))))
        form = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema") or {}
        if properties := form.get("properties"):  # the probe asks whether a form is kept to
            return json.dumps({name: (value.get("enum") or [""])[0] for name, value in properties.items()})
        tools = () if self.drops_tools else body.get("tools") or ()
        names = tuple(each.get("function", each)["name"] for each in tools)
        written = next_reply(Prompt(names, *_said(body["messages"])))
        return written if isinstance(written, str) else [(written[0], dict(written[1]))]

    def usage(self, body: JsonObject, step: Written) -> Usage:
        """The tokens of a reply, counted exactly."""
        kept = [*([] if self.drops_tools else ["tools"]), "system", "messages", "response_format"]
        prompt = {key: body[key] for key in kept if key in body}
        text = step.text or json.dumps([(call.name, call.arguments) for call in step.calls][-1])
        with self._counting:
            used = self._tokens.request(prompt, self._before)
            self._before = prompt
            cached = used.cached if used.cached >= LEAST_CACHED else 0
            return Usage(used.cached + used.uncached, cached, self._tokens.count(text), 1)


# -- requests as the model reads them ------------------------------------------------------------------------------


def _tools_in_text(body: JsonObject) -> tuple[str, ...]:
    """The names of the tools that a `JsonToolModel` describes in the system text."""
    first: JsonObject = next(iter(body["messages"]), {})
    system = body.get("system") or (first.get("content") if first.get("role") == "system" else "")
    _, how, described = str(system).partition(HOW)
    return tuple(json.loads(line)["name"] for line in described.strip().splitlines()) if how else ()


def _said(messages: Sequence[JsonObject]) -> tuple[str, tuple[Exchange, ...]]:
    """What the user said last, and the calls since with their results."""
    said, calls, exchanges = "", dict[str, tuple[str, Any]](), list[Exchange]()
    for message in messages:
        for block in _blocks(message):
            match block:
                case {"type": "tool_use"}:
                    calls[block["id"]] = block["name"], block["input"]
                case {"type": "tool_result"}:
                    exchanges.append(Exchange(*calls[block["tool_use_id"]], str(block.get("content") or "")))
                case {"type": "text", "text": str(text)} if message["role"] == "user":
                    said, exchanges = text, []
                case _:
                    pass
    return said, tuple(exchanges)


def _blocks(message: JsonObject) -> Iterator[JsonObject]:
    """The content of a message as Anthropic's blocks, those of a chat completion too."""
    content = message.get("content")
    if message["role"] == "tool":
        yield {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
        return
    yield from [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
    for call in message.get("tool_calls") or ():
        function = call["function"]
        given = json.loads(function["arguments"])
        yield {"type": "tool_use", "id": call["id"], "name": function["name"], "input": given}


def _said_in_text(messages: Sequence[JsonObject]) -> tuple[str, tuple[Exchange, ...]]:
    """As the others, where calls are JSON in the model's text and results are messages of the user."""
    said, last, exchanges = "", dict[str, Any](), list[Exchange]()
    for message in messages:
        content = message["content"]
        text = content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
        if message["role"] == "assistant":
            last = json.loads(text)
        elif message["role"] == "user" and text.startswith("Result ("):
            exchanges.append(Exchange(last["tool"], last["arguments"], text.partition("): ")[2]))
        elif message["role"] == "user":
            said, exchanges = text, []
    return said, tuple(exchanges)
