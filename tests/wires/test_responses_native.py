"""OpenAI Responses and the mode "native": the real SDK, and a provider on this machine that is strict."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, OpenAI
from pydantic import BaseModel

from toolsearch import Agent, Approve, CallModel, Catalog, Finished, Paused, ToolCall, ToolResult, ToolSearch
from toolsearch.calls import LoadedTool
from toolsearch.catalog.tools import Shown, Tool
from toolsearch.events.facts import Answers, JudgedCall, ModelReplied, ToolReturned, UserSaid
from toolsearch.layers import history, memory, structured
from toolsearch.protocols import ModelSteps
from toolsearch.stores import SqliteStore
from toolsearch.testing import Failure, LoopbackProvider, assert_prefix_stable
from toolsearch.wires import openai_chat
from toolsearch.wires import openai_responses as wire

WAYS = ["whole", "streamed", "whole async", "streamed async"]
ways = pytest.mark.parametrize("way", WAYS)
searches = pytest.mark.parametrize("search_tool", ["search_tools", "tool_search"])


def definitions() -> list[Any]:
    def clock() -> str:
        """The time of day."""
        return "noon"

    many = [("vault", "rotate_key"), ("vault", "list_keys"), ("post", "send_mail"), ("garden", "water_plants")]
    return [
        clock,
        *(
            {
                "name": name,
                "server": server,
                "description": f"{name.replace('_', ' ').capitalize()}.",
                "input_schema": {"type": "object", "properties": {"what": {"type": "string"}}},
                "run": lambda **given: f"done {sorted(given.items())}",
                "annotations": {"readOnlyHint": name != "rotate_key"},
            }
            for server, name in many
        ),
    ]


def made(search_tool: str = "search_tools", **options: Any) -> ToolSearch:
    settings = {"mode": "native", "results": 1, "search_tool": search_tool, **options}
    return ToolSearch(Catalog(definitions()), "keyword", **settings)


def model_for(provider: LoopbackProvider, way: str = "streamed", **options: Any) -> wire.ResponsesModel:
    make: Any = AsyncOpenAI if way.endswith("async") else OpenAI
    client = make(base_url=provider.url, api_key="none", max_retries=0)
    return wire.model(client, "gpt-test", stream=way.startswith("streamed"), **options)


def run(agent: Agent, said: Any, way: str = "streamed", conversation_id: str = "c") -> Finished | Paused:
    if way.endswith("async"):
        return asyncio.run(agent.arun(said, conversation_id=conversation_id))
    return agent.run(said, conversation_id=conversation_id)


def kinds(body: Any) -> list[str]:
    return [item.get("type", item.get("role")) for item in body["input"]]


def brought(body: Any) -> list[list[str]]:
    """The names of the tools that each item brings, those in a namespace behind its name."""
    return [
        [name for tool in item["tools"] for name in _names(tool)]
        for item in body["input"]
        if item.get("type") in ("additional_tools", "tool_search_output")
    ]


def _names(tool: Any) -> Iterator[str]:
    if tool["type"] == "namespace":
        yield from (f"{tool['name']}.{inner['name']}" for inner in tool["tools"])
    else:
        yield tool["name"]


def calls(body: Any) -> list[tuple[str, str | None]]:
    return [(item["name"], item.get("namespace")) for item in body["input"] if item.get("type") == "function_call"]


def search_for(query: str, call_id: str = "s1", name: str = "search_tools") -> list[tuple[str, str, dict[str, Any]]]:
    return [(call_id, name, {"queries": [query]})]


@ways
@searches
def test_an_agent_searches_calls_and_answers_and_the_tools_keep_their_bytes(way: str, search_tool: str) -> None:
    """OA-1, OA-3, OA-6, OA-7, OA-8: by an item behind the answer, or as the output of the provider's own search."""
    script = [
        search_for("rotate key", "s1", search_tool),
        [*search_for("send mail", "s2", search_tool), ("c1", "rotate_key", {"what": "x"})],
        [("c2", "send_mail", {}), ("c3", "clock", {})],
        "Done both.",
    ]
    with LoopbackProvider(script) as provider:
        search = made(search_tool, pinned=["clock"])
        agent = Agent(model_for(provider, way), search, system="You help.", actions="run")
        result = run(agent, "Rotate the key and tell Bo.", way)
        again = run(agent, "Thanks", way)
    assert provider.refusals == []
    assert isinstance(result, Finished)
    assert (result.text, isinstance(again, Finished)) == ("Done both.", True)
    assert_prefix_stable(provider.requests, mode="native")
    last = provider.requests[-1]
    if search_tool == "tool_search":
        assert [tool["type"] for tool in last["tools"]] == ["tool_search", "function"]
        assert last["tools"][0]["execution"] == "client"
        assert brought(last) == [["vault.rotate_key"], ["post.send_mail"]]
        assert calls(last) == [("rotate_key", "vault"), ("send_mail", "post"), ("clock", None)]
        assert kinds(last)[:4] == ["user", "tool_search_call", "tool_search_output", "user"]
        assert "rotate_key" in last["input"][3]["content"]
    else:
        assert provider.tool_names() == [["search_tools", "clock"]] * 5
        assert brought(last) == [["rotate_key"], ["send_mail"]]
        assert calls(last)[1:] == [("search_tools", None), ("rotate_key", "rotate_key"), *calls(last)[3:]]
        assert calls(last)[3:] == [("send_mail", "send_mail"), ("clock", None)]
        assert kinds(last)[:4] == ["user", "function_call", "function_call_output", "additional_tools"]


