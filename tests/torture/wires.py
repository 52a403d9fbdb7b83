"""Random replies and streams of the wires, such as no provider should send, read alone and in an agent."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from tests.torture import Outcome
from toolsearch import Agent, CallModel, Reply, ReplyError, SetupError, ToolSearch
from toolsearch.events.facts import TextDelta
from toolsearch.events.stops import REASONS, STOPS
from toolsearch.wires import anthropic, gemini, ollama, openai_chat, openai_responses

__all__ = ["replies", "streams"]

MOST_EXAMPLES = 5  # violations that are told in words
_WIRES: tuple[ModuleType, ...] = (openai_chat, anthropic, openai_responses, gemini, ollama)
_KEYS = (
    "role", "content", "tool_calls", "function", "name", "arguments", "id", "type", "choices", "message", "delta",
    "index", "usage", "stop_reason", "input", "text", "thinking", "tool_use", "finish_reason", "model", "refusal",
    "function_call", "prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "signature", "error",
    "code", "audio", "transcript", "prompt_tokens_details", "cached_tokens", "tool_uses", "recipient_name",
    "parameters", "output", "call_id", "summary", "namespace", "execution", "incomplete_details", "reason", "phase",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, "", '{"x":1}', '{"x":1}{"x":1}', "{bad", "assistant", 0, -1, 1e400, float("nan"), True, [], {}, "tool_use",
    "text", "function", "\ud800", 10**400, b"x", "multi_tool_use.parallel", "length", "refusal", "pause_turn", "error",
    "function_call", "tool_search_call", "client", "message", "reasoning", "incomplete", "final_answer",
)  # fmt: skip


class _Findings:
    """The figures of an attack, and the first violations in words."""

    def __init__(self) -> None:
        self.figures: Counter[str] = Counter({"tried": 0, "violations": 0})
        self.violations: list[str] = []

    def add(self, what: str, example: object) -> None:
        self.figures["violations"] += 1
        if len(self.violations) < MOST_EXAMPLES:
            self.violations.append(f"{what}: {repr(example)[:300]}")

    def outcome(self) -> Outcome:
        return Outcome(dict(self.figures), self.violations)


# -- whole replies -----------------------------------------------------------------------------------------------------


def replies(count: int, seed: int) -> Outcome:
    """Reads `count` random replies: only `SetupError` and `ReplyError` are raised, ids differ, messages can be sent."""
    rng, found = random.Random(seed), _Findings()
    session = ToolSearch([{"name": "echo", "run": lambda **_: "E"}], mode="static").session()
    for number in range(count):
        wire, near = _WIRES[number % len(_WIRES)], _NEAR[number % len(_NEAR)]
        reply = near(rng) if rng.random() < 0.8 else _shape(rng, 0)
        found.figures["tried"] += 1
        _guarded(found, "calls_in", reply, lambda w=wire, r=reply: _check_calls(w, session, r))  # type: ignore[misc]
        _guarded(found, "message_from", reply, lambda w=wire, r=reply: _dumped(w.message_from(r)))  # type: ignore[misc]
        _guarded(found, "reply_from", reply, lambda w=wire, r=reply: w.reply_from(r))  # type: ignore[misc]
    return found.outcome()


def _guarded(found: _Findings, what: str, reply: object, function: Callable[[], object]) -> None:
    try:
        function()
    except (SetupError, ReplyError) as error:
        found.figures[f"{what} {type(error).__name__}"] += 1
    except Exception as error:
        found.add(f"{what} raised {type(error).__name__}: {str(error)[:80]}", reply)


def _check_calls(wire: ModuleType, session: Any, reply: object) -> None:
    calls = wire.calls_in(reply)
    ids = [call.id for call in calls]
    if len({*ids}) < len(ids) or not all(isinstance(each, str) and each for each in ids):
        raise AssertionError(f"ids {ids}")
    _dumped(wire.results_for([(call, session.handle(call)) for call in calls]))


def _dumped(value: object) -> None:
    json.dumps(value, ensure_ascii=False, allow_nan=False, default=str).encode("utf-8")


def _shape(rng: random.Random, depth: int) -> Any:
    chance = rng.random()
    if depth > 4 or chance < 0.35:
        return rng.choice(_VALUES)
    if chance < 0.55:
        return [_shape(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {rng.choice(_KEYS): _shape(rng, depth + 1) for _ in range(rng.randrange(6))}


def _near_chat(rng: random.Random) -> Any:
    calls = [
        {"id": _shape(rng, 4), "type": _shape(rng, 4),
         "function": {"name": _shape(rng, 4), "arguments": _shape(rng, 3)}}
        if rng.random() < 0.7
        else _shape(rng, 2)
        for _ in range(rng.randrange(3))
    ]  # fmt: skip
    message = {"role": "assistant", "content": _shape(rng, 2), "tool_calls": calls}
    choice = {"message": message if rng.random() < 0.8 else _shape(rng, 1), "finish_reason": _shape(rng, 4)}
    choices = [choice] if rng.random() < 0.9 else _shape(rng, 1)
    return {"choices": choices, "usage": _shape(rng, 2), "model": _shape(rng, 4)}


def _near_message(rng: random.Random) -> Any:
    content = [
        {"type": rng.choice(("text", "tool_use", "thinking", "x")), "id": _shape(rng, 4), "name": _shape(rng, 4),
         "input": _shape(rng, 3), "text": _shape(rng, 4), "thinking": _shape(rng, 4)}
        if rng.random() < 0.8
        else _shape(rng, 2)
        for _ in range(rng.randrange(4))
    ]  # fmt: skip
    end = {"usage": _shape(rng, 2), "stop_reason": _shape(rng, 4)}
    return {"role": "assistant", "type": "message", "content": content, **end}


def _near_response(rng: random.Random) -> Any:
    items = [
        {"type": rng.choice(("message", "function_call", "tool_search_call", "reasoning", "custom_tool_call", "x")),
         "id": _shape(rng, 4), "call_id": _shape(rng, 4), "name": _shape(rng, 4), "arguments": _shape(rng, 3),
         "content": _shape(rng, 2), "summary": _shape(rng, 2), "execution": rng.choice(("client", "server", None))}
        if rng.random() < 0.8
        else _shape(rng, 2)
        for _ in range(rng.randrange(4))
    ]  # fmt: skip
    end = {"usage": _shape(rng, 2), "status": _shape(rng, 4), "incomplete_details": _shape(rng, 3)}
    return {"object": "response", "output": items if rng.random() < 0.9 else _shape(rng, 1), **end}


def _near_contents(rng: random.Random) -> Any:
    parts = [
        {"text": _shape(rng, 4), "thought": _shape(rng, 4), "thoughtSignature": _shape(rng, 4)}
        if rng.random() < 0.4
        else {rng.choice(("functionCall", "function_call", "inlineData", "x")): _near_function(rng)}
        for _ in range(rng.randrange(4))
    ]
    content = {"role": "model", "parts": parts if rng.random() < 0.9 else _shape(rng, 2)}
    candidate = {"content": content if rng.random() < 0.9 else _shape(rng, 2), "finishReason": _shape(rng, 4)}
    candidates = [candidate] if rng.random() < 0.9 else _shape(rng, 1)
    return {"candidates": candidates, "usageMetadata": _shape(rng, 2), "promptFeedback": _shape(rng, 3)}


def _near_function(rng: random.Random) -> Any:
    call = {"name": _shape(rng, 4), "args": _shape(rng, 3), "arguments": _shape(rng, 3), "id": _shape(rng, 4)}
    return call if rng.random() < 0.8 else _shape(rng, 2)


def _near_ollama(rng: random.Random) -> Any:
    calls = [{"function": _near_function(rng)} if rng.random() < 0.8 else _shape(rng, 2) for _ in range(3)]
    message = {"content": _shape(rng, 3), "thinking": _shape(rng, 4), "tool_calls": calls}
    end = {"done": _shape(rng, 4), "done_reason": _shape(rng, 4), "prompt_eval_count": _shape(rng, 4)}
    return {"message": message if rng.random() < 0.9 else _shape(rng, 1), **end}


_NEAR: tuple[Callable[[random.Random], Any], ...] = (
    _near_chat, _near_message, _near_response, _near_contents, _near_ollama,
)  # fmt: skip


# -- streams -----------------------------------------------------------------------------------------------------------


def streams(count: int, seed: int) -> Outcome:
    """Sends `count` random streams to an agent: pieces out of order, without ids, of no sense, broken off.

    Each turn ends with an answer, with a reason of its own, or with `ReplyError`; afterwards the history can be sent,
    and the conversation goes on. The figures count the turns by their end, and the calls that ran.
    """
    rng, found = random.Random(seed), _Findings()
    for number in range(count):
        wire, pieces = _WIRES[number % len(_WIRES)], _STREAMS[number % len(_STREAMS)](rng)
        found.figures["tried"] += 1
        try:
            _play(wire, pieces, found)
        except Exception as error:
            found.add(f"a stream raised {type(error).__name__}: {str(error)[:80]}", pieces)
    return found.outcome()


class _Stream(list[Any]):
    """Pieces, as the SDK of a provider gives them."""

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class _Client:
    """A client of any provider that answers with one stream."""

    def __init__(self, pieces: list[Any]) -> None:
        self._pieces = pieces
        self.chat = self.completions = self.messages = self.responses = self.models = self

    def create(self, **_: Any) -> _Stream:
        return _Stream(self._pieces)

    __call__ = generate_content = generate_content_stream = create


class _Model:
    """Asks the wire's model first, and ends after that."""

    name = "torture"

    def __init__(self, wire: ModuleType, pieces: list[Any]) -> None:
        self._inner, self._asked = wire.model(_Client(pieces), "m"), 0

    def __call__(self, request: CallModel) -> Reply | Iterator[TextDelta | Reply]:
        self._asked += 1
        answer: Iterator[TextDelta | Reply] = self._inner(request)
        return answer if self._asked == 1 else Reply("end")


