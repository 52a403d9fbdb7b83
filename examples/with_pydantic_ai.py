"""An agent of pydantic-ai without and with our search, on pydantic-ai's own FunctionModel.

python examples/with_pydantic_ai.py
"""

import asyncio
from typing import Any

from framework_tools import ALL_TOOLS, DEFINITIONS, SEARCH, TASK, Sent, run_tool
from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import ToolSearch as PydanticToolSearch
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from toolsearch import ToolSearch
from toolsearch.frameworks import tools_from
from toolsearch.frameworks.pydantic_ai import SearchToolset, searched_by


def made(definition: dict[str, Any]) -> Tool[None]:
    """A tool of pydantic-ai, as you have them."""

    def function(**arguments: Any) -> str:
        return run_tool(definition["name"], arguments)

    return Tool.from_schema(function, definition["name"], definition["description"], definition["parameters"])


MY_TOOLS = [made(definition) for definition in DEFINITIONS]


def without(model: FunctionModel) -> Agent:
    return Agent(model, tools=MY_TOOLS)


def with_toolset(model: FunctionModel) -> Agent:
    search = ToolSearch(tools_from(MY_TOOLS), index="keyword", mode="append")
    return Agent(model, toolsets=[SearchToolset(search)])


def with_strategy(model: FunctionModel) -> Agent:
    for tool in MY_TOOLS:
        tool.defer_loading = True
    return Agent(model, tools=MY_TOOLS, capabilities=[PydanticToolSearch(strategy=searched_by("keyword"))])


def scripted(steps: list[Any], sent: Sent) -> FunctionModel:
    replies = iter(steps)

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        tools = [(each.name, each.description, each.parameters_json_schema) for each in info.function_tools]
        parts = [part for each in messages for part in each.parts]
        said = [
            f"{part.tool_name} {part.args}" if isinstance(part, ToolCallPart) else str(part.content) for part in parts
        ]
        sent.add(tools, [info.instructions or "", *said])
        step = next(replies)
        calls = [TextPart(step)] if isinstance(step, str) else [ToolCallPart(*call) for call in step]
        return ModelResponse(parts=calls)

    return FunctionModel(reply)


for build, steps in ((without, ALL_TOOLS), (with_toolset, SEARCH), (with_strategy, SEARCH)):
    print(f"{build.__name__}: {len(MY_TOOLS)} tools")
    sent = Sent()
    print(f"  {asyncio.run(build(scripted(steps, sent)).run(TASK)).output}\n  {sent}\n")
