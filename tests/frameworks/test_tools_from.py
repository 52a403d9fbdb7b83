"""tools_from: the tools of any framework's objects, with their functions bound."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from toolsearch import Catalog, SetupError, Tool, ToolCall, ToolSearch, tool
from toolsearch.frameworks import tools_from


def rotate_key(name: str) -> str:
    """Replace an API key by a new one."""
    return f"rotated {name}"


def names(*sources: object) -> list[str]:
    return [each.name for each in Catalog(tools_from(*sources))]


def answered(sources: object, name: str = "rotate_key", **arguments: Any) -> Any:
    session = ToolSearch(tools_from(sources), mode="static").session()
    session.tools()
    return session.handle(ToolCall("c1", name, arguments or {"name": "billing"}))


def told(sources: object, name: str) -> str:
    """What async code is answered."""
    session = ToolSearch(tools_from(sources), mode="static").session()
    session.tools()
    return asyncio.run(session.ahandle(ToolCall("c1", name, {"name": "billing"}))).content


def test_functions_definitions_and_lists_of_them_pass_as_they_are() -> None:
    definition = {"name": "find", "description": "Find it.", "parameters": {"type": "object", "properties": {}}}
    assert names(rotate_key, [definition, (tool(rotate_key, name="again"),)]) == ["rotate_key", "find", "again"]
    assert names({"a": rotate_key}) == ["rotate_key"]


def test_what_is_no_tool_is_left_to_the_catalog() -> None:
    catalog = Catalog(tools_from(rotate_key, {"name": "bad", "parameters": 3}, {"type": "web_search", "name": "web"}))
    assert [each.name for each in catalog] == ["rotate_key"]
    assert len(catalog.quarantined) == 2


class Toolkit:
    def get_tools(self) -> list[Any]:
        return [rotate_key]


class RemoteToolset:
    async def get_tools(self, ctx: object) -> dict[str, Any]:
        return {}


def test_what_holds_tools_is_opened() -> None:
    assert names(Toolkit()) == ["rotate_key"]
    assert names(SimpleNamespace(name="an agent", tools=[rotate_key])) == ["rotate_key"]
    assert names(SimpleNamespace(toolsets=[SimpleNamespace(tools={"rotate_key": rotate_key})])) == ["rotate_key"]


def test_a_toolset_that_needs_a_running_agent_says_what_to_pass() -> None:
    with pytest.raises(SetupError, match="RemoteToolset gives its tools only in a running agent: pass"):
        tools_from(RemoteToolset())


def test_pydantic_ai() -> None:
    pytest.importorskip("pydantic_ai", reason="needs pip install 'toolsearch-kit[pydantic-ai]': see `make frameworks`")
    from pydantic_ai import Agent, RunContext
    from pydantic_ai import Tool as PydanticTool
    from pydantic_ai.toolsets import FunctionToolset

    def needs_context(ctx: RunContext[str], name: str) -> str:
        """Replace a key."""
        return name

    agent = Agent("test", tools=[rotate_key], toolsets=[FunctionToolset([PydanticTool(needs_context)])])
    assert names(agent) == ["rotate_key", "needs_context"]
    assert answered(agent).content == "rotated billing"
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    open_ended = PydanticTool.from_schema(lambda **arguments: f"did {arguments}", "do_it", "Do it.", schema)  # type: ignore[arg-type]
    assert next(iter(Catalog(tools_from(open_ended)))).input_schema["required"] == ["name"]
    assert answered(open_ended, "do_it").content == "did {'name': 'billing'}"
    result = answered(PydanticTool(needs_context), "needs_context")
    assert result.status == "failed"  # an async function; in the adapter it is awaited


def test_langchain() -> None:
    pytest.importorskip("langchain", reason="needs pip install 'toolsearch-kit[langchain]': see `make frameworks`")
    from langchain.tools import ToolRuntime
    from langchain_core.tools import tool as langchain_tool
    from langgraph.prebuilt import ToolNode

    @langchain_tool
    def needs_runtime(name: str, runtime: ToolRuntime) -> str:
        """Replace a key."""
        return name

    node = ToolNode([langchain_tool(rotate_key), needs_runtime])
    assert names(node) == ["rotate_key", "needs_runtime"]
    assert answered(node).content == "rotated billing"
    outside = answered(node, "needs_runtime")
    assert outside.status == "failed"
    assert "takes the context of LangGraph, so it runs only in an agent of that framework" in outside.content


def test_openai_agents() -> None:
    agents = pytest.importorskip(
        "agents", reason="needs pip install 'toolsearch-kit[openai-agents]': see `make frameworks`"
    )
    agent = agents.Agent("lead", tools=[agents.function_tool(rotate_key, needs_approval=True), agents.WebSearchTool()])
    catalog = Catalog(tools_from(agent))
    held: list[Tool] = list(catalog)
    assert [each.name for each in held] == ["rotate_key"]
    assert held[0].kind == "action"
    assert held[0].annotations["requiresApproval"] is True
    assert "web_search" in catalog.quarantined[0].reason
    assert answered(agents.function_tool(rotate_key)).content == "rotated billing"


def test_llama_index() -> None:
    core = pytest.importorskip(
        "llama_index.core", reason="needs pip install 'toolsearch-kit[llama-index]': see `make frameworks`"
    )
    from llama_index.core.tools import FunctionTool

    async def needs_run(ctx: core.workflow.Context, name: str) -> str:
        """Replace a key."""
        return name

    held = [FunctionTool.from_defaults(rotate_key), FunctionTool.from_defaults(needs_run, name="needs_run")]
    assert names(held) == ["rotate_key", "needs_run"]
    assert answered(held).content == "rotated billing"
    assert "takes the context of LlamaIndex" in told(held, "needs_run")


def test_google_adk() -> None:
    tools = pytest.importorskip(
        "google.adk.tools", reason="needs pip install 'toolsearch-kit[google-adk]': see `make frameworks`"
    )

    def needs_session(name: str, tool_context: tools.ToolContext) -> str:
        """Replace a key."""
        return name

    held = [tools.FunctionTool(rotate_key), tools.FunctionTool(needs_session)]
    assert names(held) == ["rotate_key", "needs_session"]
    assert answered(held).content == "rotated billing"
    assert "takes the context of Google ADK" in told(held, "needs_session")
