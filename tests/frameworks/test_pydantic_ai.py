"""pydantic-ai with our search: as the strategy of its own ToolSearch, and as a toolset."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs pip install 'toolsearch-kit[pydantic-ai]': see `make frameworks`")

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext, Tool
from pydantic_ai.capabilities import ToolSearch as PydanticToolSearch
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import WrapperToolset

from toolsearch import Caller, ImagePart, StateError, ToolSearch, open_index, tool
from toolsearch.frameworks import tools_from
from toolsearch.frameworks.pydantic_ai import SearchToolset, searched_by

FIND = ("search_tools", {"queries": ["rotate an api key"]})
ROTATE = ("rotate_key", {"name": "billing"})
THROUGH = ("call_tool", {"name": "rotate_key", "arguments": {"name": "billing"}})


def get_weather(city: str) -> str:
    """Current weather of a city."""
    return f"Rain in {city}."


def rotate_key(ctx: RunContext[str], name: str) -> str:
    """Replace an API key by a new one."""
    return f"rotated {name} for {ctx.deps}"


def send_mail(to: str, body: str) -> dict[str, str]:
    """Send an e-mail."""
    return {"sent_to": to}


def made_search(*sources: object, **options: Any) -> ToolSearch:
    return ToolSearch(
        tools_from(*sources or (get_weather, Tool(rotate_key), send_mail)),
        index="keyword",
        **{"mode": "append"} | options,
    )


class Script:
    """A model that makes the calls that are written down, and notes the tools that it was shown."""

    def __init__(self, *steps: Any) -> None:
        self.steps, self.shown, self.instructions = list(steps), [], []
        self.model = FunctionModel(self.reply)

    def reply(self, messages: Any, info: Any) -> ModelResponse:
        self.shown.append([each.name for each in info.function_tools])
        self.instructions.append(info.instructions)
        step = self.steps.pop(0)
        calls = [TextPart(step)] if isinstance(step, str) else [ToolCallPart(*call) for call in step]
        return ModelResponse(parts=calls)


def ran(agent: Agent[Any, Any], *prompt: str, **options: Any) -> Any:
    """A run in a loop of its own, which is closed at the end."""
    return asyncio.run(agent.run(*prompt, **options))


def results(run: Any) -> list[tuple[str, Any]]:
    parts = [part for message in run.new_messages() for part in message.parts]
    return [(part.tool_name, part.content) for part in parts if part.part_kind == "tool-return"]


def test_the_toolset_shows_the_search_tool_and_then_what_was_found() -> None:
    script = Script([FIND], [ROTATE], "Done.")
    agent = Agent(script.model, deps_type=str, toolsets=[SearchToolset(made_search())])
    run = ran(agent, "The billing key leaked.", deps="ana")
    assert script.shown == [["search_tools"], ["search_tools", "rotate_key"], ["search_tools", "rotate_key"]]
    assert results(run)[1] == ("rotate_key", "rotated billing for ana")  # a function that takes the RunContext
    assert "search_tools" in script.instructions[0]
    assert run.output == "Done."


def test_the_strategy_searches_the_deferred_tools_of_the_agent() -> None:
    script = Script([FIND], [ROTATE], "Done.")
    deferred = [Tool(each, defer_loading=True) for each in (get_weather, rotate_key, send_mail)]
    agent = Agent(
        script.model, deps_type=str, tools=deferred, capabilities=[PydanticToolSearch(strategy=searched_by("keyword"))]
    )
    assert ran(agent, "The billing key leaked.", deps="ana").output == "Done."
    assert script.shown == [["search_tools"], ["rotate_key", "search_tools"], ["rotate_key", "search_tools"]]


def test_the_strategy_takes_turns_between_queries_and_keeps_one_index_for_the_same_tools() -> None:
    tools = [
        ToolDefinition(name=name, description=text)
        for name, text in (
            ("post_mail", "Send an e-mail."),
            ("read_mail", "Read an e-mail."),
            ("rain", "Weather of a city."),
        )
    ]
    strategy = searched_by("keyword")
    assert strategy(None, ["e-mail", "weather"], tools) == ["post_mail", "rain", "read_mail"]  # type: ignore[arg-type]
    assert strategy(None, ["paint the fence"], list(tools)) == []  # type: ignore[arg-type]
    assert strategy(None, ["e-mail"], tools[1:]) == ["read_mail"]  # type: ignore[arg-type]


def test_the_strategy_makes_an_index_for_each_set_of_tools() -> None:
    """Users of different roles have different tools, and an index belongs to one set of them."""
    made: list[Any] = []

    def index() -> Any:
        made.append(open_index("keyword"))
        return made[-1]

    strategy: Any = searched_by(index)
    mail = [ToolDefinition(name="post_mail", description="Send an e-mail.")]
    rain = [ToolDefinition(name="rain", description="Weather of a city.")]
    for _ in range(2):
        assert strategy(None, ["e-mail", "weather"], mail) == ["post_mail"]
        assert strategy(None, ["e-mail", "weather"], rain) == ["rain"]
    assert len(made) == 2


def secret_search(mode: str) -> ToolSearch:
    drop = tool({"name": "drop_table", "description": "Drop a table.", "roles": ["admin"]}, run=lambda: "dropped")
    return ToolSearch([tool(get_weather), drop], index="keyword", mode=mode)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["append", "bridge"])
def test_C39_a_filter_by_caller_holds_in_search_and_call(mode: str) -> None:
    """C39: what a caller may not see is not found, and a call by its name is answered as an unknown name is."""
    toolset = SearchToolset(
        secret_search(mode), caller=lambda ctx: Caller(ctx.deps, roles=["admin"] * (ctx.deps == "ana"))
    )
    found = {}
    for user in ("ana", "bo"):
        call = ("drop_table", {}) if mode == "append" else ("call_tool", {"name": "drop_table", "arguments": {}})
        script = Script([("search_tools", {"queries": ["drop_table", "no_such_tool"]})], [call], "Done.")
        run = ran(Agent(script.model, deps_type=str, toolsets=[toolset]), "Drop it.", deps=user)
        parts = [part for message in run.new_messages() for part in message.parts]
        found[user] = [str(part.content) for part in parts if part.part_kind == "tool-return"]
    assert found["ana"][1] == "dropped"
    assert "Drop a table" not in found["bo"][0]
    unknown = (
        "Unknown tool name: 'drop_table'" if mode == "append" else "'drop_table' did not run: there is no such tool"
    )
    assert found["bo"][1].startswith(unknown)


def test_C39_the_strategy_finds_nothing_that_the_caller_may_not_see() -> None:
    strategy = searched_by(secret_search("append"), caller=lambda ctx: Caller(ctx, roles=["admin"] * (ctx == "ana")))  # type: ignore[arg-type]
    tools = [ToolDefinition(name="drop_table"), ToolDefinition(name="get_weather")]
    assert strategy("ana", ["drop a table"], tools) == ["drop_table"]  # type: ignore[arg-type]
    assert strategy("bo", ["drop a table"], tools) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("call", [ROTATE, THROUGH], ids=["append", "bridge"])
def test_C39_a_call_that_a_person_approves_waits_in_any_mode_and_goes_on_in_another_process(call: Any) -> None:
    """C39, J52: the question names the inner tool; the history alone brings the found tool back."""
    mode = "append" if call is ROTATE else "bridge"
    asking = Tool(rotate_key, requires_approval=True)
    script = Script([FIND], [call], "Done.")
    kinds: Any = [str, DeferredToolRequests]
    first = Agent(
        script.model, deps_type=str, toolsets=[SearchToolset(made_search(asking, mode=mode))], output_type=kinds
    )
    run = ran(first, "The billing key leaked.", deps="ana")
    (waiting,) = run.output.approvals
    assert run.output.metadata[waiting.tool_call_id] == {"tool": "rotate_key", "arguments": {"name": "billing"}}

    stored = ModelMessagesTypeAdapter.dump_json(run.all_messages())
    decisions = DeferredToolResults(approvals={waiting.tool_call_id: True})
    second = Agent(
        Script("Done.").model,
        deps_type=str,
        toolsets=[SearchToolset(made_search(asking, mode=mode))],
        output_type=kinds,
    )
    history = ModelMessagesTypeAdapter.validate_json(stored)
    run = ran(second, message_history=history, deferred_tool_results=decisions, deps="ana")
    assert results(run) == [(call[0], "rotated billing for ana")]
    assert run.output == "Done."


def test_an_approval_of_the_program_names_more_tools() -> None:
    toolset = SearchToolset(made_search(), approval=lambda each: each.name == "rotate_key")
    script = Script([FIND], [ROTATE])
    run = ran(
        Agent(script.model, deps_type=str, toolsets=[toolset], output_type=[str, DeferredToolRequests]),
        "The billing key leaked.",
        deps="ana",
    )
    assert [each.tool_name for each in run.output.approvals] == ["rotate_key"]


def test_what_was_found_stays_in_its_conversation() -> None:
    """No id and no history: a new private session. The same conversation: what was found is there."""
    toolset = SearchToolset(made_search())
    script = Script([FIND], "Found.", "Nothing yet.", "Still there.")
    agent = Agent(script.model, deps_type=str, toolsets=[toolset])
    first = ran(agent, "The billing key leaked.", deps="ana")
    ran(agent, "Hello.", deps="bo")
    ran(agent, "And now?", deps="ana", message_history=first.all_messages())
    assert script.shown == [
        ["search_tools"],
        ["search_tools", "rotate_key"],
        ["search_tools"],
        ["search_tools", "rotate_key"],
    ]


def test_a_conversation_of_one_user_is_closed_to_another() -> None:
    toolset = SearchToolset(made_search(), caller=lambda ctx: Caller(ctx.deps))
    agent = Agent(Script("Hello.", "Hello.").model, deps_type=str, toolsets=[toolset])
    ran(agent, "Hello.", deps="ana", conversation_id="c1")
    with pytest.raises(StateError, match="another"):
        ran(agent, "Hello.", deps="bo", conversation_id="c1")


def test_J52_an_agent_that_another_one_calls_searches_for_itself() -> None:
    """J52: the delegated agent is shown the search tool, and neither agent is shown what the other one found."""
    search = made_search(pinned=[])
    inner = Script([FIND], [ROTATE], "Rotated.")
    worker = Agent(inner.model, deps_type=str, toolsets=[SearchToolset(search)])

    async def delegate(ctx: RunContext[str], task: str) -> str:
        """Give a task to the worker."""
        return (await worker.run(task, deps=ctx.deps, usage=ctx.usage)).output

    outer = Script([("delegate", {"task": "Rotate the billing key."})], "Done.")
    lead = Agent(outer.model, deps_type=str, tools=[Tool(delegate)], toolsets=[SearchToolset(search)])
    assert ran(lead, "The billing key leaked.", deps="ana").output == "Done."
    assert inner.shown == [["search_tools"], ["search_tools", "rotate_key"], ["search_tools", "rotate_key"]]
    assert outer.shown == [["delegate", "search_tools"]] * 2


class Recorded(WrapperToolset[Any]):
    """A durable toolset: a call that is in the records is not made again."""

    def __init__(self, wrapped: Any, records: dict[tuple[str, str], Any]) -> None:
        super().__init__(wrapped)
        self.records = records

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        key = (name, str(tool_args))
        if key not in self.records:
            self.records[key] = await super().call_tool(name, tool_args, ctx, tool)
        return self.records[key]


def test_J52_a_durable_run_that_takes_its_searches_from_records_has_found_the_same() -> None:
    """J52: after a crash the searches are not made again, and the session of the new process learns of them."""
    records: dict[tuple[str, str], Any] = {}
    steps = [[FIND], [("search_tools", {"queries": ["weather"]})], [ROTATE], "Done."]
    shown = []
    for _ in ("before the crash", "after it"):
        script = Script(*steps)
        agent = Agent(script.model, deps_type=str, toolsets=[Recorded(SearchToolset(made_search()), records)])
        assert results(ran(agent, "The billing key leaked.", deps="ana"))[2][1] == "rotated billing for ana"
        shown.append(script.shown)
    assert shown[0] == shown[1]
    assert shown[0][2] == ["search_tools", "rotate_key", "get_weather"]


def test_what_left_the_session_does_not_come_back_from_the_history() -> None:
    search = made_search()
    script = Script([FIND], "Found.", "Gone.")
    agent = Agent(script.model, deps_type=str, toolsets=[SearchToolset(search)])
    first = ran(agent, "The billing key leaked.", deps="ana", conversation_id="one")
    ran(agent, "And now?", deps="ana", conversation_id="one", message_history=first.all_messages())
    search.session("one").unload(["rotate_key"])
    script.steps.append("Still gone.")
    ran(agent, "And now?", deps="ana", conversation_id="one", message_history=first.all_messages())
    assert script.shown[-2:] == [["search_tools", "rotate_key"], ["search_tools"]]


def test_J52_a_workflow_of_dbos_searches_as_a_plain_run(tmp_path: Any) -> None:
    """J52: the durable twin of an agent, with pydantic-ai's own capability for it."""
    dbos = pytest.importorskip("dbos", reason="needs pip install dbos")
    from pydantic_ai.durable_exec.dbos import DBOSDurability

    database = f"sqlite:///{tmp_path}/system.sqlite"
    dbos.DBOS(config={"name": "toolsearch-tests", "system_database_url": database, "run_admin_server": False})
    script = Script([FIND], [ROTATE], "Done.")
    agent = Agent(
        script.model,
        name="lead",
        deps_type=str,
        toolsets=[SearchToolset(made_search())],
        capabilities=[DBOSDurability()],
    )

    @dbos.DBOS.workflow()
    async def durable(prompt: str) -> str:
        return str((await agent.run(prompt, deps="ana")).output)

    dbos.DBOS.launch()
    try:
        assert asyncio.run(durable("The billing key leaked.")) == "Done."
    finally:
        dbos.DBOS.destroy()
    assert script.shown == [["search_tools"], ["search_tools", "rotate_key"], ["search_tools", "rotate_key"]]


