"""Spans and metrics with the real SDK: BK-5, PG-19, and the conventions for generative AI."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

import pytest
from opentelemetry import trace as api
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolsearch import MissingExtra, SetupError, ToolContext, ToolSearch, tool
from toolsearch.events.facts import Reply, Usage
from toolsearch.events.requests import Deny
from toolsearch.layers import approval, history, interaction, limits, otel, retry, timeout
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel


class Telemetry:
    """The layer, and what it gave to an exporter and a reader in memory."""

    def __init__(self, **options: Any) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.layer = otel(self.tracers, MeterProvider([self.reader]), **options)

    def agent(self, model: Any, search: ToolSearch, *layers: Any) -> Agent:
        return Agent(model, search, layers=[*layers, self.layer], observe=self.layer)

    @property
    def spans(self) -> list[ReadableSpan]:
        """In the order in which they began."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def span(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def tree(self) -> list[str]:
        """Each span's name behind those of its parents."""
        by_id = {span.context.span_id: span for span in self.spans}

        def path(span: ReadableSpan) -> str:
            above = path(by_id[span.parent.span_id]) + " > " if span.parent else ""
            return above + span.name

        return [path(span) for span in self.spans]

    def points(self, metric: str) -> dict[str, Any]:
        """What a metric counted, by its attributes; of a distribution the counts and sums."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {
            ",".join(f"{key}={value}" for key, value in sorted((point.attributes or {}).items())): (
                getattr(point, "value", None) or (point.count, point.sum)  # type: ignore[union-attr]
            )
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name == metric
            for point in each.data.data_points
        }


@pytest.fixture
def seen() -> Telemetry:
    return Telemetry()


def look(at: int) -> str:
    """Look at something"""
    return f"seen {at}"


def broken() -> str:
    """Does not work"""
    raise RuntimeError("password=hunter2")


@tool(kind="action")
def pay(who: str) -> str:
    """Pay somebody"""
    return f"paid {who}"


SEARCH = ToolSearch([look, broken, pay, {"name": "ask_user", "description": "Ask"}], mode="static")


# -- spans -------------------------------------------------------------------------------------------------------


def test_a_run_is_a_span_with_its_model_calls_and_tools_below_it(drive: Any, seen: Telemetry) -> None:
    """BK-5: names and attributes are those of the conventions."""
    agent = seen.agent(ScriptedModel([("look", {"at": 1})], "Seen."), SEARCH)
    drive(agent, "Look", conversation_id="s1")
    assert seen.tree() == [
        "invoke_agent",
        "invoke_agent > chat scripted",
        "invoke_agent > execute_tool look",
        "invoke_agent > chat scripted",
    ]
    run, chat, ran = seen.spans[:3]
    assert run.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": "s1",
        "gen_ai.usage.input_tokens": 200,
        "gen_ai.usage.output_tokens": 20,
        "toolsearch.reason": "answered",
    }
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": "s1",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.model": "scripted",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
    }
    assert ran.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": "s1",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "c0_0",
        "gen_ai.tool.type": "function",
        "toolsearch.status": "ok",
    }
    assert [span.kind.name for span in (run, chat, ran)] == ["INTERNAL", "CLIENT", "INTERNAL"]
    assert {span.status.status_code.name for span in seen.spans} == {"UNSET"}


def test_tools_that_run_beside_each_other_are_both_below_the_run(drive: Any, seen: Telemetry) -> None:
    """What is instrumented itself is below its own tool, whatever the thread or task."""
    both = threading.Barrier(2, timeout=20)
    tracer = seen.tracers.get_tracer("tests")

    def fetch(url: str) -> str:
        """Fetch a page"""
        both.wait()
        with tracer.start_as_current_span(f"GET {url}"):
            both.wait()
        return url

    search = ToolSearch([fetch], mode="static")
    drive(
        seen.agent(ScriptedModel([("fetch", {"url": "a"}), ("fetch", {"url": "b"})]), search),
        "Fetch",
        conversation_id="s1",
    )
    calls = {
        span.context.span_id: span.attributes["gen_ai.tool.call.id"] for span in seen.spans if "fetch" in span.name
    }
    below = {span.name: calls[span.parent.span_id] for span in seen.spans if span.name.startswith("GET")}
    assert below == {"GET a": "c0_0", "GET b": "c0_1"}
    assert seen.tree().count("invoke_agent > execute_tool fetch") == 2


def test_a_tool_with_a_time_out_keeps_its_place(drive: Any, seen: Telemetry) -> None:
    """It runs in another thread once more."""
    tracer = seen.tracers.get_tracer("tests")

    def fetch() -> str:
        """Fetch a page"""
        with tracer.start_as_current_span("GET"):
            return "page"

    agent = seen.agent(ScriptedModel([("fetch", {})]), ToolSearch([fetch], mode="static"), timeout(tool=20))
    drive(agent, "Fetch")
    assert "invoke_agent > execute_tool fetch > GET" in seen.tree()


def test_what_the_models_client_makes_is_below_its_call(drive: Any, seen: Telemetry) -> None:
    tracer = seen.tracers.get_tracer("tests")

    def answers(_: Any) -> str:
        with tracer.start_as_current_span("POST"):
            return "Hello."

    drive(seen.agent(ScriptedModel(answers), SEARCH), "Hello")
    assert seen.tree() == ["invoke_agent", "invoke_agent > chat scripted", "invoke_agent > chat scripted > POST"]


def test_a_run_is_below_the_span_of_whoever_runs_it_and_leaves_that_current(drive: Any, seen: Telemetry) -> None:
    tracer = seen.tracers.get_tracer("tests")
    with tracer.start_as_current_span("request") as request:
        drive(seen.agent(ScriptedModel(), SEARCH), "Hello")
        assert api.get_current_span() is request
    assert seen.tree() == ["request", "request > invoke_agent", "request > invoke_agent > chat scripted"]


def test_conversations_in_one_thread_do_not_mix(seen: Telemetry) -> None:
    agent = seen.agent(ScriptedModel(*[[("look", {"at": 1})]] * 2), SEARCH)
    one, two = agent.stream("Look", conversation_id="one"), agent.stream("Look", conversation_id="two")
    for _ in zip(one, two, strict=False):
        assert not api.get_current_span().is_recording(), "nothing leaks to whoever reads the stream"
    list(one), list(two)
    whose = {span.context.span_id: span.attributes["gen_ai.conversation.id"] for span in seen.spans}
    assert {(whose[span.parent.span_id], whose[span.context.span_id]) for span in seen.spans if span.parent} == {
        ("one", "one"),
        ("two", "two"),
    }


def test_an_agent_inside_a_tool_is_below_that_tool(drive: Any, seen: Telemetry) -> None:
    def delegate(context: ToolContext) -> str:
        """Have somebody else do it"""
        inner = seen.agent(ScriptedModel("Done."), SEARCH)
        return inner.run("Do it", conversation_id=f"{context.conversation_id}/{context.call_id}").text  # type: ignore[union-attr]

    drive(
        seen.agent(ScriptedModel([("delegate", {})]), ToolSearch([delegate], mode="static")), "Go", conversation_id="s1"
    )
    assert "invoke_agent > execute_tool delegate > invoke_agent > chat scripted" in seen.tree()


def test_a_tool_that_fails_has_its_status_and_no_text(drive: Any, seen: Telemetry) -> None:
    drive(seen.agent(ScriptedModel([("broken", {})]), SEARCH), "Go")
    span = seen.span("execute_tool broken")
    assert (span.status.status_code.name, span.attributes["error.type"]) == ("ERROR", "failed")
    assert "hunter2" not in span.to_json()


def test_a_model_that_fails_ends_its_span_and_the_runs_with_the_error(drive: Any, seen: Telemetry) -> None:
    with pytest.raises(ConnectionError):
        drive(seen.agent(ScriptedModel(ConnectionError("token=abc")), SEARCH), "Go")
    assert [(s.name, s.status.status_code.name, s.attributes["error.type"]) for s in seen.spans] == [
        ("invoke_agent", "ERROR", "ConnectionError"),
        ("chat scripted", "ERROR", "ConnectionError"),
    ]
    assert "token=abc" not in "".join(span.to_json() for span in seen.spans)


def test_each_attempt_is_a_span_where_the_layer_is_inside_the_retries(drive: Any, seen: Telemetry) -> None:
    model = ScriptedModel(ConnectionError("once"), "Hello.")
    drive(seen.agent(model, SEARCH, retry(2, 0.001)), "Hello")
    chats = [span for span in seen.spans if span.name == "chat scripted"]
    assert [span.status.status_code.name for span in chats] == ["ERROR", "UNSET"]


def test_a_helpers_call_says_what_for(drive: Any, seen: Telemetry) -> None:
    agent = seen.agent(ScriptedModel("One.", "A summary.", "Two."), SEARCH, history(2, summarize=True))
    drive(agent, "First", conversation_id="s1")
    drive(agent, "Second", conversation_id="s1")
    assert [span.attributes.get("toolsearch.purpose") for span in seen.spans if span.name == "chat scripted"] == [
        None,
        "history_summary",
        None,
    ]
    assert seen.points("agent.tool.loop.tokens") == {"gen_ai.response.model=scripted": (2, 220)}


def test_a_cancelled_run_ends_all_its_spans(drive: Any, seen: Telemetry) -> None:
    def cancels(_: Any) -> str:
        agent.cancel("s1")
        return "Too late."

    agent = seen.agent(ScriptedModel(cancels), SEARCH)
    drive(agent, "Go", conversation_id="s1")
    assert seen.span("invoke_agent").attributes["error.type"] == "cancelled"
    assert seen.points("chat.tool.loop") == {"outcome=cancelled": 1}


def test_a_pause_ends_the_span_and_going_on_is_another(drive: Any, seen: Telemetry) -> None:
    agent = seen.agent(ScriptedModel([("pay", {"who": "Ana"})], "Paid."), SEARCH, approval())
    paused = drive(agent, "Pay", conversation_id="s1")
    drive(agent, conversation_id="s1", decisions={paused.waiting[0].id: True})
    runs = [span for span in seen.spans if span.name == "invoke_agent"]
    assert [span.attributes["toolsearch.reason"] for span in runs] == ["paused", "answered"]
    assert {span.attributes["gen_ai.conversation.id"] for span in runs} == {"s1"}


def test_the_names_of_agent_provider_and_model_are_told(drive: Any) -> None:
    seen = Telemetry(agent="desk")
    reply = Reply("Hi.", usage=Usage(10, 8, 1), model="m-2026", wire="openai_chat", stop="stop")
    drive(seen.agent(ScriptedModel(reply), SEARCH), "Hello")
    told = seen.span("chat scripted").attributes
    assert seen.span("invoke_agent desk").attributes["gen_ai.agent.name"] == "desk"
    assert told["gen_ai.provider.name"] == "openai"
    assert told["gen_ai.response.model"] == "m-2026"
    assert told["gen_ai.usage.cache_read.input_tokens"] == 8
    other = Telemetry(provider="groq")
    drive(other.agent(ScriptedModel(reply), SEARCH), "Hello")
    assert other.span("chat scripted").attributes["gen_ai.provider.name"] == "groq"


def test_contents_are_left_out_unless_they_are_asked_for(drive: Any, seen: Telemetry) -> None:
    script: list[Any] = [[("look", {"at": 7})], "You said password=hunter2."]
    drive(seen.agent(ScriptedModel(*script), SEARCH), "My password=hunter2, look at 7")
    assert "hunter2" not in "".join(span.to_json() for span in seen.spans)
    assert "seen 7" not in "".join(span.to_json() for span in seen.spans)
    full = Telemetry(contents=True)
    drive(full.agent(ScriptedModel(*script), SEARCH), "My password=hunter2, look at 7")
    ran = full.span("execute_tool look").attributes
    assert json.loads(ran["gen_ai.tool.call.arguments"]) == {"at": 7}
    assert ran["gen_ai.tool.call.result"] == "seen 7"
    last = full.spans[-1].attributes
    assert [message["role"] for message in json.loads(last["gen_ai.input.messages"])] == ["user", "assistant", "tool"]
    assert json.loads(last["gen_ai.input.messages"])[0]["parts"][0]["content"] == "My password=[redacted], look at 7"
    (answer,) = json.loads(last["gen_ai.output.messages"])
    assert answer["parts"] == [{"type": "text", "content": "You said password=[redacted]"}]
    assert answer["finish_reason"] == "stop"


def test_a_redaction_that_fails_lets_nothing_through_and_breaks_nothing(drive: Any) -> None:
    def fails(text: str) -> str:
        raise ValueError(text)

    seen = Telemetry(contents=True, redact=fails)
    assert drive(seen.agent(ScriptedModel([("look", {"at": 7})]), SEARCH), "Look").reason == "answered"
    assert seen.span("execute_tool look").attributes["gen_ai.tool.call.result"] == "[not shown: redaction failed]"


# -- metrics -----------------------------------------------------------------------------------------------------


def test_iterations_calls_and_tokens_are_counted(drive: Any, seen: Telemetry) -> None:
    """BK-5: the names a model makes up are one, so that it cannot fill a store of metrics."""
    model = ScriptedModel(
        [("look", {"at": 1}), ("look", {"at": 2}), ("made_up_7", {})], [("look", {"at": "?"})], "Seen."
    )
    drive(seen.agent(model, SEARCH), "Look")
    assert seen.points("agent.tool.loop.iterations") == {"": 3}
    assert seen.points("agent.tool.calls") == {"tool=look": 3, "tool=unknown": 1}
    assert seen.points("agent.tool.loop.tokens") == {"gen_ai.response.model=scripted": (3, 330)}


def test_searches_are_calls_of_the_search_tool(drive: Any, seen: Telemetry) -> None:
    search = ToolSearch([look], mode="append")
    drive(seen.agent(ScriptedModel([("search_tools", {"query": "look"})], [("look", {"at": 1})]), search), "Look")
    assert seen.points("agent.tool.calls") == {"tool=search_tools": 1, "tool=look": 1}
    assert "invoke_agent > execute_tool search_tools" in seen.tree()


def test_what_guards_do_is_counted_once_a_round_or_once_a_call(drive: Any, seen: Telemetry) -> None:
    """PG-19."""
    many = [("look", {"at": 1}), ("look", {"at": 1}), ("look", {"at": 1})]
    agent = seen.agent(ScriptedModel(*[many] * 9), SEARCH, limits(soft=2, hard=4, identical=1))
    drive(agent, "Look")
    assert seen.points("chat.tool.loop") == {"outcome=repeated": 5, "outcome=wrap-up": 2, "outcome=hard-stop": 1}


def test_decisions_of_people_are_counted_once_a_call(drive: Any) -> None:
    """PG-19: approved, declined, ask-failed, by where they are asked for."""
    seen = Telemetry(side="server")
    two = [("pay", {"who": "Ana"}), ("pay", {"who": "Bob"})]

    def half(waiting: Any) -> Any:
        return {waiting[0].id: True, waiting[1].id: Deny("asking failed")}

    def fails(_: Any) -> Any:
        raise ConnectionError

    drive(seen.agent(ScriptedModel(two), SEARCH, approval(half)), "Pay")
    assert seen.points("mcp.hitl.decision") == {"outcome=approved,side=server": 1, "outcome=declined,side=server": 1}
    drive(seen.agent(ScriptedModel(two, two), SEARCH, approval(fails)), "Pay")
    assert seen.points("mcp.hitl.decision") == {
        "outcome=approved,side=server": 1,
        "outcome=declined,side=server": 1,
        "outcome=ask-failed,side=server": 2,
    }
    assert seen.points("chat.tool.loop") == {"outcome=declined-repeat": 2}


def test_decisions_that_come_later_are_counted_too(drive: Any, seen: Telemetry) -> None:
    agent = seen.agent(ScriptedModel([("pay", {"who": "Ana"}), ("pay", {"who": "Bob"})]), SEARCH, approval())
    paused = drive(agent, "Pay", conversation_id="s1")
    one, other = [waiting.id for waiting in paused.waiting]
    drive(agent, conversation_id="s1", decisions={one: True, other: False})
    assert seen.points("mcp.hitl.decision") == {"outcome=approved,side=chat": 1, "outcome=declined,side=chat": 1}


def test_a_question_that_nobody_answers_is_no_decision(drive: Any, seen: Telemetry) -> None:
    agent = seen.agent(ScriptedModel([("ask_user", {}), ("ask_user", {})]), SEARCH, interaction(["ask_user"]))
    paused = drive(agent, "Ask", conversation_id="s1")
    drive(agent, conversation_id="s1", decisions={paused.waiting[0].id: Deny("no")})
    assert seen.points("mcp.hitl.decision") == {}
    assert seen.points("chat.tool.loop") == {"outcome=interaction-budget": 1}


# -- setting it up -----------------------------------------------------------------------------------------------


def test_without_the_package_the_error_has_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtra, match=r"pip install 'toolsearch-kit\[otel\]'"):
        otel()


def test_without_providers_the_global_ones_are_used_and_none_is_made(drive: Any) -> None:
    """Without an SDK that is: nothing is recorded, and nothing fails."""
    layer = otel()
    agent = Agent(ScriptedModel([("look", {"at": 1})]), SEARCH, layers=[layer], observe=layer)
    assert drive(agent, "Look").reason == "answered"


def test_a_side_there_is_not_is_refused() -> None:
    with pytest.raises(SetupError, match="side must be 'chat' or 'server', not 'client'"):
        otel(side="client")  # type: ignore[arg-type]