def _play(wire: ModuleType, pieces: list[Any], found: _Findings) -> None:
    ran: list[object] = []
    echo = {"name": "echo", "run": lambda **given: ran.append(given)}
    agent = Agent(_Model(wire, pieces), ToolSearch([echo], mode="static"), defaults=False)
    try:
        result = agent.run("Go", conversation_id="s")
        reason = str(getattr(result, "reason", "paused for a person"))
    except ReplyError:
        reason = "ReplyError"
    found.figures[reason] += 1
    found.figures["calls that ran"] += len(ran)
    if reason not in {"answered", "ReplyError", *REASONS}:
        found.add(f"a turn ended as {reason!r}", pieces)
    for each in _WIRES:
        _dumped(each.messages_for(agent.conversation("s").transcript))
    if getattr(agent.run("And now?", conversation_id="s"), "reason", "") != "answered":
        found.add("a conversation did not go on", pieces)


_ARGUMENTS: tuple[Any, ...] = (
    '{"x"', ":1}", "}", '{"x":2}', "", None, "{bad", {"x": 3}, 5, '"', '{"x":1}', "{}", "\\", "[" * 900, "\ud800",
)  # fmt: skip
_STOPS: tuple[Any, ...] = (None, "stop", "tool_calls", "tool_use", "end_turn", 5, *STOPS)