def test_many_runs_at_once_do_not_mix() -> None:
    toolset = SearchToolset(made_search())

    async def one(user: str) -> list[tuple[str, Any]]:
        script = Script([FIND], [ROTATE], "Done.")
        return results(await Agent(script.model, deps_type=str, toolsets=[toolset]).run("Go.", deps=user))

    async def all_of_them() -> Any:
        return await asyncio.gather(*(one(f"user {number}") for number in range(20)))

    assert [found[1][1] for found in asyncio.run(all_of_them())] == [f"rotated billing for user {n}" for n in range(20)]


def test_metadata_of_other_tools_in_the_history_is_left_alone() -> None:
    def note(text: str) -> Any:
        """Note a text."""
        from pydantic_ai import ToolReturn

        return ToolReturn("noted", metadata=["anything"])

    script = Script([("note", {"text": "x"})], "Done.")
    agent = Agent(script.model, tools=[note], toolsets=[SearchToolset(made_search())])
    assert ran(agent, "Note it.").output == "Done."


def test_an_image_comes_as_an_image() -> None:
    def draw(what: str) -> Any:
        """Draw a picture."""
        return [ImagePart(b"GIF89a", "image/gif")]

    script = Script([("draw", {"what": "a cat"})], "Done.")
    run = ran(Agent(script.model, toolsets=[SearchToolset(ToolSearch([draw], mode="static"))]), "Draw.")
    parts = [part for message in run.new_messages() for part in message.parts]
    (told,) = [part.content for part in parts if part.part_kind == "user-prompt" and part.content != "Draw."]
    assert (told[0].data, told[0].media_type) == (b"GIF89a", "image/gif")


