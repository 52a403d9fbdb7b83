"""An agent of the OpenAI Agents SDK without and with our search, on the SDK's own ScriptedModel.

python examples/with_openai_agents.py
"""

import asyncio
import json
from typing import Any

from agents import Agent, FunctionTool, Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from framework_tools import ALL_TOOLS, DEFINITIONS, SEARCH, TASK, Sent, run_tool

from toolsearch import ToolSearch
from toolsearch.frameworks import tools_from
from toolsearch.frameworks.openai_agents import SearchAgent, search_run_config

set_tracing_disabled(True)


def made(definition: dict[str, Any]) -> FunctionTool:
    """A tool of the SDK, as you have them."""

    async def function(context: Any, arguments: str) -> str:
        return run_tool(definition["name"], json.loads(arguments))

    name, description, schema = definition["name"], definition["description"], definition["parameters"]
    return FunctionTool(name, description, schema, function, strict_json_schema=False)


MY_TOOLS = [made(definition) for definition in DEFINITIONS]


def without(model: ScriptedModel) -> Agent:
    return Agent("Assistant", tools=MY_TOOLS, model=model)


def with_search(model: ScriptedModel) -> Agent:
    search = ToolSearch(tools_from(MY_TOOLS), index="keyword", mode="append")
    return SearchAgent("Assistant", search=search, model=model)


def scripted(steps: list[Any]) -> ScriptedModel:
    def reply(step: Any, number: int) -> Any:
        if isinstance(step, str):
            return [assistant_message(step)]
        return [function_call(name, arguments, call_id=f"call_{number}") for name, arguments in step]

    return ScriptedModel([reply(step, number) for number, step in enumerate(steps)])


for build, steps in ((without, ALL_TOOLS), (with_search, SEARCH)):
    print(f"{build.__name__}: {len(MY_TOOLS)} tools")
    model, sent = scripted(steps), Sent()
    result = asyncio.run(Runner.run(build(model), TASK, run_config=search_run_config()))
    for call in model.calls:
        tools = [(each.name, each.description, each.params_json_schema) for each in call.tools]
        sent.add(tools, [call.system_instructions or "", call.input])
    print(f"  {result.final_output}\n  {sent}\n")
