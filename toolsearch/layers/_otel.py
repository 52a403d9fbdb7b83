"""OpenTelemetry: spans by the conventions for generative AI, and counts of rounds, calls, guards and decisions.

    invoke_agent             a run: from what the user said, or from decisions, to an answer or a pause
      chat {model}           a call of the model
      execute_tool {tool}    a tool that ran, or a search; what runs in it with instrumentation of its own is below it

As a layer it makes the spans, as an observer the metrics. Contents are left out unless they are asked for.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Mapping
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from toolsearch.calls import ToolResult
from toolsearch.errors import MissingExtra
from toolsearch.events.facts import (
    Answers,
    Message,
    ModelCalled,
    ModelReplied,
    Note,
    Noted,
    Reply,
    RunEnded,
    ToolApproved,
    ToolDenied,
    ToolReturned,
    ToolWaiting,
    Usage,
    UserSaid,
)
from toolsearch.events.requests import Call, CallModel, Finished, Paused, Run
from toolsearch.protocols import ModelSteps, RunSteps, ToolSteps
from toolsearch.support import checks
from toolsearch.support.context import scope
from toolsearch.support.redaction import redacted
from toolsearch.support.text import clean, text_of

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, SpanKind, TracerProvider

__all__ = ["otel"]

log = logging.getLogger("toolsearch")

PROVIDERS = {"openai_chat": "openai", "openai_responses": "openai", "anthropic": "anthropic"}  # by wire
REMEMBERED = 10_000  # waiting calls that are no approvals

Attributes = dict[str, Any]
G = TypeVar("G")  # what a generator is given
A = TypeVar("A")  # what comes of it


def otel(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    *,
    agent: str = "",
    provider: str = "",
    contents: bool = False,
    side: Literal["chat", "server"] = "chat",
    redact: Callable[[str], str] = redacted,
) -> Any:
    """A layer that makes spans, and an observer that counts: give the same object to `layers` and to `observe`.

    Without providers those that OpenTelemetry has globally are used. `agent` is the agent's name. `provider` is that of
    the model (`gen_ai.provider.name`); without it, that of the wire. With `contents` spans hold messages, arguments and
    results, each text after `redact`. `side` is where decisions are asked for, for the metric. Raises `MissingExtra`
    without the package opentelemetry-api.
    """
    checks.having("tracer_provider", tracer_provider, "a TracerProvider", "get_tracer", none="for the global one")
    checks.having("meter_provider", meter_provider, "a MeterProvider", "get_meter", none="for the global one")
    checks.text("agent", agent)
    checks.text("provider", provider)
    checks.flag("contents", contents)
    checks.choice("side", side, "chat", "server")
    checks.function("redact", redact, "from a text to what may be seen of it")
    seen = partial(_seen, redact) if contents else None
    try:
        return _Otel(tracer_provider, meter_provider, agent=agent, provider=provider, redact=seen, side=side)
    except ImportError as error:
        raise MissingExtra("otel()", "opentelemetry-api", "otel") from error


def _seen(redact: Callable[[str], str], text: str) -> str:
    """What may be seen of a text. No redaction that fails ends a turn, nor lets anything through."""
    try:
        return clean(redact(text))
    except Exception as error:
        log.error("redacting a text for a span failed: %s", type(error).__name__)
        return "[not shown: redaction failed]"


class _Otel:
    name = "otel"

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
        *,
        agent: str,
        provider: str,
        redact: Callable[[str], str] | None,
        side: str,
    ) -> None:
        from opentelemetry import context, metrics, trace

        try:
            version = metadata.version("toolsearch-kit")
        except metadata.PackageNotFoundError:  # run from its sources
            version = ""
        self._context, self._trace = context, trace
        self._tracer = trace.get_tracer("toolsearch", version, tracer_provider)
        meter = metrics.get_meter("toolsearch", version, meter_provider)
        self._iterations = meter.create_counter(
            "agent.tool.loop.iterations", "{iteration}", "Replies of a model that the loop worked on"
        )
        self._calls = meter.create_counter("agent.tool.calls", "{call}", "Calls that models made, by tool")
        self._tokens = meter.create_histogram(
            "agent.tool.loop.tokens", "{token}", "Tokens in and out of one iteration's call of a model"
        )
        self._outcomes = meter.create_counter("chat.tool.loop", "{outcome}", "What guards of the loop did")
        self._decisions = meter.create_counter("mcp.hitl.decision", "{decision}", "Decisions about calls that waited")
        self._agent, self._provider, self._redact, self._side = agent, provider, redact, side
        self._other: dict[tuple[str, str], str] = {}  # waiting calls that no decision of a person is counted for

    # -- spans ---------------------------------------------------------------------------------------------------

    def around_run(self, run: Run) -> RunSteps:
        told = {"gen_ai.agent.name": self._agent} if self._agent else {}
        kind = self._trace.SpanKind.INTERNAL
        span = self._span("invoke_agent", self._agent, kind, run.conversation_id, told)

        def ended(result: object) -> None:
            if isinstance(result, Finished | Paused):
                span.set_attributes(_used(result.usage))
                span.set_attribute("toolsearch.reason", getattr(result, "reason", "paused"))

        return (yield from self._within(span, run, ended))

    def around_model(self, request: CallModel) -> ModelSteps:
        told: Attributes = {"gen_ai.request.model": request.model} if request.model else {}
        if self._provider:
            told["gen_ai.provider.name"] = self._provider
        if request.purpose != "chat":
            told["toolsearch.purpose"] = request.purpose
        span = self._span("chat", request.model, self._trace.SpanKind.CLIENT, request.conversation_id, told)
        if self._redact is not None and span.is_recording():
            if request.system:
                said = [{"type": "text", "content": self._redact(request.system)}]
                span.set_attribute("gen_ai.system_instructions", json.dumps(said, ensure_ascii=False))
            told_in = [_message(message, self._redact) for message in request.transcript]
            span.set_attribute("gen_ai.input.messages", json.dumps(_flat(told_in), ensure_ascii=False))

        def ended(reply: object) -> None:
            if isinstance(reply, Reply):
                span.set_attributes(self._replied(reply))

        return (yield from self._within(span, request, ended))

    def _replied(self, reply: Reply) -> Attributes:
        told = _used(reply.usage)
        if reply.model:
            told["gen_ai.response.model"] = reply.model
        if reply.stop:
            told["gen_ai.response.finish_reasons"] = (reply.stop,)
        if not self._provider and reply.wire:
            told["gen_ai.provider.name"] = PROVIDERS.get(reply.wire, reply.wire)
        if self._redact is not None:
            message = _assistant(reply.text, reply.reasoning, reply.calls, self._redact)
            told["gen_ai.output.messages"] = json.dumps([message | {"finish_reason": reply.stop}], ensure_ascii=False)
        return told

    def around_tool(self, call: Call) -> ToolSteps:
        asked = call.judged
        told: Attributes = {"gen_ai.tool.name": asked.name, "gen_ai.tool.call.id": asked.id}
        told["gen_ai.tool.type"] = "function"
        if asked.tool and asked.tool != asked.name:
            told["toolsearch.tool.id"] = asked.tool
        if self._redact is not None:
            given = asked.arguments if asked.kind == "search" else dict(call.arguments)
            told["gen_ai.tool.call.arguments"] = self._redact(text_of(given))
        span = self._span("execute_tool", asked.name, self._trace.SpanKind.INTERNAL, call.conversation_id, told)

        def ended(result: object) -> None:
            if isinstance(result, ToolWaiting):  # it ran, and somebody has to decide before it can go on
                span.set_attribute("toolsearch.status", "waits")
            if not isinstance(result, ToolResult):
                return
            span.set_attribute("toolsearch.status", result.status)
            if result.status != "ok":
                self._failed(span, result.status)
            if self._redact is not None:
                span.set_attribute("gen_ai.tool.call.result", self._redact(result.content))

        return (yield from self._within(span, call, ended))

    def _span(self, operation: str, what: str, kind: SpanKind, conversation: str, told: Attributes) -> Span:
        named = {"gen_ai.operation.name": operation, "gen_ai.conversation.id": conversation}
        return self._tracer.start_span(f"{operation} {what}".rstrip(), kind=kind, attributes={**named, **told})

    def _within(self, span: Span, request: G, ended: Callable[[object], None]) -> Generator[G, A, A]:
        """Has the request done below the span.

        What was current is set again as it was, and never by a token: those may be used in one context only, and a
        layer can be closed in any.
        """
        before = self._context.get_current()
        self._context.attach(self._trace.set_span_in_context(span))
        try:
            result = yield request
            ended(result)
        except GeneratorExit:
            self._failed(span, "cancelled")
            raise
        except BaseException as error:
            self._failed(span, type(error).__qualname__)
            raise
        finally:
            self._context.attach(before)
            span.end()
        return result

    def _failed(self, span: Span, why: str) -> None:
        span.set_status(self._trace.StatusCode.ERROR)
        span.set_attribute("error.type", why)

    # -- metrics -------------------------------------------------------------------------------------------------

    def __call__(self, event: Any) -> None:
        match event:
            case ModelReplied():
                self._iterations.add(1)
                for call in event.calls:
                    unknown = not call.tool and call.status == "unknown"
                    self._calls.add(1, {"tool": "unknown" if unknown else call.tool or call.name})
            case ModelCalled(purpose="chat", error=""):
                self._tokens.record(event.usage.tokens, {"gen_ai.response.model": event.model} if event.model else {})
            case Noted(note=Mapping() as note) if isinstance(note.get("outcome"), str):
                self._noted(note)
            case RunEnded(reason="cancelled"):
                self._outcomes.add(1, {"outcome": "cancelled"})
            case ToolWaiting() if event.kind != "approval":
                self._set_aside(event.call_id, event.kind)
            case ToolApproved() | ToolDenied():
                if self._other.pop((scope().conversation, event.call_id), None) is None:
                    self._decided("approved" if isinstance(event, ToolApproved) else "declined")
            case ToolReturned():
                self._other.pop((scope().conversation, event.call_id), None)
            case _:
                pass

    def _noted(self, note: Mapping[str, Any]) -> None:
        if note["outcome"] == "ask-failed":
            for call_id in note.get("calls") or ():
                self._set_aside(str(call_id), "ask-failed")
                self._decided("ask-failed")
        elif note["outcome"] in _OUTCOMES:
            self._outcomes.add(1, {"outcome": note["outcome"]})

    def _set_aside(self, call_id: str, why: str) -> None:
        self._other[scope().conversation, call_id] = why
        while len(self._other) > REMEMBERED:  # of conversations that were never gone on with
            self._other.pop(next(iter(self._other)), None)

    def _decided(self, outcome: str) -> None:
        self._decisions.add(1, {"outcome": outcome, "side": self._side})

    def __repr__(self) -> str:
        return f"otel(agent={self._agent!r})"


_OUTCOMES = frozenset(
    "wrap-up hard-stop repeated search-limit call-limit declined-repeat interaction-budget".split()
)  # once a round the first two, the others once a call


def _used(usage: Usage) -> Attributes:
    told: Attributes = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    return told | {"gen_ai.usage.cache_read.input_tokens": usage.cached_tokens} if usage.cached_tokens else told


# -- contents ----------------------------------------------------------------------------------------------------


def _message(message: Message, redact: Callable[[str], str]) -> list[Attributes]:
    """A message as the conventions have it; results are one message each."""
    match message:
        case UserSaid():
            return [{"role": "user", "parts": [{"type": "text", "content": redact(message.text)}]}]
        case Note():
            return [{"role": "system", "parts": [{"type": "text", "content": redact(message.text)}]}]
        case ModelReplied():
            return [_assistant(message.text, message.reasoning, message.calls, redact)]
        case Answers():
            return [
                {
                    "role": "tool",
                    "parts": [{"type": "tool_call_response", "id": r.call_id, "response": redact(r.content)}],
                }
                for r in message.results
            ]


def _flat(lists: list[list[Attributes]]) -> list[Attributes]:
    return [message for each in lists for message in each]


def _assistant(text: str, reasoning: str, calls: tuple[Any, ...], redact: Callable[[str], str]) -> Attributes:
    parts: list[Attributes] = []
    if reasoning:
        parts.append({"type": "reasoning", "content": redact(reasoning)})
    if text:
        parts.append({"type": "text", "content": redact(text)})
    parts += [
        {"type": "tool_call", "id": c.id, "name": c.name, "arguments": redact(text_of(c.arguments))} for c in calls
    ]
    return {"role": "assistant", "parts": parts}