def _chat_piece(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def _chat_stream(rng: random.Random) -> list[Any]:
    pieces: list[Any] = []
    for _ in range(rng.randrange(10)):
        chance = rng.random()
        if chance < 0.15:
            pieces.append(_chat_piece(content=rng.choice(["hi", None, "", ["x"], 5])))
        elif chance < 0.85:
            pieces.append(_chat_piece(tool_calls=[_call_piece(rng)]))
        else:
            pieces.append(rng.choice(_ODD_CHUNKS))
    if rng.random() < 0.7:
        pieces.append({"choices": [{"delta": {}, "finish_reason": rng.choice(_STOPS)}]})
    return pieces


_ODD_CHUNKS: tuple[Any, ...] = (
    {}, {"choices": []}, {"choices": None}, {"choices": [{}]}, {"choices": [{"delta": None}]}, {"choices": [5]},
    {"usage": {"prompt_tokens": 3, "completion_tokens": None}}, {"usage": "x", "choices": []}, {"error": "busy"},
    {"choices": [{"delta": {"tool_calls": 5}}]}, {"choices": [{"delta": {"tool_calls": [None]}}]},
)  # fmt: skip


def _call_piece(rng: random.Random) -> Any:
    call: dict[str, Any] = {}
    if rng.random() < 0.8:
        call["index"] = rng.choice([0, 1, 2, -1, None, "0", 5, True, 10**9])
    if rng.random() < 0.5:
        call["id"] = rng.choice(["a", "b", "", None, 7])
    function: dict[str, Any] = {}
    if rng.random() < 0.5:
        function["name"] = rng.choice(["echo", "ec", "ho", "", None, 5])
    if rng.random() < 0.8:
        function["arguments"] = rng.choice(_ARGUMENTS)
    if rng.random() < 0.9:
        call["function"] = function if rng.random() < 0.95 else None
    return call if rng.random() < 0.95 else rng.choice([None, [None], {}])


_BLOCKS: tuple[Any, ...] = (
    {"type": "text", "text": ""}, {"type": "thinking", "thinking": ""}, {}, None, 5,
    {"type": "tool_use", "id": "a", "name": "echo", "input": {}}, {"type": "tool_use", "id": "", "name": "echo"},
    {"type": "tool_use", "id": "b", "name": None, "input": {"x": 1}}, {"type": "tool_use", "id": 5, "name": "echo"},
)  # fmt: skip
_DELTAS: tuple[Any, ...] = (
    {"type": "text_delta", "text": "t"}, {"type": "thinking_delta", "thinking": "h"}, {}, None, 5,
    {"type": "signature_delta", "signature": "s"}, {"type": "text_delta", "text": 5},
    *({"type": "input_json_delta", "partial_json": piece} for piece in _ARGUMENTS),
)  # fmt: skip
_ODD_EVENTS: tuple[Any, ...] = (
    {"type": "ping"}, {"type": "content_block_stop", "index": 0}, {"type": "message_delta"}, {},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
    {"type": "message_delta", "delta": 5, "usage": "x"}, {"type": "content_block_delta", "delta": {}},
    {"type": "error", "error": {"type": "overloaded_error"}},
)  # fmt: skip


def _message_stream(rng: random.Random) -> list[Any]:
    start = {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": {"input_tokens": 1}}}
    pieces: list[Any] = [start] if rng.random() < 0.9 else []
    for _ in range(rng.randrange(10)):
        index, chance = rng.choice([0, 1, 2, None]), rng.random()
        if chance < 0.3:
            pieces.append({"type": "content_block_start", "index": index, "content_block": rng.choice(_BLOCKS)})
        elif chance < 0.9:
            pieces.append({"type": "content_block_delta", "index": index, "delta": rng.choice(_DELTAS)})
        else:
            pieces.append(rng.choice(_ODD_EVENTS))
    if rng.random() < 0.7:
        pieces.append({"type": "message_delta", "delta": {"stop_reason": rng.choice(_STOPS)}})
    return pieces


_ITEMS: tuple[Any, ...] = (
    {"type": "message", "role": "assistant", "content": []}, {"type": "reasoning", "summary": []}, {}, None, 5,
    {"type": "function_call", "call_id": "a", "name": "echo", "arguments": ""},
    {"type": "function_call", "call_id": "", "name": "echo"}, {"type": "function_call", "call_id": 5, "name": None},
    {"type": "tool_search_call", "call_id": "b", "execution": "client", "arguments": {"queries": ["x"]}},
    {"type": "function_call", "call_id": "b", "name": "echo", "arguments": '{"x": 4}'},
    {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}, {"type": "message", "content": "hi"},
)  # fmt: skip
_RESPONSES: tuple[Any, ...] = (
    {}, None, 5, {"status": "completed", "output": []}, {"output": 5, "status": "incomplete"}, {"output": [None]},
    {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    {"status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": "end"}]}]},
)  # fmt: skip