@searches
def test_a_conversation_goes_on_in_another_process_after_an_approval(search_tool: str, tmp_path: Path) -> None:
    """The journal alone: a pause, a restart, the same bytes; reasoning goes back with its encrypted content."""

    def thought(number: int, *items: Any) -> Any:
        summary = [{"type": "summary_text", "text": "Hm."}]
        own = {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": f"g{number}"}
        return {"id": "r", "object": "response", "created_at": 1, "model": "gpt", "status": "completed", "tools": [],
                "parallel_tool_calls": True, "tool_choice": "auto", "output": [own, *items]}  # fmt: skip

    arguments: Any = {"queries": ["rotate key"]}
    found: dict[str, Any] = {"type": "function_call", "call_id": "s1", "name": "search_tools", "id": "fc_1"}
    found["arguments"] = json.dumps(arguments)
    space = "rotate_key"
    if search_tool == "tool_search":
        found = {"type": "tool_search_call", "call_id": "s1", "id": "ts_1", "execution": "client"}
        found |= {"status": "completed", "arguments": arguments}
        space = "vault"
    call = {"type": "function_call", "call_id": "c1", "id": "fc_2", "name": "rotate_key", "namespace": space}
    script: list[Any] = [thought(1, found), thought(2, {**call, "arguments": "{}"}), "Rotated.", "Yes."]

    def agent(provider: LoopbackProvider) -> Agent:
        store = SqliteStore(tmp_path / "talks.db")
        return Agent(model_for(provider), made(search_tool), store=store, actions="wait")

    with LoopbackProvider(script) as provider:
        paused = run(agent(provider), "Rotate it.")
        assert isinstance(paused, Paused)
        resumed = agent(provider).run(decisions={paused.waiting[0].id: Approve()}, conversation_id="c")
        assert isinstance(resumed, Finished)
        assert resumed.text == "Rotated."
        run(agent(provider), "Sure?")
    assert provider.refusals == []
    assert_prefix_stable(provider.requests, mode="native")
    thoughts = [item for item in provider.requests[-1]["input"] if item.get("type") == "reasoning"]
    assert [(item["id"], item["encrypted_content"]) for item in thoughts] == [("rs_1", "g1"), ("rs_2", "g2")]
    assert calls(provider.requests[-1])[-1] == ("rotate_key", space)


@searches
def test_a_tool_that_no_message_brings_any_more_stands_in_tools(search_tool: str) -> None:
    """Memory was cut: the tool is listed, and is called by its name alone."""
    script = [search_for("rotate key", "s1", search_tool), "Found.", [("c1", "rotate_key", {})], "Rotated."]
    with LoopbackProvider(script) as provider:
        agent = Agent(model_for(provider), made(search_tool), layers=[memory(keep="answers")], actions="run")
        run(agent, "Find it.")
        run(agent, "Rotate it.")
    assert provider.refusals == []
    assert brought(provider.requests[-1]) == []
    assert [tool.get("name") for tool in provider.requests[-1]["tools"]][1:] == ["rotate_key"]
    assert calls(provider.requests[-1]) == [("rotate_key", None)]


class Window:
    """A layer that shows the model the last messages only."""

    def __init__(self, begin: int) -> None:
        self.begin = begin

    def around_model(self, request: CallModel) -> ModelSteps:
        return (yield request.showing(request.placed()[self.begin :]) if len(request.transcript) > 5 else request)


def test_the_namespace_of_a_call_goes_with_the_item_that_brought_its_tool() -> None:
    """A window that begins behind the item and before the call: the tool is in `tools`, its call has no namespace."""
    with LoopbackProvider([search_for("rotate key"), [("c1", "rotate_key", {})], "Rotated.", "Ok."]) as provider:
        agent = Agent(model_for(provider), made(), layers=[Window(3)], actions="run")
        run(agent, "Rotate it.")
        run(agent, "Good.")
    assert provider.refusals == []
    assert calls(provider.requests[2])[1] == ("rotate_key", "rotate_key")
    assert (calls(provider.requests[3]), brought(provider.requests[3])) == ([("rotate_key", None)], [])
    assert provider.tool_names()[2:] == [["search_tools"], ["search_tools", "rotate_key"]]


def loaded(name: str = "rotate_key", server: str = "vault", **more: Any) -> LoadedTool:
    return LoadedTool(f"{server}/{name}" if server else name, name, "About it.", {"type": "object"}, server, **more)


def shown(name: str = "rotate_key", **more: Any) -> Shown:
    return Shown(name, Tool(f"vault/{name}", name, "About it.", {"type": "object"}, "vault"), **more)


def answered(call_id: str, *tools: LoadedTool) -> Answers:
    return Answers((ToolReturned(call_id, "ok", "Loaded.", loaded=tools),))


def own(*items: Any) -> ModelReplied:
    """A reply of this provider."""
    judged = tuple(JudgedCall(i["call_id"], i.get("name", "tool_search")) for i in items if "call_id" in i)
    return ModelReplied(calls=judged, raw=list(items), wire="openai_responses")


def call(call_id: str, name: str = "rotate_key", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}", **more}


def test_a_tool_stands_in_one_place() -> None:
    """Brought twice, or in `tools` too: the provider refuses a tool that is declared twice."""
    talk = [own(call("a", "search_tools")), answered("a", loaded()), own(call("b", "search_tools")),
            answered("b", loaded(), loaded("send_mail", "post"))]  # fmt: skip
    assert brought({"input": wire.messages_for(talk)}) == [["rotate_key"], ["send_mail"]]
    assert brought({"input": wire.messages_for(talk, [shown()])}) == [["send_mail"]]
    twice = [(ToolCall(i, "search_tools", "{}"), _result(i, loaded())) for i in ("a", "b")]
    assert brought({"input": wire.results_for(twice)}) == [["rotate_key"]]


def _result(call_id: str, *tools: LoadedTool) -> ToolResult:
    return ToolResult(call_id, "search_tools", "ok", "Loaded.", loaded=tools)


@pytest.mark.parametrize(
    ("tools", "before", "after"),
    [
        ([], None, "rotate_key"),  # it was called before it was loaded, or by another provider's model
        ([], "rotate_key", "rotate_key"),
        ([shown()], "rotate_key", None),
        ([shown()], None, None),
        ([shown()], "vault", None),
    ],
)
def test_OA8_a_call_names_the_place_where_the_request_has_its_tool(tools: Any, before: Any, after: Any) -> None:
    """OA-8: otherwise the provider says "Missing namespace for function_call"."""
    space = {"namespace": before} if before else {}
    talk = [own(call("a", "search_tools")), answered("a", loaded()), own(call("b", **space)), answered("b")]
    assert calls({"input": wire.messages_for(talk, tools)}) == [("search_tools", None), ("rotate_key", after)]
    assert talk[2].raw == [call("b", **space)], "the journal is left as it was"


def test_a_call_of_a_tool_that_nobody_declares_goes_back_as_it_came() -> None:
    assert calls({"input": wire.messages_for([own(call("a", "nope", namespace="x"))])}) == [("nope", "x")]


def test_found_tools_are_in_namespaces_by_their_servers() -> None:
    """OA-3: with a description, which the provider requires; a tool without a server stands alone."""
    search = ToolCall("s", "tool_search", {"queries": ["x"]})
    tools = (loaded(), loaded("clock", ""), loaded("list_keys"), loaded("mail", "po st"))
    output, text = wire.results_for([(search, _result("s", *tools))])
    assert (output["type"], output["call_id"], output["execution"]) == ("tool_search_output", "s", "client")
    vault, clock, post = output["tools"]
    assert (vault["name"], vault["description"]) == ("vault", "Tools of vault.")
    assert [tool["name"] for tool in vault["tools"]] == ["rotate_key", "list_keys"]
    assert (clock["name"], clock["strict"], clock["defer_loading"]) == ("clock", False, True)
    assert (post["name"], post["description"]) == ("po_st", "Tools of po st.")
    assert text == {"role": "user", "content": "[Loaded.]"}


def test_a_search_of_another_provider_is_written_in_the_form_of_this_one() -> None:
    searched = JudgedCall("s", "tool_search", {"queries": ["x"]}, kind="search")
    talk = [ModelReplied("Hm.", (searched,), raw={}, wire="anthropic"), answered("s", loaded()),
            ModelReplied(calls=(JudgedCall("c", "rotate_key", {}),), wire="anthropic"), answered("c")]  # fmt: skip
    own_search = Shown("tool_search", Tool("tool_search", "tool_search"), built_in=True)
    items = wire.messages_for(talk, [own_search])
    assert [item.get("type") for item in items[1:3]] == ["tool_search_call", "tool_search_output"]
    assert items[1]["arguments"] == {"queries": ["x"]}
    assert calls({"input": items}) == [("rotate_key", "vault")]
    other = wire.messages_for(talk)
    assert [item.get("type") for item in other[1:4]] == ["function_call", "function_call_output", "additional_tools"]


def test_a_tool_of_the_program_that_is_called_tool_search_is_an_ordinary_function() -> None:
    session = ToolSearch([{"name": "tool_search", "run": lambda: "ran"}], mode="static").session()
    (tool,) = wire.tools_for(session)
    assert (tool["type"], tool["name"]) == ("function", "tool_search")
    (one,) = wire.calls_in({"output": [call("a", "tool_search", arguments={})]})
    assert [item["type"] for item in wire.results_for([(one, session.handle(one))])] == ["function_call_output"]


def test_a_tool_that_is_chosen_stands_in_tools() -> None:
    """Older models look for the name of `tool_choice` in `tools` only."""
    talk = (UserSaid("x"), own(call("a", "search_tools")), answered("a", loaded()))
    asked = CallModel(talk, (shown(delivered=True),))
    for choice in ({"type": "function", "name": "rotate_key"},
                   {"type": "allowed_tools", "tools": [{"type": "function", "name": "rotate_key"}]}):  # fmt: skip
        with LoopbackProvider() as provider:
            model = model_for(provider, "whole", tool_choice=choice)
            body = model.request_for(asked)
            list(model(asked))  # type: ignore[arg-type]
        assert provider.refusals == []
        assert ([tool["name"] for tool in body["tools"]], brought(body)) == (["rotate_key"], [])
    assert brought(model_for(provider, "whole").request_for(asked)) == [["rotate_key"]]


def test_a_pre_selected_tool_comes_with_the_message_of_the_user() -> None:
    with LoopbackProvider([[("c1", "rotate_key", {})], "Rotated."]) as provider:
        result = run(Agent(model_for(provider), made(preselect=1), actions="run"), "rotate key")
    assert isinstance(result, Finished)
    assert result.text == "Rotated."
    assert provider.refusals == []
    assert kinds(provider.requests[0]) == ["additional_tools", "user"]
    assert_prefix_stable(provider.requests, mode="native")


def test_a_call_of_a_tool_that_was_not_loaded_brings_it() -> None:
    with LoopbackProvider([[("c1", "send_mail", {})], [("c2", "send_mail", {})], "Sent."]) as provider:
        run(Agent(model_for(provider), made()), "Send it.")
    assert provider.refusals == []
    assert brought(provider.requests[-1]) == [["send_mail"]]


@searches
def test_a_conversation_moves_to_another_wire_and_back(search_tool: str, tmp_path: Path) -> None:
    """Found tools stay callable: in `tools` where the wire does not deliver natively, and then here too."""
    script = [search_for("rotate key", "s1", search_tool), [("c1", "rotate_key", {})], "Rotated.",
              [("c2", "rotate_key", {})], "Again.", [("c3", "rotate_key", {})], "And again."]  # fmt: skip
    with LoopbackProvider(script) as provider:
        chat = openai_chat.model(OpenAI(base_url=provider.url, api_key="none", max_retries=0), "other")
        for model, said in ((model_for(provider), "Rotated."), (chat, "Again."), (model_for(provider), "And again.")):
            store = SqliteStore(tmp_path / "talks.db")
            result = run(Agent(model, made(search_tool), store=store, actions="run"), "Rotate it.")
            assert isinstance(result, Finished)
            assert result.text == said
    assert provider.refusals == []


@searches
def test_a_loop_of_ones_own_is_native_with_a_few_lines(search_tool: str) -> None:
    script = [search_for("rotate key", "s1", search_tool), [("c1", "rotate_key", {}), ("c2", "nope", {})], "Rotated."]
    with LoopbackProvider(script) as provider:
        client = OpenAI(base_url=provider.url, api_key="none", max_retries=0)
        session = made(search_tool).session("c", wire=wire)
        items: list[Any] = [{"role": "user", "content": "Rotate it."}]
        while True:
            reply = client.responses.create(
                model="m",
                instructions=session.instructions(),
                input=items,
                tools=wire.tools_for(session),  # type: ignore[arg-type]
            )
            items += wire.message_from(reply)
            if not (called := wire.calls_in(reply)):
                break
            items += wire.results_for([(each, session.handle(each)) for each in called])
    assert reply.output_text == "Rotated."
    assert provider.refusals == []
    assert_prefix_stable(provider.requests, mode="native")
    statuses = [item["output"] for item in items if item.get("type") == "function_call_output"]
    assert statuses[-2] == "done []"


class Older(LoopbackProvider):
    """A server that does not know native delivery."""

    def __init__(self, script: Any, told: str) -> None:
        super().__init__(script)
        self.told = told

    def step(self, body: Any) -> Any:
        text = json.dumps(body)
        if '"additional_tools"' in text or '"tool_search"' in [json.dumps(tool["type"]) for tool in body["tools"]]:
            self.refusals.append(self.told)
            self._played -= 1
            return Failure(400, self.told)
        return super().step(body)


@ways
@searches
def test_J50_where_the_server_refuses_it_found_tools_are_listed(way: str, search_tool: str) -> None:
    """J50: the turn goes on, in the same conversation; `why` says what happened; the next one asks at once without."""
    told = f"Invalid value: '{'tool_search' if search_tool == 'tool_search' else 'additional_tools'}'"
    script = [search_for("rotate key", "s1", search_tool), [("c1", "rotate_key", {})], "Rotated.", "Yes."]
    with Older(script, told) as provider:
        model = model_for(provider, way)
        agent = Agent(model, made(search_tool), actions="run")
        result = run(agent, "Rotate it.", way)
        again = run(agent, "Sure?", way)
    assert isinstance(result, Finished)
    assert isinstance(again, Finished)
    assert (result.text, again.text) == ("Rotated.", "Yes.")
    assert provider.refusals == [told]
    assert provider.tool_names()[-1] == [search_tool, "rotate_key"]
    assert calls(provider.requests[-1]) == [(search_tool, None), ("rotate_key", None)]
    assert agent.conversation("c").session.why().startswith("append: ")
    assert told in agent.conversation("c").session.why()


def test_another_refusal_is_raised() -> None:
    with LoopbackProvider([Failure(400, "Unknown model 'gpt-test'.")]) as provider:
        model = model_for(provider)
        with pytest.raises(BadRequestError, match="Unknown model"):
            run(Agent(model, made()), "Hi")
    assert model.native is not None


def test_a_model_can_be_told_that_its_server_does_not_deliver() -> None:
    """OA-10: servers that copy the format."""
    with Older([search_for("rotate key"), [("c1", "rotate_key", {})], "Rotated."], "never") as provider:
        result = run(Agent(model_for(provider, native=False), made(), actions="run"), "Rotate it.")
    assert isinstance(result, Finished)
    assert (result.text, provider.refusals) == ("Rotated.", [])


class Ended(LoopbackProvider):
    """A provider whose streams end with this event, after two of their own."""

    def __init__(self, event: dict[str, Any]) -> None:
        super().__init__(["It is seven."])
        self.event = event

    def stream(self, number: int, events: Iterator[str]) -> Iterator[str]:
        yield next(events)
        yield next(events)
        yield f"event: {self.event['type']}\ndata: {json.dumps(self.event)}\n\n"


BROKE = {"code": "server_error", "message": "It broke."}


@pytest.mark.parametrize("way", ["streamed", "streamed async"])
@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", **BROKE, "param": None, "sequence_number": 3},
        {"type": "response.failed", "response": {"status": "failed", "error": BROKE, "output": []}},
    ],
)
def test_an_error_in_a_stream_fails_the_turn_and_not_the_conversation(way: str, event: Any) -> None:
    with Ended(event) as provider:
        agent = Agent(model_for(provider, way), made())
        with pytest.raises(Exception, match=r"It broke\."):
            run(agent, "Hi", way)
    with LoopbackProvider(["It is seven."]) as provider:
        agent = Agent(model_for(provider, way), made())
        assert run(agent, "And now?", way, "c").text == "It is seven."  # type: ignore[union-attr]
    assert provider.refusals == []


