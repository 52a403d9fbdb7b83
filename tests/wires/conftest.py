"""A provider on this machine: answers from a script, and refuses with 400 what the real one would refuse."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from toolsearch.testing.loopback import openai_responses

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
RECORDED = Path(__file__).parent / "recorded"


class Provider:
    """`replies` are sent in turn; `bodies` are the requests as they came, byte by byte."""

    def __init__(
        self,
        path: str,
        problems: Callable[[dict[str, Any]], list[str]],
        pieces: Callable[[dict[str, Any]], list[str]] = lambda _: [],
    ) -> None:
        self.path, self.problems, self.pieces = path, problems, pieces
        self.replies: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.refused: list[str] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, answer = provider.answer(self.path, body)
                streamed = status == 200 and json.loads(body).get("stream")
                pieces = provider.pieces(answer) if streamed else []
                data = "".join(pieces).encode() if streamed else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream" if streamed else "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def answer(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        self.bodies.append(body)
        found = [] if path == self.path else [f"there is no {path}"]
        found += self.problems(strict_json(body))
        if found or not self.replies:
            self.refused += found or ["the script is at its end"]
            return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": "; ".join(found)}}
        return 200, self.replies.pop(0)

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def strict_json(body: bytes) -> dict[str, Any]:
    def refuse(text: str) -> None:
        raise ValueError(f"{text} is no JSON")

    value = json.loads(body.decode("utf-8"), parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode("utf-8")  # no lone surrogates either
    assert isinstance(value, dict)
    return value


def schema_problems(name: str, schema: Any) -> list[str]:
    found = []
    schema = schema if isinstance(schema, dict) else {}
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        found.append(f"the schema of {name!r} is no object with properties")
    root = [key for key in ("anyOf", "oneOf", "allOf", "not", "enum") if key in schema]
    return found + [f"the schema of {name!r} has {key} at its root" for key in root]


def name_problems(names: list[Any]) -> list[str]:
    found = [f"the name {n!r} is not legal" for n in names if not (isinstance(n, str) and NAME.fullmatch(n))]
    return found + ([f"a name comes twice: {names}"] if len({*names}) < len(names) else [])


def openai_problems(body: dict[str, Any]) -> list[str]:
    tools = body.get("tools", [])
    functions = [tool.get("function", {}) for tool in tools]
    found = [f"{len(tools)} tools are more than 128"] if len(tools) > 128 else []
    found += ["a tool is no function"] if any(tool.get("type") != "function" for tool in tools) else []
    found += name_problems([function.get("name") for function in functions])
    for function in functions:
        found += schema_problems(str(function.get("name")), function.get("parameters"))
        if not 0 < len(function.get("description", "")) <= 1_024:
            found.append(f"the description of {function.get('name')!r} has {len(function['description'])} characters")
    return found + openai_history_problems(body["messages"])


def openai_history_problems(messages: list[dict[str, Any]]) -> list[str]:
    found = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if not waiting or message["tool_call_id"] != waiting.pop(0):
                found.append(f"{message['tool_call_id']!r} is answered twice, unasked, or out of order")
            if not isinstance(message["content"], str):
                found.append("a result is no text")
            continue
        if waiting:
            found.append(f"the calls {waiting} have no answer")
        calls = message.get("tool_calls", [])
        waiting = [call["id"] for call in calls]
        if len({*waiting}) < len(waiting) or any(not 0 < len(i) <= 40 for i in waiting):
            found.append(f"the ids {waiting} are not distinct texts of at most 40 characters")
        if message["role"] == "assistant" and message.get("content") is None and not calls:
            found.append("an assistant's message is empty")
        for call in calls:
            found += name_problems([call["function"]["name"]])
            try:
                strict_json(call["function"]["arguments"].encode())
            except (ValueError, AssertionError):
                found.append(f"the arguments of {call['id']!r} are no JSON object")
    return found + ([f"the calls {waiting} have no answer"] if waiting else [])


def anthropic_problems(body: dict[str, Any]) -> list[str]:
    tools = body.get("tools", [])
    found = name_problems([tool.get("name") for tool in tools])
    for tool in tools:
        found += schema_problems(tool["name"], tool.get("input_schema"))
        known = {"name", "description", "input_schema", "defer_loading"}
        found += [] if {*tool} <= known else [f"{tool['name']!r} has unknown fields"]
    if not isinstance(body.get("max_tokens"), int):
        found.append("max_tokens is missing")
    waiting: list[str] = []
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks or any(b["type"] == "text" and not b["text"].strip() for b in blocks):
            found.append("a message or a text is empty")
        answered = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if answered != waiting or any(b["type"] == "tool_result" for b in blocks[len(waiting) :]):
            found.append(f"the calls {waiting} are answered by {answered}")
        uses = [b for b in blocks if b["type"] == "tool_use"]
        waiting = [b["id"] for b in uses]
        if len({*waiting}) < len(waiting) or not all(re.fullmatch(r"[a-zA-Z0-9_-]+", i) for i in waiting):
            found.append(f"the ids {waiting} are not legal and distinct")
        for use in uses:
            found += name_problems([use["name"]])
            found += [] if isinstance(use["input"], dict) else [f"the input of {use['id']!r} is no object"]
    return found + ([f"the calls {waiting} have no answer"] if waiting else [])


def cut(text: str) -> list[str]:
    return [text[start : start + 3] for start in range(0, len(text), 3)]


def openai_pieces(reply: dict[str, Any]) -> list[str]:
    """A reply as the server-sent events of a stream."""
    message, stop = reply["choices"][0]["message"], reply["choices"][0]["finish_reason"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in cut(message.get("reasoning_content") or "")]
    deltas += [{"content": piece} for piece in cut(message.get("content") or "")]
    for at, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        head = {"index": at, "id": call["id"], "type": "function", "function": {**function, "arguments": ""}}
        pieces = [{"index": at, "function": {"arguments": piece}} for piece in cut(function["arguments"])]
        deltas += [{"tool_calls": [part]} for part in [head, *pieces]]
    kept = {key: reply[key] for key in ("id", "model", "created")} | {"object": "chat.completion.chunk"}
    chunks = [kept | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append(kept | {"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
    chunks.append(kept | {"choices": [], "usage": reply.get("usage")})
    return [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]


def anthropic_pieces(reply: dict[str, Any]) -> list[str]:
    """A reply as the server-sent events of a stream."""
    head = {**reply, "content": [], "stop_reason": None, "usage": {**reply["usage"], "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": head}]
    for at, block in enumerate(reply["content"]):
        kind = block["type"]
        key = {"text": "text", "thinking": "thinking", "tool_use": "input"}[kind]
        start = {**block, key: {} if kind == "tool_use" else ""} | ({"signature": ""} if kind == "thinking" else {})
        events.append({"type": "content_block_start", "index": at, "content_block": start})
        told = json.dumps(block["input"]) if kind == "tool_use" else block[key]
        name = "partial_json" if kind == "tool_use" else key
        delta = "input_json_delta" if kind == "tool_use" else f"{kind}_delta"
        deltas = [{"type": delta, name: piece} for piece in cut(told)]
        deltas += [{"type": "signature_delta", "signature": block["signature"]}] if kind == "thinking" else []
        events += [{"type": "content_block_delta", "index": at, "delta": each} for each in deltas]
        events.append({"type": "content_block_stop", "index": at})
    end = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    tokens = {"output_tokens": reply["usage"]["output_tokens"]}
    events += [{"type": "message_delta", "delta": end, "usage": tokens}, {"type": "message_stop"}]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


@pytest.fixture
def openai_server() -> Iterator[Provider]:
    provider = Provider("/v1/chat/completions", openai_problems, openai_pieces)
    yield provider
    provider.close()


@pytest.fixture
def anthropic_server() -> Iterator[Provider]:
    provider = Provider("/v1/messages", anthropic_problems, anthropic_pieces)
    yield provider
    provider.close()


@pytest.fixture
def responses_server() -> Iterator[Provider]:
    provider = Provider(
        "/v1/responses",
        lambda body: [reason] if (reason := openai_responses.refusal(body)) else [],
        lambda reply: [*openai_responses.events(reply, 3)],
    )
    yield provider
    provider.close()


@pytest.fixture
def recorded() -> Callable[[str], Any]:
    """Reads a file of `recorded/`."""
    return lambda name: json.loads((RECORDED / name).read_text("utf-8"))


@pytest.fixture
def openai_refuses() -> Callable[[dict[str, Any]], list[str]]:
    """What OpenAI would refuse in a request body."""
    return openai_problems


@pytest.fixture
def anthropic_refuses() -> Callable[[dict[str, Any]], list[str]]:
    """What Anthropic would refuse in a request body."""
    return anthropic_problems