def _response_stream(rng: random.Random) -> list[Any]:
    pieces: list[Any] = [{"type": "response.created", "response": {"id": "r"}}] if rng.random() < 0.9 else []
    for _ in range(rng.randrange(10)):
        where = {"output_index": rng.choice([0, 1, 2, None]), "content_index": rng.choice([0, 1, None])}
        kind = rng.choice(("output_text", "refusal", "reasoning_summary_text", "reasoning_text",
                           "function_call_arguments", "function_call_arguments", "x"))  # fmt: skip
        chance = rng.random()
        if chance < 0.4:
            name = rng.choice(("added", "added", "done"))
            pieces.append({"type": f"response.output_item.{name}", **where, "item": rng.choice(_ITEMS)})
        elif chance < 0.9:
            pieces.append({"type": f"response.{kind}.delta", **where, "delta": rng.choice(_ARGUMENTS)})
        else:
            done = {"type": "response.function_call_arguments.done", "arguments": rng.choice(_ARGUMENTS)}
            pieces.append(rng.choice(({"type": "error"}, {}, {"type": "response.failed"}, done)))
    if rng.random() < 0.7:
        kind = rng.choice(("completed", "completed", "incomplete", "failed", "cancelled"))
        pieces.append({"type": f"response.{kind}", "response": rng.choice(_RESPONSES)})
    return pieces