class Time(BaseModel):
    """What the model is asked for."""

    hour: int


def test_what_the_sdk_adds_to_a_reply_is_not_sent_back() -> None:
    """`responses.parse`, and the reply at the end of `responses.stream`, have fields that the provider refuses."""
    script = [search_for("rotate key"), [("c1", "rotate_key", {"what": "it"})], '{"hour": 7}', '{"hour": 8}']
    with LoopbackProvider(script) as provider:
        client = OpenAI(base_url=provider.url, api_key="none", max_retries=0)
        session = made().session("c", wire=wire)
        items: list[Any] = [{"role": "user", "content": "Rotate it. When did you?"}]
        for _ in range(4):
            tools: Any = wire.tools_for(session)
            with client.responses.stream(model="m", input=items, tools=tools, text_format=Time) as stream:
                reply = stream.get_final_response()
            items += wire.message_from(reply)
            items += wire.results_for([(each, session.handle(each)) for each in wire.calls_in(reply)])
    assert provider.refusals == []
    assert reply.output_parsed == Time(hour=8)


def test_a_structured_answer_is_asked_for_and_read() -> None:
    with LoopbackProvider([search_for("rotate key"), '{"hour": 7}']) as provider:
        result = run(Agent(model_for(provider), made(), layers=[structured(Time, native=True)]), "When?")
    assert isinstance(result, Finished)
    assert result.value == Time(hour=7)
    assert provider.requests[0]["text"]["format"]["type"] == "json_schema"


