"""The tool retriever for LlamaIndex, with LlamaIndex's own mock model: every kind of agent has the search."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from toolsearch import Caller, Catalog, SetupError, ToolSearch, tool

pytest.importorskip("llama_index.core", reason="needs pip install 'toolsearch-kit[llama-index]': see `make frameworks`")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Skipping serialization")

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent  # noqa: E402
from llama_index.core.base.llms.types import ToolCallBlock  # noqa: E402
from llama_index.core.llms import ChatMessage  # noqa: E402
from llama_index.core.llms.mock import MockFunctionCallingLLM  # noqa: E402
from llama_index.core.tools import FunctionTool  # noqa: E402
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent  # noqa: E402

from toolsearch.frameworks import tools_from  # noqa: E402
from toolsearch.frameworks.llama_index import SearchRetriever  # noqa: E402

SEARCH = ("search_tools", {"queries": ["rotate an api key"]})
ROTATE = ("rotate_key", {"name": "billing"})
WHOLE = [[SEARCH], [ROTATE], "Done."]  # the script that every kind of agent runs
LISTED = [["search_tools"], ["search_tools", "rotate_key"], ["search_tools", "rotate_key"]]


def rotate_key(name: str) -> str:
    """Replace an API key by a new one."""
    return f"rotated {name}"


def get_weather(city: str) -> str:
    """Current weather of a city."""
    return f"Rain in {city}."


@tool(roles=["admin"])
def drop_table(name: str) -> str:
    """Delete a table of the database."""
    return f"dropped {name}"


def search_over(**options: Any) -> ToolSearch:
    return ToolSearch(Catalog([rotate_key, get_weather, drop_table]), index="keyword", **options)


class Scripted:
    """LlamaIndex's mock of a model that calls tools, with a script; keeps the names and schemas of each request."""

    def __init__(self, *steps: Any) -> None:
        self.steps, self.listed, self.schemas, self.systems = list(steps), [], [], []
        self.llm = MockFunctionCallingLLM(response_generator=self._reply)

    def _reply(self, messages: Any, **options: Any) -> ChatMessage:
        tools = options.get("tools") or []
        self.listed.append([each.metadata.name for each in tools])
        self.schemas.append([each.metadata.get_parameters_dict() for each in tools])
        self.systems.append([each.content for each in messages if each.role == "system"])
        step = self.steps.pop(0)
        if isinstance(step, str):
            return ChatMessage(role="assistant", content=step)
        calls = [ToolCallBlock(tool_call_id=f"c{n}", tool_name=name, tool_kwargs=a) for n, (name, a) in enumerate(step)]
        return ChatMessage(role="assistant", blocks=calls)


def agent(retriever: SearchRetriever, model: Scripted, name: str = "helper", **options: Any) -> FunctionAgent:
    return FunctionAgent(
        name=name, description=f"Is the {name}.", tool_retriever=retriever, llm=model.llm, streaming=False,
        system_prompt=retriever.instructions(), **options,
    )  # fmt: skip


def ask(
    who: Any, message: str = "Hi.", *, ctx: Any = None, answer: Callable[[Any], str] | None = None
) -> tuple[list[str], str]:
    """One turn: the answers of tools, in order, and the last text. `answer` is a person's, to a question."""

    async def turn() -> tuple[list[str], str]:
        handler, said = who.run(user_msg=message, ctx=ctx), []
        async for event in handler.stream_events():
            if type(event).__name__ == "ToolCallResult":
                said.append(event.tool_output.content)
            if isinstance(event, InputRequiredEvent) and answer is not None:
                assert handler.ctx is not None
                given = HumanResponseEvent(response=answer(event), tool=event.tool, arguments=event.arguments)
                handler.ctx.send_event(given)
        return said, str(await handler)

    return asyncio.run(turn())