_ODD_REPLIES: tuple[Any, ...] = (
    {}, {"candidates": None}, {"candidates": [5]}, {"candidates": [{}]}, {"candidates": [{"content": 5}]},
    {"error": "x"},
    {"candidates": [{"content": {"parts": 5}}]}, {"usageMetadata": "x"}, {"promptFeedback": {"blockReason": 5}},
    {"message": None}, {"message": {"tool_calls": 5}}, {"message": {"tool_calls": [None, {}]}}, {"done": True},
)  # fmt: skip


def _contents_stream(rng: random.Random) -> list[Any]:
    pieces = [
        _contents_piece(rng) if rng.random() < 0.85 else rng.choice(_ODD_REPLIES) for _ in range(rng.randrange(9))
    ]
    if rng.random() < 0.7:
        pieces.append({"candidates": [{"finishReason": rng.choice(_STOPS)}]})
    return pieces


def _contents_piece(rng: random.Random) -> Any:
    path, given = rng.choice(["$.x", "$.x[0].y", "$.x[9]", "$", "", None, "$['x']"]), rng.choice(_ARGUMENTS)
    more = rng.choice([True, None])
    partial = {"jsonPath": path, "stringValue": given, "willContinue": rng.choice([True, False, None])}
    call = {
        "name": rng.choice(["echo", "", None, 5]), "id": rng.choice(["a", "", None, 7]), "args": given,
        "partialArgs": rng.choice([None, [partial], [partial, partial], 5, [5]]), "willContinue": more,
    }  # fmt: skip
    text = {"text": rng.choice(["hi", "", None, 5]), "thought": rng.choice([True, None]), "thoughtSignature": "c2ln"}
    part = rng.choice([{"functionCall": call}, {"functionCall": rng.choice([None, 5, {}])}, text, {"text": "t"}, {}, 5])
    return {"candidates": [{"content": {"parts": [part]}, "index": rng.choice([0, None, 1, "x"])}]}


def _ollama_stream(rng: random.Random) -> list[Any]:
    pieces: list[Any] = []
    for _ in range(rng.randrange(9)):
        function = {"name": rng.choice(["echo", "", None, 5]), "arguments": rng.choice(_ARGUMENTS)}
        calls = rng.choice([[{"function": function}], [{"function": 5}], None, 5])
        message = {"content": rng.choice(["hi", "", None, 5]), "thinking": rng.choice(["h", None]), "tool_calls": calls}
        pieces.append({"message": message, "done": False} if rng.random() < 0.85 else rng.choice(_ODD_REPLIES))
    if rng.random() < 0.7:
        pieces.append({"message": {}, "done": True, "done_reason": rng.choice(_STOPS)})
    return pieces


_STREAMS: tuple[Callable[[random.Random], list[Any]], ...] = (
    _chat_stream, _message_stream, _response_stream, _contents_stream, _ollama_stream,
)  # fmt: skip
