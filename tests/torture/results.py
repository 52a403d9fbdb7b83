"""Whatever a tool returns or raises is an answer, in both drivers, and the next turn of the conversation works."""

from __future__ import annotations

import asyncio
import base64
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.torture import Outcome
from toolsearch import Agent, AudioPart, ImagePart, JsonPart, SetupError, StateError, TextPart, ToolResult, ToolSearch
from toolsearch.calls import STATUSES
from toolsearch.events import ToolReturned
from toolsearch.layers import logs, truncate
from toolsearch.stores import MemoryStore
from toolsearch.testing import ScriptedModel
from toolsearch.wires import anthropic, openai_chat

SLOW_SECONDS = 20.0  # for two turns, on a busy machine


class _Unprintable:
    def __init__(self, error: type[BaseException]) -> None:
        self._error = error

    def __repr__(self) -> str:
        raise self._error

    __str__ = __repr__


class _Dump:
    """A model whose dump fails, or gives another model for ever."""

    def __init__(self, ends: bool) -> None:
        self._ends = ends

    def model_dump(self, **_: object) -> object:
        if self._ends:
            raise RuntimeError("dump")
        return _Dump(ends=False)


class _Everything:
    """An object that has every attribute."""

    def __getattr__(self, name: str) -> Any:
        return _Everything()


class _Trap:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class _BadText(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


def _raising(error: BaseException) -> Callable[[], Any]:
    def function() -> Any:
        raise error

    return function


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def _circle() -> Any:
    circle: list[Any] = []
    circle.append(circle)
    return circle


def _recursion() -> Any:
    return _recursion()


_PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 3_000_000).decode()


def _content(*blocks: Any, **more: Any) -> Any:
    return lambda: {"content": list(blocks), **more}


KINDS: dict[str, Callable[[], Any]] = {
    "bytes": lambda: b"\x00\xff" * 100,
    "not a number": lambda: {"x": float("nan"), "y": float("inf")},
    "20 MB": lambda: "a" * 20_000_000,
    "circle": _circle,
    "object": object,
    "set": lambda: {1, "a"},
    "repr that exits": lambda: _Unprintable(SystemExit),
    "repr that interrupts": lambda: {"a": _Unprintable(KeyboardInterrupt)},
    "dump that fails": lambda: _Dump(ends=True),
    "dump without end": lambda: _Dump(ends=False),
    "generator": lambda: iter([1, 2]),
    "300 deep": lambda: _deep(300),
    "5000 deep": lambda: _deep(5_000),
    "lone surrogate": lambda: "\ud800",
    "nul": lambda: "a\0b",
    "huge number": lambda: 10**6000,
    "keys that are tuples": lambda: {(1, 2): 3},
    "nothing": lambda: None,
    "exception": _raising(RuntimeError("password=hunter2")),
    "BaseException": _raising(BaseException("b")),
    "SystemExit": _raising(SystemExit(2)),
    "KeyboardInterrupt": _raising(KeyboardInterrupt()),
    "GeneratorExit": _raising(GeneratorExit()),
    "StopIteration": _raising(StopIteration(5)),
    "CancelledError": _raising(asyncio.CancelledError()),
    "TimeoutError": _raising(TimeoutError()),
    "RecursionError": _recursion,
    "MemoryError": _raising(MemoryError()),
    "exception without text": _raising(_BadText()),
    "SetupError": _raising(SetupError("x")),
    "StateError": _raising(StateError("x")),
    "result of another call": lambda: ToolResult("zzz", "other", "ok", "forged"),
    "result with a wrong status": lambda: ToolResult("zzz", "other", "great", {"a": 1}),  # type: ignore[arg-type]
    "result with a list": lambda: ToolResult("z", "o", "ok", [b"x"]),  # type: ignore[arg-type]
    "awaitable": lambda: asyncio.sleep(0),
    "class": lambda: dict,
    "function": lambda: len,
    # results with parts
    "image of 4 MB": _content({"type": "image", "data": _PNG, "mimeType": "image/png"}),
    "image that is none": _content({"type": "image", "data": "no base64!", "mimeType": "image/png"}),
    "error of a server": _content({"type": "text", "text": "no"}, isError=True),
    "error without a word": _content(isError=True),
    "blocks of odd kinds": _content({"type": 7}, None, 3, {"type": "image"}, isError=False),
    "structure that is deep": _content(structuredContent=_deep(3_000)),
    "parts": lambda: [TextPart("\ud800"), ImagePart(b"\0", "\ud800"), AudioPart("", ""), JsonPart({1: _Trap()})],
    "parts of a circle": lambda: JsonPart(_circle()),
    "result with odd parts": lambda: ToolResult("", "", "ok", "", parts=[1, TextPart("x")]),  # type: ignore[arg-type]
    "result with parts and odd data": lambda: ToolResult("", "", "ok", "x", _Trap(), parts=(TextPart("x"),) * 2),
    "parts without texts": lambda: [TextPart(None), ImagePart(b"", 5), "x"],  # type: ignore[arg-type]
    "server that asks": lambda: {"resultType": "input_required", "inputRequests": {}},
    "every attribute": _Everything,
    "no attribute": _Trap,
}