@searches
@pytest.mark.parametrize("left", [2, 3, 5, 7, 8, 11])
def test_a_history_that_a_loop_of_ones_own_shortened_is_taken(search_tool: str, left: int) -> None:
    """However much is left of it: between a call and its result, between a tool and its call."""
    script = [search_for("rotate key", "s1", search_tool), [("c1", "rotate_key", {}), ("c2", "list_keys", {})],
              [("c3", "rotate_key", {})], "Rotated.", [("c4", "rotate_key", {})], "Again."]  # fmt: skip
    with LoopbackProvider(script) as provider:
        client = OpenAI(base_url=provider.url, api_key="none", max_retries=0)
        session = made(search_tool).session("c", wire=wire)
        items: list[Any] = [{"role": "user", "content": "Rotate it."}]
        for step in range(6):
            tools: Any = wire.tools_for(session)
            reply = client.responses.create(model="m", input=items, tools=tools)
            items += wire.message_from(reply)
            items += wire.results_for([(each, session.handle(each)) for each in wire.calls_in(reply)])
            if step == 3:
                session.after_compaction()
                items = wire.shortened_history(items[-left:], wire.tools_for(session))
                items.append({"role": "user", "content": "Again."})
    assert provider.refusals == []
    assert reply.output_text == "Again."
    assert brought(provider.requests[-1]) == ([[]] if search_tool == "tool_search" and left > 10 else [])


