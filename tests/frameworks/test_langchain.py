"""LangChain's create_agent with our middleware, and a LangGraph built by hand with our nodes."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs pip install 'toolsearch-kit[langchain]': see `make frameworks`")

from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition
from langgraph.types import Command

from toolsearch import Caller, ImagePart, StateError, ToolSearch, tool
from toolsearch.frameworks import tools_from
from toolsearch.frameworks.langchain import SearchMiddleware
from toolsearch.frameworks.langgraph import SearchNodes

FIND = ("search_tools", {"queries": ["rotate an api key"]})
ROTATE = ("rotate_key", {"name": "billing"})
THROUGH = ("call_tool", {"name": "rotate_key", "arguments": {"name": "billing"}})
ASKED = {"messages": [HumanMessage("The billing key leaked.")]}
RAN: list[str] = []


def get_weather(city: str) -> str:
    """Current weather of a city."""
    return f"Rain in {city}."


@langchain_tool
def rotate_key(name: str) -> str:
    """Replace an API key by a new one."""
    RAN.append(name)
    return f"rotated {name}"


def send_mail(to: str, body: str) -> dict[str, str]:
    """Send an e-mail."""
    return {"sent_to": to}


def made_search(*more: object, **options: Any) -> ToolSearch:
    return ToolSearch(
        tools_from(get_weather, rotate_key, send_mail, more), index="keyword", **{"mode": "append"} | options
    )


class Script(GenericFakeChatModel):
    """A model that makes the calls that are written down, and notes the tools that it was shown."""

    shown: list[list[str]]
    asked: list[Any]

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        self.shown.append([each["function"]["name"] if isinstance(each, dict) else each.name for each in tools])
        return self

    def _generate(self, messages: Any, *rest: Any, **options: Any) -> Any:
        self.asked.append(messages)
        return super()._generate(messages, *rest, **options)


def script(*steps: Any) -> Script:
    def message(number: int, step: Any) -> AIMessage:
        if isinstance(step, str):
            return AIMessage(step)
        calls = [{"id": f"c{number}.{n}", "name": name, "args": args} for n, (name, args) in enumerate(step)]
        return AIMessage("", tool_calls=calls)

    return Script(messages=iter([message(*each) for each in enumerate(steps)]), shown=[], asked=[])


def by_middleware(model: Script, search: ToolSearch, saver: Any = None, **options: Any) -> Any:
    return create_agent(model, middleware=[SearchMiddleware(search, **options)], checkpointer=saver)


def by_hand(model: Script, search: ToolSearch, saver: Any = None, **options: Any) -> Any:
    nodes = SearchNodes(search, **options)
    graph = StateGraph(MessagesState)
    graph.add_node("model", nodes.model(model, system="You help."))
    graph.add_node("tools", nodes.tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def thread(name: str, **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": name, **more}}


def answers(state: Any) -> list[tuple[str, str, str]]:
    found = [each for each in state["messages"] if isinstance(each, ToolMessage)]
    return [(each.name or "", each.status, str(each.content)) for each in found]


both = pytest.mark.parametrize("build", [by_middleware, by_hand])


@both
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_model_is_shown_the_search_tool_and_then_what_was_found(build: Any, is_async: bool) -> None:
    model = script([FIND], [("send_mail", {"to": "x"})], [ROTATE], "Done.")
    graph = build(model, made_search())
    state = asyncio.run(graph.ainvoke(ASKED)) if is_async else graph.invoke(ASKED)
    assert model.shown[:2] == [["search_tools"], ["search_tools", "rotate_key"]]
    assert "search_tools" in model.asked[0][0].text
    _, unloaded, rotated = answers(state)
    assert unloaded[1] == "error"
    assert "send_mail" in unloaded[2]
    assert "body" in unloaded[2]  # not loaded: its schema is shown, and it is there from the next step on
    assert model.shown[2] == ["search_tools", "rotate_key", "send_mail"]
    assert rotated == ("rotate_key", "success", "rotated billing")
    assert state["messages"][-1].text == "Done."


@both
def test_what_was_found_stays_in_its_conversation(build: Any) -> None:
    """A thread keeps what was found; another thread, and a run without one, begin with the search tool."""
    model = script([FIND], "Found.", "Still there.", "Nothing yet.", "Nor here.")
    graph = build(model, made_search(), InMemorySaver())
    for name in ("one", "one", "two"):
        graph.invoke(ASKED, thread(name))
    build(model, made_search()).invoke(ASKED)
    fresh, loaded = ["search_tools"], ["search_tools", "rotate_key"]
    assert model.shown == [fresh, loaded, loaded, fresh, fresh]


@both
def test_J52_a_durable_agent_goes_on_in_another_process(build: Any) -> None:
    """J52: the checkpoint alone brings the found tools back, in their order."""
    saver = InMemorySaver()
    model = script([FIND, ("search_tools", {"queries": ["weather"]})], "Found.")
    build(model, made_search(), saver).invoke(ASKED, thread("one"))
    model = script([ROTATE], "Done.")
    state = build(model, made_search(), saver).invoke(ASKED, thread("one"))
    assert model.shown == [["search_tools", "rotate_key", "get_weather"]] * 2
    assert answers(state)[-1] == ("rotate_key", "success", "rotated billing")


@both
def test_J52_a_sub_agent_searches_for_itself(build: Any) -> None:
    """J52: over the same ToolSearch, in the same thread, neither agent is shown what the other one found."""
    search = made_search()
    inner = script([FIND], [ROTATE], "Rotated.", [FIND], [ROTATE], "Rotated again.")
    worker = build(inner, search)

    @langchain_tool
    def delegate(task: str) -> str:
        """Give a task to the worker."""
        return str(worker.invoke({"messages": [HumanMessage(task)]})["messages"][-1].text)

    outer = script([("delegate", {"task": "Rotate."})], [("delegate", {"task": "Again."})], "Done.")
    lead = create_agent(outer, tools=[delegate], middleware=[SearchMiddleware(search)], checkpointer=InMemorySaver())
    state = lead.invoke(ASKED, thread("one"))
    assert [each[2] for each in answers(state)] == ["Rotated.", "Rotated again."]
    fresh, loaded = ["search_tools"], ["search_tools", "rotate_key"]
    assert inner.shown == [fresh, loaded, loaded] * 2
    assert outer.shown == [["delegate", "search_tools"]] * 3


@both
def test_J52_agents_that_are_nodes_of_a_graph_have_the_search(build: Any) -> None:
    """J52: the messages are shared; each node begins with the search tool, in each turn of the thread."""
    search = made_search()
    first, second = script([FIND], "Found."), script([("search_tools", {"queries": ["weather"]})], [ROTATE], "Done.")
    graph = StateGraph(MessagesState)
    graph.add_node("first", build(first, search))
    graph.add_node("second", build(second, search))
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    state = graph.compile(checkpointer=InMemorySaver()).invoke(ASKED, thread("one"))
    assert state["messages"][-1].text == "Done."
    assert first.shown == [["search_tools"], ["search_tools", "rotate_key"]]
    assert second.shown[1][-1] == "get_weather"
    assert "rotate_key" in second.shown[2]


@both
@pytest.mark.parametrize("call", [ROTATE, THROUGH], ids=["append", "bridge"])
@pytest.mark.parametrize("decision", ["approve", "reject", "respond", None])
def test_C39_a_call_that_a_person_approves_waits_in_any_mode(build: Any, call: Any, decision: str | None) -> None:
    """C39: the question names the inner tool; another process goes on; what is no approval is a no."""
    mode = "append" if call is ROTATE else "bridge"
    saver = InMemorySaver()
    options = {"approval": lambda each: each.name == "rotate_key"}
    RAN.clear()
    state = build(script([FIND], [call]), made_search(mode=mode), saver, **options).invoke(ASKED, thread("one"))
    (waiting,) = state["__interrupt__"]
    assert (waiting.value["name"], waiting.value["args"]) == ("rotate_key", {"name": "billing"})
    assert RAN == []
    resume = Command(resume={"type": decision, "message": "I did it."} if decision else "yes")
    state = build(script("Done."), made_search(mode=mode), saver, **options).invoke(resume, thread("one"))
    assert len(RAN) == (decision == "approve")
    told = {"approve": "rotated billing", "respond": "I did it."}
    assert answers(state)[-1][2].startswith(told.get(decision or "", "'rotate_key' did not run: a person declined it"))


def test_C39_calls_inside_one_call_are_asked_for_one_by_one() -> None:
    inner = {"tool_uses": [{"recipient_name": "functions.rotate_key", "parameters": {"name": n}} for n in ("a", "b")]}
    model = script([FIND], [("multi_tool_use.parallel", inner)], "Done.")
    graph = by_middleware(model, made_search(), InMemorySaver(), approval=lambda each: True)
    RAN.clear()
    state = graph.invoke(ASKED, thread("one"))
    state = graph.invoke(Command(resume={"type": "approve"}), thread("one"))
    assert state["__interrupt__"][0].value["args"] == {"name": "b"}
    graph.invoke(Command(resume={"type": "reject"}), thread("one"))
    assert RAN == []


@both
@pytest.mark.parametrize("mode", ["append", "bridge"])
def test_C39_a_filter_by_caller_holds_in_search_and_call(build: Any, mode: Any) -> None:
    """C39: what a caller may not see is not found, and a call by its name is answered as an unknown name is."""
    drop = tool({"name": "drop_table", "description": "Drop a table.", "roles": ["admin"]}, run=lambda: "dropped")
    direct, through = ("drop_table", {}), ("call_tool", {"name": "drop_table", "arguments": {}})
    call = direct if mode == "append" else through

    def caller(given: Any) -> Caller:
        user = given.context["user"] if build is by_middleware else given["configurable"]["user"]
        return Caller(user, roles=["admin"] * (user == "ana"))

    heard = {}
    for user in ("ana", "bo"):
        model = script([("search_tools", {"queries": ["drop_table"]})], [call], "Done.")
        graph = build(model, made_search(drop, mode=mode), caller=caller)
        extra = {"context": {"user": user}} if build is by_middleware else {"config": {"configurable": {"user": user}}}
        heard[user] = answers(graph.invoke(ASKED, **extra))
    assert heard["ana"][1][2] == "dropped"
    assert "Drop a table" not in heard["bo"][0][2]
    assert heard["bo"][1][2].startswith("'drop_table' did not run: there is no such tool")


def test_a_thread_of_one_user_is_closed_to_another() -> None:
    def caller(config: Any) -> Caller:
        return Caller(config["configurable"]["user"])

    graph = by_hand(script("Hello.", "Hello."), made_search(), caller=caller)
    graph.invoke(ASKED, thread("one", user="ana"))
    with pytest.raises(StateError, match="another"):
        graph.invoke(ASKED, thread("one", user="bo"))


def test_a_client_cannot_set_what_was_found() -> None:
    model = script("Hello.")
    by_middleware(model, made_search()).invoke({**ASKED, "toolsearch_found": ["rotate_key"], "toolsearch_id": "x"})
    assert model.shown == [["search_tools"]]


def test_a_tool_that_takes_the_runtime_gets_that_of_the_agent() -> None:
    @langchain_tool
    def whose_call(question: str, runtime: ToolRuntime) -> str:
        """Tell whose call this is."""
        return f"{runtime.tool_call_id} among {len(runtime.state['messages'])} messages"

    for is_async in (False, True):
        model = script([("search_tools", {"queries": ["whose call"]})], [("whose_call", {"question": "?"})], "Done.")
        agent = by_middleware(model, made_search(whose_call))
        state = asyncio.run(agent.ainvoke(ASKED)) if is_async else agent.invoke(ASKED)
        assert answers(state)[1] == ("whose_call", "success", "c1.0 among 4 messages")


def test_the_agents_own_tools_and_its_prompt_stay_as_they_are() -> None:
    model = script([("rotate_key", {"name": "own"})], "Done.")
    agent = create_agent(
        model, tools=[rotate_key], middleware=[SearchMiddleware(ToolSearch([get_weather]))], system_prompt="You help."
    )
    RAN.clear()
    agent.invoke(ASKED)
    assert RAN == ["own"]
    assert model.shown[0] == ["rotate_key", "search_tools"]
    assert model.asked[0][0].text.startswith("You help.\n\n")


def test_an_image_comes_as_an_image() -> None:
    def draw(what: str) -> Any:
        """Draw a picture."""
        return [ImagePart(b"GIF89a", "image/gif")]

    model = script([("draw", {"what": "a cat"})], "Done.")
    state = by_middleware(model, ToolSearch([draw], mode="static")).invoke(ASKED)
    message = next(each for each in state["messages"] if isinstance(each, ToolMessage))
    assert message.content[1] == {"type": "image", "base64": "R0lGODlh", "mime_type": "image/gif"}


@both
def test_what_providers_refuse_is_folded_before_it_is_sent(build: Any) -> None:
    """B05: one tool with a schema of the odd kind does not spoil every later request."""
    odd_name = {"name": "list_keys", "parameters": {"type": "object", "properties": {"Date<": {"type": "array"}}}}
    either = [{"properties": {"id": {"type": "integer"}}}, {"properties": {"name": {"type": "string"}}}]
    odd = {"name": "find_key", "description": "Find a key.", "parameters": {"type": "object", "anyOf": either}}
    told: list[Any] = []

    class Noted(Script):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            told.extend(each["function"]["parameters"] for each in tools)
            return super().bind_tools(tools, **options)

    call = {"id": "c1", "name": "list_keys", "args": {"Date": ["today"]}}
    model = Noted(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("Done.")]), shown=[], asked=[])
    tools = [tool(odd, run=lambda **given: "found"), tool(odd_name, run=lambda **given: f"given {given}")]
    state = build(model, ToolSearch(tools, mode="static")).invoke(ASKED)
    assert "anyOf" not in told[0]
    assert set(told[0]["properties"]) == {"id", "name"}
    assert told[1]["properties"] == {"Date": {"type": "array", "items": {}}}
    assert answers(state)[0][2] == "given {'Date<': ['today']}"
