"""A provider on this machine with a scripted model: OpenAI Chat Completions and Anthropic Messages over HTTP.

It is for trying `toolsearch eval agent` without a key, a network or a bill, and for tests. It counts the prompt as
`toolsearch` does, and what begins like the request before, from 1,024 tokens on, as cached.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import TracebackType
from typing import Any, NamedTuple

from toolsearch.support.json_types import JsonObject
from toolsearch.tokens import counter
from toolsearch_evals.agent.json_adapter import HOW
from toolsearch_evals.agent.scripted_model import Exchange, Prompt, Written, as_json, next_reply
from toolsearch_evals.token_usage import TokenMeter

__all__ = ["Refused", "ScriptedProvider"]

LEAST_CACHED = 1_024  # tokens
OPENAI_MOST = 128  # tools in a request
OPENAI, ANTHROPIC = "/chat/completions", "/v1/messages"


class Refused(NamedTuple):
    """An answer that is an error: a status, headers, and what the body says."""

    status: int
    message: str
    headers: Mapping[str, str] = {}


class _Usage(NamedTuple):
    prompt: int
    cached: int
    written: int


class ScriptedProvider:
    """Use it with `with`; `url` is the address for `--base-url`. `bodies` are the requests so far.

    With `drops_tools` it does as servers do whose model's template has no tools: it removes them from a request,
    without a word. For a provider that fails at times, override `refusal` and `pieces`.
    """

    def __init__(self, *, drops_tools: bool = False, model: str = "scripted") -> None:
        self.drops_tools, self.model = drops_tools, model
        self.bodies: list[JsonObject] = []
        self._tokens, self._lock, self._numbers = TokenMeter(counter()), threading.Lock(), count(1)
        self._before: JsonObject | None = None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        """The address for OpenAI's client; Anthropic's takes `root`."""
        return f"{self.root}/v1"

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def refusal(self, number: int, body: JsonObject) -> Refused | None:
        """Whether the request with this number is refused; the first has number 1."""
        del number, body
        return None

    def pieces(self, number: int, pieces: Sequence[str]) -> Iterator[str]:
        """The events of a streamed reply, as they are sent."""
        del number
        yield from pieces

    def __enter__(self) -> ScriptedProvider:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, body: JsonObject) -> Refused | JsonObject | Iterator[str]:
        """The reply to a request: an error, an object, or the events of a stream."""
        with self._lock:
            number = next(self._numbers)
            self.bodies.append(body)
            refused = self.refusal(number, body)
            if refused is None and not path.endswith((OPENAI, ANTHROPIC)):
                refused = Refused(404, f"there is no {path}")
            is_openai = path.endswith(OPENAI)
            if refused is None and (problem := _problem(body, is_openai=is_openai)):
                refused = Refused(400, problem)
            if refused is not None:
                return refused
            if self.drops_tools:
                body = {key: value for key, value in body.items() if key != "tools"}
            written = _written(body, is_openai=is_openai)
            usage = self._usage(body, written)
            make = _openai_reply if is_openai else _anthropic_reply
            reply = make(f"r{number}", str(body.get("model") or self.model), written, usage)
        if not body.get("stream"):
            return reply
        return self.pieces(number, (_openai_pieces if is_openai else _anthropic_pieces)(reply))

    def _usage(self, body: JsonObject, written: Written) -> _Usage:
        prompt = {key: body[key] for key in ("tools", "system", "messages", "response_format") if key in body}
        used = self._tokens.request(prompt, self._before)
        self._before = prompt
        text = written if isinstance(written, str) else json.dumps(written)
        cached = used.cached if used.cached >= LEAST_CACHED else 0
        return _Usage(used.cached + used.uncached, cached, self._tokens.count(text))


def _handler(provider: ScriptedProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = provider.answer(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if isinstance(answer, Refused):
                body = {"type": "error", "error": {"type": "error", "message": answer.message}}
                self._send(answer.status, "application/json", json.dumps(body).encode(), answer.headers)
            elif isinstance(answer, Mapping):
                self._send(200, "application/json", json.dumps(answer).encode(), {})
            else:
                self._begin(200, "text/event-stream", {})
                for piece in answer:
                    self.wfile.write(piece.encode())

        def _begin(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Connection": "close", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def _send(self, status: int, kind: str, data: bytes, headers: Mapping[str, str]) -> None:
            self._begin(status, kind, {"Content-Length": str(len(data)), **headers})
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the one it replaces
            del format, args

    return Handler


def _problem(body: JsonObject, *, is_openai: bool) -> str:
    """What the real provider would refuse about the tools, or about calls and their results; "" if nothing."""
    names = [each["function"]["name"] if is_openai else each["name"] for each in body.get("tools") or []]
    if is_openai and len(names) > OPENAI_MOST:
        return f"{len(names)} tools are more than {OPENAI_MOST}"
    if len({*names}) < len(names):
        return "a tool has the name of another one"
    waiting: list[str] = []
    for message in body["messages"]:
        made, answered = _ids_in(message)
        if waiting[: len(answered)] != answered or (waiting[len(answered) :] and message["role"] != "tool"):
            return f"the calls {waiting} are answered by {answered}"
        waiting = [*waiting[len(answered) :], *made]
        if not (message.get("content") or made):
            return "a message is empty"
    return f"the calls {waiting} have no answer" if waiting else ""


def _ids_in(message: JsonObject) -> tuple[list[str], list[str]]:
    """The ids of the calls in a message, and of those that it answers."""
    if message["role"] == "tool":
        return [], [message["tool_call_id"]]
    blocks = message["content"] if isinstance(message.get("content"), list) else []
    made = [call["id"] for call in message.get("tool_calls") or []]
    made += [block["id"] for block in blocks if block["type"] == "tool_use"]
    return made, [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]


# -- requests as the model reads them ------------------------------------------------------------------------------


def _written(body: JsonObject, *, is_openai: bool) -> Written:
    form = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema") or {}
    properties = form.get("properties") or {}
    described = _tools_in_text(body)
    if described:
        return as_json(next_reply(Prompt(described, *_said_in_text(body["messages"]))))
    if properties:  # the probe asks whether a form is kept to
        return json.dumps({name: (value.get("enum") or [""])[0] for name, value in properties.items()})
    tools = body.get("tools") or []
    names = tuple(each["function"]["name"] if is_openai else each["name"] for each in tools)
    read = _said_over_openai if is_openai else _said_over_anthropic
    return next_reply(Prompt(names, *read(body["messages"])))


def _tools_in_text(body: JsonObject) -> tuple[str, ...]:
    """The names of the tools that a `JsonToolModel` describes in the system text."""
    first: JsonObject = next(iter(body["messages"]), {})
    system = body.get("system") or (first.get("content") if first.get("role") == "system" else "")
    _, how, described = str(system).partition(HOW)
    return tuple(json.loads(line)["name"] for line in described.strip().splitlines()) if how else ()


def _said_over_openai(messages: Sequence[JsonObject]) -> tuple[str, tuple[Exchange, ...]]:
    said, calls, exchanges = "", dict[str, JsonObject](), list[Exchange]()
    for message in messages:
        if message["role"] == "user":
            said, exchanges = str(message["content"]), []
        for call in message.get("tool_calls") or []:
            calls[call["id"]] = call["function"]
        if message["role"] == "tool":
            call = calls[message["tool_call_id"]]
            exchanges.append(Exchange(call["name"], json.loads(call["arguments"]), message["content"]))
    return said, tuple(exchanges)


def _said_over_anthropic(messages: Sequence[JsonObject]) -> tuple[str, tuple[Exchange, ...]]:
    said, calls, exchanges = "", dict[str, JsonObject](), list[Exchange]()
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_use":
                calls[block["id"]] = block
            elif block["type"] == "tool_result":
                call = calls[block["tool_use_id"]]
                exchanges.append(Exchange(call["name"], call["input"], str(block.get("content") or "")))
            elif message["role"] == "user":
                said, exchanges = block["text"], []
    return said, tuple(exchanges)


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


# -- replies -------------------------------------------------------------------------------------------------------


def _openai_reply(reply_id: str, model: str, written: Written, usage: _Usage) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": written if isinstance(written, str) else None}
    if not isinstance(written, str):
        function = {"name": written[0], "arguments": json.dumps(dict(written[1]), ensure_ascii=False)}
        message = {**message, "tool_calls": [{"id": f"call_{reply_id}", "type": "function", "function": function}]}
    choice = {"index": 0, "message": message, "finish_reason": "stop" if isinstance(written, str) else "tool_calls"}
    counts = {"prompt_tokens": usage.prompt, "completion_tokens": usage.written}
    counts |= {"total_tokens": usage.prompt + usage.written}
    details = {"prompt_tokens_details": {"cached_tokens": usage.cached}}
    head = {"id": reply_id, "object": "chat.completion", "created": 1, "model": model}
    return {**head, "choices": [choice], "usage": {**counts, **details}}


def _openai_pieces(reply: JsonObject) -> list[str]:
    message, stop = reply["choices"][0]["message"], reply["choices"][0]["finish_reason"]
    deltas: list[JsonObject] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in _cut(message["content"] or "")]
    for call in message.get("tool_calls") or []:
        head = {"index": 0, "id": call["id"], "type": "function"}
        deltas.append({"tool_calls": [{**head, "function": {"name": call["function"]["name"], "arguments": ""}}]})
        more = _cut(call["function"]["arguments"])
        deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in more]
    head = {key: reply[key] for key in ("id", "model", "created")} | {"object": "chat.completion.chunk"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": stop})
    chunks = [{**head, "choices": [choice]} for choice in choices]
    chunks.append({**head, "choices": [], "usage": reply["usage"]})
    return [*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n"]


def _anthropic_reply(reply_id: str, model: str, written: Written, usage: _Usage) -> JsonObject:
    block: JsonObject = {"type": "text", "text": written}
    if not isinstance(written, str):
        block = {"type": "tool_use", "id": f"toolu_{reply_id}", "name": written[0], "input": dict(written[1])}
    counts = {"input_tokens": usage.prompt - usage.cached, "output_tokens": usage.written}
    counts |= {"cache_read_input_tokens": usage.cached, "cache_creation_input_tokens": 0}
    head = {"id": reply_id, "type": "message", "role": "assistant", "model": model, "stop_sequence": None}
    return {**head, "content": [block], "stop_reason": "end_turn" if isinstance(written, str) else "tool_use",
            "usage": counts}  # fmt: skip


def _anthropic_pieces(reply: JsonObject) -> list[str]:
    block = reply["content"][0]
    is_text = block["type"] == "text"
    told = block["text"] if is_text else json.dumps(block["input"], ensure_ascii=False)
    kind, key = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
    begin = {**block, "text": ""} if is_text else {**block, "input": {}}
    events: list[JsonObject] = [
        {"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": begin},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": kind, key: piece}} for piece in _cut(told)),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reply["stop_reason"], "stop_sequence": None},
         "usage": {"output_tokens": reply["usage"]["output_tokens"]}},
        {"type": "message_stop"},
    ]  # fmt: skip
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


def _cut(text: str) -> list[str]:
    return [text[start : start + 40] for start in range(0, len(text), 40)]