@searches
@pytest.mark.parametrize("bound", [2, 3, 5])
@pytest.mark.parametrize("summarize", [False, True])
def test_a_conversation_that_is_compacted_again_and_again_is_never_refused(
    search_tool: str, bound: int, summarize: bool
) -> None:
    """Wherever the cut falls: each tool is declared in one place, and its calls name that place."""

    def step(body: Any) -> Any:
        number = len(provider.replies)
        if not body.get("tools"):
            return "A summary."
        wanted = [search_for("rotate key", f"s{number}", search_tool), [(f"c{number}", "rotate_key", {})],
                  [(f"d{number}", "send_mail", {})], [(f"e{number}", "send_mail", {})], "Ok."]  # fmt: skip
        return wanted[number % 5]

    with LoopbackProvider([step] * 60) as provider:
        layers = [history(messages=bound, summarize=summarize)]
        agent = Agent(model_for(provider), made(search_tool), layers=layers, actions="run")
        for turn in range(6):
            assert isinstance(run(agent, f"Turn {turn}."), Finished)
    assert provider.refusals == []


class Particular(LoopbackProvider):
    """A provider that refuses requests with a word in them."""

    def __init__(self, word: str, told: str) -> None:
        super().__init__()
        self.word, self.told = word, told

    def step(self, body: Any) -> Any:
        if self.word not in json.dumps(body):
            return super().step(body)
        self.refusals.append(self.told)
        return Failure(400, self.told)