def test_tools_of_one_name_are_found_under_the_names_that_the_agent_has() -> None:
    def made(server: str) -> Any:
        definition = {"name": "create_issue", "description": f"Open an issue in {server}.", "server": server}
        return tool(definition, run=lambda: f"made in {server}")

    search = ToolSearch([made("github"), made("jira")], index="keyword", mode="static")
    names: dict[str, str] = {}

    async def noted(ctx: Any) -> None:
        names.update({shown.tool.id: shown.name for shown in toolset.session(ctx).tools()})

    toolset = SearchToolset(search)
    script = Script([("search_tools", {"queries": ["issue in jira"]})], "Done.")
    agent = Agent(
        script.model, toolsets=[toolset.defer_loading()],
        capabilities=[PydanticToolSearch(strategy=searched_by(search, limit=1))],
    )  # fmt: skip
    agent.instructions(noted)  # type: ignore[arg-type]
    ran(agent, "Open one.")
    assert script.shown[1] == [names["jira/create_issue"], "search_tools"]


def test_native_delivery_over_a_catalog_of_ours() -> None:
    """A catalog as deferred tools, for pydantic-ai's own ToolSearch, which delivers natively where it can."""
    search = made_search(mode="static")
    script = Script([FIND], [ROTATE], "Done.")
    agent = Agent(
        script.model, deps_type=str, toolsets=[SearchToolset(search).defer_loading()],
        capabilities=[PydanticToolSearch(strategy=searched_by(search))],
    )  # fmt: skip
    run = ran(agent, "The billing key leaked.", deps="ana")
    assert script.shown[0] == ["search_tools"]
    assert results(run)[1] == ("rotate_key", "rotated billing for ana")
