"""OpenTelemetry: spans by the conventions for generative AI, and counts of rounds, calls, limits and decisions.

    invoke_agent             a run: from what the user said, or from decisions, to an answer or a pause
      chat {model}           a call of the model
      execute_tool {tool}    a tool that ran, or a search; the spans of instrumented code inside it are below it

As a layer it makes the spans, as an observer the metrics. Contents are left out unless they are asked for.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from toolsearch.calls import ToolCall, ToolResult
from toolsearch.errors import MissingExtra
from toolsearch.events.facts import (
    Answers,
    Event,
    JudgedCall,
    Message,
    ModelCalled,
    ModelReplied,
    Note,
    Noted,
    Reply,
    ReplyDiscarded,
    RunEnded,
    TextDelta,
    ToolApproved,
    ToolDenied,
    ToolReturned,
    ToolWaiting,
    Usage,
    UserSaid,
)
from toolsearch.events.requests import Call, CallModel, Finished, Paused, Run
from toolsearch.protocols import ModelLayer, ModelSteps, RunLayer, RunSteps, ToolLayer, ToolSteps
from toolsearch.support import checks
from toolsearch.support.context import scope
from toolsearch.support.json_types import JsonObject
from toolsearch.support.redaction import redacted
from toolsearch.support.text import clean, text_of

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, SpanKind, TracerProvider

__all__ = ["Telemetry", "otel"]

log = logging.getLogger("toolsearch")

PROVIDERS = {"openai_chat": "openai", "openai_responses": "openai", "anthropic": "anthropic"}  # by wire
REMEMBERED = 10_000  # waiting calls other than approvals

Attributes: TypeAlias = dict[str, Any]
Side: TypeAlias = Literal["chat", "server"]
G = TypeVar("G")  # what a generator is given
A = TypeVar("A")  # what comes of it


class Telemetry(RunLayer, ModelLayer, ToolLayer, Protocol):
    """What `otel(…)` makes: a layer, and an observer."""

    def __call__(self, event: Event | TextDelta | ReplyDiscarded, /) -> None:
        """Counts what happened."""
        ...


def otel(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    *,
    agent: str = "",
    provider: str = "",
    contents: bool = False,
    side: Side = "chat",
    redact: Callable[[str], str] = redacted,
) -> Telemetry:
    """A layer that makes spans, and an observer that counts: give the same object to `layers` and to `observe`.

    Without providers, the global ones of OpenTelemetry are used. `agent` is the agent's name. `provider` is the
    provider of the model (`gen_ai.provider.name`); without it, that of the wire. With `contents`, spans contain
    messages, arguments and results, each text after `redact`. `side` says, for the metric, where decisions are asked
    for. Raises `MissingExtra` if the package opentelemetry-api is not installed.
    """
    checks.having("tracer_provider", tracer_provider, "a TracerProvider", "get_tracer", none="for the global one")
    checks.having("meter_provider", meter_provider, "a MeterProvider", "get_meter", none="for the global one")
    checks.text("agent", agent)
    checks.text("provider", provider)
    checks.flag("contents", contents)
    checks.choice("side", side, "chat", "server")
    checks.function("redact", redact, "from a text to what may be seen of it")
    safe = partial(_redacted, redact) if contents else None
    try:
        return _Otel(tracer_provider, meter_provider, agent=agent, provider=provider, redact=safe, side=side)
    except ImportError as error:
        raise MissingExtra("otel()", "opentelemetry-api", "otel") from error


def _redacted(redact: Callable[[str], str], text: str) -> str:
    """What may be seen of a text. A redaction that fails neither ends the turn nor lets anything through."""
    try:
        return clean(redact(text))
    except Exception as error:
        log.error("redacting a text for a span failed: %s", type(error).__name__)
        return "[not shown: redaction failed]"


class _Otel:
    name = "otel"
    gate = False

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
        *,
        agent: str,
        provider: str,
        redact: Callable[[str], str] | None,
        side: Side,
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
        self._other: dict[tuple[str, str], str] = {}  # waiting calls whose decisions are not counted

    # -- spans ---------------------------------------------------------------------------------------------------

    def around_run(self, run: Run) -> RunSteps:
        attributes: Attributes = {"gen_ai.agent.name": self._agent} if self._agent else {}
        kind = self._trace.SpanKind.INTERNAL
        span = self._span("invoke_agent", self._agent, kind, run.conversation_id, attributes)

        def describe(result: object) -> None:
            if isinstance(result, Finished | Paused):
                span.set_attributes(_usage_attributes(result.usage))
                span.set_attribute("toolsearch.reason", getattr(result, "reason", "paused"))

        return (yield from self._within(span, run, describe))

    def around_model(self, request: CallModel) -> ModelSteps:
        attributes: Attributes = {"gen_ai.request.model": request.model} if request.model else {}
        if self._provider:
            attributes["gen_ai.provider.name"] = self._provider
        if request.purpose != "chat":
            attributes["toolsearch.purpose"] = request.purpose
        span = self._span("chat", request.model, self._trace.SpanKind.CLIENT, request.conversation_id, attributes)
        if self._redact is not None and span.is_recording():
            if request.system:
                system = [{"type": "text", "content": self._redact(request.system)}]
                span.set_attribute("gen_ai.system_instructions", json.dumps(system, ensure_ascii=False))
            messages = [each for message in request.transcript for each in _messages(message, self._redact)]
            span.set_attribute("gen_ai.input.messages", json.dumps(messages, ensure_ascii=False))

        def describe(reply: object) -> None:
            if isinstance(reply, Reply):
                span.set_attributes(self._reply_attributes(reply))

        return (yield from self._within(span, request, describe))

    def _reply_attributes(self, reply: Reply) -> Attributes:
        attributes = _usage_attributes(reply.usage)
        if reply.model:
            attributes["gen_ai.response.model"] = reply.model
        if reply.stop:
            attributes["gen_ai.response.finish_reasons"] = (reply.stop,)
        if not self._provider and reply.wire:
            attributes["gen_ai.provider.name"] = PROVIDERS.get(reply.wire, reply.wire)
        if self._redact is not None:
            message = _assistant(reply.text, reply.reasoning, reply.calls, self._redact) | {"finish_reason": reply.stop}
            attributes["gen_ai.output.messages"] = json.dumps([message], ensure_ascii=False)
        return attributes

    def around_tool(self, call: Call) -> ToolSteps:
        judged = call.judged
        attributes: Attributes = {"gen_ai.tool.name": judged.name, "gen_ai.tool.call.id": judged.id}
        attributes["gen_ai.tool.type"] = "function"
        if judged.tool and judged.tool != judged.name:
            attributes["toolsearch.tool.id"] = judged.tool
        if self._redact is not None:
            arguments = judged.arguments if judged.kind == "search" else dict(call.arguments)
            attributes["gen_ai.tool.call.arguments"] = self._redact(text_of(arguments))
        span = self._span("execute_tool", judged.name, self._trace.SpanKind.INTERNAL, call.conversation_id, attributes)

        def describe(result: object) -> None:
            if isinstance(result, ToolWaiting):  # it ran, and a person has to decide before it can go on
                span.set_attribute("toolsearch.status", "waits")
            if not isinstance(result, ToolResult):
                return
            span.set_attribute("toolsearch.status", result.status)
            if result.status != "ok":
                self._mark_failed(span, result.status)
            if self._redact is not None:
                span.set_attribute("gen_ai.tool.call.result", self._redact(result.content))

        return (yield from self._within(span, call, describe))

    def _span(self, operation: str, name: str, kind: SpanKind, conversation: str, attributes: Attributes) -> Span:
        common = {"gen_ai.operation.name": operation, "gen_ai.conversation.id": conversation}
        return self._tracer.start_span(f"{operation} {name}".rstrip(), kind=kind, attributes={**common, **attributes})

    def _within(self, span: Span, request: G, describe: Callable[[object], None]) -> Generator[G, A, A]:
        """Has the request done below the span; `describe` puts the result on it.

        The context from before is attached again, and not restored by a token: a token may be used in one context only,
        and a layer can be closed in any.
        """
        before = self._context.get_current()
        self._context.attach(self._trace.set_span_in_context(span))
        try:
            result = yield request
            describe(result)
        except GeneratorExit:
            self._mark_failed(span, "cancelled")
            raise
        except BaseException as error:
            self._mark_failed(span, type(error).__qualname__)
            raise
        finally:
            self._context.attach(before)
            span.end()
        return result

    def _mark_failed(self, span: Span, why: str) -> None:
        span.set_status(self._trace.StatusCode.ERROR)
        span.set_attribute("error.type", why)

    # -- metrics -------------------------------------------------------------------------------------------------

    def __call__(self, event: Event | TextDelta | ReplyDiscarded) -> None:
        match event:
            case ModelReplied():
                self._iterations.add(1)
                for call in event.calls:
                    unknown = not call.tool and call.status == "unknown"
                    self._calls.add(1, {"tool": "unknown" if unknown else call.tool or call.name})
            case ModelCalled(purpose="chat", error=""):
                self._tokens.record(event.usage.tokens, {"gen_ai.response.model": event.model} if event.model else {})
            case Noted(note=Mapping() as note) if isinstance(note.get("outcome"), str):
                self._count_outcome(note)
            case RunEnded(reason="cancelled"):
                self._outcomes.add(1, {"outcome": "cancelled"})
            case ToolWaiting() if event.kind != "approval":
                self._leave_out(event.call_id, event.kind)
            case ToolApproved() | ToolDenied():
                if self._other.pop((scope().conversation, event.call_id), None) is None:
                    self._count_decision("approved" if isinstance(event, ToolApproved) else "declined")
            case ToolReturned():
                self._other.pop((scope().conversation, event.call_id), None)
            case _:
                pass

    def _count_outcome(self, note: JsonObject) -> None:
        if note["outcome"] == "ask-failed":
            for call_id in note.get("calls") or ():
                self._leave_out(str(call_id), "ask-failed")
                self._count_decision("ask-failed")
        elif note["outcome"] in _OUTCOMES:
            self._outcomes.add(1, {"outcome": note["outcome"]})

    def _leave_out(self, call_id: str, why: str) -> None:
        """Decisions about this call are not counted."""
        self._other[scope().conversation, call_id] = why
        while len(self._other) > REMEMBERED:  # of conversations that were never continued
            self._other.pop(next(iter(self._other)), None)

    def _count_decision(self, outcome: str) -> None:
        self._decisions.add(1, {"outcome": outcome, "side": self._side})

    def __repr__(self) -> str:
        return f"otel(agent={self._agent!r})"


_OUTCOMES = frozenset(
    "wrap-up hard-stop repeated search-limit call-limit declined-repeat interaction-budget".split()
)  # the first two once per round, the others once per call


def _usage_attributes(usage: Usage) -> Attributes:
    attributes: Attributes = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    if usage.cached_tokens:
        attributes["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
    return attributes


# -- contents ----------------------------------------------------------------------------------------------------


def _messages(message: Message, redact: Callable[[str], str]) -> list[Attributes]:
    """A message as the conventions have it; each result is a message of its own."""
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


def _assistant(
    text: str, reasoning: str, calls: Sequence[ToolCall | JudgedCall], redact: Callable[[str], str]
) -> Attributes:
    parts: list[Attributes] = []
    if reasoning:
        parts.append({"type": "reasoning", "content": redact(reasoning)})
    if text:
        parts.append({"type": "text", "content": redact(text)})
    parts += [
        {"type": "tool_call", "id": c.id, "name": c.name, "arguments": redact(text_of(c.arguments))} for c in calls
    ]
    return {"role": "assistant", "parts": parts}
