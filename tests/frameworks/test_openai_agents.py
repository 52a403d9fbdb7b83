"""Agents of the OpenAI Agents SDK with our search."""

import asyncio
import itertools
from typing import Any

import pytest

pytest.importorskip("agents", reason="needs pip install 'toolsearch-kit[openai-agents]': see `make frameworks`")

from agents import (
    Agent,
    ModelBehaviorError,
    RunConfig,
    RunContextWrapper,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from agents.testing import ScriptedModel, assistant_message, function_call

from toolsearch import Caller, SetupError, StateError, ToolSearch, tool
from toolsearch.frameworks import tools_from
from toolsearch.frameworks.openai_agents import SearchAgent, search_run_config

set_tracing_disabled(True)

FIND = ("search_tools", {"queries": ["rotate an api key"]})
ROTATE = ("rotate_key", {"name": "billing"})
THROUGH = ("call_tool", {"name": "rotate_key", "arguments": {"name": "billing"}})
RAN: list[str] = []
CALLS = itertools.count(1)


def get_weather(city: str) -> str:
    """Current weather of a city."""
    return f"Rain in {city}."


@function_tool
def rotate_key(context: RunContextWrapper[str], name: str) -> str:
    """Replace an API key by a new one."""
    RAN.append(name)
    return f"rotated {name} for {context.context}"


def send_mail(to: str, body: str) -> dict[str, str]:
    """Send an e-mail."""
    return {"sent_to": to}


def made_search(*more: object, **options: Any) -> ToolSearch:
    return ToolSearch(
        tools_from(get_weather, rotate_key, send_mail, more), index="keyword", **{"mode": "append"} | options
    )


def script(*steps: Any) -> ScriptedModel:
    """A model that makes the calls that are written down, and notes the tools that it was shown."""

    def reply(step: Any) -> Any:
        if isinstance(step, str):
            return [assistant_message(step)]
        return [function_call(name, args, call_id=f"c{next(CALLS)}") for name, args in step]

    return ScriptedModel([reply(each) for each in steps])


def shown(model: ScriptedModel) -> list[list[str]]:
    return [[each.name for each in call.tools] + [each.tool_name for each in call.handoffs] for call in model.calls]


def ran(agent: Any, said: Any = "The billing key leaked.", **options: Any) -> Any:
    options = {"context": "ana", "run_config": search_run_config()} | options
    return asyncio.run(Runner.run(agent, said, **options))


def answers(result: Any) -> list[str]:
    return [item.output for item in result.new_items if item.type == "tool_call_output_item"]


FRESH, LOADED = ["search_tools"], ["search_tools", "rotate_key"]


def test_the_model_is_shown_the_search_tool_and_then_what_was_found() -> None:
    model = script([FIND], [ROTATE], "Done.")
    result = ran(SearchAgent("Lead", instructions="You help.", search=made_search(), model=model))
    assert shown(model) == [FRESH, LOADED, LOADED]
    assert answers(result)[1] == "rotated billing for ana"  # a function that takes the SDK's context
    assert str(model.calls[0].system_instructions).startswith("You help.\n\n")
    assert "search_tools" in str(model.calls[0].system_instructions)
    assert result.final_output == "Done."


def test_a_streamed_run_is_the_same() -> None:
    async def streamed(agent: Any) -> list[str]:
        result = Runner.run_streamed(agent, "The billing key leaked.", context="bo", run_config=search_run_config())
        async for _ in result.stream_events():
            pass
        return answers(result)

    model = script([FIND], [ROTATE], "Done.")
    assert asyncio.run(streamed(SearchAgent("Lead", search=made_search(), model=model)))[1] == "rotated billing for bo"
    assert shown(model) == [FRESH, LOADED, LOADED]


def test_a_call_of_a_tool_that_is_not_loaded_is_answered() -> None:
    """Without the configuration, the SDK ends the run with an error."""
    steps = [("send_mail", {"to": "x"})], [("no_such_tool", {})], [("send_mail", {"to": "x", "body": "y"})], "Done."
    model = script(*steps)
    result = ran(SearchAgent("Lead", search=made_search(), model=model))
    unloaded, unknown, sent = answers(result)
    assert "body" in unloaded  # its schema is shown, and it is there from the next step on
    assert shown(model)[1] == ["search_tools", "send_mail"]
    assert unknown.startswith("'no_such_tool' did not run: there is no such tool")
    assert sent == '{"to": "x"}' or "sent_to" in sent
    with pytest.raises(ModelBehaviorError, match="send_mail"):
        ran(SearchAgent("Lead", search=made_search(), model=script(*steps)), run_config=None)


def test_a_tool_that_may_run_without_being_loaded_does_not_run_without_its_arguments() -> None:
    """The SDK does not say which arguments such a call had, so it is loaded, and the model calls it again."""
    RAN.clear()
    model = script([ROTATE], [ROTATE], "Done.")
    result = ran(SearchAgent("Lead", search=made_search(not_loaded="run"), model=model))
    assert answers(result)[0] == "'rotate_key' did not run: it was not loaded. It is loaded now; call it again."
    assert RAN == ["billing"]


def test_a_formatter_of_the_program_keeps_what_is_not_ours() -> None:
    def told(problem: Any) -> str:
        return f"formatted {problem.kind}"

    plain = Agent("Plain", model=script([("no_such_tool", {})], "Done."))
    assert answers(ran(plain, run_config=search_run_config(RunConfig(tool_error_formatter=told)))) == [
        "formatted tool_not_found"
    ]


def test_what_was_found_stays_in_its_conversation() -> None:
    """Without an id, each run has a session of its own; with one, the conversation keeps what was found."""
    model = script([FIND], "Found.", "Nothing yet.")
    agent = SearchAgent("Lead", search=made_search(), model=model)
    ran(agent)
    ran(agent)
    assert shown(model) == [FRESH, LOADED, FRESH]
    model = script([FIND], "Found.", "Still there.", "Not here.")
    agent = SearchAgent("Lead", search=made_search(), model=model, conversation_id=lambda context: context.context)
    for conversation in ("one", "one", "two"):
        ran(agent, context=conversation)
    assert shown(model) == [FRESH, LOADED, LOADED, FRESH]


def test_a_conversation_of_one_user_is_closed_to_another() -> None:
    agent = SearchAgent(
        "Lead", search=made_search(), model=script("Hello.", "Hello."),
        conversation_id=lambda context: "one", caller=lambda context: Caller(context.context),
    )  # fmt: skip
    ran(agent, context="ana")
    with pytest.raises(StateError, match="another"):
        ran(agent, context="bo")


def test_J52_a_session_of_the_sdk_goes_on_in_another_process() -> None:
    """J52: the history is the SDK's; our session is exported and restored, as in a loop of one's own."""
    history = SQLiteSession("one")

    def conversation(context: Any) -> str:
        return "one"

    first = made_search()
    ran(
        SearchAgent("Lead", search=first, model=script([FIND], "Found."), conversation_id=conversation), session=history
    )
    second, model = made_search(), script([ROTATE], "Done.")
    second.restore(first.session("one/Lead").export())
    result = ran(SearchAgent("Lead", search=second, model=model, conversation_id=conversation), session=history)
    assert shown(model) == [LOADED, LOADED]
    assert answers(result) == ["rotated billing for ana"]
    history.close()


def test_J52_an_agent_that_takes_over_searches_for_itself() -> None:
    """J52: after a handoff, in the same run and over the same ToolSearch."""
    search = made_search()
    inner = script([FIND], [("send_mail", {"to": "x"})], [ROTATE], "Done.")
    worker = SearchAgent("Worker", search=search, model=inner)
    outer = script([FIND], [("transfer_to_worker", {})])
    lead = SearchAgent("Lead", search=search, model=outer, handoffs=[worker])
    result = ran(lead)
    assert shown(outer) == [[*FRESH, "transfer_to_worker"], [*LOADED, "transfer_to_worker"]]
    assert shown(inner)[:2] == [FRESH, LOADED]
    assert "body" in answers(result)[-2]  # a call of a tool that is not loaded is answered from the worker's session
    assert result.final_output == "Done."


def test_J52_an_agent_that_is_a_tool_searches_for_itself() -> None:
    """J52: each time anew, and neither agent is shown what the other one found."""
    search = made_search()
    inner = script(*[[FIND], [ROTATE], "Rotated."] * 2)
    worker = SearchAgent("Worker", search=search, model=inner)
    outer = script(*[[("work", {"input": "Rotate."})]] * 2, "Done.")
    lead = SearchAgent("Lead", search=search, model=outer, tools=[worker.as_tool("work", "Give a task to the worker.")])
    assert answers(ran(lead)) == ["Rotated."] * 2
    assert shown(inner) == [FRESH, LOADED, LOADED] * 2
    assert shown(outer) == [["work", "search_tools"]] * 3


def test_J52_an_agent_found_by_the_search_runs_as_a_tool() -> None:
    """J52: agents can be tools of a catalog too."""
    worker = SearchAgent("Worker", search=made_search(), model=script([FIND], [ROTATE], "Rotated."))
    search = ToolSearch(
        tools_from(worker.as_tool("work", "Rotate keys and other secrets.")), index="keyword", mode="append"
    )
    model = script([("search_tools", {"queries": ["rotate keys"]})], [("work", {"input": "Rotate."})], "Done.")
    assert answers(ran(SearchAgent("Lead", search=search, model=model)))[1] == "Rotated."


@pytest.mark.parametrize("decision", [True, False])
@pytest.mark.parametrize("call", [ROTATE, THROUGH], ids=["append", "bridge"])
def test_C39_a_call_that_a_person_approves_waits_in_any_mode(call: Any, decision: bool) -> None:
    """C39: also through call_tool, where the arguments name the inner tool."""
    mode = "append" if call is ROTATE else "bridge"
    asking = function_tool(rotate_key.__wrapped__, name_override="rotate_key", needs_approval=True)
    search = ToolSearch(tools_from(get_weather, asking), index="keyword", mode=mode)  # type: ignore[arg-type]
    RAN.clear()
    agent = SearchAgent("Lead", search=search, model=script([FIND], [call], "Done."))
    result = ran(agent)
    (waiting,) = result.interruptions
    assert (waiting.name, RAN) == (call[0], [])
    state = result.to_state()
    state.approve(waiting) if decision else state.reject(waiting)
    assert ran(agent, state).final_output == "Done."
    assert len(RAN) == decision


def test_C39_a_call_that_waits_goes_on_in_another_process() -> None:
    def conversation(context: Any) -> str:
        return "one"

    def agent(search: ToolSearch, model: ScriptedModel) -> SearchAgent:
        return SearchAgent(
            "Lead",
            search=search,
            model=model,
            conversation_id=conversation,
            approval=lambda tool: tool.name == "rotate_key",
        )

    RAN.clear()
    first = made_search()
    result = ran(agent(first, script([FIND], [ROTATE])))
    stored, ours = result.to_state().to_string(), first.session("one/Lead").export()

    async def go_on() -> Any:
        second = made_search()
        second.restore(ours)
        lead = agent(second, script("Done."))
        state = await RunState.from_string(lead, stored, context_override=RunContextWrapper("bo"))
        state.approve(state.get_interruptions()[0])
        return await Runner.run(lead, state, run_config=search_run_config())

    assert asyncio.run(go_on()).final_output == "Done."
    assert RAN == ["billing"]


@pytest.mark.parametrize("mode", ["append", "bridge"])
def test_C39_a_filter_by_caller_holds_in_search_and_call(mode: Any) -> None:
    """C39: what a caller may not see is not found, and a call by its name is answered as an unknown name is."""
    drop = tool({"name": "drop_table", "description": "Drop a table.", "roles": ["admin"]}, run=lambda: "dropped")
    call = ("drop_table", {}) if mode == "append" else ("call_tool", {"name": "drop_table", "arguments": {}})
    heard = {}
    for user in ("ana", "bo"):
        agent = SearchAgent(
            "Lead", search=made_search(drop, mode=mode),
            model=script([("search_tools", {"queries": ["drop_table"]})], [call], "Done."),
            caller=lambda context: Caller(context.context, roles=["admin"] * (context.context == "ana")),
        )  # fmt: skip
        heard[user] = answers(ran(agent, context=user))
    assert heard["ana"][1] == "dropped"
    assert "Drop a table" not in heard["bo"][0]
    assert heard["bo"][1].startswith("'drop_table' did not run: there is no such tool")


def test_an_agent_without_a_search_says_so() -> None:
    with pytest.raises(SetupError, match="the agent 'Lead' has no search: pass search="):
        ran(SearchAgent("Lead", model=script("Hello.")))
