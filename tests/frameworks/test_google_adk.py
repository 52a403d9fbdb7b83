"""The toolset for Google ADK, with ADK's own runner and a scripted model: every kind of agent has the search."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from toolsearch import Caller, Catalog, ToolSearch, tool

pytest.importorskip("google.adk", reason="needs pip install 'toolsearch-kit[google-adk]': see `make frameworks`")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*EXPERIMENTAL")  # of ADK's own

from google.adk.agents import LlmAgent, ParallelAgent  # noqa: E402
from google.adk.apps.app import App, ResumabilityConfig  # noqa: E402
from google.adk.models import BaseLlm, LlmResponse  # noqa: E402
from google.adk.runners import Runner  # noqa: E402
from google.adk.sessions import InMemorySessionService  # noqa: E402
from google.adk.tools import FunctionTool, ToolContext  # noqa: E402
from google.adk.tools.agent_tool import AgentTool  # noqa: E402
from google.adk.workflow import Workflow  # noqa: E402
from google.genai import types  # noqa: E402

from toolsearch.frameworks import tools_from  # noqa: E402
from toolsearch.frameworks.google_adk import SearchToolset  # noqa: E402

SEARCH = ("search_tools", {"queries": ["rotate an api key"]})
ROTATE = ("rotate_key", {"name": "billing"})
WHOLE = [[SEARCH], [ROTATE], "Done."]  # the script that every kind of agent runs


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


class Scripted(BaseLlm):
    """A model of ADK that says what its script says, and keeps the requests."""

    model: str = "scripted"
    steps: list[Any]
    requests: list[Any]

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        self.requests.append(llm_request)
        step = self.steps.pop(0)
        calls = [] if isinstance(step, str) else [types.FunctionCall(name=n, args=a) for n, a in step]
        parts = [types.Part(text=step)] if isinstance(step, str) else [types.Part(function_call=c) for c in calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts))

    @property
    def listed(self) -> list[list[str]]:
        """The names of the tools of each request."""
        return [
            [d.name for t in request.config.tools or [] for d in t.function_declarations or []]
            for request in self.requests
        ]


def scripted(steps: Iterable[Any]) -> Scripted:
    return Scripted(steps=list(steps), requests=[])


def agent(toolset: SearchToolset, model: Scripted, name: str = "helper", **options: Any) -> LlmAgent:
    callback = toolset.answer_unlisted
    return LlmAgent(
        name=name, model=model, tools=[toolset, *options.pop("tools", [])], on_tool_error_callback=callback, **options
    )


def ask(root: Any, *, user: str = "ana", session: str = "s", service: Any = None, message: Any = "Hi.") -> list[Any]:
    """One turn; the answers of tools, in order, then the last text."""

    async def turn() -> list[Any]:
        runner = Runner(app=root if isinstance(root, App) else App(name="app", root_agent=root),
                        session_service=service or InMemorySessionService())  # fmt: skip
        known = await runner.session_service.get_session(app_name="app", user_id=user, session_id=session)
        if known is None:
            await runner.session_service.create_session(app_name="app", user_id=user, session_id=session)
        said, text = [], ""
        content = types.Content(role="user", parts=[types.Part(text=message) if isinstance(message, str) else message])
        async for event in runner.run_async(user_id=user, session_id=session, new_message=content):
            for part in event.content.parts if event.content and event.content.parts else []:
                text = part.text or text
                if part.function_response:
                    said.append(part.function_response.response)
                if part.function_call and part.function_call.name == "adk_request_confirmation":
                    said.append(part.function_call)
        return [*said, text]

    return asyncio.run(turn())


def test_a_found_tool_is_listed_from_the_next_request_on_and_runs() -> None:
    model = scripted(WHOLE)
    said = ask(agent(SearchToolset(search_over()), model, instruction="Be brief."))
    assert model.listed == [["search_tools"], ["search_tools", "rotate_key"], ["search_tools", "rotate_key"]]
    assert said[1:] == [{"result": "rotated billing"}, "Done."]
    system = model.requests[0].config.system_instruction
    assert system.startswith("Be brief.")
    assert "search_tools" in system
    declared = model.requests[1].config.tools[0].function_declarations[1].parameters_json_schema
    assert declared["properties"]["name"]["type"] == "string"


def test_a_tool_that_is_not_loaded_is_answered_and_no_catalog_is_listed() -> None:
    model = scripted([[ROTATE], [ROTATE], [("drop_tables", {})], "Done."])
    said = ask(agent(SearchToolset(search_over()), model))
    assert "It is loaded now" in said[0]["error"]
    assert said[1] == {"result": "rotated billing"}
    assert "there is no such tool" in said[2]["error"]
    assert "get_weather" not in said[2]["error"]


def test_a_tool_found_in_the_same_reply_cannot_be_called_in_it() -> None:
    said = ask(agent(SearchToolset(search_over()), scripted([[SEARCH, ROTATE], [ROTATE], "Done."])))
    assert "did not run" in said[1]["error"]
    assert said[2] == {"result": "rotated billing"}


@pytest.mark.parametrize(
    "kind", ["alone", "sub-agent", "single turn", "as a tool", "in parallel", "in a graph", "in bridge"]
)
def test_J52_every_kind_of_agent_has_the_search(kind: str) -> None:
    """One script, run by the agent itself, by one that it transfers to, and by one that it calls."""
    search, model = search_over(mode="bridge" if kind == "in bridge" else "append"), scripted(WHOLE)
    if kind == "in bridge":
        model.steps[1] = [("call_tool", {"name": ROTATE[0], "arguments": ROTATE[1]})]
    toolset = SearchToolset(search)
    child = agent(toolset, model, "child", description="Knows keys.")
    root: Any = child
    if kind == "sub-agent":
        first = scripted([[("transfer_to_agent", {"agent_name": "child"})]])
        root = agent(toolset, first, "root", sub_agents=[child])
    elif kind == "as a tool":
        root = agent(
            toolset, scripted([[("child", {"request": "Rotate."})], "Done."]), "root", tools=[AgentTool(child)]
        )
    elif kind == "single turn":
        child = agent(toolset, model, "child", description="Knows keys.", mode="single_turn")
        root = agent(toolset, scripted([[("child", {"request": "Rotate."})], "Done."]), "root", sub_agents=[child])
    elif kind == "in a graph":
        root = Workflow(name="root", edges=[("START", child)])
    elif kind == "in parallel":
        other = agent(toolset, scripted(["Nothing to do."]), "other")
        root = ParallelAgent(name="root", sub_agents=[child, other])
    said = ask(root)
    own = [[name for name in names if name != "transfer_to_agent"] for names in model.listed]
    if kind == "in bridge":
        assert own == [["search_tools", "call_tool"]] * 3
    else:
        assert own == [["search_tools"], ["search_tools", "rotate_key"], ["search_tools", "rotate_key"]]
    assert "Done." in str(said[-2:])


def test_J52_a_stored_session_goes_on_with_what_was_found_in_another_process() -> None:
    service = InMemorySessionService()
    ask(agent(SearchToolset(search_over()), scripted(WHOLE)), service=service)
    later = scripted([[ROTATE], "Done again."])
    said = ask(agent(SearchToolset(search_over()), later), service=service)  # a `ToolSearch` that knows nothing of it
    assert later.listed[0] == ["search_tools", "rotate_key"]
    assert said == [{"result": "rotated billing"}, "Done again."]


def test_what_a_state_claims_to_have_been_found_is_filtered_for_the_caller() -> None:
    service = InMemorySessionService()
    claimed = {"toolsearch:helper": ["drop_table", "rotate_key", 7]}
    asyncio.run(service.create_session(app_name="app", user_id="ana", session_id="s", state=claimed))
    model = scripted(["Hi."])
    ask(agent(SearchToolset(search_over()), model), service=service)
    assert model.listed == [["search_tools", "rotate_key"]]


def test_nothing_leaks_between_sessions_users_and_agents() -> None:
    """Two users of ADK may have sessions of the same id."""
    service, toolset = InMemorySessionService(), SearchToolset(search_over())
    ask(agent(toolset, scripted(WHOLE)), service=service)
    for user, session, name in (("bo", "s", "helper"), ("ana", "t", "helper"), ("ana", "s", "other")):
        model = scripted(["Hi."])
        ask(agent(toolset, model, name), user=user, session=session, service=service)
        assert model.listed == [["search_tools"]], (user, session, name)


def test_C39_the_filter_by_caller_holds_and_a_hidden_tool_is_as_good_as_none() -> None:
    drop = ("call_tool", {"name": "drop_table", "arguments": {"name": "users"}})

    def caller(context: Any) -> Caller:
        return Caller(context.user_id, roles=["admin"] if context.user_id == "root" else [])

    toolset = SearchToolset(search_over(mode="bridge"), caller=caller)
    hidden, _ = ask(agent(toolset, scripted([[drop], "Done."])))
    without = ToolSearch(Catalog([rotate_key, get_weather]), index="keyword", mode="bridge")
    unknown, _ = ask(agent(SearchToolset(without), scripted([[drop], "Done."])))
    assert hidden == unknown
    assert "there is no such tool" in hidden["error"]
    find = ("search_tools", {"queries": ["delete a table"]})
    said = ask(agent(toolset, scripted([[find], [drop], "Done."])), user="root")
    assert said[1] == {"result": "dropped users"}


def test_C39_a_person_confirms_the_inner_tool_of_a_call_through_the_bridge() -> None:
    asked: list[str] = []

    def approval(each: Any) -> bool:
        asked.append(each.id)
        return each.id == "rotate_key"

    service, toolset = InMemorySessionService(), SearchToolset(search_over(mode="bridge"), approval=approval)
    through = ("call_tool", {"name": "rotate_key", "arguments": {"name": "billing"}})
    root = agent(toolset, scripted([[SEARCH], [through], "Done."]))
    app = App(name="app", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True))
    said = ask(app, service=service)
    request = next(each for each in said if isinstance(each, types.FunctionCall))
    assert asked == ["rotate_key"]
    assert "rotated" not in str(said)
    answer = types.FunctionResponse(id=request.id, name=request.name, response={"confirmed": True})
    assert "rotated billing" in str(ask(app, service=service, message=types.Part(function_response=answer)))


def test_functions_of_tools_of_adk_run_with_its_context_and_its_confirmation() -> None:
    def whose_key(name: str, tool_context: ToolContext) -> dict[str, str]:
        """Say whose API key it is."""
        return {"owner": tool_context.user_id}

    search = ToolSearch(tools_from(FunctionTool(whose_key, require_confirmation=True)), index="keyword")
    service, toolset = InMemorySessionService(), SearchToolset(search)
    script = [[("search_tools", {"queries": ["whose api key"]})], [("whose_key", {"name": "billing"})], "Done."]
    root = agent(toolset, scripted(script))
    app = App(name="app", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True))
    request = next(each for each in ask(app, service=service) if isinstance(each, types.FunctionCall))
    answer = types.FunctionResponse(id=request.id, name=request.name, response={"confirmed": True})
    assert '"owner": "ana"' in str(ask(app, service=service, message=types.Part(function_response=answer)))


def test_an_agent_without_a_conversation_lists_the_search_tool() -> None:
    """Cards and graphs of an agent ask for its tools outside any session."""
    toolset = SearchToolset(search_over())
    assert [each.name for each in asyncio.run(toolset.get_tools(None))] == ["search_tools"]
    asyncio.run(toolset.close())