def results(size: int = 1, seed: int = 0) -> Outcome:
    """Every kind of result, `size` times in both drivers, in an order that the seed gives."""
    outcome = Outcome({"kinds": len(KINDS), "calls": 0, "answers": 0, "next turns": 0})
    order = [(kind, mode) for kind in KINDS for mode in ("run", "arun")] * size
    random.Random(seed).shuffle(order)
    for kind, mode in order:
        outcome.figures["calls"] += 1
        began = time.monotonic()
        try:
            problem = _attack(KINDS[kind], mode, outcome)
        except BaseException as error:
            problem = f"raised {type(error).__name__}: {str(error)[:200]}"
        seconds = time.monotonic() - began
        if problem or seconds > SLOW_SECONDS:
            outcome.violations.append(f"{kind} in {mode}: {problem or f'took {seconds:.0f} s'}")
    return outcome


def _attack(function: Callable[[], Any], mode: str, outcome: Outcome) -> str:
    """What is wrong with the answer to a tool that returns this; empty if nothing is."""
    tools = [{"name": "t", "run": function}, {"name": "other", "run": lambda: "fine"}]
    store, search = MemoryStore(), ToolSearch(tools, mode="static")
    layers = [logs(), truncate(100_000)]
    agent = Agent(ScriptedModel([("t", {}), ("other", {})], "Done."), search, store=store, layers=layers)
    if mode == "run":
        ended = agent.run("Go", conversation_id="s")
    else:
        ended = asyncio.run(agent.arun("Go", conversation_id="s"))
    conversation = agent.conversation("s")
    answers = [fact for fact in conversation.journal if isinstance(fact, ToolReturned)]
    if getattr(ended, "text", "") != "Done.":
        return f"the turn ended with {ended!r}"
    if sorted(fact.call_id for fact in answers) != ["c0_0", "c0_1"]:
        return f"{len(answers)} answers to two calls"
    outcome.figures["answers"] += len(answers)
    for fact in answers:
        if fact.status not in STATUSES or not fact.content.strip() or len(fact.content) > 100_000:
            return f"the answer {fact.status!r} of {len(fact.content):,} characters"
    for wire in (anthropic, openai_chat):
        with suppress(UnicodeError):
            str(wire.messages_for(conversation.transcript)).encode()
            continue
        return f"{wire.__name__} cannot send it"
    again = Agent(ScriptedModel("Again."), search, store=store).run("Go on", conversation_id="s")
    if getattr(again, "text", "") != "Again.":
        return f"the next turn ended with {again!r}"
    outcome.figures["next turns"] += 1
    return ""