@ways
def test_a_model_that_does_not_reason_is_asked_again_without_encrypted_reasoning(way: str) -> None:
    told = "Encrypted content is not supported with this model."
    with Particular("reasoning.encrypted_content", told) as provider:
        agent = Agent(model_for(provider, way), made())
        assert run(agent, "Hi", way).text == run(agent, "And?", way).text == "Done."  # type: ignore[union-attr]
    assert provider.refusals == [told]
    assert "include" not in provider.requests[-1]


@ways
def test_reasoning_that_the_provider_cannot_read_is_left_out(way: str) -> None:
    """That of another organisation, or on another host: without this the conversation could never go on."""
    summary = [{"type": "summary_text", "text": "Hm."}]
    raw = [{"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "gAAA"},
           {"type": "message", "id": "msg_1", "role": "assistant", "content": []}, call("a", id="fc_1")]  # fmt: skip
    told = "The encrypted content gAAA could not be verified."
    asked = CallModel((UserSaid("x"), own(*raw), answered("a"), UserSaid("And?")))
    with Particular("gAAA", told) as provider:
        answer = model_for(provider, way)(asked)
        if way.endswith("async"):
            reply = asyncio.run(_last(answer))
        else:
            *_, reply = answer  # type: ignore[misc]
    assert (reply.text, provider.refusals) == ("Done.", [told])
    assert [item.get("id") for item in provider.requests[-1]["input"]] == [None] * 5
    assert provider.requests[-1]["include"] == ["reasoning.encrypted_content"]


async def _last(answer: Any) -> Any:
    return [each async for each in answer][-1]


def test_ids_of_another_provider_are_within_the_length_that_this_one_takes() -> None:
    """Of calls and of their results."""
    long = [f"{'x' * 60}{n}" for n in range(10, 12)]
    asked = tuple(JudgedCall(each, "rotate_key", {}) for each in long)
    results = tuple(ToolReturned(each, "ok", "done") for each in long)
    with LoopbackProvider() as provider:
        talk = (UserSaid("x"), ModelReplied(calls=asked, wire="gemini"), Answers(results))
        list(model_for(provider, "whole")(CallModel(talk)))  # type: ignore[arg-type]
    assert provider.refusals == []
    assert len({item["call_id"] for item in provider.requests[0]["input"][1:]}) == 2


@searches
def test_a_tool_that_the_provider_refuses_leaves_the_items_too(search_tool: str) -> None:
    """The definition stands in the journal, in an answer: it is not sent again, and the turn goes on."""

    class Picky(LoopbackProvider):
        def step(self, body: Any) -> Any:
            if '"name": "rotate_key", "description"' not in json.dumps(body):
                return super().step(body)
            self.refusals.append("rotate_key")
            return Failure(400, "Invalid schema for function 'rotate_key': it is too odd.")

    script = [search_for("rotate key", "s1", search_tool), "This step is not played.", "I cannot.", "No."]
    with Picky(script) as provider:
        agent = Agent(model_for(provider), made(search_tool), actions="run")
        assert run(agent, "Rotate it.").text == "I cannot."  # type: ignore[union-attr]
        assert run(agent, "Really?").text == "No."  # type: ignore[union-attr]
    assert provider.refusals == ["rotate_key"]
    assert "rotate_key" not in [name for each in brought(provider.requests[-1]) for name in each]