def test_a_found_tool_is_listed_from_the_next_request_on_and_runs() -> None:
    model = Scripted(*WHOLE)
    said, text = ask(agent(SearchRetriever(search_over()), model))
    assert model.listed == LISTED
    assert (said[1], text) == ("rotated billing", "Done.")
    assert model.schemas[1][1]["properties"]["name"]["type"] == "string"
    assert "search_tools" in model.systems[0][0]


def test_a_tool_that_is_not_loaded_is_answered_and_no_catalog_is_listed() -> None:
    said, _ = ask(agent(SearchRetriever(search_over()), Scripted([ROTATE], [ROTATE], [("drop_tables", {})], "Done.")))
    assert "It is loaded now" in said[0]
    assert said[1] == "rotated billing"
    assert "not found" in said[2]
    assert "get_weather" not in said[2]


def test_a_tool_found_in_the_same_reply_cannot_be_called_in_it() -> None:
    """LlamaIndex asks for the tools again while it runs each call; that must not make them callable."""
    said, _ = ask(agent(SearchRetriever(search_over()), Scripted([SEARCH, ROTATE], [ROTATE], "Done.")))
    assert any("did not run" in each for each in said[:2])
    assert said[2] == "rotated billing"


def test_the_tools_of_the_agent_itself_stay_its_own() -> None:
    def clock() -> str:
        """The time."""
        return "noon"

    model = Scripted([("clock", {})], "Done.")
    said, _ = ask(agent(SearchRetriever(search_over()), model, tools=[clock]))
    assert said == ["noon"]
    assert model.listed[0] == ["clock", "search_tools"]


@pytest.mark.parametrize("kind", ["alone", "streaming", "handed off to", "as a tool", "in bridge"])
def test_J52_every_kind_of_agent_has_the_search(kind: str) -> None:
    """One script, run by the agent itself, by one that another hands over to, and by one that another calls."""
    model = Scripted(*WHOLE)
    if kind == "in bridge":
        model.steps[1] = [("call_tool", {"name": ROTATE[0], "arguments": ROTATE[1]})]
    retriever = SearchRetriever(search_over(mode="bridge" if kind == "in bridge" else "append"))
    child = agent(retriever, model, "child")
    who: Any = child
    if kind == "streaming":
        child.streaming = True
    elif kind == "handed off to":
        first = Scripted([("handoff", {"to_agent": "child", "reason": "keys"})])
        who = AgentWorkflow([agent(retriever, first, "root", can_handoff_to=["child"]), child], root_agent="root")
        child.can_handoff_to = []
    elif kind == "as a tool":

        async def keys(request: str) -> str:
            """Ask the agent that knows keys."""
            return str(await child.run(user_msg=request))

        who = agent(retriever, Scripted([("keys", {"request": "Rotate."})], "Done."), "root", tools=[keys])
    said, text = ask(who)
    assert model.listed == ([["search_tools", "call_tool"]] * 3 if kind == "in bridge" else LISTED)
    assert text == "Done."
    assert kind == "as a tool" or said[-1] == "rotated billing"


def test_J52_an_agent_that_writes_its_calls_as_text_has_the_search() -> None:
    steps = [f"Thought: a tool.\nAction: {name}\nAction Input: {json.dumps(given)}" for name, given in (SEARCH, ROTATE)]
    replies = iter([*steps, "Thought: I can answer.\nAnswer: Done."])
    listed = []

    def reply(messages: Any, **options: Any) -> ChatMessage:
        prompt = str(messages[0].content)
        listed.append(
            [name for name in ("search_tools", "rotate_key", "get_weather") if f"Tool Name: {name}" in prompt]
        )
        return ChatMessage(role="assistant", content=next(replies))

    llm = MockFunctionCallingLLM(response_generator=reply)
    said, text = ask(ReActAgent(tool_retriever=SearchRetriever(search_over()), llm=llm, streaming=False))
    assert listed == LISTED
    assert (said[1], text) == ("rotated billing", "Done.")


def test_J52_a_stored_context_goes_on_with_what_was_found_in_another_process() -> None:
    async def first() -> dict[str, Any]:
        who = agent(SearchRetriever(search_over()), Scripted(*WHOLE))
        ctx = Context(who)
        await who.run(user_msg="Hi.", ctx=ctx)
        return ctx.to_dict()

    async def second(stored: dict[str, Any]) -> tuple[Any, str]:
        model = Scripted([ROTATE], "Done again.")
        who = agent(SearchRetriever(search_over()), model)  # a `ToolSearch` that knows nothing of the conversation
        return model, str(await who.run(user_msg="Again.", ctx=Context.from_dict(who, stored)))

    model, text = asyncio.run(second(asyncio.run(first())))
    assert model.listed[0] == ["search_tools", "rotate_key"]
    assert text == "Done again."


def test_nothing_leaks_between_conversations_and_agents() -> None:
    retriever = SearchRetriever(search_over())
    ask(agent(retriever, Scripted(*WHOLE)))
    later = Scripted("Hi.")
    ask(agent(retriever, later))
    assert later.listed == [["search_tools"]]
    root = Scripted([SEARCH], [("handoff", {"to_agent": "child", "reason": "keys"})])
    child = Scripted("Done.")
    both = [agent(retriever, root, "root"), agent(retriever, child, "child", can_handoff_to=[])]
    ask(AgentWorkflow(both, root_agent="root"))
    assert root.listed[1] == ["search_tools", "rotate_key", "handoff"]
    assert child.listed == [["search_tools"]]


def test_C39_the_filter_by_caller_holds_and_a_hidden_tool_is_as_good_as_none() -> None:
    drop = ("call_tool", {"name": "drop_table", "arguments": {"name": "users"}})
    roles: list[str] = []
    retriever = SearchRetriever(search_over(mode="bridge"), caller=lambda ctx: Caller("ana", roles))
    hidden, _ = ask(agent(retriever, Scripted([drop], "Done.")))
    without = SearchRetriever(ToolSearch(Catalog([rotate_key, get_weather]), index="keyword", mode="bridge"))
    unknown, _ = ask(agent(without, Scripted([drop], "Done.")))
    assert hidden == unknown
    assert "there is no such tool" in hidden[0]
    roles.append("admin")
    said, _ = ask(agent(retriever, Scripted([("search_tools", {"queries": ["delete a table"]})], [drop], "Done.")))
    assert said[1] == "dropped users"


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_C39_a_person_approves_the_inner_tool_of_a_call_through_the_bridge(answer: str) -> None:
    asked: list[tuple[str, str]] = []

    def person(event: Any) -> str:
        asked.append((event.tool, event.arguments))
        return answer

    through = ("call_tool", {"name": "rotate_key", "arguments": {"name": "billing"}})
    retriever = SearchRetriever(search_over(mode="bridge"), approval=lambda each: each.id == "rotate_key")
    said, text = ask(agent(retriever, Scripted([SEARCH], [through], "Done.")), answer=person)
    assert asked == [("rotate_key", '{"name": "billing"}')]
    assert ("rotated billing" in said[1]) is (answer == "yes")
    assert answer == "yes" or "declined" in said[1]
    assert text == "Done."


def test_a_function_that_takes_the_context_of_the_run_gets_it() -> None:
    async def whose_key(ctx: Context, name: str) -> str:
        """Say whose API key it is."""
        return str(await ctx.store.get("user_msg_str"))

    search = ToolSearch(tools_from(FunctionTool.from_defaults(whose_key, name="whose_key")), index="keyword")
    script = [("search_tools", {"queries": ["whose api key"]})], [("whose_key", {"name": "billing"})], "Done."
    said, _ = ask(agent(SearchRetriever(search), Scripted(*script)), "Mine?")
    assert said[1] == "Mine?"


def test_outside_a_run_there_are_no_tools_and_the_error_says_why() -> None:
    with pytest.raises(SetupError, match="agent's run"):
        SearchRetriever(search_over()).retrieve("rotate")
